//! Zarr arrays: their metadata and their chunks.

use super::chunk::StoredChunk;
use super::errors::ZarrChunkError;
use super::metadata::json_of;
use super::shard::Sharding;
use crate::error::{BoxedError, Result, messages};
use crate::layout::SampleType;
use crate::layout::codec::{DecodeBuffers, DecodeError};
use crate::layout::zarr::{ArrayMetadata, ChunkCodec, ChunkKeys, ZarrVersion, checked, fill_bytes};
use crate::source::frames::{MAX_PIXELS, MAX_SIDE};
use crate::visible::Shown;
use std::cmp::Ordering;
use std::ops::Range;
use std::path::{Path, PathBuf};

messages! {
    /// Why an array cannot be read.
    pub(super) enum ZarrArrayError: Input {
        NoMetadata => "contains neither zarr.json nor .zarray; expected a Zarr array",
        Dimensions { shape: String } =>
            "has the shape {shape}; expected [frame][row][pixel], with one time and one channel before them at most";
            "write the frames to an array of this shape",
        Empty { shape: String } =>
            "has the shape {shape}, and nothing in it or its chunks"; "name another array",
        TooLarge { shape: String } =>
            "claims the shape {shape}, more than the {MAX_FRAMES} frames, {MAX_SIDE} a side or {MAX_PIXELS} pixels \
             that can be read";
            "check whether it is damaged",
        UnfitChunks { chunk: Vec<u64>, shape: String } =>
            "has chunks of {chunk:?}, which do not fit the shape {shape}"; "write it again",
        LargeChunks { chunk: [usize; 3] } =>
            "has chunks of {chunk:?}, more than the {MAX_CHUNK} bytes that can be read"; "write it with smaller chunks",
        TooManyFiles =>
            "has more than {MAX_FILES} files of chunks"; "write it with larger chunks, or in shards",
        TooManyChunks => "has more than {MAX_CHUNKS} chunks"; "write it with larger chunks",
        Unwritten => "has a shape, but no chunk was written"; "copy or write it again",
    }
}

/// Largest number of frames.
const MAX_FRAMES: u64 = 1 << 20;
/// Largest number of files, each of which is looked for.
const MAX_FILES: u64 = 1 << 20;
/// Largest number of chunks in all files.
const MAX_CHUNKS: u64 = 1 << 24;
/// Largest number of bytes of a chunk, which is decompressed in one piece.
const MAX_CHUNK: u64 = 1 << 29;

/// Number of bytes that are read at once of an uncompressed chunk whose rows have another length than those of the
/// frame.
const PIECE: usize = 1 << 20;
/// Number of rows of an uncompressed chunk that are read at once; even, so that pairs of rows stay together.
const ROWS_AT_ONCE: usize = 64;

/// Array of three dimensions, `[frame][row][pixel]`, which may follow leading dimensions of one element.
#[derive(Clone, Debug)]
pub struct ZarrArray {
    /// Directory of the array.
    pub directory: PathBuf,
    /// Names of the files, whose numbers are 0 along leading dimensions.
    keys: ChunkKeys,
    pub shape: [usize; 3],
    pub chunk: [usize; 3],
    pub sample: SampleType,
    pub big_endian: bool,
    codec: ChunkCodec,
    /// Layout of the files, if they contain several chunks.
    pub sharding: Option<Sharding>,
    /// Fill value for samples of missing chunks, in the form in which the array stores samples.
    pub fill: Vec<u8>,
}

impl ZarrArray {
    /// Reads the metadata of the array in a directory.
    ///
    /// # Errors
    /// A message about invalid or unsupported metadata, without the path.
    pub fn open(directory: &Path) -> Result<ZarrArray, BoxedError> {
        let meta = [ZarrVersion::V3, ZarrVersion::V2].into_iter().find_map(|version| {
            let json = json_of(&directory.join(version.array_file())).transpose()?;
            Some(json.map_err(BoxedError::from).and_then(|json| Ok(ArrayMetadata::parse(&json, version)?)))
        });
        let Some(meta) = meta.transpose()? else {
            return Err(ZarrArrayError::NoMetadata.into());
        };
        let ArrayMetadata { sample, big_endian, codec, .. } = meta;
        let Sides { shape, chunk: of_file, leading } = Sides::checked(&meta.shape, &meta.file)?;
        let (chunk, sharding) = match &meta.shards {
            None => (of_file, None),
            Some(shards) => {
                let Sides { chunk, .. } = Sides::checked(&meta.shape, &shards.chunk)?;
                (chunk, Some(Sharding::new(shards.index, of_file, chunk)?))
            }
        };
        let fill = fill_bytes(&meta.fill, sample, big_endian)?;
        let (directory, keys) = (directory.to_owned(), meta.keys.after(leading));
        let array = ZarrArray { directory, keys, shape, chunk, sample, big_endian, codec, sharding, fill };
        let bytes = array.chunk.iter().try_fold(sample.bytes() as u64, |n, &side| n.checked_mul(side as u64));
        if bytes.is_none_or(|bytes| bytes > MAX_CHUNK) {
            return Err(ZarrArrayError::LargeChunks { chunk: array.chunk }.into());
        }
        let product = |counts: [usize; 3]| counts.iter().try_fold(1u64, |n, &count| n.checked_mul(count as u64));
        let files = product(array.file_counts()).filter(|files| *files <= MAX_FILES);
        let files = files.ok_or(ZarrArrayError::TooManyFiles)?;
        let of_file = sharding.map_or(Some(1), |sharding| product(sharding.chunks));
        if of_file.and_then(|count| count.checked_mul(files)).is_none_or(|count| count > MAX_CHUNKS) {
            return Err(ZarrArrayError::TooManyChunks.into());
        }
        Ok(array)
    }

