//! Tuning of the sizes of the work-groups of steps, one after another: each value is timed on the device, and the
//! results must be the same bit for bit.

use super::errors::StoppedTuneError;
use crate::device::{FoundDevice, Session};
use crate::digest::PartsDigest;
use crate::error::{Error, Result};
use crate::kernel::{Parameter, StepSizes};
use crate::measure::{
    SizeOutcome, SizeTrial, StepOperation, StepTiming, other_sizes, size_parameters, size_value, with_size,
};
use crate::report::Reporter;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Number of turns in the comparison of the best value with the shipped one.
const TURNS: usize = 3;

/// The search for sizes on one device, with all measurements.
pub struct SizeTuner<'a> {
    pub found: &'a FoundDevice,
    pub bins: usize,
    pub projections: usize,
    pub passes: usize,
    pub reporter: &'a Reporter,
    pub cancelled: &'a AtomicBool,
    /// Open session; `None` before the first trial and after an error.
    pub session: Option<Session>,
    /// Measurements in the order in which they were made.
    pub trials: Vec<SizeTrial>,
}

/// Returns the operation with which a size is timed.
fn operation_for(parameter: &Parameter) -> StepOperation {
    match parameter.name() {
        "sort-values" => StepOperation::SortColumns,
        "sort-items" => StepOperation::SortShortColumns,
        "outlier-items" | "outlier-rows" => StepOperation::RemoveOutliers,
        "image-columns" | "image-items" => StepOperation::FilterImages,
        _ => StepOperation::RunningMedians,
    }
}

impl SizeTuner<'_> {
    /// Tunes every size, starting from the sizes of the profile.
    ///
    /// # Errors
    /// [`Error::Interrupted`] after a signal, and errors of opening the device.
    pub fn search(&mut self, shipped: &StepSizes) -> Result<(StepSizes, Vec<SizeOutcome>)> {
        let (mut sizes, mut outcomes) = (shipped.clone(), Vec::new());
        for parameter in size_parameters() {
            let outcome = self.tune(&sizes, &parameter)?;
            sizes = with_size(&sizes, &parameter, outcome.tuned.value)?;
            outcomes.push(outcome);
        }
        Ok((sizes, outcomes))
    }

    /// Tunes one size.
    fn tune(&mut self, sizes: &StepSizes, parameter: &Parameter) -> Result<SizeOutcome> {
        let present = size_value(sizes, parameter)
            .ok_or_else(|| Error::Internal(format!("{} is not among the sizes of steps", parameter.key)))?;
        let (shipped, wanted) = self.trial(sizes, parameter, present, None)?;
        let mut best: Option<SizeTrial> = None;
        for value in other_sizes(sizes, parameter) {
            let (trial, _) = self.trial(sizes, parameter, value, wanted)?;
            let faster = |best: &SizeTrial| trial.seconds < best.seconds;
            if trial.seconds.is_some() && best.as_ref().is_none_or(faster) {
                best = Some(trial);
            }
        }
        let Some(best) = best else { return Ok(SizeOutcome::decide(shipped, None)) };
        // timed again in turns, so that noise does not decide
        let mut sides = [(shipped, Vec::new()), (best, Vec::new())];
        for turn in 0..TURNS {
            for at in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                let (side, seconds) = &mut sides[at];
                seconds.extend(self.trial(sizes, parameter, side.value, wanted)?.0.seconds);
            }
        }
        let [shipped, best] = sides.map(|(side, mut seconds)| {
            seconds.sort_by(f64::total_cmp);
            SizeTrial { seconds: (seconds.len() == TURNS).then(|| seconds[TURNS / 2]), ..side }
        });
        Ok(SizeOutcome::decide(shipped, Some(best)))
    }

    /// Times an operation with one value of a size. The operation's result must be `wanted`.
    fn trial(
        &mut self,
        sizes: &StepSizes,
        parameter: &Parameter,
        value: i64,
        wanted: Option<PartsDigest>,
    ) -> Result<(SizeTrial, Option<PartsDigest>)> {
        if self.cancelled.load(Relaxed) {
            return Err(StoppedTuneError::NoProfile.into());
        }
        let operation = operation_for(parameter);
        // after an error a driver may return nothing but errors: it is opened again
        let session = match self.session.take() {
            Some(session) => session,
            None => Session::open(self.found)?,
        };
        let session = session.with_step_sizes(with_size(sizes, parameter, value)?);
        let timed = operation.time(&session, self.bins, self.projections, self.passes);
        self.session = Some(session).filter(|_| timed.is_ok());
        let (seconds, result, reason) = match timed {
            Ok(StepTiming { result, .. }) if wanted.is_some_and(|wanted| wanted != result) => {
                (None, None, Some("it computes something else".to_owned()))
            }
            Ok(StepTiming { seconds, result }) => (Some(seconds), Some(result), None),
            Err(error) => (None, None, Some(error.to_string().lines().next().unwrap_or_default().to_owned())),
        };
        let trial = SizeTrial { size: parameter.key.clone(), value, operation: operation.to_string(), seconds, reason };
        let how = match (&trial.seconds, &trial.reason) {
            (Some(seconds), _) => format!("{:.3} ms", 1e3 * seconds),
            (None, reason) => format!("left out: {}", reason.as_deref().unwrap_or_default()),
        };
        self.reporter.note(&format!("{} {value}, {operation}: {how}", trial.size));
        self.trials.push(trial.clone());
        Ok((trial, result))
    }
}
