//! The input of a job: its data, their correction and their scan.

use super::errors::WaitError;
use super::{levels, means};
use crate::digest::PartsDigest;
use crate::error::Result;
use crate::execution::Files;
use crate::feed::{HostFeed, ScanRows};
use crate::files::read_numbers;
use crate::geometry::{Geometry, parse_angles, parse_numbers};
use crate::job::Job;
use crate::kernel::StepBackends;
use crate::least_squares::{LeastSquares, ProjectionWeights};
use crate::numbers::brief;
use crate::operations::{DetectorImages, RowCorrection};
use crate::plan::{HeldByHost, SampleShape, Scan, StackShape};
use crate::report::Reporter;
use crate::source::{FieldMode, InputKind, JoinedPart, ScanMeasures, Stack, Stacks, Watch, wait};
use crate::steps::{Optics, Preparation, Scope, Steps, Tilt};
use crate::stitch;
use crate::visible::{Shown, visible};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Number of rows that stand for all, spread over the rows of the run; fewer if their sinograms exceed [`SAMPLED_VALUES`].
const SAMPLED_ROWS: usize = 8;
/// The same where the axis is inclined: only the mean of all projections of a row tells where it is.
const SAMPLED_ROWS_INCLINED: usize = 64;
/// Largest number of values of all sampled sinograms together, unless one alone has more.
const SAMPLED_VALUES: usize = 1 << 26;
/// Share of the host's memory that rows take at most that are kept as they are stored.
const KEPT: u64 = 4;

/// Returns the weights of projections in the file that a job names, if it names one.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) that names the flag and the file.
pub fn projection_weights(job: &Job, cancelled: &AtomicBool) -> Result<Option<Vec<f64>>> {
    numbers_of(job.execution.files.weights.as_deref(), "--weights", cancelled)
}

/// Returns the numbers in a text file that a flag names, if it names one.
fn numbers_of(file: Option<&Path>, flag: &str, cancelled: &AtomicBool) -> Result<Option<Vec<f64>>> {
    let Some(file) = file else { return Ok(None) };
    let text = read_numbers(file, flag, cancelled)?;
    parse_numbers(&text, &format!("{flag} {}", file.shown())).map(Some)
}

/// Returns the angles in the file that a job names, with a note about their unit, if it names one.
fn angles_of(files: &Files, cancelled: &AtomicBool) -> Result<Option<(Vec<f64>, Option<String>)>> {
    let Some(file) = &files.angles else { return Ok(None) };
    let text = read_numbers(file, "--angles", cancelled)?;
    parse_angles(&text, &format!("--angles {}", file.shown())).map(Some)
}

/// Reports whether a job asks for weights of projections by their noise.
pub(super) fn weighs_by_noise(job: &Job) -> bool {
    matches!(job.recipe.solver, Some(LeastSquares { weights: ProjectionWeights::Noise, .. }))
}

/// The stack of a job, its correction, and the scan that it holds.
pub struct Source {
    stacks: Arc<Stacks>,
    /// Files of the data and their fields, in order.
    pub files: Arc<[PathBuf]>,
    steps: Steps,
    field_mode: FieldMode,
    pub preparation: Arc<Preparation>,
    sinograms: bool,
    shape: StackShape,
    /// The job's text files, of which the shape has the contents.
    texts: Files,
    /// Weights that were found for the projections of the stack.
    noise_weights: Option<Arc<[f64]>>,
    pub scan: Scan,
    /// Correction of rows on the host, which keeps the last block of them.
    pub(super) host: HostFeed,
}

/// Numbers of the frames that correct projections; all 0 if nothing is corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldCounts {
    pub flats: usize,
    /// Flats taken after the scan.
    pub flats2: usize,
    pub darks: usize,
}

