//! Values that are read without the library, on all threads: contiguous values, chunks, and virtual datasets made of
//! them.

use super::chunks::{ChunkedDataset, ChunkedValues, PartMemory, known_filters};
use super::datasets::{MAX_FRAMES, files};
use super::errors::{Hdf5Result, Hdf5SourceError, Hdf5ValuesError};
use super::links::{self, DEPTH, source_file};
use crate::files::open_regular;
use crate::layout::to_f32;
use crate::source::SampleType;
use crate::source::chunk_memory::ChunkMemory;
use crate::visible::Shown;
use hdf5_metno::dataset::Layout;
use hdf5_metno::plist::dataset_create::DatasetCreate;
use hdf5_metno::{Dataset, Datatype, File};
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vds_sys::{Blocks, Mapping, SelectedValues};

/// Bytes that are read and converted at once.
const PIECE: usize = 1 << 20;
/// Largest number of frames of virtual datasets that are listed in all, as virtual datasets may be made of virtual
/// ones.
const LISTED_FRAMES: usize = 4 * MAX_FRAMES;

/// Values of a dataset, or of the sources of a virtual dataset.
#[derive(Debug)]
pub(super) struct DirectValues {
    pub big_endian: bool,
    sample: SampleType,
    /// Number of rows of a frame.
    height: usize,
    /// Number of bins of a row.
    width: usize,
    parts: Vec<DirectPart>,
    /// Places of the frames of a virtual dataset; otherwise all frames are in the only part.
    places: Option<Arc<[FramePlace]>>,
    memory: ChunkMemory,
    /// Number of bytes that chunks and the tables of their places take.
    pub held: u64,
}

/// Dataset with values of its own.
#[derive(Debug)]
struct DirectPart {
    /// Number of the file that contains the values.
    file: usize,
    storage: PartStorage,
}

#[derive(Debug)]
enum PartStorage {
    /// Contiguous values, with the offset of the first one in bytes.
    Contiguous(u64),
    Chunks(ChunkedValues),
}

/// Place of a frame: the number of the part, and of the frame in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FramePlace {
    part: u32,
    frame: u32,
}

const NOWHERE: FramePlace = FramePlace { part: u32::MAX, frame: u32::MAX };

/// Properties of a dataset whose values are to be read directly.
pub(super) struct DirectRequest<'a> {
    pub dataset: &'a Dataset,
    /// Type of a sample, in the byte order of the dataset.
    pub kind: &'a Datatype,
    pub sample: SampleType,
    pub big_endian: bool,
    /// Number of frames, rows and bins.
    pub shape: [usize; 3],
    /// True if values are read repeatedly.
    pub repeatedly: bool,
    /// Number of bytes that are available to the run.
    pub memory: u64,
}

impl DirectValues {
    /// Finds the values; `None` if only the library can read them. `files` begins with the file of the dataset; those
    /// of the sources are added.
    ///
    /// # Errors
    /// When values are not within their file.
    pub fn find(of: &DirectRequest, files: &mut Vec<PathBuf>) -> Hdf5Result<Option<DirectValues>> {
        let [_, height, width] = of.shape;
        let numbers = files.iter().cloned().zip(0..).collect();
        let mut search =
            DirectSearch { of, numbers, parts: Vec::new(), known: HashMap::new(), listed: 0, files: files.clone() };
        let holder = files[0].clone();
        let Some(frames) = search.frames_of(&holder, of.dataset, DEPTH)? else { return Ok(None) };
        let places = match frames {
            FrameList::Part { .. } => None,
            FrameList::Listed(places) => Some(places),
        };
        *files = search.files;
        let parts = search.parts;
        let chunked = || parts.iter().filter_map(DirectPart::chunks);
        let sizes: Vec<_> = chunked().map(|values| values.sizes(of.repeatedly)).collect();
        let memory = ChunkMemory::new(&sizes, of.memory);
        let listed = places.as_ref().map_or(0, |places| size_of_val(&places[..]) as u64);
        let held = listed + memory.held + chunked().map(ChunkedValues::places_bytes).sum::<u64>();
        let (sample, big_endian) = (of.sample, of.big_endian);
        Ok(Some(DirectValues { big_endian, sample, height, width, parts, places, memory, held }))
    }

