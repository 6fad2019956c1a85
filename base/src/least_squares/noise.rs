//! The noise of measured rows.

/// Orders of differences over neighbouring projections and along rows.
const ORDERS: [[usize; 2]; 2] = [[0, 6], [2, 2]];

/// Median of the absolute value of a normal distribution with deviation 1.
const MEDIAN: f64 = 0.6745;

/// Number of classes of values, as noise of photons depends on the value, and the fewest differences in each.
const CLASSES: usize = 8;
const FEWEST: usize = 64;

/// Number of differences that suffice.
const ENOUGH: usize = 1 << 18;

/// Least noise, relative to the largest value.
const LEAST: f64 = 1e-4;

/// Returns the standard deviation of white noise in rows of `bins` values, by its mean variance: the smaller of what sixth
/// differences along rows tell and what second differences do along rows and over projections, as details raise both.
pub fn noise(rows: &[f32], bins: usize) -> f64 {
    let largest = rows.iter().fold(0f32, |largest, value| largest.max(value.abs()));
    let found = ORDERS.iter().filter_map(|orders| deviation(rows, bins, orders));
    found.reduce(f64::min).unwrap_or(0.0).max(LEAST * f64::from(largest))
}

/// Returns the standard deviation of white noise in rows of `bins` values that have nothing to do with each other, by sixth
/// differences along them.
pub fn noise_along(rows: &[f32], bins: usize) -> f64 {
    deviation(rows, bins, &ORDERS[0]).unwrap_or(0.0)
}

/// Returns the root of the mean variance by differences of some orders, which medians tell in classes of their values' sums;
/// bins without signal, where differences are 0, do not count.
fn deviation(rows: &[f32], bins: usize, orders: &[usize; 2]) -> Option<f64> {
    let [across, along] = orders.map(alternating);
    let groups = (rows.len() / bins.max(1) + 1).saturating_sub(across.len());
    let places = (bins + 1).saturating_sub(along.len());
    let every = (groups * places).div_ceil(ENOUGH).max(1);
    let mut found = Vec::with_capacity(groups.div_ceil(every) * places);
    let (mut sums, mut differences) = (vec![0.0; places], vec![0.0; places]);
    for group in (0..groups).step_by(every) {
        sums.fill(0.0);
        differences.fill(0.0);
        for (row, of_row) in rows[group * bins..].chunks_exact(bins).zip(&across) {
            for (place, of_bin) in along.iter().enumerate() {
                for ((sum, difference), value) in sums.iter_mut().zip(&mut differences).zip(&row[place..]) {
                    *sum += f64::from(*value);
                    *difference += of_row * of_bin * f64::from(*value);
                }
            }
        }
        let pairs = sums.iter().zip(&differences).filter(|(_, difference)| **difference != 0.0);
        found.extend(pairs.map(|(sum, difference)| [*sum, difference.abs()]));
    }
    let squares = |weights: &[f64]| weights.iter().map(|weight| weight * weight).sum::<f64>();
    let scale = MEDIAN.powi(2) * squares(&across) * squares(&along);
    let classes = (found.len() / FEWEST).clamp(1, CLASSES);
    let size = found.len().div_ceil(classes).max(1);
    divide(&mut found, size);
    let variances: Vec<f64> = found
        .chunks_mut(size)
        .map(|class| {
            let middle = class.len() / 2;
            class.select_nth_unstable_by(middle, |a, b| a[1].total_cmp(&b[1])).1[1].powi(2) / scale
        })
        .collect();
    (!variances.is_empty()).then(|| (variances.iter().sum::<f64>() / variances.len() as f64).sqrt())
}

/// Orders sums and differences so far that each of the chunks of `size` has smaller sums than the next; of equal sums, the smaller
/// difference is first.
fn divide(found: &mut [[f64; 2]], size: usize) {
    let middle = found.len().div_ceil(size) / 2 * size;
    if middle == 0 {
        return;
    }
    let order = |a: &[f64; 2], b: &[f64; 2]| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1]));
    found.select_nth_unstable_by(middle, order);
    let (below, above) = found.split_at_mut(middle);
    divide(below, size);
    divide(above, size);
}

