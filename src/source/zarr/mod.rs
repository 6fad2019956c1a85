//! Zarr as input: an array of three dimensions, or the finest level of an OME-Zarr image (docs/formats.md).

mod array;
mod chunk;
mod errors;
mod metadata;
mod shard;

pub use array::ZarrArray;
pub use chunk::StoredChunk;
pub use metadata::{attributes, is_zarr};

use super::chunk_memory::{ChunkMemory, ChunkSizes};
use super::files::{FileState, bad, open_plain};
use super::frames::{Frames, as_f32};
use super::{SampleType, StoredSamples};
use crate::error::{BoxedError, Error, Result};
use crate::layout::codec::DecodeBuffers;
use crate::layout::to_f32;
use crate::layout::zarr::ShardIndex;
use crate::remark::Remark;
use crate::visible::Shown;
use array::ZarrArrayError;
use errors::ZarrChunkError;
use metadata::array_of;
use rayon::prelude::*;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Frames of an array.
#[derive(Debug)]
pub(super) struct ZarrFrames {
    flag: String,
    array: ZarrArray,
    /// The directory that was given.
    files: Vec<PathBuf>,
    /// State of every file of the array, in order; `None` for missing files.
    states: Vec<Option<FileState>>,
    /// Indexes of files with several chunks, which are read when they are needed.
    indexes: Vec<OnceLock<ShardIndex>>,
    memory: ChunkMemory,
    remarks: Vec<Remark>,
}

/// Place of a chunk that was written.
struct ZarrPlace {
    /// Number of the file.
    file: usize,
    /// Path of the file.
    path: PathBuf,
    /// Range of bytes of the chunk in the file, if the file contains several chunks.
    bytes: Option<Range<u64>>,
}

/// Rows of one frame in a chunk.
struct RowsOfChunk {
    /// Number of the frame in the chunk.
    frame: usize,
    /// Number of the band of rows of the array that the chunk is in.
    band: usize,
    /// Numbers of the rows in the chunk.
    rows: Range<usize>,
}

impl ZarrFrames {
    /// Opens a directory of Zarr; `flag` is used in messages. Chunks may take a part of `memory`, in bytes.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) when it is not Zarr, or has something that cannot be read.
    pub fn open(path: &Path, flag: &str, memory: u64) -> Result<ZarrFrames> {
        let array = opened(path).map_err(|e| bad(flag, path, e))?;
        let counts = array.file_counts();
        let files: usize = counts.iter().product();
        let state = |number: usize| {
            let path = array.file_path(coordinates(counts, number));
            path.exists().then(|| open_plain(&path, flag).map(|(_, state)| state)).transpose()
        };
        let states = (0..files).into_par_iter().map(state).collect::<Result<Vec<_>>>()?;
        let missing = states.iter().filter(|state| state.is_none()).count();
        if missing == files {
            return Err(bad(flag, path, ZarrArrayError::Unwritten));
        }
        let what = if array.sharding.is_some() { "shards" } else { "chunks" };
        let remarks = match missing {
            0 => Vec::new(),
            _ => vec![Remark::note(format!(
                "{}: {missing} of {files} {what} are not there and are read as its fill value; either all of their values \
                 are the fill value, or the scan was stopped",
                path.shown()
            ))],
        };
        let sizes = array.is_encoded().then(|| sizes(&array, &states));
        let memory = ChunkMemory::new(sizes.as_slice(), memory);
        let indexes = (0..if array.sharding.is_some() { files } else { 0 }).map(|_| OnceLock::new()).collect();
        let (flag, files) = (flag.to_owned(), vec![path.to_owned()]);
        Ok(ZarrFrames { flag, array, files, states, indexes, memory, remarks })
    }

    fn bad(&self, error: ZarrChunkError) -> Error {
        bad(&self.flag, &self.files[0], error)
    }

    fn changed(&self, path: &Path) -> Error {
        self.bad(ZarrChunkError::Changed { path: path.shown() })
    }

    /// Returns the place of a chunk, if it was written.
    fn place(&self, number: usize) -> Result<Option<ZarrPlace>> {
        let (of_file, of_index) = self.array.file_of(coordinates(self.array.counts(), number));
        let path = self.array.file_path(of_file);
        let [_, down, across] = self.array.file_counts();
        let file = (of_file[0] * down + of_file[1]) * across + of_file[2];
        if self.states[file].is_none() {
            return if path.exists() { Err(self.changed(&path)) } else { Ok(None) };
        }
        let whole = ZarrPlace { file, path, bytes: None };
        let Some(sharding) = self.array.sharding else { return Ok(Some(whole)) };
        let index = match self.indexes[file].get() {
            Some(index) => index,
            None => {
                let read = self.read(&whole, |stored| sharding.index(stored))?;
                self.indexes[file].get_or_init(|| read)
            }
        };
        Ok(index[of_index].clone().map(|bytes| ZarrPlace { bytes: Some(bytes), ..whole }))
    }

    /// Calls `read` with the file of a chunk, and checks that the file has not changed.
    fn read<T>(&self, place: &ZarrPlace, read: impl FnOnce(&StoredChunk) -> Result<T, ZarrChunkError>) -> Result<T> {
        let ZarrPlace { file: number, path, bytes } = place;
        let (file, _) = open_plain(path, &self.flag)?;
        let stored = StoredChunk { file, path: path.clone(), bytes: bytes.clone() };
        let done = read(&stored);
        // after `read`, so that no write can come in between
        if FileState::of(&stored.file).ok() != self.states[*number] {
            return Err(self.changed(path));
        }
        done.map_err(|e| self.bad(e))
    }

