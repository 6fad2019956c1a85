//! Decoders of compressed chunks, which HDF5 and Zarr share. The length of what is decoded is known before: no decoder
//! takes memory for more, and whatever the stored bytes are, it ends with values or an error.

mod bitshuffle;
mod blosc;
mod blosc2;
mod lzf;
mod pipeline;
mod shuffle;

pub use bitshuffle::{BitPacking, Bitshuffle};
pub use pipeline::{ChunkFilter, DecodeBuffers, Pipeline};

use libdeflater::{DecompressionError, Decompressor as Inflater};
use std::ops::Range;
use thiserror::Error;

/// Why the stored bytes of a chunk cannot be decoded; the caller says which.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    #[error("is damaged: it ends too early; copy or write the file again")]
    Short,
    #[error("is damaged: its values have another length; copy or write the file again")]
    Length,
    #[error("is damaged: its bytes cannot be decompressed; copy or write the file again")]
    Invalid,
    #[error("is damaged: its checksum is wrong; copy or write the file again")]
    Checksum,
    #[error(
        "has a form of Blosc that is unknown here, such as Snappy, a dictionary or a filter of a plugin; write the file again with another compressor"
    )]
    Form,
}

type Decoded = Result<(), DecodeError>;

/// How a chunk is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    Gzip,
    /// Deflate with the header of zlib, as HDF5 calls gzip.
    Zlib,
    Zstd,
    /// One block of LZ4 after its decoded length, as numcodecs writes it.
    Lz4,
    /// Blocks of LZ4 with their lengths, as the filter 32004 of HDF5 writes them.
    Lz4Blocks,
    /// LZF, as h5py writes it.
    Lzf,
    /// A container of Blosc 1.
    Blosc,
    /// A frame of Blosc 2 with one chunk.
    Blosc2,
    Bitshuffle(Bitshuffle),
}

impl Compressor {
    /// Decodes `stored` to exactly the bytes of `out`; `spare` is memory for blocks. Blocks outside of the `wanted` bytes may be
    /// left out: then these bytes of `out` stay what they are.
    ///
    /// # Errors
    /// When the bytes are damaged, or decode to another length.
    pub fn decode(self, stored: &[u8], out: &mut [u8], wanted: &Range<usize>, spare: &mut Vec<u8>) -> Decoded {
        match self {
            Compressor::Gzip => inflated(Inflater::new().gzip_decompress(stored, out), out),
            Compressor::Zlib => zlib(stored, out),
            Compressor::Zstd => zstd(&mut zstd_decoder()?, stored, out),
            Compressor::Lz4 => {
                let (length, block) = stored.split_first_chunk().ok_or(DecodeError::Short)?;
                match u32::from_le_bytes(*length) as usize == out.len() {
                    true => lz4(block, out),
                    false => Err(DecodeError::Length),
                }
            }
            Compressor::Lz4Blocks => lz4_blocks(stored, out, wanted),
            Compressor::Lzf => lzf::decode(stored, out),
            Compressor::Blosc => blosc::decode(stored, out, wanted, spare),
            Compressor::Blosc2 => blosc2::decode(stored, out, wanted, spare),
            Compressor::Bitshuffle(form) => form.decode(stored, out, wanted, spare),
        }
    }
}

/// Whether deflate gave exactly the bytes of `out`, and the checksum at its end is right.
fn inflated(length: Result<usize, DecompressionError>, out: &[u8]) -> Decoded {
    match length {
        Ok(length) if length == out.len() => Ok(()),
        Ok(_) | Err(DecompressionError::InsufficientSpace) => Err(DecodeError::Length),
        Err(DecompressionError::BadData) => Err(DecodeError::Invalid),
    }
}

fn zlib(stored: &[u8], out: &mut [u8]) -> Decoded {
    inflated(Inflater::new().zlib_decompress(stored, out), out)
}

fn zstd_decoder() -> Result<zstd::bulk::Decompressor<'static>, DecodeError> {
    zstd::bulk::Decompressor::new().map_err(|_| DecodeError::Invalid)
}

fn zstd(decoder: &mut zstd::bulk::Decompressor, stored: &[u8], out: &mut [u8]) -> Decoded {
    let length = decoder.decompress_to_buffer(stored, out).map_err(|_| DecodeError::Invalid)?;
    if length == out.len() { Ok(()) } else { Err(DecodeError::Length) }
}

/// A block of LZ4.
fn lz4(stored: &[u8], out: &mut [u8]) -> Decoded {
    let length = lz4_flex::block::decompress_into(stored, out).map_err(|_| DecodeError::Invalid)?;
    if length == out.len() { Ok(()) } else { Err(DecodeError::Length) }
}

/// The decoded length, that of a block, and blocks, each after its length; one that did not become smaller is stored as it
/// is. Numbers are big-endian.
fn lz4_blocks(stored: &[u8], out: &mut [u8], wanted: &Range<usize>) -> Decoded {
    let mut stored = stored;
    let length = u64::from_be_bytes(take(&mut stored)?);
    let block = u32::from_be_bytes(take(&mut stored)?) as usize;
    if length != out.len() as u64 || block == 0 {
        return Err(DecodeError::Length);
    }
    for (number, out) in out.chunks_mut(block).enumerate() {
        let part = block_of(&mut stored)?;
        match part.len() == out.len() {
            _ if !is_wanted(wanted, number * block, out) => {}
            true => out.copy_from_slice(part),
            false => lz4(part, out)?,
        }
    }
    Ok(())
}

/// Whether a block that begins at a byte of the values has some of the wanted ones.
fn is_wanted(wanted: &Range<usize>, start: usize, block: &[u8]) -> bool {
    start < wanted.end && wanted.start < start + block.len()
}

/// Takes bytes off the front.
fn take<const N: usize>(stored: &mut &[u8]) -> Result<[u8; N], DecodeError> {
    let (bytes, rest) = stored.split_first_chunk().ok_or(DecodeError::Short)?;
    *stored = rest;
    Ok(*bytes)
}

/// Takes a block after its length, which is big-endian.
fn block_of<'a>(stored: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = u32::from_be_bytes(take(stored)?) as usize;
    let (block, rest) = stored.split_at_checked(length).ok_or(DecodeError::Short)?;
    *stored = rest;
    Ok(block)
}

#[cfg(test)]
mod tests;
