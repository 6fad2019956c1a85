//! Files of a sharded array, which contain several chunks and an index of their places.

use super::chunk::StoredChunk;
use super::errors::ZarrChunkError;
use crate::error::messages;
use crate::layout::zarr::{ShardIndex, ShardIndexForm};
use crate::visible::Shown;
use std::fmt;
use std::os::unix::fs::FileExt;

messages! {
    /// Why the files of a sharded array cannot be read.
    pub enum ZarrShardingError: Input {
        Uneven { file: [usize; 3], chunk: [usize; 3] } =>
            "has shards of {file:?}, no multiples of its chunks of {chunk:?}"; "write the array again",
    }
}

/// Layout of the files of a sharded array, and storage of their indexes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sharding {
    /// Number of chunks in a file along each dimension.
    pub chunks: [usize; 3],
    index: ShardIndexForm,
}

/// Formats all properties; the text is a part of run keys.
impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShardIndexForm { at_start, big_endian, checksum } = self.index;
        let mut text = f.debug_struct("Sharding");
        text.field("chunks", &self.chunks).field("at_start", &at_start);
        text.field("big_endian", &big_endian).field("checksum", &checksum).finish()
    }
}

impl Sharding {
    /// Returns the layout for files and chunks with these sides.
    ///
    /// # Errors
    /// A message about files that do not consist of whole chunks, without the path of the array.
    pub fn new(index: ShardIndexForm, file: [usize; 3], chunk: [usize; 3]) -> Result<Sharding, ZarrShardingError> {
        if (0..3).any(|side| file[side] % chunk[side] != 0) {
            return Err(ZarrShardingError::Uneven { file, chunk });
        }
        Ok(Sharding { chunks: std::array::from_fn(|side| file[side] / chunk[side]), index })
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
    pub fn index(&self, StoredChunk { file, path, .. }: &StoredChunk) -> Result<ShardIndex, ZarrChunkError> {
        let unreadable = |error: std::io::Error| ZarrChunkError::UnreadableShard { path: path.shown(), error };
        let length = file.metadata().map_err(unreadable)?.len();
        let place = self.index.place(self.chunks.iter().product(), length);
        let place = place.ok_or_else(|| ZarrChunkError::ShortShard { path: path.shown() })?;
        let mut bytes = vec![0; (place.end - place.start) as usize];
        file.read_exact_at(&mut bytes, place.start).map_err(unreadable)?;
        let index = self.index.parse(&bytes, length);
        index.map_err(|error| ZarrChunkError::DamagedShard { path: path.shown(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another text would give the runs of sharded input other keys.
    #[test]
    fn the_text_in_run_keys_stays_as_it_is() {
        let index = ShardIndexForm { at_start: false, big_endian: false, checksum: true };
        let sharding = Sharding::new(index, [4, 6, 8], [1, 3, 4]).unwrap();
        let text = "Some(Sharding { chunks: [4, 2, 2], at_start: false, big_endian: false, checksum: true })";
        assert_eq!(format!("{:?}", Some(sharding)), text);
    }
}
