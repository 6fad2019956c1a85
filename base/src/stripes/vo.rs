//! Methods of N. T. Vo, R. C. Atwood and M. Drakopoulos, *Superior techniques for eliminating ring artifacts in X-ray
//! micro-tomography*, Optics Express 26 (2018) 28396. Sinograms are `[projection][bin]`.

use super::columns::{PAD, low_frequencies, running_median, smooth_across, sorted};
use crate::numbers::mirrored;
use std::ops::Range;

/// Smallest noise of a factor that is distinguished from none.
const SMALLEST_NOISE: f64 = 1e-5;
/// Share of the mean of the sample's columns below which a column is air.
const AIR: f64 = 0.1;
/// Smallest factor that a column is divided by.
const SMALLEST_FACTOR: f64 = 0.01;
/// Number of projections over which a column is smoothed to test whether it responds.
pub const ALIVE: usize = 10;

/// Removes stripes by algorithm 3: columns are sorted, so that stripes stand out in every row, and rows are smoothed.
pub fn sorting(sinogram: &mut [f32], bins: usize, size: usize) {
    let projections = sinogram.len() / bins;
    sorted(sinogram, bins, |columns| smooth_across(columns, projections, size));
}

/// Removes stripes by algorithm 2: algorithm 3 for the low frequencies of the columns only. `sigma` is in periods over
/// the column, which is mirrored at its ends by a tenth, at most [`PAD`] projections.
pub fn filtering(sinogram: &mut [f32], bins: usize, sigma: f64, size: usize) {
    let projections = sinogram.len() / bins;
    let (lines, wanted) = padded_lines(projections);
    let mut smooth = low_frequencies(sinogram, bins, &lines, wanted, sigma);
    sinogram.iter_mut().zip(&smooth).for_each(|(value, low)| *value -= low);
    sorting(&mut smooth, bins, size);
    sinogram.iter_mut().zip(&smooth).for_each(|(value, low)| *value += low);
}

/// Returns the projections of a column that [`filtering`] pads, mirrored without repeating the outermost, and the range
/// of those that are not padding.
pub fn padded_lines(projections: usize) -> (Vec<usize>, Range<usize>) {
    let pad = PAD.min(projections / 10);
    let lines = (1..=pad).rev().chain(0..projections).chain((0..pad).map(|i| projections - 2 - i)).collect();
    (lines, pad..pad + projections)
}

/// Change of a column by [`large`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnChange {
    /// Replacement by the result of sorting.
    Replace,
    Divide(f64),
    /// Shift from its own mean to that of the smoothed column.
    Shift {
        near: f64,
        own: f64,
    },
}

/// Removes stripes by algorithm 5: columns are divided by their factor relative to their neighbours over all
/// projections, and those that differ too much are replaced by the result of sorting. `drop` is the share of
/// projections, the brightest and the darkest, that are ignored.
///
/// Unlike in the paper, a column of air has no factor, as its mean, and so the quotient, is noise. It is excluded from
/// the search for columns that differ, and shifted. Every column that is replaced differs by all of `snr`. Columns are
/// only scaled if a third of the sample's would be replaced.
pub fn large(sinogram: &mut [f32], bins: usize, snr: f64, size: usize, drop: f64) {
    let projections = sinogram.len() / bins;
    sorted(sinogram, bins, |columns| correct_sorted(columns, projections, snr, size, drop));
}

/// Applies algorithms 6, 5 and 3 one after the other, as [`dead`], [`large`] and [`sorting`] do. Columns are sorted
/// once, as the second keeps their order.
pub fn all(sinogram: &mut [f32], bins: usize, snr: f64, [size, small]: [usize; 2], drop: f64) {
    let projections = sinogram.len() / bins;
    dead(sinogram, bins, snr, size);
    sorted(sinogram, bins, |columns| {
        correct_sorted(columns, projections, snr, size, drop);
        smooth_across(columns, projections, small);
    });
}

