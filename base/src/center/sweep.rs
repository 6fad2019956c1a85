//! Slices for trial axes, by filtered back projection on the host, and their sharpness.
//!
//! The measure is the sum of the negative values (T. Donath, F. Beckmann and A. Schreyer, Automated determination of
//! the center of rotation in tomography data, J. Opt. Soc. Am. A 23, 1048 (2006), Q_IN): misplaced edges leave arcs
//! below and above zero. Their other measure, the absolute values, needs slices with a constant sum, which a sample at
//! the edge of the field of view does not give.

use super::curve::{AxisVerdict, CostCurve, Curve, Minimum, TrialPositions};
use super::{AGREEMENT, Sinograms};
use crate::geometry::{AngleWeights, cos_sin_degrees, weights};
use crate::numbers::floor;
use crate::spectrum::{Filter, padded_length, spectrum};
use host_fft::{Complex, Real};
use multiversion::multiversion;
use rayon::prelude::*;

/// Widest detector on which the whole range is searched; wider ones are binned for that.
const COARSE: usize = 128;
/// Side of the grid on which a slice is evaluated.
const GRID: usize = 128;
/// Radii of the circles that are evaluated, as shares of half the detector. Near its end truncation causes arcs, but
/// omitting that region may lose decisive structure: the results of both circles must agree.
const RADII: [f64; 2] = [0.85, 1.0];
/// Number of tiles along the side of the grid, each with a minimum of its own.
const TILES: usize = 6;
/// Largest number of projections that are used.
const PROJECTIONS: usize = 480;
/// Number of points that a thread evaluates for all axes at a time.
const TOGETHER: usize = 512;

/// A filtered sinogram that can be reconstructed for any axis.
struct Trials {
    bins: usize,
    /// Cosine and sine of each angle.
    rotations: Vec<[f64; 2]>,
    /// Filtered rows, multiplied by the weights of the projections in radians.
    rows: Vec<f32>,
}

impl Trials {
    /// Filters line integrals `[projection][bin]` of one row at angles in degrees, using at most [`PROJECTIONS`] of
    /// them.
    fn new(sinogram: &[f32], bins: usize, angles: &[f64]) -> Trials {
        let stride = angles.len().div_ceil(PROJECTIONS).max(1);
        let used: Vec<f64> = angles.iter().copied().step_by(stride).collect();
        let mut rows = filtered(sinogram.chunks(bins).step_by(stride).flatten().copied().collect(), bins);
        for (row, weight) in rows.chunks_mut(bins).zip(weights(&used, AngleWeights::Spacing, 180.0)) {
            row.iter_mut().for_each(|value| *value *= weight as f32);
        }
        Trials { bins, rotations: used.iter().map(|angle| cos_sin_degrees(*angle).into()).collect(), rows }
    }

    /// Returns the attenuation per pixel, `[point][position]`, at points given in pixels to the right of and below the
    /// axis. The axis is at each of the positions in turn, of which a bin holds a whole number.
    ///
    /// The contributions of a projection to a point for successive axes are adjacent in its row, once the row has been
    /// refined to a value for every position instead of every bin.
    fn values(&self, axes: &TrialPositions, points: &[[f64; 2]]) -> Vec<f32> {
        let finer = (1.0 / axes.step).round() as usize;
        let last = (self.bins - 1) * finer;
        let mut values = vec![0f32; points.len() * axes.count];
        let parts = values.par_chunks_mut(TOGETHER * axes.count).zip(points.par_chunks(TOGETHER));
        parts.for_each_init(Vec::new, |fine, (values, points)| {
            for (row, [cos, sin]) in self.rows.chunks(self.bins).zip(&self.rotations) {
                refine(row, finer, fine);
                for (sums, [x, y]) in values.chunks_mut(axes.count).zip(points) {
                    // position for the first axis; beyond the ends of the row there is nothing
                    let at = (axes.first + x * cos - y * sin) * finer as f64;
                    let first = floor(at) as isize;
                    let share = (at - first as f64) as f32;
                    let start = (-first).max(0) as usize;
                    let end = (last as isize - first).clamp(0, axes.count as isize) as usize;
                    if start < end {
                        let from = (first + start as isize) as usize;
                        add_between(&mut sums[start..end], &fine[from..=from + end - start], share);
                    }
                }
            }
        });
        values
    }
}

