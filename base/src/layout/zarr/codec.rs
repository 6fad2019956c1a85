//! Codecs of the bytes of a chunk.

use super::common::{BYTES_CODEC, CHECKSUM_CODEC, bytes_codec, is_big_endian, name_of};
use super::errors::ZarrMetadataError;
use super::group::ZarrVersion;
use super::shard::ShardMetadata;
use crate::layout::codec::{Compressor, DEFLATE_LEVEL, ZSTD_LEVEL};
use serde_json::{Value, json};

/// Prefix of codecs that are not part of version 3; numcodecs writes them as in version 2.
const NUMCODECS: &str = "numcodecs.";
/// Name of the codec of shards.
const SHARDS: &str = "sharding_indexed";

/// Compressors with their names, and whether these are part of version 3.
const COMPRESSORS: [(Compressor, &str, bool); 5] = [
    (Compressor::Gzip, "gzip", true),
    (Compressor::Zlib, "zlib", false),
    (Compressor::Zstd, "zstd", true),
    (Compressor::Lz4, "lz4", false),
    (Compressor::Blosc, "blosc", true),
];

/// Encoding of the bytes of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkCodec {
    pub compressor: Option<Compressor>,
    /// True if a CRC-32C follows the bytes.
    pub checksum: bool,
}

/// Encoding of the chunks of an array of version 3.
pub(super) struct ArrayCodecs {
    pub big_endian: bool,
    pub chunk: ChunkCodec,
    pub shards: Option<ShardMetadata>,
}

/// Returns the compressor with this name.
fn named(name: &str) -> Result<Compressor, ZarrMetadataError> {
    let plain = name.strip_prefix(NUMCODECS).unwrap_or(name);
    let found = COMPRESSORS.iter().find(|(_, known, _)| *known == plain);
    found.map(|(compressor, ..)| *compressor).ok_or_else(|| ZarrMetadataError::Compressor { name: name.into() })
}

/// Returns the metadata of a compressor with the level at which this program compresses; those that it does not apply
/// have no configuration.
fn compressor_of(compressor: Compressor, version: ZarrVersion) -> Value {
    let known = COMPRESSORS.iter().find(|(known, ..)| *known == compressor);
    let (name, in_version_3) = known.map_or(("", true), |(_, name, in_version_3)| (*name, *in_version_3));
    match (version, compressor) {
        (ZarrVersion::V2, Compressor::Gzip) => json!({"id": name, "level": DEFLATE_LEVEL}),
        (ZarrVersion::V2, Compressor::Zstd) => json!({"id": name, "level": ZSTD_LEVEL}),
        (ZarrVersion::V2, _) => json!({"id": name}),
        (ZarrVersion::V3, Compressor::Gzip) => json!({"name": name, "configuration": {"level": DEFLATE_LEVEL}}),
        (ZarrVersion::V3, Compressor::Zstd) => {
            json!({"name": name, "configuration": {"level": ZSTD_LEVEL, "checksum": false}})
        }
        (ZarrVersion::V3, _) if in_version_3 => json!({"name": name}),
        (ZarrVersion::V3, _) => json!({"name": format!("{NUMCODECS}{name}")}),
    }
}

impl ChunkCodec {
    /// Reads the metadata of an array of version 2.
    pub(super) fn parse_version_2(meta: &Value) -> Result<ChunkCodec, ZarrMetadataError> {
        if meta["filters"].as_array().is_some_and(|filters| !filters.is_empty()) {
            return Err(ZarrMetadataError::Filters);
        }
        let compressor = match &meta["compressor"] {
            Value::Null => None,
            compressor => Some(named(compressor["id"].as_str().unwrap_or("of no name"))?),
        };
        Ok(ChunkCodec { compressor, checksum: false })
    }

    /// Returns the compressor in the metadata of version 2, which has no checksums.
    pub(super) fn version_2(self) -> Value {
        self.compressor.map_or(Value::Null, |compressor| compressor_of(compressor, ZarrVersion::V2))
    }

    /// Returns the codecs of a chunk in the metadata of version 3.
    fn version_3(self, big_endian: bool) -> Vec<Value> {
        let compressor = self.compressor.map(|compressor| compressor_of(compressor, ZarrVersion::V3));
        let checksum = self.checksum.then(|| json!({"name": CHECKSUM_CODEC}));
        [Some(bytes_codec(big_endian)), compressor, checksum].into_iter().flatten().collect()
    }
}

impl ArrayCodecs {
    /// Reads the codecs of an array.
    pub fn parse(codecs: &Value) -> Result<ArrayCodecs, ZarrMetadataError> {
        let sharding = &codecs[0]["configuration"];
        if codecs[0]["name"] != SHARDS {
            return ArrayCodecs::parse_chunk(codecs);
        }
        if codecs.as_array().is_some_and(|codecs| codecs.len() > 1) {
            return Err(ZarrMetadataError::EncodedShards);
        }
        let of_chunk = ArrayCodecs::parse_chunk(&sharding["codecs"])?;
        Ok(ArrayCodecs { shards: Some(ShardMetadata::parse(sharding)?), ..of_chunk })
    }

    /// Reads the codecs of a chunk: `bytes`, followed by a compressor, a checksum, both or neither.
    fn parse_chunk(codecs: &Value) -> Result<ArrayCodecs, ZarrMetadataError> {
        let codecs = codecs.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some((bytes, others)) = codecs.split_first().filter(|(first, _)| name_of(first) == BYTES_CODEC) else {
            let first = codecs.first().map_or("none", name_of);
            return Err(ZarrMetadataError::FirstCodec { name: first.into() });
        };
        let big_endian = is_big_endian(bytes);
        let (others, checksum) = match others.split_last() {
            Some((last, others)) if name_of(last) == CHECKSUM_CODEC => (others, true),
            _ => (others, false),
        };
        let compressor = match others {
            [] => None,
            [one] => Some(named(name_of(one))?),
            [_, second, ..] => {
                return Err(ZarrMetadataError::SecondCodec { name: name_of(second).into() });
            }
        };
        Ok(ArrayCodecs { big_endian, chunk: ChunkCodec { compressor, checksum }, shards: None })
    }

    /// Returns the codecs of the array.
    pub fn codecs(&self) -> Vec<Value> {
        let codecs = self.chunk.version_3(self.big_endian);
        match &self.shards {
            None => codecs,
            Some(shards) => vec![json!({"name": SHARDS, "configuration": shards.configuration(codecs)})],
        }
    }
}
