//! Decoders of compressed chunks, which HDF5 and Zarr share. The length of what is decoded is known before: no decoder
//! takes memory for more, and whatever the stored bytes are, it ends with values or an error.

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
