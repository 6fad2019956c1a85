//! One device at work: sinograms in, slices out.

use crate::device::{BackProjector, Resources, Session, SinogramStore};
use crate::error::{Error, Result};
use crate::fft::{FilterSetup, RowStage, RowTransform};
use crate::geometry::{Cut, Geometry};
use crate::kernel::{KernelSource, KernelSpec, Padding, RowFilter};
use crate::plan::Plan;
use crate::recipe::Recipe;
use crate::spectrum::{Filter, scaled_spectrum};
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, ClMem};
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
    /// Slices that are on the device together.
    pub chunk: usize,
    /// Chunks that the device has buffers for.
    pub sets: usize,
    /// What of a chunk is on the device at a time.
    pub cut: Cut,
}

impl<'a> Setup<'a> {
    /// As a plan for a job says.
    pub fn of(recipe: &Recipe, geometry: &'a Geometry, plan: &'a Plan) -> Setup<'a> {
        Setup {
            spec: &plan.spec,
            geometry,
            filter: recipe.filter.name,
            cutoff: recipe.filter.cutoff,
            padding: recipe.filter.padding,
            rows: plan.rows,
            chunk: plan.chunk,
            sets: plan.sets,
            cut: plan.cut,
        }
    }
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
    pub(super) kernels: ChunkKernels,
    /// What chunks are copied into and from: as many of each as there are to be chunks on the device.
    pub(super) sets: Vec<DeviceSet>,
    pub(super) shape: ChunkShape,
    /// The back-projection kernel that was built.
    pub source: KernelSource,
    /// What that kernel takes of the device.
    pub resources: Resources,
    /// Why rows are not filtered as planned, if so.
    pub note: Option<String>,
}

/// Sizes of a chunk, in values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChunkShape {
    /// Most slices of a chunk.
    pub chunk: usize,
    /// A sinogram.
    pub in_slice: usize,
    /// A slice.
    pub out_slice: usize,
}

/// Buffers for a chunk on the device, or for what of it is there at a time.
pub(super) struct DeviceSet {
    pub rows: Buffer<f32>,
    pub slices: Buffer<f32>,
}

/// What computes chunks.
pub(super) struct ChunkKernels {
    filter: RowStage,
    /// All parts of the first band, then those of the next; one if everything is done at once.
    steps: Vec<BandPart>,
    sinogram: SinogramStore,
    group: usize,
}

