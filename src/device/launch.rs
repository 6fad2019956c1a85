//! One typed function for every kernel.

use super::fault;
use super::session::{Resources, Session, SinogramStore};
use crate::error::Result;
use crate::fft::RowTransform;
use crate::geometry::{Geometry, Offset, slice_centre};
use crate::kernelgen::{KernelSource, PEAK_GROUP};
use crate::profile::Storage;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// Rows in, compound sinogram out: the kernels of `filter.cl` around a transform.
pub struct FilterKernels {
    pad: Kernel,
    multiply: Kernel,
    peaks: Kernel,
    interleave: Kernel,
    spectrum: Buffer<f32>,
    weights: Buffer<f32>,
    /// Largest values per slice, as bits; all 0 unless the sinogram is stored as half.
    peak_bits: Buffer<u32>,
    spectra: Buffer<[f32; 2]>,
    shape: FilterShape,
}

/// Sizes of the filter's work.
#[derive(Clone, Copy, Debug)]
pub struct FilterShape {
    pub bins: usize,
    pub projections: usize,
    /// Length of a padded row.
    pub length: usize,
    pub slices: usize,
    pub storage: Storage,
    pub guard: usize,
}

impl FilterShape {
    /// Complex rows of one slice.
    pub fn pairs(&self) -> usize {
        self.projections.div_ceil(2)
    }

    /// Complex rows of one batch.
    pub fn rows(&self) -> usize {
        self.pairs() * self.slices
    }
}

impl FilterKernels {
    /// Builds the kernels. `spectrum` has `shape.length` values and carries the transform's `1 / length`;
    /// `weights` is the relative weight of every projection.
    pub fn new(
        session: &Session,
        source: &KernelSource,
        shape: FilterShape,
        spectrum: &[f32],
        weights: &[f32],
    ) -> Result<Self> {
        let program = session.build(source)?;
        let mut peak_bits = session.buffer(shape.slices, CL_MEM_READ_WRITE, "peaks")?;
        session.write(&mut peak_bits, &vec![0; shape.slices], "peaks")?;
        Ok(FilterKernels {
            pad: session.kernel(&program, "pad_rows")?,
            multiply: session.kernel(&program, "multiply_spectrum")?,
            peaks: session.kernel(&program, "measure_peaks")?,
            interleave: session.kernel(&program, "interleave")?,
            spectrum: session.constant_buffer(spectrum, "the filter's spectrum")?,
            weights: session.constant_buffer(weights, "projection weights")?,
            peak_bits,
            spectra: session.buffer(shape.rows() * shape.length, CL_MEM_READ_WRITE, "padded rows")?,
            shape,
        })
    }

    /// Filters the `valid` slices that start at value `first` of `rows` into `sinogram`.
    pub fn run(
        &mut self,
        session: &Session,
        transform: &mut dyn RowTransform,
        rows: &Buffer<f32>,
        first: usize,
        valid: usize,
        sinogram: &mut SinogramStore,
    ) -> Result<Vec<Event>> {
        let s = self.shape;
        let mut events = vec![self.pad(session, rows, first, valid)?];
        events.push(transform.forward(session, &mut self.spectra)?);
        events.push(
            session
                .launch(&self.multiply, "multiply_spectrum")
                .handle(&self.spectra)?
                .handle(&self.spectrum)?
                .run(&[s.length, s.rows()], None)?,
        );
        events.push(transform.backward(session, &mut self.spectra)?);
        events.extend(self.store(session, sinogram)?);
        Ok(events)
    }

    /// Stores rows as they are, unfiltered: the compound sinogram then holds known values.
    pub fn store_rows(
        &mut self,
        session: &Session,
        rows: &Buffer<f32>,
        first: usize,
        valid: usize,
        sinogram: &mut SinogramStore,
    ) -> Result<()> {
        self.pad(session, rows, first, valid)?;
        self.store(session, sinogram)?;
        Ok(())
    }

    /// Two real rows into each complex one.
    fn pad(&self, session: &Session, rows: &Buffer<f32>, first: usize, valid: usize) -> Result<Event> {
        let s = self.shape;
        session
            .launch(&self.pad, "pad_rows")
            .handle(rows)?
            .handle(&self.spectra)?
            .value(first as u64)?
            .value(s.bins as i32)?
            .value(s.projections as i32)?
            .value(valid as i32)?
            .run(&[s.length, s.pairs(), s.slices], None)
    }

    /// Complex rows into the compound sinogram, weighted by projection.
    fn store(&mut self, session: &Session, sinogram: &mut SinogramStore) -> Result<Vec<Event>> {
        let s = self.shape;
        let mut events = Vec::new();
        if s.storage == Storage::Half {
            events.push(session.write(&mut self.peak_bits, &vec![0; s.slices], "peaks")?);
            events.push(
                session
                    .launch(&self.peaks, "measure_peaks")
                    .handle(&self.spectra)?
                    .handle(&self.weights)?
                    .handle(&self.peak_bits)?
                    .value(s.bins as i32)?
                    .value(s.length as i32)?
                    .value(s.projections as i32)?
                    .run(&[PEAK_GROUP, s.pairs(), s.slices], Some(&[PEAK_GROUP, 1, 1]))?,
            );
        }
        events.push(
            session
                .launch(&self.interleave, "interleave")
                .handle(&self.spectra)?
                .handle(&self.weights)?
                .handle(&self.peak_bits)?
                .handle(&sinogram.buffer)?
                .value(s.bins as i32)?
                .value(s.length as i32)?
                .value(s.pairs() as i32)?
                .run(&[s.bins + 2 * s.guard, s.projections], None)?,
        );
        events.extend(sinogram.publish(session)?);
        Ok(events)
    }

    /// The buffer of padded rows, for the transform to be tried on.
    pub fn spectra(&mut self) -> &mut Buffer<[f32; 2]> {
        &mut self.spectra
    }

    /// What half storage scaled every slice by.
    pub fn peaks(&self) -> &Buffer<u32> {
        &self.peak_bits
    }
}

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
    global: [usize; 2],
    local: [usize; 2],
}

impl BackProjector {
    /// Builds the kernel for a geometry.
    pub fn new(session: &Session, source: &KernelSource, geometry: &Geometry) -> Result<Self> {
        let program = session.build(source)?;
        let shift = fault::shift(&source.name);
        let axis = geometry.axis.iter().map(|axis| axis + shift).collect();
        let geometry = &Geometry { axis, ..geometry.clone() };
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
            .value((std::f64::consts::PI / f64::from(self.projections)) as f32)?
            .value(self.centre)?
            .run(&self.global, Some(&self.local))
    }
}
