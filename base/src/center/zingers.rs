//! Zingers: values that a stray photon has raised, and that would outweigh the noise of a scan.

use super::curve::median;
use multiversion::multiversion;
use rayon::prelude::*;
use std::ops::Range;

/// Multiple of the local noise by which a zinger stands out among its neighbours in the row and in the angle.
const STANDS_OUT: f32 = 7.0;
/// Distance from the middle to the ends of the square in which noise is local.
const NEAR: usize = 4;

/// Number of values from which the typical distance is estimated.
const SAMPLED: usize = 65536;
/// Number of lines that are searched at once, so that their distances stay in the cache.
const LINES: usize = 64;

/// Replaces zingers of a sinogram, `[projection][bin]`, by the median of their neighbours.
pub fn replace_zingers(sinogram: &mut [f32], bins: usize) {
    let lines = Lines { values: sinogram, bins, count: sinogram.len() / bins };
    let typical = lines.typical();
    let starts: Vec<usize> = (0..lines.count).step_by(LINES).collect();
    let found =
        starts.into_par_iter().flat_map_iter(|start| lines.zingers(start..(start + LINES).min(lines.count), typical));
    for (place, value) in found.collect::<Vec<_>>() {
        sinogram[place] = value;
    }
}

/// The lines of a sinogram, one for each projection.
#[derive(Clone, Copy)]
struct Lines<'a> {
    values: &'a [f32],
    bins: usize,
    count: usize,
}

impl<'a> Lines<'a> {
    /// Returns a line and the two lines on either side of it.
    fn near(&self, p: usize) -> [&'a [f32]; 5] {
        [-2, -1, 0, 1, 2].map(|k| &self.values[mirrored(p as isize + k, self.count) * self.bins..][..self.bins])
    }

    /// Returns the typical distance of a value from the median of its neighbours, as a standard deviation.
    fn typical(&self) -> f32 {
        let wanted = SAMPLED.div_ceil(self.bins);
        let mut line = vec![0f32; self.bins];
        let sampled = (0..self.count).step_by((self.count / wanted).max(1)).flat_map(|p| {
            distances_from_medians(self.near(p), &mut line);
            line.iter().map(|v| f64::from(*v)).collect::<Vec<_>>()
        });
        1.4826 * median(sampled) as f32 + 1e-12
    }

    /// Returns the indices of zingers in a range of lines, with their replacements.
    fn zingers(&self, wanted: Range<usize>, typical: f32) -> Vec<(usize, f32)> {
        let bins = self.bins;
        let read = wanted.start.saturating_sub(NEAR)..(wanted.end + NEAR).min(self.count);
        let mut distances = vec![0f32; read.len() * bins];
        for (p, line) in read.clone().zip(distances.chunks_mut(bins)) {
            distances_from_medians(self.near(p), line);
        }
        let line_of = |p: usize| &distances[(p - read.start) * bins..][..bins];
        let stands_out = |p: usize, i: usize, distance: f32| {
            let (first, last) = (p.saturating_sub(NEAR), (p + NEAR).min(self.count - 1));
            let (from, to) = (i.saturating_sub(NEAR), (i + NEAR).min(bins - 1));
            // largest sum of the distances in the square
            let mut left = distance * ((last - first + 1) * (to - from + 1)) as f32 / (STANDS_OUT * 1.25);
            (first..=last).all(|p| {
                left -= line_of(p)[from..=to].iter().map(|&v| lesser(v, 6.0 * typical)).sum::<f32>();
                left > 0.0
            })
        };
        let replacement = |p: usize, i: usize| {
            let lines = self.near(p);
            let along = median_of_five([-2, -1, 0, 1, 2].map(|k| lines[2][mirrored(i as isize + k, bins)]));
            let across = median_of_five(lines.map(|line| line[i]));
            let value = lines[2][i];
            if (value - along).abs() < (value - across).abs() { along } else { across }
        };
        let mut found = Vec::new();
        for p in wanted {
            for (i, &distance) in line_of(p).iter().enumerate() {
                if distance > STANDS_OUT * typical && stands_out(p, i, distance) {
                    found.push((p * bins + i, replacement(p, i)));
                }
            }
        }
        found
    }
}

/// Returns an index that is mirrored at both ends.
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

/// Computes the distance of each value of the middle line from the median of its neighbours in the line, or from that
/// of its neighbours in the other lines if it is less. Also compiled for processors with wider vectors, with the same
/// results.
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
        let without = |values: &[f32]| {
            let mut values = values.to_vec();
            replace_zingers(&mut values, bins);
            values
        };
        assert_eq!(without(&clean), clean);
        let mut hit = clean.clone();
        hit[7 * bins + 20] += 5.0;
        hit[29 * bins] -= 3.0;
        let found = without(&hit);
        let worst = found.iter().zip(&clean).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
        assert!(worst < 0.2, "{worst}");
    }
}
