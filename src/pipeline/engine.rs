//! One device at work: sinograms in, slices out.

use crate::device::{BackProjector, FilterSetup, FoundDevice, Resources, RowStage, Session, SinogramStore, Staging};
use crate::error::{Error, Result};
use crate::fft::RowTransform;
use crate::geometry::{Cut, Geometry, Roi};
use crate::kernelgen::{KernelSource, KernelSpec, Padding, RowFilter, Texel};
use crate::spectrum::{Filter, spectrum};
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE};
use serde::Serialize;
use std::ops::Range;
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
    /// What of them is on the device at a time.
    pub cut: Cut,
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

/// Back projection of a part of the scan into a band of the region.
struct Step {
    projections: Range<usize>,
    band: Roi,
    projector: BackProjector,
}

/// A device with built kernels, plans and buffers for one geometry.
pub struct Engine {
    session: Session,
    filter: RowStage,
    /// All parts of the first band, then those of the next; one if everything is done at once.
    steps: Vec<Step>,
    sinogram: SinogramStore,
    rows: Buffer<f32>,
    slices: Buffer<f32>,
    staging: Option<Staging>,
    group: usize,
    chunk: usize,
    bins: usize,
    /// Projections of the scan.
    projections: usize,
    roi: Roi,
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
        let (bins, projections, roi, cut) = (geometry.bins, geometry.projections(), geometry.roi, setup.cut);
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
                projections: cut.projections,
                spectrum: &values,
                weights: &weights,
            },
        )?;
        filter.ready(&session, transform)?;
        let note = filter.note.take();
        // the first part of a band overwrites what the slices hold, the others add to it
        let adding = spec.accumulating().generate()?;
        let mut steps = Vec::new();
        for band in cut.bands(roi) {
            let scan = Geometry { roi: band, ..geometry.clone() };
            for part in cut.parts(geometry) {
                let source = if part.start == 0 { &source } else { &adding };
                let projector = BackProjector::new(&session, source, &scan, part.clone())?;
                steps.push(Step { projections: part, band, projector });
            }
        }
        let (in_part, out_band) = (cut.projections * bins, cut.rows * roi.width);
        Ok(Engine {
            resources: steps.first().map(|step| step.projector.resources).unwrap_or_default(),
            filter,
            note,
            steps,
            sinogram: SinogramStore::new(&session, spec.texel, bins, cut.projections, spec.element_bytes())?,
            rows: session.buffer(setup.chunk * in_part, CL_MEM_READ_ONLY, "sinograms")?,
            slices: session.buffer(setup.chunk * out_band, CL_MEM_READ_WRITE, "slices")?,
            staging: session.staging(setup.chunk * in_part.max(out_band))?,
            group: spec.slices as usize,
            chunk: setup.chunk,
            bins,
            projections,
            roi,
            source,
            seconds: DeviceSeconds::default(),
            session,
        })
    }

    /// Reconstructs `[slice][projection][bin]` sinograms into `[slice][y][x]` slices, at most a chunk of them.
    ///
    /// A slice's bits do not depend on the others: groups only share a kernel run.
    pub fn reconstruct(&mut self, sinograms: &[f32], slices: &mut [f32]) -> Result<()> {
        let (in_slice, out_slice) = (self.projections * self.bins, self.roi.pixels());
        let count = sinograms.len() / in_slice;
        if count > self.chunk || slices.len() != count * out_slice {
            return Err(Error::Device(format!("a chunk of {count} slices does not fit the plan of {}", self.chunk)));
        }
        let (mut upload, mut host, mut download) = (0.0, 0.0, 0.0);
        let (mut filter, mut back_projection) = (Vec::new(), Vec::new());
        let mut uploaded = 0..0;
        for Step { projections, band, projector } in &self.steps {
            let part = projections.len() * self.bins;
            if uploaded != *projections {
                let start = Instant::now();
                let first = projections.start * self.bins;
                for (place, piece) in pieces(count, in_slice, first..first + part) {
                    let piece = &sinograms[piece];
                    self.session.upload(&mut self.rows, place, piece, self.staging.as_mut(), "sinograms")?;
                }
                upload += start.elapsed().as_secs_f64();
                uploaded = projections.clone();
            }
            for start in (0..count).step_by(self.group) {
                let valid = self.group.min(count - start);
                let filtered = self.filter.run(
                    &self.session,
                    &self.rows,
                    start * part,
                    valid,
                    projections.clone(),
                    &mut self.sinogram,
                )?;
                filter.extend(filtered.events);
                host += filtered.host.as_secs_f64();
                back_projection.push(projector.run(
                    &self.session,
                    &self.sinogram,
                    self.filter.peaks(),
                    &self.slices,
                    start * band.pixels(),
                    valid,
                )?);
            }
            // rows are not overwritten before they were read
            self.session.finish()?;
            if projections.end == self.projections {
                let start = Instant::now();
                let first = (band.y - self.roi.y) * band.width;
                for (place, piece) in pieces(count, out_slice, first..first + band.pixels()) {
                    let piece = &mut slices[piece];
                    self.session.download(&self.slices, place, piece, self.staging.as_mut(), "slices")?;
                }
                download += start.elapsed().as_secs_f64();
            }
        }
        self.seconds += DeviceSeconds {
            upload,
            filter: seconds(&filter) + host,
            back_projection: seconds(&back_projection),
            download,
        };
        Ok(())
    }
}

/// `within` of each of `count` slices of `slice` values, as places in memory of the device, where only these lie one
/// after the other, and values of the host's, where whole slices do.
fn pieces(count: usize, slice: usize, within: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let whole = within.len() == slice;
    let length = if whole { count * slice } else { within.len() };
    (0..if whole { 1 } else { count }).map(move |number| {
        let first = number * slice + within.start;
        (number * length, first..first + length)
    })
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
