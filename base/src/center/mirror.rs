//! Projections 180 degrees apart: `row(theta + 180)[b] = row(theta)[2 c - b]`.
//!
//! The cost of every trial `2 c`, a whole number of bins, is the mean square difference between one row and the mirror
//! image of the other over the bins that both cover, relative to the variance there: 0 for identical rows, about 1 for
//! unrelated ones. All pairs and rows contribute to one curve. Its minimum over a masked overlap is that of normalised
//! cross-correlation (Padfield, Masked object registration in the Fourier domain, IEEE Trans. Image Process. 21, 2012);
//! the sample need not be within the field of view. For off-centre 360-degree scans see Vo et al., Appl. Sci. 11, 2021.
//!
//! About an inclined axis, opposite projections are no mirror images, but the mean of a whole turn is one of itself: every
//! point of the sample moves on an ellipse that is symmetric about the axis.

use super::Sinograms;
use super::curve::{CostCurve, Curve, Minimum, TrialPositions};
use super::errors::AxisScanError;
use super::jitter::jitter;
use crate::error::Result;
use crate::numbers::brief;
use multiversion::multiversion;
use rayon::prelude::*;
use std::f64::consts::SQRT_2;
use std::ops::Range;

/// Largest number of pairs that are compared, over all rows.
const MOST: usize = 192;
/// Largest number of groups into which the pairs are divided along the turn, each with a minimum of its own.
const GROUPS: usize = 4;
/// Number of parts that the division of rows into blocks aims at.
const PARTS: usize = 24;
/// Number of trial positions for which a thread compares a pair of rows before the next pair.
const TOGETHER: usize = 32;
/// Widest gap between projections in degrees that is interpolated.
const GAP: f64 = 5.0;
/// Widest gap in degrees into which the ends of a scan are extrapolated.
const SEAM: f64 = 10.0;
/// Standard deviation in bins of the interpolation between positions of the mean of a turn, which no part of the data shows.
const INTERPOLATED: f64 = 0.02;
/// Difference in degrees below which angles are equal.
const SAME: f64 = 1e-6;
/// Variance of an overlap, as a share of the mean variance of all rows, below which it holds nothing to compare.
const NOTHING: f64 = 1e-4;

/// A projection interpolated between two others: their indices and factors.
pub(super) type Blend = [(usize, f64); 2];

/// Returns pairs of blends at angles that are `apart` degrees apart.
pub(super) fn pairs_apart(sinograms: &Sinograms, apart: f64) -> Vec<[Blend; 2]> {
    let angles = &sinograms.angles;
    let count = angles.len();
    if count < 4 {
        return Vec::new();
    }
    (0..count)
        .filter_map(|p| {
            let opposite = angles[p] + apart;
            let after = angles.partition_point(|angle| *angle <= opposite - SAME);
            (0 < after && after < count).then(|| blend(angles, after - 1, opposite, GAP))?.map(|other| [only(p), other])
        })
        .collect()
}

/// Returns the blend of a single projection.
pub(super) fn only(p: usize) -> Blend {
    [(p, 1.0), (p, 0.0)]
}

/// Returns the projection at an angle between two neighbours that are at most `widest` degrees apart, or, at the seam
/// of a scan, beyond them.
fn blend(angles: &[f64], before: usize, angle: f64, widest: f64) -> Option<Blend> {
    let gap = angles[before + 1] - angles[before];
    let share = if gap > SAME { (angle - angles[before]) / gap } else { 0.0 };
    (gap <= widest).then_some([(before, 1.0 - share), (before + 1, share)])
}

/// Returns pairs of blends that are half a turn apart.
fn pairs(sinograms: &Sinograms) -> Vec<[Blend; 2]> {
    let (angles, count) = (&sinograms.angles, sinograms.angles.len());
    let mut found = pairs_apart(sinograms, 180.0);
    if count < 4 || !found.is_empty() {
        return found;
    }
    let (first, last) = (angles[0], angles[count - 1]);
    let seam = first + 180.0 - last;
    if seam > 0.0 && seam <= SEAM.min(2.5 * sinograms.step()) {
        // both ends are extrapolated to the middle of the gap, so that the error is the same on both sides
        let ends = [blend(angles, 0, first - seam / 2.0, SEAM), blend(angles, count - 2, last + seam / 2.0, SEAM)];
        if let [Some(a), Some(b)] = ends {
            found.push([a, b]);
        }
    }
    found
}

