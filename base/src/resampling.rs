//! Images whose pixels are interpolated at other positions, by cubic convolution (R. Keys, 1981, a = -1/2); beyond an image its
//! outermost pixels are repeated.

use crate::numbers::floor;
use multiversion::multiversion;
use rayon::prelude::*;
use std::ops::Range;

/// Number of pixels on either side of a position that are used for interpolation.
pub const REACH: usize = 2;

/// Some rows of an image.
pub struct ImageRows<'a> {
    /// Values `[row][bin]` of the rows `read`.
    pub values: &'a [f32],
    /// Bins, and rows, of the whole image.
    pub size: [usize; 2],
    pub read: &'a Range<usize>,
}

/// Position of a pixel in an image: shift in bins, row, and the fractions of both.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbours {
    shift: i32,
    row: i32,
    across: f32,
    down: f32,
}

impl Neighbours {
    /// Returns the position `[bin, row]` of the pixel of a bin.
    pub fn of(bin: usize, [x, z]: [f64; 2]) -> Neighbours {
        let (ix, iz) = (floor(x), floor(z));
        Neighbours {
            shift: ix - bin as i32,
            row: iz,
            across: (x - f64::from(ix)) as f32,
            down: (z - f64::from(iz)) as f32,
        }
    }
}

impl ImageRows<'_> {
    /// Writes rows `wanted` of the image whose pixels are at the positions `place(bin, row)` in this one to `out`. All rows
    /// within [`REACH`] of these positions are among the ones read, up to the end of the image.
    pub fn resample(&self, wanted: &Range<usize>, out: &mut [f32], place: impl Fn(usize, usize) -> Neighbours) {
        let ImageRows { values, size: [bins, height], read } = *self;
        let last = [bins, height].map(|n| n as i32 - 1);
        let mut places = vec![Neighbours::default(); bins];
        let row_of = |z: i32| {
            let z = (z.clamp(0, last[1]) as usize).clamp(read.start, read.end - 1) - read.start;
            &values[z * bins..(z + 1) * bins]
        };
        for (row, line) in wanted.clone().zip(out.chunks_mut(bins)) {
            places.iter_mut().enumerate().for_each(|(bin, at)| *at = place(bin, row));
            // runs of consecutive pixels with the same offset to their neighbours
            let mut bin = 0;
            for run in places.chunk_by(|a, b| (a.shift, a.row) == (b.shift, b.row)) {
                let Neighbours { shift, row, .. } = run[0];
                let rows = [row - 1, row, row + 1, row + 2].map(row_of);
                let (first, end) = (bin as i32 + shift - 1, bin as i32 + shift + run.len() as i32 + 1);
                let line = &mut line[bin..bin + run.len()];
                if first >= 0 && end <= last[0] {
                    interpolate(line, run, rows.map(|row| &row[first as usize..=end as usize]));
                } else {
                    // beyond the ends the outermost pixels are repeated
                    let wide =
                        rows.map(|row| (first..=end).map(|x| row[x.clamp(0, last[0]) as usize]).collect::<Vec<_>>());
                    interpolate(line, run, [&wide[0], &wide[1], &wide[2], &wide[3]]);
                }
                bin += run.len();
            }
        }
    }
}

/// Interpolates pixels of a row from the four rows around them, which have three more pixels. Also compiled for newer
/// processors, with the same results.
#[multiversion(targets("x86_64+avx2"))]
fn interpolate(line: &mut [f32], places: &[Neighbours], rows: [&[f32]; 4]) {
    let count = line.len().min(places.len());
    let shifted = rows.map(|row| [0, 1, 2, 3].map(|k| &row[k..k + count]));
    for i in 0..count {
        let (across, down) = (cubic(places[i].across), cubic(places[i].down));
        let mut sum = 0.0;
        for (weight, four) in down.into_iter().zip(&shifted) {
            sum += weight
                * (across[0] * four[0][i] + across[1] * four[1][i] + across[2] * four[2][i] + across[3] * four[3][i]);
        }
        line[i] = sum;
    }
}

