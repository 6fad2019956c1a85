//! Zarr as input: an array of three dimensions, or the finest level of an OME-Zarr image (docs/formats.md).

mod array;
mod codec;
mod shard;

pub use array::{StoredChunk, ZarrArray};

use super::convert::to_f32;
use super::files::{FileResult, FileState, bad, open_plain};
use super::frames::{Frames, as_f32};
use super::{SampleType, StoredSamples};
use crate::error::{Error, Result};
use crate::files::read_text;
use rayon::prelude::*;
use serde_json::Value;
use shard::ShardIndex;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of decompressed chunks that are kept, as chunks of several frames are needed repeatedly.
const KEPT: usize = 64 << 20;

/// Whether a path is that of a Zarr group or array.
pub fn is_zarr(path: &Path) -> bool {
    ["zarr.json", ".zgroup", ".zarray", ".zattrs"].iter().any(|name| path.join(name).is_file())
}

/// The attributes of the group or array in a directory; null where there are none.
///
/// # Errors
/// When they are no JSON, with the name of the file.
pub fn attributes(directory: &Path) -> FileResult<Value> {
    match json_of(&directory.join("zarr.json"))? {
        Some(meta) => Ok(meta["attributes"].clone()),
        None => Ok(json_of(&directory.join(".zattrs"))?.unwrap_or_default()),
    }
}

/// The content of a file of metadata, if it is there.
fn json_of(path: &Path) -> FileResult<Option<Value>> {
    match read_text(path) {
        Ok(text) => {
            let json = serde_json::from_str(&text).map_err(|e| format!("{} is no JSON: {e}", path.display()))?;
            Ok(Some(json))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("{} cannot be read: {e}; check the path and the permissions", path.display())),
    }
}

/// The directory of the array to read: the path itself, or the first level of the first image of a group.
fn array_of(path: &Path) -> FileResult<PathBuf> {
    let group = json_of(&path.join("zarr.json"))?;
    if path.join(".zarray").is_file() || group.is_some_and(|meta| meta["node_type"] == "array") {
        return Ok(path.to_owned());
    }
    let attributes = attributes(path)?;
    let images = [&attributes["ome"]["multiscales"], &attributes["multiscales"]];
    let level = images.iter().find_map(|images| images[0]["datasets"][0]["path"].as_str());
    let level =
        level.ok_or("is a Zarr group without an OME-Zarr image; name one of its arrays, such as its folder 0")?;
    let plain = Path::new(level).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if !plain {
        return Err(format!("names the level {level:?}, which is outside it"));
    }
    Ok(path.join(level))
}

/// Frames of an array.
#[derive(Debug)]
pub(super) struct ZarrFrames {
    flag: String,
    array: ZarrArray,
    /// The directory that was given.
    files: Vec<PathBuf>,
    /// Files of the array in order, those that are there.
    states: Vec<Option<FileState>>,
    /// Indexes of files with several chunks, once they are needed.
    indexes: Vec<OnceLock<ShardIndex>>,
    recent: Mutex<VecDeque<(usize, Arc<Vec<u8>>)>>,
}

impl ZarrFrames {
    /// Opens a directory of Zarr; `flag` is used in messages.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) when it is none, or has something that cannot be read.
    pub fn open(path: &Path, flag: &str) -> Result<ZarrFrames> {
        let array = array_of(path).and_then(|array| ZarrArray::open(&array)).map_err(|e| bad(flag, path, e))?;
        let counts = array.file_counts();
        let files: usize = counts.iter().product();
        let state = |number: usize| {
            let path = array.file_path(coordinates(counts, number));
            path.exists().then(|| open_plain(&path, flag).map(|(_, state)| state)).transpose()
        };
        let states = (0..files).into_par_iter().map(state).collect::<Result<Vec<_>>>()?;
        if states.iter().all(Option::is_none) {
            return Err(bad(flag, path, "has a shape, but no chunk was written; copy or write it again"));
        }
        let indexes = (0..if array.sharding.is_some() { files } else { 0 }).map(|_| OnceLock::new()).collect();
        let (flag, files) = (flag.to_owned(), vec![path.to_owned()]);
        Ok(ZarrFrames { flag, array, files, states, indexes, recent: Mutex::default() })
    }

    fn bad(&self, why: String) -> Error {
        bad(&self.flag, &self.files[0], why)
    }