/// Reports whether there are projections half a turn apart.
pub fn has_pairs(sinograms: &Sinograms) -> bool {
    !pairs(sinograms).is_empty()
}

/// A row and the mirrored row that it is compared with, and the group of the pair.
struct Pair {
    group: usize,
    rows: [SummedRow; 2],
}

/// Finds the axis between two positions in bins.
pub fn search(sinograms: &Sinograms, low: f64, high: f64) -> Result<(Minimum, CostCurve)> {
    let pairs = pairs(sinograms);
    if pairs.is_empty() {
        let [first, last] = [sinograms.angles.first(), sinograms.angles.last()].map(|a| brief(*a.unwrap_or(&0.0)));
        return Err(AxisScanError::NoOpposite { first, last }.into());
    }
    let curve = compare(sinograms, &pairs, low, high);
    // the axis is the mean of the positions of both projections of each pair
    let minimum = curve.minimum().with_error(jitter(sinograms) / (2.0 * pairs.len() as f64).sqrt());
    Ok((minimum, CostCurve::of_binned(&curve, 1.0, 0.0)))
}

/// Finds an inclined axis between two positions in bins by the mean of all projections of a turn.
pub fn rings(sinograms: &Sinograms, low: f64, high: f64) -> Result<(Minimum, CostCurve)> {
    let (weights, gap) = turn_weights(&sinograms.angles);
    if gap > GAP {
        let [first, last] = [sinograms.angles.first(), sinograms.angles.last()].map(|a| brief(*a.unwrap_or(&0.0)));
        return Err(AxisScanError::GapInTurn { first, last, gap: brief(gap) }.into());
    }
    let mean = |row: &Vec<f32>| -> Vec<f32> {
        let mut sums = vec![0f64; sinograms.bins];
        for &(p, weight) in &weights {
            let projection = &row[p * sinograms.bins..(p + 1) * sinograms.bins];
            sums.iter_mut().zip(projection).for_each(|(sum, value)| *sum += weight / 360.0 * f64::from(*value));
        }
        sums.into_iter().map(|sum| sum as f32).collect()
    };
    let rows = sinograms.rows.par_iter().map(mean).collect();
    let means = Sinograms { bins: sinograms.bins, angles: vec![0.0], heights: sinograms.heights.clone(), rows };
    let curve = compare(&means, &[[only(0), only(0)]], low, high);
    let found = curve.minimum();
    // the two halves of a row tell the same
    let found = Minimum { uncertainty: SQRT_2 * found.uncertainty, ..found };
    let error = jitter(sinograms) / (sinograms.angles.len() as f64).sqrt();
    Ok((found.with_error(error.hypot(INTERPOLATED)), CostCurve::of_binned(&curve, 1.0, 0.0)))
}

/// Returns the projections in the order in which a turn has them, each with half the degrees between its neighbours, and the
/// most degrees between two that follow each other.
fn turn_weights(angles: &[f64]) -> (Vec<(usize, f64)>, f64) {
    let mut order: Vec<(usize, f64)> = angles.iter().map(|angle| angle.rem_euclid(360.0)).enumerate().collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let count = order.len();
    let gaps: Vec<f64> = (0..count)
        .map(|i| if i + 1 < count { order[i + 1].1 - order[i].1 } else { order[0].1 + 360.0 - order[i].1 })
        .collect();
    let weight = |i: usize| (order[i].0, (gaps[(i + count - 1) % count] + gaps[i]) / 2.0);
    ((0..count).map(weight).collect(), gaps.iter().copied().fold(0.0, f64::max))
}

