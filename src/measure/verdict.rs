//! Verdicts on kernels, and on everything else that a device is checked for.

use serde::Serializer;
use std::fmt;

/// Result of checking a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The error is within the margin.
    Correct,
    /// The error is beyond the margin.
    Incorrect,
    /// The kernel could not be built or run.
    Failed(String),
    /// The device is too small for the kernel.
    Skipped(String),
}

impl Verdict {
    /// Reports whether the kernel failed the check.
    pub fn is_bad(&self) -> bool {
        matches!(self, Verdict::Incorrect | Verdict::Failed(_))
    }

    /// Returns the reason why there are no numbers, if there is one.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Failed(reason) | Verdict::Skipped(reason) => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Correct => "right",
            Verdict::Incorrect => "WRONG",
            Verdict::Failed(_) => "FAILED",
            Verdict::Skipped(_) => "skipped",
        })
    }
}

pub(crate) fn verdict_word<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&verdict.to_string().to_lowercase())
}
