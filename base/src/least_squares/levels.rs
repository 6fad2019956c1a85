//! The resolutions at which slices are searched: the lowest one first, as each of the others begins with what the one below found.

use super::definition::grid_length;
use crate::geometry::{Geometry, GridSides, Roi, cos_sin_degrees, slice_centre};
use crate::spectrum::padded_length;

/// Largest size of a slice that is not begun at half its resolution, in pixels.
const LARGEST_START: usize = 512;

/// A scan at one resolution.
#[derive(Clone, Debug)]
pub struct LevelForm {
    /// Bins that are measured.
    pub bins: usize,
    /// Side of the slice in pixels, and of the grid on which it is computed.
    pub size: usize,
    pub grid: usize,
    /// Position of the slice's first pixel on the grid, along x and y.
    pub offset: usize,
    /// Period of rows in bins.
    pub length: usize,
    /// Position of the axis in each projection, in bins.
    pub axis: Vec<f64>,
}

impl LevelForm {
    /// Returns the resolutions for full slices of a scan, the highest first, on grids with sides of a kind.
    pub fn all(geometry: &Geometry, sides: GridSides) -> Vec<LevelForm> {
        let (mut bins, mut size, mut axis) = (geometry.bins, geometry.size, geometry.axis.clone());
        let halvings = (0..).take_while(|&n| can_halve(bins >> n, size >> n)).count();
        // the same pixels at all resolutions
        let margin = grid_length(size, sides) - size;
        let mut offset = ((margin / 2) >> halvings) << halvings;
        let mut levels = vec![];
        loop {
            let grid = grid_length(size, sides);
            let length = padded_length(bins.max(size));
            levels.push(LevelForm { bins, size, grid, offset, length, axis: axis.clone() });
            if !can_halve(bins, size) {
                return levels;
            }
            (bins, size, offset) = (bins / 2, size / 2, offset / 2);
            axis.iter_mut().for_each(|axis| *axis = (*axis - 0.5) / 2.0);
        }
    }

    /// Returns the position of the slice's centre on the grid.
    pub(super) fn centre(&self) -> f64 {
        slice_centre(self.size) + self.offset as f64
    }

    /// Returns the geometry of the whole grid as a slice.
    pub fn geometry(&self, scan: &Geometry) -> Geometry {
        let moved = slice_centre(self.grid) - self.centre();
        let axis = self.axis.iter().zip(&scan.angles).map(|(axis, angle)| {
            let (cos, sin) = cos_sin_degrees(*angle);
            axis + moved * (cos - sin)
        });
        let roi = Roi { x: 0, y: 0, width: self.grid, height: self.grid };
        Geometry { bins: self.bins, size: self.grid, roi, axis: axis.collect(), ..scan.clone() }
    }
}

fn can_halve(bins: usize, size: usize) -> bool {
    size > LARGEST_START && size % 2 == 0 && bins % 2 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels of the slice are at the same positions on the grid.
    #[test]
    fn grids_have_the_pixels_of_the_slice() {
        let mut scan = Geometry::half_turn(1400, 5, 1200);
        scan.axis.iter_mut().zip(0..).for_each(|(axis, p)| *axis += 0.3 * p as f64);
        let levels = LevelForm::all(&scan, GridSides::PowersOfTwo);
        assert_eq!(
            levels.iter().map(|level| [level.size, level.grid]).collect::<Vec<_>>(),
            [[1200, 2048], [600, 1024], [300, 512]]
        );
        let grid = levels[0].geometry(&scan);
        let offset = levels[0].offset as f64;
        for p in 0..5 {
            let difference = grid.position(p, 17.0 + offset, 900.0 + offset) - scan.position(p, 17.0, 900.0);
            assert!(difference.abs() < 1e-9, "{difference}");
        }
        // two bins and two pixels are one of the next level
        let below = levels[1].geometry(&scan);
        let pair = 0.5 * (grid.position(3, 100.0, 50.0) + grid.position(3, 101.0, 51.0));
        let difference = 2.0 * below.position(3, 50.0, 25.0) + 0.5 - pair;
        assert!(difference.abs() < 1e-9, "{difference}");
    }
}