/// Corrects sorted columns, `[bin][rank]`, as [`large`] does.
fn correct_sorted(columns: &mut [f32], projections: usize, snr: f64, size: usize, drop: f64) {
    let ranks = counted(projections, drop);
    let means = |columns: &[f32]| -> Vec<f64> {
        let mean = |values: &[f32]| values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len().max(1) as f64;
        columns.chunks(projections).map(|column| mean(&column[ranks.clone()])).collect()
    };
    let mut smooth = columns.to_vec();
    smooth_across(&mut smooth, projections, size);
    let changes = column_changes(&means(columns), &means(&smooth), snr);
    let both = columns.chunks_mut(projections).zip(smooth.chunks(projections));
    for ((column, smooth), change) in both.zip(changes) {
        match change {
            ColumnChange::Replace => column.copy_from_slice(smooth),
            ColumnChange::Divide(factor) => {
                column.iter_mut().for_each(|value| *value = (f64::from(*value) / factor) as f32);
            }
            ColumnChange::Shift { near, own } => {
                column.iter_mut().for_each(|value| *value = (f64::from(*value) + near - own) as f32);
            }
        }
    }
}

/// Returns the ranks of a column whose values [`large`] averages.
pub fn counted(projections: usize, drop: f64) -> Range<usize> {
    let dropped = (0.5 * drop * projections as f64) as usize;
    dropped..projections - dropped
}

/// Returns the changes of columns from their `own` means and the means `near` of the smoothed columns.
pub fn column_changes(own: &[f64], near: &[f64], snr: f64) -> Vec<ColumnChange> {
    let faint = AIR * sample_level(near);
    let factors: Vec<Option<f64>> =
        own.iter().zip(near).map(|(own, near)| (near.abs() > faint).then(|| own / near)).collect();
    let odd = unless_many(dilated(&outstanding(&factors, snr, snr)), factors.iter().flatten().count());
    let change = |bin: usize| match factors[bin] {
        _ if odd[bin] => ColumnChange::Replace,
        Some(factor) if factor >= SMALLEST_FACTOR => ColumnChange::Divide(factor),
        _ => ColumnChange::Shift { near: near[bin], own: own[bin] },
    };
    (0..factors.len()).map(change).collect()
}

/// Returns the typical mean of the columns of the sample: the mean of those above the mean of all, which air lowers.
fn sample_level(means: &[f64]) -> f64 {
    let average = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let mut levels: Vec<f64> = means.iter().map(|mean| mean.abs()).collect();
    let all = average(&levels);
    levels.retain(|level| *level >= all);
    average(&levels)
}

/// Removes stripes by algorithm 6: columns that hardly change between projections, or that change much more than their
/// neighbours, are interpolated linearly from the columns on both sides. If this applies to a third of them, nothing is
/// changed.
pub fn dead(sinogram: &mut [f32], bins: usize, snr: f64, size: usize) {
    for gap in gaps(&changes(sinogram, bins), snr, size) {
        for row in sinogram.chunks_mut(bins) {
            let (left, right) = (row[gap.start - 1], row[gap.end]);
            for (step, value) in row[gap.clone()].iter_mut().enumerate() {
                let share = (step + 1) as f32 / (gap.len() + 1) as f32;
                *value = left + share * (right - left);
            }
        }
    }
}

/// Returns the ranges of columns to be interpolated, with a column on both sides, from the changes of all columns.
pub fn gaps(changes: &[f64], snr: f64, size: usize) -> Vec<Range<usize>> {
    let bins = changes.len();
    let changes: Vec<f32> = changes.iter().map(|v| *v as f32).collect();
    let usual = running_median(&changes, size);
    let mean = usual.iter().map(|v| f64::from(*v)).sum::<f64>() / bins as f64;
    let factors: Vec<Option<f64>> = changes
        .iter()
        .zip(&usual)
        .map(|(own, usual)| if *usual > 0.0 { f64::from(*own) / f64::from(*usual) } else { f64::from(*own) / mean })
        .map(|factor| Some(if factor.is_finite() { factor } else { 1.0 }))
        .collect();
    let mut odd = dilated(&outstanding(&factors, snr, 0.5 * snr));
    let edge = bins.min(2);
    odd[..edge].fill(false);
    odd[bins - edge..].fill(false);
    let odd = unless_many(odd, bins);
    let mut gaps = Vec::new();
    let mut end = 0;
    while let Some(start) = (end..bins).find(|bin| odd[*bin]) {
        end = (start..bins).find(|bin| !odd[*bin]).unwrap_or(bins);
        gaps.push(start..end);
    }
    gaps
}

