//! Limits that an answer must keep to be certain.

/// Systematic error in bins, as standard deviation.
pub(super) const FLOOR: f64 = 0.05;
/// Largest standard deviation of an answer in bins of the detector, of which the systematic error may be more,
pub(super) const LIMIT: f64 = 0.2;
/// and least distance of its logarithm of the likelihood to that of any position more than [`APART`] bins away.
pub(in crate::center) const GAP: f64 = 8.0;
pub(super) const APART: f64 = 2.5;
/// With less distance the other position is named.
pub(super) const SHOWN: f64 = 4.0;
/// With a distance of this the limits are wider.
pub(super) const SURE: f64 = 25.0;
/// The same of an answer from data that fit no model.
pub(super) const CLEAR: f64 = 200.0;
/// Least probability that the axis lies within half a bin.
pub(super) const MASS: f64 = 0.99;
