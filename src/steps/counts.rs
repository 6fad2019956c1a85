//! What was replaced in the data, counted.

use super::defects::DefectCounts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::{Add, AddAssign};

/// Values that had to be replaced so that no slice is spoilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClampedCounts {
    /// Transmissions at or below 0, clamped to [`SMALLEST_TRANSMISSION`](super::SMALLEST_TRANSMISSION).
    pub non_positive: u64,
    /// Pixels whose flat field is not above the dark field, taken as transmission 1.
    pub dead: u64,
    /// Values that were NaN or infinite, taken as no attenuation.
    pub non_finite: u64,
}

impl ClampedCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.non_positive + self.dead + self.non_finite
    }
}

impl AddAssign for ClampedCounts {
    fn add_assign(&mut self, other: Self) {
        self.non_positive += other.non_positive;
        self.dead += other.dead;
        self.non_finite += other.non_finite;
    }
}

/// What the steps replaced in some of the data. Sums are the same in any order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    pub clamped: ClampedCounts,
    /// All values that were corrected, replaced or not.
    pub values: u64,
    /// Pixels that were outliers, replaced.
    pub outliers: u64,
    /// Counts that are the largest number of their sample type, taken as they are.
    pub saturated: u64,
    /// Projections with a row without any light.
    pub unlit: BTreeSet<usize>,
    pub defects: DefectCounts,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, mut other: Self) {
        self.clamped += other.clamped;
        self.values += other.values;
        self.outliers += other.outliers;
        self.saturated += other.saturated;
        self.unlit.append(&mut other.unlit);
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

/// What the data needed, or could not be mended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Repairs {
    pub clamped: ClampedCounts,
    /// All values that were corrected, replaced or not.
    pub values: u64,
    /// Rows of whose values more than 1 % were replaced, ascending.
    pub spoilt_rows: Vec<usize>,
    /// Row and bin of values that were replaced in most projections, ascending.
    pub failing_bins: Vec<(usize, usize)>,
    /// Pixels that were outliers, replaced.
    pub outliers: u64,
    /// Counts that are the largest number of their sample type, taken as they are.
    pub saturated: u64,
    /// The same of the mean or median flat field.
    pub saturated_flats: u64,
    /// Projections with a row without any light, ascending.
    pub unlit: Vec<usize>,
}
