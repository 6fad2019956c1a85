//! Jitter: distances of projections from where they would be if the sample only rotated.

use super::Sinograms;
use super::curve::median;
use multiversion::multiversion;
use rayon::prelude::*;

/// Returns the jitter of the projections as a standard deviation in bins. It is caused by motion of the sample or the
/// stage, and estimated from the shift between neighbours, which changes slowly where the sample only rotates.
pub fn jitter(sinograms: &Sinograms) -> f64 {
    let (bins, count) = (sinograms.bins, sinograms.angles.len());
    // shift between two projections, which all rows share
    let shift = |p: usize| {
        let sums = sinograms.rows.iter().map(|row| slopes(&row[p * bins..][..bins], &row[(p + 1) * bins..][..bins]));
        let [moved, slopes] = sums.fold([0.0; 2], |sum, add| [sum[0] + add[0], sum[1] + add[1]]);
        if slopes > 0.0 { moved / slopes } else { 0.0 }
    };
    let shifts: Vec<f64> = (0..count.saturating_sub(1)).into_par_iter().map(shift).collect();
    let bends = shifts.windows(2).map(|pair| (pair[1] - pair[0]).abs());
    // second differences of independent positions have six times their variance
    1.4826 * median(bends) / 6f64.sqrt()
}

/// Returns sums over the bins of the slope of two lines times their difference, and of the square of the slope. The
/// sums are formed in a fixed number of lanes, so that code for processors with wider vectors gives the same results.
#[multiversion(targets("x86_64+avx2"))]
fn slopes(a: &[f32], b: &[f32]) -> [f64; 2] {
    const LANES: usize = 16;
    let count = a.len().saturating_sub(2);
    let (mut moved, mut squares) = ([0f64; LANES], [0f64; LANES]);
    let mut add = |from: usize, lanes: usize| {
        let [a, b] = [&a[from..from + lanes + 2], &b[from..from + lanes + 2]];
        for lane in 0..lanes {
            let slope = f64::from(a[lane + 2] - a[lane] + b[lane + 2] - b[lane]) / 4.0;
            moved[lane] += slope * f64::from(a[lane + 1] - b[lane + 1]);
            squares[lane] += slope * slope;
        }
    };
    let whole = count / LANES * LANES;
    (0..whole).step_by(LANES).for_each(|from| add(from, LANES));
    add(whole, count - whole);
    [moved, squares].map(|sums| sums.iter().sum())
}
