//! Images at a reduced resolution: means over square blocks of pixels.

use std::ops::Range;

/// Largest number of blocks along a side of a detector.
const MOST_BLOCKS: usize = 256;

/// The blocks of a detector; those at its right and lower edges may be smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelBlocks {
    bins: usize,
    rows: usize,
    /// Side of a block in pixels.
    by: usize,
}

impl PixelBlocks {
    /// Returns the blocks of a detector of so many bins and rows.
    pub fn new(bins: usize, rows: usize) -> PixelBlocks {
        PixelBlocks { bins, rows, by: bins.max(rows).div_ceil(MOST_BLOCKS).max(1) }
    }

    /// Returns the number of blocks of a row.
    pub fn width(&self) -> usize {
        self.bins.div_ceil(self.by)
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> usize {
        self.width() * self.rows.div_ceil(self.by)
    }

    /// Returns the mean of the values of every block, by the index of a pixel.
    pub fn means(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        let width = self.width();
        let span = |at: usize, most: usize| -> Range<usize> { at * self.by..((at + 1) * self.by).min(most) };
        let mean = |block: usize| {
            let (rows, bins) = (span(block / width, self.rows), span(block % width, self.bins));
            let count = rows.len() * bins.len();
            let of_row = |row: usize| bins.clone().map(|bin| value(row * self.bins + bin)).sum::<f64>();
            rows.map(of_row).sum::<f64>() / count as f64
        };
        (0..self.count()).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_pixel_once() {
        for (bins, rows, by) in [(7, 5, 1), (256, 300, 2), (1000, 3, 4), (5, 1025, 5)] {
            let blocks = PixelBlocks::new(bins, rows);
            assert_eq!((blocks.by, blocks.count()), (by, bins.div_ceil(by) * rows.div_ceil(by)), "{bins} x {rows}");
            assert!(blocks.means(|_| 2.5).iter().all(|mean| *mean == 2.5));
            // the block of pixel (8, 1)
            let (row, bin) = (8.min(rows - 1), 1);
            let found = blocks.means(|at| f64::from(u8::from(at == row * bins + bin)));
            let at = row / by * blocks.width() + bin / by;
            let size = by.min(rows - row / by * by) * by.min(bins - bin / by * by);
            assert!(
                (found[at] - 1.0 / size as f64).abs() < 1e-15 && found.iter().filter(|mean| **mean > 0.0).count() == 1
            );
        }
    }
}
