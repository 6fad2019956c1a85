//! Computation on one device: sinograms in, slices out.

use super::errors::SolverError;
use super::examination::RowExamination;
use super::finish::Finish;
use super::lamino::{InclinedInputs, InclinedRows, LaminoStage};
use super::seconds::{DeviceSeconds, seconds};
use super::setup::Setup;
use super::sinograms::{ReadySinograms, SinogramStage};
use super::solver::{SolverCounts, SolverStage};
use super::source::Source;
use crate::device::{BackProjector, HostMemory, Resources, Session, SinogramStore, grid_values};
use crate::error::{Error, Result};
use crate::feed::{DeviceFeed, FedChunk, FeedPlan, FoundReplaced, Piece};
use crate::fft::{FilterSetup, Filtered, RowBatch, RowStage, RowTransform};
use crate::geometry::{Cut, Geometry};
use crate::kernel::{KernelSource, StepBackend};
use crate::least_squares::RowScale;
use crate::operations::{EncodedSlices, RowExtender, SliceCounter, SliceCounts, SliceEncoder};
use crate::plan::{Plan, encoded_sample};
use crate::recipe::Recipe;
use crate::spectrum::scaled_spectrum;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

/// A device with built kernels, plans and buffers for one geometry.
pub struct Engine {
    pub(super) session: Session,
    pub(super) kernels: ChunkKernels,
    /// Back projection about an inclined axis, in place of that of the kernels.
    pub(super) lamino: Option<LaminoStage>,
    /// Buffers that sinograms are copied into: each for a chunk, or for the part of one that is on the device at a
    /// time.
    pub(super) inputs: Vec<Buffer<f32>>,
    /// Buffers that chunks of slices are copied from.
    pub(super) outputs: Vec<SliceBuffers>,
    pub(super) shape: ChunkShape,
    /// Correction of rows, if the device corrects them.
    pub(super) feed: Option<DeviceFeed>,
    /// Correction of sinograms, if the device corrects them.
    pub(super) sinograms: Option<SinogramStage>,
    /// How the device gets rows.
    pub(super) wants: FeedPlan,
    /// Block of rows from which a single slice was computed last; `None` if blocks are not kept or a run came after it.
    pub(super) loaded: Option<usize>,
    /// The back-projection kernel that was built.
    pub kernel_source: KernelSource,
    /// Resources of the device that the back-projection kernel takes.
    pub resources: Resources,
    /// Reason why rows are not filtered as planned, if they are not.
    pub note: Option<String>,
}

/// Sizes of a chunk, of its sinograms and of its slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChunkShape {
    /// Largest number of slices in a chunk.
    pub chunk: usize,
    /// Number of values of a sinogram.
    pub in_slice: usize,
    /// Number of values of a slice.
    pub out_slice: usize,
}

/// Buffers for the slices of a chunk.
pub(super) struct SliceBuffers {
    /// Values of the slices; once the device has encoded them, the samples that are written, at the beginning of the
    /// buffer.
    pub values: Buffer<f32>,
    /// Memory and counts of the encoding, if the device encodes slices.
    pub encoded: Option<EncodedSlices>,
    /// Counts of the values, if the device counts them.
    pub counts: Option<SliceCounts>,
}

/// The kernels that compute chunks.
pub(super) struct ChunkKernels {
    encoder: Option<SliceEncoder>,
    counter: Option<SliceCounter>,
    filter: RowStage,
    /// Parts of the first band, then those of the next, and so on; a single one if everything is done at once.
    parts: Vec<BandPart>,
    sinogram: SinogramStore,
    group: usize,
    /// Finds slices in place of filter and back projection.
    solver: Option<SolverStage>,
}

/// The rows and slices that are filtered and back-projected at once.
pub(super) struct DevicePass<'a, Rows> {
    /// Number of the [`BandPart`]; chunks that are on the device as a whole have only the first.
    pub part: usize,
    /// Buffer with the rows of the chunk.
    pub rows: Rows,
    /// Buffer for the slices of the chunk.
    pub slices: &'a Buffer<f32>,
    /// Number of slices of the chunk.
    pub count: usize,
    /// Scales of the rows, if the device searches the slices.
    pub scales: &'a [RowScale],
}

/// Back projection of a part of the scan into a band of the region.
struct BandPart {
    projections: Range<usize>,
    /// Values of a sinogram that belong to the projections.
    of_sinogram: Range<usize>,
    /// Values of a slice that belong to the band.
    of_slice: Range<usize>,
    /// True if the band is complete after this part.
    last: bool,
    projector: BackProjector,
}

