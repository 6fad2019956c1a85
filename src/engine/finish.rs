//! Changes of slices before they are written.

use crate::device::Session;
use crate::error::Result;
use crate::geometry::{Roi, slice_centre};
use crate::operations::EncodedSample;
use crate::operations::{SliceCounter, SliceEncoder};
use crate::plan::Scan;
use crate::recipe::Recipe;
use std::ops::Range;

/// The changes of a slice after back projection: unit of length and mask.
pub struct Finish {
    factor: f32,
    /// Side of a whole slice in pixels.
    size: usize,
    /// Square of the mask's radius in pixels, if there is a mask.
    radius2: Option<f64>,
}

impl Finish {
    /// Returns the changes of slices of `size x size` pixels, or of regions of them.
    pub fn new(recipe: &Recipe, size: usize) -> Self {
        Finish {
            factor: recipe.slice.pixel_size.as_ref().map_or(1.0, |p| (1.0 / p.value) as f32),
            size,
            radius2: recipe.values.mask.map(|fraction| (fraction * size as f64 / 2.0).powi(2)),
        }
    }

    /// Makes the encoder, which makes these changes on a device and converts values to the samples that are written.
    pub(super) fn encoder(&self, session: &Session, sample: EncodedSample, scan: &Scan) -> Result<SliceEncoder> {
        SliceEncoder::new(session, sample, scan.geometry.roi.width, &self.spans(scan), self.factor)
    }

    /// Makes the counter of the values that slices will have when they are finished.
    pub(super) fn counter(&self, session: &Session, scan: &Scan) -> Result<SliceCounter> {
        SliceCounter::new(session, scan.geometry.roi.width, &self.spans(scan), self.factor)
    }

    /// Returns the columns that the mask leaves in each row of the region.
    fn spans(&self, scan: &Scan) -> Vec<[i32; 2]> {
        let roi = scan.geometry.roi;
        let inside = (0..roi.height).map(|y| self.inside(roi, y));
        inside.map(|inside| [inside.start as i32, inside.end as i32]).collect()
    }

    pub fn apply(&self, roi: Roi, slice: &mut [f32]) {
        if self.factor != 1.0 {
            slice.iter_mut().for_each(|v| *v *= self.factor);
        }
        if self.radius2.is_some() {
            for (y, row) in slice.chunks_mut(roi.width).enumerate() {
                let inside = self.inside(roi, y);
                row[..inside.start].fill(0.0);
                row[inside.end..].fill(0.0);
            }
        }
    }

    /// Returns the columns that the mask leaves in a row of the region: they are contiguous, as in a circle.
    pub fn inside(&self, roi: Roi, y: usize) -> Range<usize> {
        let centre = slice_centre(self.size);
        let Some(radius2) = self.radius2 else { return 0..roi.width };
        let dy = (roi.y + y) as f64 - centre;
        let within = |&x: &usize| {
            let dx = (roi.x + x) as f64 - centre;
            dx * dx + dy * dy <= radius2
        };
        let start = (0..roi.width).find(within).unwrap_or(0);
        let end = (start..roi.width).rfind(within).map_or(start, |last| last + 1);
        start..end
    }
}
