//! `fbp reconstruct`: slices from sinograms or projections.

mod account;
mod ahead;
mod coarse;
mod errors;
mod half_scans;
mod outputs;
mod overview;
mod page;
mod reconstruction;
mod record;
mod resume;
mod scan_axis;
mod summary;
mod turns;

use super::add_measures;
use super::trials::trial_page;
use crate::axis::{Aligned, Axis};
use crate::center::next_sweep;
use crate::cli::ReconstructArgs;
use crate::device::{DeviceSearch, keep_devices};
use crate::engine::{
    Done, Finish, ObservedSlice, ReadyDevice, Run, Source, WRITERS, chosen, leave, plan_for, ready_devices, run_stages,
    with_noise_weights,
};
use crate::error::Result;
use crate::execution::Existing;
use crate::files::{OutputFile, OutputKind, TOML};
use crate::job::Job;
use crate::kernel::StepBackends;
use crate::numbers::significant;
use crate::picture::{Panel, write_preview};
use crate::plan::Scan;
use crate::recipe::{Center, Division, Identity, Scaling, merge, run_file};
use crate::report::{Reporter, StageClock, results};
use crate::resolution::Resolution;
use crate::sink::{AllowedContents, Encoding, OutputLock, PageContent, SOFTWARE, SliceStorage, SliceWriter, Target};
use crate::steps::Counts;
use crate::units::Interval;
use crate::visible::Shown;
pub(super) use account::scan_name;
use errors::ReconstructFlagError;
use outputs::{SideFiles, input_set, inputs};
use overview::{Gathered, middle};
pub(super) use overview::{Overview, Wanted};
pub(super) use page::RunPage;
use reconstruction::Reconstruction;
pub(super) use record::RecordFile;
use record::{Record, identity, known_range, lock_output, metadata, stamp};
pub(super) use scan_axis::with_axis;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use summary::Summary;
pub(super) use summary::remarks_on;
use turns::Turns;

/// Runs `fbp reconstruct` to the end, or prints the plan.
///
/// `cancelled` is polled between pieces of work; a run that it stops leaves only whole slices behind.
pub fn reconstruct(args: ReconstructArgs, cancelled: &AtomicBool) -> Result<()> {
    let flags = merge(args, cancelled)?;
    match Division::new(&flags)? {
        Some(division) => reconstruct_turns(division, &flags, cancelled),
        None => reconstruct_scan(flags, None, cancelled),
    }
}

/// Runs a scan with flags that are merged with their run file; `name` is that of one of several scans.
///
/// # Errors
/// The errors of a run.
pub(super) fn reconstruct_scan(mut flags: ReconstructArgs, name: Option<&str>, cancelled: &AtomicBool) -> Result<()> {
    let start = Instant::now();
    let OpenScan { job, reporter, source, _search } = OpenScan::new(&mut flags, name, cancelled)?;
    save_config(&job, &source, &flags)?;
    check_output(&job, &source)?;
    let (job, source, axis) = with_axis(job, source, &reporter, |found| show_trials(found, &flags, &reporter))?;
    run_about(axis, &job, source, &flags, &reporter, (start, cancelled))
}

/// Runs a scan of many turns: one run for each window, about the axis of all.
///
/// # Errors
/// The errors of a run, the first of which ends all.
fn reconstruct_turns(division: Division, given: &ReconstructArgs, cancelled: &AtomicBool) -> Result<()> {
    let mut start = Instant::now();
    let mut flags = Division::undivided(given);
    let OpenScan { job, reporter, source, _search } = OpenScan::new(&mut flags, None, cancelled)?;
    let mut turns = Turns::new(division, &flags, &source)?;
    save_config(&job, &source, given)?;
    if !job.execution.dry_run {
        keep_devices();
        reporter.note(&turns.in_words());
    }
    let mut found = None;
    if matches!(job.recipe.scan.center, Center::Search(_) | Center::Ends(_)) {
        let (flags, job) = (&turns.of_axis.flags, Job::new(&turns.of_axis.flags)?);
        let part = source.part(&job)?;
        let (job, _, axis) = with_axis(job, part, &reporter, |found| show_trials(found, flags, &reporter))?;
        turns.about(&job, &axis);
        found = Some(axis);
    }
    reporter.refuse_doubts()?;
    let jobs = turns.jobs(&source)?;
    if job.execution.dry_run {
        results(&turns.describe())?;
    }
    for (run, job) in turns.runs.iter().zip(jobs) {
        if cancelled.load(Relaxed) {
            return Err(target_of(&job)?.interrupted());
        }
        let reporter = Reporter::of(&job.execution.messages)?.about(Some(&run.name)).after(&reporter);
        let source = source.part(&job)?;
        source.scan.remarks.iter().for_each(|remark| reporter.remark(remark.clone()));
        check_output(&job, &source)?;
        let axis = found.clone().unwrap_or_else(|| Axis::given(&source.scan));
        run_about(axis, &job, source, &run.flags, &reporter, (start, cancelled))?;
        if job.execution.dry_run {
            return Ok(());
        }
        start = Instant::now();
    }
    Ok(())
}