/// Back projection of a part of the scan into a band of the region.
struct BandPart {
    projections: Range<usize>,
    /// Values of that part of a sinogram.
    rows: Range<usize>,
    /// Values of that band of a slice.
    band: Range<usize>,
    /// Whether the band is complete after it.
    last: bool,
    projector: BackProjector,
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
        let adding = spec.accumulating();
        let mut steps = Vec::new();
        for band in cut.bands(roi) {
            let first = (band.y - roi.y) * roi.width;
            for projections in cut.parts(geometry) {
                let kernel = if projections.start == 0 { spec } else { &adding };
                let scan = Geometry { roi: band, ..geometry.clone() };
                steps.push(BandPart {
                    rows: projections.start * bins..projections.end * bins,
                    band: first..first + band.pixels(),
                    last: projections.end == geometry.projections(),
                    projector: BackProjector::new(&session, kernel, &scan, projections.clone())?,
                    projections,
                });
            }
        }
        let shape = ChunkShape { chunk: setup.chunk, in_slice: projections * bins, out_slice: roi.pixels() };
        let set = || -> Result<DeviceSet> {
            let (rows, slices) = (shape.chunk * cut.projections * bins, shape.chunk * cut.rows * roi.width);
            Ok(DeviceSet {
                rows: session.buffer(rows, CL_MEM_READ_ONLY, "sinograms")?,
                slices: session.buffer(slices, CL_MEM_READ_WRITE, "slices")?,
            })
        };
        let sets = (0..setup.sets).map(|_| set()).collect::<Result<_>>()?;
        let sinogram = SinogramStore::new(&session, spec.texel, bins, cut.projections, spec.element_bytes())?;
        Ok(Engine {
            resources: steps.first().map(|step| step.projector.resources).unwrap_or_default(),
            kernels: ChunkKernels { filter, steps, sinogram, group: spec.slices as usize },
            sets,
            shape,
            source,
            note,
            session,
        })
    }

    /// The session, for another engine on the same device: programs that both use are built once.
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Makes the driver provide what it has promised: many allocate when memory is used first.
    ///
    /// # Errors
    /// [`Error::Memory`] when it cannot.
    pub fn touch(&mut self) -> Result<()> {
        for DeviceSet { rows, slices } in &mut self.sets {
            for buffer in [rows, slices] {
                let bytes = buffer.size().unwrap_or(4);
                self.session.upload(buffer, bytes / 4 - 1, &[0.0], "zeros")?;
            }
        }
        Ok(())
    }

    /// Whether a chunk is on the device as a whole.
    pub(super) fn is_whole(&self) -> bool {
        self.kernels.steps.len() == 1
    }

    /// Reconstructs `[slice][projection][bin]` sinograms into `[slice][y][x]` slices, at most a chunk of them.
    ///
    /// A slice's bits do not depend on the others: groups only share a kernel run.
    pub fn reconstruct(&mut self, sinograms: &[f32], slices: &mut [f32]) -> Result<DeviceSeconds> {
        let ChunkShape { chunk, in_slice, out_slice } = self.shape;
        let count = sinograms.len() / in_slice;
        if count > chunk || slices.len() != count * out_slice {
            return Err(Error::Device(format!("a chunk of {count} slices does not fit the plan of {chunk}")));
        }
        let Some(set) = self.sets.first_mut() else {
            return Err(Error::Device("there is no buffer for a chunk".into()));
        };
        let session = &self.session;
        let mut seconds = DeviceSeconds::default();
        let mut uploaded = 0..0;
        for number in 0..self.kernels.steps.len() {
            let BandPart { rows, band, last, .. } = &self.kernels.steps[number];
            let (rows, band, last) = (rows.clone(), band.clone(), *last);
            if uploaded != rows {
                let start = Instant::now();
                for (place, piece) in places(count, in_slice, rows.clone()) {
                    session.upload(&mut set.rows, place, &sinograms[piece], "sinograms")?;
                }
                seconds.upload += start.elapsed().as_secs_f64();
                uploaded = rows;
            }
            let (filter, back_projection) = self.kernels.step(session, number, &set.rows, &set.slices, count)?;
            seconds.filter += filter;
            seconds.back_projection += back_projection;
            if last {
                let start = Instant::now();
                for (place, piece) in places(count, out_slice, band) {
                    session.download(&set.slices, place, &mut slices[piece], "slices")?;
                }
                seconds.download += start.elapsed().as_secs_f64();
            }
        }
        Ok(seconds)
    }
}

impl ChunkKernels {
    /// Filters a part of the projections of `count` slices and back-projects it into a band of them, waits, and tells the
    /// seconds of both. Chunks that are on the device as a whole have step 0 only.
    pub fn step(
        &mut self,
        session: &Session,
        number: usize,
        rows: &Buffer<f32>,
        slices: &Buffer<f32>,
        count: usize,
    ) -> Result<(f64, f64)> {
        let BandPart { projections, rows: part, band, projector, .. } = &self.steps[number];
        let began = Instant::now();
        let mut filter = Vec::new();
        let mut host = 0.0;
        let mut back_projection = Vec::new();
        for start in (0..count).step_by(self.group) {
            let valid = self.group.min(count - start);
            let filtered =
                self.filter.run(session, rows, start * part.len(), valid, projections.clone(), &mut self.sinogram)?;
            filter.extend(filtered.events);
            host += filtered.host.as_secs_f64();
            let first = start * band.len();
            back_projection.push(projector.run(session, &self.sinogram, self.filter.peaks(), slices, first, valid)?);
        }
        session.finish()?;
        let (filter, back_projection) = (seconds(&filter), seconds(&back_projection));
        let wall = began.elapsed().as_secs_f64() - host;
        // there are drivers whose clock stands still
        match filter + back_projection < wall * SLOWEST_CLOCK {
            true => Ok((host, wall)),
            false => Ok((filter + host, back_projection)),
        }
    }
}

/// A device's clock that shows less than this share of the wall's is not believed.
const SLOWEST_CLOCK: f64 = 1e-3;

/// `within` of each of `count` slices of `slice` values, as places in memory of the device, where only these lie one
/// after the other, and values of the host's, where whole slices do.
fn places(count: usize, slice: usize, within: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let contiguous = within.len() == slice;
    let length = if contiguous { count * slice } else { within.len() };
    (0..if contiguous { 1 } else { count }).map(move |number| {
        let first = number * slice + within.start;
        (number * length, first..first + length)
    })
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
