//! The axis as the evidence of all projections, with a standard deviation.
//!
//! About the axis `c`, a row obeys `p(theta + pi, c + x) = p(theta, c - x)`: of the transform along the bins of its derivative
//! (times -i, [`window`]), the real part has only even harmonics of the angle and the imaginary part only odd ones. Both are
//! Gaussian processes over the angles ([`process`]) whose powers and noise are measured on the scan itself ([`model`]). So
//! every projection counts, at its own angle: there is no interpolation, and half turns, whole turns and missing angles are
//! alike. The misfit of an axis is a sum of cosines ([`misfit`]); its logarithm, with a noise level of its own for each row and
//! band of frequencies, is the logarithm of the likelihood.
//!
//! Where rows end in air at all angles, the window is the whole detector. Where the sample is cut off, a window reaches from
//! the trial axis to the nearer end of the detector, so that what lies beyond does not matter; windows over the detector are
//! compared by their likelihood relative to that of the same data without an axis. Samples without texture are searched
//! with a window about every position, and with the mean over the angles, which is symmetric about the axis ([`smooth`]).
//!
//! References: S. Helgason, The Radon Transform (1980), and D. Ludwig, Comm. Pure Appl. Math. 19 (1966), for the consistency of
//! projections; C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning (2006), for the evidence;
//! H. White, Econometrica 50 (1982), for errors of a model that is not quite true.

mod grid;
mod limits;
mod misfit;
mod model;
mod process;
mod scan;
mod smooth;
mod window;

use super::curve::{AxisVerdict, CostCurve, Minimum};
use super::{AxisTilt, Sinograms};
use grid::{LikelihoodGrid, highest};
pub(super) use limits::GAP;
use limits::{APART, CLEAR, FLOOR, LIMIT, MASS, SHOWN, SURE};
use misfit::{Against, Misfit};
use scan::{AIR, SearchedScan};

/// Least gain over phases at random.
const LEAST: f64 = 10.0;
/// Largest misfit of a datum, in units of its noise, that needs no explanation by the axis.
const MISFIT: f64 = 1.6;
/// Share of the misfit of phases at random that the axis must explain where [`MISFIT`] is exceeded.
const EXPLAINED: f64 = 0.6;
/// Distance in bins about an answer within which it is refined.
const NEAR: f64 = 4.0;
/// Step in bins of the refinement.
const STEP: f64 = 0.01;
/// Largest tilt in bins over the rows as a share of their height: three degrees.
const STEEPEST: f64 = 0.0524;
/// Smallest gain of a tilt that is kept, times the factor by which the likelihood is tempered.
const TILT_GAIN: f64 = 12.0;
/// Smallest tilt that is kept, in standard deviations.
const TILT_SIGMAS: f64 = 5.0;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct LikelyAxis {
    pub minimum: Minimum,
    /// The second most likely position, in bins, and its share of the likelihood of both.
    pub second: Option<(f64, f64)>,
    pub tilt: Option<AxisTilt>,
    pub costs: CostCurve,
    gap: f64,
    explained: f64,
    misfit: f64,
}

/// Finds the axis within a range of bins, or where the scan allows for one.
pub(super) fn search(sinograms: &Sinograms, range: Option<(f64, f64)>) -> LikelyAxis {
    let scan = SearchedScan::new(sinograms);
    let (scale, shift) = (scan.scale, (scan.scale - 1.0) / 2.0);
    let range = range.map(|(low, high)| ((low - shift) / scale, (high - shift) / scale));
    let mut found = within(&scan, range);
    found.minimum.at = (found.minimum.at * scale + shift).clamp(0.0, sinograms.bins as f64 - 1.0);
    found.minimum.uncertainty *= scale;
    found.second = found.second.map(|(at, share)| (at * scale + shift, share));
    found.costs = found.costs.moved(scale, shift);
    // from bins over all rows, both as they are reduced, to bins from row to row
    found.tilt = found.tilt.filter(|_| scan.height > 0.0).map(|tilt| tilt.times(1.0 / scan.height));
    found
}