/// Compares the blends of each pair, one of them mirrored about positions from `low` to `high` (bins).
pub(super) fn compare(sinograms: &Sinograms, pairs: &[[Blend; 2]], low: f64, high: f64) -> Curve {
    let bins = sinograms.bins;
    let most = (MOST / sinograms.rows.len()).max(1).min(pairs.len());
    let groups = GROUPS.min(most);
    let blended = |row: &[f32], blend: &Blend| -> Vec<f32> {
        let [(a, share_a), (b, share_b)] = *blend;
        let (a, b) = (&row[a * bins..][..bins], &row[b * bins..][..bins]);
        a.iter().zip(b).map(|(a, b)| (f64::from(*a) * share_a + f64::from(*b) * share_b) as f32).collect()
    };
    let mut compared = Vec::new();
    for (number, row) in sinograms.rows.iter().enumerate() {
        for i in 0..most {
            let [a, b] = &pairs[i * pairs.len() / most];
            let mut mirrored = blended(row, b);
            mirrored.reverse();
            compared.push(Pair {
                group: number * groups + i * groups / most,
                rows: [blended(row, a), mirrored].map(SummedRow::new),
            });
        }
    }
    let all = compared.iter().flat_map(|pair| &pair.rows);
    let nothing = NOTHING * all.map(SummedRow::variation).sum::<f64>() / bins as f64;
    let blocks = (PARTS / (sinograms.rows.len() * groups)).clamp(3, 12);
    let parts = sinograms.rows.len() * groups * blocks;
    let (first, last) = ((2.0 * low).ceil() / 2.0, (2.0 * high).floor() / 2.0);
    Curve::sample(TrialPositions::new(first, last, 0.5), |positions| {
        let twice = (2.0 * positions.first).round() as usize;
        let strips: Vec<Range<usize>> = (0..positions.count)
            .step_by(TOGETHER)
            .map(|i| twice + i..twice + (i + TOGETHER).min(positions.count))
            .collect();
        let of_strip = |strip| differences(&compared, strip, bins, nothing, [parts, blocks]);
        strips.into_par_iter().flat_map_iter(of_strip).collect()
    })
}

/// Returns the values of a row minus their mean.
pub(super) fn deviations(row: &[f32]) -> impl Iterator<Item = f64> {
    let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / row.len() as f64;
    row.iter().map(move |v| f64::from(*v) - mean)
}

/// A row with running sums over its bins.
struct SummedRow {
    values: Vec<f32>,
    mean: f64,
    /// Sums over the bins before each bin of the deviations from the mean, and of their squares. They are `f64` without
    /// the mean, so that the difference of two has an error of at most 1e-16 times the number of bins of the row's sum
    /// of squares: 2e-13 of it for 2048 bins, where differences of `f32` have rounding errors of 1e-7, and overlaps
    /// with less than [`NOTHING`] of it do not count.
    before: Vec<[f64; 2]>,
}

impl SummedRow {
    fn new(values: Vec<f32>) -> SummedRow {
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64;
        let mut before = Vec::with_capacity(values.len() + 1);
        let mut sums = [0f64; 2];
        before.push(sums);
        for value in &values {
            let deviation = f64::from(*value) - mean;
            sums = [sums[0] + deviation, sums[1] + deviation * deviation];
            before.push(sums);
        }
        SummedRow { values, mean, before }
    }

    /// Returns the sum of squares about the mean.
    fn variation(&self) -> f64 {
        self.before.last().map_or(0.0, |sums| sums[1])
    }

    /// Returns the sums over the bins from `start` to before `end` of the deviations from the row's mean and of their
    /// squares.
    fn sums(&self, start: usize, end: usize) -> [f64; 2] {
        let ([from, from_squares], [to, to_squares]) = (self.before[start], self.before[end]);
        [to - from, to_squares - from_squares]
    }
}

/// The bins that both rows of a pair cover for one trial position.
struct Overlap {
    /// First bin of each row that the other row covers as well.
    from: [usize; 2],
    count: usize,
    /// Ends of the blocks into which the bins are divided, beginning with 0.
    ends: Vec<usize>,
}

