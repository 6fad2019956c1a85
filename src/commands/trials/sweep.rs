//! Trial slices about several axes: `fbp center --sweep`, and the page of a run whose axis is in doubt.

use super::errors::TrialSweepError;
use super::set::{TrialSet, of_trials};
use super::shown::{ShownTrials, TrialOutput, side, write_trials};
use super::vary::{MOST, Varied, spaced};
use crate::cli::{CenterArgs, ReconstructArgs};
use crate::engine::Source;
use crate::error::Result;
use crate::files::{InputSet, OutputFile};
use crate::job::Job;
use crate::recipe::given;
use crate::report::Reporter;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Smallest step of a sweep in bins, so that file names differ.
const FINEST: f64 = 0.01;

/// Writes the slices of the middle row about the axes of a sweep.
///
/// # Errors
/// Errors of runs and of outputs.
pub(in crate::commands) fn sweep(
    job: &Job,
    args: &CenterArgs,
    range: &str,
    output: &Path,
    reporter: &Reporter,
) -> Result<String> {
    let flags = ReconstructArgs {
        input: args.input.clone(),
        scan: args.scan.clone(),
        steps: args.steps.clone(),
        pixel_size: args.pixel_size.clone(),
        device: args.device.clone(),
        rows: args.rows.clone(),
        ..ReconstructArgs::default()
    };
    let axes = Varied::axes(&positions(range)?)?;
    let set = TrialSet::new(&of_trials(given(&flags)?), vec![axes])?;
    let inputs = InputSet::new(job.execution.files.all());
    let output = TrialOutput { path: output, overwrite: args.overwrite, tile: args.tile.map(usize::from), inputs };
    let source = Source::open(job, reporter, &AtomicBool::new(false))?;
    write_trials(&set, &source, &output, reporter)
}

/// Writes a page with trial slices of the middle row of a scan that is open; `flags` are those of the run.
///
/// # Errors
/// As a run.
pub(in crate::commands) fn trial_page(
    job: &Job,
    source: &Source,
    range: &str,
    flags: &ReconstructArgs,
    file: &OutputFile,
) -> Result<()> {
    let mut keys = of_trials(given(flags)?);
    // the tilt of these slices, also where it was found
    keys.remove("tilt");
    keys.extend(job.recipe.steps.tilt.map(|tilt| ("tilt".to_owned(), tilt.degrees.into())));
    let set = TrialSet::new(&keys, vec![Varied::axes(&positions(range)?)?])?;
    let reporter = Reporter::silent();
    ShownTrials::of(&set, source, side(None, true, &set)?, &reporter, |_, _| Ok(()))?.write_page(file, &reporter)
}

/// Reads `A..B:S`: from A to at most B, in bins.
fn positions(text: &str) -> Result<Vec<f64>> {
    let parts = text.split_once("..").and_then(|(first, rest)| Some((first, rest.split_once(':')?)));
    let (first, (end, step)) = parts.ok_or_else(|| TrialSweepError::Malformed { text: text.into() })?;
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let (Some(first), Some(end), Some(step)) = (number(first), number(end), number(step)) else {
        return Err(TrialSweepError::NotANumber { text: text.into() }.into());
    };
    if step < FINEST {
        return Err(TrialSweepError::StepTooSmall { text: text.into(), finest: FINEST }.into());
    }
    if !(0.0..MOST as f64).contains(&((end - first) / step + 1e-6)) {
        return Err(TrialSweepError::Positions { text: text.into(), most: MOST }.into());
    }
    Ok(spaced(first, end, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_read() {
        assert_eq!(positions("10..12:0.5").unwrap(), [10.0, 10.5, 11.0, 11.5, 12.0]);
        assert_eq!(positions(" 0.25 .. 1 : 0.5 ").unwrap(), [0.25, 0.75]);
        assert_eq!(positions("7..7:1").unwrap(), [7.0]);
        for wrong in ["", "1..2", "2..1:1", "1..2:0", "1..2:-1", "1..x:1", "0..1e9:1", "0..1:NaN"] {
            assert_eq!(positions(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