/// Finds the axis of a reduced scan, in bins of that scan.
fn within(scan: &SearchedScan, range: Option<(f64, f64)>) -> LikelyAxis {
    if scan.cut() < AIR {
        let misfit = scan.whole();
        let (low, high) = range.unwrap_or((0.1 * scan.bins as f64, 0.9 * scan.bins as f64));
        let middle = (scan.bins as f64 - 1.0) / 2.0;
        let count = ((high - low) / 0.05) as usize + 1;
        let rows = misfit.log_likelihood(low - middle, 0.05, count, Against::Phases);
        return judge(scan, Some(misfit), &LikelihoodGrid { first: low, step: 0.05, rows });
    }
    let (free, phases) = scan.coarse(range);
    let found = judge(scan, None, &free);
    let ok = found.minimum.verdict == AxisVerdict::Ok;
    let (other, ..) = phases.best(&scan.heights, [0.0; 2]);
    if (other - found.minimum.at).abs() > 1.0 {
        // data that fit no model, or windows near an end that show little: the position that is best by far against
        // random phases
        let by_phases = judge(scan, None, &phases);
        let clear = by_phases.minimum.verdict == AxisVerdict::Ok && by_phases.gap > CLEAR;
        if clear && by_phases.explained > EXPLAINED {
            return if ok { by_phases.doubted(found.minimum.at) } else { by_phases };
        }
    }
    if ok || found.misfit > MISFIT {
        return found;
    }
    match smooth::search(scan, range) {
        Some(minimum) => LikelyAxis { minimum, tilt: None, second: None, ..found },
        None => found,
    }
}

impl LikelyAxis {
    /// Marks the axis as ambiguous, with another position that is as good.
    fn doubted(mut self, other: f64) -> LikelyAxis {
        self.minimum.verdict = AxisVerdict::Ambiguous;
        self.second = Some((other, 0.5));
        self
    }
}

/// Measures of the likelihood at an axis for each row: the curvature of its logarithm, the error by the curvature and
/// by the differences of the slopes of rows and bands (H. White's sandwich), and the curvature by row.
struct Measured {
    curvature: f64,
    deviation: f64,
    sandwich: f64,
    curvatures: Vec<f64>,
}

impl Measured {
    fn new(misfit: &Misfit, at: &[f64]) -> Measured {
        let spread = misfit.spread(at);
        let sum = |values: &[Vec<f64>]| -> Vec<f64> { values.iter().map(|row| row.iter().sum()).collect() };
        let (slopes, curvatures) = (sum(&spread.slopes), sum(&spread.curvatures));
        let curvature = curvatures.iter().sum::<f64>().max(1e-12);
        let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
        let count = at.len() as f64;
        let bands = spread.slopes.first().map_or(0, Vec::len);
        let cells = squares(&mut spread.slopes.iter().flatten().copied());
        let by_band = squares(&mut (0..bands).map(|band| spread.slopes.iter().map(|row| row[band]).sum::<f64>()));
        let by_row = if count > 2.0 { squares(&mut slopes.iter().copied()) * count / (count - 1.0) } else { 0.0 };
        let sandwich = cells.max(by_band).max(by_row).sqrt() / curvature;
        Measured { curvature, deviation: curvature.powf(-0.5), sandwich, curvatures }
    }

    /// Returns the divisor of the logarithm of the likelihood, whose model is not quite true.
    fn tempered(&self) -> f64 {
        (self.sandwich / self.deviation).powi(2).max(1.0)
    }

    /// Returns the standard deviation of the tilt over the rows in bins.
    fn of_tilt(&self, heights: &[f64]) -> f64 {
        if heights.len() < 3 {
            return f64::INFINITY;
        }
        let weight = |v: &f64| v.max(1e-9);
        let whole: f64 = self.curvatures.iter().map(weight).sum();
        let middle = self.curvatures.iter().zip(heights).map(|(v, y)| weight(v) * y).sum::<f64>() / whole;
        let spread = self.curvatures.iter().zip(heights).map(|(v, y)| weight(v) * (y - middle).powi(2)).sum::<f64>();
        (self.tempered() / spread).sqrt()
    }
}

/// An axis that has been refined, with its misfit and what follows from it.
struct Refined {
    axis: f64,
    /// Tilt in bins over the rows; 0 if it may be chance.
    tilt: f64,
    /// Most likely tilt in bins over the rows.
    likely: f64,
    /// Distance in bins by which the last window moved.
    moved: f64,
    misfit: Misfit,
    /// Likelihood about the axis; that of a row lies `slant` times the row's height beside it.
    near: LikelihoodGrid,
    slant: f64,
    measured: Measured,
}

