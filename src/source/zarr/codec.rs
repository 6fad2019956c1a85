//! Compression of the bytes of a chunk.

use super::FileResult;
use crate::source::codec::{Compressor, DecodeError};
use serde_json::Value;

/// Prefix of codecs that are not part of version 3; numcodecs writes them as in version 2.
const NUMCODECS: &str = "numcodecs.";

/// Returns the compressor with this name.
fn named(name: &str) -> FileResult<Compressor> {
    match name.strip_prefix(NUMCODECS).unwrap_or(name) {
        "gzip" => Ok(Compressor::Gzip),
        "zlib" => Ok(Compressor::Zlib),
        "zstd" => Ok(Compressor::Zstd),
        "lz4" => Ok(Compressor::Lz4),
        "blosc" => Ok(Compressor::Blosc),
        _ => Err(format!(
            "has chunks in the codec {name}, expected none, gzip, zlib, zstd, lz4 or blosc; write the array again with one \
             of these"
        )),
    }
}

/// Returns the name of a codec of version 3; a codec without configuration may be given by its name alone.
pub(super) fn name_of(codec: &Value) -> &str {
    codec.as_str().or(codec["name"].as_str()).unwrap_or("of no name")
}

/// Encoding of the bytes of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkCodec {
    pub compressor: Option<Compressor>,
    /// True if a CRC-32C follows the bytes.
    pub checksum: bool,
}

/// Encoding of the chunks of an array of version 3.
pub(super) struct ArrayCodec<'a> {
    pub big_endian: bool,
    pub chunk: ChunkCodec,
    /// Configuration of files with several chunks, if the array has such files.
    pub sharding: Option<&'a Value>,
}

/// Verifies the CRC-32C at the end, and returns the bytes before it.
pub(super) fn checked(stored: &[u8]) -> Result<&[u8], DecodeError> {
    let (bytes, checksum) = stored.split_last_chunk().ok_or(DecodeError::Short)?;
    if crc32c::crc32c(bytes) == u32::from_le_bytes(*checksum) { Ok(bytes) } else { Err(DecodeError::Checksum) }
}

/// Returns the encoding of an array of version 2.
pub(super) fn of_version_2(meta: &Value) -> FileResult<ChunkCodec> {
    if meta["filters"].as_array().is_some_and(|filters| !filters.is_empty()) {
        return Err("has filters, expected none; write the array again without".into());
    }
    let compressor = match &meta["compressor"] {
        Value::Null => None,
        compressor => Some(named(compressor["id"].as_str().unwrap_or("of no name"))?),
    };
    Ok(ChunkCodec { compressor, checksum: false })
}

/// Returns the encoding of an array of version 3.
pub(super) fn of_version_3(meta: &Value) -> FileResult<ArrayCodec<'_>> {
    let codecs = &meta["codecs"];
    let sharding = &codecs[0]["configuration"];
    if codecs[0]["name"] != "sharding_indexed" {
        return of_chunk(codecs);
    }
    if codecs.as_array().is_some_and(|codecs| codecs.len() > 1) {
        return Err("has shards in another codec, expected none; write the array again without".into());
    }
    Ok(ArrayCodec { sharding: Some(sharding), ..of_chunk(&sharding["codecs"])? })
}

/// Returns the encoding of a chunk: `bytes`, followed by a compressor, a checksum, both or neither.
fn of_chunk<'a>(codecs: &Value) -> FileResult<ArrayCodec<'a>> {
    let codecs = codecs.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some((bytes, others)) = codecs.split_first().filter(|(first, _)| name_of(first) == "bytes") else {
        let first = codecs.first().map_or("none", name_of);
        return Err(format!(
            "has the codec {first} first, expected bytes; write the array again without transposing, and without shards in \
             shards"
        ));
    };
    let big_endian = bytes["configuration"]["endian"] == "big";
    let (others, checksum) = match others.split_last() {
        Some((last, others)) if name_of(last) == "crc32c" => (others, true),
        _ => (others, false),
    };
    let compressor = match others {
        [] => None,
        [one] => Some(named(name_of(one))?),
        [_, second, ..] => {
            return Err(format!(
                "has the codec {} after another, expected at most one compressor; write the array again with one",
                name_of(second)
            ));
        }
    };
    Ok(ArrayCodec { big_endian, chunk: ChunkCodec { compressor, checksum }, sharding: None })
}
