//! Back-projection: one typed function for all kernels.

use super::gridding::GridProjector;
use super::{BufferLayout, Resources, Session, SinogramStore, sinogram_bytes};
use crate::error::{Error, Result};
use crate::fault;
use crate::geometry::{Geometry, Offset, slice_centre};
use crate::kernel::{Algorithm, KernelSpec, Parameters};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::ops::Range;

/// Number of block counters, more than any device has multiprocessors.
const COUNTERS: usize = 1024;

/// A back-projection kernel with its tables on the device.
pub enum BackProjector {
    /// Reads rows at the position of every pixel.
    Direct(Box<DirectProjector>),
    /// Spreads frequencies over a grid.
    Grid(Box<GridProjector>),
}

impl BackProjector {
    /// Builds the kernel for a range of projections of a scan; the compound sinogram then holds only this range.
    pub fn new(session: &Session, spec: &KernelSpec, scan: &Geometry, projections: Range<usize>) -> Result<Self> {
        Ok(match spec.parameters {
            Parameters::Gridding(_) => {
                BackProjector::Grid(Box::new(GridProjector::new(session, spec, scan, projections)?))
            }
            _ => BackProjector::Direct(Box::new(DirectProjector::new(session, spec, scan, projections)?)),
        })
    }

    /// Returns the resources that the kernel uses.
    pub fn resources(&self) -> Resources {
        match self {
            BackProjector::Direct(projector) => projector.resources,
            BackProjector::Grid(projector) => projector.resources,
        }
    }

    /// Returns the shifts of rows, if the kernel reads their frequencies.
    pub fn phases(&self) -> Option<&Buffer<Offset>> {
        match self {
            BackProjector::Direct(_) => None,
            BackProjector::Grid(projector) => Some(&projector.phases),
        }
    }

    /// Back-projects one compound sinogram into the `valid` slices that start at value `first` of `slices`.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small for what the kernel reads or writes.
    pub fn run(
        &self,
        session: &Session,
        sinogram: &SinogramStore,
        peaks: &Buffer<u32>,
        slices: &Buffer<f32>,
        first: usize,
        valid: usize,
    ) -> Result<Vec<Event>> {
        match self {
            BackProjector::Direct(projector) => {
                projector.run(session, sinogram, peaks, slices, first, valid).map(|event| vec![event])
            }
            BackProjector::Grid(projector) => projector.run(session, sinogram, slices, first, valid),
        }
    }
}

/// A kernel that reads rows at the position of every pixel, with its per-projection tables.
pub struct DirectProjector {
    kernel: Kernel,
    resources: Resources,
    columns: Buffer<Offset>,
    rows: Buffer<Offset>,
    constants: Buffer<f32>,
    /// Number of blocks that every multiprocessor has started; only hybrid kernels that balance by it count them.
    counters: Buffer<u32>,
    centre: f32,
    origin: [i32; 2],
    roi: [i32; 4],
    bins: i32,
    projections: i32,
    /// `pi / P`, with the `P` projections of the whole scan.
    unit: f32,
    global: [usize; 2],
    local: [usize; 2],
    /// Number of slices per pass.
    slices: usize,
    /// Bytes of the compound sinogram that the kernel reads.
    sinogram_bytes: usize,
    has_image: bool,
}

/// Returns the buffers that back-project a scan, or a part of it, into its region with blocks of pixels. It is for
/// kernels other than those of gridding.
pub fn projector_layout(spec: &KernelSpec, scan: &Geometry, block: [usize; 2]) -> BufferLayout {
    let (_, [columns, rows]) = scan.roi.block_grid(block);
    let projections = scan.projections();
    BufferLayout::default()
        .with::<u32>("block counters", block_counters(spec))
        .with::<Offset>("block columns", columns * projections)
        .with::<Offset>("block rows", rows * projections)
        .with::<[f32; 4]>("projection constants", projections)
}

/// Returns the number of block counters of a kernel. A kernel that does not balance multiprocessors has one, as its
/// argument.
fn block_counters(spec: &KernelSpec) -> usize {
    if spec.parameters.algorithm() == Algorithm::Hybrid { COUNTERS } else { 1 }
}

impl DirectProjector {
    fn new(session: &Session, spec: &KernelSpec, scan: &Geometry, projections: Range<usize>) -> Result<Self> {
        let source = spec.generate()?;
        let program = session.build(&source)?;
        let shift = fault::shift(&source.name);
        let mut geometry = scan.part(projections);
        geometry.axis.iter_mut().for_each(|axis| *axis += shift);
        let offsets = geometry.block_offsets(source.block);
        let roi = geometry.roi;
        let layout = projector_layout(spec, &geometry, source.block);
        let mut counters = layout.buffer(session, "block counters")?;
        session.write(&mut counters, &vec![0u32; block_counters(spec)], "block counters")?;
        let table = geometry.constants(source.block, source.clearance);
        let constants: Vec<f32> = match source.packed {
            true => table.concat(),
            false => (0..4).flat_map(|i| table.iter().map(move |c| c[i])).collect(),
        };
        let kernel = session.kernel(&program, source.entry)?;
        Ok(DirectProjector {
            resources: session.resources(&program, &kernel),
            kernel,
            columns: layout.constant(session, "block columns", &offsets.columns)?,
            rows: layout.constant(session, "block rows", &offsets.rows)?,
            constants: layout.constant(session, "projection constants", &constants)?,
            counters,
            centre: slice_centre(geometry.size) as f32,
            origin: offsets.origin.map(|v| v as i32),
            roi: [roi.x, roi.y, roi.width, roi.height].map(|v| v as i32),
            bins: geometry.bins as i32,
            projections: geometry.projections() as i32,
            unit: (std::f64::consts::PI / scan.projections() as f64) as f32,
            global: [offsets.blocks[0] * source.work_group[0], offsets.blocks[1] * source.work_group[1]],
            local: source.work_group,
            slices: spec.slices as usize,
            sinogram_bytes: sinogram_bytes(spec.texel, geometry.bins, geometry.projections(), spec.element_bytes()),
            has_image: spec.texel.format().is_some(),
        })
    }

    fn run(
        &self,
        session: &Session,
        sinogram: &SinogramStore,
        peaks: &Buffer<u32>,
        slices: &Buffer<f32>,
        first: usize,
        valid: usize,
    ) -> Result<Event> {
        let [_, _, width, height] = self.roi.map(|side| side as usize);
        if valid > self.slices || sinogram.image.is_some() != self.has_image {
            return Err(Error::Internal(format!("{valid} slices, or this compound sinogram, are not this kernel's")));
        }
        let launch = session.launch(&self.kernel, "backproject");
        let launch = match &sinogram.image {
            Some(image) => launch.handle(image)?,
            None => launch.buffer(&sinogram.buffer, self.sinogram_bytes, "the compound sinogram")?,
        };
        let launch = launch
            .handle(&self.columns)?
            .handle(&self.rows)?
            .handle(&self.constants)?
            .buffer(peaks, self.slices, "peaks")?
            .buffer(slices, first + valid * width * height, "slices")?
            .handle(&self.counters)?
            .value(self.projections)?
            .value(self.bins)?
            .value(self.roi)?
            .value(self.origin)?
            .value(first as u64)?
            .value(valid as i32)?
            .value(self.unit)?
            .value(self.centre)?;
        launch.run(&self.global, Some(&self.local))
    }
}