    /// Returns the number of the file that contains a frame.
    pub fn file_of(&self, frame: usize) -> usize {
        let (part, _) = self.place(frame);
        self.parts[part].file
    }

    /// Reports whether reading some rows of a frame takes about as long as reading all of it.
    pub fn are_whole_frames(&self) -> bool {
        self.parts.iter().all(|part| part.chunks().is_some_and(ChunkedValues::are_whole_frames))
    }

    /// Returns the number of the part that contains a frame, and the number of the frame in it.
    fn place(&self, frame: usize) -> (usize, usize) {
        match &self.places {
            None => (0, frame),
            Some(places) => (places[frame].part as usize, places[frame].frame as usize),
        }
    }

    /// Reads rows of a frame from its file as f32.
    pub fn read_f32(&self, file: &std::fs::File, frame: usize, rows: &Range<usize>, out: &mut [f32]) -> Hdf5Result<()> {
        let (part, frame) = self.place(frame);
        match &self.parts[part].storage {
            PartStorage::Contiguous(offset) => self.read_contiguous(file, self.position(*offset, frame, rows), out),
            PartStorage::Chunks(values) => {
                values.read(file, PartMemory { chunks: &self.memory, part }, frame, rows, |at, bytes| {
                    let out = &mut out[at..at + bytes.len() / self.sample.bytes()];
                    to_f32(bytes, self.sample, self.big_endian, out);
                })
            }
        }
    }

    /// Reads rows of a frame from its file as they are stored.
    pub fn read_stored(
        &self,
        file: &std::fs::File,
        frame: usize,
        rows: &Range<usize>,
        out: &mut [u8],
    ) -> Hdf5Result<()> {
        let (part, frame) = self.place(frame);
        match &self.parts[part].storage {
            PartStorage::Contiguous(offset) => {
                let read = file.read_exact_at(out, self.position(*offset, frame, rows));
                Ok(read.map_err(Hdf5ValuesError::unreadable)?)
            }
            PartStorage::Chunks(values) => {
                values.read(file, PartMemory { chunks: &self.memory, part }, frame, rows, |at, bytes| {
                    out[at * self.sample.bytes()..][..bytes.len()].copy_from_slice(bytes);
                })
            }
        }
    }

    fn read_contiguous(&self, file: &std::fs::File, start: u64, out: &mut [f32]) -> Hdf5Result<()> {
        let size = self.sample.bytes();
        let mut at = start;
        let mut bytes = vec![0; PIECE.min(out.len() * size)];
        for out in out.chunks_mut(PIECE / size) {
            let bytes = &mut bytes[..out.len() * size];
            file.read_exact_at(bytes, at).map_err(Hdf5ValuesError::unreadable)?;
            to_f32(bytes, self.sample, self.big_endian, out);
            at += bytes.len() as u64;
        }
        Ok(())
    }

    /// Returns the position of rows in the file of contiguous values.
    fn position(&self, offset: u64, frame: usize, rows: &Range<usize>) -> u64 {
        let row = frame as u64 * self.height as u64 + rows.start as u64;
        offset + row * self.width as u64 * self.sample.bytes() as u64
    }
}

impl DirectPart {
    fn chunks(&self) -> Option<&ChunkedValues> {
        match &self.storage {
            PartStorage::Contiguous(_) => None,
            PartStorage::Chunks(values) => Some(values),
        }
    }
}

/// Places of the frames of a dataset.
#[derive(Clone)]
enum FrameList {
    /// All frames are in one part.
    Part { part: u32, frames: usize },
    /// Every frame has a place of its own.
    Listed(Arc<[FramePlace]>),
}

impl FrameList {
    fn len(&self) -> usize {
        match self {
            FrameList::Part { frames, .. } => *frames,
            FrameList::Listed(places) => places.len(),
        }
    }

