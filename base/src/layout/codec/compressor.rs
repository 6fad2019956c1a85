//! Compressors of chunks, and their decoders.

use super::error::{DecodeError, Decoded};
use super::streams::{block_of, gzip, is_wanted, lz4, take, zlib, zstd, zstd_decoder};
use super::{Bitshuffle, blosc, blosc2, lzf};
use std::ops::Range;

/// Compressor of a chunk.
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
    /// Decodes `stored` to exactly the bytes of `out`; `spare` is memory for blocks. Blocks without `wanted` bytes may
    /// be skipped, in which case their bytes of `out` stay as they are.
    ///
    /// # Errors
    /// When the bytes are damaged, or decode to another length.
    pub fn decode(self, stored: &[u8], out: &mut [u8], wanted: &Range<usize>, spare: &mut Vec<u8>) -> Decoded {
        match self {
            Compressor::Gzip => gzip(stored, out),
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

/// Decodes big-endian numbers, the decoded length and the length of a block, followed by blocks, each after its length.
/// A block that did not become smaller is stored unchanged.
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
