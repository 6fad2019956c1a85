//! Images at a reduced resolution: means over square blocks of pixels.

use multiversion::multiversion;
use rayon::prelude::*;
use std::ops::Range;

/// Largest number of blocks along a side of a detector.
const MOST_BLOCKS: usize = 128;
/// Largest number of rows of a block that count.
const ROWS_OF_BLOCK: usize = 4;
/// Number of values that are added at once.
const LANES: usize = 8;

/// The blocks of a detector; those at its right and lower edges may be smaller. Of a large block, only the rows in its middle
/// count, so that projections of a large detector are not read whole.
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
        let by = bins.max(rows).div_ceil(MOST_BLOCKS).max(1);
        PixelBlocks { bins, rows, by }
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
    fn rows_of(&self, block: usize) -> Range<usize> {
        let (first, end) = (block * self.by, ((block + 1) * self.by).min(self.rows));
        let count = (end - first).min(ROWS_OF_BLOCK);
        let start = first + (end - first - count) / 2;
        start..start + count
    }

    /// Returns the range of the rows from the first to the last that counts.
    pub fn range(&self) -> Range<usize> {
        self.rows_of(0).start..self.rows_of(self.height() - 1).end
    }

    /// Returns the bins of every block of a row.
    fn bins(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let (by, bins) = (self.by, self.bins);
        (0..self.width()).map(move |block| block * by..((block + 1) * by).min(bins))
    }

    /// Returns the mean of the values of every block, by the index of a pixel.
    pub fn means(&self, value: impl Fn(usize) -> f32 + Sync) -> Vec<f64> {
        let of_blocks = |block: usize| {
            let mut sums = vec![0f32; self.bins];
            let rows = self.rows_of(block);
            for row in rows.clone() {
                sums.iter_mut().zip(row * self.bins..).for_each(|(sum, at)| *sum += value(at));
            }
            self.of_sums(&sums, rows.len()).collect::<Vec<f64>>()
        };
        (0..self.height()).into_par_iter().flat_map_iter(of_blocks).collect()
    }

    /// Returns the mean of every block of a row from the sums of `rows` rows.
    fn of_sums<'a>(&self, sums: &'a [f32], rows: usize) -> impl Iterator<Item = f64> + use<'a> {
        self.bins().map(move |bins| sum(&sums[bins.clone()]) / (rows * bins.len()) as f64)
    }

    /// Returns the means over blocks of what an image has above `dark`, which has all rows. `read` reads some of its rows; it is
    /// called for all that count, in order. Counts that are no number are as dark.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn means_above<E>(
        &self,
        dark: &[f32],
        mut read: impl FnMut(Range<usize>, &mut [f32]) -> Result<(), E>,
    ) -> Result<Vec<f64>, E> {
        let mut means = Vec::with_capacity(self.width() * self.height());
        let (mut sums, mut counts) = (vec![0f32; self.bins], Vec::new());
        for block in 0..self.height() {
            sums.fill(0.0);
            let rows = self.rows_of(block);
            counts.resize(rows.len() * self.bins, 0.0);
            read(rows.clone(), &mut counts)?;
            let dark = dark[rows.start * self.bins..].chunks(self.bins);
            counts.chunks(self.bins).zip(dark).for_each(|(counts, dark)| add_above(&mut sums, counts, dark));
            means.extend(self.of_sums(&sums, rows.len()));
        }
        Ok(means)
    }
}

/// Adds what counts have above a dark level; those that are no number have nothing. Also compiled for newer processors with
/// wider vectors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn add_above(sums: &mut [f32], counts: &[f32], dark: &[f32]) {
    for ((sum, count), dark) in sums.iter_mut().zip(counts).zip(dark) {
        let above = count - dark;
        *sum += if above.is_finite() { above } else { 0.0 };
    }
}

/// Returns the sum of some values, in parts that processors add at once.
fn sum(values: &[f32]) -> f64 {
    let mut lanes = [0f64; LANES];
    for values in values.chunks(LANES) {
        lanes.iter_mut().zip(values).for_each(|(lane, value)| *lane += f64::from(*value));
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_the_mean_of_its_rows() {
        for (bins, rows, by, of_block) in
            [(7, 5, 1, 0..1), (128, 200, 2, 0..2), (1000, 3, 8, 2..6), (5, 1030, 9, 2..6), (5, 1152, 9, 2..6)]
        {
            let blocks = PixelBlocks::new(bins, rows);
            assert_eq!(blocks.by, by, "{bins} x {rows}");
            let value = |at: usize| f32::from((at * 7919 % 1013) as u16);
            let found = blocks.means(value);
            // from the definition
            let counts = |row: usize| match rows - row / by * by {
                // a smaller block at the edge
                few if few < by => few <= 4 || (2..6).contains(&(row % by)),
                _ => of_block.contains(&(row % by)),
            };
            let mut sums = vec![(0.0, 0.0); bins.div_ceil(by) * rows.div_ceil(by)];
            for (row, bin) in (0..rows).filter(|&row| counts(row)).flat_map(|row| (0..bins).map(move |bin| (row, bin)))
            {
                let (sum, count) = &mut sums[row / by * bins.div_ceil(by) + bin / by];
                (*sum, *count) = (*sum + f64::from(value(row * bins + bin)), *count + 1.0);
            }
            let wanted: Vec<f64> = sums.iter().map(|(sum, count)| sum / count).collect();
            assert!(found.iter().zip(&wanted).all(|(found, mean)| (found - mean).abs() < 1e-9), "{bins} x {rows}");
            // the same above a dark level, with one count that is none
            let mut image: Vec<f32> = (0..rows * bins).map(|at| value(at) + 20.0).collect();
            (image[0], sums[0].0) = (f32::NAN, sums[0].0 - f64::from(value(0)));
            let read = |rows: Range<usize>, counts: &mut [f32]| {
                counts.copy_from_slice(&image[rows.start * bins..rows.end * bins]);
                Ok::<(), ()>(())
            };
            let above = blocks.means_above(&vec![20.0; image.len()], read).unwrap();
            assert_eq!(above.len(), sums.len());
            assert!(above.iter().zip(&sums).all(|(found, (sum, count))| (found - sum / count).abs() < 1e-4));
        }
    }
}
