//! A scan as the search sees it: rows that are reduced in size, and their content in windows.

use super::grid::LikelihoodGrid;
use super::misfit::{Against, Misfit};
use super::model::{Model, Prior};
use super::process::{AngleSteps, Transforms};
use super::window::{AxisWindow, Windowed};
use crate::center::Sinograms;
use crate::center::curve::median;
use crate::center::zingers::mirrored;
use rayon::prelude::*;
use std::sync::Arc;

/// Share of the peak that the ends of rows reach at most where the sample is not cut off.
pub const AIR: f64 = 0.03;
/// Highest frequencies in radians per bin: of the answer, and of the search for it.
pub const FINE: f64 = 1.6;
/// Highest frequency of the search over the detector in radians per bin.
pub const COARSE: f64 = 0.9;
/// Share of a window's reach over which it falls to zero.
pub const TAPER: f64 = 0.35;
/// Lowest frequency in units of a window's resolution.
const LOWEST: f64 = 0.75;
/// Largest numbers of bins and projections of half a turn to which rows with evenly spaced angles are reduced.
const EVEN: (usize, usize) = (1024, 1024);
/// Largest numbers of bins and projections to which rows with other angles are reduced, whose matrices are factored.
const UNEVEN: (usize, usize) = (256, 320);
/// Number of projections per bin and half turn that show all harmonics used.
const ENOUGH: f64 = 2.0;
/// Smallest number of projections that remain after averaging.
const FEWEST: usize = 32;
/// Largest deviation of a step, as a share of the median step, of evenly spaced angles.
const SAME_STEP: f64 = 0.05;

/// A scan that is reduced in size for the search.
pub struct SearchedScan {
    /// Number of detector bins that are averaged into a bin here.
    pub scale: f64,
    pub bins: usize,
    pub angles: AngleSteps,
    /// Heights of the rows, from -1/2 to 1/2.
    pub heights: Vec<f64>,
    /// Distance from the first to the last row in rows, divided by `scale`.
    pub height: f64,
    /// True if most projections have an opposite one.
    pub turn: bool,
    /// Sinogram `[projection][bin]` of each row.
    pub rows: Vec<Vec<f32>>,
    /// Differences of each row from bin to bin.
    derivatives: Vec<Vec<f32>>,
    /// Standard deviation of the mean over the angles from bin to bin.
    stripes: f64,
}

impl SearchedScan {
    /// Reduces a scan in size.
    pub fn new(sinograms: &Sinograms) -> SearchedScan {
        let clean = sinograms.turn();
        let radians = |sinograms: &Sinograms| sinograms.angles.iter().map(|a| a.to_radians()).collect::<Vec<f64>>();
        let even = is_even(&radians(&clean));
        let (most_bins, most_projections) = if even { EVEN } else { UNEVEN };
        let factor = clean.bins.div_ceil(most_bins);
        let bins = clean.bins / factor;
        let count = clean.angles.len();
        let turns = ((clean.coverage() + clean.step()) / 180.0).max(0.5);
        let enough = (count as f64 / turns / (ENOUGH * bins as f64)) as usize;
        let spans = if even { turns } else { 1.0 };
        let most = (count as f64 / spans / most_projections as f64).ceil() as usize;
        let groups = enough.max(most).clamp(1, (count / FEWEST).max(1));
        let reduced = if factor > 1 { clean.binned(factor) } else { clean };
        let reduced = if groups > 1 { reduced.fewer(groups) } else { reduced };
        SearchedScan::of(&reduced, even, factor)
    }

