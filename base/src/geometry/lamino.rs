//! Laminography: a scan whose rotation axis is inclined to the beam.
//!
//! With `X` to the right and `Y` up in a slice, as in the [module](super), voxel `(x, y, z)` is seen by projection `p` at
//! bin `h_p(x, y)` and at row
//! `v_p(x, y, z) = v0 + (z - v0) cos(phi) + (Y cos(theta_p) - X sin(theta_p)) sin(phi)`,
//! where `phi` is the angle of inclination and `v0 = (H - 1) / 2` the middle of the detector's `H` rows. A slice is
//! `f(x, y, z) = cos(phi) sum_p w_p q_p(h_p, v_p)`: rows are filtered as those of tomography, and interpolated linearly
//! between bins and between rows. Bins and rows outside the detector count as 0.

use super::{Geometry, Offset, cos_sin_degrees, default_axis, slice_centre};
use std::ops::Range;

/// The inclination of the rotation axis, and the rows of the detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lamino {
    /// Angle of inclination in degrees; 0 is tomography.
    pub degrees: f64,
    /// Number of rows of the detector.
    pub height: usize,
    /// Distance between neighbouring slices of the run, in slices.
    pub step: usize,
    /// Number of the first slice that could be one of the run: below `step`.
    start: usize,
    /// Least and largest distance of a pixel of the region from the row of its slice's pixel on the axis.
    reach: [f64; 2],
}

/// Groups of slices that work-items sum together. A slice belongs to a group by its number, not by which others are
/// computed with it.
#[derive(Debug, PartialEq)]
pub struct SliceGroups {
    /// Height of the first slice of each group, computed or not, as part of the row at which it is seen.
    pub heights: Vec<Offset>,
    /// `places[g * depth + k]`: position of slice `k` of group `g` among those that are computed, -1 for none.
    pub places: Vec<i32>,
}

/// Positions of blocks of pixels on the detector, and steps from pixel to pixel.
pub struct LaminoTables {
    /// `columns[bx * P + p]`: the part of block column `bx` in the bin (whole, rest) and in the row (whole, rest).
    pub columns: Vec<[f32; 4]>,
    /// `lines[by * P + p]`: the part of block row `by`.
    pub lines: Vec<[f32; 4]>,
    /// `steps[p]`: bins per pixel in x and y, rows per pixel in x and y.
    pub steps: Vec<[f32; 4]>,
}

fn both(bin: f64, row: f64) -> [f32; 4] {
    let [bin, row] = [bin, row].map(Offset::new);
    [bin.whole, bin.rest, row.whole, row.rest]
}

impl Lamino {
    /// Makes the inclination of a scan, with the rows that its region needs, for evenly spaced slices in ascending order.
    pub fn new(degrees: f64, height: usize, geometry: &Geometry, slices: &[usize]) -> Lamino {
        let step = slices.windows(2).next().map_or(1, |pair| pair[1] - pair[0]);
        let start = slices.first().map_or(0, |first| first % step);
        let mut lamino = Lamino { degrees, height, step, start, reach: [0.0; 2] };
        let (roi, middle) = (geometry.roi, default_axis(height));
        let (right, bottom) = (roi.x + roi.width - 1, roi.y + roi.height - 1);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for projection in 0..geometry.projections() {
            for corner in [[roi.x, roi.y], [right, roi.y], [roi.x, bottom], [right, bottom]] {
                let [x, y] = corner.map(|at| at as f64);
                let from_axis = lamino.row(geometry, projection, [x, y, middle]) - middle;
                (low, high) = (low.min(from_axis), high.max(from_axis));
            }
        }
        lamino.reach = [low, high];
        lamino
    }

    /// Returns cosine and sine of the inclination.
    pub fn cos_sin(&self) -> (f64, f64) {
        cos_sin_degrees(self.degrees)
    }

    /// Returns the row at which a projection sees pixel `(x, y)` of slice `z`.
    pub fn row(&self, geometry: &Geometry, projection: usize, [x, y, z]: [f64; 3]) -> f64 {
        let ((cos, sin), centre) = (self.cos_sin(), slice_centre(geometry.size));
        let (turn_cos, turn_sin) = cos_sin_degrees(geometry.angles[projection]);
        let middle = default_axis(self.height);
        middle + (z - middle) * cos - ((y - centre) * turn_cos + (x - centre) * turn_sin) * sin
    }

    /// Returns the rows of the detector that slices from `first` to `last` need; at least one.
    pub fn rows(&self, [first, last]: [usize; 2]) -> Range<usize> {
        let ((cos, _), middle) = (self.cos_sin(), default_axis(self.height));
        let on_axis = |z: usize| middle + (z as f64 - middle) * cos;
        // positions in single precision may be in the next row
        let low = (on_axis(first) + self.reach[0]).floor() - 1.0;
        let high = (on_axis(last) + self.reach[1]).floor() + 2.0;
        let [low, high] = [low, high].map(|row| row.clamp(0.0, self.height as f64 - 1.0) as usize);
        low..high + 1
    }

    /// Returns the rows of the detector that some slices, in ascending order, need.
    pub fn rows_of(&self, slices: &[usize]) -> Range<usize> {
        match slices {
            [] => 0..0,
            [one] => self.rows([*one; 2]),
            [first, .., last] => self.rows([*first, *last]),
        }
    }

    /// Returns the distance between the rows that see neighbouring slices of the run.
    pub fn spacing(&self) -> f64 {
        self.step as f64 * self.cos_sin().0
    }

    /// Returns the number of the group of `depth` slices to which a slice of the run belongs, and its place there.
    pub fn group(&self, slice: usize, depth: usize) -> (usize, usize) {
        let number = slice.saturating_sub(self.start) / self.step;
        (number / depth, number % depth)
    }

