//! Codecs of strips of TIFF and of chunks of HDF5 and Zarr: encoders of those that are written, and decoders of all
//! that are read from chunks.
//!
//! The decoded length is known in advance: no decoder allocates memory for more, and each ends with values or an error,
//! whatever the stored bytes are.

mod bitshuffle;
mod blosc;
mod blosc2;
mod compressor;
mod error;
mod lzf;
mod pipeline;
mod shuffle;
mod streams;

pub use bitshuffle::{BitPacking, Bitshuffle};
pub use compressor::Compressor;
pub use error::DecodeError;
pub use pipeline::{ChunkFilter, DecodeBuffers, Pipeline, shuffled};
pub use streams::{DEFLATE_LEVEL, ZSTD_LEVEL, gzip_encoded, lzw_encoded, zlib_encoded, zstd_encoded};

#[cfg(test)]
mod tests;
