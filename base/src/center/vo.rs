//! The Fourier metric of N. T. Vo, M. Drakopoulos, R. C. Atwood and C. Reinhard, Reliable method for calculating the
//! center of rotation in parallel-beam tomography, Opt. Express 22, 19078 (2014).
//!
//! For a sample within a radius `r` of the axis, the two-dimensional Fourier transform of a sinogram over a whole turn
//! is zero, except for small tails, where `m > 2 pi r u` (`m` periods per turn, `u` periods per bin). Half a turn and
//! its mirror image about a trial axis form a whole turn; a wrong axis causes discontinuities at the two seams, which
//! are visible in that region.
//!
//! Mirroring a row conjugates its transform, and shifting it multiplies the transform by a factor. With `A(m, u)` of
//! the half turn, padded with zeros, the transform of the whole turn about axis `c` is `A(m, u) + (-1)^m z^-2
//! conj(A(-m, u))`, `z = exp(2 pi i u c)`, so that a trial needs no transform, and `c` may be any real number.

use super::curve::{CostCurve, Curve, Minimum, TrialPositions};
use super::errors::AxisScanError;
use super::jitter::jitter;
use super::{AxisVerdict, Sinograms};
use crate::error::Result;
use host_fft::{Complex, Real};
use multiversion::multiversion;
use rayon::prelude::*;

/// Widest detector on which the whole range is searched; wider ones are binned for that.
const COARSE: usize = 320;
/// Largest number of rows of the sample that are used.
const ROWS: usize = 4;
/// Number of parts into which the frequencies of a row are divided.
const BANDS: usize = 6;
/// Error of the result if degrees are missing or the sample is truncated, as a standard deviation in bins.
const PARTIAL: f64 = 0.15;
/// Largest number of degrees, beside a step, that may be missing from half a turn.
const MISSING: f64 = 4.0;

/// Reports whether the scan covers half a turn.
pub fn suits(sinograms: &Sinograms) -> bool {
    sinograms.coverage() + sinograms.step() > 180.0 - MISSING && sinograms.angles.len() >= 8
}

/// Finds the axis between two positions in bins.
pub fn search(sinograms: &Sinograms, low: f64, high: f64) -> Result<(Minimum, CostCurve)> {
    if !suits(sinograms) {
        let (projections, coverage) = (sinograms.angles.len(), sinograms.coverage());
        return Err(AxisScanError::NoHalfTurn { projections, coverage }.into());
    }
    let factor = sinograms.bins.div_ceil(COARSE);
    let (scale, shift) = (factor as f64, (factor as f64 - 1.0) / 2.0);
    let coarse = Metric::new(&sinograms.binned(factor));
    let positions = TrialPositions::new((low - shift) / scale, (high - shift) / scale, 0.5);
    let curve = Curve::sample(positions, |positions| coarse.shares(positions));
    let mut costs = CostCurve::of_binned(&curve, scale, shift);
    let mut minimum = curve.minimum();
    minimum.at = minimum.at * scale + shift;
    if minimum.verdict == AxisVerdict::Flat {
        return Ok((minimum, costs));
    }
    let metric = if factor > 1 { Metric::new(sinograms) } else { coarse };
    for (reach, step) in [(scale + 1.0, 0.25), (0.5, 0.05)] {
        let positions = TrialPositions::new(minimum.at - reach, minimum.at + reach, step);
        let near = Curve::sample(positions, |positions| metric.shares(positions));
        // parts may put the minimum outside the narrow range
        if step > 0.1 {
            minimum.uncertainty = near.uncertainty();
            costs.near = near.points();
        }
        minimum.at = near.vertex();
    }
    // motion of the projections at the seams shifts the result
    let minimum = minimum.with_error(jitter(sinograms) / std::f64::consts::SQRT_2);
    let complete = sinograms.within_view() && sinograms.coverage() + 1.5 * sinograms.step() > 180.0;
    Ok((if complete { minimum } else { minimum.with_error(PARTIAL) }, costs))
}

/// Transform of half a turn at the frequencies where the transform of a whole turn vanishes.
struct Metric {
    /// Number of bins of the padded rows.
    length: f64,
    /// Columns of every row and frequency `u` that is used.
    columns: Vec<Column>,
    parts: usize,
}

/// Values of a row at a frequency `u`, for all `m` beyond the wedge.
struct Column {
    part: usize,
    u: usize,
    /// Number of frequencies `m`.
    count: usize,
    /// Real and imaginary parts of `A(m, u)`, then those of `(-1)^m conj(A(-m, u))`, for ascending `m`, padded with
    /// zeros to a multiple of [`LANES`].
    values: [Vec<f32>; 4],
}

