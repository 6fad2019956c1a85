//! Streams and blocks of the general compressors, and taking blocks out of the bytes that contain them.

use super::error::{DecodeError, Decoded};
use libdeflater::{DecompressionError, Decompressor as Inflater};
use std::ops::Range;

/// Whether deflate gave exactly the bytes of `out`, and the checksum at its end is right.
fn inflated(length: Result<usize, DecompressionError>, out: &[u8]) -> Decoded {
    match length {
        Ok(length) if length == out.len() => Ok(()),
        Ok(_) | Err(DecompressionError::InsufficientSpace) => Err(DecodeError::Length),
        Err(DecompressionError::BadData) => Err(DecodeError::Invalid),
    }
}

/// A stream of gzip.
pub(super) fn gzip(stored: &[u8], out: &mut [u8]) -> Decoded {
    inflated(Inflater::new().gzip_decompress(stored, out), out)
}

/// A stream of zlib.
pub(super) fn zlib(stored: &[u8], out: &mut [u8]) -> Decoded {
    inflated(Inflater::new().zlib_decompress(stored, out), out)
}

pub(super) fn zstd_decoder() -> Result<zstd::bulk::Decompressor<'static>, DecodeError> {
    zstd::bulk::Decompressor::new().map_err(|_| DecodeError::Invalid)
}

/// A frame of Zstandard.
pub(super) fn zstd(decoder: &mut zstd::bulk::Decompressor, stored: &[u8], out: &mut [u8]) -> Decoded {
    let length = decoder.decompress_to_buffer(stored, out).map_err(|_| DecodeError::Invalid)?;
    if length == out.len() { Ok(()) } else { Err(DecodeError::Length) }
}

/// A block of LZ4.
pub(super) fn lz4(stored: &[u8], out: &mut [u8]) -> Decoded {
    let length = lz4_flex::block::decompress_into(stored, out).map_err(|_| DecodeError::Invalid)?;
    if length == out.len() { Ok(()) } else { Err(DecodeError::Length) }
}

/// Whether a block that begins at a byte of the values has some of the wanted ones.
pub(super) fn is_wanted(wanted: &Range<usize>, start: usize, block: &[u8]) -> bool {
    start < wanted.end && wanted.start < start + block.len()
}

/// Takes bytes off the front.
pub(super) fn take<const N: usize>(stored: &mut &[u8]) -> Result<[u8; N], DecodeError> {
    let (bytes, rest) = stored.split_first_chunk().ok_or(DecodeError::Short)?;
    *stored = rest;
    Ok(*bytes)
}

/// Takes a block after its length, which is big-endian.
pub(super) fn block_of<'a>(stored: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = u32::from_be_bytes(take(stored)?) as usize;
    let (block, rest) = stored.split_at_checked(length).ok_or(DecodeError::Short)?;
    *stored = rest;
    Ok(block)
}