impl Overlap {
    /// Returns the overlap for the trial position `2 c = twice`.
    fn new(twice: usize, bins: usize, blocks: usize) -> Overlap {
        // the mirrored row starts at bin twice - (bins - 1) of the other
        let from = [twice.saturating_sub(bins - 1), (bins - 1).saturating_sub(twice)];
        let count = bins - from[0].max(from[1]);
        // bin b belongs to block b * blocks / count
        Overlap { from, count, ends: (0..=blocks).map(|block| (block * count).div_ceil(blocks)).collect() }
    }

    /// Adds to the shares of the blocks the squares of differences and of values, each minus its mean over all blocks.
    fn add(&self, rows: &[SummedRow; 2], shares: &mut [[f64; 2]]) {
        let count = self.count as f64;
        let [row, mirrored] = [0, 1].map(|i| (&rows[i], self.from[i]));
        // means of the overlap relative to the mean of each row
        let means = [row, mirrored].map(|(row, from)| row.sums(from, from + self.count)[0] / count);
        let difference = (rows[0].mean + means[0]) - (rows[1].mean + means[1]);
        for (ends, share) in self.ends.windows(2).zip(shares) {
            let (start, end) = (ends[0], ends[1]);
            let [a, b] = [row, mirrored].map(|(row, from)| &row.values[from + start..from + end]);
            share[0] += squared_differences(a, b, difference);
            for ((row, from), mean) in [row, mirrored].into_iter().zip(means) {
                let [sum, squares] = row.sums(from + start, from + end);
                let about_mean = squares - 2.0 * mean * sum + mean * mean * (end - start) as f64;
                share[1] += about_mean.max(0.0);
            }
        }
    }
}

/// Returns the sum of the squares of differences minus their mean, formed in a fixed number of lanes. Also compiled for
/// processors with wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn squared_differences(a: &[f32], b: &[f32], mean: f64) -> f64 {
    const LANES: usize = 16;
    let mut sums = [0f64; LANES];
    let (a_parts, b_parts) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = a_parts.remainder().iter().zip(b_parts.remainder());
    for (a, b) in a_parts.zip(b_parts) {
        for lane in 0..LANES {
            let delta = f64::from(a[lane] - b[lane]) - mean;
            sums[lane] += delta * delta;
        }
    }
    sums.iter().sum::<f64>() + rest.map(|(a, b)| (f64::from(a - b) - mean).powi(2)).sum::<f64>()
}