/// Returns, for each column, the sum of absolute differences from its mean over the [`ALIVE`] projections around each,
/// mirrored.
fn changes(sinogram: &[f32], bins: usize) -> Vec<f64> {
    let projections = sinogram.len() / bins;
    let row = |p: isize| &sinogram[mirrored(p, projections) * bins..][..bins];
    let (before, after) = (ALIVE as isize / 2, ALIVE as isize - ALIVE as isize / 2);
    let mut window = vec![0f64; bins];
    for p in -before..after {
        window.iter_mut().zip(row(p)).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let mut changes = vec![0f64; bins];
    for p in 0..projections as isize {
        let (now, gone, come) = (row(p), row(p - before), row(p + after));
        for (bin, sum) in window.iter_mut().enumerate() {
            changes[bin] += (f64::from(now[bin]) - *sum / ALIVE as f64).abs();
            *sum += f64::from(come[bin]) - f64::from(gone[bin]);
        }
    }
    changes
}

/// Finds outliers among factors by algorithm 4. A line is fitted to the middle half of the sorted factors. Factors
/// beyond its ends by `others` times its rise are outliers, if the extreme one is beyond by `extreme` times. Columns
/// without a factor are not outliers.
fn outstanding(factors: &[Option<f64>], extreme: f64, others: f64) -> Vec<bool> {
    // whole numbers in the same order are sorted faster
    let order = |bits: i64| bits ^ ((bits >> 63) as u64 >> 1) as i64;
    let mut keys: Vec<i64> = factors.iter().flatten().map(|factor| order(factor.to_bits() as i64)).collect();
    keys.sort_unstable();
    let sorted: Vec<f64> = keys.into_iter().map(|key| f64::from_bits(order(key) as u64)).collect();
    let count = sorted.len();
    let quarter = count / 4;
    let Some(middle) = sorted.get(quarter..(count - quarter).saturating_sub(1)).filter(|middle| middle.len() > 1)
    else {
        return vec![false; factors.len()];
    };
    let mean_x = quarter as f64 + (middle.len() - 1) as f64 / 2.0;
    let mean_y = middle.iter().sum::<f64>() / middle.len() as f64;
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, y) in middle.iter().enumerate() {
        let x = (quarter + i) as f64 - mean_x;
        xy += x * (y - mean_y);
        xx += x * x;
    }
    let low = mean_y - xy / xx * mean_x;
    let high = low + xy / xx * (count - 1) as f64;
    let noise = (high - low).abs().max(SMALLEST_NOISE);
    let above = (sorted[count - 1] - high) / noise >= extreme;
    let below = (low - sorted[0]) / noise >= extreme;
    let far = |f: f64| above && f > high + others * noise || below && f <= low - others * noise;
    factors.iter().map(|factor| factor.is_some_and(far)).collect()
}

/// Returns the set positions and their neighbours.
fn dilated(set: &[bool]) -> Vec<bool> {
    let at = |bin: usize| set.get(bin).copied().unwrap_or(false);
    (0..set.len()).map(|bin| at(bin) || at(bin + 1) || bin > 0 && at(bin - 1)).collect()
}

/// Clears all positions if a third of `count` columns is set: then they are too many to be replaced by their
/// neighbours.
fn unless_many(mut set: Vec<bool>, count: usize) -> Vec<bool> {
    if 3 * set.iter().filter(|set| **set).count() >= count {
        set.fill(false);
    }
    set
}
