//! The kernel that replaces the shipped one: which may, which is the faster one, and the results as a table.

use super::super::text::{markdown, scientific, three_digits};
use super::space::{changes, describe_changes};
use crate::kernel::{KernelSpec, Mode, Offer};
use crate::margins::{margin, tie};
use crate::reference::Reads;

/// Returns the reason why a kernel must not replace the shipped one, if there is one: every mode keeps its
/// interpolation rule, and `precise` its margins.
pub fn forbids(mode: Mode, spec: &KernelSpec, shipped: &KernelSpec, bins: usize) -> Option<String> {
    if !spec.parameters.keeps_rule(spec.interpolation) {
        return Some("it interpolates between bins by a coarser rule, which is only used on request".into());
    }
    if mode == Mode::Fast {
        return None;
    }
    let (allowed, most) = (margin(spec).relative_rms, margin(shipped).relative_rms);
    if allowed > most {
        return Some(format!("its margin of {allowed:.0e} is wider than the {most:.0e} of the shipped kernel"));
    }
    (matches!(spec.reads(), Reads::Nearest(_)) && tie(spec, bins) > tie(shipped, bins))
        .then(|| "its positions are less exact than those of the shipped kernel".into())
}

/// A kernel with its speed.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedKernel {
    pub offer: Offer,
    /// Name of the generated source.
    pub kernel: String,
    /// Key of the generated source.
    pub key: String,
    /// Speed in GU/s; `None` for a kernel that is incorrect or does not run.
    pub speed: Option<f64>,
    /// Relative error; `None` if it was not measured.
    pub error: Option<f64>,
}

/// Result of the search for one interpolation and mode. The tuned kernel is the shipped one if none is faster.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub shipped: TimedKernel,
    pub tuned: TimedKernel,
}

impl Outcome {
    /// Chooses the faster kernel after a comparison in turns: the shipped kernel unless the other is faster.
    pub fn decide(shipped: TimedKernel, best: Option<TimedKernel>) -> Outcome {
        let faster =
            |side: &TimedKernel| side.speed.is_some_and(|speed| shipped.speed.is_none_or(|before| speed > before));
        let tuned = best.filter(faster).unwrap_or_else(|| shipped.clone());
        Outcome { shipped, tuned }
    }

    /// Returns the speed of the tuned kernel relative to the shipped one: 1 if that is kept, `None` if either has no
    /// speed.
    pub fn gain(&self) -> Option<f64> {
        Some(self.tuned.speed? / self.shipped.speed?)
    }

    /// Reports whether the profile changes.
    pub fn is_gain(&self) -> bool {
        self.tuned.offer != self.shipped.offer
    }
}

/// Returns the results as a Markdown table.
pub fn tuning_table(outcomes: &[Outcome]) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), three_digits);
    let mut lines = vec![
        ["interpolation", "mode", "shipped", "GU/s", "tuned", "GU/s", "gain", "error", "changed"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for o in outcomes {
        let name = |side: &TimedKernel| format!("{}, {} slices", side.offer.parameters.algorithm(), side.offer.slices);
        let changed =
            if o.is_gain() { describe_changes(&changes(&o.shipped.offer, &o.tuned.offer)) } else { "-".into() };
        lines.push(vec![
            o.shipped.offer.interpolation.to_string(),
            o.shipped.offer.mode.to_string(),
            name(&o.shipped),
            number(o.shipped.speed),
            name(&o.tuned),
            number(o.tuned.speed),
            o.gain().map_or("-".to_owned(), |gain| format!("{gain:.2}")),
            scientific(o.tuned.error),
            changed,
        ]);
    }
    markdown(&lines, &[3, 5, 6, 7])
}
