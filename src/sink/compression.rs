//! Lossless compression of samples.

use crate::layout::codec::{lzw_encoded, zlib_encoded, zstd_encoded};
use crate::layout::tiff::TiffCompression;
use serde::{Deserialize, Serialize};
use std::io;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

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

impl Compression {
    /// Returns the value of the tag `Compression`.
    pub(super) fn tiff(self) -> TiffCompression {
        match self {
            Compression::None => TiffCompression::None,
            Compression::Deflate => TiffCompression::Deflate,
            Compression::Lzw => TiffCompression::Lzw,
            Compression::Zstd => TiffCompression::Zstd,
        }
    }

    /// Compresses bytes as TIFF stores them.
    pub(super) fn compress(self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Compression::None => Ok(bytes.to_vec()),
            Compression::Deflate => zlib_encoded(bytes),
            Compression::Lzw => lzw_encoded(bytes),
            Compression::Zstd => zstd_encoded(bytes),
        }
    }
}
