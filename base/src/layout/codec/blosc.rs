//! Containers of Blosc 1: blocks of samples whose bytes or bits are sorted, compressed by one of several codecs.

use super::error::{DecodeError, Decoded};
use super::shuffle::{bits_back, bytes_back};
use super::streams::{is_wanted, lz4, zlib, zstd, zstd_decoder};
use std::ops::Range;

/// Bytes of the header.
const HEADER: usize = 16;
/// Largest version of the format; later ones are Blosc 2.
const VERSION: u8 = 2;
/// Largest sample size in bytes for which blocks are divided into one part per byte of a sample.
const MOST_PARTS: usize = 16;
/// Smallest part in bytes into which blocks are divided.
const LEAST_PART: usize = 128;

// bits of the flags
const SORTED_BYTES: u8 = 1;
const AS_IS: u8 = 2;
const SORTED_BITS: u8 = 4;
const UNDIVIDED: u8 = 16;

/// The codec of a container.
pub(super) enum BloscCodec {
    BloscLz,
    Lz4,
    Zlib,
    Zstd(zstd::bulk::Decompressor<'static>),
}

impl BloscCodec {
    /// Returns the codec with this number in a header.
    pub(super) fn of(number: u8) -> Result<BloscCodec, DecodeError> {
        match number {
            0 => Ok(BloscCodec::BloscLz),
            1 => Ok(BloscCodec::Lz4),
            3 => Ok(BloscCodec::Zlib),
            4 => zstd_decoder().map(BloscCodec::Zstd),
            _ => Err(DecodeError::Form),
        }
    }

    /// Decodes a part of a block. A part that did not become smaller is stored unchanged.
    pub(super) fn decode(&mut self, stored: &[u8], out: &mut [u8]) -> Decoded {
        match self {
            _ if stored.len() == out.len() => {
                out.copy_from_slice(stored);
                Ok(())
            }
            BloscCodec::BloscLz => blosclz(stored, out),
            BloscCodec::Lz4 => lz4(stored, out),
            BloscCodec::Zlib => zlib(stored, out),
            BloscCodec::Zstd(decoder) => zstd(decoder, stored, out),
        }
    }
}

/// Reads a little-endian number of four bytes.
pub(super) fn word(stored: &[u8], at: usize) -> Result<usize, DecodeError> {
    let bytes = stored.get(at..).and_then(<[u8]>::first_chunk).ok_or(DecodeError::Short)?;
    Ok(u32::from_le_bytes(*bytes) as usize)
}

/// Decodes a container to exactly the bytes of `out`; blocks without `wanted` bytes are skipped.
pub(super) fn decode(stored: &[u8], out: &mut [u8], wanted: &Range<usize>, spare: &mut Vec<u8>) -> Decoded {
    let &[version, _, flags, size, ..] = stored.first_chunk::<HEADER>().ok_or(DecodeError::Short)?;
    if word(stored, 4)? != out.len() {
        return Err(DecodeError::Length);
    }
    if version == 0 || version > VERSION {
        return Err(DecodeError::Form);
    }
    if flags & AS_IS != 0 {
        out.copy_from_slice(stored.get(HEADER..HEADER + out.len()).ok_or(DecodeError::Short)?);
        return Ok(());
    }
    let mut codec = BloscCodec::of(flags >> 5)?;
    let (size, block) = (usize::from(size), word(stored, 8)?);
    if size == 0 || block == 0 || block > out.len() {
        return Err(DecodeError::Invalid);
    }
    let mut sorted = vec![0; block];
    for (number, out) in out.chunks_mut(block).enumerate() {
        if !is_wanted(wanted, number * block, out) {
            continue;
        }
        let whole = out.len() == block;
        let mut at = word(stored, HEADER + 4 * number)?;
        let divided = flags & UNDIVIDED == 0 && size <= MOST_PARTS && out.len() / size >= LEAST_PART && whole;
        let part = if divided { out.len() / size } else { out.len() };
        let sorts = flags & SORTED_BYTES != 0 && size > 1 || flags & SORTED_BITS != 0 && out.len() >= size;
        let target = if sorts { &mut sorted[..out.len()] } else { &mut *out };
        if target.len() % part != 0 {
            return Err(DecodeError::Invalid);
        }
        for target in target.chunks_mut(part) {
            let length = word(stored, at)?;
            let bytes = stored.get(at + 4..).and_then(|rest| rest.get(..length)).ok_or(DecodeError::Short)?;
            at += 4 + length;
            codec.decode(bytes, target)?;
        }
        if sorts {
            put_back(flags, size, &sorted[..out.len()], out, spare);
        }
    }
    Ok(())
}

/// Undoes the sorting of bytes or bits.
fn put_back(flags: u8, size: usize, sorted: &[u8], out: &mut [u8], spare: &mut Vec<u8>) {
    if flags & SORTED_BYTES != 0 && size > 1 {
        return bytes_back(size, sorted, out);
    }
    let count = out.len() / size;
    // bits are only sorted where they form whole bytes
    let whole = if count % 8 == 0 { count * size } else { 0 };
    bits_back(size, &sorted[..whole], &mut out[..whole], spare);
    out[whole..].copy_from_slice(&sorted[whole..]);
}

/// Decodes Blosc's own codec: literal runs of bytes, and copies of earlier ones.
///
/// A control byte below 32 is the length of a run minus one. The upper 3 bits of others are the length of a copy, the
/// lower 5 bits the upper ones of its distance.
fn blosclz(stored: &[u8], out: &mut [u8]) -> Decoded {
    /// Distance from which on distances are stored in two bytes of their own.
    const FAR: usize = 8191;
    let mut bytes = stored.iter().copied();
    let mut next = || bytes.next().map(usize::from);
    let mut at = 0;
    // the first sequence is always a run
    let mut control = next().map(|byte| byte & 31);
    while let Some(code) = control {
        if code < 32 {
            let run = out.get_mut(at..=at + code).ok_or(DecodeError::Length)?;
            for byte in run {
                *byte = next().ok_or(DecodeError::Short)? as u8;
            }
            at += code + 1;
        } else {
            let mut length = (code >> 5) + 2;
            if code >> 5 == 7 {
                loop {
                    let more = next().ok_or(DecodeError::Short)?;
                    length += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let (high, low) = (code & 31, next().ok_or(DecodeError::Short)?);
            let distance = match (high, low) {
                (31, 255) => FAR + 256 * next().ok_or(DecodeError::Short)? + next().ok_or(DecodeError::Short)?,
                _ => 256 * high + low,
            } + 1;
            if distance > at || length > out.len() - at {
                return Err(DecodeError::Invalid);
            }
            for i in at..at + length {
                out[i] = out[i - distance];
            }
            at += length;
        }
        control = next();
    }
    if at == out.len() { Ok(()) } else { Err(DecodeError::Length) }
}
