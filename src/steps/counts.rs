//! Counts of replaced values.

use super::beam::BeamLevels;
use super::defects::DefectCounts;
use super::errors::FieldError;
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::{Add, AddAssign};

/// Numbers of values that were replaced because they would spoil slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClampedCounts {
    /// Transmissions at or below 0, clamped to [`SMALLEST_TRANSMISSION`](super::SMALLEST_TRANSMISSION).
    pub non_positive: u64,
    /// Pixels whose flat field is not above the dark field, taken as transmission 1.
    pub dead: u64,
    /// Values that were NaN, infinite or too large for the filter
    /// ([`largest_value`](crate::spectrum::largest_value)), taken as no attenuation.
    pub non_finite: u64,
}

impl ClampedCounts {
    /// Returns the total number of replaced values.
    pub fn total(&self) -> u64 {
        self.non_positive + self.dead + self.non_finite
    }

    /// Rejects a result of which most values were replaced, as it says nothing of the sample.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) with the numbers, of `values` that were corrected.
    pub fn expect_data(&self, values: u64) -> Result<()> {
        if 2 * self.total() <= values {
            return Ok(());
        }
        let (replaced, ClampedCounts { non_positive, dead, non_finite }) = (self.total(), *self);
        Err(FieldError::MostReplaced { replaced, values, non_positive, dead, non_finite }.into())
    }
}

impl AddAssign for ClampedCounts {
    fn add_assign(&mut self, other: Self) {
        self.non_positive += other.non_positive;
        self.dead += other.dead;
        self.non_finite += other.non_finite;
    }
}

/// Counts of the values that the steps replaced in a part of the data. Sums do not depend on the order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    pub clamped: ClampedCounts,
    /// Number of values that were corrected, replaced or not.
    pub values: u64,
    /// Number of outliers that were replaced.
    pub outliers: u64,
    /// Number of counts at the largest value of their sample type, which are not changed.
    pub saturated: u64,
    /// Projections with a row without any light.
    pub unlit: BTreeSet<usize>,
    /// Light of the projections, where -log is taken.
    pub beam: BeamLevels,
    pub defects: DefectCounts,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, mut other: Self) {
        self.clamped += other.clamped;
        self.values += other.values;
        self.outliers += other.outliers;
        self.saturated += other.saturated;
        self.unlit.append(&mut other.unlit);
        self.beam += other.beam;
        self.defects += other.defects;
    }
}

impl Add for Counts {
    type Output = Counts;

    fn add(mut self, other: Self) -> Counts {
        self += other;
        self
    }
}

/// Summary of replaced values and of defects in the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Repairs {
    pub clamped: ClampedCounts,
    /// Number of values that were corrected, replaced or not.
    pub values: u64,
    /// Rows in which more than 1 % of the values were replaced, ascending.
    pub spoilt_rows: Vec<usize>,
    /// Row and bin of values that were replaced in most projections, ascending.
    pub failing_bins: Vec<(usize, usize)>,
    /// Number of outliers that were replaced.
    pub outliers: u64,
    /// Number of counts at the largest value of their sample type, which are not changed.
    pub saturated: u64,
    /// Number of pixels of the mean or median flat fields at the largest value of their sample type.
    pub saturated_flats: u64,
    /// Projections without beam, or with a row without any light, ascending.
    pub unlit: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_which_most_is_replaced_are_refused() {
        let counts = ClampedCounts { non_positive: 30, dead: 20, non_finite: 10 };
        for values in [0, 60, 119] {
            let error = counts.expect_data(values).unwrap_err();
            assert!(error.exit_code() == 3 && error.to_string().contains("60 of"), "{error}");
        }
        assert!(counts.expect_data(120).is_ok() && ClampedCounts::default().expect_data(0).is_ok());
    }
}