impl Source {
    /// Opens the input when it has arrived, reads the text files beside it, and checks that everything fits together.
    pub fn open(job: &Job, reporter: &Reporter, cancelled: &AtomicBool) -> Result<Source> {
        let sinograms = job.recipe.input.is_sinograms();
        let files = &job.execution.files;
        let angles = angles_of(files, cancelled)?.map(|(angles, note)| {
            note.iter().for_each(|note| reporter.note(&format!("note: {note}")));
            angles
        });
        let request = job.open_request(job.recipe.scan.angles.is_input());
        let order_by = request.paths.order_by;
        let mut stacks = stitch::open(job.stitch_request(request), |path, flag| match job.execution.watch {
            None => Stack::open_by(path, flag, request.memory, order_by),
            Some(patience) => {
                let of_angles = angles.as_ref().filter(|_| !sinograms).map(Vec::len);
                let watch = Watch { patience, pages: job.execution.expect.or(of_angles), order_by };
                await_stack(path, flag, watch, reporter, cancelled)
            }
        })?;
        stacks.angles = angles.or(stacks.angles.take());
        let shifts = numbers_of(files.center_shifts.as_deref(), "--center-shifts", cancelled)?;
        let weights = projection_weights(job, cancelled)?;
        Source::of(job, stacks, [shifts, weights], reporter)
    }

    /// Makes the input of stacks that are open, with the shifts of the axis and the weights of projections, and checks that
    /// everything fits together.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) or [`Error::Usage`](crate::error::Error::Usage) that names the flag.
    pub fn of(
        job: &Job,
        mut stacks: Stacks,
        [shifts, weights]: [Option<Vec<f64>>; 2],
        reporter: &Reporter,
    ) -> Result<Source> {
        let sinograms = job.recipe.input.is_sinograms();
        let angles = stacks.angles.take();
        let shifts = shifts.or_else(|| stacks.shifts.clone());
        let stack = &stacks.data;
        stack.remarks().iter().for_each(|remark| reporter.remark(remark.clone()));
        reporter.detail(&format!("{:<16}{}", "files", stack.file_names()));
        if let Some((low, high)) = stacks.shift_range() {
            reporter.note(&format!(
                "note: the file shifts the axis by {} to {} bins; --center-shifts replaces this",
                brief(low),
                brief(high)
            ));
        }
        let (slices, projections) = match sinograms {
            true => (stack.len(), stack.height()),
            false => (stack.height(), stack.len()),
        };
        let (bins, binning) = (stack.width(), job.recipe.input.binning);
        let shape = StackShape { slices, projections, bins, binning, angles, shifts, weights };
        let scan = Scan::new(job, &shape)?;
        scan.remarks.iter().for_each(|remark| reporter.remark(remark.clone()));
        match (&stacks.flats, &stacks.darks) {
            (Some(_), None) => {
                let whole = matches!(job.recipe.input.kind, InputKind::Hdf5 | InputKind::Xrm);
                let missing = if whole { "no dark fields in the file and no --darks" } else { "no --darks" };
                reporter.note(&format!("note: {missing}, the dark level is assumed to be 0"));
            }
            (None, Some(_)) => reporter.note("note: there are dark fields but no flat fields, so nothing is corrected"),
            _ => {}
        }
        let preparation = prepare(None, job, &stacks, &scan, reporter)?;
        for (name, value) in preparation.describe() {
            reporter.detail(&format!("{name:<16}{}", visible(&value)));
        }
        let logarithm = job.recipe.steps.logarithm;
        let doubt = levels::doubt(&stacks.data, &preparation, logarithm, &scan, sinograms);
        doubt.into_iter().for_each(|doubt| reporter.remark(doubt));
        preparation.remarks().iter().for_each(|remark| reporter.remark(remark.clone()));
        preparation.expect_light(&scan.run_slices)?;
        let files = stacks.files().map(Path::to_owned).collect();
        let (steps, field_mode, host) = (job.recipe.steps.clone(), job.recipe.input.field_mode, HostFeed::default());
        let (stacks, preparation, texts) = (Arc::new(stacks), Arc::new(preparation), job.execution.files.clone());
        let noise_weights = None;
        Ok(Source { stacks, files, steps, field_mode, preparation, sinograms, shape, texts, noise_weights, scan, host }
            .sized())
    }

