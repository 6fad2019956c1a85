//! What the search of a slice needs to know of its rows.

use super::definition::energy;
use super::noise::noise;

/// What is known of the rows of a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScale {
    /// Deviation of their noise.
    pub sigma: f64,
    /// Sum of their squares.
    pub energy: f64,
}

impl RowScale {
    /// Returns the scale of rows of `bins` values.
    pub fn of(rows: &[f32], bins: usize) -> RowScale {
        RowScale { sigma: noise(rows, bins), energy: energy(rows) }
    }
}
