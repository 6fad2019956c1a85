//! Values for tests, the size of the detector that has them, and how far they are from others.

/// Number of bins: odd, and more than a work-group has items.
pub(super) const BINS: usize = 141;
/// Number of projections.
pub(super) const PROJECTIONS: usize = 83;
/// Number of rows of the detector.
pub(super) const ROWS: usize = 9;

/// Returns a value from 0 to 1 for a number: noise that is the same everywhere.
pub(crate) fn noise(number: usize) -> f64 {
    (number as f64 * 0.754_877_666_246_7).fract()
}

/// Returns the largest difference of values, relative to the largest magnitude of those that are wanted.
pub(super) fn farthest(got: &[f32], want: &[f64]) -> f64 {
    let range = want.iter().fold(f64::MIN_POSITIVE, |most, value| most.max(value.abs()));
    largest(got.iter().zip(want).map(|(got, want)| (f64::from(*got) - want).abs() / range))
}

/// Returns the largest error; one that is not a number is as wrong as can be.
pub(super) fn largest(errors: impl Iterator<Item = f64>) -> f64 {
    errors.map(|error| if error.is_nan() { f64::INFINITY } else { error }).fold(0.0, f64::max)
}
