//! Where sinograms come from.

use super::levels;
use super::stages::parts_of;
use crate::device::{RowCorrection, SampleOrder};
use crate::error::{Error, Result};
use crate::files::read_numbers;
use crate::geometry::{parse_angles, parse_numbers};
use crate::job::Job;
use crate::kernel::{StepBackend, StepBackends};
use crate::plan::{HeldByHost, SampleShape, Scan, StackShape};
use crate::recipe::{AngleSource, Recipe, digest};
use crate::report::Reporter;
use crate::source::{self, FieldMode, InputKind, Stack, Stacks, Watch, wait};
use crate::steps::{Band, Counts, Preparation, Scope, Steps, widened};
use crate::visible::{Shown, visible};
use rayon::prelude::*;
use std::ops::{Add, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// A batch of projections is read in so many tasks for each thread, if these have enough to read.
const TASKS_OF_THREAD: usize = 4;

/// Bytes that are worth a task.
const LEAST_READ: usize = 256 << 10;

/// The stack, its correction and the scan that it holds.
pub struct Source {
    stacks: Stacks,
    /// Of the data and their fields, in order.
    pub files: Vec<PathBuf>,
    steps: Steps,
    pub preparation: Preparation,
    sinograms: bool,
    shape: StackShape,
    pub scan: Scan,
    filtered: Mutex<FilteredBlock>,
}

/// The block of rows that was filtered last.
#[derive(Default)]
struct FilteredBlock {
    /// Numbers of the rows.
    rows: Vec<usize>,
    /// Their sinograms as the detector saw them.
    sinograms: Vec<f32>,
    /// What was replaced in them, until the run has counted it: a search or percentiles may read a block first.
    counts: Counts,
}

impl Source {
    /// Opens the input, when it has arrived, reads the text files beside it, and checks that all fits together.
    pub fn open(job: &Job, reporter: &Reporter, cancelled: &AtomicBool) -> Result<Source> {
        let sinograms = job.recipe.input.is_sinograms();
        let text = |path: &Path, flag: &str| -> Result<(String, String)> {
            Ok((read_numbers(path, flag, cancelled)?, format!("{flag} {}", path.shown())))
        };
        let numbers = |path: &Path, flag: &str| -> Result<Vec<f64>> {
            let (text, what) = text(path, flag)?;
            parse_numbers(&text, &what)
        };
        let angles = match &job.execution.files.angles {
            Some(file) => {
                let (text, what) = text(file, "--angles")?;
                let (angles, note) = parse_angles(&text, &what)?;
                note.iter().for_each(|note| reporter.note(&format!("note: {note}")));
                Some(angles)
            }
            None => None,
        };
        let request = job.open_request(job.recipe.scan.angles == AngleSource::Hdf5);
        let order_by = request.paths.order_by;
        let mut stacks = source::open(request, |path, flag| match job.execution.watch {
            None => Stack::open_by(path, flag, request.memory, order_by),
            Some(patience) => {
                let of_angles = angles.as_ref().filter(|_| !sinograms).map(Vec::len);
                let watch = Watch { patience, pages: job.execution.expect.or(of_angles), order_by };
                await_stack(path, flag, watch, reporter, cancelled)
            }
        })?;
        let angles = angles.or(stacks.angles.take());
        let stack = &stacks.data;
        stack.remarks().iter().for_each(|remark| reporter.remark(remark.clone()));
        reporter.detail(&format!("{:<16}{}", "files", stack.file_names()));
        let shifts =
            job.execution.files.center_shifts.as_deref().map(|file| numbers(file, "--center-shifts")).transpose()?;
        let (slices, projections) = match sinograms {
            true => (stack.len(), stack.height()),
            false => (stack.height(), stack.len()),
        };
        let shape =
            StackShape { slices, projections, bins: stack.width(), binning: job.recipe.input.binning, angles, shifts };
        let scan = Scan::new(job, &shape)?;
        scan.remarks.iter().for_each(|remark| reporter.remark(remark.clone()));
        match (&stacks.flats, &stacks.darks) {
            (Some(_), None) => {
                let hdf5 = job.recipe.input.kind == InputKind::Hdf5;
                let missing = if hdf5 { "no dark fields in the file and no --darks" } else { "no --darks" };
                reporter.note(&format!("note: {missing}, the dark level is assumed to be 0"));
            }
            (None, Some(_)) => reporter.note("note: there are dark fields but no flat fields, so nothing is corrected"),
            _ => {}
        }
        let preparation = prepare(&job.recipe, &stacks, &scan)?;
        for (name, value) in preparation.describe() {
            reporter.detail(&format!("{name:<16}{}", visible(&value)));
        }
        let logarithm = job.recipe.steps.logarithm;
        let doubt = levels::doubt(&stacks.data, &preparation, logarithm, &scan, sinograms);
        doubt.into_iter().for_each(|doubt| reporter.remark(doubt));
        preparation.remarks().iter().for_each(|remark| reporter.remark(remark.clone()));
        preparation.expect_light(&scan.run_slices)?;
        let files = stacks.files().map(Path::to_owned).collect();
        let steps = job.recipe.steps.clone();
        Ok(Source { stacks, files, steps, preparation, sinograms, shape, scan, filtered: Mutex::default() }.sized())
    }

    /// The same with what the scan needs to know of the steps.
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
        self.scan = Scan { held, samples, cached: self.stacks.held, ..self.scan };
        self
    }

    /// What tells the input from another without reading it: names, sizes, times of the last change and shapes.
    pub fn fingerprint(&self) -> String {
        let bits = |values: &Option<Vec<f64>>| -> String {
            values.iter().flatten().map(|value| format!("{:016x} ", value.to_bits())).collect()
        };
        let (angles, shifts) = (bits(&self.shape.angles), bits(&self.shape.shifts));
        digest([&self.stack().fingerprint(), self.preparation.fingerprint(), &angles, &shifts])
    }

    /// The same data as another job takes them, which differs in its axis or tilt.
    pub fn as_of(self, job: &Job) -> Result<Source> {
        let mut scan = Scan::new(job, &self.shape)?;
        // what was said is not said again
        scan.remarks.retain(|remark| !self.scan.remarks.contains(remark));
        let steps = job.recipe.steps.clone();
        let preparation = match steps == self.steps {
            true => self.preparation,
            false => prepare(&job.recipe, &self.stacks, &scan)?,
        };
        Ok(Source { steps, preparation, scan, filtered: Mutex::default(), ..self }.sized())
    }

    /// The data, without their fields.
    pub fn stack(&self) -> &Stack {
        &self.stacks.data
    }

    /// Values of one sinogram.
    pub fn sinogram_len(&self) -> usize {
        self.scan.geometry.projections() * self.scan.geometry.bins
    }

    /// Of these the ones that the detector saw.
    fn detector_len(&self) -> usize {
        self.scan.geometry.projections() * self.stack().width()
    }

    /// Room for what the detector saw of every sinogram of `out`, at its beginning.
    fn seen<'a>(&self, out: &'a mut [f32]) -> impl IndexedParallelIterator<Item = &'a mut [f32]> {
        let seen = self.detector_len();
        out.par_chunks_mut(self.sinogram_len()).map(move |sinogram| &mut sinogram[..seen])
    }

    /// Corrected sinograms `[slice][projection][bin]` of some slices of the scan, without what was replaced in them, for
    /// an engine with these steps: what it does with corrected rows is left to it.
    pub fn read(&self, which: &[usize], steps: StepBackends) -> Result<Vec<f32>> {
        let mut out = vec![0f32; which.len() * self.sinogram_len()];
        self.read_lines(which, self.seen(&mut out).collect(), false)?;
        self.finish_sinograms(&mut out, steps);
        Ok(out)
    }

    /// The same into `out`, which has the size of exactly these; what was replaced in them is returned.
    pub fn read_into(&self, which: &[usize], steps: StepBackends, out: &mut [f32]) -> Result<Counts> {
        let counts = self.read_lines(which, self.seen(out).collect(), true)?;
        Ok(counts + self.finish_sinograms(out, steps))
    }

    /// The steps on sinograms, if the host does them, and rows of an extended field, if it corrects rows.
    fn finish_sinograms(&self, out: &mut [f32], steps: StepBackends) -> Counts {
        let mut counts = Counts::default();
        if steps.sinograms == StepBackend::Host {
            let sinograms = self.seen(out).map(|sinogram| {
                let mut counts = Counts::default();
                self.preparation.sinogram(sinogram, &mut counts);
                counts
            });
            counts = sinograms.reduce(Counts::default, Counts::add);
        }
        if let (Some(field), StepBackend::Host) = (&self.scan.field, steps.rows) {
            out.par_chunks_mut(self.sinogram_len()).for_each(|sinogram| field.extend(sinogram));
        }
        counts
    }

    /// Frees the block of rows that was filtered last: who reads next does not start there.
    pub fn forget_block(&self) {
        *self.filtered.lock().unwrap_or_else(PoisonError::into_inner) = FilteredBlock::default();
    }

    /// Sinograms as the detector saw them, each `[projection][bin of the detector]`: corrected, with their stripes.
    pub fn read_seen(&self, which: &[usize]) -> Result<Vec<Vec<f32>>> {
        let mut sinograms: Vec<_> = which.iter().map(|_| vec![0f32; self.detector_len()]).collect();
        self.read_lines(which, sinograms.iter_mut().map(Vec::as_mut_slice).collect(), false)?;
        Ok(sinograms)
    }

    /// What the detector saw of each of the slices. Only what is read for the run is `counted`.
    fn read_lines(&self, which: &[usize], out: Vec<&mut [f32]>, counted: bool) -> Result<Counts> {
        match self.sinograms {
            true => self.read_sinograms(which, out),
            false => self.read_projections(which, out, counted),
        }
    }

    /// Samples of some slices as they are stored, for a device that corrects them: `[projection][slice][bin]` from
    /// projections, with the rows around each run of slices that it needs, else `[slice][projection][bin]`; where samples are
    /// to be binned, all rows that form one, and from sinograms `[slice][frame][projection][bin]`.
    pub fn read_stored(&self, which: &[usize], out: &mut [u8]) -> Result<()> {
        let (used, row) = (&self.scan.used, self.stack().stored().row_bytes());
        let halo = self.scan.samples.halo;
        let around = |run: Range<usize>| widened(&run, halo, self.stack().height());
        let (outer, runs): (_, Vec<Range<usize>>) = match self.sinograms {
            true => (which, runs_of(used)),
            false => (used.as_slice(), runs_of(which).into_iter().map(around).collect()),
        };
        let rows: usize = runs.iter().map(Range::len).sum();
        out.par_chunks_mut(rows * row)
            .zip(outer)
            .try_for_each(|(out, &page)| self.stack().read_stored(page, &runs, out))
    }

    /// Samples of some projections as they are stored, `[projection][row][bin]`, of a block of rows with those around it, at
    /// the beginning of `out`.
    pub fn read_block(&self, rows: Range<usize>, projections: Range<usize>, out: &mut [u8]) -> Result<()> {
        let rows = widened(&rows, self.scan.samples.halo, self.stack().height());
        let row_bytes = self.stack().stored().row_bytes();
        let at_once = self.rows_at_once(rows.len(), projections.len());
        out.par_chunks_mut(rows.len() * row_bytes).zip(&self.scan.used[projections]).try_for_each(|(out, &page)| {
            out.par_chunks_mut(at_once * row_bytes).enumerate().try_for_each(|(number, out)| {
                let start = rows.start + number * at_once;
                let part = start..(start + at_once).min(rows.end);
                self.stack().read_stored(page, std::slice::from_ref(&part), out)
            })
        })
    }

    /// Rows that a thread reads of a page, so that there is something to do for all threads until the end: all, if parts would
    /// take longer together.
    fn rows_at_once(&self, rows: usize, pages: usize) -> usize {
        if !self.stack().rows_are_apart() {
            return rows.max(1);
        }
        let parts = (TASKS_OF_THREAD * rayon::current_num_threads()).div_ceil(pages.max(1));
        rows.div_ceil(parts).max(LEAST_READ.div_ceil(self.stack().stored().row_bytes().max(1)))
    }

    /// Bytes of these samples.
    pub fn stored_bytes(&self, which: &[usize]) -> usize {
        let rows: usize = match self.scan.samples.halo {
            0 => which.len(),
            halo => runs_of(which).iter().map(|run| widened(run, halo, self.stack().height()).len()).sum(),
        };
        rows * self.scan.used.len() * self.stack().stored().row_bytes()
    }

    /// Positions in a list of slices as parts of at most `most`, which a device that corrects rows takes at once: next to
    /// each other, if it needs the rows around them.
    pub fn parts(&self, slices: &[usize], most: usize) -> Vec<Range<usize>> {
        let parts = parts_of(slices.len(), most);
        if self.scan.samples.halo == 0 {
            return parts.collect();
        }
        let runs = |part: Range<usize>| {
            let mut start = part.start;
            slices[part]
                .chunk_by(|a, b| a + 1 == *b)
                .map(move |run| {
                    start += run.len();
                    start - run.len()..start
                })
                .collect::<Vec<_>>()
        };
        parts.flat_map(runs).collect()
    }

    /// What a device does to those samples, if it can do all steps.
    pub fn correction(&self) -> Option<RowCorrection<'_>> {
        let projections = if self.sinograms { self.stack().height() } else { self.stack().len() };
        self.preparation.correction(&self.scan.used, projections)
    }

    /// How the samples of [`read_stored`](Self::read_stored) lie.
    pub fn order(&self) -> SampleOrder {
        if self.sinograms { SampleOrder::Sinograms } else { SampleOrder::Projections }
    }

    fn read_sinograms(&self, which: &[usize], out: Vec<&mut [f32]>) -> Result<Counts> {
        let (bins, used, total) = (self.stack().width(), &self.scan.used, self.stack().height());
        let sinograms = out.into_par_iter().zip(which).map(|(sinogram, &slice)| -> Result<Counts> {
            if used.len() == total {
                self.stack().read_rows(slice, 0..total, sinogram)?;
            } else {
                let mut all = vec![0f32; total * bins];
                self.stack().read_rows(slice, 0..total, &mut all)?;
                for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
                    row.copy_from_slice(&all[p * bins..(p + 1) * bins]);
                }
            }
            let mut counts = Counts::default();
            for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
                let band = Band::new(row, total, slice..slice + 1, slice..slice + 1).of(p, total);
                self.preparation.projection(band, &mut counts);
            }
            Ok(counts)
        });
        sinograms.try_reduce(Counts::default, |a, b| Ok(a + b))
    }

    fn read_projections(&self, which: &[usize], out: Vec<&mut [f32]>, counted: bool) -> Result<Counts> {
        let Some(block) = self.preparation.block() else {
            return self.turn_projections(which, out.into_iter());
        };
        let seen = self.detector_len();
        let mut counts = Counts::default();
        // slices in order: most are in the block that was filtered last
        let mut filtered = self.filtered.lock().unwrap_or_else(PoisonError::into_inner);
        for (sinogram, &slice) in out.into_iter().zip(which) {
            let first = slice / block * block;
            let rows: Vec<usize> = (first..(first + block).min(self.stack().height())).collect();
            if filtered.rows != rows {
                filtered.rows.clear();
                filtered.sinograms.resize(rows.len() * seen, 0.0);
                filtered.counts = self.turn_projections(&rows, filtered.sinograms.chunks_mut(seen))?;
                filtered.rows = rows;
            }
            if counted {
                counts += std::mem::take(&mut filtered.counts);
            }
            let at = (slice - first) * seen;
            sinogram.copy_from_slice(&filtered.sinograms[at..at + seen]);
        }
        Ok(counts)
    }

    /// Of rows that are corrected together those in which replaced values are counted: from the first slice of the job to
    /// the last.
    pub fn counted(&self, rows: &Range<usize>) -> Range<usize> {
        let slices = &self.scan.slices;
        let within = slices.partition_point(|s| *s < rows.start)..slices.partition_point(|s| *s < rows.end);
        match &slices[within] {
            [] => rows.start..rows.start,
            [one] => *one..one + 1,
            [first, .., last] => *first..last + 1,
        }
    }

    /// Each projection's rows are read at once, corrected, and go from there to their sinograms.
    fn turn_projections<'a>(&self, which: &[usize], out: impl Iterator<Item = &'a mut [f32]>) -> Result<Counts> {
        let (bins, used, total) = (self.stack().width(), &self.scan.used, self.stack().len());
        let (halo, height) = (self.preparation.halo(), self.stack().height());
        let mut rows_of: Vec<Vec<&mut [f32]>> = used.iter().map(|_| Vec::with_capacity(which.len())).collect();
        for sinogram in out {
            for (rows, row) in rows_of.iter_mut().zip(sinogram.chunks_mut(bins)) {
                rows.push(row);
            }
        }
        let spans = runs_of(which);
        let turn = |mut band: Vec<f32>, mut counts: Counts, (rows, &p): (Vec<&mut [f32]>, &usize)| {
            let mut rows = rows.into_iter();
            for span in &spans {
                let read = widened(span, halo, height);
                band.resize(read.len() * bins, 0.0);
                self.stack().read_rows(p, read.clone(), &mut band)?;
                let seen = Band::new(&mut band, height, read.clone(), span.clone()).of(p, total);
                self.preparation.projection(Band { counted: self.counted(span), ..seen }, &mut counts);
                let wanted = &band[(span.start - read.start) * bins..(span.end - read.start) * bins];
                wanted.chunks(bins).zip(rows.by_ref()).for_each(|(wanted, row)| row.copy_from_slice(wanted));
            }
            Ok((band, counts))
        };
        // a band and its counts go from projection to projection
        let start = || (Vec::new(), Counts::default());
        let turned = rows_of.into_par_iter().zip(used).try_fold(start, |(band, counts), next| turn(band, counts, next));
        turned.map(|done: Result<_>| Ok(done?.1)).try_reduce(Counts::default, |a, b| Ok(a + b))
    }
}

