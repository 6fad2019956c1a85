//! Images as data in a page: compressed 16-bit samples with a scale, small enough for the page's limit.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use std::io::Write;

/// Largest sample of a finite value; the next one stands for values that are not finite.
const TOP: u16 = u16::MAX - 1;

/// Number of bytes of a sample before compression, which may not gain anything.
const SAMPLE: usize = 2;

/// Image in a page. Sample `s` stands for `low + s * step`, and 65535 for a value that is not finite.
///
/// Samples are stored as differences from the sample to the left, all low bytes before all high bytes, compressed by
/// zlib, in Base64.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PackedImage {
    pub width: usize,
    pub height: usize,
    pub low: f64,
    pub step: f64,
    pub samples: String,
}

impl PackedImage {
    /// Packs `height x width` values; every finite value is kept to within half a step, which is 1/131068 of their
    /// range.
    pub fn new(values: &[f32], width: usize) -> PackedImage {
        let finite = || values.iter().copied().filter(|value| value.is_finite()).map(f64::from);
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        let low = if low.is_finite() { low } else { 0.0 };
        let step = if high > low { (high - low) / f64::from(TOP) } else { 1.0 };
        let sample = |value: f32| match value.is_finite() {
            true => ((f64::from(value) - low) / step).round() as u16,
            false => u16::MAX,
        };
        let samples = packed(values.chunks(width.max(1)).map(|row| row.iter().map(|&value| sample(value))));
        PackedImage { width, height: values.len() / width.max(1), low, step, samples }
    }
}

/// Encodes rows of samples as text.
fn packed(rows: impl Iterator<Item = impl Iterator<Item = u16>>) -> String {
    let differences: Vec<u16> = rows
        .flat_map(|row| {
            row.scan(0u16, |left, sample| {
                let difference = sample.wrapping_sub(*left);
                *left = sample;
                Some(difference)
            })
            .collect::<Vec<_>>()
        })
        .collect();
    let bytes = |of: fn(u16) -> u8| differences.iter().map(move |&difference| of(difference));
    let planes: Vec<u8> = bytes(|d| d as u8).chain(bytes(|d| (d >> 8) as u8)).collect();
    // writing to memory cannot fail
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let compressed = encoder.write_all(&planes).and_then(|()| encoder.finish()).unwrap_or_default();
    BASE64_STANDARD.encode(compressed)
}

/// Reduction of images of one size that makes them fit into a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reduction {
    /// Number of columns of the original that are averaged into one pixel.
    pub columns: usize,
    /// Number of rows of the original that are averaged into one pixel.
    pub rows: usize,
}

impl Reduction {
    /// Returns the smallest reduction with which no side of an image exceeds `most`.
    pub fn to_sides(width: usize, height: usize, most: [usize; 2]) -> Reduction {
        Reduction { columns: width.div_ceil(most[0]).max(1), rows: height.div_ceil(most[1]).max(1) }
    }

    /// Returns the smallest reduction, equal along both sides, with which images take at most `bytes` in a page, and
    /// the number of images that fit then. All `count` images should fit, but `enough` of them suffice.
    pub fn to_bytes(width: usize, height: usize, count: usize, enough: usize, bytes: usize) -> (Reduction, usize) {
        let fit = |by: usize| bytes / SAMPLE / (width.div_ceil(by) * height.div_ceil(by)).max(1);
        let wanted = count.min(enough).max(1);
        let by = (1..=width.max(height)).find(|&by| fit(by) >= wanted).unwrap_or(width.max(height));
        (Reduction { columns: by, rows: by }, fit(by).clamp(1, count.max(1)))
    }

