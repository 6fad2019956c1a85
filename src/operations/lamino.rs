//! Back projection of filtered rows of a scan whose rotation axis is inclined to the beam.

use super::program_target::ProgramTarget;
use crate::device::{BufferLayout, Resources, Session};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::fault;
use crate::geometry::{Geometry, Lamino, LaminoTables, Offset};
use crate::kernel::{COMMON, ClFile, Defines, GUARD, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

const BACKPROJECT_LAMINO: ClFile = cl_file!("backproject_lamino.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[COMMON, BACKPROJECT_LAMINO]];

/// Number of slices that a work-item computes.
const DEPTH: usize = 8;

/// Number of work-items of a work-group, where the device has as many, and of those in a row.
const GROUP: [usize; 2] = [256, 32];

/// Returns the source of the kernel for a device.
///
/// # Errors
/// None: its defines are legal.
pub fn generate_lamino(facts: &DeviceFacts) -> Result<KernelSource> {
    let group = power_of_two_group(facts, GROUP[0]);
    let across = group.min(GROUP[1]);
    let shape = [across, group / across].map(|side| side as u32);
    let mut defines = Defines::default();
    defines.number("DEPTH", DEPTH as u32)?;
    defines.number("GUARD", GUARD as u32)?;
    defines.number("WORK_X", shape[0])?;
    defines.number("WORK_Y", shape[1])?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    let shape = LaunchShape { work_group: shape, block: shape };
    Ok(assemble("lamino".to_owned(), &defines, FILES[0], options, "backproject_lamino", shape))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    Ok(vec![generate_lamino(on.target.facts)?])
}

/// The kernel that back-projects rows about an inclined axis, with its tables.
pub struct LaminoProjector {
    kernel: Kernel,
    pub source: KernelSource,
    pub resources: Resources,
    columns: Buffer<[f32; 4]>,
    lines: Buffer<[f32; 4]>,
    steps: Buffer<[f32; 4]>,
    heights: Buffer<Offset>,
    lamino: Lamino,
    geometry: Geometry,
    /// Number of slices of a chunk.
    chunk: usize,
}

/// Filtered rows `[row][projection][guard, bin, guard]` on a device.
pub struct LaminoRows<'a> {
    pub values: &'a Buffer<f32>,
    /// Rows of the detector.
    pub rows: Range<usize>,
    /// Projections of the scan.
    pub projections: Range<usize>,
}

impl LaminoProjector {
    /// Builds the kernel for chunks of at most `chunk` slices.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(session: &Session, geometry: &Geometry, lamino: Lamino, chunk: usize) -> Result<Self> {
        let source = generate_lamino(&session.facts)?;
        let program = session.build(&source)?;
        let shift = fault::shift(&source.name);
        let mut geometry = geometry.clone();
        geometry.axis.iter_mut().for_each(|axis| *axis += shift);
        let layout = Self::layout(&session.facts, &geometry, chunk)?;
        let LaminoTables { columns, lines, steps } = lamino.tables(&geometry, source.block);
        let kernel = session.kernel(&program, source.entry)?;
        Ok(LaminoProjector {
            resources: session.resources(&program, &kernel),
            kernel,
            columns: layout.constant(session, "block columns", &columns)?,
            lines: layout.constant(session, "block lines", &lines)?,
            steps: layout.constant(session, "steps from pixel to pixel", &steps)?,
            heights: layout.buffer(session, "heights of slices")?,
            source,
            lamino,
            geometry,
            chunk,
        })
    }

    /// Returns the buffers for chunks of at most `chunk` slices.
    ///
    /// # Errors
    /// None: the kernel's defines are legal.
    pub fn layout(facts: &DeviceFacts, geometry: &Geometry, chunk: usize) -> Result<BufferLayout> {
        let (_, [columns, lines]) = geometry.roi.block_grid(generate_lamino(facts)?.block);
        let projections = geometry.projections();
        Ok(BufferLayout::default()
            .with::<[f32; 4]>("block columns", columns * projections)
            .with::<[f32; 4]>("block lines", lines * projections)
            .with::<[f32; 4]>("steps from pixel to pixel", projections)
            .with::<Offset>("heights of slices", chunk))
    }

    /// Returns the number of slices of which work-items compute several at once: chunks should be a multiple of it.
    pub fn depth() -> usize {
        DEPTH
    }

    /// Chooses the slices, by number, that are computed next.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn choose(&mut self, session: &Session, slices: &[usize]) -> Result<()> {
        session.write(&mut self.heights, &self.lamino.heights(slices), "heights of slices").map(drop)
    }

    /// Adds the back projection of some projections to the `count` slices that were chosen, at the beginning of `slices`;
    /// the first projection overwrites what is there. Does not wait for the kernel.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] if a buffer is too small for what the kernel reads or writes.
    pub fn run(&self, session: &Session, rows: &LaminoRows, slices: &Buffer<f32>, count: usize) -> Result<Event> {
        let LaminoProjector { geometry, source, .. } = self;
        let LaminoRows { values, rows, projections } = rows;
        let (all, roi) = (geometry.projections(), geometry.roi);
        if count == 0 || count > self.chunk || projections.end > all {
            return Err(Error::Internal(format!("{count} slices, projections {projections:?} of {all}")));
        }
        let (origin, [columns, lines]) = roi.block_grid(source.block);
        let needed = rows.len() * projections.len() * (geometry.bins + 2 * GUARD);
        let launch = session
            .launch(&self.kernel, source.entry)
            .buffer(values, needed, "filtered rows")?
            .buffer(&self.columns, columns * all, "block columns")?
            .buffer(&self.lines, lines * all, "block lines")?
            .buffer(&self.steps, all, "steps from pixel to pixel")?
            .buffer(&self.heights, count, "heights of slices")?
            .buffer(slices, count * roi.pixels(), "slices")?
            .value(all as i32)?
            .value(projections.start as i32)?
            .value(projections.len() as i32)?
            .value(geometry.bins as i32)?
            .value([rows.start as i32, rows.len() as i32])?
            .value([roi.x, roi.y, roi.width, roi.height].map(|side| side as i32))?
            .value(origin.map(|first| first as i32))?
            .value(count as i32)?
            .value(i32::from(projections.start > 0))?;
        let [across, down] = source.work_group;
        launch.run(&[columns * across, lines * down, count.div_ceil(DEPTH)], Some(&[across, down, 1]))
    }
}