    fn of(sinograms: &Sinograms, even: bool, factor: usize) -> SearchedScan {
        let radians: Vec<f64> = sinograms.angles.iter().map(|a| a.to_radians()).collect();
        let bins = sinograms.bins;
        let derivative = |row: &Vec<f32>| -> Vec<f32> {
            row.chunks(bins).flat_map(|line| line.windows(2).map(|pair| pair[1] - pair[0])).collect()
        };
        let (low, high) = sinograms.heights.iter().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(*v), h.max(*v)));
        let height = (high - low).max(0.0);
        let place = |v: &f64| if height > 0.0 { (v - low) / height - 0.5 } else { 0.0 };
        let count = radians.len();
        let whole = radians[count - 1] - radians[0];
        let angles = if even {
            AngleSteps::Even(count, whole / (count as f64 - 1.0), Transforms::new(count))
        } else {
            AngleSteps::Uneven(radians)
        };
        let bend = |row: &Vec<f32>| {
            let mean: Vec<f64> = (0..bins)
                .map(|b| row.iter().skip(b).step_by(bins).map(|v| f64::from(*v)).sum::<f64>() / count as f64)
                .collect();
            mean.windows(3).map(|w| (w[0] - 2.0 * w[1] + w[2]).abs()).collect::<Vec<f64>>()
        };
        let stripes = 1.4826 * median(sinograms.rows.iter().flat_map(bend)) / 6f64.sqrt();
        SearchedScan {
            scale: factor as f64,
            bins,
            turn: whole + whole / (count as f64 - 1.0) > 340f64.to_radians(),
            angles,
            heights: sinograms.heights.iter().map(place).collect(),
            height: height / factor as f64,
            derivatives: sinograms.rows.par_iter().map(derivative).collect(),
            rows: sinograms.rows.clone(),
            stripes,
        }
    }

    /// Averages `factor` bins into one and, accordingly, reduces the number of projections.
    pub fn binned(&self, factor: usize) -> SearchedScan {
        let angles = (0..self.angles.len()).map(|p| self.angles.at(p).to_degrees()).collect();
        let same = Sinograms {
            bins: self.bins,
            angles,
            heights: self.heights.iter().map(|y| y * self.height).collect(),
            rows: self.rows.clone(),
        };
        let binned = same.binned(factor);
        let turns = ((binned.coverage() + binned.step()) / 180.0).max(0.5);
        let enough = (binned.angles.len() as f64 / turns / (ENOUGH * binned.bins as f64)) as usize;
        let even = matches!(self.angles, AngleSteps::Even(..));
        let reduced = SearchedScan::of(&if enough > 1 { binned.fewer(enough) } else { binned }, even, factor);
        SearchedScan { scale: self.scale * factor as f64, ..reduced }
    }

    /// Returns the share of the peak that the ends of the rows reach at some angle, above the noise.
    pub fn cut(&self) -> f64 {
        let ends = ((0.02 * self.bins as f64) as usize).max(3).min(self.bins);
        let of_row = |row: &Vec<f32>| {
            let mut sorted: Vec<f32> = row.iter().step_by((row.len() / 65536).max(1)).copied().collect();
            let at = (sorted.len() - 1) * 97 / 100;
            let peak = f64::from(*sorted.select_nth_unstable_by(at, f32::total_cmp).1).max(1e-9);
            let mean = |values: &[f32]| values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64;
            let both: [Vec<f64>; 2] = [
                row.chunks(self.bins).map(|line| mean(&line[..ends])).collect(),
                row.chunks(self.bins).map(|line| mean(&line[self.bins - ends..])).collect(),
            ];
            let noise_of = |values: &[Vec<f64>; 2]| {
                1.4826 * median(values.iter().flat_map(|v| v.windows(2).map(|pair| (pair[1] - pair[0]).abs())))
                    / 2f64.sqrt()
            };
            // average so many projections that noise does not decide
            let ratio = noise_of(&both) / (AIR / 3.0 * peak);
            let group = ((ratio * ratio) as usize).clamp(7, (self.angles.len() / 8).max(7));
            let means = both.map(|values| -> Vec<f64> {
                running_median(&values).chunks(group).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect()
            });
            let noise = noise_of(&means);
            let most = means.iter().flatten().map(|v| v.abs()).fold(0.0, f64::max);
            (most - 3.0 * noise) / peak
        };
        self.rows.iter().map(of_row).fold(0.0, f64::max)
    }

    /// Returns the distance in bins from a position to the nearer end of the detector.
    pub fn reach(&self, axis: f64) -> f64 {
        axis.min(self.bins as f64 - 1.0 - axis).max(3.0)
    }

    pub fn look(&self, window: AxisWindow, axes: &[f64]) -> Windowed {
        window.look(&self.derivatives, self.bins - 1, axes)
    }

    /// Returns the variance of the mean over the angles that stripes cause, as a function of the frequency.
    pub fn stripes(&self) -> impl Fn(f64) -> f64 + Sync + use<> {
        let variance = self.stripes * self.stripes;
        move |w| variance * 4.0 * (w / 2.0).sin().powi(2) * (1.0 + 0.5 / w)
    }

    /// Returns the misfit of whole rows.
    pub fn whole(&self) -> Misfit {
        let middle = (self.bins as f64 - 1.0) / 2.0;
        let window = AxisWindow { reach: middle + 0.01, taper: 0.0, highest: FINE, lowest: LOWEST };
        let windowed = self.look(window, &vec![middle; self.rows.len()]);
        let stripes = self.stripes();
        let model = Model::new(&self.angles, &windowed, windowed.size, Prior { low: 1.0, stripes: Some(&stripes) });
        Misfit::new(windowed, Arc::new(model), &self.angles, false)
    }

    /// Returns the misfit in windows about an axis that changes by `slant` bins over the rows.
    pub fn about(&self, axis: f64, slant: f64, model: Option<Arc<Model>>, free: bool) -> Misfit {
        let axes: Vec<f64> = self.heights.iter().map(|y| axis + slant * y).collect();
        let reach = axes.iter().map(|axis| self.reach(*axis)).fold(f64::MAX, f64::min);
        let windowed = self.look(AxisWindow { reach, taper: TAPER, highest: FINE, lowest: LOWEST }, &axes);
        let model = model.unwrap_or_else(|| {
            Arc::new(Model::new(&self.angles, &windowed, windowed.size, Prior { low: 1.0, stripes: None }))
        });
        Misfit::new(windowed, model, &self.angles, free)
    }

    /// Returns the range of positions that are searched.
    pub fn range(&self, range: Option<(f64, f64)>, turn: f64, least: f64) -> (f64, f64) {
        let bins = self.bins as f64;
        let low = if self.turn { (turn * bins).max(least) } else { 0.2 * bins };
        range.unwrap_or((low, bins - 1.0 - low))
    }

    /// Returns the logarithm of the likelihood over the detector relative to no axis and to phases at random, by
    /// windows that are centred all over the detector.
    pub fn coarse(&self, range: Option<(f64, f64)>) -> (LikelihoodGrid, LikelihoodGrid) {
        const STEP: f64 = 0.1;
        let bins = self.bins as f64;
        let middle = (bins - 1.0) / 2.0;
        let rows = self.rows.len();
        let wide = AxisWindow { reach: middle, taper: 0.3, highest: COARSE, lowest: LOWEST };
        let windowed = self.look(wide, &vec![middle; rows]);
        let prior = Prior { low: 1.0, stripes: None };
        let model = Arc::new(Model::new(&self.angles, &windowed, windowed.size / 3.0, prior));
        let (low, high) = self.range(range, 0.035, 6.0);
        let count = ((high - low) / STEP) as usize + 1;
        let mut middles = vec![low.min(middle)];
        while let Some(&last) = middles.last().filter(|last| **last < middle) {
            middles.push(last + (0.3 * self.reach(last)).max(1.0));
        }
        middles.pop();
        let mirrored: Vec<f64> = middles.iter().map(|at| bins - 1.0 - at).collect();
        middles.push(middle);
        middles.extend(mirrored);
        middles.sort_by(f64::total_cmp);
        let nearest = |at: f64| {
            (0..middles.len()).min_by(|&a, &b| (middles[a] - at).abs().total_cmp(&(middles[b] - at).abs())).unwrap_or(0)
        };
        let own: Vec<usize> = (0..count).map(|i| nearest(low + i as f64 * STEP)).collect();
        let empty = || vec![vec![f64::NEG_INFINITY; count]; rows];
        let (mut free, mut phases) = (empty(), empty());
        for (number, &middle) in middles.iter().enumerate() {
            let Some(start) = own.iter().position(|own| *own == number) else { continue };
            let length = own[start..].iter().take_while(|own| **own == number).count();
            let window = AxisWindow { reach: self.reach(middle), taper: TAPER, highest: COARSE, lowest: LOWEST };
            let windowed = self.look(window, &vec![middle; rows]);
            let misfit = Misfit::new(windowed, model.clone(), &self.angles, true);
            let first = low + start as f64 * STEP - middle;
            for (to, reference) in [(&mut free, Against::Free), (&mut phases, Against::Phases)] {
                let of = misfit.log_likelihood(first, STEP, length, reference);
                to.iter_mut().zip(of).for_each(|(to, of)| to[start..start + length].copy_from_slice(&of));
            }
        }
        let grid = |rows| LikelihoodGrid { first: low, step: STEP, rows };
        (grid(free), grid(phases))
    }
}

