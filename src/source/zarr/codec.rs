//! Compression of the bytes of a chunk.

use super::FileResult;
use crate::source::codec::Compressor;
use serde_json::Value;

/// The compressor of this name.
fn named(name: &str) -> FileResult<Compressor> {
    match name {
        "gzip" => Ok(Compressor::Gzip),
        "zlib" => Ok(Compressor::Zlib),
        "zstd" => Ok(Compressor::Zstd),
        "lz4" => Ok(Compressor::Lz4),
        "blosc" => Ok(Compressor::Blosc),
        other => Err(format!(
            "has chunks in the codec {other}, expected none, gzip, zlib, zstd, lz4 or blosc; write the array again with one \
             of these"
        )),
    }
}

/// The compressor of an array of version 2.
pub(super) fn of_version_2(meta: &Value) -> FileResult<Option<Compressor>> {
    if meta["filters"].as_array().is_some_and(|filters| !filters.is_empty()) {
        return Err("has filters, expected none; write the array again without".into());
    }
    match &meta["compressor"] {
        Value::Null => Ok(None),
        compressor => named(compressor["id"].as_str().unwrap_or("of no name")).map(Some),
    }
}

/// Whether samples are big-endian, and the compressor, of an array of version 3: `bytes` and what may follow.
pub(super) fn of_version_3(meta: &Value) -> FileResult<(bool, Option<Compressor>)> {
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
        [one] => Ok((big_endian, Some(named(&name(one))?))),
        [_, second, ..] => {
            Err(format!("has the codec {} after another, expected at most one compressor", name(second)))
        }
    }
}
