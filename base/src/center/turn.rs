//! Checks whether a scan covers the given angles: after 360 degrees, the last projection resembles the first one; after
//! 180 degrees, its mirror image.

use super::Sinograms;
use super::curve::median;
use super::mirror::{compare, deviations, only, pairs_apart};
use crate::geometry::default_axis;

/// Angular range of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Half,
    Whole,
}

/// Result of comparing the ends of a scan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScanEnds {
    /// The ends are consistent with the angles, or the scan is too coarse or too noisy to tell.
    Consistent,
    /// The ends suggest that the scan covers this range instead.
    Suggest(Turn),
    /// The last projection matches the first one neither directly nor mirrored.
    Unrelated,
}

/// Search range on either side of the middle, as a share of the detector.
const REACH: f64 = 0.4;
/// Difference between neighbouring projections above which the ends are not compared.
const ALIKE: f64 = 0.3;
/// Factor of the difference between neighbours by which projections may differ in addition and still be neighbours.
const TIMES: f64 = 2.0;
/// Share of the variance that is added to the difference given by [`TIMES`].
const MORE: f64 = 0.02;
/// Largest additional difference of neighbours.
const MOST: f64 = 0.15;
/// Multiple of the limit from which projections are certainly not neighbours.
const APART: f64 = 2.0;
/// Largest distance in bins of axes that are the same.
const SAME: f64 = 1.0;
/// Largest number of pairs of neighbours that are compared.
const STEPS: usize = 60;

/// Compares the ends of a scan whose angles cover half a turn or a whole one. Differences are shares of the variance: 0
/// for identical, about 1 for unrelated projections.
pub fn ends(sinograms: &Sinograms) -> ScanEnds {
    let count = sinograms.angles.len();
    let Some(declared) = declared(sinograms).filter(|_| count >= 4 && !sinograms.rows.is_empty()) else {
        return ScanEnds::Consistent;
    };
    let last = count - 1;
    let neighbours =
        median((0..STEPS.min(last)).map(|i| i * last / STEPS.min(last)).map(|p| differ(sinograms, p, p + 1)));
    let (middle, reach) = (default_axis(sinograms.bins), REACH * sinograms.bins as f64);
    let least = |pairs: &[[_; 2]]| compare(sinograms, pairs, middle - reach, middle + reach).bottom();
    let limit = neighbours + (TIMES * neighbours + MORE).min(MOST);
    let same = differ(sinograms, 0, last);
    let (mirrored_at, mirrored) = least(&[[only(0), only(last)]]);
    // pairs half the angular range apart: opposite to each other if the scan is a whole turn
    let halves = pairs_apart(sinograms, if declared == Turn::Half { 90.0 } else { 180.0 });
    if neighbours > ALIKE || halves.is_empty() {
        return ScanEnds::Consistent;
    }
    let (opposite_at, opposite) = least(&halves);
    // a sample that is symmetric about the axis looks the same from all sides
    let round = mirrored <= limit && (mirrored_at - opposite_at).abs() <= SAME;
    let full = same <= limit && opposite <= limit && !round;
    let half = mirrored <= limit && same > APART * limit && opposite > APART * limit;
    match declared {
        Turn::Half if full => ScanEnds::Suggest(Turn::Whole),
        Turn::Whole if half => ScanEnds::Suggest(Turn::Half),
        _ if same > APART * limit && mirrored > APART * limit => ScanEnds::Unrelated,
        _ => ScanEnds::Consistent,
    }
}

/// Returns the range that the angles cover, if it is half a turn or a whole one within a few degrees.
fn declared(sinograms: &Sinograms) -> Option<Turn> {
    let covered = sinograms.coverage() + sinograms.step();
    [(Turn::Half, 180.0), (Turn::Whole, 360.0)]
        .into_iter()
        .find(|(_, degrees)| (covered - degrees).abs() <= 1.0 + 1.5 * sinograms.step())
        .map(|(turn, _)| turn)
}

/// Returns the difference between two projections over all rows, as a share of their variance.
fn differ(sinograms: &Sinograms, p: usize, q: usize) -> f64 {
    let bins = sinograms.bins;
    let (mut differing, mut varying) = (0.0, 0.0);
    for row in &sinograms.rows {
        let [a, b] = [p, q].map(|p| &row[p * bins..(p + 1) * bins]);
        for (a, b) in deviations(a).zip(deviations(b)) {
            differing += (a - b).powi(2);
            varying += a * a + b * b;
        }
    }
    if varying > 0.0 { differing / varying } else { 1.0 }
}