/// Refines a row by linear interpolation: `finer` values for each bin but the last, and the last value.
fn refine(row: &[f32], finer: usize, fine: &mut Vec<f32>) {
    fine.clear();
    for pair in row.windows(2) {
        let slope = (pair[1] - pair[0]) / finer as f32;
        fine.extend((0..finer).map(|i| pair[0] + i as f32 * slope));
    }
    fine.extend(row.last());
}

/// Adds the values at `share` of the way from each value to the next one. Also compiled for processors with wider
/// vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn add_between(sums: &mut [f32], values: &[f32], share: f32) {
    for ((sum, value), next) in sums.iter_mut().zip(values).zip(&values[1..]) {
        *sum += value + share * (next - value);
    }
}

/// Ramp-filters rows that are padded with their edge values.
fn filtered(mut rows: Vec<f32>, bins: usize) -> Vec<f32> {
    let length = padded_length(bins);
    let factors: Vec<f32> =
        spectrum(Filter::Ramp, 1.0, length).iter().map(|value| (value / length as f64) as f32).collect();
    let (forward, backward) = (f32::real_forward(length), f32::real_inverse(length));
    let fresh = || (forward.make_input_vec(), forward.make_output_vec());
    rows.par_chunks_mut(bins).for_each_init(fresh, |(values, frequencies), row| {
        let (first, last) = (row[0], row[bins - 1]);
        values[..bins].copy_from_slice(row);
        let middle = bins + (length - bins) / 2;
        values[bins..middle].fill(last);
        values[middle..].fill(first);
        // lengths are those of the plans, and the first and last frequency of a real row are real
        if forward.process(values, frequencies).is_ok() {
            frequencies.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= factor);
            let end = frequencies.len() - 1;
            frequencies[0] = Complex::new(frequencies[0].re, 0.0);
            frequencies[end] = Complex::new(frequencies[end].re, frequencies[end].im * (length % 2) as f32);
            if backward.process(frequencies, values).is_ok() {
                row.copy_from_slice(&values[..bins]);
            }
        }
    });
    rows
}

/// Finds the axis between two positions in bins, from the middle one of the sampled rows.
pub(super) fn search(sinograms: &Sinograms, low: f64, high: f64) -> (Minimum, CostCurve) {
    let [(inner, costs), (full, _)] =
        RADII.map(|radius| within(sinograms, low, high, radius * sinograms.bins as f64 / 2.0));
    let agree = full.verdict == AxisVerdict::Ok && (inner.at - full.at).abs() <= AGREEMENT;
    match inner.verdict {
        AxisVerdict::Ok if !agree => (Minimum { verdict: AxisVerdict::Ambiguous, ..inner }, costs),
        _ => (inner, costs),
    }
}

/// Returns a function that computes the shares of negative values, `[position][tile]`, of slices inside a circle of
/// `radius` bins about the axis, from the middle one of the sampled rows.
fn sharpness(sinograms: &Sinograms, radius: f64) -> impl Fn(&TrialPositions) -> Vec<Vec<[f64; 2]>> + use<> {
    let row = &sinograms.rows[sinograms.rows.len() / 2];
    // half a turn only: with a wrong axis, opposite views would be summed and blur the slice instead of leaving arcs
    let used = sinograms.half_turn();
    let trials = Trials::new(&row[..used * sinograms.bins], sinograms.bins, &sinograms.angles[..used]);
    let points = grid(radius);
    let tile = |&[x, y]: &[f64; 2]| {
        let along = |v: f64| ((v / radius + 1.0) / 2.0 * TILES as f64).clamp(0.0, TILES as f64 - 1.0) as usize;
        along(y) * TILES + along(x)
    };
    let tiles: Vec<usize> = points.iter().map(tile).collect();
    move |axes: &TrialPositions| {
        let mut shares = vec![vec![[0f64; 2]; TILES * TILES]; axes.count];
        for (values, tile) in trials.values(axes, &points).chunks(axes.count).zip(&tiles) {
            for (shares, value) in shares.iter_mut().zip(values) {
                shares[*tile][0] += f64::from((-value).max(0.0));
                shares[*tile][1] += 1.0;
            }
        }
        shares
    }
}

