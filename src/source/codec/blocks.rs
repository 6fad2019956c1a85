//! Decoding of streams and blocks of general compressors, and extraction of blocks from a stream.

use super::error::{DecodeError, Decoded};
use libdeflater::{DecompressionError, Decompressor as Inflater};
use std::ops::Range;

/// Checks that deflate produced exactly the bytes of `out`, and that the checksum at the end is right.
fn inflated(length: Result<usize, DecompressionError>, out: &[u8]) -> Decoded {
    match length {
        Ok(length) if length == out.len() => Ok(()),
        Ok(_) | Err(DecompressionError::InsufficientSpace) => Err(DecodeError::Length),
        Err(DecompressionError::BadData) => Err(DecodeError::Invalid),
    }
}

/// Decodes a gzip stream.
pub(super) fn gzip(stored: &[u8], out: &mut [u8]) -> Decoded {
    inflated(Inflater::new().gzip_decompress(stored, out), out)
}

/// Decodes a zlib stream.
pub(super) fn zlib(stored: &[u8], out: &mut [u8]) -> Decoded {
    inflated(Inflater::new().zlib_decompress(stored, out), out)
}

pub(super) fn zstd_decoder() -> Result<zstd::bulk::Decompressor<'static>, DecodeError> {
    zstd::bulk::Decompressor::new().map_err(|_| DecodeError::Invalid)
}

/// Decodes a Zstandard frame.
pub(super) fn zstd(decoder: &mut zstd::bulk::Decompressor, stored: &[u8], out: &mut [u8]) -> Decoded {
    let length = decoder.decompress_to_buffer(stored, out).map_err(|_| DecodeError::Invalid)?;
    if length == out.len() { Ok(()) } else { Err(DecodeError::Length) }
}

/// Decodes an LZ4 block.
pub(super) fn lz4(stored: &[u8], out: &mut [u8]) -> Decoded {
    let length = lz4_flex::block::decompress_into(stored, out).map_err(|_| DecodeError::Invalid)?;
    if length == out.len() { Ok(()) } else { Err(DecodeError::Length) }
}

/// Reports whether a block that begins at byte `start` of the values contains wanted bytes.
pub(super) fn is_wanted(wanted: &Range<usize>, start: usize, block: &[u8]) -> bool {
    start < wanted.end && wanted.start < start + block.len()
}

/// Takes `N` bytes off the front.
pub(super) fn take<const N: usize>(stored: &mut &[u8]) -> Result<[u8; N], DecodeError> {
    let (bytes, rest) = stored.split_first_chunk().ok_or(DecodeError::Short)?;
    *stored = rest;
    Ok(*bytes)
}

/// Takes a block off the front that follows its length as a big-endian number.
pub(super) fn block_of<'a>(stored: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = u32::from_be_bytes(take(stored)?) as usize;
    let (block, rest) = stored.split_at_checked(length).ok_or(DecodeError::Short)?;
    *stored = rest;
    Ok(block)
}