    /// Completes the scan with what it needs to know of the steps.
    fn sized(mut self) -> Source {
        let (stack, used) = (&self.stacks.data, &self.scan.used);
        let block_rows = self.preparation.block().map_or(0, |block| block.min(stack.height()));
        // every thread takes the stripes out of a sinogram of its own
        let threads = rayon::current_num_threads().min(self.scan.slices.len().max(1));
        let held = HeldByHost {
            block: (4 * block_rows * used.len() * stack.width()) as u64,
            stripes: (threads * self.preparation.memory(used.len())) as u64,
        };
        let samples = samples(&self.stacks, &self.preparation, used, self.sinograms);
        let kept = self.stacks.data.kept().map_or(0, |(bytes, _)| bytes);
        self.scan = Scan { held, samples, cached: self.stacks.held + kept, ..self.scan };
        self
    }

    /// Returns a text that tells the input from others without reading it: names, sizes, times of the last change and
    /// shapes.
    pub fn fingerprint(&self) -> String {
        let bits = |values: &Option<Vec<f64>>| -> String {
            values.iter().flatten().map(|value| format!("{:016x} ", value.to_bits())).collect()
        };
        let StackShape { angles, shifts, weights, .. } = &self.shape;
        let [angles, shifts, weights] = [angles, shifts, weights].map(bits);
        let stack = self.stack().fingerprint();
        let parts = [&stack, self.preparation.fingerprint(), angles.as_str(), shifts.as_str()];
        // without weights, runs of earlier versions keep their keys
        let weights = Some(weights.as_str()).filter(|weights| !weights.is_empty());
        let distortion = self.stacks.distortion.as_ref().map(|map| format!("distortion {}", map.fingerprint()));
        // what outputs say of pixels
        let log = self.stacks.log.as_ref().map(|_| format!("log {:?}", self.stacks.measures.pixel_size));
        PartsDigest::of(parts.into_iter().chain(weights).chain(distortion.as_deref()).chain(log.as_deref())).to_string()
    }

    /// Checks that a job which differs as in [`as_of`](Self::as_of) fits the data.
    ///
    /// # Errors
    /// As of [`Scan::new`].
    pub fn check(&self, job: &Job) -> Result<()> {
        Scan::new(job, &self.shape_of(job)?).map(drop)
    }

    /// Returns the geometry of a job that differs as in [`as_of`](Self::as_of).
    ///
    /// # Errors
    /// As of [`Scan::new`].
    pub(super) fn geometry_of(&self, job: &Job) -> Result<Geometry> {
        Ok(Scan::new(job, &self.shape_of(job)?)?.geometry)
    }

    /// Returns the shape of the stack with the contents of a job's text files; those of this source are not read again.
    fn shape_of(&self, job: &Job) -> Result<StackShape> {
        let (of, known, unstopped) = (&job.execution.files, &self.texts, AtomicBool::new(false));
        let mut shape = self.shape.clone();
        // without a file, the angles are those of the data
        if of.angles != known.angles && of.angles.is_some() {
            shape.angles = angles_of(of, &unstopped)?.map(|(angles, _)| angles);
        }
        if of.center_shifts != known.center_shifts {
            let shifts = numbers_of(of.center_shifts.as_deref(), "--center-shifts", &unstopped)?;
            shape.shifts = shifts.or_else(|| self.stacks.shifts.clone());
        }
        if of.weights != known.weights {
            shape.weights = projection_weights(job, &unstopped)?;
        }
        Ok(shape)
    }

    /// Returns the same data for another job, which differs in its axis, its angles, its steps, its method, or the projections
    /// that it uses and their weights.
    pub fn as_of(&self, job: &Job) -> Result<Source> {
        self.made_for(job, false)
    }

    /// Returns a part of the projections for another job, as if the rest had never been opened: what is replaced is judged
    /// among these alone.
    ///
    /// # Errors
    /// As of [`as_of`](Self::as_of).
    pub fn part(&self, job: &Job) -> Result<Source> {
        self.made_for(job, true)
    }

