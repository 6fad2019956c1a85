//! Shared functions: medians and Gaussians along rows, low frequencies and sorting along columns.

use crate::numbers::mirrored;
use crate::spectrum::LowPass;
use multiversion::multiversion;

/// Largest number of projections or bins by which a sinogram is padded.
pub const PAD: usize = 150;
/// Side of tiles for transposing.
const TILE: usize = 32;
/// Number of columns whose frequencies are summed together.
const STRIP: usize = 128;
/// Number of rows whose medians are found side by side.
const LANES: usize = 16;
/// Largest window for which medians side by side are faster than one row after another.
const TOGETHER: usize = 200;

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

/// Returns, for each of `values`, the median of the `size` (odd) values around it; `values` are finite and mirrored at
/// the ends.
pub fn running_median(values: &[f32], size: usize) -> Vec<f32> {
    let reach = (size / 2) as isize;
    let around = -reach..values.len() as isize + reach;
    let keys: Vec<i32> = around.map(|i| ordered(values[mirrored(i, values.len())].to_bits() as i32)).collect();
    if size <= TOGETHER {
        return medians_of_keys(&keys, size).into_iter().map(|key| f32::from_bits(ordered(key) as u32)).collect();
    }
    let mut window = keys[..size].to_vec();
    window.sort_unstable();
    let mut medians = Vec::with_capacity(values.len());
    for (place, old) in keys[..values.len()].iter().enumerate() {
        medians.push(f32::from_bits(ordered(window[size / 2]) as u32));
        let Some(new) = keys.get(place + size) else { break };
        // the position of the old value moves to that of the new one
        let [from, to] = [old, new].map(|key| window.partition_point(|v| v < key));
        if to > from {
            window.copy_within(from + 1..to, from);
            window[to - 1] = *new;
        } else {
            window.copy_within(to..from, to + 1);
            window[to] = *new;
        }
    }
    medians
}

/// Returns the medians of every `size` consecutive keys.
#[multiversion(targets("x86_64+avx2"))]
fn medians_of_keys(keys: &[i32], size: usize) -> Vec<i32> {
    // in ascending order, between what is below and above all
    let mut window = vec![i32::MIN; size + 2];
    window[1..=size].copy_from_slice(&keys[..size]);
    window[size + 1] = i32::MAX;
    window.sort_unstable();
    let mut next = window.clone();
    let mut medians = vec![window[1 + size / 2]];
    for (old, new) in keys.iter().zip(&keys[size..]) {
        // without the old key those from it on move down, with the new one those above it move up
        for (place, key) in next[1..=size].iter_mut().enumerate() {
            let [below, own, above] = [window[place], window[place + 1], window[place + 2]];
            let kept_below = if below < *old { below } else { own };
            let kept = if own < *old { own } else { above };
            *key = kept_below.max(kept.min(*new));
        }
        std::mem::swap(&mut window, &mut next);
        medians.push(window[1 + size / 2]);
    }
    medians
}

/// Replaces each value of `columns`, `[bin][rank]` with columns of `height`, by the median of the `size` (odd) values
/// around it in the same rank.
pub fn smooth_across(columns: &mut [f32], height: usize, size: usize) {
    let bins = columns.len() / height;
    let reach = (size / 2) as isize;
    let mut keys = Vec::new();
    for left in (0..height).step_by(LANES) {
        let lanes = LANES.min(height - left);
        if size > TOGETHER {
            for rank in left..left + lanes {
                let row: Vec<f32> = columns.iter().skip(rank).step_by(height).copied().collect();
                let medians = running_median(&row, size);
                columns.iter_mut().skip(rank).step_by(height).zip(medians).for_each(|(value, median)| *value = median);
            }
            continue;
        }
        keys.clear();
        keys.extend((-reach..bins as isize + reach).map(|i| {
            let mut lane = [0; LANES];
            let values = &columns[mirrored(i, bins) * height + left..][..lanes];
            lane.iter_mut().zip(values).for_each(|(key, value)| *key = ordered(value.to_bits() as i32));
            lane
        }));
        running_medians(&mut keys, size);
        for (column, medians) in columns.chunks_mut(height).zip(&keys) {
            let values = &mut column[left..left + lanes];
            values.iter_mut().zip(medians).for_each(|(value, key)| *value = f32::from_bits(ordered(*key) as u32));
        }
    }
}

/// Computes the medians of `size` consecutive values, of several rows side by side; each median replaces the first of
/// its values.
#[multiversion(targets("x86_64+avx2"))]
fn running_medians(keys: &mut [[i32; LANES]], size: usize) {
    let mut window = keys[..size].to_vec();
    for lane in 0..LANES {
        let mut sorted: Vec<i32> = window.iter().map(|keys| keys[lane]).collect();
        sorted.sort_unstable();
        window.iter_mut().zip(sorted).for_each(|(keys, key)| keys[lane] = key);
    }
    // what is above all, for the last place
    window.push([i32::MAX; LANES]);
    for place in 0..=keys.len() - size {
        let old = std::mem::replace(&mut keys[place], window[size / 2]);
        let Some(new) = keys.get(place + size) else { break };
        // without the old value those from it on move down, with the new one those above it move up
        let mut below = [i32::MIN; LANES];
        for rank in 0..size {
            let next = window[rank + 1];
            for (lane, key) in window[rank].iter_mut().enumerate() {
                let kept = if *key < old[lane] { *key } else { next[lane] };
                *key = below[lane].max(kept.min(new[lane]));
                below[lane] = kept;
            }
        }
    }
}