/// A scan whose input is open.
struct OpenScan {
    job: Job,
    reporter: Reporter,
    source: Source,
    /// Search for devices, which goes on while the input is opened.
    _search: Option<DeviceSearch>,
}

impl OpenScan {
    /// Makes the job, adds measures of the input to the flags, and opens the input.
    fn new(flags: &mut ReconstructArgs, name: Option<&str>, cancelled: &AtomicBool) -> Result<OpenScan> {
        let remarks = add_measures(&flags.input, &mut flags.steps, flags.pixel_size.is_some())?;
        let job = Job::new(flags)?;
        let reporter = Reporter::of(&job.execution.messages)?.about(name);
        remarks.into_iter().for_each(|remark| reporter.remark(remark));
        // not while files are awaited: drivers take memory of every device
        let _search = job.execution.watch.is_none().then(|| DeviceSearch::begin(&job.execution.devices));
        reporter.stage("opening the input");
        let source = Source::open(&job, &reporter, cancelled)?;
        Ok(OpenScan { job, reporter, source, _search })
    }
}

/// Returns the output of a job.
fn target_of(job: &Job) -> Result<&Target> {
    Ok(job.execution.output.as_ref().ok_or(ReconstructFlagError::NoOutput)?)
}

/// Refuses an output that would replace the input.
fn check_output(job: &Job, source: &Source) -> Result<()> {
    let Some(target) = &job.execution.output else { return Ok(()) };
    target.check_inputs(inputs(job, source), &source.scan.run_slices)
}

/// Runs a job about its axis to the end, or prints the plan.
fn run_about(
    axis: Axis,
    job: &Job,
    source: Source,
    flags: &ReconstructArgs,
    reporter: &Reporter,
    (start, cancelled): (Instant, &AtomicBool),
) -> Result<()> {
    let source = with_noise_weights(source, job, reporter)?;
    reporter.refuse_doubts()?;
    let (scan, shard) = (&source.scan, job.execution.shard);
    if job.execution.dry_run {
        reporter.clear();
        return print_plans(job, &source, reporter);
    }
    if let (Some(shard), true) = (shard, scan.slices.is_empty()) {
        reporter.note(&format!(
            "nothing to do: there are {} slices for the {} shards",
            scan.run_slices.len(),
            shard.count
        ));
        return Ok(());
    }
    Reconstruction { job, flags, source: &source, target: target_of(job)?, reporter, cancelled }.run(axis, start)
}

/// Writes the run file that `--save-config` requests.
fn save_config(job: &Job, source: &Source, flags: &ReconstructArgs) -> Result<()> {
    let Some(path) = &job.execution.save_config else { return Ok(()) };
    let overwrite = Some(job.execution.existing == Existing::Overwrite);
    let file = OutputFile::new("--save-config", path, OutputKind::Toml, &input_set(job, source), overwrite)?;
    file.write(format!("{TOML} --save-config`.\n{}", run_file(flags)?))
}

/// Writes trial slices about an axis that is in doubt to the page that `--report` requests.
fn show_trials(found: Aligned, flags: &ReconstructArgs, reporter: &Reporter) {
    let Aligned { job, source, search, .. } = found;
    let (Some(path), Some(range)) = (&job.execution.page, next_sweep(&search)) else { return };
    let overwrite = Some(job.execution.existing == Existing::Overwrite);
    let file = OutputFile::new("--report", path, OutputKind::Html, &input_set(&job, &source), overwrite);
    reporter.stage("reconstructing trial slices");
    match file.and_then(|file| trial_page(&job, &source, &range, flags, &file)) {
        Ok(()) => reporter.note(&format!("note: {} shows trial slices, --sweep {range}", path.shown())),
        Err(error) => reporter.note(&format!("note: no trial slices in {}: {error}", path.shown())),
    }
}

