//! Values in chunks that are read and decoded without the HDF5 library, on all threads at the same time.

use super::errors::{Hdf5Result, Hdf5ValuesError};
use crate::layout::SampleType;
use crate::layout::codec::{ChunkFilter, DecodeBuffers, DecodeError, Pipeline};
use crate::layout::hdf5::{ChunkIndex, ListedChunk, index};
use crate::source::chunk_memory::{ChunkMemory, ChunkSizes};
use bytemuck::NoUninit;
use hdf5_metno::filters::Filter;
use hdf5_metno::plist::dataset_create::{ChunkOpts, DatasetCreate};
use hdf5_metno::{Dataset, H5Type};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Largest chunk in bytes; larger ones are left to the library.
const MAX_CHUNK: u64 = 1 << 29;
/// Largest number of chunks that the library is asked to list, which takes it a second.
const LISTED: usize = 4096;

/// Values of a dataset in chunks, `[frame][row][bin]`.
#[derive(Debug)]
pub(super) struct ChunkedValues {
    shape: [usize; 3],
    chunk: [usize; 3],
    /// Number of bytes of a sample.
    size: usize,
    pipeline: Pipeline,
    /// Chunks that were written, in the order of their numbers.
    places: Vec<ChunkPlace>,
    /// Number of bytes of the largest chunk as it is stored.
    largest: u64,
    /// Fill value for samples that were never written, in the form in which the dataset stores samples.
    fill: Vec<u8>,
}

/// Place of a chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkPlace {
    /// Number of the chunk, in the order of the dataset's dimensions.
    number: u64,
    /// Offset in the file in bytes.
    offset: u64,
    /// Number of bytes as the chunk is stored.
    size: u64,
    /// Bit mask of the filters that were not applied to the chunk.
    skipped: u32,
}

/// Memory for the chunks of one of several datasets.
#[derive(Clone, Copy)]
pub(super) struct PartMemory<'a> {
    pub chunks: &'a ChunkMemory,
    /// Number of the dataset among those that share the memory.
    pub part: usize,
}

/// Properties of a dataset whose chunks are looked for.
pub(super) struct ChunkedDataset<'a> {
    pub dataset: &'a Dataset,
    /// The file that contains the dataset.
    pub file: &'a File,
    pub shape: [usize; 3],
    pub sample: SampleType,
    pub big_endian: bool,
}

impl ChunkedValues {
    /// Finds the chunks of a dataset; `None` unless all filters are supported here and the chunks can be listed, in
    /// which case the library reads them.
    ///
    /// # Errors
    /// When chunks are not within the file.
    pub fn find(of: &ChunkedDataset) -> Hdf5Result<Option<ChunkedValues>> {
        let Some((pipeline, plist)) = pipeline(of) else { return Ok(None) };
        let Some(sides) = plist.chunk() else { return Ok(None) };
        let chunk = match sides[..] {
            [frames, rows, bins] => [frames, rows, bins],
            [rows, bins] => [1, rows, bins],
            _ => return Ok(None),
        };
        let size = of.sample.bytes();
        let bytes = chunk.iter().try_fold(size as u64, |bytes, &side| bytes.checked_mul(side as u64));
        let Some(bytes) = bytes.filter(|bytes| (1..=MAX_CHUNK).contains(bytes)) else { return Ok(None) };
        let Some(listed) = list(of, chunk, sides.len(), bytes) else { return Ok(None) };
        let Some(places) = placed(listed, of.shape, chunk) else { return Ok(None) };
        let length = of.file.metadata().map_err(Hdf5ValuesError::unreadable)?.len();
        let largest = places.iter().map(|place| place.size).max().unwrap_or(0);
        if let Some(place) = places.iter().find(|place| place.offset.saturating_add(place.size) > length) {
            return Err(Hdf5ValuesError::ChunkPastEnd { offset: place.offset, length }.into());
        }
        // compressed data may be somewhat longer than uncompressed data
        if largest > 2 * bytes + (1 << 16) {
            return Err(Hdf5ValuesError::ChunkTooLong { stored: largest, bytes }.into());
        }
        let fill = fill(&plist, of.sample, of.big_endian);
        Ok(Some(ChunkedValues { shape: of.shape, chunk, size, pipeline, places, largest, fill }))
    }

