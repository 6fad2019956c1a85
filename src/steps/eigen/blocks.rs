//! Images at a reduced resolution: means over square blocks of pixels.

use std::ops::Range;

/// Largest number of blocks along a side of a detector.
const MOST_BLOCKS: usize = 128;
/// Rows of a block that count: as many at least, where it has them.
const ROWS_OF_BLOCK: usize = 4;

/// The blocks of a detector; those at its right and lower edges may be smaller. Of a large block, only some rows count, at equal
/// distances, so that projections of a large detector are not read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelBlocks {
    bins: usize,
    rows: usize,
    /// Side of a block in pixels.
    by: usize,
    /// Distance of the rows that count.
    step: usize,
}

impl PixelBlocks {
    /// Returns the blocks of a detector of so many bins and rows.
    pub fn new(bins: usize, rows: usize) -> PixelBlocks {
        let by = bins.max(rows).div_ceil(MOST_BLOCKS).max(1);
        PixelBlocks { bins, rows, by, step: (by / ROWS_OF_BLOCK).max(1) }
    }

    /// Returns the number of blocks of a row.
    pub fn width(&self) -> usize {
        self.bins.div_ceil(self.by)
    }

    /// Returns the number of rows of blocks.
    fn height(&self) -> usize {
        self.rows.div_ceil(self.by)
    }

    /// Returns the rows that count, of a row of blocks.
    fn rows_of(&self, block: usize) -> impl ExactSizeIterator<Item = usize> + use<> {
        (block * self.by..((block + 1) * self.by).min(self.rows)).step_by(self.step)
    }

    /// Returns the rows that count, in order.
    pub fn rows(&self) -> Vec<usize> {
        (0..self.height()).flat_map(|block| self.rows_of(block)).collect()
    }

    /// Returns the bins of every block of a row.
    fn bins(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (by, bins) = (self.by, self.bins);
        (0..self.width()).map(move |block| block * by..((block + 1) * by).min(bins))
    }

    /// Returns the mean of the values of every block, by the index of a pixel.
    pub fn means(&self, value: impl Fn(usize) -> f64) -> Vec<f64> {
        let mean = |row: usize, bins: Range<usize>| {
            let of_row = |row: usize| bins.clone().map(|bin| value(row * self.bins + bin)).sum::<f64>();
            self.rows_of(row).map(of_row).sum::<f64>() / (self.rows_of(row).len() * bins.len()) as f64
        };
        (0..self.height())
            .flat_map(|row| self.bins().map(move |bins| (row, bins)))
            .map(|(row, bins)| mean(row, bins))
            .collect()
    }

    /// Returns the means over blocks of what `counts` have above `dark`: the rows that count, in order, of one image, and all
    /// rows of the other one. Counts that are no number are as dark.
    pub fn means_above<'a>(&self, mut counts: impl Iterator<Item = &'a [f32]>, dark: &[f32]) -> Vec<f64> {
        let mut means = Vec::with_capacity(self.width() * self.height());
        let mut sums = vec![0f32; self.bins];
        for block in 0..self.height() {
            sums.fill(0.0);
            let rows = self.rows_of(block);
            let count = rows.len();
            for (row, counts) in rows.zip(&mut counts) {
                for ((sum, count), dark) in sums.iter_mut().zip(counts).zip(&dark[row * self.bins..]) {
                    let above = count - dark;
                    *sum += if above.is_finite() { above } else { 0.0 };
                }
            }
            let mean = |bins: Range<usize>| {
                let values = (count * bins.len()) as f64;
                sums[bins].iter().map(|sum| f64::from(*sum)).sum::<f64>() / values
            };
            means.extend(self.bins().map(mean));
        }
        means
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_the_mean_of_its_rows() {
        for (bins, rows, by, step) in [(7, 5, 1, 1), (128, 200, 2, 1), (1000, 3, 8, 2), (5, 1030, 9, 2)] {
            let blocks = PixelBlocks::new(bins, rows);
            assert_eq!((blocks.by, blocks.step), (by, step), "{bins} x {rows}");
            let value = |at: usize| f64::from((at * 7919 % 1013) as u16);
            let found = blocks.means(value);
            // from the definition
            let counts = |row: usize| row % by % step == 0;
            let mut sums = vec![(0.0, 0.0); bins.div_ceil(by) * rows.div_ceil(by)];
            for (row, bin) in (0..rows).filter(|&row| counts(row)).flat_map(|row| (0..bins).map(move |bin| (row, bin)))
            {
                let (sum, count) = &mut sums[row / by * bins.div_ceil(by) + bin / by];
                (*sum, *count) = (*sum + value(row * bins + bin), *count + 1.0);
            }
            let wanted: Vec<f64> = sums.iter().map(|(sum, count)| sum / count).collect();
            assert!(found.iter().zip(&wanted).all(|(found, mean)| (found - mean).abs() < 1e-9), "{bins} x {rows}");
            assert_eq!(blocks.rows(), (0..rows).filter(|&row| counts(row)).collect::<Vec<_>>(), "{bins} x {rows}");
            // the same above a dark level, with one count that is none
            let mut image: Vec<f32> = (0..rows * bins).map(|at| value(at) as f32 + 20.0).collect();
            (image[0], sums[0].0) = (f32::NAN, sums[0].0 - value(0));
            let rows = blocks.rows().into_iter().map(|row| &image[row * bins..(row + 1) * bins]);
            let above = blocks.means_above(rows, &vec![20.0; image.len()]);
            assert_eq!(above.len(), sums.len());
            assert!(above.iter().zip(&sums).all(|(found, (sum, count))| (found - sum / count).abs() < 1e-4));
        }
    }
}
