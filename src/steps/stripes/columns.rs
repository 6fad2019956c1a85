//! Shared functions: medians and Gaussians along rows, low frequencies and sorting along columns.

use crate::spectrum::LowPass;
use crate::steps::outliers::mirrored;

/// Side of tiles for transposing.
const TILE: usize = 32;
/// Number of columns whose frequencies are summed together.
const STRIP: usize = 128;

/// Transposes `[row][column]`, with rows of `columns`, to `[column][row]`.
pub fn transpose(values: &[f32], columns: usize, out: &mut [f32]) {
    let rows = values.len() / columns;
    for top in (0..rows).step_by(TILE) {
        for left in (0..columns).step_by(TILE) {
            for column in left..(left + TILE).min(columns) {
                for row in top..(top + TILE).min(rows) {
                    out[column * rows + row] = values[row * columns + column];
                }
            }
        }
    }
}

/// Median of the `size` (odd) values around each of `values`, which are finite and mirrored at the ends.
pub fn running_median(values: &[f32], size: usize, window: &mut Vec<f32>, out: &mut [f32]) {
    let (count, reach) = (values.len(), (size / 2) as isize);
    let at = |place: isize| {
        if (0..count as isize).contains(&place) { values[place as usize] } else { values[mirrored(place, count)] }
    };
    window.clear();
    window.extend((-reach..=reach).map(at));
    window.sort_unstable_by(f32::total_cmp);
    for (place, median) in out.iter_mut().enumerate() {
        *median = window[size / 2];
        let (old, new) = (at(place as isize - reach), at(place as isize + reach + 1));
        // the position of the old value moves to that of the new one
        let from = window.partition_point(|v| v.total_cmp(&old).is_lt());
        let to = window.partition_point(|v| v.total_cmp(&new).is_lt());
        if to > from {
            window.copy_within(from + 1..to, from);
            window[to - 1] = new;
        } else {
            window.copy_within(to..from, to + 1);
            window[to] = new;
        }
    }
}

/// A Gaussian of standard deviation `sigma`, truncated at 4 sigma, 1 in the middle.
pub fn gaussian_weights(sigma: f64) -> Vec<f64> {
    let reach = (4.0 * sigma + 0.5) as isize;
    (-reach..=reach).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp()).collect()
}

/// A profile smoothed with the Gaussian of [`gaussian_weights`]; mirrored at the ends.
pub fn gaussian(profile: &[f64], sigma: f64) -> Vec<f64> {
    let weights = gaussian_weights(sigma);
    let reach = (weights.len() / 2) as isize;
    let total: f64 = weights.iter().sum();
    let wide: Vec<f64> =
        (-reach..profile.len() as isize + reach).map(|i| profile[mirrored(i, profile.len())]).collect();
    wide.windows(weights.len()).map(|near| weights.iter().zip(near).map(|(w, v)| w * v).sum::<f64>() / total).collect()
}

/// The columns' low frequencies: `exp(-k^2 / (2 sigma^2))` of frequency `k`, in periods over the `lines.len()` samples of
/// a column. Sample `i` of a column is in row `lines[i]` of `values`, `[row][column]`; samples `wanted` come out.
///
/// So few frequencies remain that direct sums cost less than transforms.
pub fn low_frequencies(
    values: &[f32],
    columns: usize,
    lines: &[usize],
    wanted: std::ops::Range<usize>,
    sigma: f64,
) -> Vec<f32> {
    let n = lines.len();
    let LowPass { waves, weights } = LowPass::new(n, sigma);
    let mut out = vec![0f32; wanted.len() * columns];
    let mut sums = vec![[[0f32; STRIP]; 2]; weights.len()];
    for left in (0..columns).step_by(STRIP) {
        let width = STRIP.min(columns - left);
        sums.fill([[0.0; STRIP]; 2]);
        let mut samples = [0f32; STRIP];
        for (i, line) in lines.iter().enumerate() {
            samples[..width].copy_from_slice(&values[line * columns + left..][..width]);
            for (k, [re, im]) in sums.iter_mut().enumerate() {
                let [cos, sin] = waves[i * k % n];
                for ((re, im), v) in re.iter_mut().zip(im).zip(&samples) {
                    *re += cos * v;
                    *im += sin * v;
                }
            }
        }
        for (parts, weight) in sums.iter_mut().zip(&weights) {
            parts.iter_mut().flatten().for_each(|v| *v *= weight);
        }
        for (i, row) in wanted.clone().zip(out.chunks_mut(columns)) {
            let mut samples = [0f32; STRIP];
            for (k, [re, im]) in sums.iter().enumerate() {
                let [cos, sin] = waves[i * k % n];
                for ((v, re), im) in samples.iter_mut().zip(re).zip(im) {
                    *v += cos * re + sin * im;
                }
            }
            row[left..left + width].copy_from_slice(&samples[..width]);
        }
    }
    out
}

