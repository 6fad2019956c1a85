//! Lossless compression of samples, and the predictors of TIFF, which improve it.

use super::encoding::Dtype;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::{self, Write};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use weezl::BitOrder;
use zstd::bulk::Compressor;

/// Compression of samples in files.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Compression {
    /// as they are
    #[default]
    None,
    /// zlib, which most readers know; some do not know its predictor (docs/formats.md)
    Deflate,
    /// Lempel-Ziv-Welch, for old readers of TIFF
    Lzw,
    /// Zstandard: the fastest
    Zstd,
}

/// Levels at which slices, which are mostly noise in their last bits, are compressed nearly as well as at slower ones.
pub(super) const DEFLATE_LEVEL: u32 = 3;
pub(super) const ZSTD_LEVEL: i32 = 1;

impl Compression {
    /// Returns the value of the tag `Compression`.
    pub(super) fn tag(self) -> u16 {
        match self {
            Compression::None => 1,
            Compression::Deflate => 8,
            Compression::Lzw => 5,
            Compression::Zstd => 50000,
        }
    }

    /// Compresses bytes as TIFF stores them.
    pub(super) fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Compression::None => Ok(bytes.to_vec()),
            Compression::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(DEFLATE_LEVEL));
                encoder.write_all(bytes)?;
                encoder.finish()
            }
            Compression::Lzw => {
                let mut encoder = weezl::encode::Encoder::with_tiff_size_switch(BitOrder::Msb, 8);
                encoder.encode(bytes).map_err(io::Error::other)
            }
            Compression::Zstd => zstd(bytes),
        }
    }

    /// Compresses samples of `size` bytes as HDF5 stores a chunk with the filters shuffle and deflate: first the first
    /// byte of every sample, then the second, and so on.
    #[cfg(feature = "hdf5")]
    pub(super) fn shuffled(samples: &[u8], size: usize) -> io::Result<Vec<u8>> {
        /// Number of samples whose bytes are sorted at once.
        const PIECE: usize = 1 << 16;
        let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(DEFLATE_LEVEL));
        let mut sorted = Vec::with_capacity(PIECE);
        for place in 0..size {
            for piece in samples.chunks(PIECE * size) {
                sorted.clear();
                sorted.extend(piece.iter().skip(place).step_by(size));
                encoder.write_all(&sorted)?;
            }
        }
        encoder.finish()
    }

    /// Compresses bytes as gzip, which Zarr stores instead of zlib.
    pub(super) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(DEFLATE_LEVEL));
        encoder.write_all(bytes)?;
        encoder.finish()
    }
}

/// Compresses bytes with Zstandard. Each thread keeps its compressor, which takes more memory than the bytes it
/// compresses.
fn zstd(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        static KEPT: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    }
    KEPT.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(ZSTD_LEVEL)?),
        };
        compressor.compress(bytes)
    })
}

/// Returns the value of the tag `Predictor` for compressed samples of this type.
pub(super) fn predictor(dtype: Dtype) -> u16 {
    if dtype.is_integer() { 2 } else { 3 }
}

/// Replaces samples in rows of `width` by differences between neighbours: those of integers, or those of the bytes of
/// floats after sorting them by significance.
pub(super) fn predict(samples: &[u8], dtype: Dtype, width: usize) -> Vec<u8> {
    let size = dtype.bytes();
    let mut out = samples.to_vec();
    for (out, row) in out.chunks_mut(width * size).zip(samples.chunks(width * size)) {
        match dtype {
            Dtype::U8 => differences(out),
            Dtype::U16 => {
                for (out, pair) in out[2..].chunks_exact_mut(2).zip(row.windows(4).step_by(2)) {
                    let [a, b] = [[pair[0], pair[1]], [pair[2], pair[3]]].map(u16::from_ne_bytes);
                    out.copy_from_slice(&b.wrapping_sub(a).to_ne_bytes());
                }
            }
            Dtype::F32 | Dtype::F16 => {
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

/// Replaces every byte but the first by its difference from the byte before.
fn differences(bytes: &mut [u8]) {
    for place in (1..bytes.len()).rev() {
        bytes[place] = bytes[place].wrapping_sub(bytes[place - 1]);
    }
}