/// Finds the axis from the values inside a circle of `radius` bins about it.
fn within(sinograms: &Sinograms, low: f64, high: f64, radius: f64) -> (Minimum, CostCurve) {
    let factor = sinograms.bins.div_ceil(COARSE);
    let (scale, shift) = (factor as f64, (factor as f64 - 1.0) / 2.0);
    let coarse = sharpness(&sinograms.binned(factor), radius / scale);
    let curve = Curve::sample(TrialPositions::new((low - shift) / scale, (high - shift) / scale, 0.5), coarse);
    let mut costs = CostCurve::of_binned(&curve, scale, shift);
    let mut minimum = curve.minimum();
    minimum.at = minimum.at * scale + shift;
    if minimum.verdict == AxisVerdict::Flat {
        return (minimum, costs);
    }
    let fine = sharpness(sinograms, radius);
    for (reach, step) in [(scale + 1.0, 0.25), (0.5, 0.1)] {
        let near = Curve::sample(TrialPositions::new(minimum.at - reach, minimum.at + reach, step), &fine);
        // parts may put the minimum outside the narrow range
        if step > 0.1 {
            minimum.uncertainty = near.uncertainty();
            costs.near = near.points();
        }
        minimum.at = near.vertex();
    }
    (minimum.with_error(0.0), costs)
}

/// Scores of trial axes: the mean of the negative values in a slice about each, in attenuation per bin. The lowest is the
/// best.
#[derive(Clone, Debug)]
pub struct TrialScores {
    /// Score of each trial axis.
    pub scores: Vec<f64>,
    /// Scores of axes between the first and the last, in finer steps: position in bins, score.
    pub between: Vec<[f64; 2]>,
    /// Lowest score of all of these.
    pub minimum: Minimum,
}

/// Steps in bins at which scores between trial axes are computed.
const STEPS: [f64; 7] = [1.0, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01];
/// Number of steps between the first and the last trial axis from which the lowest score is told from roughness.
const ENOUGH: f64 = 64.0;
/// Distance in bins from the lowest score within which parts of a slice are compared.
const REACH: f64 = 2.0;

/// Returns the scores of trial axes in bins, ascending, of the middle one of the sampled rows: the measure of the method
/// `sweep`, inside the smaller of its circles, at every axis.
pub(super) fn scores(sinograms: &Sinograms, axes: &[f64]) -> TrialScores {
    let shares = sharpness(sinograms, RADII[0] * sinograms.bins as f64 / 2.0);
    let of_one = |&axis: &f64| {
        let here = TrialPositions { first: axis, step: 1.0, count: 1 };
        Curve::sample(here, &shares).points().first().map_or(0.0, |point| point[1])
    };
    let (first, last) = (axes.first().copied().unwrap_or_default(), axes.last().copied().unwrap_or_default());
    let fine = STEPS.into_iter().find(|step| (last - first) / step >= ENOUGH);
    let positions = TrialPositions::new(first, last, fine.unwrap_or(STEPS[STEPS.len() - 1]));
    let between = Curve::sample(positions, &shares);
    let lowest = between.minimum();
    // as of the method: parts may put the minimum anywhere in a wide range
    let near = Curve::sample(TrialPositions::new(lowest.at - REACH, lowest.at + REACH, REACH / 8.0), &shares);
    TrialScores {
        scores: axes.iter().map(of_one).collect(),
        minimum: Minimum { uncertainty: near.uncertainty(), ..lowest }.with_error(0.0),
        between: between.points(),
    }
}

