//! 360-degree scans with the axis near one end of the detector: opposite projections complete each other.

use super::errors::ExtendedFieldError;
use crate::error::Result;
use crate::numbers::brief;
use std::f64::consts::FRAC_PI_4;

/// Smallest number of bins that projections half a turn apart must both see.
const LEAST_OVERLAP: f64 = 4.0;

/// Widest gap in degrees between projections of a whole turn. With a wider gap, so much of the turn is missing that a
/// half turn or a wrong range of angles is more likely.
const WIDEST_GAP: f64 = 45.0;

/// An extension of rows of a whole turn for a slice whose radius is the longer side of the detector.
///
/// A row is padded with zeros on its shorter side until the axis is in its middle, and weighted: 2 where the opposite
/// projection sees nothing, 0 beyond the shorter side, and `2 sin^2(pi / 4 (1 + s / o))` where both see the sample, `s`
/// bins from the axis towards the longer side, with `o` bins from the axis to the end of the shorter side. The weights
/// of two coinciding rays sum to 2. Filter and back projection are linear, so extended rows give the same slice as the
/// complete rows that they add up to, without interpolation and for any angles of a whole turn.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtendedField {
    /// Number of bins of the detector.
    pub detector: usize,
    /// Number of bins of an extended row.
    pub bins: usize,
    /// Number of zeros before the detector's first bin.
    pub before: usize,
    /// Number of bins that projections half a turn apart both see.
    pub overlap: f64,
    /// Weights `[bin of the detector]` of each projection, or a single row of them if all have the same axis.
    weights: Vec<Vec<f32>>,
}

impl ExtendedField {
    /// Returns the extension for `detector` bins, with the nominal axis at `center` and that of each projection,
    /// including shifts, at `axis` (bins), at angles in degrees.
    ///
    /// # Errors
    /// A usage error when the angles do not cover a whole turn, or the shorter side is too short.
    pub fn new(detector: usize, center: f64, axis: &[f64], angles: &[f64]) -> Result<ExtendedField> {
        let gap = widest_gap(angles);
        if gap > WIDEST_GAP.max(4.0 * 360.0 / angles.len() as f64) {
            return Err(ExtendedFieldError::Gap { gap }.into());
        }
        let last = detector as f64 - 1.0;
        let shorter = axis.iter().map(|&a| a.min(last - a)).fold(f64::INFINITY, f64::min);
        if 2.0 * shorter < LEAST_OVERLAP {
            let (center, overlap, least) = (brief(center), (2.0 * shorter).max(0.0), LEAST_OVERLAP);
            return Err(ExtendedFieldError::Overlap { center, last, overlap, least }.into());
        }
        let to_the_right = center <= last / 2.0;
        let bins = 2 * center.max(last - center).ceil() as usize + 1;
        let before = if to_the_right { bins - detector } else { 0 };
        let row = |axis: f64| {
            let weight = |bin: usize| {
                let s = if to_the_right { bin as f64 - axis } else { axis - bin as f64 };
                2.0 * (FRAC_PI_4 * (1.0 + (s / shorter).clamp(-1.0, 1.0))).sin().powi(2)
            };
            (0..detector).map(|bin| weight(bin) as f32).collect::<Vec<_>>()
        };
        let same = axis.windows(2).all(|pair| pair[0] == pair[1]);
        let weights = axis[..if same { 1 } else { axis.len() }].iter().map(|&axis| row(axis)).collect();
        Ok(ExtendedField { detector, bins, before, overlap: 2.0 * shorter, weights })
    }

    /// Returns the weights `[bin of the detector]` of each projection, or a single row of them if all have the same
    /// axis.
    pub fn weights(&self) -> &[Vec<f32>] {
        &self.weights
    }

    /// Extends a sinogram in place. `values` starts with rows of the detector and has room for rows of `bins`.
    pub fn extend(&self, values: &mut [f32]) {
        for p in (0..values.len() / self.bins).rev() {
            let (from, to) = (p * self.detector, p * self.bins);
            // starting with the last row, so that no row is overwritten before it is moved
            values.copy_within(from..from + self.detector, to + self.before);
            let row = &mut values[to..to + self.bins];
            row[..self.before].fill(0.0);
            row[self.before + self.detector..].fill(0.0);
            let weights = &self.weights[p.min(self.weights.len() - 1)];
            row[self.before..].iter_mut().zip(weights).for_each(|(value, weight)| *value *= weight);
        }
    }
}

/// Returns the widest gap between angles on the circle, in degrees.
pub fn widest_gap(angles: &[f64]) -> f64 {
    let mut order: Vec<f64> = angles.iter().map(|a| a.rem_euclid(360.0)).collect();
    order.sort_by(f64::total_cmp);
    let (Some(first), Some(last)) = (order.first(), order.last()) else { return 360.0 };
    order.windows(2).map(|pair| pair[1] - pair[0]).fold(first + 360.0 - last, f64::max)
}