    /// Passes samples of rows of a frame to `put` as they are stored, with the position of the first of them among
    /// those rows.
    pub fn read(
        &self,
        file: &File,
        memory: PartMemory,
        frame: usize,
        rows: &Range<usize>,
        mut put: impl FnMut(usize, &[u8]),
    ) -> Hdf5Result<()> {
        let [_, height, width] = self.shape;
        let [deep, high, wide] = self.chunk;
        let (down, across) = (height.div_ceil(high), width.div_ceil(wide));
        for band in rows.start / high..rows.end.div_ceil(high) {
            let within = (band * high).max(rows.start)..((band + 1) * high).min(rows.end);
            for column in 0..across {
                let (left, used) = (column * wide, wide.min(width - column * wide));
                let number = (frame / deep * down + band) * across + column;
                let Some(place) = self.place(number as u64) else {
                    let unwritten = self.fill.repeat(used);
                    within.clone().for_each(|row| put((row - rows.start) * width + left, &unwritten));
                    continue;
                };
                let row_bytes = wide * self.size;
                let start = |row: usize| (frame % deep * high + row - band * high) * row_bytes;
                let wanted = start(within.start)..start(within.end);
                let copy = |chunk: &[u8]| {
                    for row in within.clone() {
                        let samples = &chunk[start(row)..][..used * self.size];
                        put((row - rows.start) * width + left, samples);
                    }
                };
                // a frame that is read as a whole needs its chunks only once
                let complete = deep == 1 && within.len() == high.min(height - band * high);
                let key = (!complete && !self.pipeline.is_empty()).then_some((memory.part, place.number));
                let decode = |buffers: &mut DecodeBuffers, all: bool| {
                    self.decode(file, place, if all { 0..self.bytes() } else { wanted }, buffers)
                };
                let done = memory.chunks.with_chunk(key, decode, copy);
                done.map_err(|error| Hdf5ValuesError::Chunk { along: frame / deep, band, column, error })?;
            }
        }
        Ok(())
    }

    /// Returns the place of a chunk, if it was written.
    fn place(&self, number: u64) -> Option<&ChunkPlace> {
        let at = self.places.binary_search_by_key(&number, |place| place.number);
        at.ok().map(|at| &self.places[at])
    }

    /// Reads and decodes a chunk into `buffers`.
    fn decode(
        &self,
        file: &File,
        place: &ChunkPlace,
        wanted: Range<usize>,
        buffers: &mut DecodeBuffers,
    ) -> Hdf5Result<()> {
        buffers.bytes.resize(place.size as usize, 0);
        // without compression, only the wanted part is read
        let part = if self.pipeline.is_empty() { wanted.clone() } else { 0..buffers.bytes.len() };
        let start = place.offset + part.start as u64;
        let bytes = buffers.bytes.get_mut(part).ok_or(DecodeError::Short)?;
        file.read_exact_at(bytes, start).map_err(Hdf5ValuesError::unreadable)?;
        Ok(self.pipeline.decode(place.skipped, buffers, self.bytes(), &wanted)?)
    }

    /// Returns the number of bytes of a decoded chunk.
    fn bytes(&self) -> usize {
        self.chunk.iter().product::<usize>() * self.size
    }

    /// Reports whether reading some rows of a frame takes about as long as reading all of it.
    pub fn are_whole_frames(&self) -> bool {
        !self.pipeline.is_empty() && self.chunk[0] == 1 && 2 * self.chunk[1] >= self.shape[1]
    }

    /// Returns the number of bytes that the places of chunks take.
    pub fn places_bytes(&self) -> u64 {
        size_of_val(&self.places[..]) as u64
    }

    /// Returns the sizes for which memory for chunks is made; `repeatedly` tells whether values are read more than
    /// once.
    pub fn sizes(&self, repeatedly: bool) -> ChunkSizes {
        let along = |side: usize| self.shape[side].div_ceil(self.chunk[side]) as u64;
        let encoded = !self.pipeline.is_empty();
        ChunkSizes {
            count: self.places.len() as u64,
            decoded: self.bytes() as u64,
            stored: self.largest,
            across_frames: if self.chunk[0] > 1 && encoded { along(1) * along(2) } else { 0 },
            again: repeatedly && self.chunk[1] > 1 && encoded,
        }
    }
}

