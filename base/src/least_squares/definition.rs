//! Grids, the band-limited interpolation of rows, and whether rows see all of a sample.

use crate::geometry::GridSides;
use std::f64::consts::PI;

/// Returns the side of the grid on which a slice of `size` pixels is computed: the smallest power of two, or three times
/// one if `sides` allow it, that is at least as large.
pub fn grid_length(size: usize, sides: GridSides) -> usize {
    let power = size.max(8).next_power_of_two();
    let thirds = power / 4 * 3;
    if sides == GridSides::Thirds && thirds >= size.max(8) { thirds } else { power }
}

/// Returns the Dirichlet kernel of the frequencies below the Nyquist frequency of `length` bins, which is left out:
/// `sin(pi (L - 1) t / L) / (L sin(pi t / L))`. Interpolates rows of period `length`; `t` is in bins.
pub fn dirichlet(t: f64, length: usize) -> f64 {
    let period = length as f64;
    let sine = (PI * t / period).sin();
    if sine.abs() < 1e-11 {
        // the limit; as L is even, it has the same sign at all multiples of the period
        return (period - 1.0) / period;
    }
    (PI * (period - 1.0) / period * t).sin() / (period * sine)
}

/// Returns the sum of the squares of rows.
pub fn energy(rows: &[f32]) -> f64 {
    rows.iter().map(|value| f64::from(*value).powi(2)).sum()
}

/// The end of a row is one of so many parts of it.
const END: usize = 50;

/// Quantile of magnitudes that stands for the largest values of rows.
const HIGH: f64 = 0.98;

/// Returns the larger of the mean values at both ends of rows of `bins` values, relative to their largest values: about 0 if
/// the detector sees all of the sample.
pub fn values_at_ends(rows: &[f32], bins: usize) -> f64 {
    let end = bins.div_ceil(END);
    let mut magnitudes: Vec<f32> = rows.iter().map(|value| value.abs()).collect();
    let place = (magnitudes.len() as f64 * HIGH) as usize;
    if place >= magnitudes.len() {
        return 0.0;
    }
    let high = f64::from(*magnitudes.select_nth_unstable_by(place, f32::total_cmp).1);
    let mean = |of: fn(&[f32], usize) -> &[f32]| {
        let values = rows.chunks_exact(bins).flat_map(|row| of(row, end));
        let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + f64::from(*value), count + 1));
        (sum / count.max(1) as f64).abs()
    };
    let largest = mean(|row, end| &row[..end]).max(mean(|row, end| &row[row.len() - end..]));
    if high > 0.0 { largest / high } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths() {
        let grids = |sides| [1, 8, 9, 12, 13, 400, 512, 2000, 2560].map(|size| grid_length(size, sides));
        assert_eq!(grids(GridSides::Thirds), [8, 8, 12, 12, 16, 512, 512, 2048, 3072]);
        assert_eq!(grids(GridSides::PowersOfTwo), [8, 8, 16, 16, 16, 512, 512, 2048, 4096]);
    }

    /// The sum of all frequencies below the Nyquist frequency, from the definition.
    #[test]
    fn the_kernel_is_a_sum_of_frequencies() {
        for length in [6usize, 16, 90] {
            for t in [0.0, 1.0, -2.5, 0.3, 7.77, length as f64, -3.0 * length as f64, 1e-13] {
                let half = length as i64 / 2 - 1;
                let sum: f64 = (-half..=half).map(|k| (2.0 * PI * k as f64 * t / length as f64).cos()).sum();
                let error = (dirichlet(t, length) - sum / length as f64).abs();
                assert!(error < 1e-12, "{length} {t}: {error}");
            }
        }
    }

    #[test]
    fn values_at_ends_tell_a_sample_that_is_cut_off() {
        let rows = |first: usize| -> Vec<f32> {
            (0..10).flat_map(|_| (0..100).map(|x| f32::from(u8::from((first..80).contains(&x))))).collect()
        };
        assert_eq!(values_at_ends(&rows(10), 100), 0.0);
        assert_eq!(values_at_ends(&rows(0), 100), 1.0);
        assert_eq!(values_at_ends(&[], 100), 0.0);
        assert_eq!(values_at_ends(&[0.0; 100], 100), 0.0);
    }
}
