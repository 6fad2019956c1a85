//! Metadata of arrays.

use super::codec::{ArrayCodecs, ChunkCodec};
use super::common::sides;
use super::errors::ZarrMetadataError;
use super::group::{ZarrVersion, is_array};
use super::keys::ChunkKeys;
use super::sample;
use super::shard::ShardMetadata;
use crate::layout::SampleType;
use serde_json::{Value, json};

/// Metadata of an array of version 2 or 3.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayMetadata {
    pub shape: Vec<u64>,
    /// Sides of the part of the array that is in one file: a chunk, or a shard.
    pub file: Vec<u64>,
    pub sample: SampleType,
    pub big_endian: bool,
    pub codec: ChunkCodec,
    /// Division of files into chunks, if they contain several; only in version 3.
    pub shards: Option<ShardMetadata>,
    pub keys: ChunkKeys,
    /// Value of samples that were never written.
    pub fill: Value,
}

impl ArrayMetadata {
    /// Reads metadata from the JSON of their file.
    ///
    /// # Errors
    /// A message about what is invalid or unsupported.
    pub fn parse(meta: &Value, version: ZarrVersion) -> Result<ArrayMetadata, ZarrMetadataError> {
        if meta["zarr_format"] != version.number() || version == ZarrVersion::V3 && !is_array(meta) {
            return Err(ZarrMetadataError::NoArray);
        }
        let keys = ChunkKeys::parse(meta, version)?;
        if meta["order"] == "F" {
            return Err(ZarrMetadataError::FortranOrder);
        }
        let (file, kind) = match version {
            ZarrVersion::V2 => (&meta["chunks"], &meta["dtype"]),
            ZarrVersion::V3 => (&meta["chunk_grid"]["configuration"]["chunk_shape"], &meta["data_type"]),
        };
        let name = kind.as_str().unwrap_or("of no name");
        let (sample, big_endian) =
            sample::parse(name, version).ok_or_else(|| ZarrMetadataError::SampleType { name: name.into() })?;
        let codecs = match version {
            ZarrVersion::V2 => ArrayCodecs { big_endian, chunk: ChunkCodec::parse_version_2(meta)?, shards: None },
            ZarrVersion::V3 => ArrayCodecs::parse(&meta["codecs"])?,
        };
        let ArrayCodecs { big_endian, chunk: codec, shards } = codecs;
        let (shape, file, fill) = (sides(&meta["shape"])?, sides(file)?, meta["fill_value"].clone());
        Ok(ArrayMetadata { shape, file, sample, big_endian, codec, shards, keys, fill })
    }

    /// Returns metadata as the JSON of their file. `names` are those of the dimensions, which only version 3 has.
    pub fn to_json(&self, version: ZarrVersion, names: &[&str]) -> Value {
        let kind = sample::name(self.sample, self.big_endian, version);
        let number = version.number();
        match version {
            ZarrVersion::V2 => json!({
                "zarr_format": number, "shape": self.shape, "chunks": self.file, "dtype": kind,
                "compressor": self.codec.version_2(), "fill_value": self.fill, "order": "C", "filters": null,
                "dimension_separator": self.keys.separator,
            }),
            ZarrVersion::V3 => {
                let codecs =
                    ArrayCodecs { big_endian: self.big_endian, chunk: self.codec, shards: self.shards.clone() };
                json!({
                    "zarr_format": number, "node_type": "array", "shape": self.shape, "data_type": kind,
                    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.file}},
                    "chunk_key_encoding": self.keys.version_3(),
                    "fill_value": self.fill, "codecs": codecs.codecs(), "attributes": {}, "dimension_names": names,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::codec::Compressor;
    use crate::layout::zarr::shard::ShardIndexForm;

    /// Every sample type, compressor and name of chunks that is known.
    #[test]
    fn metadata_read_back() {
        let samples = [
            SampleType::U8,
            SampleType::U16,
            SampleType::U32,
            SampleType::U64,
            SampleType::I8,
            SampleType::I16,
            SampleType::I32,
            SampleType::I64,
            SampleType::F16,
            SampleType::F32,
            SampleType::F64,
        ];
        let compressors = [Compressor::Gzip, Compressor::Zlib, Compressor::Zstd, Compressor::Lz4, Compressor::Blosc];
        let compressors: Vec<_> = compressors.into_iter().map(Some).chain([None]).collect();
        for version in [ZarrVersion::V2, ZarrVersion::V3] {
            let newest = version == ZarrVersion::V3;
            for (number, sample) in samples.into_iter().enumerate() {
                for &compressor in &compressors {
                    let big_endian = number % 2 == 1 && sample.bytes() > 1;
                    let index = ShardIndexForm { at_start: big_endian, big_endian, checksum: number % 3 == 0 };
                    let mut keys = ChunkKeys::nested(version);
                    if number % 4 == 2 {
                        keys = ChunkKeys { prefix: String::new(), separator: ".".into() };
                    }
                    let array = ArrayMetadata {
                        shape: vec![9, 20, 30],
                        file: vec![2, 20, 15],
                        sample,
                        big_endian,
                        codec: ChunkCodec { compressor, checksum: newest && number % 2 == 0 },
                        shards: (newest && number % 3 > 0).then(|| ShardMetadata { chunk: vec![1, 10, 5], index }),
                        keys,
                        fill: json!(number),
                    };
                    let meta = array.to_json(version, &["z", "y", "x"]);
                    assert_eq!(ArrayMetadata::parse(&meta, version), Ok(array), "{meta}");
                    let other = if newest { ZarrVersion::V2 } else { ZarrVersion::V3 };
                    assert_eq!(ArrayMetadata::parse(&meta, other), Err(ZarrMetadataError::NoArray));
                }
            }
        }
    }
}