impl Engine {
    /// Builds programs and plans and allocates all memory.
    pub fn new(session: Session, setup: &Setup) -> Result<Self> {
        Self::assemble(session, setup, None)
    }

    /// Builds an engine as [`new`](Self::new) does, with another transform of rows.
    pub fn with_transform(session: Session, setup: &Setup, transform: Box<dyn RowTransform>) -> Result<Self> {
        Self::assemble(session, setup, Some(transform))
    }

    fn assemble(session: Session, setup: &Setup, transform: Option<Box<dyn RowTransform>>) -> Result<Self> {
        session.forget_allocations();
        let geometry = setup.geometry;
        let spec = setup.spec;
        let with = |plan| LaminoStage::new(&session, geometry, (setup.cut, setup.chunk), plan);
        let lamino = setup.lamino.map(with).transpose()?;
        let (bins, projections, roi, cut) = (geometry.bins, geometry.projections(), geometry.roi, setup.cut);
        let values = scaled_spectrum(setup.filter, setup.cutoff, setup.row_filter.length);
        // weights relative to pi / P: exactly 1 when all are the same
        let relative = projections as f64 / std::f64::consts::PI;
        let unit = setup.lamino.map_or(relative, |plan| plan.lamino.cos_sin().0);
        let weights: Vec<f32> = geometry.weights.iter().map(|w| (w * unit) as f32).collect();
        // of several rows that are filtered at once, each has the weights of its projections
        let filtered = setup.lamino.map_or(1, |plan| plan.filtered);
        let weights: Vec<f32> = weights.chunks(cut.projections).flat_map(|part| part.repeat(filtered)).collect();
        let stored = setup.stored();
        let mut filter = RowStage::new(
            &session,
            FilterSetup {
                spec,
                rows: setup.row_filter,
                padding: setup.padding,
                bins,
                projections: filtered * cut.projections,
                spectrum: &values,
                weights: &weights,
                // another band would need the rows, too
                in_place: lamino.is_some() || cut == Cut::whole(geometry),
            },
        )?;
        if !setup.forms.is_empty() {
            filter.vary(setup.row_forms(), stored.bins)?;
        }
        filter.ready(&session, transform)?;
        let note = filter.note.take();
        let parts = if setup.lamino.is_some() { Vec::new() } else { band_parts(&session, setup, &stored)? };
        let Setup { filter: begun_with, cutoff, .. } = *setup;
        let with = |solver| SolverStage::new(&session, geometry, solver, begun_with, cutoff);
        let solver = setup.solver.map(with).transpose()?;
        if solver.is_some() && parts.len() > 1 {
            return Err(SolverError::InParts { device: session.device_name().to_owned() }.into());
        }
        let shape = ChunkShape { chunk: setup.chunk, in_slice: projections * bins, out_slice: roi.pixels() };
        let rows = setup.lamino.map_or(shape.chunk, |plan| plan.rows);
        let input = |_| session.buffer(rows * cut.projections * bins, CL_MEM_READ_WRITE, "sinograms");
        let inputs = (0..setup.chunks_held + setup.sinograms_ahead).map(input).collect::<Result<_>>()?;
        let output = |_| -> Result<SliceBuffers> {
            let values = session.buffer(shape.chunk * cut.rows * roi.width, CL_MEM_READ_WRITE, "slices")?;
            Ok(SliceBuffers { values, encoded: None, counts: None })
        };
        let outputs = (0..setup.chunks_held).map(output).collect::<Result<_>>()?;
        let in_store = filtered * cut.projections;
        let sinogram = SinogramStore::new(&session, spec.texel, stored.bins, in_store, spec.element_bytes())?
            .with_grids(&session, grid_values(&session.facts, spec, cut.bands(roi))?)?;
        let of_parts = || parts.first().map(|part| part.projector.resources()).unwrap_or_default();
        Ok(Engine {
            resources: lamino.as_ref().map_or_else(of_parts, LaminoStage::resources),
            kernel_source: lamino.as_ref().map_or_else(|| spec.generate(), |stage| Ok(stage.source().clone()))?,
            lamino,
            kernels: ChunkKernels {
                encoder: None,
                counter: None,
                filter,
                parts,
                sinogram,
                group: spec.slices as usize,
                solver,
            },
            inputs,
            outputs,
            shape,
            feed: None,
            sinograms: None,
            wants: FeedPlan::of_host(setup.chunk),
            loaded: None,
            note,
            session,
        })
    }