    fn made_for(&self, job: &Job, part: bool) -> Result<Source> {
        let shape = self.shape_of(job)?;
        let mut scan = Scan::new(job, &shape)?;
        // what was said is not said again
        scan.remarks.retain(|remark| !self.scan.remarks.contains(remark));
        let (steps, field_mode) = (job.recipe.steps.clone(), job.recipe.input.field_mode);
        let same = steps == self.steps && field_mode == self.field_mode && !part;
        let preparation = match same && self.preparation.serves(&scan.used, &needed_rows(&scan)) {
            true => Arc::clone(&self.preparation),
            false => Arc::new(prepare(Some(self), job, &self.stacks, &scan, &Reporter::silent())?),
        };
        let (stacks, files, texts) = (Arc::clone(&self.stacks), Arc::clone(&self.files), job.execution.files.clone());
        let noise_weights = self.noise_weights.clone().filter(|_| weighs_by_noise(job));
        let (sinograms, host) = (self.sinograms, HostFeed::default());
        let scan = match &noise_weights {
            Some(weights) => scan.weighted(weights),
            None => scan,
        };
        Ok(Source { stacks, files, steps, field_mode, preparation, sinograms, shape, texts, noise_weights, scan, host }
            .sized())
    }

    /// Returns the same data with weights that were found for the projections of the stack.
    pub(super) fn weighted(self, weights: Vec<f64>) -> Source {
        Source { scan: self.scan.weighted(&weights), noise_weights: Some(weights.into()), ..self }
    }

    /// Returns the numbers of some rows that stand for all rows of the run, also in its shards.
    pub fn sampled_rows(&self) -> Vec<usize> {
        let needed;
        let (slices, most) = match &self.scan.lamino {
            None => (&self.scan.run_slices, SAMPLED_ROWS),
            Some(_) => {
                needed = needed_rows(&self.scan).collect();
                (&needed, SAMPLED_ROWS_INCLINED)
            }
        };
        let count = most.min(SAMPLED_VALUES / self.rows().sinogram_len().max(1)).clamp(1, slices.len());
        (0..count).map(|i| slices[(2 * i + 1) * slices.len() / (2 * count)]).collect()
    }

    /// Keeps the rows that the host reads for one row by any of some jobs in memory once they are read, if they take at most
    /// a share of the memory of the first.
    pub fn keep_rows(&self, jobs: &[Job], row: usize) {
        let stack = self.stack();
        let Some(most) = jobs.first().map(|job| job.execution.host_memory() / KEPT) else { return };
        if self.sinograms {
            // a page is a sinogram
            stack.keep_rows(&(0..stack.height()), most);
            return;
        }
        let mut last: Option<(Option<Tilt>, Optics)> = None;
        let around = |job: &Job| {
            let steps = &job.recipe.steps;
            let known = last.take().filter(|(tilt, _)| *tilt == steps.tilt);
            // what cannot be corrected is said when it is prepared
            let optics = known.map(|(_, optics)| optics).or_else(|| steps.optics(&self.stacks).ok())?;
            let rows = steps.rows_around(row, &optics);
            last = Some((steps.tilt, optics));
            Some(rows)
        };
        let rows = jobs.iter().filter_map(around).reduce(|all, more| all.start.min(more.start)..all.end.max(more.end));
        rows.into_iter().for_each(|rows| stack.keep_rows(&rows, most));
    }

    /// Returns the data, without their fields.
    pub fn stack(&self) -> &Stack {
        &self.stacks.data
    }

    /// Returns the parts of which the data were joined, in the order of their places; none of a scan in one part.
    pub fn parts(&self) -> &[JoinedPart] {
        self.stacks.joined.as_ref().map_or(&[], |joined| &joined.parts)
    }

    /// Returns what the input says of the acquisition, for pixels that are not binned.
    pub fn measures(&self) -> &ScanMeasures {
        &self.stacks.measures
    }

    /// Returns the log beside projections that is used.
    pub fn log(&self) -> Option<&Path> {
        self.stacks.log.as_deref()
    }

    /// Returns the smallest and the largest shift of the axis that the input contains, in bins of the detector, if it does.
    pub fn shift_range(&self) -> Option<(f64, f64)> {
        self.stacks.shift_range()
    }