/// Sorts each column of `sinogram`, `[projection][bin]`, in ascending order, passes the result, `[rank][bin]`, to
/// `change`, and restores the original order.
///
/// N. T. Vo, R. C. Atwood, M. Drakopoulos, *Superior techniques for eliminating ring artifacts in X-ray
/// micro-tomography*, Optics Express 26 (2018) 28396, section 3.1. Equal values keep their order.
pub fn sorted(sinogram: &mut [f32], bins: usize, change: impl FnOnce(&mut [f32])) {
    let projections = sinogram.len() / bins;
    let mut columns = vec![0f32; sinogram.len()];
    let mut order = vec![0u32; sinogram.len()];
    let mut keys = vec![0u64; projections];
    transpose(sinogram, bins, &mut columns);
    for (column, order) in columns.chunks_mut(projections).zip(order.chunks_mut(projections)) {
        for (place, (key, value)) in keys.iter_mut().zip(column.iter()).enumerate() {
            *key = u64::from(ascending(value.to_bits())) << 32 | place as u64;
        }
        keys.sort_unstable();
        for ((key, value), place) in keys.iter().zip(column.iter_mut()).zip(order) {
            *value = f32::from_bits(from_ascending((key >> 32) as u32));
            *place = *key as u32;
        }
    }
    transpose(&columns, projections, sinogram);
    change(sinogram);
    transpose(sinogram, bins, &mut columns);
    let mut restored = vec![0f32; projections];
    for (column, order) in columns.chunks_mut(projections).zip(order.chunks(projections)) {
        for (value, place) in column.iter().zip(order) {
            restored[*place as usize] = *value;
        }
        column.copy_from_slice(&restored);
    }
    transpose(&columns, projections, sinogram);
}

/// The bits of a float as an integer with the same order.
fn ascending(bits: u32) -> u32 {
    if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }
}

/// The inverse of [`ascending`].
fn from_ascending(number: u32) -> u32 {
    if number >> 31 == 1 { number & !(1 << 31) } else { !number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn medians_are_those_of_sorted_windows() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (count, size) in [(1, 5), (7, 3), (40, 9), (12, 31)] {
            // few values, so that many are equal
            let values: Vec<f32> = (0..count).map(|_| rng.random_range(-4i32..4) as f32).collect();
            let mut found = vec![0f32; count];
            running_median(&values, size, &mut Vec::new(), &mut found);
            for (i, found) in found.iter().enumerate() {
                let half = size as isize / 2;
                let mut all: Vec<f32> = (-half..=half).map(|d| values[mirrored(i as isize + d, count)]).collect();
                all.sort_by(f32::total_cmp);
                assert_eq!(*found, all[size / 2], "{count} values, {size}, place {i}");
            }
        }
    }

    #[test]
    fn mirrors_repeat_the_outermost() {
        let places: Vec<_> = (-4..8).map(|i| mirrored(i, 3)).collect();
        assert_eq!(places, [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]);
    }

    #[test]
    fn sorting_and_back_is_nothing() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let bins = 37;
        let before: Vec<f32> = (0..bins * 50).map(|_| rng.random_range(-3.0f32..3.0).round() / 2.0).collect();
        let mut after = before.clone();
        sorted(&mut after, bins, |ranks| {
            assert!(ranks.windows(bins + 1).all(|w| w[0] <= w[bins]), "columns ascend");
        });
        assert_eq!(
            before.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
            after.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        );
    }
}