/// Returns the filters of a dataset, if all are supported here.
pub(super) fn known_filters(plist: &DatasetCreate, sample: SampleType) -> Option<Pipeline> {
    let filters = plist.get_filters().ok()?;
    let known = filters.iter().map(|filter| match filter {
        Filter::User(number, parameters) => ChunkFilter::of(*number, parameters),
        other => ChunkFilter::of(other.id(), &[]),
    });
    Pipeline::new(known.collect::<Option<_>>()?, sample.bytes())
}

fn pipeline(of: &ChunkedDataset) -> Option<(Pipeline, DatasetCreate)> {
    let plist = of.dataset.dcpl().ok()?;
    // chunks at the edge that are stored without filters do not record that
    let edges = plist.chunk_opts().is_some_and(|options| options.contains(ChunkOpts::DONT_FILTER_PARTIAL_CHUNKS));
    let pipeline = known_filters(&plist, of.sample).filter(|_| !edges)?;
    Some((pipeline, plist))
}

/// Lists the chunks that were written; `None` behind a user block, where addresses differ between versions of the
/// library.
fn list(of: &ChunkedDataset, chunk: [usize; 3], rank: usize, bytes: u64) -> Option<Vec<ListedChunk>> {
    if of.dataset.file().ok()?.userblock() != 0 {
        return None;
    }
    let (count, limits) = (of.dataset.num_chunks()?, of.dataset.space().ok()?.maxdims());
    let limits = match limits[..] {
        [frames, rows, bins] => [frames, rows, bins],
        [rows, bins] => [Some(1), rows, bins],
        _ => return None,
    };
    let listed = vds_sys::header_address(of.dataset).and_then(|header| {
        let (shape, chunk) = (of.shape.map(|side| side as u64), chunk.map(|side| side as u64));
        let limits = limits.map(|limit| limit.map(|side| side as u64));
        index::chunks(of.file, &ChunkIndex { header, rank, shape, limits, chunk, bytes, count })
    });
    if listed.is_some() || count > LISTED {
        return listed;
    }
    let listed = |index| {
        let info = of.dataset.chunk_info(index)?;
        let first = match info.offset[..] {
            [frame, row, bin] => [frame, row, bin],
            [row, bin] => [0, row, bin],
            _ => return None,
        };
        Some(ListedChunk { first, offset: info.addr, size: info.size, skipped: info.filter_mask })
    };
    (0..count).map(listed).collect()
}

/// Puts chunks in order; `None` if one of them is not in the dataset or occurs twice.
fn placed(listed: Vec<ListedChunk>, shape: [usize; 3], chunk: [usize; 3]) -> Option<Vec<ChunkPlace>> {
    let mut places = Vec::with_capacity(listed.len());
    for ListedChunk { first, offset, size, skipped } in listed {
        let mut number = 0u64;
        for (first, (of, length)) in first.into_iter().zip(shape.into_iter().zip(chunk)) {
            let (of, length) = (of as u64, length as u64);
            if first % length != 0 || first >= of {
                return None;
            }
            number = number.checked_mul(of.div_ceil(length))?.checked_add(first / length)?;
        }
        places.push(ChunkPlace { number, offset, size, skipped });
    }
    places.sort_unstable_by_key(|place| place.number);
    places.is_sorted_by(|a, b| a.number < b.number).then_some(places)
}

/// Returns the fill value in the form in which the dataset stores samples.
fn fill(plist: &DatasetCreate, sample: SampleType, big_endian: bool) -> Vec<u8> {
    fn native<T: H5Type + NoUninit>(plist: &DatasetCreate) -> Vec<u8> {
        let value = plist.get_fill_value_as::<T>().ok().flatten();
        value.map_or(vec![0; size_of::<T>()], |value| bytemuck::bytes_of(&value).to_vec())
    }
    let mut bytes = match sample {
        SampleType::U8 => native::<u8>(plist),
        SampleType::I8 => native::<i8>(plist),
        SampleType::U16 => native::<u16>(plist),
        SampleType::I16 => native::<i16>(plist),
        SampleType::U32 => native::<u32>(plist),
        SampleType::I32 => native::<i32>(plist),
        SampleType::U64 => native::<u64>(plist),
        SampleType::I64 => native::<i64>(plist),
        SampleType::F16 => {
            let value = plist.get_fill_value_as::<half::f16>().ok().flatten();
            value.unwrap_or_default().to_ne_bytes().to_vec()
        }
        SampleType::F32 => native::<f32>(plist),
        SampleType::F64 => native::<f64>(plist),
    };
    if big_endian != cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}