/// The steps of a recipe for these stacks.
fn prepare(recipe: &Recipe, stacks: &Stacks, scan: &Scan) -> Result<Preparation> {
    let median = recipe.input.field_mode == FieldMode::Median;
    let scope = Scope { median, used: &scan.used, full_projections: false };
    Preparation::open(&recipe.steps, stacks, scope)
}

/// How a device may get samples of these stacks.
fn samples(stacks: &Stacks, preparation: &Preparation, used: &[usize], sinograms: bool) -> SampleShape {
    let correction = preparation.correction(used, 1);
    SampleShape {
        stored: stacks.data.stored(),
        height: stacks.data.height(),
        halo: preparation.halo(),
        blocks: correction.as_ref().and_then(|correction| preparation.blocks(&correction.images, used.len())),
        correctable: correction.is_some(),
        whole_frames: !sinograms && stacks.data.has_whole_frames(),
        fields: [&stacks.flats, &stacks.flats2, &stacks.darks].into_iter().flatten().count(),
    }
}

/// Waits for a stack, and tells how many files are there whenever more have come.
fn await_stack(path: &str, flag: &str, watch: Watch, reporter: &Reporter, cancelled: &AtomicBool) -> Result<Stack> {
    let mut before = None;
    wait(path, flag, watch, |files| {
        if cancelled.load(Relaxed) {
            return Err(Error::Interrupted(
                "interrupted while waiting for files, nothing was written; run again".into(),
            ));
        }
        if before.replace(files) != Some(files) {
            let of = watch.pages.map(|pages| format!(" of {pages}")).unwrap_or_default();
            reporter.detail(&format!("waiting for {flag}: {files}{of} files have arrived"));
        }
        Ok(())
    })
}

/// Ascending numbers as runs of those next to each other.
fn runs_of(numbers: &[usize]) -> Vec<Range<usize>> {
    numbers.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1).collect()
}