/// Centres windows on an axis until it no longer moves, unless the misfit is that of whole rows. Returns the misfit,
/// the axis and the last move in bins.
fn settle(scan: &SearchedScan, whole: Option<Misfit>, mut axis: f64, slant: f64) -> (Misfit, f64, f64) {
    if let Some(misfit) = whole {
        return (misfit, axis, 0.0);
    }
    let mut misfit = scan.about(axis, slant, None, false);
    let mut moved = 0.0;
    for turn in 0..6 {
        if turn > 0 {
            let model = (turn > 2).then(|| misfit.model.clone());
            misfit = scan.about(axis, slant, model, false);
        }
        let (low, high) = ((-3.0f64).max(-axis), 3f64.min(scan.bins as f64 - 1.0 - axis));
        let count = ((high - low) / STEP) as usize + 1;
        let near =
            LikelihoodGrid { first: low, step: STEP, rows: misfit.log_likelihood(low, STEP, count, Against::Phases) };
        moved = near.at(highest(&near.sum(0.0, &scan.heights)));
        axis += moved;
        if moved.abs() < 0.05 && turn > 0 {
            break;
        }
    }
    (misfit, axis, moved.abs())
}

/// Refines an axis and the tilt about it.
fn refine(scan: &SearchedScan, whole: Option<Misfit>, axis: f64, slant: f64, steepest: f64) -> Refined {
    let heights = &scan.heights;
    let (misfit, axis, moved) = settle(scan, whole, axis, slant);
    let middles = misfit.windowed.axes.clone();
    let at = |axis: f64, tilt: f64| -> Vec<f64> {
        heights.iter().zip(&middles).map(|(y, middle)| axis + tilt * y - middle).collect()
    };
    let count = (2.0 * NEAR / STEP) as usize + 1;
    let rows = (0..heights.len()).map(|row| misfit.of_row(row, at(axis - NEAR, slant)[row], STEP, count)).collect();
    let near = LikelihoodGrid { first: axis - NEAR, step: STEP, rows };
    let range = [(-NEAR).max(-steepest - slant), NEAR.min(steepest - slant)];
    let (best, further, gain) = near.best(heights, range);
    let measured = Measured::new(&misfit, &at(best, slant + further));
    let needed = (TILT_SIGMAS * measured.of_tilt(heights)).max(0.1);
    let likely = slant + further;
    if slant != 0.0 || (gain >= TILT_GAIN * measured.tempered() && further.abs() >= needed) {
        return Refined { axis: best, tilt: likely, likely, moved, misfit, near, slant, measured };
    }
    let best = near.at(highest(&near.sum(0.0, heights)));
    let measured = Measured::new(&misfit, &at(best, 0.0));
    Refined { axis: best, tilt: 0.0, likely, moved, misfit, near, slant, measured }
}

/// Returns the distance of the maximum from the axis and its standard deviations by curvature and by spread, where
/// windows move with the axis: only these tell how sharp the maximum of a smooth sample is.
fn moving(scan: &SearchedScan, refined: &Refined) -> (f64, [f64; 2]) {
    let Refined { axis, tilt, misfit, measured, .. } = refined;
    let by = (2.0 * measured.deviation.max(measured.sandwich)).clamp(0.25, 1.5);
    let [before, here, after] = [-by, 0.0, by].map(|by| {
        let misfit = scan.about(axis + by, *tilt, Some(misfit.model.clone()), false);
        misfit.log_likelihood_at(&vec![0.0; scan.heights.len()], Against::Phases)
    });
    let curvature = (2.0 * here - before - after) / (by * by);
    if curvature <= 0.0 {
        return (9.0, [9.0, measured.sandwich]);
    }
    let wider = measured.curvature / curvature;
    let deviations = [measured.deviation * wider.sqrt().max(1.0), measured.sandwich * wider.max(1.0)];
    ((after - before) / (2.0 * by) / curvature, deviations)
}

