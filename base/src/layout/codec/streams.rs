//! Streams and blocks of general compressors, both ways, and extraction of blocks from a stream.

use super::error::{DecodeError, Decoded};
use flate2::write::{GzEncoder, ZlibEncoder};
use libdeflater::{DecompressionError, Decompressor as Inflater};
use std::cell::RefCell;
use std::io::{self, Write};
use std::ops::Range;

/// Level of deflate at which slices, which are mostly noise in their last bits, are compressed nearly as well as at
/// slower ones.
pub const DEFLATE_LEVEL: u32 = 3;
/// Level of Zstandard, chosen like that of deflate.
pub const ZSTD_LEVEL: i32 = 1;

/// Compresses bytes as gzip, which Zarr stores instead of zlib.
pub fn gzip_encoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(DEFLATE_LEVEL));
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Compresses bytes as a zlib stream.
pub fn zlib_encoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zlib_encoder();
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Returns an encoder of a zlib stream.
pub(super) fn zlib_encoder() -> ZlibEncoder<Vec<u8>> {
    ZlibEncoder::new(Vec::new(), flate2::Compression::new(DEFLATE_LEVEL))
}

/// Compresses bytes with LZW as TIFF stores it.
pub fn lzw_encoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = weezl::encode::Encoder::with_tiff_size_switch(weezl::BitOrder::Msb, 8);
    encoder.encode(bytes).map_err(io::Error::other)
}

/// Compresses bytes with Zstandard. Each thread keeps its compressor, which takes more memory than the bytes it
/// compresses.
pub fn zstd_encoded(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        static KEPT: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
    }
    KEPT.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            none => none.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        };
        compressor.compress(bytes)
    })
}

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
