//! Facts about rows that the search of a slice needs.

use super::definition::energy;
use super::noise::noise;
use std::borrow::Cow;

/// Facts about the rows of a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowScale {
    /// Root of the mean variance of their noise, times their weights.
    pub sigma: f64,
    /// Sum of their squares, times their weights.
    pub energy: f64,
}

impl RowScale {
    /// Returns the scale of rows of `bins` values, one a projection, with the weights of the projections if they differ.
    pub fn of(rows: &[f32], bins: usize, weights: Option<&[f64]>) -> RowScale {
        let rows = weighted(rows, bins, weights);
        RowScale { sigma: noise(&rows, bins), energy: energy(&rows) }
    }
}

/// Returns rows of `bins` values times the roots of their weights.
pub fn weighted<'a>(rows: &'a [f32], bins: usize, weights: Option<&[f64]>) -> Cow<'a, [f32]> {
    let Some(weights) = weights else { return Cow::Borrowed(rows) };
    let row = |(row, weight): (&'a [f32], &f64)| {
        let root = weight.sqrt() as f32;
        row.iter().map(move |value| value * root)
    };
    Cow::Owned(rows.chunks_exact(bins).zip(weights).flat_map(row).collect())
}