    /// Adds the steps that a plan gives to the device.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn add_steps(&mut self, recipe: &Recipe, source: &Source, plan: &Plan) -> Result<()> {
        let projections = plan.lamino.map(|plan| plan.pieces.projections);
        self.wants = FeedPlan { steps: plan.steps, read: plan.pieces.read, blocks: plan.blocks, projections };
        let Engine { session, kernels, shape, outputs, .. } = self;
        let (preparation, used) = (&source.preparation, &source.scan.used);
        let mut steps = Vec::new();
        if plan.steps.sinograms == StepBackend::Device {
            steps = preparation.sinograms_on_device(session, plan.stripes_at_once, used.len())?;
        }
        let mut extender = None;
        if plan.steps.rows == StepBackend::Device {
            let Some(shape) = plan.blocks else {
                return Err(Error::Internal("a plan without the blocks of its rows".into()));
            };
            self.feed = Some(DeviceFeed::new(session, &source.rows(), shape)?);
            if let Some(field) = &source.scan.field {
                extender = Some(RowExtender::new(session, field, kernels.group, used.len())?);
            }
        }
        let on_device = plan.steps.solver == StepBackend::Device;
        let examined = recipe.solver.filter(|_| on_device);
        let examination = examined.map(|request| RowExamination::new(request, &source.scan.geometry));
        if !steps.is_empty() || extender.is_some() || examination.is_some() {
            self.sinograms = Some(SinogramStage {
                session: session.beside()?,
                steps,
                at_once: plan.stripes_at_once,
                extender,
                examination,
                pass: kernels.group,
                projections: used.len(),
                bins: shape.in_slice / used.len().max(1),
            });
        }
        let finish = Finish::new(recipe, source.scan.geometry.size);
        if plan.steps.slices == StepBackend::Device {
            let encoder = finish.encoder(session, encoded_sample(recipe.values.dtype), &source.scan)?;
            for slices in outputs.iter_mut().filter(|_| !encoder.in_place()) {
                slices.encoded = Some(encoder.buffers(session, shape.chunk)?);
            }
            kernels.encoder = Some(encoder);
        }
        if plan.counts_values {
            let counter = finish.counter(session, &source.scan)?;
            for slices in outputs {
                slices.counts = Some(counter.buffers(session, shape.chunk)?);
            }
            kernels.counter = Some(counter);
        }
        Ok(())
    }

    /// Sets the value that becomes 0 and the one that becomes the largest number, if the device encodes slices.
    pub(super) fn set_range(&mut self, range: Option<(f32, f32)>) {
        if let (Some(encoder), Some(range)) = (&mut self.kernels.encoder, range) {
            encoder.set_range(range);
        }
    }

    /// Returns the bytes that the engine has allocated on its device, by what they are for.
    pub fn allocated(&self) -> BTreeMap<String, u64> {
        self.session.allocated()
    }

    /// Forgets what was computed before a run.
    pub(super) fn begin(&mut self) {
        self.loaded = None;
        self.kernels.solver.iter_mut().for_each(SolverStage::forget);
    }

    /// Returns how the slices of the run were found, if by least squares.
    pub fn solver_counts(&self) -> Option<SolverCounts> {
        self.kernels.solver.as_ref().map(SolverStage::counts)
    }

    /// Returns the session, for another engine on the same device: programs that both use are built once.
    pub fn into_session(self) -> Session {
        self.session
    }

    /// Makes the driver provide what it has promised: many allocate when memory is used first.
    ///
    /// # Errors
    /// [`Error::Memory`] when it cannot.
    pub fn touch(&mut self) -> Result<()> {
        let outputs = self.outputs.iter_mut().map(|slices| &mut slices.values);
        for buffer in self.inputs.iter_mut().chain(outputs) {
            let bytes = buffer.size().unwrap_or(4);
            self.session.upload(buffer, bytes / 4 - 1, &[0.0], "zeros")?;
        }
        Ok(())
    }

    /// Reports whether chunks are in the host's memory, which the device reads and writes.
    pub(super) fn is_mapped(&self) -> bool {
        self.session.shares_memory() && self.feed.is_none() && self.kernels.encoder.is_none()
    }

    /// Reports whether a chunk is on the device as a whole.
    pub(super) fn is_whole(&self) -> bool {
        self.kernels.parts.len() == 1
    }

    /// Reconstructs `[slice][projection][bin]` sinograms into `[slice][y][x]` slices, at most a chunk of them.
    ///
    /// A slice's bits do not depend on the others: groups only share a kernel run.
    pub fn reconstruct(&mut self, sinograms: &[f32], slices: &mut [f32]) -> Result<DeviceSeconds> {
        let ChunkShape { chunk, in_slice, out_slice } = self.shape;
        let count = sinograms.len() / in_slice;
        if count > chunk || slices.len() != count * out_slice {
            return Err(Error::Internal(format!("a chunk of {count} slices does not fit the plan of {chunk}")));
        }
        let (Some(input), Some(output)) = (self.inputs.first_mut(), self.outputs.first()) else {
            return Err(no_buffer());
        };
        let session = &self.session;
        let mut seconds = DeviceSeconds::default();
        let mut uploaded = 0..0;
        for number in 0..self.kernels.parts.len() {
            let BandPart { of_sinogram, of_slice, last, .. } = &self.kernels.parts[number];
            let (of_sinogram, of_slice, last) = (of_sinogram.clone(), of_slice.clone(), *last);
            if uploaded != of_sinogram {
                let start = Instant::now();
                for (place, piece) in places(count, in_slice, of_sinogram.clone()) {
                    session.upload(input, place, &sinograms[piece], "sinograms")?;
                }
                seconds.upload += start.elapsed().as_secs_f64();
                uploaded = of_sinogram;
            }
            let pass = DevicePass { part: number, rows: &*input, slices: &output.values, count, scales: &[] };
            seconds = seconds + self.kernels.run_after(session, self.sinograms.as_mut(), pass)?;
            if last {
                let start = Instant::now();
                for (place, piece) in places(count, out_slice, of_slice) {
                    session.download(&output.values, place, &mut slices[piece], "slices")?;
                }
                seconds.download += start.elapsed().as_secs_f64();
            }
        }
        Ok(seconds)
    }

    /// Starts to add what some projections contribute to the slices of these numbers about an inclined axis; see
    /// [`LaminoStage::add`].
    pub(super) fn add_inclined(
        &mut self,
        which: &[usize],
        piece: InclinedRows,
    ) -> Result<(DeviceSeconds, Option<FoundReplaced>)> {
        let Engine { session, kernels: ChunkKernels { filter, sinogram, .. }, lamino, .. } = self;
        let (Some(stage), Some(output)) = (lamino, self.outputs.first()) else { return Err(no_buffer()) };
        let inputs = InclinedInputs { correct: self.feed.as_mut(), buffers: &mut self.inputs };
        stage.add(session, (filter, sinogram), (inputs, &output.values), which, piece)
    }

    /// Waits until more slices of a chunk about an inclined axis are complete; see [`LaminoStage::complete`].
    pub(super) fn complete_inclined(&mut self) -> Result<Option<Range<usize>>> {
        self.lamino.as_mut().map_or(Ok(None), |stage| stage.complete(&self.session))
    }

    /// Waits for all that was started about an inclined axis; see [`LaminoStage::end`].
    pub(super) fn end_inclined(&mut self) -> Result<DeviceSeconds> {
        self.lamino.as_mut().map_or(Ok(DeviceSeconds::default()), |stage| stage.end(&self.session))
    }

    /// Returns the largest number of values of 4 bytes of a piece of projections about an inclined axis.
    pub(super) fn inclined_piece(&self) -> usize {
        let of_host = || self.lamino.as_ref().map_or(0, LaminoStage::piece_values);
        self.feed.as_ref().map_or_else(of_host, |feed| feed.most_bytes().div_ceil(4))
    }

    /// Copies slices from the device, of which `first` is the number of the first in its chunk. Returns the seconds.
    pub(super) fn download_slices(&self, first: usize, slices: &mut [f32]) -> Result<f64> {
        let start = Instant::now();
        let output = self.outputs.first().ok_or_else(no_buffer)?;
        self.session.download(&output.values, first * self.shape.out_slice, slices, "slices")?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Computes one slice `[y][x]` as a run does, before it is finished, without counting replaced values.
    ///
    /// # Errors
    /// Errors of reading, and of the device.
    pub fn slice(&mut self, source: &Source, slice: usize) -> Result<Vec<f32>> {
        self.timed_slice(source, slice).map(|(values, _)| values)
    }

    /// Computes one slice as [`slice`](Self::slice) does, and returns the seconds that the device took, too.
    pub fn timed_slice(&mut self, source: &Source, slice: usize) -> Result<(Vec<f32>, DeviceSeconds)> {
        let mut values = vec![0f32; self.shape.out_slice];
        if self.lamino.is_some() {
            let mut seconds = self.inclined_slice(source, slice)?;
            seconds.download += self.download_slices(0, &mut values)?;
            return Ok((values, seconds));
        }
        if self.feed.is_none() {
            let seconds = self.reconstruct(&source.read(&[slice], self.wants.steps)?, &mut values)?;
            return Ok((values, seconds));
        }
        self.load(source, slice)?;
        let (Some(sinograms), Some(output)) = (self.inputs.first(), self.outputs.first()) else {
            return Err(no_buffer());
        };
        let pass = DevicePass { part: 0, rows: sinograms, slices: &output.values, count: 1, scales: &[] };
        let seconds = self.kernels.run_after(&self.session, self.sinograms.as_mut(), pass)?;
        self.session.download(&output.values, 0, &mut values, "slices")?;
        Ok((values, seconds))
    }

    /// Computes one slice about an inclined axis, which is on the device afterwards.
    fn inclined_slice(&mut self, source: &Source, slice: usize) -> Result<DeviceSeconds> {
        let (slices, scan) = ([slice], source.rows());
        let mut memory = HostMemory::plain(self.inclined_piece())?;
        let mut seconds = DeviceSeconds::default();
        for piece in self.wants.pieces(&scan, &slices, &(0..1), &mut None) {
            self.wants.read(&source.host, &scan, &slices, &piece, &mut memory)?;
            seconds =
                seconds + self.add_inclined(&slices, InclinedRows { scan: &scan, piece: &piece, values: &memory })?.0;
        }
        while self.complete_inclined()?.is_some() {}
        Ok(seconds + self.end_inclined()?)
    }

    /// Reads and corrects the rows of one slice on the device, to the beginning of the first buffer.
    pub(super) fn load(&mut self, source: &Source, slice: usize) -> Result<()> {
        let (Some(feed), Some(sinograms)) = (&mut self.feed, self.inputs.first_mut()) else {
            return Err(no_buffer());
        };
        let (session, slices, scan, stride) = (&self.session, [slice], source.rows(), self.shape.in_slice);
        let mut memory = HostMemory::plain(feed.most_bytes().div_ceil(4))?;
        for piece in self.wants.pieces(&scan, &slices, &(0..1), &mut self.loaded) {
            self.wants.read(&source.host, &scan, &slices, &piece, &mut memory)?;
            let chunk = FedChunk { slices: &slices, first: 0, sinograms: &mut *sinograms, stride };
            feed.correct(session, &scan, &piece, memory.as_bytes(), chunk)?;
            let complete = (!matches!(piece, Piece::Batch { .. })).then_some(&slices[..]);
            feed.wait(session, &scan, &piece, complete)?;
        }
        Ok(())
    }
}

