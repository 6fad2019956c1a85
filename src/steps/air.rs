//! The beam's changes from projection to projection: transmissions are divided by those of an air region.

use crate::error::{Error, Result};
use crate::geometry::Roi;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where there is nothing but air in every projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Air {
    /// So many bins at the left and at the right end of each row; one of them may be 0.
    Sides(usize, usize),
    /// A region of the projection, in pixels.
    Region(Roi),
}

/// As `--normalize-air` takes it.
impl fmt::Display for Air {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Air::Sides(left, right) => write!(f, "{left},{right}"),
            Air::Region(region) => region.fmt(f),
        }
    }
}

impl Air {
    /// Whether projections of `bins` x `rows` hold it.
    ///
    /// # Errors
    /// [`Error::Usage`] when they do not.
    pub fn check(&self, bins: usize, rows: usize) -> Result<()> {
        let (fits, what) = match *self {
            Air::Sides(left, right) => (left.saturating_add(right) <= bins, format!("{left} and {right} bins")),
            Air::Region(Roi { x, y, width, height }) => (
                x.saturating_add(width) <= bins && y.saturating_add(height) <= rows,
                format!("{width}x{height} pixels at {x},{y}"),
            ),
        };
        match fits {
            true => Ok(()),
            false => Err(Error::usage(format!("--normalize-air: {what} do not fit into projections of {bins}x{rows}"))),
        }
    }
}

/// Divides a row of transmissions by the line through the means of its `left` and `right` outermost bins, each at the
/// middle of its bins; by one mean where the other side has no bins. A row without light there stays as it is.
pub(super) fn normalize_sides(row: &mut [f32], left: usize, right: usize) {
    let bins = row.len();
    let level = |values: &[f32]| mean(values).filter(|level| *level > 0.0);
    let (start, end) = match (left, right) {
        (0, _) => (level(&row[bins - right..]), level(&row[bins - right..])),
        (_, 0) => (level(&row[..left]), level(&row[..left])),
        _ => (level(&row[..left]), level(&row[bins - right..])),
    };
    if let (Some(start), Some(end)) = (start, end) {
        let from = (left as f64 - 1.0) / 2.0;
        let span = (bins as f64 - 1.0 - (right as f64 - 1.0) / 2.0 - from).max(1.0);
        let (start, change) = (start as f32, (end - start) as f32);
        let (from, per_bin) = (from as f32, (1.0 / span) as f32);
        for (bin, value) in (0i32..).zip(row) {
            // not beyond the middles, so that a level stays between the two
            let share = ((bin as f32 - from) * per_bin).clamp(0.0, 1.0);
            *value /= start + share * change;
        }
    }
}

/// The mean, of some finite values.
pub(super) fn mean(values: &[f32]) -> Option<f64> {
    let sum = values.iter().map(|v| f64::from(*v)).sum::<f64>();
    Some(sum / values.len() as f64).filter(|mean| mean.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sloping_beam_becomes_even() {
        let bins = 101;
        let beam = |b: usize| 0.8 + 0.004 * b as f64;
        let sample = |b: usize| if (40..60).contains(&b) { 0.3 } else { 1.0 };
        let make = || (0..bins).map(|b| (beam(b) * sample(b)) as f32).collect::<Vec<f32>>();
        let mut row = make();
        normalize_sides(&mut row, 11, 5);
        let error = |row: &[f32], b: usize| (f64::from(row[b]) - sample(b)).abs();
        assert!((5..99).all(|b| error(&row, b) < 1e-6), "between the middles the slope is known");
        assert!((0..bins).all(|b| error(&row, b) < 0.03));
        let mut one_sided = make();
        normalize_sides(&mut one_sided, 1, 0);
        assert!((one_sided[0] - 1.0).abs() < 1e-6 && (f64::from(one_sided[100]) - 1.5).abs() < 1e-6);
    }

    #[test]
    fn no_light_changes_nothing() {
        let mut row = [0.0, 0.0, 0.5, 0.0];
        normalize_sides(&mut row, 2, 1);
        assert_eq!(row, [0.0, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn regions_must_fit() {
        assert!(Air::Sides(3, 5).check(8, 1).is_ok());
        assert!(Air::Sides(usize::MAX, 5).check(8, 1).is_err());
        assert!(Air::Region(Roi { x: 2, y: 3, width: 6, height: 2 }).check(8, 5).is_ok());
        let message = Air::Region(Roi { x: 2, y: 4, width: 6, height: 2 }).check(8, 5).unwrap_err().to_string();
        assert!(message.contains("--normalize-air"), "{message}");
    }
}