    fn place(&self, frame: usize) -> FramePlace {
        match self {
            FrameList::Part { part, .. } => FramePlace { part: *part, frame: frame as u32 },
            FrameList::Listed(places) => places[frame],
        }
    }
}

/// Search for the values of a dataset. Sources of a virtual dataset must have the same rows, bins and type.
struct DirectSearch<'a> {
    of: &'a DirectRequest<'a>,
    files: Vec<PathBuf>,
    /// Numbers of the files.
    numbers: HashMap<PathBuf, usize>,
    parts: Vec<DirectPart>,
    /// Sources that were opened, with their numbers of dimensions.
    known: HashMap<(PathBuf, String), (FrameList, usize)>,
    /// Number of frames of virtual datasets that were listed.
    listed: usize,
}

impl DirectSearch<'_> {
    /// Returns the places of the frames of a dataset of the file `holder`.
    fn frames_of(&mut self, holder: &Path, dataset: &Dataset, depth: usize) -> Hdf5Result<Option<FrameList>> {
        let [_, height, width] = self.of.shape;
        let frames = match dataset.shape()[..] {
            [frames, rows, bins] if (rows, bins) == (height, width) => frames,
            [rows, bins] if (rows, bins) == (height, width) => 1,
            _ => return Ok(None),
        };
        let kind = dataset.dtype().is_ok_and(|kind| kind == *self.of.kind);
        let Some(plist) = dataset.dcpl().ok().filter(|_| kind && (1..=MAX_FRAMES).contains(&frames)) else {
            return Ok(None);
        };
        match plist.layout() {
            Layout::Virtual if depth > 0 => self.joined(holder, dataset, &plist, frames, depth - 1),
            Layout::Chunked if known_filters(&plist, self.of.sample).is_some() => {
                self.part(holder, dataset, frames, true)
            }
            Layout::Contiguous if plist.external().is_empty() => self.part(holder, dataset, frames, false),
            _ => Ok(None),
        }
    }

    /// Adds a dataset with values of its own.
    fn part(
        &mut self,
        holder: &Path,
        dataset: &Dataset,
        frames: usize,
        chunked: bool,
    ) -> Hdf5Result<Option<FrameList>> {
        let file = open_regular(holder).map_err(Hdf5ValuesError::unreadable)?;
        let [_, height, width] = self.of.shape;
        let shape = [frames, height, width];
        let storage = if chunked {
            let DirectRequest { sample, big_endian, .. } = *self.of;
            let of = ChunkedDataset { dataset, file: &file, shape, sample, big_endian };
            ChunkedValues::find(&of)?.map(PartStorage::Chunks)
        } else {
            let length = file.metadata().map_err(Hdf5ValuesError::unreadable)?.len();
            let values = shape.iter().fold(1, |values: u64, &side| values.saturating_mul(side as u64));
            let bytes = values.saturating_mul(self.of.sample.bytes() as u64);
            match dataset.offset() {
                Some(offset) if offset.saturating_add(bytes) > length => {
                    return Err(Hdf5ValuesError::PastEnd { length }.into());
                }
                offset => offset.map(PartStorage::Contiguous),
            }
        };
        let Some(storage) = storage else { return Ok(None) };
        let part = self.parts.len() as u32;
        let file = self.number_of(holder);
        self.parts.push(DirectPart { file, storage });
        Ok(Some(FrameList::Part { part, frames }))
    }

    fn number_of(&mut self, file: &Path) -> usize {
        if let Some(&number) = self.numbers.get(file) {
            return number;
        }
        self.numbers.insert(file.to_owned(), self.files.len());
        self.files.push(file.to_owned());
        self.files.len() - 1
    }

    /// Returns the places of the frames of a virtual dataset, if each of them is a whole frame of a source.
    fn joined(
        &mut self,
        holder: &Path,
        dataset: &Dataset,
        plist: &DatasetCreate,
        frames: usize,
        depth: usize,
    ) -> Hdf5Result<Option<FrameList>> {
        self.listed += frames;
        let Some(mappings) = vds_sys::mappings(plist).filter(|_| self.listed <= LISTED_FRAMES) else { return Ok(None) };
        let mut places = vec![NOWHERE; frames];
        for mapping in mappings {
            let Some((source, rank)) = self.source(holder, &mapping, depth)? else {
                return Ok(None);
            };
            let Some(to) = self.whole_frames(&mapping.to, dataset.ndim(), frames) else { return Ok(None) };
            let Some(from) = self.whole_frames(&mapping.from, rank, source.len()) else { return Ok(None) };
            if to.count * to.block != from.count * from.block {
                return Ok(None);
            }
            for (to, from) in each(to).zip(each(from)) {
                if std::mem::replace(&mut places[to], source.place(from)) != NOWHERE {
                    return Ok(None);
                }
            }
        }
        // other frames are fill values
        Ok((!places.contains(&NOWHERE)).then(|| FrameList::Listed(places.into())))
    }

    /// Returns the places of the frames of a source, and its number of dimensions. A missing source is left to the
    /// library, whose preparation reports it.
    fn source(&mut self, holder: &Path, mapping: &Mapping, depth: usize) -> Hdf5Result<Option<(FrameList, usize)>> {
        let name = &mapping.dataset;
        // a pattern stands for any number of files
        let Some(path) = source_file(mapping, holder).flatten() else { return Ok(None) };
        let key = (path, name.clone());
        if let Some((list, rank)) = self.known.get(&key) {
            return Ok(Some((list.clone(), *rank)));
        }
        // the library would wait forever for a named pipe
        let Ok(_) = open_regular(&key.0) else { return Ok(None) };
        let Ok(opened) = File::open(&key.0) else { return Ok(None) };
        let Ok(dataset) = links::dataset(&opened, name) else { return Ok(None) };
        // links may lead to other files
        let holder = files(&key.0, &dataset).swap_remove(0);
        let list = self.frames_of(&holder, &dataset, depth).map_err(|error| {
            let (dataset, file) = (name.clone(), key.0.shown());
            Hdf5SourceError::Unusable { dataset, file, error }
        })?;
        let found = list.map(|list| (list, dataset.ndim()));
        if let Some(found) = &found {
            self.known.insert(key, found.clone());
        }
        Ok(found)
    }

    /// Returns the frames that a selection of a dataset consists of, if it consists of whole frames.
    fn whole_frames(&self, selected: &SelectedValues, rank: usize, frames: usize) -> Option<Blocks> {
        let one = |count: usize| Blocks { start: 0, stride: 1, count: count as u64, block: 1 };
        let SelectedValues::Blocks(sides) = selected else {
            return (*selected == SelectedValues::All).then(|| one(frames));
        };
        let (along, rows, bins) = match sides[..] {
            [along, rows, bins] if rank == 3 => (along, rows, bins),
            [rows, bins] if rank == 2 => (one(1), rows, bins),
            _ => return None,
        };
        let [_, height, width] = self.of.shape;
        let all = |blocks: &Blocks, side: usize| {
            let joined = blocks.count == 1 || blocks.stride == blocks.block;
            blocks.start == 0 && joined && blocks.count.checked_mul(blocks.block) == Some(side as u64)
        };
        let apart = along.count <= 1 || along.stride >= along.block;
        let end = along.count.checked_sub(1)?.checked_mul(along.stride)?.checked_add(along.start)?;
        let inside = end.checked_add(along.block)? <= frames as u64;
        (all(&rows, height) && all(&bins, width) && apart && inside).then_some(along)
    }
}

/// Iterates over the frames in blocks, in order.
fn each(blocks: Blocks) -> impl Iterator<Item = usize> {
    (0..blocks.count).flat_map(move |number| {
        let start = blocks.start + number * blocks.stride;
        (start..start + blocks.block).map(|frame| frame as usize)
    })
}
