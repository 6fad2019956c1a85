//! Projections 180 degrees apart: `row(theta + 180)[b] = row(theta)[2 c - b]`.
//!
//! The cost of every trial `2 c`, a whole number of bins, is the mean square difference between one row and the mirror
//! image of the other over the bins that both cover, relative to the variance there: 0 for identical, about 1 for
//! unrelated rows. All pairs and rows contribute to one curve. Its minimum over a masked overlap is that of normalised
//! cross-correlation (Padfield, Masked object registration in the Fourier domain, IEEE Trans. Image Process. 21, 2012);
//! the sample need not be within the field of view. For off-centre 360-degree scans see Vo et al., Appl. Sci. 11, 2021.

use super::Sinograms;
use super::curve::{CostCurve, Curve, Minimum};
use crate::error::{Error, Result};

/// Largest number of pairs that are compared, over all rows.
const MOST: usize = 192;
/// Largest number of groups that the pairs are divided into along the turn, each with a minimum of its own.
const GROUPS: usize = 4;
/// Rows are divided into blocks until there are this many parts.
const PARTS: usize = 24;
/// Widest gap between projections in degrees that is interpolated over,
const GAP: f64 = 5.0;
/// and widest one that the ends of a scan are extrapolated into.
const SEAM: f64 = 10.0;
/// Angles that differ by less than this, in degrees, are equal.
const SAME: f64 = 1e-6;
/// Variance, as a share of the mean of all rows, below which an overlap holds nothing to compare.
const NOTHING: f64 = 1e-4;

/// A projection interpolated between two others: their indices and factors.
pub(super) type Blend = [(usize, f64); 2];

/// Pairs of blends at two angles that are `apart` degrees apart.
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

/// One projection.
pub(super) fn only(p: usize) -> Blend {
    [(p, 1.0), (p, 0.0)]
}

/// The projection at an angle between (or, for the seam, beyond) two neighbours that are at most `widest` degrees apart.
fn blend(angles: &[f64], before: usize, angle: f64, widest: f64) -> Option<Blend> {
    let gap = angles[before + 1] - angles[before];
    let share = if gap > SAME { (angle - angles[before]) / gap } else { 0.0 };
    (gap <= widest).then_some([(before, 1.0 - share), (before + 1, share)])
}

/// Pairs of blends half a turn apart.
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

/// Whether there are projections half a turn apart.
pub fn has_pairs(sinograms: &Sinograms) -> bool {
    !pairs(sinograms).is_empty()
}

/// A row, the mirrored row to compare it with, and the group that they belong to.
struct Pair {
    group: usize,
    rows: [Vec<f32>; 2],
}

/// Finds the axis between two positions in bins.
pub fn search(sinograms: &Sinograms, low: f64, high: f64) -> Result<(Minimum, CostCurve)> {
    let pairs = pairs(sinograms);
    if pairs.is_empty() {
        return Err(Error::Input(format!(
            "registration of mirrored projections: no two of the projections, {} to {} degrees, are 180 degrees apart; \
             try the method sweep, or check --angles and --overall-angle",
            sinograms.angles.first().unwrap_or(&0.0),
            sinograms.angles.last().unwrap_or(&0.0)
        )));
    }
    let curve = compare(sinograms, &pairs, low, high);
    // the mean of the positions of both projections of each pair
    let minimum = curve.minimum().with_error(sinograms.jitter() / (2.0 * pairs.len() as f64).sqrt());
    Ok((minimum, CostCurve::of_binned(&curve, 1.0, 0.0)))
}

/// The difference between the blends of each pair, one of them mirrored about positions from `low` to `high` (bins).
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
            compared.push(Pair { group: number * groups + i * groups / most, rows: [blended(row, a), mirrored] });
        }
    }
    let all = compared.iter().flat_map(|pair| &pair.rows);
    let nothing = NOTHING * all.map(|row| deviations(row).map(|d| d * d).sum::<f64>()).sum::<f64>() / bins as f64;
    let blocks = (PARTS / (sinograms.rows.len() * groups)).clamp(3, 12);
    let parts = sinograms.rows.len() * groups * blocks;
    let (first, last) = ((2.0 * low).ceil() / 2.0, (2.0 * high).floor() / 2.0);
    Curve::sample(first, last, 0.5, |center| {
        difference(&compared, (2.0 * center).round() as usize, bins, nothing, [parts, blocks])
    })
}

/// Values minus their mean.
pub(super) fn deviations(row: &[f32]) -> impl Iterator<Item = f64> {
    let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / row.len() as f64;
    row.iter().map(move |v| f64::from(*v) - mean)
}

/// Squares of differences and of values, each minus its mean, for `2 c = twice`, by groups of pairs and blocks of bins.
/// An overlap with a variance of less than `nothing` per bin holds no information: it counts as unrelated.
fn difference(pairs: &[Pair], twice: usize, bins: usize, nothing: f64, [parts, blocks]: [usize; 2]) -> Vec<[f64; 2]> {
    // the mirrored row starts at bin twice - (bins - 1) of the other
    let from = twice.saturating_sub(bins - 1);
    let mirrored_from = (bins - 1).saturating_sub(twice);
    let count = bins - from.max(mirrored_from);
    let mut shares = vec![[0f64; 2]; parts];
    let mut deltas = vec![0f32; count];
    for Pair { group, rows: [row, mirrored] } in pairs {
        let (row, mirrored) = (&row[from..from + count], &mirrored[mirrored_from..mirrored_from + count]);
        deltas.iter_mut().zip(row.iter().zip(mirrored)).for_each(|(delta, (a, b))| *delta = a - b);
        let values = deviations(&deltas).zip(deviations(row).zip(deviations(mirrored)));
        for (bin, (delta, (a, b))) in values.enumerate() {
            let share = &mut shares[group * blocks + bin * blocks / count];
            *share = [share[0] + delta * delta, share[1] + a * a + b * b];
        }
    }
    let varying: f64 = shares.iter().map(|share| share[1]).sum();
    if varying > nothing * count as f64 { shares } else { vec![[1.0; 2]; parts] }
}
