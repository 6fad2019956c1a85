//! The part of a slice that is shown.

use crate::geometry::Roi;
use serde::Serialize;
use std::fmt;

/// Beyond this share of the radius that all projections see there are edges that are not in the sample.
const CALM: f64 = 0.95;

/// A part of a slice, relative to its middle: slices for other axes may be larger.
#[derive(Clone, Copy, Serialize)]
pub(super) struct ShownPart {
    /// From the middle of the slice to the first column and row, in pixels.
    left: i64,
    top: i64,
    pub width: usize,
    height: usize,
}

impl ShownPart {
    /// A region of slices of this size.
    pub fn region(roi: Roi, size: usize) -> ShownPart {
        let from_middle = |first: usize| first as i64 - (size / 2) as i64;
        ShownPart { left: from_middle(roi.x), top: from_middle(roi.y), width: roi.width, height: roi.height }
    }

    /// The square of at most `side` pixels with the most structure: the largest sum of squares of the differences between
    /// neighbours, inside the circle that all projections see.
    pub fn busiest(slice: &[f32], size: usize, side: usize) -> ShownPart {
        let side = side.min(size);
        let middle = (size as f64 - 1.0) / 2.0;
        let seen = |x: usize, y: usize| (x as f64 - middle).hypot(y as f64 - middle) < CALM * size as f64 / 2.0;
        // sums over all rows above and columns to the left
        let width = size + 1;
        let mut sums = vec![0f64; width * width];
        for y in 0..size {
            let mut row = 0.0;
            for x in 0..size {
                let at = y * size + x;
                if x + 1 < size && y + 1 < size && seen(x, y) {
                    let [right, below] = [slice[at + 1] - slice[at], slice[at + size] - slice[at]].map(f64::from);
                    row += right * right + below * below;
                }
                sums[(y + 1) * width + x + 1] = sums[y * width + x + 1] + row;
            }
        }
        let inside = |&(x, y): &(usize, usize)| {
            sums[(y + side) * width + x + side] - sums[y * width + x + side] - sums[(y + side) * width + x]
                + sums[y * width + x]
        };
        let places = || (0..=size - side).step_by((side / 8).max(1));
        let (x, y) = places()
            .flat_map(|y| places().map(move |x| (x, y)))
            .max_by(|a, b| inside(a).total_cmp(&inside(b)))
            .unwrap_or((0, 0));
        let half = (size / 2) as i64;
        ShownPart { left: x as i64 - half, top: y as i64 - half, width: side, height: side }
    }

    /// Its values, `[y][x]`; 0 beyond the slice.
    pub fn of(self, slice: &[f32], size: usize) -> Vec<f32> {
        let half = (size / 2) as i64;
        let value = |i: usize| {
            let place = |first: i64, i: usize| usize::try_from(first + half + i as i64).ok().filter(|at| *at < size);
            let (x, y) = (place(self.left, i % self.width)?, place(self.top, i / self.width)?);
            Some(slice[y * size + x])
        };
        (0..self.width * self.height).map(|i| value(i).unwrap_or(0.0)).collect()
    }
}

impl fmt::Display for ShownPart {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let ShownPart { left, top, width, height } = *self;
        let (x, y) = (left + width as i64 / 2, top + height as i64 / 2);
        write!(f, "{width} x {height} pixels about ({x}, {y}) from the middle")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_with_most_structure_is_shown() {
        let (size, side) = (200, 32);
        let mut slice = vec![1f32; size * size];
        // a chequered corner, and a stronger one that no projection but a few sees
        for (left, top, value) in [(120, 40, 2.0), (0, 0, 9.0)] {
            for i in (0..20 * 20).step_by(3) {
                slice[(top + i / 20) * size + left + i % 20] = value;
            }
        }
        let part = ShownPart::busiest(&slice, size, side);
        let (x, y) = (part.left + 100, part.top + 100);
        assert!((108..=120).contains(&x) && (28..=40).contains(&y), "{x}, {y}");
        let values = part.of(&slice, size);
        assert_eq!((values.len(), values.iter().filter(|v| **v == 2.0).count()), (32 * 32, 134));
        // about the same middle in a larger slice
        let mut larger = vec![0f32; 240 * 240];
        (0..size).for_each(|y| larger[(y + 20) * 240 + 20..][..size].copy_from_slice(&slice[y * size..][..size]));
        assert_eq!(part.of(&larger, 240), values);
        assert_eq!(ShownPart::busiest(&slice[..9], 3, 256).width, 3);
        // a region is where it says
        let region = ShownPart::region(Roi { x: 120, y: 40, width: 20, height: 9 }, size);
        assert_eq!(region.of(&slice, size)[..4], [2.0, 1.0, 1.0, 2.0]);
        assert_eq!(region.to_string(), "20 x 9 pixels about (30, -56) from the middle");
    }
}
