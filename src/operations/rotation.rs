//! Rotation of rows of projections about the middle of the detector, or rows whose pixels are looked up in a table.

use super::device_rows::{DeviceRows, ImagePart};
use super::program_target::ProgramTarget;
use crate::device::{BufferLayout, Session};
use crate::error::{Error, Result};
use crate::fault;
use crate::geometry::default_axis;
use crate::kernel::{COMMON, ClFile, Defines, KernelSource, LaunchShape, StepTarget, assemble, cl_file};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;

const ROTATE_ROWS: ClFile = cl_file!("rotate_rows.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, ROTATE_ROWS]];

/// Returns the source of the kernel that rotates rows, or that looks up each pixel in a table.
fn generate_rotation(target: StepTarget, mapped: bool) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", target.row_group() as u32)?;
    let name = if mapped { "map-rows" } else { "rotate-rows" };
    if mapped {
        defines.number("MAPPED", 1)?;
    }
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble(name.to_owned(), &defines, FILES[0], options, "rotate_rows", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    [false, true].into_iter().map(|mapped| generate_rotation(on.target, mapped)).collect()
}

/// The kernel that rotates rows, or looks up their pixels, with its tables.
pub(super) struct RowRotator {
    kernel: Kernel,
    bins: usize,
    height: usize,
    tables: Tables,
    group: usize,
}

/// Whole bins, whole rows, and the bits of the rests of both.
enum Tables {
    /// The sum of the places of a bin and of a row is that of a pixel.
    Sums { of_bins: Buffer<[i32; 4]>, of_rows: Buffer<[i32; 4]> },
    /// The place of each pixel, `[row][bin]`.
    Pixels(Buffer<[i32; 4]>),
}

impl RowRotator {
    /// Builds the kernel for a detector of `[bins, height]`.
    pub fn new(session: &Session, degrees: f64, [bins, height]: [usize; 2]) -> Result<Self> {
        let source = generate_rotation(session.step_target(), false)?;
        let program = session.build(&source)?;
        let (sin, cos) = degrees.to_radians().sin_cos();
        let middle = [bins, height].map(|length| default_axis(length) + fault::shift(&source.name));
        let parts = |x: f64, z: f64| {
            let whole = [x.floor(), z.floor()];
            // a rest that rounds up to 1 is as good as one
            let rest = [x - whole[0], z - whole[1]].map(|rest| (rest as f32).to_bits() as i32);
            [whole[0] as i32, whole[1] as i32, rest[0], rest[1]]
        };
        let of_bin = |bin: usize| {
            let dx = bin as f64 - middle[0];
            parts(middle[0] + dx * cos, -dx * sin)
        };
        let of_row = |row: usize| {
            let dz = row as f64 - middle[1];
            parts(dz * sin, middle[1] + dz * cos)
        };
        let layout = Self::layout([bins, height]);
        Ok(RowRotator {
            kernel: session.kernel(&program, source.entry)?,
            bins,
            height,
            tables: Tables::Sums {
                of_bins: layout.constant(session, "places of bins", &(0..bins).map(of_bin).collect::<Vec<_>>())?,
                of_rows: layout.constant(session, "places of rows", &(0..height).map(of_row).collect::<Vec<_>>())?,
            },
            group: session.step_target().row_group(),
        })
    }

    /// Builds the kernel for a detector of `[bins, height]` whose pixels are looked up at these places, `[row][bin]`.
    pub fn of_places(session: &Session, places: &[[i32; 4]], [bins, height]: [usize; 2]) -> Result<Self> {
        if places.len() != bins * height {
            return Err(Error::Internal(format!("{} places of {bins}x{height} pixels", places.len())));
        }
        let source = generate_rotation(session.step_target(), true)?;
        let program = session.build(&source)?;
        let shift = fault::shift(&source.name) as i32;
        let shifted: Vec<[i32; 4]>;
        let places = match shift {
            0 => places,
            _ => {
                shifted = places.iter().map(|&[x, z, across, down]| [x + shift, z, across, down]).collect();
                &shifted
            }
        };
        let layout = Self::layout_of_places([bins, height]);
        Ok(RowRotator {
            kernel: session.kernel(&program, source.entry)?,
            bins,
            height,
            tables: Tables::Pixels(layout.constant(session, "places of pixels", places)?),
            group: session.step_target().row_group(),
        })
    }

    /// Returns the buffers for a detector of `[bins, height]`.
    pub fn layout([bins, height]: [usize; 2]) -> BufferLayout {
        BufferLayout::default().with::<[i32; 4]>("places of bins", bins).with::<[i32; 4]>("places of rows", height)
    }

    /// Returns the buffers for a detector of `[bins, height]` whose pixels are looked up.
    pub fn layout_of_places([bins, height]: [usize; 2]) -> BufferLayout {
        BufferLayout::default().with::<[i32; 4]>("places of pixels", bins * height)
    }

    /// Computes the rotated rows that are wanted from the rows that were read, `[row][projection][bin]`. Does not wait
    /// for the kernel.
    pub fn run(&self, session: &Session, from: &Buffer<f32>, part: &ImagePart, to: &DeviceRows) -> Result<Event> {
        part.check()?;
        let ImagePart { read, wanted, projections } = part;
        if read.end > self.height {
            return Err(Error::Internal(format!("rows {read:?} of {}", self.height)));
        }
        let launch = session
            .launch(&self.kernel, "rotate_rows")
            .buffer(from, part.read_len(self.bins), "rows of projections")?
            .rows(to, wanted.len(), projections * self.bins)?;
        let launch = match &self.tables {
            Tables::Sums { of_bins, of_rows } => {
                launch.buffer(of_bins, self.bins, "places of bins")?.buffer(of_rows, wanted.end, "places of rows")?
            }
            Tables::Pixels(places) => launch.buffer(places, wanted.end * self.bins, "places of pixels")?,
        };
        let launch = launch
            .value(to.first as u64)?
            .value(to.stride as u64)?
            .value(self.bins as i32)?
            .value(self.height as i32)?
            .value([read.start as i32, read.end as i32 - 1])?
            .value(wanted.start as i32)?;
        let global = [self.bins.next_multiple_of(self.group), *projections, wanted.len()];
        launch.among_uploads().run(&global, Some(&[self.group, 1, 1]))
    }
}