/// Number of sums that are formed side by side.
const LANES: usize = 8;

impl Metric {
    fn new(sinograms: &Sinograms) -> Metric {
        let bins = sinograms.bins;
        let used = sinograms.half_turn();
        let length = (2 * bins).next_power_of_two();
        let turn = 2 * used;
        let (along_row, along_angle) = (f32::forward(length), f32::forward(turn));
        let radius = bins as f64 / 2.0;
        // first m beyond the wedge and the tails of the Bessel functions that it is made of
        let beyond = |u: usize| {
            let edge = std::f64::consts::TAU * radius * u as f64 / length as f64;
            (edge + 2.0 * edge.cbrt() + 3.0).ceil() as usize
        };
        let highest = (1..length / 2).take_while(|&u| beyond(u) < used).count();
        let mut columns = Vec::new();
        for (number, sinogram) in sinograms.rows.iter().take(ROWS).enumerate() {
            let mut rows = vec![Complex::new(0f32, 0.0); used * length];
            for (padded, row) in rows.chunks_mut(length).zip(sinogram.chunks(bins)) {
                padded.iter_mut().zip(row).for_each(|(to, value)| to.re = *value);
            }
            rows.par_chunks_mut(length).for_each(|row| along_row.process(row));
            let column = |u: usize| {
                let mut column = vec![Complex::new(0f32, 0.0); turn];
                column.iter_mut().zip(rows.iter().skip(u).step_by(length)).for_each(|(to, value)| *to = *value);
                along_angle.process(&mut column);
                let sign = |m: usize| if m % 2 == 0 { 1.0 } else { -1.0 };
                let count = used - beyond(u);
                let mut values = [0; 4].map(|_| vec![0f32; count.next_multiple_of(LANES)]);
                for (i, m) in (beyond(u)..used).enumerate() {
                    let (a, b) = (column[m], column[turn - m].conj() * sign(m));
                    values.iter_mut().zip([a.re, a.im, b.re, b.im]).for_each(|(to, part)| to[i] = part);
                }
                Column { part: number * BANDS + u / 2 % BANDS, u, count, values }
            };
            columns.extend((1..=highest).into_par_iter().map(column).collect::<Vec<_>>());
        }
        Metric { length: length as f64, columns, parts: sinograms.rows.len().min(ROWS) * BANDS }
    }

    /// Returns the sum of absolute values outside the wedge and their number, for an axis at each of the positions.
    fn shares(&self, positions: &TrialPositions) -> Vec<Vec<[f64; 2]>> {
        // all positions of a column are evaluated while it is in the cache
        let sums_of = |Column { u, values, .. }: &Column| -> Vec<f64> {
            let turn = -2.0 * std::f64::consts::TAU * *u as f64 / self.length;
            let sum = |i| {
                let (sin, cos) = (turn * positions.at(i)).sin_cos();
                absolute_values(values, [cos as f32, sin as f32])
            };
            (0..positions.count).map(sum).collect()
        };
        let sums: Vec<Vec<f64>> = self.columns.par_iter().map(sums_of).collect();
        // summed in the order of the columns, however many threads there are
        let mut shares = vec![vec![[0f64; 2]; self.parts]; positions.count];
        for (Column { part, count, .. }, sums) in self.columns.iter().zip(sums) {
            for (shares, sum) in shares.iter_mut().zip(sums) {
                let share = &mut shares[*part];
                *share = [share[0] + sum, share[1] + *count as f64];
            }
        }
        shares
    }
}

/// Returns the sum of the absolute values of `a + rotation * b`, given by real and imaginary parts. Also compiled for
/// processors with wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn absolute_values(values: &[Vec<f32>; 4], rotation: [f32; 2]) -> f64 {
    let [a_re, a_im, b_re, b_im] = values;
    let [cos, sin] = rotation;
    let mut sums = [0f64; LANES];
    let a = a_re.chunks_exact(LANES).zip(a_im.chunks_exact(LANES));
    let b = b_re.chunks_exact(LANES).zip(b_im.chunks_exact(LANES));
    for ((a_re, a_im), (b_re, b_im)) in a.zip(b) {
        for lane in 0..LANES {
            let re = a_re[lane] + (cos * b_re[lane] - sin * b_im[lane]);
            let im = a_im[lane] + (cos * b_im[lane] + sin * b_re[lane]);
            sums[lane] += f64::from((re * re + im * im).sqrt());
        }
    }
    sums.iter().sum()
}