    /// Returns the groups of `depth` slices to which some slices of the run, in ascending order, belong.
    pub fn groups(&self, slices: &[usize], depth: usize) -> SliceGroups {
        let ((cos, _), middle) = (self.cos_sin(), default_axis(self.height));
        let (mut groups, mut last) = (SliceGroups { heights: Vec::new(), places: Vec::new() }, None);
        for (position, &slice) in slices.iter().enumerate() {
            let (group, place) = self.group(slice, depth);
            if last != Some(group) {
                let first = (self.start + group * depth * self.step) as f64;
                groups.heights.push(Offset::new((first - middle) * cos));
                groups.places.resize(groups.heights.len() * depth, -1);
                last = Some(group);
            }
            let of_group = (groups.heights.len() - 1) * depth;
            groups.places[of_group + place] = position as i32;
        }
        groups
    }

    /// Returns the tables for blocks of `block[0] x block[1]` pixels, which begin at multiples of their sides in the full
    /// slice, so that a region has bit for bit the pixels of the full slice.
    pub fn tables(&self, geometry: &Geometry, block: [usize; 2]) -> LaminoTables {
        let ((_, sin), centre) = (self.cos_sin(), slice_centre(geometry.size));
        let (origin, blocks) = geometry.roi.block_grid(block);
        let turns: Vec<(f64, f64)> = geometry.angles.iter().map(|&angle| cos_sin_degrees(angle)).collect();
        let middle = default_axis(self.height);
        let column = |bx: usize| {
            let x = (origin[0] + bx * block[0]) as f64 - centre;
            let turned = turns.iter().zip(&geometry.axis);
            turned.map(move |(&(turn_cos, turn_sin), &axis)| both(axis + x * turn_cos, -x * turn_sin * sin))
        };
        let line = |by: usize| {
            let y = (origin[1] + by * block[1]) as f64 - centre;
            turns.iter().map(move |&(turn_cos, turn_sin)| both(-y * turn_sin, middle - y * turn_cos * sin))
        };
        LaminoTables {
            columns: (0..blocks[0]).flat_map(column).collect(),
            lines: (0..blocks[1]).flat_map(line).collect(),
            steps: turns
                .iter()
                .map(|&(turn_cos, turn_sin)| {
                    [turn_cos, -turn_sin, -turn_sin * sin, -turn_cos * sin].map(|step| step as f32)
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Roi, even_angles};
    use super::*;

    fn turn(bins: usize, projections: usize) -> Geometry {
        Geometry { angles: even_angles(3.0, 360.0, projections), ..Geometry::half_turn(bins, projections, bins) }
    }

    #[test]
    fn an_upright_axis_sees_a_slice_in_its_row() {
        let geometry = turn(20, 7);
        let lamino = Lamino::new(0.0, 11, &geometry, &[]);
        for z in 0..11 {
            assert_eq!(lamino.row(&geometry, 3, [1.0, 17.0, z as f64]), z as f64);
        }
        assert_eq!(lamino.rows([4, 6]), 3..9);
        assert_eq!(lamino.rows_of(&[0, 3, 10]), 0..11);
    }

    #[test]
    fn rows_hold_what_every_pixel_needs() {
        let geometry = Geometry { roi: Roi { x: 3, y: 6, width: 5, height: 4 }, ..turn(31, 40) };
        for degrees in [-35.0, 12.0, 60.0] {
            let lamino = Lamino::new(degrees, 50, &geometry, &[]);
            let rows = lamino.rows([20, 29]);
            let mut seen = [usize::MAX, 0];
            for p in 0..40 {
                for (x, y, z) in (3..8).flat_map(|x| (6..10).flat_map(move |y| (20..30).map(move |z| (x, y, z)))) {
                    let row = lamino.row(&geometry, p, [x, y, z].map(f64::from)).floor() as usize;
                    seen = [seen[0].min(row), seen[1].max(row + 1)];
                }
            }
            assert!(rows.start <= seen[0] && seen[1] < rows.end, "{degrees}: {rows:?} {seen:?}");
            // and few more
            assert!(seen[0] - rows.start <= 2 && rows.end - seen[1] <= 3, "{degrees}: {rows:?} {seen:?}");
        }
        // what the detector does not see at all needs no row, but one is read
        assert_eq!(Lamino::new(80.0, 3, &turn(900, 4), &[]).rows([0, 0]).len(), 3);
    }

    #[test]
    fn tables_add_up_to_positions() {
        let geometry = turn(37, 9);
        let lamino = Lamino::new(25.0, 17, &geometry, &[1, 3]);
        let LaminoTables { columns, lines, steps } = lamino.tables(&geometry, [8, 4]);
        let SliceGroups { heights, places } = lamino.groups(&[5, 9, 11], 4);
        // the groups of slices 1, 3, 5, 7 and 9, 11, 13, 15
        assert_eq!(places, [-1, -1, 0, -1, 1, 2, -1, -1]);
        for p in 0..9 {
            let (column, line, step) = (columns[2 * 9 + p], lines[9 + p], steps[p]);
            let at = |part: usize, fx: f32, fy: f32| {
                let whole = column[part] + line[part];
                let rest = column[part + 1] + line[part + 1] + fx * step[part] + fy * step[part + 1];
                f64::from(whole) + f64::from(rest)
            };
            let height = f64::from(heights[1].whole) + f64::from(heights[1].rest);
            assert!((at(0, 3.0, 1.0) - geometry.position(p, 19.0, 5.0)).abs() < 1e-5);
            assert!((at(2, 3.0, 1.0) + height - lamino.row(&geometry, p, [19.0, 5.0, 9.0])).abs() < 1e-5);
        }
    }
}