/// Returns the parts of all bands, with their kernels, for compound sinograms with the rows of the scan `stored`.
fn band_parts(session: &Session, setup: &Setup, stored: &Geometry) -> Result<Vec<BandPart>> {
    let Setup { geometry, spec, cut, .. } = *setup;
    let (bins, roi) = (geometry.bins, geometry.roi);
    // the first part of a band overwrites what the slices hold, the others add to it
    let adding = spec.accumulating();
    let mut steps = Vec::new();
    for band in cut.bands(roi) {
        let first = (band.y - roi.y) * roi.width;
        for projections in cut.parts(geometry) {
            let kernel = if projections.start == 0 { spec } else { &adding };
            let scan = Geometry { roi: band, ..stored.clone() };
            steps.push(BandPart {
                of_sinogram: projections.start * bins..projections.end * bins,
                of_slice: first..first + band.pixels(),
                last: projections.end == geometry.projections(),
                projector: BackProjector::new(session, kernel, &scan, projections.clone())?,
                projections,
            });
        }
    }
    Ok(steps)
}

/// Makes the error of an engine without memory.
pub(super) fn no_buffer() -> Error {
    Error::Internal("there is no buffer for a chunk".into())
}

impl ChunkKernels {
    /// Returns the bytes of an encoded slice; `None` if slices are not encoded, or are encoded in place.
    pub fn encoded_bytes(&self) -> Option<usize> {
        self.encoder.as_ref().filter(|encoder| !encoder.in_place()).map(SliceEncoder::slice_bytes)
    }