fn print_plans(job: &Job, source: &Source, reporter: &Reporter) -> Result<()> {
    let (devices, memory) = chosen(job, &source.scan)?;
    for found in &devices {
        let plan = plan_for(job, &source.scan, found, memory, reporter)?;
        let mut before = vec![("files", source.stack().file_names().to_string())];
        before.extend(source.preparation.describe());
        results(&plan.describe(job, &source.scan, &found.facts, &before))?;
    }
    Ok(())
}

/// A run whose output, devices and record are there.
struct ReadyRun<'a> {
    files: SideFiles,
    resolution: Option<Resolution>,
    devices: Vec<ReadyDevice>,
    finish: Finish,
    key: String,
    record: Record<'a>,
    overview: Option<Overview>,
    /// Slices that an earlier run has written.
    kept: Vec<usize>,
    /// Counts of replaced values.
    counts: Counts,
    /// Keeps other jobs from the output, to the end.
    _lock: OutputLock<'a>,
}

impl<'a> Reconstruction<'a> {
    /// Runs the job to the end: its slices, and what is said and written about them.
    fn run(self, axis: Axis, start: Instant) -> Result<()> {
        let (mut ready, writer) = self.prepare(&axis)?;
        match self.compute_missing(&mut ready, writer) {
            Ok(done) => self.finish(ready, axis, done, start),
            Err(error) => {
                let repairs = self.source.preparation.repairs(&ready.counts);
                let doubts = [self.reporter.doubts(), summary::doubts_about(self.job, &repairs)].concat();
                // the first error says more than a record that cannot be written
                let _ =
                    ready.record.fail(&error, ready.kept.len(), start.elapsed().as_secs_f64(), repairs.clamped, doubts);
                Err(error)
            }
        }
    }

    /// Makes the output, prepares the devices, and begins the record.
    fn prepare(self, axis: &Axis) -> Result<(ReadyRun<'a>, SliceWriter)> {
        let Reconstruction { job, source, target, reporter, .. } = self;
        let scan = &source.scan;
        // an output that cannot be written is detected before the devices are prepared
        let mut lock = lock_output(job, target, reporter)?;
        let writer = create_writer(job, scan, target)?;
        // the directories of these files may be the one just made
        let files = SideFiles::check(job, source, target)?;
        let resolution = self.resolution()?;
        reporter.stage("preparing devices");
        let mut devices = ready_devices(job, source, reporter)?;
        let finish = Finish::new(&job.recipe, scan.geometry.size);
        let identity = identity(job, source, &devices);
        let (writer, identity) = self.with_range(writer, identity, &mut devices[0], &finish)?;
        let key = identity.key();
        let writer = writer
            .stamped(stamp(job, source, &key))
            .of_scan(metadata(job, source))
            .shared(&scan.run_slices)
            .with_run_file(record::run_file_of(self.flags, job, scan.center)?);
        let record = Record::begin(self, &devices, &mut lock, &identity, axis)?;
        let overview = Overview::new(Wanted::by(job), scan.slices.clone(), scan.geometry.roi, &finish);
        let (kept, counts) = (Vec::new(), Counts::default());
        let ready = ReadyRun { _lock: lock, files, resolution, devices, finish, key, record, overview, kept, counts };
        Ok((ready, writer))
    }

    /// Computes and writes the slices that are not there yet.
    fn compute_missing(self, ready: &mut ReadyRun, mut writer: SliceWriter) -> Result<Done> {
        let Reconstruction { job, source, target, reporter, cancelled, .. } = self;
        let scan = &source.scan;
        if job.execution.existing == Existing::Resume {
            ready.kept = resume::kept(job, scan, target, &writer, &ready.key, reporter, cancelled)?;
            writer.keep(&ready.kept);
            if let Some(overview) = &ready.overview {
                overview.add_kept(&ready.kept, target, &scan.run_slices, writer.encoding(), cancelled)?;
            }
        }
        let is_missing = |slice: &usize| ready.kept.binary_search(slice).is_err();
        let missing: Vec<usize> = scan.slices.iter().copied().filter(is_missing).collect();
        ahead::warn_if_long(job, source, &mut ready.devices, missing.len(), reporter)?;
        self.compute(missing, ready, writer)
    }

