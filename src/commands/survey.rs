//! JSON of the results of the methods that find the axis.

use crate::axis::Sampled;
use crate::center::{AxisEstimate, AxisSurvey};
use serde_json::{Value, json};

/// Returns the estimate of one method as JSON.
pub(super) fn estimate_json(f: &AxisEstimate) -> Value {
    json!({
        "method": f.method.name(),
        "value": f.value,
        "uncertainty": f.uncertainty,
        "mass": f.mass,
        "verdict": f.verdict.to_string(),
    })
}

/// Returns the result of every method on its own as JSON, with its costs, or the reason why it does not suit the scan.
pub(super) fn survey_json(sampled: &Sampled, range: Option<(f64, f64)>) -> Value {
    let (found, note) = sampled.survey(range);
    let one = |AxisSurvey { method, outcome }: &AxisSurvey| match outcome {
        Ok((found, costs)) => {
            let mut method = estimate_json(found);
            method["whole"] = json!(costs.whole);
            method["near"] = json!(costs.near);
            method
        }
        Err(why) => json!({ "method": method.name(), "reason": why.to_string() }),
    };
    json!({ "rows": sampled.rows, "note": note, "methods": found.iter().map(one).collect::<Vec<_>>() })
}
