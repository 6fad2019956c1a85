//! Whether a scan went around as far as its angles say: the last projection of a whole turn is beside the first one, that
//! of half a turn beside its mirror image.

use super::Sinograms;
use super::curve::median;
use super::mirror::{compare, deviations, only, pairs_apart};
use crate::geometry::default_axis;

/// How far a scan went around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Half,
    Whole,
}

/// What the ends of a scan say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScanEnds {
    /// They are where the angles say, or the scan is too coarse or too noisy to tell.
    Consistent,
    /// The scan went around so far.
    Suggest(Turn),
    /// The last projection is like the first one neither as it is nor mirrored.
    Unrelated,
}

/// The axis is searched on this share of the detector on both sides of its middle.
const REACH: f64 = 0.4;
/// Where neighbouring projections differ by more than this, the ends are not compared.
const ALIKE: f64 = 0.3;
/// Projections that differ by so many times more than neighbours do, and this on top, may be neighbours,
const TIMES: f64 = 2.0;
const MORE: f64 = 0.02;
/// but never by more than this.
const MOST: f64 = 0.15;
/// Projections that differ by so many times that limit are none.
const APART: f64 = 2.0;
/// Axes that are so many bins apart are the same.
const SAME: f64 = 1.0;
/// Pairs of neighbours that are looked at.
const STEPS: usize = 60;

/// Compares the ends of a scan that its angles say is half a turn or a whole one, as shares of the variance: 0 for the
/// same, about 1 for unrelated projections.
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
    // half of the angles apart: opposite to each other where the scan is a whole turn
    let halves = pairs_apart(sinograms, if declared == Turn::Half { 90.0 } else { 180.0 });
    if neighbours > ALIKE || halves.is_empty() {
        return ScanEnds::Consistent;
    }
    let (opposite_at, opposite) = least(&halves);
    // a sample that is round about the axis looks the same from all sides
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

/// How far the angles go around, if that is half a turn or a whole one to within a few degrees.
fn declared(sinograms: &Sinograms) -> Option<Turn> {
    let covered = sinograms.coverage() + sinograms.step();
    [(Turn::Half, 180.0), (Turn::Whole, 360.0)]
        .into_iter()
        .find(|(_, degrees)| (covered - degrees).abs() <= 1.0 + 1.5 * sinograms.step())
        .map(|(turn, _)| turn)
}

/// How two projections differ, over all rows.
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
