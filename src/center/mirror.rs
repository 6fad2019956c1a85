//! Projections half a turn apart: `row(theta + 180)[b] = row(theta)[2 c - b]`.
//!
//! For every trial `2 c`, whole numbers of bins, the mean square difference of the one row and the mirrored other over
//! the bins that both have, relative to the variance there: 0 for the same, about 1 for unrelated rows. All pairs and rows
//! add to one curve. Its minimum over a masked overlap is that of normalised cross-correlation (Padfield, Masked object
//! registration in the Fourier domain, IEEE Trans. Image Process. 21, 2012), and does not ask the sample to be within the
//! field of view. Off-centre scans of whole turns: Vo et al., Appl. Sci. 11, 2021.

use super::curve::{Curve, Minimum, median};
use super::{AGREEMENT, Sinograms, Verdict};
use crate::error::{Error, Result};

/// Pairs that are compared, over all rows.
const MOST: usize = 192;
/// A gap between projections in degrees that is not interpolated over.
const GAP: f64 = 5.0;
/// Angles in degrees that are the same.
const SAME: f64 = 1e-6;
/// Variance, as a share of the mean of all rows, below which an overlap holds nothing to compare.
const NOTHING: f64 = 1e-4;

/// A projection between two others: their numbers and factors.
type Blend = [(usize, f64); 2];

/// Blends at two angles half a turn apart.
fn pairs(sinograms: &Sinograms) -> Vec<[Blend; 2]> {
    let angles = &sinograms.angles;
    let count = angles.len();
    if count < 4 {
        return Vec::new();
    }
    // between (or, for the seam, beyond) two neighbours
    let blend = |before: usize, angle: f64| -> Option<Blend> {
        let gap = angles[before + 1] - angles[before];
        let share = if gap > SAME { (angle - angles[before]) / gap } else { 0.0 };
        (gap <= GAP).then_some([(before, 1.0 - share), (before + 1, share)])
    };
    let (first, last) = (angles[0], angles[count - 1]);
    let mut found: Vec<[Blend; 2]> = (0..count)
        .filter_map(|p| {
            let opposite = angles[p] + 180.0;
            let after = angles.partition_point(|angle| *angle <= opposite - SAME);
            let other = match after {
                0 => None,
                after if after == count => None,
                after => blend(after - 1, opposite),
            };
            Some([[(p, 1.0), (p, 0.0)], other?])
        })
        .collect();
    let seam = first + 180.0 - last;
    if found.is_empty() && seam > 0.0 && seam <= GAP.min(2.5 * sinograms.step()) {
        // both ends are continued to the middle of the gap: what is wrong with that is wrong on both sides alike
        let ends = [blend(0, first - seam / 2.0), blend(count - 2, last + seam / 2.0)];
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

/// Searches the axis between two positions in bins.
pub fn search(sinograms: &Sinograms, low: f64, high: f64) -> Result<Minimum> {
    let pairs = pairs(sinograms);
    if pairs.is_empty() {
        return Err(Error::Input(format!(
            "registration of mirrored projections: no two of the projections, {} to {} degrees, are half a turn apart; \
             try the method sweep, or check --angles and --overall-angle",
            sinograms.angles.first().unwrap_or(&0.0),
            sinograms.angles.last().unwrap_or(&0.0)
        )));
    }
    let bins = sinograms.bins;
    let most = (MOST / sinograms.rows.len()).max(1).min(pairs.len());
    let blended = |row: &[f32], blend: &Blend| -> Vec<f32> {
        let [(a, share_a), (b, share_b)] = *blend;
        let (a, b) = (&row[a * bins..][..bins], &row[b * bins..][..bins]);
        a.iter().zip(b).map(|(a, b)| (f64::from(*a) * share_a + f64::from(*b) * share_b) as f32).collect()
    };
    // of each sampled row, its pairs of rows, the second one mirrored
    let compared: Vec<Vec<[Vec<f32>; 2]>> = sinograms
        .rows
        .iter()
        .map(|row| {
            let chosen = (0..most).map(|i| &pairs[i * pairs.len() / most]);
            let both = |[a, b]: &[Blend; 2]| {
                let mut mirrored = blended(row, b);
                mirrored.reverse();
                [blended(row, a), mirrored]
            };
            chosen.map(both).collect()
        })
        .collect();
    let (first, last) = ((2.0 * low).ceil() / 2.0, (2.0 * high).floor() / 2.0);
    let curve_of = |pairs: &[[Vec<f32>; 2]]| {
        let all = pairs.iter().flatten();
        let nothing = NOTHING * all.map(|row| variance(row)).sum::<f64>() / bins as f64;
        Curve::sample(first, last, 0.5, |center| difference(pairs, (2.0 * center).round() as usize, bins, nothing))
    };
    let curve = curve_of(&compared.concat());
    let mut minimum = curve.minimum();
    // rows, and of many pairs the two quarter turns, must tell the same
    let parts: Vec<&[[Vec<f32>; 2]]> =
        compared.iter().flat_map(|pairs| pairs.chunks(pairs.len().div_ceil(2).max(4))).collect();
    if parts.len() > 1 {
        let off = median(parts.iter().map(|pairs| (curve_of(pairs).vertex() - minimum.at).abs()));
        minimum.confidence /= 1.0 + off;
        if off > AGREEMENT && minimum.verdict == Verdict::Ok {
            minimum.verdict = Verdict::Ambiguous;
        }
    }
    Ok(minimum)
}

/// Sum of squared deviations from the mean.
fn variance(row: &[f32]) -> f64 {
    let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / row.len() as f64;
    row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum()
}

/// The cost of `2 c = twice`. Where the overlap varies by less than `nothing` a bin it says nothing: 1.
fn difference(pairs: &[[Vec<f32>; 2]], twice: usize, bins: usize, nothing: f64) -> f64 {
    // the mirrored row starts at bin twice - (bins - 1) of the other
    let from = twice.saturating_sub(bins - 1);
    let mirrored_from = (bins - 1).saturating_sub(twice);
    let count = bins - from.max(mirrored_from);
    let (mut differing, mut varying) = (0.0, 0.0);
    let mut deltas = vec![0f32; count];
    for [row, mirrored] in pairs {
        let (row, mirrored) = (&row[from..from + count], &mirrored[mirrored_from..mirrored_from + count]);
        deltas.iter_mut().zip(row.iter().zip(mirrored)).for_each(|(delta, (a, b))| *delta = a - b);
        differing += variance(&deltas);
        varying += variance(row) + variance(mirrored);
    }
    if varying > nothing * count as f64 { differing / varying } else { 1.0 }
}