    /// Says what was done, and writes the record and the files beside the slices.
    ///
    /// # Errors
    /// Errors of writing, and [`Error::Input`](crate::error::Error::Input) for slices of no data, or with doubts that are refused.
    fn finish(self, ready: ReadyRun, axis: Axis, done: Done, start: Instant) -> Result<()> {
        let Reconstruction { job, source, target, reporter, .. } = self;
        let ReadyRun { _lock, files, resolution, devices, key, record, overview, kept, counts, .. } = ready;
        let scan = &source.scan;
        let seconds = start.elapsed().as_secs_f64();
        let mut summary = Summary {
            job,
            devices: &devices,
            geometry: &scan.geometry,
            files: source.stack().file_names(),
            parts: source.parts(),
            axis,
            slices: scan.slices.len() - kept.len(),
            updates: scan.geometry.roi.pixels() as f64 * scan.geometry.projections() as f64,
            seconds,
            start: seconds - done.seconds,
            repairs: source.preparation.repairs(&counts),
            done: &done,
            resolution,
        };
        summary.warn(reporter);
        coarse::doubt(job, source, target, summary.slices > 0).into_iter().for_each(|doubt| reporter.remark(doubt));
        record.tell_earlier_doubts(kept.len(), reporter);
        record.end(&summary, kept.len(), reporter)?;
        // another job may be renaming the file at present, so that it cannot be read for a moment
        if let (Ok(unfinished @ 1..), run) = (target.unfinished_slices(), scan.run_slices.len()) {
            let path = target.path_of(0);
            reporter.note(&format!(
                "{} will appear when all of its slices are written: {unfinished} of {run} so far",
                path.shown()
            ));
        }
        let gathered = overview.map(Overview::gathered);
        self.write_files(&files, &done, gathered.as_ref(), &key)?;
        summary.seconds = start.elapsed().as_secs_f64();
        summary.tell(reporter);
        self.write_reports(&files, &summary, gathered.as_ref())?;
        let data = summary.repairs.clamped.expect_data(summary.repairs.values);
        leave(devices);
        data?;
        reporter.refuse_doubts()
    }

    /// Writes the requested files beside the slices, except the report.
    fn write_files(self, files: &SideFiles, done: &Done, gathered: Option<&Gathered>, key: &str) -> Result<()> {
        let Reconstruction { job, source, .. } = self;
        if let Some(file) = &files.preview {
            preview(file, job, source, done)?;
        }
        gathered.map_or(Ok(()), |gathered| gathered.write(files, &job.recipe.unit(), key))
    }

    /// Writes the requested reports: JSON, a page.
    fn write_reports(self, files: &SideFiles, summary: &Summary, gathered: Option<&Gathered>) -> Result<()> {
        if let Some(file) = &files.report {
            summary.write(file, self.flags, &self.reporter.doubts())?;
        }
        match (&files.page, gathered) {
            (Some(file), Some(gathered)) => self.write_page(file, gathered),
            _ => Ok(()),
        }
    }

    /// Writes the report as a page.
    fn write_page(self, file: &OutputFile, gathered: &Gathered) -> Result<()> {
        let Reconstruction { job, source, target, reporter, .. } = self;
        reporter.stage("writing the page");
        let record = RecordFile::read(&target.record())?;
        let written = RunPage { job, target, record: &record, gathered, source: Ok(source) }.write(file);
        reporter.clear();
        written
    }

    /// Sets the range that percentiles lead to, if percentiles are requested.
    fn with_range(
        self,
        writer: SliceWriter,
        identity: Identity,
        device: &mut ReadyDevice,
        finish: &Finish,
    ) -> Result<(SliceWriter, Identity)> {
        let Some(Scaling::Percentile(Interval { low, high })) = self.job.recipe.values.scaling else {
            return Ok((writer, identity));
        };
        let range = match known_range(self.target, &identity) {
            Some(range) => range,
            None => percentile_range(self.source, device, finish, low, high)?,
        };
        self.reporter.note(&format!(
            "percentiles {low} and {high} of sampled slices: {} and {}",
            significant(range.0),
            significant(range.1)
        ));
        Ok((writer.with_range(range)?, identity.with_range(range)))
    }

