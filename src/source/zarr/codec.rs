//! Compression of the bytes of a chunk.

use super::FileResult;
use flate2::read::{GzDecoder, ZlibDecoder};
use serde_json::Value;
use std::io::{Cursor, Read};

/// A compressor of Zarr, of the second or third version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkCodec {
    Gzip,
    Zlib,
    Zstd,
}

impl ChunkCodec {
    const KNOWN: &'static str = "gzip, zlib or zstd";

    /// The compressor of this name.
    pub(super) fn named(name: &str) -> FileResult<ChunkCodec> {
        match name {
            "gzip" => Ok(ChunkCodec::Gzip),
            "zlib" => Ok(ChunkCodec::Zlib),
            "zstd" => Ok(ChunkCodec::Zstd),
            other => Err(format!(
                "has chunks in the codec {other}, expected none, {}; write the array again with one of these",
                ChunkCodec::KNOWN
            )),
        }
    }

    /// Decompresses a chunk of exactly `length` bytes; takes no memory for more.
    pub(super) fn decompress(self, bytes: Vec<u8>, length: usize) -> FileResult<Vec<u8>> {
        let stored = Cursor::new(bytes);
        let reader: Box<dyn Read> = match self {
            ChunkCodec::Gzip => Box::new(GzDecoder::new(stored)),
            ChunkCodec::Zlib => Box::new(ZlibDecoder::new(stored)),
            ChunkCodec::Zstd => Box::new(zstd::Decoder::new(stored).map_err(|e| e.to_string())?),
        };
        let mut out = Vec::new();
        reader
            .take(length as u64 + 1)
            .read_to_end(&mut out)
            .map_err(|e| format!("is damaged ({e}); copy or write it again"))?;
        Ok(out)
    }
}

/// The compressor of an array of version 2.
pub(super) fn of_version_2(meta: &Value) -> FileResult<Option<ChunkCodec>> {
    if meta["filters"].as_array().is_some_and(|filters| !filters.is_empty()) {
        return Err("has filters, expected none; write the array again without".into());
    }
    match &meta["compressor"] {
        Value::Null => Ok(None),
        compressor => ChunkCodec::named(compressor["id"].as_str().unwrap_or("of no name")).map(Some),
    }
}

/// Whether samples are big-endian, and the compressor, of an array of version 3: `bytes` and what may follow.
pub(super) fn of_version_3(meta: &Value) -> FileResult<(bool, Option<ChunkCodec>)> {
    let codecs = meta["codecs"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |codec: &Value| codec["name"].as_str().unwrap_or("of no name").to_owned();
    let Some((bytes, others)) = codecs.split_first().filter(|(first, _)| first["name"] == "bytes") else {
        let first = codecs.first().map_or("none".to_owned(), name);
        return Err(format!(
            "has the codec {first} first, expected bytes; write the array again without sharding and transposing"
        ));
    };
    let big_endian = bytes["configuration"]["endian"] == "big";
    match others {
        [] => Ok((big_endian, None)),
        [one] => Ok((big_endian, Some(ChunkCodec::named(&name(one))?))),
        [_, second, ..] => {
            Err(format!("has the codec {} after another, expected at most one compressor", name(second)))
        }
    }
}
