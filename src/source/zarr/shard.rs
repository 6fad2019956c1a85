//! Files of a sharded array, which contain several chunks and an index of their places (the codec `sharding_indexed` of
//! Zarr 3).

use super::FileResult;
use super::chunk::StoredChunk;
use super::codec::{checked, name_of};
use crate::visible::Shown;
use serde_json::Value;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Number of bytes of an entry of an index: offset and length.
const ENTRY: usize = 16;

/// Layout of the files of a sharded array, and storage of their indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Number of chunks in a file along each dimension.
    pub chunks: [usize; 3],
    at_start: bool,
    big_endian: bool,
    checksum: bool,
}

/// Places of the chunks of a file, in the order of the file; `None` for chunks that were never written.
pub type ShardIndex = Vec<Option<Range<u64>>>;

impl Sharding {
    /// Reads the configuration of the codec for files and chunks with these sides.
    ///
    /// # Errors
    /// A message about an unsupported configuration, without the path of the array.
    pub fn new(configuration: &Value, file: [usize; 3], chunk: [usize; 3]) -> FileResult<Sharding> {
        if (0..3).any(|side| file[side] % chunk[side] != 0) {
            return Err(format!(
                "has shards of {file:?}, no multiples of its chunks of {chunk:?}; write the array again"
            ));
        }
        let chunks = std::array::from_fn(|side| file[side] / chunk[side]);
        let codecs = configuration["index_codecs"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names: Vec<_> = codecs.iter().map(name_of).collect();
        let checksum = match names[..] {
            ["bytes"] => false,
            ["bytes", "crc32c"] => true,
            _ => {
                let names = names.join(", ");
                return Err(format!(
                    "has indexes of shards in the codecs {names}, expected bytes, or bytes and crc32c; write the array again with these"
                ));
            }
        };
        let big_endian = codecs[0]["configuration"]["endian"] == "big";
        Ok(Sharding { chunks, at_start: configuration["index_location"] == "start", big_endian, checksum })
    }

    /// Returns the coordinates of the file that contains a chunk, and the number of the chunk in it.
    pub fn place(&self, chunk: [usize; 3]) -> ([usize; 3], usize) {
        let [_, down, across] = self.chunks;
        let [z, y, x] = std::array::from_fn(|side| chunk[side] % self.chunks[side]);
        (std::array::from_fn(|side| chunk[side] / self.chunks[side]), (z * down + y) * across + x)
    }

    /// Reads the index of an open file.
    ///
    /// # Errors
    /// The reason why it cannot be read, with the name of the file.
    pub fn index(&self, StoredChunk { file, path, .. }: &StoredChunk) -> FileResult<ShardIndex> {
        let bad = |why: &str| format!("shard {} {why}", path.shown());
        let read = |e: std::io::Error| bad(&format!("cannot be read: {e}; check the path and the permissions"));
        let length = file.metadata().map_err(read)?.len();
        let entries = ENTRY * self.chunks.iter().product::<usize>();
        let stored = entries + if self.checksum { size_of::<u32>() } else { 0 };
        let start = if self.at_start { Some(0) } else { length.checked_sub(stored as u64) };
        let start = start
            .filter(|_| length >= stored as u64)
            .ok_or_else(|| bad("is damaged: it is too short for its index; copy or write it again"))?;
        let mut bytes = vec![0; stored];
        file.read_exact_at(&mut bytes, start).map_err(read)?;
        if self.checksum {
            checked(&bytes)
                .map_err(|_| bad("is damaged: the checksum of its index is wrong; copy or write it again"))?;
        }
        let number = |bytes: &[u8]| {
            let bytes = std::array::from_fn(|byte| bytes[byte]);
            if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) }
        };
        let entry = |entry: &[u8]| match (number(entry), number(&entry[ENTRY / 2..])) {
            (u64::MAX, u64::MAX) => Ok(None),
            (start, bytes) => match start.checked_add(bytes).filter(|&end| end <= length) {
                Some(end) => Ok(Some(start..end)),
                None => Err(bad("is damaged: its index has a chunk outside it; copy or write it again")),
            },
        };
        bytes[..entries].chunks_exact(ENTRY).map(entry).collect()
    }
}
