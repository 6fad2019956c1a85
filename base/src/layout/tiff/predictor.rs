//! Predictors, which improve the compression of samples.

use crate::layout::SampleType;
use strum::FromRepr;

/// Value of the tag `Predictor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum Predictor {
    None = 1,
    /// Differences between neighbours in a row.
    Horizontal = 2,
    /// Differences between neighbouring bytes after sorting the bytes of floats by significance.
    FloatingPoint = 3,
}

impl Predictor {
    /// Returns the predictor for samples of a type.
    pub fn of(sample: SampleType) -> Predictor {
        if sample.is_float() { Predictor::FloatingPoint } else { Predictor::Horizontal }
    }

    /// Replaces samples of `size` bytes in the byte order of this machine, in rows of `width`, by what is compressed
    /// instead of them.
    pub fn applied(self, samples: &[u8], size: usize, width: usize) -> Vec<u8> {
        let mut out = samples.to_vec();
        for (out, row) in out.chunks_mut(width * size).zip(samples.chunks(width * size)) {
            match self {
                Predictor::None => {}
                Predictor::Horizontal => match size {
                    1 => differences(out),
                    2 => {
                        words(out, row, |a, b| u16::from_ne_bytes(b).wrapping_sub(u16::from_ne_bytes(a)).to_ne_bytes())
                    }
                    4 => {
                        words(out, row, |a, b| u32::from_ne_bytes(b).wrapping_sub(u32::from_ne_bytes(a)).to_ne_bytes())
                    }
                    _ => {
                        words(out, row, |a, b| u64::from_ne_bytes(b).wrapping_sub(u64::from_ne_bytes(a)).to_ne_bytes())
                    }
                },
                Predictor::FloatingPoint => {
                    for (place, sample) in row.chunks_exact(size).enumerate() {
                        for (byte, &value) in sample.iter().enumerate() {
                            let plane = if cfg!(target_endian = "big") { byte } else { size - 1 - byte };
                            out[plane * width + place] = value;
                        }
                    }
                    differences(out);
                }
            }
        }
        out
    }
}

/// Replaces every sample of `N` bytes but the first by its difference from the sample before.
fn words<const N: usize>(out: &mut [u8], row: &[u8], difference: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    for (out, pair) in out[N..].chunks_exact_mut(N).zip(row.windows(2 * N).step_by(N)) {
        let (mut before, mut after) = ([0; N], [0; N]);
        before.copy_from_slice(&pair[..N]);
        after.copy_from_slice(&pair[N..]);
        out.copy_from_slice(&difference(before, after));
    }
}

/// Replaces every byte but the first by its difference from the byte before.
fn differences(bytes: &mut [u8]) {
    for place in (1..bytes.len()).rev() {
        bytes[place] = bytes[place].wrapping_sub(bytes[place - 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Undoes the predictor of one row by its definition.
    fn undone(predictor: Predictor, row: &[u8], size: usize) -> Vec<u8> {
        let width = row.len() / size;
        match predictor {
            Predictor::None => row.to_vec(),
            Predictor::Horizontal => {
                let number = |at: usize| {
                    let bytes: Vec<u8> = row[at * size..(at + 1) * size].to_vec();
                    let bytes = if cfg!(target_endian = "big") { bytes.into_iter().rev().collect() } else { bytes };
                    bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte))
                };
                let mut sum = 0u64;
                let sums = (0..width).map(|at| {
                    sum = sum.wrapping_add(number(at));
                    sum
                });
                let bytes = sums.map(|sum| sum.to_le_bytes()[..size].to_vec());
                bytes
                    .flat_map(
                        |bytes| if cfg!(target_endian = "big") { bytes.into_iter().rev().collect() } else { bytes },
                    )
                    .collect()
            }
            Predictor::FloatingPoint => {
                let mut sum = 0u8;
                let planes: Vec<u8> = row
                    .iter()
                    .map(|&byte| {
                        sum = sum.wrapping_add(byte);
                        sum
                    })
                    .collect();
                let big = |at: usize, byte: usize| planes[byte * width + at];
                let order = |byte: usize| if cfg!(target_endian = "big") { byte } else { size - 1 - byte };
                (0..width)
                    .flat_map(|at| (0..size).map(move |byte| (at, byte)))
                    .map(|(at, byte)| big(at, order(byte)))
                    .collect()
            }
        }
    }

    #[test]
    fn predicted_rows_are_undone_by_the_definition() {
        for (predictor, size) in [
            (Predictor::None, 2),
            (Predictor::Horizontal, 1),
            (Predictor::Horizontal, 2),
            (Predictor::Horizontal, 4),
            (Predictor::Horizontal, 8),
            (Predictor::FloatingPoint, 2),
            (Predictor::FloatingPoint, 4),
        ] {
            for width in [1, 2, 7] {
                let row = width * size;
                let samples: Vec<u8> = (0..3 * row).map(|i| (i * i * 37 + i / 3 + 11) as u8).collect();
                let applied = predictor.applied(&samples, size, width);
                let back: Vec<u8> = applied.chunks(row).flat_map(|row| undone(predictor, row, size)).collect();
                assert_eq!(back, samples, "{predictor:?} {size} {width}");
            }
        }
    }
}
