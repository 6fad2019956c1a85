//! Noise outside of the sample.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Radii of the ring in which air is expected, relative to that of the circle that all projections see.
const RIM: Range<f64> = 0.85..0.95;
/// Pixels on either side of those whose mean tells air from sample.
const SMOOTH: usize = 2;
/// Deviation of such a mean from that of air, in standard deviations, from which a pixel is of the sample.
const DIFFERENT: f64 = 4.0;
/// Pixels on either side of the sample that are left out.
const MARGIN: usize = 4;
/// Least share of the circle that is air, and that is sample.
const LEAST: [f64; 2] = [0.01, 0.001];
/// Largest value of air relative to the mean of the sample; more is a sample that fills the field of view.
const THINNER: f64 = 0.25;

/// Values outside of the sample, within the circle that all projections see.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AirNoise {
    pub standard_deviation: f64,
    pub mean: f64,
    /// Share of the circle that was used.
    pub share: f64,
}

/// Sums of values over all rows above and columns to the left.
struct Sums {
    size: usize,
    sums: Vec<f64>,
}

impl Sums {
    fn of(size: usize, value: impl Fn(usize) -> f64) -> Sums {
        let width = size + 1;
        let mut sums = vec![0.0; width * width];
        for y in 0..size {
            let mut row = 0.0;
            for x in 0..size {
                row += value(y * size + x);
                sums[(y + 1) * width + x + 1] = sums[y * width + x + 1] + row;
            }
        }
        Sums { size, sums }
    }

    /// Returns the sum of the pixels at most so far from this one along x and y, and their number.
    fn about(&self, at: usize, reach: usize) -> (f64, f64) {
        let span = |i: usize| i.saturating_sub(reach)..(i + reach + 1).min(self.size);
        let (x, y, width) = (span(at % self.size), span(at / self.size), self.size + 1);
        let corner = |x: usize, y: usize| self.sums[y * width + x];
        let sum = corner(x.end, y.end) - corner(x.start, y.end) - corner(x.end, y.start) + corner(x.start, y.start);
        (sum, (x.len() * y.len()) as f64)
    }
}

impl AirNoise {
    /// Returns the noise of the mean of two half scans of `size` x `size` pixels, of which all projections see a circle of
    /// this radius in pixels; `None` if there is no air, or nothing else.
    ///
    /// Air is what is as most of the rim is and reaches it: the sample need not be convex, and may have pores.
    pub(super) fn of(first: &[f32], second: &[f32], size: usize, radius: f64) -> Option<AirNoise> {
        let mean = |at: usize| {
            let value = (f64::from(first[at]) + f64::from(second[at])) / 2.0;
            if value.is_finite() { value } else { 0.0 }
        };
        let middle = (size as f64 - 1.0) / 2.0;
        let distance = |at: usize| ((at % size) as f64 - middle).hypot((at / size) as f64 - middle) / radius;
        let sums = Sums::of(size, mean);
        let smooth = |at: usize| {
            let (sum, pixels) = sums.about(at, SMOOTH);
            sum / pixels
        };
        let rim: Vec<usize> = (0..size * size).filter(|&at| RIM.contains(&distance(at))).collect();
        let level = median(rim.iter().map(|&at| smooth(at)).collect())?;
        // of normally distributed values, the standard deviation
        let spread = 1.4826 * median(rim.iter().map(|&at| (smooth(at) - level).abs()).collect())?;
        let seen: Vec<bool> = (0..size * size).map(|at| distance(at) < RIM.end).collect();
        let like_air = |at: usize| seen[at] && (smooth(at) - level).abs() <= DIFFERENT * spread;
        let air = connected(size, rim, like_air);
        let all = seen.iter().filter(|seen| **seen).count() as f64;
        let is_sample = |at: usize| if seen[at] && !air[at] { 1.0 } else { 0.0 };
        let sample = Sums::of(size, is_sample);
        let used: Vec<usize> = (0..size * size).filter(|&at| air[at] && sample.about(at, MARGIN).0 == 0.0).collect();
        let of_sample: Vec<f64> = (0..size * size).filter(|&at| is_sample(at) > 0.0).map(mean).collect();
        let [least_air, least_sample] = LEAST.map(|share| share * all);
        if (used.len() as f64) < least_air || (of_sample.len() as f64) < least_sample {
            return None;
        }
        let average = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
        let of_air = average(&mut used.iter().map(|&at| mean(at)), used.len());
        if of_air > THINNER * average(&mut of_sample.iter().copied(), of_sample.len()) {
            return None;
        }
        let variance = average(&mut used.iter().map(|&at| (mean(at) - of_air).powi(2)), used.len());
        Some(AirNoise { standard_deviation: variance.sqrt(), mean: of_air, share: used.len() as f64 / all })
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    let half = values.len() / 2;
    (!values.is_empty()).then(|| *values.select_nth_unstable_by(half, f64::total_cmp).1)
}

/// Returns the pixels that are `like` the first ones and connected with them, along rows and columns.
fn connected(size: usize, first: Vec<usize>, like: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut reached = vec![false; size * size];
    let mut left: Vec<usize> = Vec::new();
    let mut reach = |at: usize, left: &mut Vec<usize>| {
        if !reached[at] && like(at) {
            reached[at] = true;
            left.push(at);
        }
    };
    first.into_iter().for_each(|at| reach(at, &mut left));
    while let Some(at) = left.pop() {
        let (x, y) = (at % size, at / size);
        let neighbours = [(x > 0, 1, false), (x + 1 < size, 1, true), (y > 0, size, false), (y + 1 < size, size, true)];
        for (_, step, forwards) in neighbours.into_iter().filter(|(is_there, ..)| *is_there) {
            reach(if forwards { at + step } else { at - step }, &mut left);
        }
    }
    reached
}