    /// Copies rows of a frame to `out` as they are stored.
    fn copy(&self, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        let ZarrArray { shape: [.., width], chunk: [deep, high, wide], sample, .. } = self.array;
        let [_, down, across] = self.array.counts();
        let size = sample.bytes();
        for band in rows.start / high..rows.end.div_ceil(high) {
            let within = (band * high).max(rows.start)..((band + 1) * high).min(rows.end);
            for column in 0..across {
                let number = (frame / deep * down + band) * across + column;
                let (left, used) = (column * wide, wide.min(width - column * wide) * size);
                let inside = within.start - band * high..within.end - band * high;
                let wanted = RowsOfChunk { frame: frame % deep, band, rows: inside };
                self.rows_of_chunk(number, wanted, used, |row, from| {
                    let to = ((band * high + row - rows.start) * width + left) * size;
                    out[to..to + used].copy_from_slice(from);
                })?;
            }
        }
        Ok(())
    }

    /// Passes the first `used` bytes of some rows of a chunk to `put`.
    fn rows_of_chunk(
        &self,
        number: usize,
        wanted: RowsOfChunk,
        used: usize,
        mut put: impl FnMut(usize, &[u8]),
    ) -> Result<()> {
        let RowsOfChunk { frame, band, rows } = wanted;
        let array = &self.array;
        let Some(place) = self.place(number)? else {
            let unwritten = array.fill.repeat(used / array.fill.len());
            rows.for_each(|row| put(row, &unwritten));
            return Ok(());
        };
        if !array.is_encoded() {
            return self.read(&place, |stored| array.each_row(stored, frame, rows, used, put));
        }
        // a frame that is read as a whole needs its chunks only once
        let complete = array.chunk[0] == 1 && rows.len() == array.rows_of_band(band);
        let key = (!complete).then_some((0, number as u64));
        let wanted = array.place_of(frame, &rows);
        let all = 0..array.chunk_bytes();
        let decode = |buffers: &mut DecodeBuffers, whole: bool| {
            self.read(&place, |stored| array.decode(stored, if whole { &all } else { &wanted }, buffers))
        };
        let row_bytes = array.chunk[2] * array.sample.bytes();
        self.memory.with_chunk(key, decode, |chunk| {
            chunk[wanted.clone()].chunks_exact(row_bytes).zip(rows).for_each(|(bytes, row)| put(row, &bytes[..used]));
        })
    }
}

/// Opens the array of a directory of Zarr.
fn opened(path: &Path) -> Result<ZarrArray, BoxedError> {
    ZarrArray::open(&array_of(path)?)
}

/// Returns the sizes for which memory for the chunks of an array is made; `states` are those of its files.
fn sizes(array: &ZarrArray, states: &[Option<FileState>]) -> ChunkSizes {
    let [_, down, across] = array.counts();
    let in_file = array.sharding.map_or(1, |sharding| sharding.chunks.iter().product::<usize>());
    let largest = states.iter().flatten().map(|state| state.bytes).max().unwrap_or(0);
    ChunkSizes {
        count: (states.iter().flatten().count() * in_file) as u64,
        decoded: array.chunk_bytes() as u64,
        stored: largest.min(array.most_stored()),
        across_frames: if array.chunk[0] > 1 { (down * across) as u64 } else { 0 },
        again: array.chunk[1] > 1,
    }
}

/// Returns the coordinates of the chunk or file with this number; the first argument has their number along each
/// dimension.
fn coordinates([_, down, across]: [usize; 3], number: usize) -> [usize; 3] {
    [number / across / down, number / across % down, number % across]
}

impl Frames for ZarrFrames {
    fn count(&self) -> usize {
        self.array.shape[0]
    }

    fn size(&self) -> (usize, usize) {
        let [_, height, width] = self.array.shape;
        (width, height)
    }

    fn sample(&self) -> SampleType {
        self.array.sample
    }

    fn name(&self, frame: usize) -> String {
        format!("{} frame {frame}", self.files[0].shown())
    }

    fn fingerprint(&self) -> String {
        let files = self.states.iter().enumerate();
        self.array.form() + &files.map(|(number, state)| format!("{number} {state:?}\n")).collect::<String>()
    }

    fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    fn held(&self) -> u64 {
        let in_file = self.array.sharding.map_or(0, |sharding| sharding.chunks.iter().product::<usize>());
        let indexes = self.indexes.len() * in_file * size_of::<Option<Range<u64>>>();
        self.memory.held + (size_of_val(&self.states[..]) + indexes) as u64
    }

    fn are_whole(&self) -> bool {
        let ZarrArray { shape, chunk, .. } = self.array;
        self.array.is_encoded() && chunk[0] == 1 && 2 * chunk[1] >= shape[1]
    }

    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let mut bytes = vec![0; out.len() * self.array.sample.bytes()];
        self.copy(frame, rows, &mut bytes)?;
        to_f32(&bytes, self.array.sample, self.array.big_endian, out);
        Ok(())
    }

    fn stored(&self) -> StoredSamples {
        let swapped = self.array.big_endian != cfg!(target_endian = "big");
        StoredSamples { sample: self.array.sample, swapped }
    }

    fn read_stored(&self, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        if self.array.sample.is_long() {
            return as_f32(out, |out| self.read_rows(frame, rows, out));
        }
        self.copy(frame, rows, out)
    }
}
