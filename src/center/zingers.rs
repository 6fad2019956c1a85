//! Zingers: values that a stray photon has raised. They would outweigh the noise of a scan.

use super::curve::median;
use rayon::prelude::*;

/// Values that stand out by this many times the local noise, among their neighbours in the row and in the angle, are
/// replaced.
const STANDS_OUT: f32 = 7.0;
/// From the middle to the ends of the square in which noise is local.
const NEAR: usize = 4;

/// Replaces zingers of a sinogram, `[projection][bin]`, by the median of their neighbours.
pub fn without_zingers(sinogram: &[f32], bins: usize) -> Vec<f32> {
    let count = sinogram.len() / bins;
    let line = |p: usize| &sinogram[p * bins..(p + 1) * bins];
    let mirrored = |i: isize, count: usize| {
        let i = if i < 0 {
            -i - 1
        } else if i >= count as isize {
            2 * count as isize - 1 - i
        } else {
            i
        };
        i.clamp(0, count as isize - 1) as usize
    };
    // distance from the medians in the row and in the angle, and the nearer of the two
    let of_line = |p: usize| -> Vec<[f32; 2]> {
        let here = line(p);
        let near = [-2, -1, 1, 2].map(|k| line(mirrored(p as isize + k, count)));
        (0..bins)
            .map(|i| {
                let beside = [-2, -1, 1, 2].map(|k| here[mirrored(i as isize + k, bins)]);
                let value = here[i];
                let along = median_of_five([beside[0], beside[1], value, beside[2], beside[3]]);
                let across = median_of_five([near[0][i], near[1][i], value, near[2][i], near[3][i]]);
                let (a, b) = ((value - along).abs(), (value - across).abs());
                if a < b { [a, along] } else { [b, across] }
            })
            .collect()
    };
    let nearest: Vec<[f32; 2]> = (0..count).into_par_iter().flat_map_iter(of_line).collect();
    let stride = (nearest.len() / 65536).max(1);
    let typical = 1.4826 * median(nearest.iter().step_by(stride).map(|v| f64::from(v[0]))) as f32 + 1e-12;
    let local = local_mean(&nearest.iter().map(|v| v[0].min(6.0 * typical)).collect::<Vec<_>>(), bins);
    let value = |((value, [distance, median]), local): ((&f32, &[f32; 2]), f32)| {
        if *distance > STANDS_OUT * (1.25 * local).max(typical) { *median } else { *value }
    };
    sinogram.iter().zip(&nearest).zip(local).map(value).collect()
}

/// Means over squares.
fn local_mean(values: &[f32], bins: usize) -> Vec<f32> {
    let count = values.len() / bins;
    let along = |line: &[f32]| -> Vec<f32> {
        let mut sums = vec![0f64; bins + 1];
        line.iter().enumerate().for_each(|(i, value)| sums[i + 1] = sums[i] + f64::from(*value));
        let mean = |i: usize| {
            let (from, to) = (i.saturating_sub(NEAR), (i + NEAR + 1).min(bins));
            ((sums[to] - sums[from]) / (to - from) as f64) as f32
        };
        (0..bins).map(mean).collect()
    };
    let lines: Vec<f32> = values.par_chunks(bins).flat_map_iter(along).collect();
    let mut sums = vec![0f64; bins];
    let add = |sums: &mut Vec<f64>, p: usize, sign: f64| {
        sums.iter_mut().zip(&lines[p * bins..(p + 1) * bins]).for_each(|(sum, v)| *sum += sign * f64::from(*v));
    };
    (0..NEAR.min(count)).for_each(|p| add(&mut sums, p, 1.0));
    let mut means = Vec::with_capacity(values.len());
    for p in 0..count {
        if p + NEAR < count {
            add(&mut sums, p + NEAR, 1.0);
        }
        if p > NEAR {
            add(&mut sums, p - NEAR - 1, -1.0);
        }
        let lines = (p + NEAR).min(count - 1) + 1 - p.saturating_sub(NEAR);
        means.extend(sums.iter().map(|sum| (*sum / lines as f64) as f32));
    }
    means
}

fn median_of_five([a, b, c, d, e]: [f32; 5]) -> f32 {
    // the largest and the smallest of four are not the median
    let (low, high) = (a.min(b).max(c.min(d)), a.max(b).min(c.max(d)));
    e.max(low.min(high)).min(low.max(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_five_is_the_middle_one() {
        for code in 0..3125u32 {
            let values = [1, 5, 25, 125, 625].map(|place| (code / place % 5) as f32);
            let mut sorted = values;
            sorted.sort_by(f32::total_cmp);
            assert_eq!(median_of_five(values), sorted[2], "{values:?}");
        }
    }

    #[test]
    fn only_zingers_are_replaced() {
        let bins = 40;
        let value = |i: usize| (i as f32 * 0.61).sin() * 0.01 + (i % bins) as f32 * 0.1 + (i / bins) as f32 * 0.03;
        let clean: Vec<f32> = (0..bins * 30).map(value).collect();
        assert_eq!(without_zingers(&clean, bins), clean);
        let mut hit = clean.clone();
        hit[7 * bins + 20] += 5.0;
        hit[29 * bins] -= 3.0;
        let found = without_zingers(&hit, bins);
        let worst = found.iter().zip(&clean).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(worst < 0.2, "{worst}");
    }
}
