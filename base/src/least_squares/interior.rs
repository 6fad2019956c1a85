//! A sample that is wider than the detector: rows and slices are extended, and slices are cropped.

use crate::geometry::Geometry;
use std::borrow::Cow;
use std::f64::consts::PI;

/// Rows are extended on each side by one part in so many of their bins.
const PART: usize = 4;

/// How far rows and slices are extended on each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Margins {
    pub bins: usize,
    pub pixels: usize,
}

impl Margins {
    /// Returns the margins for a sample that is wider than the detector.
    pub fn around(bins: usize, size: usize) -> Margins {
        let margin = bins / PART;
        // the slice holds what the extended rows show
        Margins { bins: margin, pixels: margin + bins.saturating_sub(size).div_ceil(2) }
    }

    /// Returns the scan of extended rows, for the extended slice.
    pub fn widen(self, geometry: &Geometry) -> Geometry {
        Geometry {
            bins: geometry.bins + 2 * self.bins,
            size: geometry.size + 2 * self.pixels,
            axis: geometry.axis.iter().map(|axis| axis + self.bins as f64).collect(),
            ..geometry.clone()
        }
    }

    /// Extends rows of `bins` values by their end values, which fall to 0 as a cosine.
    pub fn extend(self, rows: &[f32], bins: usize) -> Cow<'_, [f32]> {
        if self.bins == 0 {
            return Cow::Borrowed(rows);
        }
        let share = |place: usize| (0.5 + 0.5 * (PI * (place as f64 + 0.5) / self.bins as f64).cos()) as f32;
        let extended = rows.chunks_exact(bins).flat_map(|row| {
            let before = (0..self.bins).rev().map(move |place| row[0] * share(place));
            let behind = (0..self.bins).map(move |place| row[bins - 1] * share(place));
            before.chain(row.iter().copied()).chain(behind)
        });
        Cow::Owned(extended.collect())
    }

    /// Returns the middle of an extended slice of some side.
    pub fn crop(self, slice: Vec<f32>, side: usize) -> Vec<f32> {
        if self.pixels == 0 {
            return slice;
        }
        let inside = self.pixels..side - self.pixels;
        slice
            .chunks_exact(side)
            .skip(self.pixels)
            .take(inside.len())
            .flat_map(|row| &row[inside.clone()])
            .copied()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_slices_are_extended() {
        let margins = Margins::around(8, 5);
        assert_eq!(margins, Margins { bins: 2, pixels: 4 });
        let wide = margins.widen(&Geometry::half_turn(8, 3, 5));
        assert_eq!((wide.bins, wide.size, wide.axis), (12, 13, vec![5.5; 3]));
        let [near, far] = [(PI / 4.0).cos(), (3.0 * PI / 4.0).cos()].map(|cosine| (0.5 + 0.5 * cosine) as f32);
        let rows: Vec<f32> = (1..=16).map(|value| value as f32).collect();
        let extended = margins.extend(&rows, 8).into_owned();
        assert_eq!(extended.len(), 24);
        assert_eq!(extended[12..16], [9.0 * far, 9.0 * near, 9.0, 10.0]);
        assert_eq!(extended[8..12], [7.0, 8.0, 8.0 * near, 8.0 * far]);
        let slice: Vec<f32> = (0..169).map(|pixel| pixel as f32).collect();
        assert_eq!(margins.crop(slice, 13)[..6], [56.0, 57.0, 58.0, 59.0, 60.0, 69.0]);
        let none = Margins::default();
        assert_eq!(none.extend(&rows, 8), rows);
        assert_eq!(none.crop(rows.clone(), 4), rows);
    }
}