/// Returns the shares of groups of pairs and blocks of bins for a range of trial positions `2 c`. An overlap with a
/// variance of less than `nothing` per bin holds no information and counts as unrelated.
fn differences(
    pairs: &[Pair],
    twice: Range<usize>,
    bins: usize,
    nothing: f64,
    [parts, blocks]: [usize; 2],
) -> Vec<Vec<[f64; 2]>> {
    let overlaps: Vec<Overlap> = twice.map(|twice| Overlap::new(twice, bins, blocks)).collect();
    let mut shares = vec![vec![[0f64; 2]; parts]; overlaps.len()];
    // pairs in the outer loop: their rows stay in the cache
    for Pair { group, rows } in pairs {
        for (overlap, shares) in overlaps.iter().zip(&mut shares) {
            overlap.add(rows, &mut shares[group * blocks..][..blocks]);
        }
    }
    for (overlap, shares) in overlaps.iter().zip(&mut shares) {
        let varying: f64 = shares.iter().map(|share| share[1]).sum();
        if varying <= nothing * overlap.count as f64 {
            shares.fill([1.0; 2]);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Squares of differences and of values, each minus its mean over all bins, bin by bin.
    fn by_definition(a: &[f32], b: &[f32], blocks: usize) -> Vec<[f64; 2]> {
        let mut shares = vec![[0f64; 2]; blocks];
        let deltas: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
        for (bin, ((delta, a), b)) in deviations(&deltas).zip(deviations(a)).zip(deviations(b)).enumerate() {
            let share = &mut shares[bin * blocks / deltas.len()];
            *share = [share[0] + delta * delta, share[1] + a * a + b * b];
        }
        shares
    }

    #[test]
    fn shares_of_blocks_follow_their_definition() {
        let (bins, blocks) = (83, 5);
        // far from zero, as what a mean that is not taken out first would spoil
        let row = |phase: f32| (0..bins).map(|i| 1e3 + (0.3 * i as f32 + phase).sin()).collect::<Vec<f32>>();
        let (row, mirrored) = (row(0.0), row(0.4));
        let summed = [row.clone(), mirrored.clone()].map(SummedRow::new);
        for twice in [3, 40, 82, 83, 120, 161] {
            let overlap = Overlap::new(twice, bins, blocks);
            let mut shares = vec![[0f64; 2]; blocks];
            overlap.add(&summed, &mut shares);
            let [a, b] = [(&row, 0), (&mirrored, 1)].map(|(row, i)| &row[overlap.from[i]..][..overlap.count]);
            for (found, expected) in shares.iter().flatten().zip(by_definition(a, b, blocks).iter().flatten()) {
                assert!((found - expected).abs() < 1e-9 * bins as f64, "{twice}: {found}, {expected}");
            }
        }
    }

    /// Sinograms of some rows of blobs that turn about an axis inclined by 30 degrees, with some noise.
    fn inclined(angles: &[f64], axis: f64, noise: f64) -> Sinograms {
        let (bins, rows) = (240, 80);
        let (sin_a, cos_a) = 30f64.to_radians().sin_cos();
        let blobs: Vec<[f64; 4]> = (0..30)
            .map(|i| {
                let of = |by: f64, reach: f64| reach * ((i as f64 + 1.0) * by).sin();
                [of(1.7, 70.0), of(2.9, 70.0), of(4.1, 20.0), 2.5 + of(0.7, 1.0)]
            })
            .collect();
        let random = |at: usize| ((at as f64 * 12.9898).sin() * 43758.5453).fract();
        let value = |row: usize, p: usize, bin: usize| {
            let (sin, cos) = angles[p].to_radians().sin_cos();
            let of = |&[x, y, z, size]: &[f64; 4]| {
                let u = axis + x * cos + y * sin;
                let v = 39.5 + z * cos_a + sin_a * (y * cos - x * sin);
                (-((bin as f64 - u).powi(2) + (row as f64 - v).powi(2)) / (2.0 * size * size)).exp()
            };
            (blobs.iter().map(of).sum::<f64>() + noise * random((row * 997 + p) * bins + bin)) as f32
        };
        let numbers: Vec<usize> = (4..rows).step_by(5).collect();
        let sinogram = |&row: &usize| -> Vec<f32> {
            (0..angles.len() * bins).map(|at| value(row, at / bins, at % bins)).collect()
        };
        let sinograms: Vec<Vec<f32>> = numbers.iter().map(sinogram).collect();
        let rows: Vec<&[f32]> = sinograms.iter().map(Vec::as_slice).collect();
        Sinograms::of_rows(bins, angles, &numbers, &rows)
    }

    #[test]
    fn the_mean_of_a_turn_tells_an_inclined_axis() {
        use crate::center::AxisVerdict;
        let even =
            |count: usize, turn: f64| -> Vec<f64> { (0..count).map(|p| p as f64 * turn / count as f64).collect() };
        let uneven: Vec<f64> =
            even(180, 360.0).iter().map(|angle| angle + 0.8 * (9.0 * angle).to_radians().sin()).collect();
        for (angles, axis, noise) in
            [(even(180, 360.0), 113.3, 0.05), (uneven, 126.8, 0.0), (even(360, 720.0), 119.5, 0.2)]
        {
            let (found, _) = rings(&inclined(&angles, axis, noise), 90.0, 150.0).unwrap();
            assert!((found.at - axis).abs() < (4.0 * found.uncertainty).max(0.05), "{axis}: {found:?}");
            assert!(found.verdict == AxisVerdict::Ok && found.uncertainty < 0.15, "{axis}: {found:?}");
        }
        // the last one has a gap of 8 degrees
        let gap: Vec<f64> = even(180, 360.0).into_iter().filter(|angle| !(91.0..97.0).contains(angle)).collect();
        for angles in [even(180, 180.0), even(100, 330.0), even(60, 360.0), gap] {
            assert!(rings(&inclined(&angles, 113.3, 0.0), 90.0, 150.0).is_err(), "{angles:?}");
        }
    }
}
