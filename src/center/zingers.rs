//! Zingers: values that a stray photon has raised. They would outweigh the noise of a scan.

use super::curve::median;
use multiversion::multiversion;
use rayon::prelude::*;

/// Values that stand out by this many times the local noise, among their neighbours in the row and in the angle, are
/// replaced.
const STANDS_OUT: f32 = 7.0;
/// From the middle to the ends of the square in which noise is local.
const NEAR: usize = 4;

/// Replaces zingers of a sinogram, `[projection][bin]`, by the median of their neighbours.
pub fn without_zingers(sinogram: &[f32], bins: usize) -> Vec<f32> {
    let count = sinogram.len() / bins;
    let line = |p: isize| &sinogram[mirrored(p, count) * bins..][..bins];
    let near = |p: usize| [-2, -1, 0, 1, 2].map(|k| line(p as isize + k));
    let mut distances = vec![0f32; sinogram.len()];
    distances.par_chunks_mut(bins).enumerate().for_each(|(p, to)| distances_from_medians(near(p), to));
    let stride = (distances.len() / 65536).max(1);
    let typical = 1.4826 * median(distances.iter().step_by(stride).map(|v| f64::from(*v))) as f32 + 1e-12;
    let local = |p: usize, i: usize| {
        let (first, last) = (p.saturating_sub(NEAR), (p + NEAR).min(count - 1));
        let (from, to) = (i.saturating_sub(NEAR), (i + NEAR).min(bins - 1));
        let square = (first..=last).flat_map(|p| &distances[p * bins + from..=p * bins + to]);
        let sum: f32 = square.map(|v| v.min(6.0 * typical)).sum();
        sum / ((last - first + 1) * (to - from + 1)) as f32
    };
    let mut clean = sinogram.to_vec();
    clean.par_chunks_mut(bins).enumerate().for_each(|(p, values)| {
        for (i, value) in values.iter_mut().enumerate() {
            let distance = distances[p * bins + i];
            if distance > STANDS_OUT * typical && distance > STANDS_OUT * 1.25 * local(p, i) {
                let lines = near(p);
                let along = median_of_five([-2, -1, 0, 1, 2].map(|k| lines[2][mirrored(i as isize + k, bins)]));
                let across = median_of_five(lines.map(|line| line[i]));
                *value = if (*value - along).abs() < (*value - across).abs() { along } else { across };
            }
        }
    });
    clean
}

/// An index that is mirrored at both ends.
pub fn mirrored(i: isize, count: usize) -> usize {
    let count = count as isize;
    let inside = if i < 0 {
        -i - 1
    } else if i >= count {
        2 * count - 1 - i
    } else {
        i
    };
    inside.clamp(0, count - 1) as usize
}

/// The distance of each value of the middle line from the median of its neighbours in the line, or in the others if that is
/// less. Also compiled for newer processors with wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn distances_from_medians(lines: [&[f32]; 5], distances: &mut [f32]) {
    let bins = distances.len();
    let [a, b, here, d, e] = lines.map(|line| &line[..bins]);
    let end = |i: isize| here[mirrored(i, bins)];
    let mut padded = vec![end(-2), end(-1)];
    padded.extend_from_slice(here);
    padded.extend([end(bins as isize), end(bins as isize + 1)]);
    let [before, left, right, after] = [0, 1, 3, 4].map(|k| &padded[k..k + bins]);
    for i in 0..bins {
        let along = median_of_five([before[i], left[i], here[i], right[i], after[i]]);
        let across = median_of_five([a[i], b[i], here[i], d[i], e[i]]);
        distances[i] = lesser((here[i] - along).abs(), (here[i] - across).abs());
    }
}

fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

fn median_of_five([a, b, c, d, e]: [f32; 5]) -> f32 {
    // the largest and the smallest of four are not the median
    let (low, high) = (greater(lesser(a, b), lesser(c, d)), lesser(greater(a, b), greater(c, d)));
    lesser(greater(e, lesser(low, high)), greater(low, high))
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
        let noise = |i: usize| ((i * 7919) % 101) as f32 * 2e-3;
        let value = |i: usize| noise(i) + (i % bins) as f32 * 0.1 + (i / bins) as f32 * 0.03;
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