/// Converts the bits of a float to a number with the same order as [`f32::total_cmp`], and back.
fn ordered(bits: i32) -> i32 {
    bits ^ ((bits >> 31) as u32 >> 1) as i32
}

/// Returns a Gaussian of standard deviation `sigma`, truncated at 4 sigma, 1 in the middle.
pub fn gaussian_weights(sigma: f64) -> Vec<f64> {
    let reach = (4.0 * sigma + 0.5) as isize;
    (-reach..=reach).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp()).collect()
}

/// Returns a profile smoothed with the Gaussian of [`gaussian_weights`]; mirrored at the ends.
pub fn gaussian(profile: &[f64], sigma: f64) -> Vec<f64> {
    let weights = gaussian_weights(sigma);
    let reach = (weights.len() / 2) as isize;
    let total: f64 = weights.iter().sum();
    let wide: Vec<f64> =
        (-reach..profile.len() as isize + reach).map(|i| profile[mirrored(i, profile.len())]).collect();
    wide.windows(weights.len()).map(|near| weights.iter().zip(near).map(|(w, v)| w * v).sum::<f64>() / total).collect()
}

/// Returns the low frequencies of columns: frequency `k`, in periods over the `lines.len()` samples of a column, is
/// multiplied by `exp(-k^2 / (2 sigma^2))`. Sample `i` of a column is in row `lines[i]` of `values`, `[row][column]`;
/// the samples `wanted` are returned.
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

/// Sorts each column of `sinogram`, `[projection][bin]`, in ascending order, passes the result, `[bin][rank]`, to
/// `change`, and restores the original order.
///
/// N. T. Vo, R. C. Atwood, M. Drakopoulos, *Superior techniques for eliminating ring artifacts in X-ray
/// micro-tomography*, Optics Express 26 (2018) 28396, section 3.1. Equal values keep their order.
pub fn sorted(sinogram: &mut [f32], bins: usize, change: impl FnOnce(&mut [f32])) {
    let projections = sinogram.len() / bins;
    let mut columns = vec![0f32; sinogram.len()];
    let mut order = vec![0u32; sinogram.len()];
    let mut keys = vec![0i64; projections];
    transpose(sinogram, bins, &mut columns);
    for (column, order) in columns.chunks_mut(projections).zip(order.chunks_mut(projections)) {
        for (place, (key, value)) in keys.iter_mut().zip(column.iter()).enumerate() {
            *key = i64::from(ordered(value.to_bits() as i32)) << 32 | place as i64;
        }
        keys.sort_unstable();
        for ((key, value), place) in keys.iter().zip(column.iter_mut()).zip(order) {
            *value = f32::from_bits(ordered((key >> 32) as i32) as u32);
            *place = *key as u32;
        }
    }
    change(&mut columns);
    let mut restored = vec![0f32; projections];
    for (column, order) in columns.chunks_mut(projections).zip(order.chunks(projections)) {
        for (value, place) in column.iter().zip(order) {
            restored[*place as usize] = *value;
        }
        column.copy_from_slice(&restored);
    }
    transpose(&columns, projections, sinogram);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn medians_are_those_of_sorted_windows() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (count, size) in [(1, 5), (7, 3), (40, 9), (12, 31), (300, 141), (60, TOGETHER + 1)] {
            // few values, so that many are equal
            let values: Vec<f32> = (0..count).map(|_| rng.random_range(-4i32..4) as f32).collect();
            let median = |i: usize| {
                let half = size as isize / 2;
                let mut all: Vec<f32> = (-half..=half).map(|d| values[mirrored(i as isize + d, count)]).collect();
                all.sort_by(f32::total_cmp);
                all[size / 2]
            };
            let wanted: Vec<f32> = (0..count).map(median).collect();
            assert_eq!(running_median(&values, size), wanted, "{count} values, {size}");
            // several rows side by side, more than are done together
            let height = LANES + 3;
            let mut columns: Vec<f32> =
                values.iter().flat_map(|v| (0..height).map(move |rank| v + rank as f32)).collect();
            smooth_across(&mut columns, height, size);
            let wanted: Vec<f32> = wanted.iter().flat_map(|v| (0..height).map(move |rank| v + rank as f32)).collect();
            assert_eq!(columns, wanted, "{count} values, {size}, side by side");
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
            assert!(ranks.chunks(50).all(|column| column.is_sorted()), "columns ascend");
        });
        assert_eq!(
            before.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
            after.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        );
    }
}