    /// Returns the number of chunks along each dimension.
    pub fn counts(&self) -> [usize; 3] {
        std::array::from_fn(|side| self.shape[side].div_ceil(self.chunk[side]))
    }

    /// Returns the number of files along each dimension.
    pub fn file_counts(&self) -> [usize; 3] {
        self.file_of(self.counts().map(|count| count - 1)).0.map(|last| last + 1)
    }

    /// Iterates over the chunks of a frame, as the number of the band of rows and of the column.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let [_, down, across] = self.counts();
        (0..down).flat_map(move |band| (0..across).map(move |column| (band, column)))
    }

    /// Returns the number of rows of a chunk in a band that are in the array.
    pub fn rows_of_band(&self, band: usize) -> usize {
        self.chunk[1].min(self.shape[1] - band * self.chunk[1])
    }

    /// Returns the number of bytes of a row of a frame.
    pub fn row_bytes(&self) -> usize {
        self.shape[2] * self.sample.bytes()
    }

    /// Returns the number of bytes of a frame.
    pub fn plane_bytes(&self) -> usize {
        self.shape[1] * self.row_bytes()
    }

    /// Returns the number of bytes of an uncompressed chunk.
    pub fn chunk_bytes(&self) -> usize {
        self.chunk.iter().product::<usize>() * self.sample.bytes()
    }

    /// Returns the coordinates of the file that contains a chunk, and the number of the chunk in it.
    pub fn file_of(&self, chunk: [usize; 3]) -> ([usize; 3], usize) {
        self.sharding.map_or((chunk, 0), |sharding| sharding.place(chunk))
    }

    /// Returns the path of the file with these coordinates, which are those of its chunk if it contains only one.
    pub fn file_path(&self, numbers: [usize; 3]) -> PathBuf {
        self.directory.join(self.keys.path(numbers))
    }

    /// Reports whether rows of a chunk cannot be read separately from the others.
    pub fn is_encoded(&self) -> bool {
        self.codec != ChunkCodec::default()
    }

    /// Returns the largest number of bytes of a stored chunk, as compressed data may be somewhat longer than
    /// uncompressed data.
    pub fn most_stored(&self) -> u64 {
        2 * self.chunk_bytes() as u64 + (1 << 16)
    }

    /// Returns text that identifies how chunks are stored.
    pub fn form(&self) -> String {
        let ChunkKeys { prefix, separator } = &self.keys;
        let ZarrArray { chunk, sample, big_endian, codec, sharding, fill, .. } = self;
        format!("{prefix:?} {separator} {chunk:?} {sample} {big_endian} {codec:?} {sharding:?} {fill:?}\n")
    }

    /// Returns the range of bytes that rows of a frame take in a chunk; `frame` and `rows` are relative to the chunk.
    pub fn place_of(&self, frame: usize, rows: &Range<usize>) -> Range<usize> {
        let [_, high, wide] = self.chunk;
        let row = wide * self.sample.bytes();
        (frame * high + rows.start) * row..(frame * high + rows.end) * row
    }

    /// Returns the number of rows of a chunk that are best read at once: few if they can be read separately.
    pub fn rows_at_once(&self) -> usize {
        if self.is_encoded() { self.chunk[1] } else { ROWS_AT_ONCE.min(self.chunk[1]) }
    }

    /// Reads rows of a frame of a chunk, with the length that they have in the chunk.
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode).
    pub fn read_rows(
        &self,
        stored: &StoredChunk,
        frame: usize,
        rows: Range<usize>,
        out: &mut Vec<u8>,
    ) -> Result<(), ZarrChunkError> {
        let place = self.place_of(frame, &rows);
        out.clear();
        if self.is_encoded() {
            let mut buffers = DecodeBuffers::default();
            self.decode(stored, &place, &mut buffers)?;
            out.extend_from_slice(&buffers.bytes[place]);
            return Ok(());
        }
        out.resize(place.len(), 0);
        stored.read(self.start_of(stored)? + place.start as u64, out)
    }

    /// Passes the first `used` bytes of each of some rows of a frame of an uncompressed chunk to `put`.
    ///
    /// # Errors
    /// The reason why the chunk cannot be read, with the name of the file.
    pub fn each_row(
        &self,
        stored: &StoredChunk,
        frame: usize,
        rows: Range<usize>,
        used: usize,
        mut put: impl FnMut(usize, &[u8]),
    ) -> Result<(), ZarrChunkError> {
        let start = self.start_of(stored)?;
        let row_bytes = self.chunk[2] * self.sample.bytes();
        let at_once = (PIECE / row_bytes).clamp(1, rows.len().max(1));
        let mut piece = Vec::new();
        for first in rows.clone().step_by(at_once) {
            let count = at_once.min(rows.end - first);
            piece.resize((count - 1) * row_bytes + used, 0);
            stored.read(start + self.place_of(frame, &(first..first)).start as u64, &mut piece)?;
            piece.chunks(row_bytes).zip(first..).for_each(|(bytes, row)| put(row, &bytes[..used]));
        }
        Ok(())
    }

    /// Decodes a chunk into `buffers`; at least the `wanted` bytes of its samples are valid.
    ///
    /// # Errors
    /// The reason why the chunk cannot be read, with the name of the file.
    pub fn decode(
        &self,
        stored: &StoredChunk,
        wanted: &Range<usize>,
        buffers: &mut DecodeBuffers,
    ) -> Result<(), ZarrChunkError> {
        let (length, path) = (self.chunk_bytes(), &stored.path);
        let place = stored.place()?;
        buffers.bytes.resize((place.end - place.start).min(self.most_stored()) as usize, 0);
        stored.read(place.start, &mut buffers.bytes)?;
        let damaged = |error: DecodeError| ZarrChunkError::Damaged { path: path.shown(), error };
        if self.codec.checksum {
            let body = checked(&buffers.bytes).map_err(damaged)?.len();
            buffers.bytes.truncate(body);
        }
        match self.codec.compressor {
            Some(compressor) => buffers.decompress(compressor, length, wanted).map_err(damaged),
            None => self.check_length(buffers.bytes.len() as u64, path),
        }
    }

    /// Returns the offset of an uncompressed chunk in its file after checking its length.
    fn start_of(&self, stored: &StoredChunk) -> Result<u64, ZarrChunkError> {
        let place = stored.place()?;
        self.check_length(place.end - place.start, &stored.path)?;
        Ok(place.start)
    }

    fn check_length(&self, found: u64, path: &Path) -> Result<(), ZarrChunkError> {
        let (path, length) = (path.shown(), self.chunk_bytes() as u64);
        let compared = match found.cmp(&length) {
            Ordering::Equal => return Ok(()),
            Ordering::Greater => "more",
            Ordering::Less => "fewer",
        };
        Err(ZarrChunkError::Length { path, compared, length })
    }
}