/// Returns the weights of the pixels at -1, 0, 1 and 2 for a position at `t`, from 0 to 1.
#[inline(always)]
pub fn cubic(t: f32) -> [f32; 4] {
    let (t2, t3) = (t * t, t * t * t);
    [-0.5 * t3 + t2 - 0.5 * t, 1.5 * t3 - 2.5 * t2 + 1.0, -1.5 * t3 + 2.0 * t2 + 0.5 * t, 0.5 * t3 - 0.5 * t2]
}

/// The positions of all pixels of an image in another one of the same size.
#[derive(Debug)]
pub struct PlaceTable {
    /// `[row][bin]`: whole bins, whole rows, and the bits of the rests of both.
    pub places: Vec<[i32; 4]>,
    bins: usize,
    /// Number of rows above and below that a row depends on.
    pub halo: usize,
}

impl PlaceTable {
    /// Bytes for a pixel.
    pub const BYTES: u64 = 16;
    /// Number of rows above and below that a row depends on at least.
    pub const REACH: usize = REACH;

    /// Computes the positions `[bin, row]` of the pixels of an image of `[bins, rows]`.
    pub fn new([bins, rows]: [usize; 2], position: impl Fn([f64; 2]) -> [f64; 2] + Sync) -> PlaceTable {
        let mut places = vec![[0i32; 4]; bins * rows];
        let halos = places.par_chunks_mut(bins.max(1)).enumerate().map(|(row, line)| {
            let mut halo = REACH;
            for (bin, place) in line.iter_mut().enumerate() {
                let [x, z] = position([bin as f64, row as f64]);
                // so far outside, all pixels around are the outermost one
                let [x, z] = [(x, bins), (z, rows)].map(|(at, length)| at.clamp(-2.0, length as f64 + 1.0));
                let (ix, iz) = (floor(x), floor(z));
                let rest = [x - f64::from(ix), z - f64::from(iz)].map(|rest| (rest as f32).to_bits() as i32);
                *place = [ix, iz, rest[0], rest[1]];
                let row_at = |k: i32| (iz + k).clamp(0, rows as i32 - 1) as usize;
                halo = halo.max(row.saturating_sub(row_at(-1))).max(row_at(2).saturating_sub(row));
            }
            halo
        });
        let halo = halos.max().unwrap_or(REACH);
        PlaceTable { places, bins, halo }
    }

    /// Returns the position of a pixel.
    pub fn of(&self, bin: usize, row: usize) -> Neighbours {
        let [x, z, across, down] = self.places[row * self.bins + bin];
        let [across, down] = [across, down].map(|rest| f32::from_bits(rest as u32));
        Neighbours { shift: x - bin as i32, row: z, across, down }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one() {
        for t in [0.0, 0.1, 0.5, 0.99] {
            assert!((cubic(t).iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn pixels_of_a_table_stay_and_move() {
        let (bins, rows) = (9, 7);
        let image: Vec<f32> = (0..bins * rows).map(|i| (i * i % 31) as f32).collect();
        let all = 0..rows;
        let moved = |by: [f64; 2]| {
            let table = PlaceTable::new([bins, rows], |[x, z]| [x + by[0], z + by[1]]);
            let mut out = vec![0f32; bins * rows];
            let from = ImageRows { values: &image, size: [bins, rows], read: &all };
            from.resample(&all, &mut out, |bin, row| table.of(bin, row));
            (out, table.halo)
        };
        assert_eq!(moved([0.0; 2]), (image.clone(), REACH));
        let at = |bin: usize, row: usize| image[row.min(rows - 1) * bins + bin.min(bins - 1)];
        for (by, halo) in [([2, 1], 3), ([0, 3], 5), ([1000, 1000], 6)] {
            let expected: Vec<f32> = (0..bins * rows).map(|i| at(i % bins + by[0], i / bins + by[1])).collect();
            assert_eq!(moved(by.map(|by| by as f64)), (expected, halo), "{by:?}");
        }
    }
}
