//! The sinograms in which the axis is searched for.

use super::zingers::replace_zingers;
use rayon::prelude::*;

/// Rows whose mean profile varies less than this share of the best row's, as variance, hold no sample.
const EMPTY: f64 = 0.02;

/// Rows whose ends are below this share of their peak end in air.
const AIR: f64 = 0.1;

/// Corrected sinograms of sampled rows, in the order of their angles.
#[derive(Clone, Debug)]
pub struct Sinograms {
    pub(super) bins: usize,
    /// Degrees, ascending.
    pub(super) angles: Vec<f64>,
    /// Number of each row.
    pub(super) heights: Vec<f64>,
    /// `[projection][bin]` of each row.
    pub(super) rows: Vec<Vec<f32>>,
}

impl Sinograms {
    /// Takes `[projection][bin]` line integrals of several rows, `bins` wide, at angles in degrees. Rows without a sample
    /// are left out, and zingers replaced.
    pub fn new(bins: usize, angles: &[f64], rows: &[&[f32]]) -> Sinograms {
        Sinograms::of_rows(bins, angles, &(0..rows.len()).collect::<Vec<_>>(), rows)
    }

    /// Prepares rows as [`new`](Self::new) does that are not next to each other; `numbers` are theirs.
    pub fn of_rows(bins: usize, angles: &[f64], numbers: &[usize], rows: &[&[f32]]) -> Sinograms {
        let mut order: Vec<usize> = (0..angles.len()).collect();
        order.sort_by(|&a, &b| angles[a].total_cmp(&angles[b]));
        let structure: Vec<f64> = rows.par_iter().map(|row| profile_variance(row, bins)).collect();
        let best = structure.iter().copied().fold(0.0, f64::max);
        let sorted = |row: &[f32]| {
            let mut sorted = Vec::with_capacity(row.len());
            order.iter().for_each(|&p| sorted.extend_from_slice(&row[p * bins..(p + 1) * bins]));
            replace_zingers(&mut sorted, bins);
            sorted
        };
        let kept: Vec<usize> = (0..rows.len()).filter(|row| structure[*row] > EMPTY * best).collect();
        Sinograms {
            bins,
            angles: order.iter().map(|&p| angles[p]).collect(),
            heights: kept.iter().map(|&row| numbers[row] as f64).collect(),
            rows: kept.par_iter().map(|&row| sorted(rows[row])).collect(),
        }
    }

    /// Degrees from the first to the last projection.
    pub(super) fn coverage(&self) -> f64 {
        self.angles.last().map_or(0.0, |last| last - self.angles[0])
    }

    /// Median step between projections in degrees.
    pub(super) fn step(&self) -> f64 {
        let mut steps: Vec<f64> = self.angles.windows(2).map(|pair| pair[1] - pair[0]).collect();
        steps.sort_by(f64::total_cmp);
        steps.get(steps.len() / 2).copied().unwrap_or(0.0)
    }

    /// Number of projections in the first half turn, end excluded.
    pub(super) fn half_turn(&self) -> usize {
        let end = self.angles.first().map_or(0.0, |first| first + 180.0 - self.step() / 2.0);
        self.angles.partition_point(|angle| *angle < end)
    }

    /// Reports whether the sample lies within the field of view, so that rows end in air.
    pub(super) fn within_view(&self) -> bool {
        self.rows.iter().all(|row| {
            let profile = profile(row, self.bins);
            let peak = profile.iter().copied().fold(0.0, f64::max);
            profile[0].abs().max(profile[self.bins - 1].abs()) < AIR * peak
        })
    }

    /// Reports whether the scan covers a whole turn, so that nearly every projection has an opposite one.
    pub(super) fn whole_turn(&self) -> bool {
        self.coverage() + self.step() > 355.0
    }

    /// Bins `factor` bins; an incomplete one at the end is dropped. Bin `b` is at `factor * b + (factor - 1) / 2`.
    pub(super) fn binned(&self, factor: usize) -> Sinograms {
        let bins = self.bins / factor;
        let reduce =
            |row: &[f32]| row.chunks_exact(factor).map(|part| part.iter().sum::<f32>() / factor as f32).collect();
        let row = |values: &Vec<f32>| {
            values.chunks(self.bins).flat_map(|row| -> Vec<f32> { reduce(&row[..bins * factor]) }).collect()
        };
        Sinograms {
            bins,
            angles: self.angles.clone(),
            heights: self.heights.clone(),
            rows: self.rows.par_iter().map(row).collect(),
        }
    }
}

/// Sum of all projections.
fn profile(sinogram: &[f32], bins: usize) -> Vec<f64> {
    let mut profile = vec![0f64; bins];
    for row in sinogram.chunks(bins) {
        profile.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    profile
}

/// Variance over the bins of the sum of all projections.
fn profile_variance(sinogram: &[f32], bins: usize) -> f64 {
    let profile = profile(sinogram, bins);
    let mean = profile.iter().sum::<f64>() / bins as f64;
    profile.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / bins as f64
}