    /// Opens the file of a chunk, if the chunk was written.
    fn open_chunk(&self, number: usize) -> Result<Option<StoredChunk>> {
        let (of_file, of_index) = self.array.file_of(coordinates(self.array.counts(), number));
        let path = self.array.file_path(of_file);
        let [_, down, across] = self.array.file_counts();
        let number = (of_file[0] * down + of_file[1]) * across + of_file[2];
        let changed = || self.bad(format!("chunk {} has changed since this run began; run again", path.display()));
        let Some(before) = self.states[number] else {
            return if path.exists() { Err(changed()) } else { Ok(None) };
        };
        let (file, now) = open_plain(&path, &self.flag)?;
        if now != before {
            return Err(changed());
        }
        let chunk = StoredChunk { file, path, bytes: None };
        let Some(sharding) = self.array.sharding else { return Ok(Some(chunk)) };
        let index = match self.indexes[number].get() {
            Some(index) => index,
            None => {
                let read = sharding.index(&chunk).map_err(|e| self.bad(e))?;
                self.indexes[number].get_or_init(|| read)
            }
        };
        Ok(index[of_index].clone().map(|bytes| StoredChunk { bytes: Some(bytes), ..chunk }))
    }

    /// The samples of a chunk.
    fn chunk(&self, number: usize) -> Result<Arc<Vec<u8>>> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = recent().iter().find(|(kept, _)| *kept == number) {
            return Ok(found.clone());
        }
        let decoded = match self.open_chunk(number)? {
            Some(stored) => self.array.decode(&stored).map_err(|e| self.bad(e))?,
            None => self.array.missing_chunk(),
        };
        let decoded = Arc::new(decoded);
        // a chunk of one frame is read once
        if self.array.chunk[0] > 1 {
            let mut recent = recent();
            recent.push_back((number, decoded.clone()));
            while recent.len() > 1 && recent.len() * decoded.len() > KEPT {
                recent.pop_front();
            }
        }
        Ok(decoded)
    }

    /// Hands rows of a chunk, as long as those of the chunk, to `take`.
    fn rows_of_chunk(&self, number: usize, frame: usize, rows: Range<usize>, take: impl FnOnce(&[u8])) -> Result<()> {
        let [_, high, wide] = self.array.chunk;
        if let (false, Some(stored)) = (self.array.is_encoded(), self.open_chunk(number)?) {
            let mut bytes = Vec::new();
            self.array.read_rows(&stored, frame, rows, &mut bytes).map_err(|e| self.bad(e))?;
            take(&bytes);
        } else {
            let row = wide * self.array.sample.bytes();
            take(&self.chunk(number)?[(frame * high + rows.start) * row..(frame * high + rows.end) * row]);
        }
        Ok(())
    }

    /// Copies rows of a frame as they are stored.
    fn copy(&self, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        let ZarrArray { shape: [.., width], chunk: [deep, high, wide], sample, .. } = self.array;
        let [_, down, across] = self.array.counts();
        let size = sample.bytes();
        for band in rows.start / high..rows.end.div_ceil(high) {
            let within = (band * high).max(rows.start)..((band + 1) * high).min(rows.end);
            for column in 0..across {
                let number = (frame / deep * down + band) * across + column;
                let (left, used) = (column * wide, wide.min(width - column * wide));
                let inside = within.start - band * high..within.end - band * high;
                self.rows_of_chunk(number, frame % deep, inside, |bytes| {
                    for (row, from) in within.clone().zip(bytes.chunks_exact(wide * size)) {
                        let to = ((row - rows.start) * width + left) * size;
                        out[to..to + used * size].copy_from_slice(&from[..used * size]);
                    }
                })?;
            }
        }
        Ok(())
    }
}

/// Place of the chunk or file of this number where there are so many.
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
        format!("{} frame {frame}", self.files[0].display())
    }

    fn fingerprint(&self) -> String {
        self.states.iter().enumerate().map(|(number, state)| format!("{number} {state:?}\n")).collect()
    }

    fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn notes(&self) -> &[String] {
        &[]
    }

    fn are_whole(&self) -> bool {
        let ZarrArray { shape, chunk, .. } = self.array;
        self.array.is_encoded() && chunk[0] == 1 && 2 * chunk[1] > shape[1]
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
        if self.array.sample == SampleType::F64 {
            return as_f32(out, |out| self.read_rows(frame, rows, out));
        }
        self.copy(frame, rows, out)
    }
}
