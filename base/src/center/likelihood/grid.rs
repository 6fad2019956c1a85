//! The likelihood over positions and rows.

use rayon::prelude::*;

/// The logarithm of the likelihood over positions, `[row][position]`.
pub(super) struct LikelihoodGrid {
    pub(super) first: f64,
    pub(super) step: f64,
    pub(super) rows: Vec<Vec<f64>>,
}

impl LikelihoodGrid {
    pub(super) fn at(&self, i: usize) -> f64 {
        self.first + i as f64 * self.step
    }

    pub(super) fn len(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }

    /// The sum over rows, where row `r` has its axis at `tilt * heights[r]` beside the position.
    pub(super) fn sum(&self, tilt: f64, heights: &[f64]) -> Vec<f64> {
        let count = self.len() as isize;
        let mut sum = vec![0.0; count as usize];
        for (row, height) in self.rows.iter().zip(heights) {
            let shift = (tilt * height / self.step).round() as isize;
            for (i, sum) in sum.iter_mut().enumerate() {
                *sum += row[(i as isize + shift).clamp(0, count - 1) as usize];
            }
        }
        sum
    }

    /// The most likely position and tilt (bins over the rows, between those of a range), and what the tilt gains. The ends of
    /// the range are no maximum.
    pub(super) fn best(&self, heights: &[f64], range: [f64; 2]) -> (f64, f64, f64) {
        let straight = self.sum(0.0, heights);
        let start = highest(&straight);
        let step = (0.1f64).max((range[1] - range[0]) / 800.0);
        let [first, last] = range.map(|end| (end / step).round() as i32);
        if heights.len() < 3 || last - first < 2 {
            return (self.at(start), 0.0, 0.0);
        }
        let along = |tilt: f64| {
            let sum = self.sum(tilt, heights);
            // where no row leaves the positions
            let margin = ((tilt.abs() / 2.0 / self.step).ceil() as usize).min(sum.len() / 2);
            let i = margin + highest(&sum[margin..sum.len() - margin]);
            (sum.get(i).copied().unwrap_or(f64::NEG_INFINITY), self.at(i))
        };
        let tilted: Vec<f64> = (first..=last).into_par_iter().map(|k| along(f64::from(k) * step).0).collect();
        let best = highest(&tilted);
        let Some(vertex) = vertex(&tilted, best) else { return (self.at(start), 0.0, 0.0) };
        let tilt = (f64::from(first) + best as f64 + vertex) * step;
        let (value, at) = along(tilt);
        (at, tilt, value - straight[start])
    }
}

/// How far the vertex of the parabola through a value and its neighbours is from it, in steps; `None` at an end.
fn vertex(values: &[f64], at: usize) -> Option<f64> {
    let (before, after) = (values.get(at.checked_sub(1)?)?, values.get(at + 1)?);
    let bend = before + after - 2.0 * values[at];
    Some(if bend < 0.0 { ((before - after) / (2.0 * bend)).clamp(-0.5, 0.5) } else { 0.0 })
}

pub(super) fn highest(values: &[f64]) -> usize {
    (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap_or(0)
}
