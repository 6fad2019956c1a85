//! One device at work: sinograms in, slices out.

use crate::device::{BackProjector, FilterSetup, FoundDevice, Resources, RowStage, Session, SinogramStore};
use crate::error::{Error, Result};
use crate::fft::RowTransform;
use crate::geometry::Geometry;
use crate::kernelgen::{KernelSource, KernelSpec, Padding, RowFilter, Texel};
use crate::spectrum::{Filter, spectrum};
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use serde::Serialize;

/// Everything that an engine is made from.
pub struct Setup<'a> {
    pub spec: &'a KernelSpec,
    pub geometry: &'a Geometry,
    pub filter: Filter,
    /// In units of the Nyquist frequency.
    pub cutoff: f64,
    pub padding: Padding,
    /// How rows are filtered.
    pub rows: RowFilter,
    /// Slices that are on the device together.
    pub chunk: usize,
    /// Chunks that the device has room for.
    pub sets: usize,
}

/// Seconds by stage: of the device's clock, and for copies the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceSeconds {
    pub upload: f64,
    pub filter: f64,
    pub back_projection: f64,
    pub download: f64,
}

impl std::ops::Add for DeviceSeconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        DeviceSeconds {
            upload: self.upload + other.upload,
            filter: self.filter + other.filter,
            back_projection: self.back_projection + other.back_projection,
            download: self.download + other.download,
        }
    }
}

/// A device with built kernels, plans and buffers for one geometry.
pub struct Engine {
    pub(super) session: Session,
    pub(super) kernels: Kernels,
    /// What chunks are copied into and from: as many of each as there are to be chunks on the device.
    pub(super) sets: Vec<Set>,
    pub(super) shape: Shape,
    /// The back-projection kernel that was built.
    pub source: KernelSource,
    /// What that kernel takes of the device.
    pub resources: Resources,
    /// Why rows are not filtered as planned, if so.
    pub note: Option<String>,
}

/// Sizes of a chunk, in values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// Most slices of a chunk.
    pub chunk: usize,
    /// A sinogram.
    pub in_slice: usize,
    /// A slice.
    pub out_slice: usize,
}

/// Room for a chunk on the device.
pub(super) struct Set {
    pub rows: Buffer<f32>,
    pub slices: Buffer<f32>,
}

/// What computes chunks.
pub(super) struct Kernels {
    filter: RowStage,
    projector: BackProjector,
    sinogram: SinogramStore,
    group: usize,
}

/// Opens a device, or says why not.
pub fn open(found: &FoundDevice) -> Result<Session> {
    Session::open(found)
}

impl Engine {
    /// Builds programs and plans and allocates all memory.
    pub fn new(session: Session, setup: &Setup) -> Result<Self> {
        Self::assemble(session, setup, None)
    }

    /// The same with another transform of rows.
    pub fn with_transform(session: Session, setup: &Setup, transform: Box<dyn RowTransform>) -> Result<Self> {
        Self::assemble(session, setup, Some(transform))
    }

    fn assemble(session: Session, setup: &Setup, transform: Option<Box<dyn RowTransform>>) -> Result<Self> {
        let geometry = setup.geometry;
        let spec = setup.spec;
        let source = spec.generate()?;
        let (bins, projections) = (geometry.bins, geometry.projections());
        let values = scaled_spectrum(setup.filter, setup.cutoff, setup.rows.length);
        // weights relative to pi / P: exactly 1 when all are the same
        let unit = projections as f64 / std::f64::consts::PI;
        let weights: Vec<f32> = geometry.weights.iter().map(|w| (w * unit) as f32).collect();
        let mut filter = RowStage::new(
            &session,
            FilterSetup {
                spec,
                rows: setup.rows,
                padding: setup.padding,
                bins,
                projections,
                spectrum: &values,
                weights: &weights,
            },
        )?;
        filter.ready(&session, transform)?;
        let note = filter.note.take();
        let shape = Shape { chunk: setup.chunk, in_slice: projections * bins, out_slice: geometry.roi.pixels() };
        let projector = BackProjector::new(&session, &source, geometry)?;
        let set = || -> Result<Set> {
            Ok(Set {
                rows: session.buffer(shape.chunk * shape.in_slice, CL_MEM_READ_ONLY, "sinograms")?,
                slices: session.buffer(shape.chunk * shape.out_slice, CL_MEM_WRITE_ONLY, "slices")?,
            })
        };
        let sets = (0..setup.sets).map(|_| set()).collect::<Result<_>>()?;
        let sinogram = SinogramStore::new(&session, spec.texel, bins, projections, spec.element_bytes())?;
        Ok(Engine {
            resources: projector.resources,
            kernels: Kernels { filter, projector, sinogram, group: spec.slices as usize },
            sets,
            shape,
            source,
            note,
            session,
        })
    }

