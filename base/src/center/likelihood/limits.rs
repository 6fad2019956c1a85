//! Limits that an answer must keep to be certain.

/// Systematic error in bins, as standard deviation.
pub(super) const FLOOR: f64 = 0.05;
/// Largest standard deviation of an answer in bins of the detector; the systematic error may be more.
pub(super) const LIMIT: f64 = 0.2;
/// Least distance between the logarithm of an answer's likelihood and that of any position more than [`APART`] bins away.
pub(in crate::center) const GAP: f64 = 8.0;
/// Distance in bins from which on another position is another answer.
pub(super) const APART: f64 = 2.5;
/// Distance of the logarithms below which the message names the other position.
pub(super) const SHOWN: f64 = 4.0;
/// Distance of the logarithms from which on the limits are wider.
pub(super) const SURE: f64 = 25.0;
/// Distance of the logarithms from which on they are wider for an answer from data that fit no model.
pub(super) const CLEAR: f64 = 200.0;
/// Least probability that the axis lies within half a bin.
pub(super) const MASS: f64 = 0.99;
