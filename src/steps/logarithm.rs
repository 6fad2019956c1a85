//! -log: from transmissions to line integrals.

use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags};
use crate::error::Result;
use crate::numbers::ln;
use crate::operations::{LineIntegrals, RowCorrection};
use multiversion::multiversion;
use serde::{Deserialize, Serialize};

/// Smallest transmission of which -log is taken (13.8); smaller values are raised to it.
pub const SMALLEST_TRANSMISSION: f32 = 1e-6;

/// The choice whether -log is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Logarithm {
    /// Taken if there are flat fields.
    #[default]
    WithFlats,
    Always,
    Never,
}

impl Logarithm {
    /// Reports whether -log is taken of data with or without flat fields.
    pub fn is_taken(self, has_flats: bool) -> bool {
        match self {
            Logarithm::WithFlats => has_flats,
            Logarithm::Always => true,
            Logarithm::Never => false,
        }
    }
}

impl Step for Logarithm {
    fn flag(&self) -> &'static str {
        "minus-log"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        Ok(match (args.input.no_minus_log, args.input.minus_log) {
            (true, _) => Logarithm::Never,
            (_, true) => Logarithm::Always,
            _ => Logarithm::WithFlats,
        })
    }

    /// Returns `None`, as the value depends on the data, see [`Preparation::minus_log`](super::Preparation::minus_log).
    fn value(&self) -> Option<String> {
        None
    }

    fn describe(&self, data: &Data) -> Option<String> {
        data.minus_log.then(|| "-log".to_owned())
    }

    fn ready(&self, data: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        Ok(data.minus_log.then(|| Ready::Rows(Box::new(MinusLog))))
    }
}

/// The step that takes -log of every value.
pub(super) struct MinusLog;

impl RowStep for MinusLog {
    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        correction.after.push(&LineIntegrals);
        true
    }

    fn apply(&self, band: &mut Band, counts: &mut Counts) {
        let counted = band.counted.clone();
        for (row, line) in band.lines() {
            let non_positive = logarithms(line);
            if counted.contains(&row) {
                counts.defects.add(row, non_positive);
                counts.clamped.non_positive += non_positive;
            }
        }
    }
}

/// Takes -log of all values; returns how many were at or below 0. Also compiled for newer processors with wider
/// vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn logarithms(values: &mut [f32]) -> u64 {
    let mut non_positive = 0u32;
    for value in values {
        non_positive += u32::from(*value <= 0.0);
        *value = line_integral(*value);
    }
    non_positive.into()
}

/// Returns -log of a transmission.
#[inline(always)]
pub(super) fn line_integral(value: f32) -> f32 {
    -ln(if value > SMALLEST_TRANSMISSION { value } else { SMALLEST_TRANSMISSION })
}