/// Sides of an array and of its chunks or files, without leading dimensions of one element.
struct Sides {
    shape: [usize; 3],
    chunk: [usize; 3],
    /// Number of the leading dimensions.
    leading: usize,
}

impl Sides {
    /// Returns the sides that metadata list, if they can be read.
    fn checked(shape: &[u64], chunk: &[u64]) -> Result<Sides, ZarrArrayError> {
        let text = shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
        let leading = shape.len().saturating_sub(3);
        if shape.len() < 3 || shape.len() > 5 || chunk.len() != shape.len() || shape[..leading].iter().any(|&n| n != 1)
        {
            return Err(ZarrArrayError::Dimensions { shape: text });
        }
        let [frames, height, width] = [shape[leading], shape[leading + 1], shape[leading + 2]];
        if shape.contains(&0) || chunk.contains(&0) {
            return Err(ZarrArrayError::Empty { shape: text });
        }
        if frames > MAX_FRAMES || height > MAX_SIDE || width > MAX_SIDE || height * width > MAX_PIXELS {
            return Err(ZarrArrayError::TooLarge { shape: text });
        }
        // a chunk has one element along a leading dimension, as the dimension has
        if chunk[..leading].iter().any(|&n| n != 1) || chunk.iter().any(|&n| n > MAX_CHUNK) {
            return Err(ZarrArrayError::UnfitChunks { chunk: chunk.to_vec(), shape: text });
        }
        let three = |list: &[u64]| std::array::from_fn(|side| list[leading + side] as usize);
        Ok(Sides { shape: three(shape), chunk: three(chunk), leading })
    }
}
