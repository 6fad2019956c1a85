//! `fbp batch`: many scans, one after the other, each as `fbp reconstruct` runs it, with a file of their states and a page
//! that shows all of them.

mod errors;
mod failure;
mod index;
mod night;
mod runs;
mod scans;
mod state;
mod table;

pub use index::batch_index;

use super::reconstruct::reconstruct_scan;
use crate::cli::BatchArgs;
use crate::device::keep_devices;
use crate::error::{Error, Result};
use crate::report::{Reporter, failure_of, readable, results};
use crate::visible::visible;
use errors::{BatchWarning, FailedScansError, StoppedBatchError};
use night::Night;
use runs::{BatchRuns, ScanRun};
use state::{ScanEntry, ScanState};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// Runs `fbp batch`: every scan that is not done, also after others have failed.
///
/// # Errors
/// [`Error::CheckFailed`] if some scans failed; the kind of the first error if all did; [`Error::Interrupted`] after a
/// signal.
pub fn batch(args: BatchArgs, cancelled: &AtomicBool) -> Result<()> {
    let batch = BatchRuns::new(args, cancelled)?;
    let reporter = Reporter::of(&batch.messages)?;
    if batch.dry_run {
        return batch.runs.iter().try_for_each(|run| plan(run, cancelled));
    }
    keep_devices();
    if batch.runs.is_empty() {
        reporter.note(&format!("nothing to do: there are {} scans for the shards", batch.all));
        return Ok(());
    }
    let mut night = Night::open(&batch)?;
    let (todo, kept) = night.todo(&batch);
    if kept > 0 {
        reporter.note(&format!("{kept} of {} scans are done or have failed before", batch.runs.len()));
    }
    let mut printed = Ok(());
    for place in todo {
        let run = &batch.runs[place];
        if cancelled.load(Relaxed) {
            break;
        }
        let line = attempt(run, &batch, &mut night, cancelled, &reporter);
        // scans go on without it
        printed = printed.and_then(|()| results(&line));
        if night.entry(run).is_some_and(|entry| entry.state == ScanState::Stopped) {
            break;
        }
    }
    night.write()?;
    printed?;
    verdict(&batch, &night)
}

/// Prints the plan of a scan.
fn plan(run: &ScanRun, cancelled: &AtomicBool) -> Result<()> {
    results(&format!("scan            {} from {}\n", visible(&run.name), visible(&run.input)))?;
    reconstruct_scan(run.flags.clone(), Some(&run.name), cancelled)?;
    results("\n")
}

/// Runs a scan, writes what became of it, and returns its line for stdout. A state or a page that cannot be written stops
/// no scan: both are written again after the next one.
fn attempt(run: &ScanRun, batch: &BatchRuns, night: &mut Night, cancelled: &AtomicBool, reporter: &Reporter) -> String {
    let told = |written: Result<()>| {
        written.unwrap_or_else(|error| {
            reporter.note(&format!("warning: {}", BatchWarning::NotWritten { error }));
        });
    };
    told(night.begin(run));
    let start = Instant::now();
    let flags = night.flags(run, batch.resume);
    let outcome = flags.and_then(|flags| reconstruct_scan(flags, Some(&run.name), cancelled));
    if let Err(error) = &outcome {
        failure_of(&run.name, error);
    }
    told(night.end(run, &outcome, start.elapsed().as_secs_f64()));
    let width = batch.runs.iter().map(|run| run.name.chars().count()).max().unwrap_or(0).min(40);
    night.entry(run).map(|entry| row(entry, width)).unwrap_or_default()
}

/// Returns the line about a scan on stdout.
fn row(entry: &ScanEntry, width: usize) -> String {
    let seconds = entry.seconds.unwrap_or_default();
    let seconds = if seconds < 60.0 { format!("{seconds:.2} s") } else { readable(seconds) };
    let mut line = format!("{:width$}  {:7}  {seconds:>11}", visible(&entry.name), entry.state.to_string());
    if let Some(axis) = &entry.axis {
        let deviation = axis.uncertainty.map(|sd| format!(" +- {sd:.3}")).unwrap_or_default();
        line += &format!("  axis {:.3}{deviation} ({})", axis.value, axis.method);
    }
    match entry.doubts.len() {
        0 => {}
        1 => line += "  1 doubt",
        several => line += &format!("  {several} doubts"),
    }
    if let Some(error) = &entry.error {
        let first = error.message.lines().next().unwrap_or_default();
        line += &format!("  exit code {}: {}", error.exit_code, visible(first));
    }
    line + "\n"
}

/// Returns the outcome of the whole batch.
fn verdict(batch: &BatchRuns, night: &Night) -> Result<()> {
    let entries: Vec<&ScanEntry> = batch.runs.iter().filter_map(|run| night.entry(run)).collect();
    let count = |state: ScanState| entries.iter().filter(|entry| entry.state == state).count();
    let (done, failed) = (count(ScanState::Done), count(ScanState::Failed));
    let count = entries.len();
    if done + failed < count {
        return Err(StoppedBatchError::ScansLeft { done, count }.into());
    }
    let first = entries.iter().find_map(|entry| Some((entry, entry.error.as_ref()?)));
    let Some((entry, error)) = first.filter(|_| failed > 0) else { return Ok(()) };
    let (first, page) = (entry.name.clone(), night.page().display().to_string());
    if done > 0 {
        return Err(FailedScansError::SomeFailed { failed, count, first, page }.into());
    }
    let failed = FailedScansError::AllFailed { failed, first, page };
    Err(match error.exit_code {
        2 => Error::Usage(failed.into()),
        3 => Error::Input(failed.into()),
        5 => Error::Output(failed.into()),
        1 => Error::CheckFailed(failed.into()),
        _ => Error::Device(failed.into()),
    })
}
