//! Files of several chunks, with an index of their places (the codec `sharding_indexed` of Zarr 3).

use super::common::{BYTES_CODEC, CHECKSUM_CODEC, bytes_codec, checked, is_big_endian, name_of, sides};
use super::errors::{ShardIndexError, ZarrMetadataError};
use serde_json::{Value, json};
use std::ops::Range;

/// Number of bytes of an entry of an index: offset and length.
const ENTRY: usize = 16;
/// Number of bytes of a checksum.
const SUM: usize = size_of::<u32>();

/// Metadata of an array whose files contain several chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardMetadata {
    /// Sides of a chunk.
    pub chunk: Vec<u64>,
    pub index: ShardIndexForm,
}

/// Storage of the index of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardIndexForm {
    /// True if the index is at the start of the file rather than at its end.
    pub at_start: bool,
    pub big_endian: bool,
    /// True if a CRC-32C follows the entries.
    pub checksum: bool,
}

/// Places of the chunks of a file, in the order of the file; `None` for chunks that were never written.
pub type ShardIndex = Vec<Option<Range<u64>>>;

impl ShardMetadata {
    /// Reads the configuration of the codec.
    pub(super) fn parse(configuration: &Value) -> Result<ShardMetadata, ZarrMetadataError> {
        let codecs = configuration["index_codecs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<_> = codecs.iter().map(name_of).collect();
        let checksum = match names[..] {
            [BYTES_CODEC] => false,
            [BYTES_CODEC, CHECKSUM_CODEC] => true,
            _ => return Err(ZarrMetadataError::IndexCodecs { names: names.join(", ") }),
        };
        let big_endian = is_big_endian(&codecs[0]);
        let index = ShardIndexForm { at_start: configuration["index_location"] == "start", big_endian, checksum };
        Ok(ShardMetadata { chunk: sides(&configuration["chunk_shape"])?, index })
    }

    /// Returns the configuration of the codec for chunks in these codecs.
    pub(super) fn configuration(&self, codecs: Vec<Value>) -> Value {
        let ShardIndexForm { at_start, big_endian, checksum } = self.index;
        let index = [Some(bytes_codec(big_endian)), checksum.then(|| json!({"name": CHECKSUM_CODEC}))];
        json!({
            "chunk_shape": self.chunk, "codecs": codecs,
            "index_codecs": index.into_iter().flatten().collect::<Vec<_>>(),
            "index_location": if at_start { "start" } else { "end" },
        })
    }
}

impl ShardIndexForm {
    /// Returns the range of bytes of the index of `chunks` chunks in a file of `length` bytes, unless it is shorter.
    pub fn place(self, chunks: usize, length: u64) -> Option<Range<u64>> {
        let bytes = (ENTRY * chunks + if self.checksum { SUM } else { 0 }) as u64;
        let start = length.checked_sub(bytes)?;
        Some(if self.at_start { 0..bytes } else { start..length })
    }

    /// Reads the bytes of an index of a file of `length` bytes.
    ///
    /// # Errors
    /// When they are damaged.
    pub fn parse(self, bytes: &[u8], length: u64) -> Result<ShardIndex, ShardIndexError> {
        let entries = match self.checksum {
            true => checked(bytes).map_err(|_| ShardIndexError::Checksum)?,
            false => bytes,
        };
        let number = |bytes: &[u8]| {
            let bytes = std::array::from_fn(|byte| bytes[byte]);
            if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
        };
        let entry = |entry: &[u8]| match (number(entry), number(&entry[ENTRY / 2..])) {
            (u64::MAX, u64::MAX) => Ok(None),
            (start, bytes) => match start.checked_add(bytes).filter(|&end| end <= length) {
                Some(end) => Ok(Some(start..end)),
                None => Err(ShardIndexError::Outside),
            },
        };
        entries.chunks_exact(ENTRY).map(entry).collect()
    }
}
