//! `fbp trials`: one or two flags of `fbp reconstruct` in steps, on one row.

use super::errors::{TrialFlagError, VaryError};
use super::set::{TrialSet, of_trials};
use super::shown::{TrialOutput, write_trials};
use super::vary::Varied;
use crate::cli::{OF_RUNS, ReconstructArgs, TrialsArgs};
use crate::commands::reconstruct::with_axis;
use crate::device::DeviceSearch;
use crate::engine::Source;
use crate::error::Result;
use crate::files::InputSet;
use crate::recipe::{Center, given, merge};
use crate::report::{Messages, Reporter};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use toml::Table;

/// Writes slices of one row by several values of one or two flags; returns a line about them.
///
/// # Errors
/// Errors of runs and of outputs.
pub fn trials(args: TrialsArgs, cancelled: &AtomicBool) -> Result<String> {
    let TrialsArgs { vary, tile, run } = args;
    refuse_flags_of_runs(&run)?;
    let varied = parsed(&vary)?;
    let flags = merge(*run, cancelled)?;
    let output = flags.output.clone().ok_or(TrialFlagError::NoOutput)?;
    let mut keys = of_trials(given(&flags)?);
    let set = TrialSet::new(&keys, varied.clone())?;
    let Some(job) = set.jobs.get(set.middle()).cloned() else { return Ok(String::new()) };
    let verbosity = Messages::verbosity(flags.verbose, flags.quiet);
    let reporter = Reporter::of(&Messages { verbosity, ..job.execution.messages.clone() })?;
    set.remarks.iter().for_each(|remark| reporter.remark(remark.clone()));
    let _search = DeviceSearch::begin(&job.execution.devices);
    // also files that other values name
    let files = set.jobs.iter().flat_map(|job| job.execution.files.all());
    let inputs = InputSet::new(files.chain(flags.config.as_deref()));
    let output =
        TrialOutput { path: Path::new(&output), overwrite: flags.overwrite, tile: tile.map(usize::from), inputs };
    reporter.stage("opening the input");
    let source = Source::open(&job, &reporter, cancelled).map_err(|error| set.in_trial(set.middle(), error))?;
    let given_axis = job.recipe.scan.center;
    let (job, source, axis) = with_axis(job, source, &reporter, drop)?;
    reporter.refuse_doubts()?;
    if matches!(given_axis, Center::Middle | Center::At(_)) {
        return write_trials(&set, &source, &output, &reporter);
    }
    // commands have the axis that was found
    keys.insert("center".to_owned(), axis.value.into());
    if varied.iter().all(|varied| varied.flag != "tilt") {
        keys.remove("tilt");
        keys.extend(job.recipe.steps.tilt.map(|tilt| ("tilt".to_owned(), tilt.degrees.into())));
    }
    write_trials(&TrialSet::new(&keys, varied)?, &source, &output, &reporter)
}

/// Reads which flags are varied.
fn parsed(vary: &[String]) -> Result<Vec<Varied>> {
    let varied: Vec<Varied> = vary.iter().map(|text| Varied::parse(text)).collect::<Result<_>>()?;
    match varied.as_slice() {
        [a, b] if a.flag == b.flag => Err(VaryError::SameFlag { flag: a.flag.clone() }.into()),
        [_] | [_, _] => Ok(varied),
        all => Err(VaryError::Flags { count: all.len() }.into()),
    }
}

/// Refuses flags that are about the slices of a run; what a run file says of them is left out.
fn refuse_flags_of_runs(run: &ReconstructArgs) -> Result<()> {
    let others = [("save-config", run.save_config.is_some()), ("dry-run", run.dry_run)];
    let others = others.into_iter().filter(|(_, is_given)| *is_given);
    let keys: Table = given(run)?.into_iter().chain(others.map(|(flag, _)| (flag.to_owned(), true.into()))).collect();
    match OF_RUNS.into_iter().find(|flag| keys.contains_key(*flag)) {
        Some(flag) => Err(TrialFlagError::OfRuns { flag: flag.to_owned() }.into()),
        None => Ok(()),
    }
}