#[cfg(test)]
mod tests {
    use super::super::{AngleWeights, even_angles, weights};
    use super::*;

    const BINS: usize = 40;

    fn field(center: f64) -> ExtendedField {
        ExtendedField::new(BINS, center, &[center; 64], &even_angles(10.0, 360.0, 64)).unwrap()
    }

    #[test]
    fn opposite_rays_count_twice_together() {
        for center in [5.0, 7.3, 19.5, 30.25, 36.0] {
            let field = field(center);
            assert_eq!(field.bins % 2, 1);
            let axis = center + field.before as f64;
            assert!((axis - (field.bins as f64 - 1.0) / 2.0).abs() < 1.0);
            let mut ones = vec![0f32; field.bins];
            ones[..BINS].fill(1.0);
            field.extend(&mut ones);
            // at whole and half bins the mirror image of a bin is a bin
            if (2.0 * center).fract() == 0.0 {
                for bin in 0..field.bins {
                    let mirrored = 2.0 * axis - bin as f64;
                    let other = if mirrored < 0.0 { 0.0 } else { ones.get(mirrored as usize).copied().unwrap_or(0.0) };
                    // the outermost bin's opposite may be half a bin outside
                    assert!(
                        (ones[bin] + other - 2.0).abs() < 1e-6 || bin == 0 || bin + 1 == field.bins,
                        "{center} {bin}"
                    );
                }
            }
            let (low, high) = (ones.iter().copied().fold(9.0, f32::min), ones.iter().copied().fold(0.0, f32::max));
            assert!(low >= 0.0 && high <= 2.0 && (high == 2.0 || center == 19.5));
        }
    }

    #[test]
    fn rows_keep_their_order() {
        for center in [8.0, 31.0] {
            let field = field(center);
            let projections = 3;
            let mut values = vec![-7f32; projections * field.bins];
            for (i, value) in values[..projections * BINS].iter_mut().enumerate() {
                *value = i as f32;
            }
            field.extend(&mut values);
            for p in 0..projections {
                for bin in 0..BINS {
                    let expected = (p * BINS + bin) as f32 * field.weights[0][bin];
                    assert_eq!(values[p * field.bins + field.before + bin], expected);
                }
                let zeros = values[p * field.bins..(p + 1) * field.bins].iter().filter(|v| **v == 0.0).count();
                assert!(zeros >= field.bins - BINS);
            }
        }
    }

    #[test]
    fn what_is_no_whole_turn_or_has_no_overlap_is_refused() {
        let refused = |center: f64, angles: &[f64]| {
            ExtendedField::new(BINS, center, &vec![center; angles.len()], angles).unwrap_err().to_string()
        };
        assert!(refused(8.0, &even_angles(0.0, 180.0, 60)).contains("360-degree scan"));
        assert!(refused(8.0, &even_angles(0.0, 300.0, 60)).contains("65.00 degrees"));
        assert!(refused(1.5, &even_angles(0.0, 360.0, 60)).contains("share 3.0 bins"));
        assert!(refused(38.9, &even_angles(0.0, 360.0, 60)).contains("--center"));
        // some projections may be missing
        let mut some = even_angles(0.0, 360.0, 60);
        some.drain(4..10);
        assert!(ExtendedField::new(BINS, 8.0, &[8.0; 54], &some).is_ok());
    }

    #[test]
    fn weights_follow_the_axis_of_every_projection() {
        let axis: Vec<f64> = (0..90).map(|p| 9.0 + 0.1 * f64::from(p % 5)).collect();
        let field = ExtendedField::new(BINS, 9.0, &axis, &even_angles(0.0, 360.0, 90)).unwrap();
        assert_eq!(field.weights.len(), 90);
        assert!((field.overlap - 18.0).abs() < 1e-9);
        // one on the axis, whatever it is
        for (axis, weights) in axis.iter().zip(&field.weights) {
            let (i, w) = (*axis as usize, axis.fract() as f32);
            assert!((weights[i] * (1.0 - w) + weights[i + 1] * w - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn angles_far_from_each_other_weigh_by_the_whole_turn() {
        // an odd number: opposite angles lie between each other
        let angles = even_angles(0.0, 360.0, 5);
        for weight in weights(&angles, AngleWeights::Spacing, 360.0) {
            assert!((weight - std::f64::consts::PI / 5.0).abs() < 1e-12);
        }
        let uneven = weights(&[0.0, 180.0, 270.0], AngleWeights::Spacing, 360.0);
        assert!((uneven[0] - std::f64::consts::PI * 135.0 / 360.0).abs() < 1e-12);
    }
}
