//! Rotation of rows of projections about the middle of the detector.

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

/// Returns the source of the kernel that rotates rows.
fn generate_rotation(target: StepTarget) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", target.row_group() as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("rotate-rows".to_owned(), &defines, FILES[0], options, "rotate_rows", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    Ok(vec![generate_rotation(on.target)?])
}

/// The kernel that rotates rows, with its tables.
pub(super) struct RowRotator {
    kernel: Kernel,
    bins: usize,
    height: usize,
    of_bins: Buffer<[i32; 4]>,
    of_rows: Buffer<[i32; 4]>,
    group: usize,
}

impl RowRotator {
    /// Builds the kernel for a detector of `[bins, height]`.
    pub fn new(session: &Session, degrees: f64, [bins, height]: [usize; 2]) -> Result<Self> {
        let source = generate_rotation(session.step_target())?;
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
            of_bins: layout.constant(session, "places of bins", &(0..bins).map(of_bin).collect::<Vec<_>>())?,
            of_rows: layout.constant(session, "places of rows", &(0..height).map(of_row).collect::<Vec<_>>())?,
            group: session.step_target().row_group(),
        })
    }

    /// Returns the buffers for a detector of `[bins, height]`.
    pub fn layout([bins, height]: [usize; 2]) -> BufferLayout {
        BufferLayout::default().with::<[i32; 4]>("places of bins", bins).with::<[i32; 4]>("places of rows", height)
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
            .rows(to, wanted.len(), projections * self.bins)?
            .buffer(&self.of_bins, self.bins, "places of bins")?
            .buffer(&self.of_rows, wanted.end, "places of rows")?
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
