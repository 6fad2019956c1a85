//! Decoders of compressed chunks, which HDF5 and Zarr share.
//!
//! The decoded length is known in advance: no decoder allocates memory for more, and each ends with values or an error,
//! whatever the stored bytes are.

mod bitshuffle;
mod blocks;
mod blosc;
mod blosc2;
mod compressor;
mod error;
mod lzf;
mod pipeline;
mod shuffle;

pub use bitshuffle::{BitPacking, Bitshuffle};
pub use compressor::Compressor;
pub use error::DecodeError;
pub use pipeline::{ChunkFilter, DecodeBuffers, Pipeline};

#[cfg(test)]
mod tests;
