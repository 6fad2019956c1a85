//! One device at work: sinograms in, slices out.

use crate::device::{BackProjector, FilterSetup, FoundDevice, Resources, RowStage, Session, SinogramStore, Staging};
use crate::error::{Error, Result};
use crate::fft::RowTransform;
use crate::geometry::Geometry;
use crate::kernelgen::{KernelSource, KernelSpec, Padding, RowFilter, Texel};
use crate::spectrum::{Filter, spectrum};
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY};
use serde::Serialize;
use std::time::Instant;

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
    /// Slices that are uploaded together.
    pub chunk: usize,
}

/// Seconds by stage: of the device's clock, and for copies the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceSeconds {
    pub upload: f64,
    pub filter: f64,
    pub back_projection: f64,
    pub download: f64,
}

impl std::ops::AddAssign for DeviceSeconds {
    fn add_assign(&mut self, other: Self) {
        self.upload += other.upload;
        self.filter += other.filter;
        self.back_projection += other.back_projection;
        self.download += other.download;
    }
}

/// A device with built kernels, plans and buffers for one geometry.
pub struct Engine {
    session: Session,
    filter: RowStage,
    projector: BackProjector,
    sinogram: SinogramStore,
    rows: Buffer<f32>,
    slices: Buffer<f32>,
    staging: Option<Staging>,
    group: usize,
    chunk: usize,
    in_slice: usize,
    out_slice: usize,
    /// The back-projection kernel that was built.
    pub source: KernelSource,
    /// What that kernel takes of the device.
    pub resources: Resources,
    /// Why rows are not filtered as planned, if so.
    pub note: Option<String>,
    pub seconds: DeviceSeconds,
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
        let (in_slice, out_slice) = (projections * bins, geometry.roi.pixels());
        let projector = BackProjector::new(&session, &source, geometry)?;
        Ok(Engine {
            resources: projector.resources,
            filter,
            note,
            projector,
            sinogram: SinogramStore::new(&session, spec.texel, bins, projections, spec.element_bytes())?,
            rows: session.buffer(setup.chunk * in_slice, CL_MEM_READ_ONLY, "sinograms")?,
            slices: session.buffer(setup.chunk * out_slice, CL_MEM_WRITE_ONLY, "slices")?,
            staging: session.staging(setup.chunk * in_slice.max(out_slice))?,
            group: spec.slices as usize,
            chunk: setup.chunk,
            in_slice,
            out_slice,
            source,
            seconds: DeviceSeconds::default(),
            session,
        })
    }

    /// Reconstructs `[slice][projection][bin]` sinograms into `[slice][y][x]` slices, at most a chunk of them.
    ///
    /// A slice's bits do not depend on the others: groups only share a kernel run.
    pub fn reconstruct(&mut self, sinograms: &[f32], slices: &mut [f32]) -> Result<()> {
        let count = sinograms.len() / self.in_slice;
        if count > self.chunk || slices.len() != count * self.out_slice {
            return Err(Error::Device(format!("a chunk of {count} slices does not fit the plan of {}", self.chunk)));
        }
        let start = Instant::now();
        match &mut self.staging {
            Some(staging) => self.session.upload(&mut self.rows, sinograms, staging, "sinograms")?,
            None => drop(self.session.write(&mut self.rows, sinograms, "sinograms")?),
        }
        let upload = start.elapsed().as_secs_f64();
        let mut filter = Vec::new();
        let mut host = 0.0;
        let mut back_projection = Vec::new();
        for start in (0..count).step_by(self.group) {
            let valid = self.group.min(count - start);
            let filtered =
                self.filter.run(&self.session, &self.rows, start * self.in_slice, valid, &mut self.sinogram)?;
            filter.extend(filtered.events);
            host += filtered.host.as_secs_f64();
            back_projection.push(self.projector.run(
                &self.session,
                &self.sinogram,
                self.filter.peaks(),
                &self.slices,
                start * self.out_slice,
                valid,
            )?);
        }
        self.session.finish()?;
        let start = Instant::now();
        match &mut self.staging {
            Some(staging) => self.session.download(&self.slices, slices, staging, "slices")?,
            None => drop(self.session.read(&self.slices, slices, "slices")?),
        }
        let download = start.elapsed().as_secs_f64();
        self.seconds += DeviceSeconds {
            upload,
            filter: seconds(&filter) + host,
            back_projection: seconds(&back_projection),
            download,
        };
        Ok(())
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
