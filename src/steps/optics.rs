//! The optics of the detector: where it saw the pixels of projections.

use crate::remark::Remark;
use crate::resampling::PlaceTable;
use rayon::prelude::*;
use std::sync::Arc;

/// Distance in pixels from the centre of the outermost pixels up to which the detector reaches.
const EDGE: f64 = 0.5;

/// The detector with its optics, as steps on projections see it.
#[derive(Clone, Debug)]
pub struct Optics {
    /// Numbers of bins and rows, after binning.
    pub bins: usize,
    pub height: usize,
    /// Where pixels of upright projections without distortion were seen, if the optics distort them.
    pub places: Option<Arc<PlaceTable>>,
    /// Pixels that the optics would have shown beyond the detector, if there are any.
    pub beyond: Option<UnseenPixels>,
}

impl Optics {
    /// Returns a detector of `[bins, rows]` whose optics do not distort.
    pub fn of([bins, height]: [usize; 2]) -> Optics {
        Optics { bins, height, places: None, beyond: None }
    }
}

/// Pixels of undistorted projections that are beyond the detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnseenPixels {
    pub count: usize,
    /// Number of pixels of a projection.
    pub all: usize,
    /// Distance of the farthest beyond the detector, in pixels.
    pub farthest: f64,
}

impl UnseenPixels {
    /// Counts the pixels of the binned detector, `[bins, rows]`, whose positions are not on it.
    pub fn of([bins, rows]: [usize; 2], position: impl Fn([f64; 2]) -> [f64; 2] + Sync) -> Option<UnseenPixels> {
        let past = |at: f64, length: usize| {
            let past = (-EDGE - at).max(at - (length as f64 - 1.0 + EDGE));
            // a position that is not finite is nowhere
            if at.is_finite() { past } else { f64::INFINITY }
        };
        let of_row = |row: usize| {
            (0..bins).fold((0, 0f64), |(count, farthest), bin| {
                let [x, z] = position([bin as f64, row as f64]);
                let past = past(x, bins).max(past(z, rows));
                if past > 0.0 { (count + 1, farthest.max(past)) } else { (count, farthest) }
            })
        };
        let both = |a: (usize, f64), b: (usize, f64)| (a.0 + b.0, a.1.max(b.1));
        let (count, farthest) = (0..rows).into_par_iter().map(of_row).reduce(|| (0, 0.0), both);
        (count > 0).then_some(UnseenPixels { count, all: bins * rows, farthest })
    }

    /// Returns a note about them.
    pub fn note(self) -> Remark {
        let UnseenPixels { count, all, farthest } = self;
        Remark::note(format!(
            "--distortion: {count} of {all} pixels are up to {farthest:.1} pixels beyond the detector, whose outermost \
             pixels are repeated"
        ))
    }
}