/// Reports whether angles in radians are evenly spaced.
fn is_even(angles: &[f64]) -> bool {
    let step = median(angles.windows(2).map(|pair| pair[1] - pair[0]));
    angles.windows(2).all(|pair| (pair[1] - pair[0] - step).abs() < SAME_STEP * step)
}

/// Returns the running median of seven values, mirrored at the ends.
fn running_median(values: &[f64]) -> Vec<f64> {
    let at = |i| values[mirrored(i, values.len())];
    (0..values.len() as isize).map(|i| median((i - 3..=i + 3).map(at))).collect()
}

impl Sinograms {
    /// Keeps at most one turn, and only half a turn of a scan of about half a turn; further projections are left out.
    fn turn(&self) -> Sinograms {
        let (step, covered) = (self.step(), self.coverage());
        let first = self.angles.first().copied().unwrap_or(0.0);
        let end = if covered > 179.0 && covered < 181.0 + step { 180.0 } else { 360.0 };
        let count = self.angles.partition_point(|angle| angle - first < end - step / 2.0);
        Sinograms {
            bins: self.bins,
            angles: self.angles[..count].to_vec(),
            heights: self.heights.clone(),
            rows: self.rows.par_iter().map(|row| row[..count * self.bins].to_vec()).collect(),
        }
    }

    /// Averages groups of `factor` successive projections; an incomplete group at the end is dropped.
    fn fewer(&self, factor: usize) -> Sinograms {
        let (bins, count) = (self.bins, self.angles.len() / factor);
        let angles =
            (0..count).map(|p| self.angles[p * factor..(p + 1) * factor].iter().sum::<f64>() / factor as f64).collect();
        let row = |values: &Vec<f32>| {
            let mut means = vec![0f32; count * bins];
            for (p, line) in values.chunks(bins).take(count * factor).enumerate() {
                let to = &mut means[p / factor * bins..][..bins];
                to.iter_mut().zip(line).for_each(|(sum, value)| *sum += value / factor as f32);
            }
            means
        };
        Sinograms { bins, angles, heights: self.heights.clone(), rows: self.rows.par_iter().map(row).collect() }
    }
}
