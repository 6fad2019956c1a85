//! A plane of a level of an OME-Zarr, made of two planes of the level below: each pixel is the mean of two by two by two.

use crate::source::SampleType;
use crate::source::zarr::ZarrArray;
use half::f16;

pub(super) struct Coarser {
    /// Of the pixels.
    sample: SampleType,
    /// Pixels in a row of the level below, and of this plane.
    width_below: usize,
    width: usize,
    /// `[row][pixel]`.
    pub samples: Vec<u8>,
}

impl Coarser {
    pub fn new(below: &ZarrArray) -> Coarser {
        let [_, height, width_below] = below.shape;
        let (height, width) = (height.div_ceil(2), width_below.div_ceil(2));
        let samples = vec![0; height * width * below.sample.bytes()];
        Coarser { sample: below.sample, width_below, width, samples }
    }

    /// Adds rows of one or two planes from an even row and column on: `stride` values a row, of which those beyond the
    /// plane are left out. Rows come in pairs, except for the last of the plane.
    pub fn add(&mut self, [row, column]: [usize; 2], planes: &[Vec<f32>], stride: usize) {
        let used = stride.min(self.width_below - column);
        let size = self.sample.bytes();
        let rows = planes.first().map_or(0, |plane| plane.len() / stride);
        let lines = self.samples[row / 2 * self.width * size..].chunks_exact_mut(self.width * size);
        let mut sums = vec![0f64; used.div_ceil(2)];
        for (line, out) in (0..rows).step_by(2).zip(lines) {
            let lines = line..(line + 2).min(rows);
            sums.fill(0.0);
            for plane in planes {
                plane[lines.start * stride..lines.end * stride]
                    .chunks_exact(stride)
                    .for_each(|line| add_pairs(&line[..used], &mut sums));
            }
            let count = planes.len() * lines.len();
            let last = if used % 2 == 0 { 2 } else { 1 };
            let (sums_of_two, sum_of_last) = sums.split_at_mut(used.div_ceil(2) - 1);
            sums_of_two.iter_mut().for_each(|sum| *sum /= (2 * count) as f64);
            sum_of_last.iter_mut().for_each(|sum| *sum /= (last * count) as f64);
            encode(&sums, self.sample, &mut out[column / 2 * size..]);
        }
    }
}

/// Adds neighbours to their sum; the last value may have none.
fn add_pairs(values: &[f32], sums: &mut [f64]) {
    let pairs = values.chunks_exact(2);
    if let ([value], Some(sum)) = (pairs.remainder(), sums.last_mut()) {
        *sum += f64::from(*value);
    }
    for (sum, pair) in sums.iter_mut().zip(pairs) {
        *sum += f64::from(pair[0]) + f64::from(pair[1]);
    }
}

fn encode(means: &[f64], sample: SampleType, out: &mut [u8]) {
    match sample {
        SampleType::U8 => out.iter_mut().zip(means).for_each(|(out, mean)| *out = mean.round() as u8),
        SampleType::U16 => put(out, means, |mean| (mean.round() as u16).to_ne_bytes()),
        SampleType::F16 => put(out, means, |mean| f16::from_f64(mean).to_ne_bytes()),
        _ => put(out, means, |mean| (mean as f32).to_ne_bytes()),
    }
}

fn put<const N: usize>(out: &mut [u8], means: &[f64], sample: impl Fn(f64) -> [u8; N]) {
    out.chunks_exact_mut(N).zip(means).for_each(|(out, mean)| out.copy_from_slice(&sample(*mean)));
}