    /// Returns the means of the finite values of each block, NaN for blocks without any, and the width of the reduced
    /// image.
    pub fn of(self, values: &[f32], width: usize) -> (Vec<f32>, usize) {
        let Reduction { columns, rows } = self;
        if (columns, rows) == (1, 1) {
            return (values.to_vec(), width);
        }
        let reduced = width.div_ceil(columns);
        let mut means = Vec::with_capacity(reduced * values.len().div_ceil(width * rows));
        for band in values.chunks(width * rows) {
            for first in (0..width).step_by(columns) {
                let (mut sum, mut count) = (0.0, 0u32);
                for row in band.chunks(width) {
                    let block = &row[first..(first + columns).min(width)];
                    for value in block.iter().filter(|value| value.is_finite()) {
                        sum += f64::from(*value);
                        count += 1;
                    }
                }
                means.push((sum / f64::from(count)) as f32);
            }
        }
        (means, reduced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use std::io::Read;

    /// Unpacks an image as the page does.
    fn unpacked(image: &PackedImage) -> Vec<f32> {
        let compressed = BASE64_STANDARD.decode(&image.samples).unwrap();
        let mut planes = Vec::new();
        ZlibDecoder::new(&compressed[..]).read_to_end(&mut planes).unwrap();
        let (low, high) = planes.split_at(planes.len() / 2);
        let differences: Vec<u16> = low.iter().zip(high).map(|(l, h)| u16::from(*l) | u16::from(*h) << 8).collect();
        let value = |sample: u16| match sample {
            u16::MAX => f32::NAN,
            sample => (image.low + f64::from(sample) * image.step) as f32,
        };
        let rows = differences.chunks(image.width).flat_map(|row| {
            let sums = row.iter().scan(0u16, |left, difference| {
                *left = left.wrapping_add(*difference);
                Some(*left)
            });
            sums.map(value).collect::<Vec<_>>()
        });
        rows.collect()
    }

    #[test]
    fn values_come_back() {
        let values: Vec<f32> = (0..35).map(|i| ((i * i) as f32 * 0.37).sin() * 3.0 - 1.0).collect();
        let image = PackedImage::new(&values, 7);
        assert_eq!((image.width, image.height), (7, 5));
        for (value, back) in values.iter().zip(unpacked(&image)) {
            assert!(f64::from((value - back).abs()) <= 0.51 * image.step, "{value} {back}");
        }
        let odd = [f32::NAN, 2.0, f32::INFINITY, -3.0];
        let back = unpacked(&PackedImage::new(&odd, 2));
        assert!(back[0].is_nan() && back[1] == 2.0 && back[2].is_nan() && back[3] == -3.0, "{back:?}");
        assert_eq!(unpacked(&PackedImage::new(&[5.0; 4], 4)), [5.0; 4]);
        assert!(unpacked(&PackedImage::new(&[f32::NAN; 3], 3)).iter().all(|value| value.is_nan()));
    }

    #[test]
    fn blocks_are_averaged() {
        let values = [1.0, 2.0, 3.0, 4.0, f32::NAN, 6.0, f32::NAN, f32::NAN, 9.0];
        let reduced = |columns, rows| Reduction { columns, rows }.of(&values, 3);
        assert_eq!(reduced(2, 2).0[..2], [(1.0 + 2.0 + 4.0) / 3.0, 4.5]);
        assert!(reduced(2, 2).0[2].is_nan() && reduced(2, 2).0[3] == 9.0 && reduced(2, 2).1 == 2);
        assert_eq!(reduced(3, 1).0, [2.0, 5.0, 9.0]);
        assert_eq!(reduced(1, 1).0[..4], values[..4]);
    }

    #[test]
    fn reductions_fit() {
        assert_eq!(Reduction::to_sides(2048, 300, [512, 512]), Reduction { columns: 4, rows: 1 });
        assert_eq!(Reduction::to_sides(2049, 5, [512, 2]), Reduction { columns: 5, rows: 3 });
        let all = |width, height, count| Reduction::to_bytes(width, height, count, 10, 5_400_000);
        assert_eq!(all(64, 64, 20), (Reduction { columns: 1, rows: 1 }, 20));
        assert_eq!(all(2048, 2048, 2048), (Reduction { columns: 4, rows: 4 }, 10));
        assert_eq!(all(1024, 1024, 1), (Reduction { columns: 1, rows: 1 }, 1));
        let (by, count) = all(40_000, 3, 5000);
        assert!(by.columns == 1 && count * 40_000 * 3 * SAMPLE <= 5_400_000);
    }

    #[test]
    fn noise_is_not_larger_than_planned() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f32
        };
        let noise: Vec<f32> = (0..256 * 256).map(|_| random()).collect();
        let bytes = PackedImage::new(&noise, 256).samples.len();
        assert!(bytes as f64 <= 1.001 * 4.0 / 3.0 * (SAMPLE * 256 * 256) as f64, "{bytes}");
    }
}