    /// Makes the driver provide what it has promised: many allocate when memory is used first.
    ///
    /// # Errors
    /// [`Error::Memory`] when it cannot.
    pub fn touch(&mut self) -> Result<()> {
        let Shape { chunk, in_slice, out_slice } = self.shape;
        for set in &mut self.sets {
            self.session.upload(&mut set.rows, chunk * in_slice - 1, &[0.0], "sinograms")?;
            self.session.upload(&mut set.slices, chunk * out_slice - 1, &[0.0], "slices")?;
        }
        Ok(())
    }

    /// Reconstructs `[slice][projection][bin]` sinograms into `[slice][y][x]` slices, at most a chunk of them.
    ///
    /// A slice's bits do not depend on the others: groups only share a kernel run.
    pub fn reconstruct(&mut self, sinograms: &[f32], slices: &mut [f32]) -> Result<()> {
        let Shape { chunk, in_slice, out_slice } = self.shape;
        let count = sinograms.len() / in_slice;
        if count > chunk || slices.len() != count * out_slice {
            return Err(Error::Device(format!("a chunk of {count} slices does not fit the plan of {chunk}")));
        }
        let Some(set) = self.sets.first_mut() else {
            return Err(Error::Device("there is no room for a chunk".into()));
        };
        self.session.upload(&mut set.rows, 0, sinograms, "sinograms")?;
        self.kernels.run(&self.session, self.shape, &set.rows, &set.slices, count)?;
        self.session.download(&set.slices, 0, slices, "slices")
    }
}

impl Kernels {
    /// Filters and back-projects `count` slices, waits, and tells the seconds of both.
    pub fn run(
        &mut self,
        session: &Session,
        shape: Shape,
        rows: &Buffer<f32>,
        slices: &Buffer<f32>,
        count: usize,
    ) -> Result<(f64, f64)> {
        let mut filter = Vec::new();
        let mut host = 0.0;
        let mut back_projection = Vec::new();
        for start in (0..count).step_by(self.group) {
            let valid = self.group.min(count - start);
            let filtered = self.filter.run(session, rows, start * shape.in_slice, valid, &mut self.sinogram)?;
            filter.extend(filtered.events);
            host += filtered.host.as_secs_f64();
            let first = start * shape.out_slice;
            back_projection.push(self.projector.run(
                session,
                &self.sinogram,
                self.filter.peaks(),
                slices,
                first,
                valid,
            )?);
        }
        session.finish()?;
        Ok((seconds(&filter) + host, seconds(&back_projection)))
    }
}

/// A filter's spectrum with the `1 / length` of the backward transform.
pub(super) fn scaled_spectrum(filter: Filter, cutoff: f64, length: usize) -> Vec<f32> {
    let scale = 1.0 / length as f64;
    spectrum(filter, cutoff, length).iter().map(|v| (v * scale) as f32).collect()
}

/// Sum of the times that finished commands took on the device; 0 for drivers that do not tell.
fn seconds(events: &[Event]) -> f64 {
    events
        .iter()
        .filter_map(|event| {
            let start = event.profiling_command_start().ok()?;
            let end = event.profiling_command_end().ok()?;
            Some(end.saturating_sub(start) as f64 * 1e-9)
        })
        .sum()
}

/// Whether the image format of a kernel gives back right values on this device; buffers always do.
pub fn texel_works(session: &Session, texel: Texel) -> Result<bool> {
    match texel.format() {
        None => Ok(true),
        Some(format) => session.image_format_works(format),
    }
}
