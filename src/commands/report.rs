//! `fbp report`: the page about a finished run.

use super::batch::batch_index;
use super::errors::{CommandFlagError, ReportInputError, ReportWarning};
use super::reconstruct::{Overview, RecordFile, RunPage, Wanted};
use crate::cli::ReportArgs;
use crate::engine::{Finish, Source};
use crate::error::{BoxedError, Error, Result};
use crate::files::{InputSet, OutputFile, OutputKind};
use crate::job::Job;
use crate::recipe::Scaling;
use crate::report::{Messages, ProgressKind, Reporter};
use crate::sink::{Encoding, RECORD_END, Target};
use crate::units::Interval;
use crate::visible::Shown;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Runs `fbp report`: writes the page from the record, the slices and, if it is still available, the input.
pub fn report(args: &ReportArgs, cancelled: &AtomicBool) -> Result<()> {
    let reporter = Reporter::new(Messages::verbosity(args.verbose, args.quiet), ProgressKind::None, None)?;
    if let Some(directory) = &args.index {
        let page = batch_index(directory)?;
        reporter.note(&format!("note: {} shows all scans", page.shown()));
        return Ok(());
    }
    let (Some(run), Some(output)) = (&args.run, &args.output) else {
        return Err(CommandFlagError::NoRun.into());
    };
    let page = OutputFile::new("--output", output, OutputKind::Html, &InputSet::new([run.as_path()]), None)?;
    let path = record_of(run)?;
    let record = RecordFile::read(&path)?;
    let job = Job::new(&record.flags)?;
    let target = target_of(&job, &path)?;
    let scan = record.facts.scan.as_ref().ok_or_else(|| Error::input(&path, ReportInputError::EarlierVersion))?;
    let run = scan.slices();
    let (there, gone): (Vec<usize>, Vec<usize>) = run.iter().partition(|&&slice| target.path_of(slice).exists());
    if there.is_empty() {
        return Err(Error::input(target.directory(), ReportInputError::NoSlices));
    }
    if let [first, ..] = gone[..] {
        reporter.note(&format!("warning: {}", ReportWarning::MissingSlices { count: gone.len(), first }));
    }
    let wanted = Wanted::of_page(&job.recipe);
    let finish = Finish::new(&job.recipe, scan.size);
    let overview = Overview::new(wanted, there.clone(), scan.region, &finish).ok_or(CommandFlagError::NoSlices)?;
    overview.add_kept(&there, &target, &run, encoding(&job, record.facts.range), cancelled)?;
    let gathered = overview.gathered();
    let source = input_of(&job, &record, cancelled)?;
    let source = match &source {
        Ok(source) => Ok(source),
        Err(why) => {
            reporter.note(&format!("note: the page has no sinogram and no axis search: {why}"));
            Err(why.to_string())
        }
    };
    RunPage { job: &job, target: &target, record: &record, gathered: &gathered, source }.write(&page)
}

/// Finds the record that a path refers to.
fn record_of(run: &Path) -> Result<PathBuf> {
    let mut beside = run.file_name().unwrap_or_default().to_owned();
    beside.push(RECORD_END);
    let beside = run.with_file_name(beside);
    if run.is_file() {
        return Ok(if beside.is_file() { beside } else { run.to_owned() });
    }
    let entries = run.read_dir().map_err(|error| Error::input(run, ReportInputError::Unreadable { error }))?;
    let is_record = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(RECORD_END));
    let mut records: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_record).collect();
    records.sort();
    match records.as_slice() {
        [one] => Ok(one.clone()),
        [] if beside.is_file() => Ok(beside),
        [] => Err(Error::input(run, ReportInputError::NoRecord)),
        several => {
            let (count, first) = (several.len(), several[0].shown());
            Err(Error::input(run, ReportInputError::SeveralRecords { count, first }))
        }
    }
}

/// Returns the present place of the slices of a record: beside it, wherever they were written.
fn target_of(job: &Job, record: &Path) -> Result<Target> {
    let written = job.execution.output.as_ref().ok_or_else(|| Error::input(record, ReportInputError::NoOutput))?;
    let here = record.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if written.fills_directory() {
        return Target::parse(&format!("{}/", here.display()));
    }
    let spec = written.to_string();
    let name = Path::new(&spec).file_name().unwrap_or_default();
    Target::parse(&here.join(name).to_string_lossy())
}

/// Returns the encoding of the slices.
fn encoding(job: &Job, range: Option<(f32, f32)>) -> Encoding {
    let fixed = match job.recipe.values.scaling {
        Some(Scaling::Fixed(Interval { low, high })) => Some((low as f32, high as f32)),
        _ => None,
    };
    Encoding { dtype: job.recipe.values.dtype, range: range.or(fixed) }
}

/// Opens the input of the run, or returns the reason why it is no longer available.
fn input_of(job: &Job, record: &RecordFile, cancelled: &AtomicBool) -> Result<Result<Source, BoxedError>> {
    match Source::open(job, &Reporter::silent(), cancelled) {
        Err(error @ Error::Interrupted(_)) => Err(error),
        Err(error) => Ok(Err(error.into())),
        Ok(source) if record.facts.is_input(&source.fingerprint()) => Ok(Ok(source)),
        Ok(_) => Ok(Err(ReportInputError::InputChanged.into())),
    }
}