/// Returns the weights of a difference of some order: binomial coefficients with alternating signs.
fn alternating(order: usize) -> Vec<f64> {
    let next = |(weight, k): &(f64, usize)| Some((-weight * (order - k) as f64 / (k + 1) as f64, k + 1));
    std::iter::successors(Some((1.0, 0)), next).take(order + 1).map(|(weight, _)| weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    const BINS: usize = 500;

    /// Adds noise to 60 rows, whose deviation is a function of the value.
    fn noisy(value: impl Fn(usize, usize) -> f64, deviation: impl Fn(f64) -> f64) -> Vec<f32> {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let places = (0..60).flat_map(|p| (0..BINS).map(move |s| (p, s)));
        let mut add = |value: f64| -> f64 {
            let normal: f64 = StandardNormal.sample(&mut random);
            value + deviation(value) * normal
        };
        places.map(|(p, s)| add(value(p, s)) as f32).collect()
    }

    #[test]
    fn differences() {
        assert_eq!(alternating(0), [1.0]);
        assert_eq!(alternating(2), [1.0, -2.0, 1.0]);
        assert_eq!(alternating(6), [1.0, -6.0, 15.0, -20.0, 15.0, -6.0, 1.0]);
    }

    #[test]
    fn chunks_are_those_of_sorted_sums() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        for count in [0, 1, 7, 8, 9, 100, 101] {
            let value =
                |_| -> [f64; 2] { [0, 1].map(|_| StandardNormal.sample(&mut random)).map(|v: f64| v.round() + 0.0) };
            let mut got: Vec<[f64; 2]> = (0..count).map(value).collect();
            let mut want = got.clone();
            divide(&mut got, 8);
            want.sort_by(|a, b| a.partial_cmp(b).unwrap());
            for (got, want) in got.chunks_mut(8).zip(want.chunks(8)) {
                got.sort_by(|a, b| a.partial_cmp(b).unwrap());
                assert_eq!(got, want);
            }
        }
    }

    #[test]
    fn noise_of_smooth_rows_is_that_of_their_noise() {
        let inside = |s: usize| (50..450).contains(&s);
        let mut rows = noisy(|_, s| 10.0 + (s as f64 / 80.0).sin(), |_| 0.2);
        let outside = rows.iter_mut().zip(0..).filter(|(_, place)| !inside(place % BINS));
        outside.for_each(|(value, _)| *value = 0.0);
        let sigma = noise(&rows, BINS);
        assert!((sigma - 0.2).abs() < 0.004, "{sigma}");
        assert!((noise(&[3.0; 100], 50) - 3e-4).abs() < 1e-9);
        assert_eq!(noise(&[0.0; 100], 50), 0.0);
        assert_eq!(noise(&[], 50), 0.0);
    }

    /// The noise of photons behind a cylinder: what counts is the mean of its variance.
    #[test]
    fn noise_that_varies_along_rows_is_averaged() {
        let value = |_, s: usize| 4.0 * (1.0 - (s as f64 / 250.0 - 1.0).powi(2)).max(0.0).sqrt();
        let deviation = |value: f64| 0.01 * (value / 2.0).exp();
        let variances = (0..BINS).map(|s| deviation(value(0, s)).powi(2));
        let want = (variances.sum::<f64>() / BINS as f64).sqrt();
        let sigma = noise(&noisy(value, deviation), BINS);
        assert!((sigma / want - 1.0).abs() < 0.03, "{sigma} {want}");
    }

    /// Details of two bins that move slowly from projection to projection, and others in arbitrary order.
    #[test]
    fn details_hardly_count() {
        let bars = |p: usize, s: usize| f64::from(u8::from((s + p / 20) / 2 % 3 == 0));
        let sigma = noise(&noisy(bars, |_| 0.1), BINS);
        assert!((sigma / 0.1 - 1.0).abs() < 0.2, "{sigma}");
        let steps = |p: usize, s: usize| (s / 20 * (p * 37 % 11)) as f64;
        let sigma = noise(&noisy(steps, |_| 0.1), BINS);
        assert!((sigma / 0.1 - 1.0).abs() < 0.5, "{sigma}");
    }
}