    /// Computes and writes slices.
    fn compute(self, slices: Vec<usize>, ready: &mut ReadyRun, writer: SliceWriter) -> Result<Done> {
        let Reconstruction { job, source, target, reporter, cancelled, .. } = self;
        let ReadyRun { devices, counts, finish, overview, .. } = ready;
        let roi = source.scan.geometry.roi;
        let observe = |slice: usize, seen: ObservedSlice| overview.iter().for_each(|o| o.add(slice, seen));
        let clock = StageClock::new(devices.len(), WRITERS);
        let run = Run {
            recipe: &job.recipe,
            source,
            slices: &slices,
            finish,
            reporter,
            cancelled,
            target,
            keep: job.execution.preview.as_ref().map(|_| middle(&source.scan.slices)),
            observer: Some(&observe),
            clock: &clock,
        };
        let updates = roi.pixels() as f64 * source.scan.geometry.projections() as f64;
        let mut progress = reporter.progress(slices.len(), updates, &clock);
        let outcome = run_stages(run, devices, writer, counts, &mut |n| progress.advance(n));
        progress.finish();
        outcome
    }
}

/// Checks the paths of the slices, makes their directory and returns their writer.
fn create_writer(job: &Job, scan: &Scan, target: &Target) -> Result<SliceWriter> {
    let values = &job.recipe.values;
    let range = values.scaling.map(|scaling| match scaling {
        Scaling::Fixed(Interval { low, high }) => (low as f32, high as f32),
        // replaced when the values are known
        Scaling::Percentile(_) => (0.0, 1.0),
    });
    let roi = scan.geometry.roi;
    let encoding = Encoding { dtype: values.dtype, range };
    SliceWriter::create(
        target.clone(),
        roi.width,
        roi.height,
        SliceStorage {
            encoding,
            compression: values.compression,
            ome_zarr: values.ome_zarr,
            hdf5_parts: values.hdf5_parts,
            content: PageContent::Slices,
        },
        &scan.slices,
        AllowedContents::new(
            job.execution.existing != Existing::Refuse,
            job.execution.shard.map(|_| scan.run_slices.as_slice()),
        ),
        SOFTWARE,
    )
}

/// Number of slices from which percentiles are taken.
const SAMPLED_SLICES: usize = 5;

/// Returns the values at two percentiles of some slices spread over the whole run; they do not depend on chunks or
/// shards.
fn percentile_range(
    source: &Source,
    device: &mut ReadyDevice,
    finish: &Finish,
    low: f64,
    high: f64,
) -> Result<(f32, f32)> {
    let slices = &source.scan.run_slices;
    let count = SAMPLED_SLICES.min(slices.len());
    let mut values = Vec::new();
    for sample in 0..count {
        let at = (2 * sample + 1) * slices.len() / (2 * count);
        let mut slice = device.engine.slice(source, slices[at])?;
        finish.apply(source.scan.geometry.roi, &mut slice);
        values.append(&mut slice);
    }
    let mut at = |percentile: f64| {
        let index = ((values.len() - 1) as f64 * percentile / 100.0).round() as usize;
        *values.select_nth_unstable_by(index, f32::total_cmp).1
    };
    let (low, high) = (at(low), at(high));
    // all values are equal: a range that holds them, however large they are
    Ok(if low < high { (low, high) } else { (low, low + low.abs().max(1.0)) })
}

fn preview(file: &OutputFile, job: &Job, source: &Source, done: &Done) -> Result<()> {
    let scan = &source.scan;
    let middle = middle(&scan.slices);
    let sinogram = source.read(&[middle], StepBackends::HOST)?;
    let roi = scan.geometry.roi;
    let slice = Panel {
        title: &format!("slice {middle}"),
        unit: &job.recipe.unit(),
        pixel: job.recipe.slice.pixel_size.as_ref().map(|size| (size.value, size.unit.as_str())),
        width: roi.width,
        height: roi.height,
        data: &done.kept,
    };
    let sinogram = Panel {
        title: if scan.lamino.is_some() { "sinogram of this row" } else { "its sinogram" },
        unit: "line integral",
        pixel: None,
        width: scan.geometry.bins,
        height: scan.geometry.projections(),
        data: &sinogram,
    };
    write_preview(file, &slice, &sinogram)
}