/// Returns the points of a grid inside a circle about the axis, with at most [`GRID`] along the diameter.
fn grid(radius: f64) -> Vec<[f64; 2]> {
    let spacing = (2.0 * radius / GRID as f64).ceil().max(1.0);
    let half = (radius / spacing) as i32;
    let line = || (-half..=half).map(|i| f64::from(i) * spacing);
    line().flat_map(|y| line().map(move |x| [x, y])).filter(|[x, y]| x.hypot(*y) < radius - 1.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::even_angles;
    use crate::phantom::{Kind, Phantom};

    #[test]
    fn scores_of_trials_are_lowest_where_the_method_finds_the_axis() {
        let (bins, axis) = (96, 50.3);
        for kind in [Kind::Asymmetric, Kind::SheppLogan] {
            for turn in [180.0, 360.0] {
                let angles = even_angles(0.0, turn, (turn / 1.5) as usize);
                let phantom = Phantom::for_slice(kind, bins, 0, 1);
                let mut rows = vec![0f32; bins * angles.len()];
                for (row, angle) in rows.chunks_mut(bins).zip(&angles) {
                    phantom.project_row(angle.to_radians(), axis, row);
                }
                let sinograms = Sinograms::of_rows(bins, &angles, &[0], &[&rows]);
                // near the axis, coarse steps, and steps that no bin holds a whole number of
                for (first, step, count) in [(46.0, 0.5, 17), (40.0, 2.0, 11), (48.3, 0.4, 11)] {
                    let axes: Vec<f64> = (0..count).map(|i| first + i as f64 * step).collect();
                    let TrialScores { scores, between, minimum } = scores(&sinograms, &axes);
                    let best = (0..count).min_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap();
                    let what = format!("{kind:?}, {turn}, {first}: {} {minimum:?}", axes[best]);
                    assert!((axes[best] - axis).abs() <= 0.5 * step + 0.1, "{what}");
                    assert!((minimum.at - axis).abs() < 0.2, "{what}");
                    assert_eq!(minimum.verdict, AxisVerdict::Ok, "{what}");
                    let (found, _) = search(&sinograms, first, first + (count - 1) as f64 * step);
                    assert!((found.at - minimum.at).abs() < 0.2, "{what}: {found:?}");
                    // dots are on the curve
                    let low = between.iter().map(|point| point[1]).fold(f64::INFINITY, f64::min);
                    assert!(scores[best] >= low - 1e-9 && between.len() >= 64, "{what}");
                    for (axis, score) in axes.iter().zip(&scores) {
                        let near = between.iter().find(|point| (point[0] - axis).abs() < 1e-9);
                        assert!(near.is_none_or(|point| (point[1] - score).abs() < 1e-5), "{what}: {axis}");
                    }
                }
            }
        }
    }

    #[test]
    fn values_for_all_axes_are_sums_over_the_projections() {
        let (bins, projections) = (24, 9);
        let sinogram: Vec<f32> = (0..bins * projections).map(|i| ((i * 7919) % 101) as f32 / 101.0).collect();
        let angles: Vec<f64> = (0..projections).map(|p| 20.0 * p as f64).collect();
        let trials = Trials::new(&sinogram, bins, &angles);
        // some of them are outside of the rows for some axes
        let points = [[0.0, 0.0], [3.25, -7.5], [-11.0, 2.0], [30.0, 0.0]];
        for step in [0.5, 0.25, 0.1] {
            let axes = TrialPositions::new(9.3, 15.0, step);
            let values = trials.values(&axes, &points);
            for (i, [x, y]) in points.iter().enumerate() {
                for k in 0..axes.count {
                    let mut sum = 0.0;
                    for (row, [cos, sin]) in trials.rows.chunks(bins).zip(&trials.rotations) {
                        let h = axes.at(k) + x * cos - y * sin;
                        if (0.0..(bins - 1) as f64).contains(&h) {
                            let (bin, share) = (h as usize, h.fract());
                            sum += f64::from(row[bin]) * (1.0 - share) + f64::from(row[bin + 1]) * share;
                        }
                    }
                    let found = f64::from(values[i * axes.count + k]);
                    assert!((found - sum).abs() < 1e-5, "{step}, point {i}, axis {k}: {found}, {sum}");
                }
            }
        }
    }
}