    /// Reports whether slices are finished when [`finish`](Self::finish) is done.
    pub fn finishes(&self) -> bool {
        self.encoder.is_some()
    }

    /// Counts and encodes `count` slices, as far as the device does that, and waits. Returns the seconds that this
    /// took.
    pub fn finish(&self, session: &Session, slices: &mut SliceBuffers, count: usize) -> Result<f64> {
        let SliceBuffers { values, encoded, counts } = slices;
        if self.encoder.is_none() && counts.is_none() {
            return Ok(0.0);
        }
        let began = Instant::now();
        if let (Some(counter), Some(counts)) = (&self.counter, counts) {
            counter.run(session, values, counts, count)?;
        }
        match (&self.encoder, encoded) {
            (Some(encoder), Some(encoded)) => drop(encoder.run(session, values, encoded, count)?),
            (Some(encoder), None) => drop(encoder.run_in_place(session, values, count)?),
            (None, _) => {}
        }
        session.finish()?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// Corrects and examines sinograms, if a stage does that, and continues as [`run`](Self::run) does. Returns the seconds
    /// of both.
    fn run_after(
        &mut self,
        session: &Session,
        steps: Option<&mut SinogramStage>,
        pass: DevicePass<&Buffer<f32>>,
    ) -> Result<DeviceSeconds> {
        let DevicePass { part, rows, slices, count, .. } = pass;
        let ready = steps.map_or(Ok(ReadySinograms::default()), |steps| steps.run(rows, count))?;
        let pass = DevicePass { part, rows, slices, count, scales: &ready.scales };
        Ok(DeviceSeconds { steps: ready.seconds, ..self.run(session, pass, |_| Ok(()))? })
    }

    /// Filters a part of the projections of the first `count` slices, back-projects it into a band of them, and waits.
    /// Returns the seconds.
    ///
    /// `filtered` gets the rows when they are no longer needed.
    pub fn run<Rows: Borrow<Buffer<f32>>>(
        &mut self,
        session: &Session,
        pass: DevicePass<Rows>,
        filtered: impl FnOnce(Rows) -> Result<()>,
    ) -> Result<DeviceSeconds> {
        let DevicePass { part, rows, slices, count, scales } = pass;
        if let Some(solver) = &mut self.solver {
            let solver = solver.run(session, rows.borrow(), slices, count, scales)?;
            filtered(rows)?;
            return Ok(DeviceSeconds { solver, ..DeviceSeconds::default() });
        }
        let BandPart { projections, of_sinogram, of_slice, projector, .. } = &self.parts[part];
        let began = Instant::now();
        let mut filter = Vec::new();
        let mut host = 0.0;
        let mut back_projection = Vec::new();
        for start in (0..count).step_by(self.group) {
            let valid = self.group.min(count - start);
            let projections = projections.clone();
            let first = start * of_sinogram.len();
            let batch = RowBatch { rows: rows.borrow(), first, valid, projections, phases: projector.phases() };
            let Filtered { events, host: on_host } = self.filter.run(session, &batch, &mut self.sinogram)?;
            filter.extend(events);
            host += on_host.as_secs_f64();
            let first = start * of_slice.len();
            back_projection.extend(projector.run(
                session,
                &self.sinogram,
                self.filter.peaks(),
                slices,
                first,
                valid,
            )?);
        }
        let wait_for = |last: Option<&Event>| last.map_or_else(|| session.finish(), |kernel| session.wait_for(kernel));
        wait_for(filter.last())?;
        filtered(rows)?;
        wait_for(back_projection.last())?;
        let (filter, back_projection) = (seconds(&filter), seconds(&back_projection));
        let wall = began.elapsed().as_secs_f64() - host;
        // there are drivers whose clock stands still
        let (filter, back_projection) = match filter + back_projection < wall * SLOWEST_CLOCK {
            true => (host, wall),
            false => (filter + host, back_projection),
        };
        Ok(DeviceSeconds { filter, back_projection, ..DeviceSeconds::default() })
    }
}

/// Least share of the host's time that a device's clock must show to be believed.
const SLOWEST_CLOCK: f64 = 1e-3;

/// Returns where the values `within` each of `count` slices of `slice` values are: their first position on the device,
/// where only they are stored, and their range on the host, where whole slices are.
fn places(count: usize, slice: usize, within: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let contiguous = within.len() == slice;
    let length = if contiguous { count * slice } else { within.len() };
    (0..if contiguous { 1 } else { count }).map(move |number| {
        let first = number * slice + within.start;
        (number * length, first..first + length)
    })
}
