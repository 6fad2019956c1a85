//! The sizes of the work-groups of steps: what is tried, what is chosen, and the profile with them.

use super::super::text::{markdown, three_digits};
use super::profile::{TuningRun, compose_profile};
use crate::error::{Error, Result};
use crate::kernel::{Declared, Parameter, StepSizes};
use crate::profile::Profile;
use serde::Serialize;
use toml::Table;

/// Smallest gain for which a size is changed; less is noise.
const GAIN: f64 = 1.03;

/// A size that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeTrial {
    pub size: String,
    pub value: i64,
    pub operation: String,
    /// Seconds of a pass; `None` if the operation failed or computed something else than with the shipped sizes.
    pub seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The choice of one size: the shipped value unless another is clearly faster.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeOutcome {
    pub shipped: SizeTrial,
    pub tuned: SizeTrial,
}

impl SizeOutcome {
    /// Chooses `best` if it is faster by more than noise, else `shipped`.
    pub fn decide(shipped: SizeTrial, best: Option<SizeTrial>) -> SizeOutcome {
        let faster = |best: &SizeTrial| match (best.seconds, shipped.seconds) {
            (Some(best), Some(shipped)) => best * GAIN < shipped,
            (best, _) => best.is_some(),
        };
        SizeOutcome { tuned: best.filter(faster).unwrap_or_else(|| shipped.clone()), shipped }
    }

    fn is_gain(&self) -> bool {
        self.tuned.value != self.shipped.value
    }
}

/// Returns the sizes with another value of one.
///
/// # Errors
/// [`Error::Internal`] for a value that is none.
pub fn with_size(sizes: &StepSizes, parameter: &Parameter, value: i64) -> Result<StepSizes> {
    let internal = |e: &dyn std::fmt::Display| Error::Internal(format!("sizes of steps: {e}"));
    let table = Table::try_from(sizes).map_err(|e| internal(&e))?;
    parameter.replaced(&table, toml::Value::Integer(value)).try_into().map_err(|e: toml::de::Error| internal(&e))
}

/// Returns one of the sizes.
pub fn size_value(sizes: &StepSizes, parameter: &Parameter) -> Option<i64> {
    Table::try_from(sizes).ok().and_then(|table| parameter.value(&table).and_then(toml::Value::as_integer))
}

/// Returns the values other than the present one that tuning tries, the nearest first.
pub fn other_sizes(sizes: &StepSizes, parameter: &Parameter) -> Vec<i64> {
    let present = size_value(sizes, parameter);
    let mut values: Vec<i64> = parameter.tried.iter().filter_map(toml::Value::as_integer).collect();
    values.retain(|value| Some(*value) != present);
    values.sort_by_key(|value| (value - present.unwrap_or(0)).abs());
    values
}

/// Returns the sizes that are tuned, in order: all but the one on which rounding depends, as results are compared bit for bit.
pub fn size_parameters() -> Vec<Parameter> {
    StepSizes::parameters().into_iter().filter(|parameter| parameter.name() != "lamino-slices").collect()
}

/// Returns the profile with tuned sizes. Everything else is that of `earlier`, a profile tuned from the same one for
/// this device.
///
/// # Errors
/// Errors of generating its kernels.
pub fn compose_sizes(
    base: &Profile,
    earlier: Option<&Profile>,
    sizes: &StepSizes,
    outcomes: &[SizeOutcome],
    run: &TuningRun,
) -> Result<Profile> {
    let mut profile = compose_profile(base, earlier, &[], run)?;
    profile.source = match earlier.filter(|earlier| earlier.name == profile.name) {
        Some(earlier) => earlier.source.clone(),
        None => format!("sizes of steps, see [tuned]; the rest is profile {}: {}", base.name, base.source),
    };
    profile.step_sizes = sizes.clone();
    if let Some(tuned) = &mut profile.tuned {
        let [bins, projections, _] = run.problem;
        let milliseconds = |trial: &SizeTrial| trial.seconds.map_or("-".to_owned(), |s| three_digits(1e3 * s));
        let gains = outcomes.iter().filter(|outcome| outcome.is_gain()).map(|SizeOutcome { shipped, tuned }| {
            let (size, operation) = (&tuned.size, &tuned.operation);
            let times = [tuned, shipped].map(milliseconds);
            format!("{size} {}: {operation} {} instead of {} ms", tuned.value, times[0], times[1])
        });
        let gains: Vec<String> = gains.collect();
        let what = if gains.is_empty() { "no size was faster than the shipped one".into() } else { gains.join("; ") };
        tuned.steps =
            Some(format!("fbp {}, {}, {projections} projections of {bins} bins: {what}", run.version, run.date));
    }
    Ok(profile)
}

/// Returns the results as a Markdown table.
pub fn size_table(outcomes: &[SizeOutcome]) -> String {
    let mut lines = vec![["size", "timed", "shipped", "ms", "tuned", "ms"].map(str::to_owned).to_vec()];
    for SizeOutcome { shipped, tuned } in outcomes {
        let cells = |trial: &SizeTrial| {
            [trial.value.to_string(), trial.seconds.map_or("-".to_owned(), |s| three_digits(1e3 * s))]
        };
        let [shipped_cells, tuned_cells] = [shipped, tuned].map(cells);
        let names = [shipped.size.clone(), shipped.operation.clone()];
        lines.push(names.into_iter().chain(shipped_cells).chain(tuned_cells).collect());
    }
    markdown(&lines, &[2, 3, 4, 5])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(value: i64, seconds: Option<f64>) -> SizeTrial {
        SizeTrial { size: "row-items".into(), value, operation: "medians".into(), seconds, reason: None }
    }

    #[test]
    fn a_size_changes_only_for_a_clear_gain() {
        let chosen = |shipped, best| SizeOutcome::decide(trial(64, shipped), Some(trial(128, best))).tuned.value;
        assert_eq!(chosen(Some(1.0), Some(0.9)), 128);
        assert_eq!(chosen(Some(1.0), Some(0.98)), 64);
        assert_eq!(chosen(Some(1.0), None), 64);
        // the shipped one does not run here
        assert_eq!(chosen(None, Some(2.0)), 128);
    }

    #[test]
    fn every_size_is_tried_with_its_other_values() {
        let sizes = StepSizes::default();
        for parameter in size_parameters() {
            let (present, others) = (size_value(&sizes, &parameter).unwrap(), other_sizes(&sizes, &parameter));
            assert!(!others.contains(&present) && others.len() + 1 == parameter.tried.len(), "{}", parameter.key);
            let changed = with_size(&sizes, &parameter, others[0]).unwrap();
            assert_eq!(size_value(&changed, &parameter), Some(others[0]));
            assert_eq!(with_size(&changed, &parameter, present).unwrap(), sizes);
        }
    }
}