    /// Returns the numbers of the frames that correct projections.
    pub fn field_frames(&self) -> FieldCounts {
        let Stacks { flats, flats2, darks, joined, .. } = &*self.stacks;
        if let Some(&[flats, flats2, darks]) = joined.as_ref().map(|joined| &joined.frames) {
            return FieldCounts { flats, flats2, darks };
        }
        let frames = |stack: &Option<Stack>| stack.as_ref().filter(|_| flats.is_some()).map_or(0, Stack::len);
        FieldCounts { flats: frames(flats), flats2: frames(flats2), darks: frames(darks) }
    }

    /// Returns the rows of the data, and what is done to them.
    pub fn rows(&self) -> ScanRows<'_> {
        ScanRows {
            stack: self.stack(),
            preparation: &self.preparation,
            used: &self.scan.used,
            wanted: &self.scan.slices,
            sinograms: self.sinograms,
            field: self.scan.field.as_ref(),
            lamino: self.scan.lamino.as_ref(),
        }
    }

    /// Reads corrected sinograms `[slice][projection][bin]` of some slices of the scan, without counting replaced
    /// values, for an engine with these `steps`: what the engine does to corrected rows is left to it.
    pub fn read(&self, which: &[usize], steps: StepBackends) -> Result<Vec<f32>> {
        let rows = self.rows();
        let mut out = vec![0f32; which.len() * rows.sinogram_len()];
        self.host.read(&rows, which, steps, false, &mut out)?;
        Ok(out)
    }

    /// Reads sinograms `[projection][bin]` as the detector saw them: corrected, with their stripes.
    pub fn read_seen(&self, which: &[usize]) -> Result<Vec<Vec<f32>>> {
        self.host.read_seen(&self.rows(), which)
    }

    /// Frees the block of rows that was corrected last, for when the next reader does not start in it.
    pub fn forget_block(&self) {
        self.host.forget();
    }
}

/// Returns the rows of the detector from the first to the last that slices of the run need.
fn needed_rows(scan: &Scan) -> Range<usize> {
    let slices = &scan.run_slices;
    let rows = scan.lamino.as_ref().map_or_else(|| slices.clone(), |lamino| lamino.rows_of(slices).collect());
    rows.first().copied().unwrap_or(0)..rows.last().map_or(0, |last| last + 1)
}

/// Opens the steps of a job for some stacks, of which an earlier source may have prepared some.
fn prepare(
    earlier: Option<&Source>,
    job: &Job,
    stacks: &Stacks,
    scan: &Scan,
    reporter: &Reporter,
) -> Result<Preparation> {
    let median = job.recipe.input.field_mode == FieldMode::Median;
    let rows = needed_rows(scan);
    let scope = Scope { median, used: &scan.used, rows: &rows, full_projections: false, means: None };
    means::prepare(job, earlier.map(|source| (&source.steps, &*source.preparation)), stacks, scope, reporter)
}

/// Returns the form in which a device may get the samples of some stacks.
fn samples(stacks: &Stacks, preparation: &Preparation, used: &[usize], sinograms: bool) -> SampleShape {
    let correction = preparation.correction(used, 1);
    SampleShape {
        stored: stacks.data.stored(),
        height: stacks.data.height(),
        halo: preparation.halo(),
        blocks: correction.as_ref().and_then(|correction| preparation.blocks(&correction.images, used.len())),
        correctable: correction.is_some(),
        whole_frames: !sinograms && stacks.data.has_whole_frames(),
        apart: !sinograms && preparation.block().is_none() && !preparation.has_sinogram_steps(),
        held: correction.as_ref().map_or(DetectorImages::default(), RowCorrection::detector_images),
    }
}

/// Waits for a stack, and reports the number of files whenever more have arrived.
fn await_stack(path: &str, flag: &str, watch: Watch, reporter: &Reporter, cancelled: &AtomicBool) -> Result<Stack> {
    let mut before = None;
    wait(path, flag, watch, |files| {
        if cancelled.load(Relaxed) {
            return Err(WaitError::Stopped.into());
        }
        if before.replace(files) != Some(files) {
            let of = watch.pages.map(|pages| format!(" of {pages}")).unwrap_or_default();
            reporter.detail(&format!("waiting for {flag}: {files}{of} files have arrived"));
        }
        Ok(())
    })
}
