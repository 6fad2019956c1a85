//! Back projection: one typed function for all of its kernels.

use super::fault;
use super::session::{Resources, Session, SinogramStore};
use crate::error::Result;
use crate::geometry::{Geometry, Offset, slice_centre};
use crate::kernelgen::KernelSource;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::ops::Range;

/// More multiprocessors than any device has.
const COUNTERS: usize = 1024;

/// A back-projection kernel with its per-projection tables on the device.
pub struct BackProjector {
    kernel: Kernel,
    /// What the kernel takes of the device.
    pub resources: Resources,
    columns: Buffer<Offset>,
    rows: Buffer<Offset>,
    constants: Buffer<f32>,
    /// Blocks that every multiprocessor has started; only hybrid kernels that balance by it count.
    counters: Buffer<u32>,
    centre: f32,
    origin: [i32; 2],
    roi: [i32; 4],
    bins: i32,
    projections: i32,
    /// `pi / P` of the whole scan.
    unit: f32,
    global: [usize; 2],
    local: [usize; 2],
}

impl BackProjector {
    /// Builds the kernel for some projections of a scan, whose compound sinogram then holds these alone.
    pub fn new(session: &Session, source: &KernelSource, scan: &Geometry, projections: Range<usize>) -> Result<Self> {
        let program = session.build(source)?;
        let shift = fault::shift(&source.name);
        let mut geometry = scan.part(projections);
        geometry.axis.iter_mut().for_each(|axis| *axis += shift);
        let offsets = geometry.block_offsets(source.block);
        let roi = geometry.roi;
        let mut counters = session.buffer(COUNTERS, CL_MEM_READ_WRITE, "block counters")?;
        session.write(&mut counters, &[0u32; COUNTERS], "block counters")?;
        let table = geometry.constants(source.block);
        let constants: Vec<f32> = match source.packed {
            true => table.concat(),
            false => (0..4).flat_map(|i| table.iter().map(move |c| c[i])).collect(),
        };
        let kernel = session.kernel(&program, source.entry)?;
        Ok(BackProjector {
            resources: session.resources(&program, &kernel),
            kernel,
            columns: session.constant_buffer(&offsets.columns, "block columns")?,
            rows: session.constant_buffer(&offsets.rows, "block rows")?,
            constants: session.constant_buffer(&constants, "projection constants")?,
            counters,
            centre: slice_centre(geometry.size) as f32,
            origin: offsets.origin.map(|v| v as i32),
            roi: [roi.x, roi.y, roi.width, roi.height].map(|v| v as i32),
            bins: geometry.bins as i32,
            projections: geometry.projections() as i32,
            unit: (std::f64::consts::PI / scan.projections() as f64) as f32,
            global: [offsets.blocks[0] * source.work_group[0], offsets.blocks[1] * source.work_group[1]],
            local: source.work_group,
        })
    }

    /// Back-projects one compound sinogram into the `valid` slices that start at value `first` of `slices`.
    pub fn run(
        &self,
        session: &Session,
        sinogram: &SinogramStore,
        peaks: &Buffer<u32>,
        slices: &Buffer<f32>,
        first: usize,
        valid: usize,
    ) -> Result<Event> {
        let launch = session.launch(&self.kernel, "backproject");
        let launch = match &sinogram.image {
            Some(image) => launch.handle(image)?,
            None => launch.handle(&sinogram.buffer)?,
        };
        launch
            .handle(&self.columns)?
            .handle(&self.rows)?
            .handle(&self.constants)?
            .handle(peaks)?
            .handle(slices)?
            .handle(&self.counters)?
            .value(self.projections)?
            .value(self.bins)?
            .value(self.roi)?
            .value(self.origin)?
            .value(first as u64)?
            .value(valid as i32)?
            .value(self.unit)?
            .value(self.centre)?
            .run(&self.global, Some(&self.local))
    }
}