/// Returns the axis, its error and the verdict from a likelihood over the detector. `whole` is the misfit of whole
/// rows; `None` for windows.
fn judge(scan: &SearchedScan, whole: Option<Misfit>, grid: &LikelihoodGrid) -> LikelyAxis {
    let heights = &scan.heights;
    let full = whole.is_some();
    let steepest = (STEEPEST * scan.height).min(0.2 * scan.bins as f64);
    let (mut start, mut slant, gain) = grid.best(heights, [-steepest, steepest]);
    if gain < 5.0 * TILT_GAIN {
        (start, slant) = (grid.at(highest(&grid.sum(0.0, heights))), 0.0);
    }
    let over = grid.sum(slant, heights);
    // a smaller slant is found in the same windows
    let slant = if slant.abs() < NEAR { 0.0 } else { slant };
    let (second, below) = rival(grid, &over, start);
    let edge = (start - grid.first).min(grid.at(grid.len() - 1) - start);
    let refined = refine(scan, whole, start, slant, steepest);
    let Refined { axis, tilt, moved, misfit, near, measured, .. } = &refined;
    let (shift, deviations) =
        if full { (0.0, [measured.deviation, measured.sandwich]) } else { moving(scan, &refined) };
    let tempered = measured.tempered();
    let deviation = deviations[0].max(deviations[1]);
    let uncertainty = deviation.hypot(FLOOR);
    let along = near.sum(tilt - refined.slant, heights);
    let top = along[highest(&along)];
    let part = |reach: f64| -> f64 {
        let inside = along.iter().enumerate().filter(|(i, _)| (near.at(*i) - axis).abs() <= reach);
        inside.map(|(_, v)| ((v - top) / tempered).exp()).sum()
    };
    let mass = part(0.5 / scan.scale) / part(f64::INFINITY);
    let at: Vec<f64> = heights.iter().zip(&misfit.windowed.axes).map(|(y, middle)| axis + tilt * y - middle).collect();
    let [with, without] = misfit.of_data(&at);
    let explained = (without - with) / (without - 1.0).max(1e-3);
    let gap = below / tempered;
    let sure = gap > SURE;
    let unexplained = with > MISFIT && explained < EXPLAINED;
    let verdict = if top / tempered < LEAST || unexplained {
        AxisVerdict::Flat
    } else if edge < 0.5 {
        AxisVerdict::Railed
    } else if gap < GAP * if *tilt != 0.0 { 2.0 } else { 1.0 } {
        AxisVerdict::Ambiguous
    } else if (deviation * scan.scale).hypot(FLOOR) > LIMIT * if sure { 1.4 } else { 1.0 }
        || mass < if sure { 0.95 } else { MASS }
        || *moved > 0.3
        || shift.abs() > 0.5
    {
        AxisVerdict::Uncertain
    } else {
        AxisVerdict::Ok
    };
    let tilt = AxisTilt { slope: *tilt, likely: refined.likely, uncertainty: measured.of_tilt(heights) };
    let less = (-gap).exp();
    LikelyAxis {
        minimum: Minimum { at: *axis, uncertainty, confidence: mass, verdict },
        second: (gap < SHOWN).then_some((second, less / (1.0 + less))),
        tilt: tilt.uncertainty.is_finite().then_some(tilt),
        costs: curve(grid, &over, tempered),
        gap,
        explained,
        misfit: with,
    }
}

/// Returns the most likely position that is more than [`APART`] bins away, and by how much its logarithm of the
/// likelihood is lower.
fn rival(grid: &LikelihoodGrid, over: &[f64], axis: f64) -> (f64, f64) {
    let top = over[highest(over)];
    let far = (0..over.len()).filter(|i| (grid.at(*i) - axis).abs() > APART);
    let best = far.max_by(|&a, &b| over[a].total_cmp(&over[b]));
    best.map_or((axis, f64::INFINITY), |i| (grid.at(i), top - over[i]))
}

/// Returns the tempered logarithm of the likelihood as a cost: 0 at the most likely position.
fn curve(grid: &LikelihoodGrid, over: &[f64], tempered: f64) -> CostCurve {
    let top = over[highest(over)];
    let low = over.iter().copied().filter(|v| v.is_finite()).fold(top, f64::min);
    let of = |(i, v): (usize, &f64)| [grid.at(i), (top - v.max(low)) / tempered];
    CostCurve { whole: over.iter().enumerate().map(of).collect(), near: Vec::new() }
}
