//! Open files, whose slices are read and written without the library.

use super::errors::Hdf5OutputError;
use super::file::{DATA_PATH, PART_DATA_PATH, open_closed, own_dataset};
use crate::layout::codec::{DecodeBuffers, Pipeline, shuffled};
use crate::layout::hdf5::index::tree_address;
use crate::layout::hdf5::{ChunkTree, StoredFrame, Superblock, UNDEFINED};
use crate::sink::page::EncodedPage;
use crate::sink::volume::container::{OpenVolume, WrittenSlices};
use crate::sink::volume::description::VolumeDescription;
use crate::sink::volume::errors::invalid;
use crate::sink::volume::marks::Marks;
use crate::sink::volume::space::SliceSpace;
use rayon::prelude::*;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Largest compression ratio of deflate.
const DEFLATES: u64 = 1032;

/// Open HDF5 output.
pub(super) struct OpenHdf5 {
    pub description: VolumeDescription,
    /// Files that contain the samples, with the offset at which the samples begin.
    pub files: Vec<(fs::File, u64)>,
    pub paths: Vec<PathBuf>,
    pub marks: Marks,
    /// Offset of the marks in the file.
    pub marks_at: u64,
    /// Table of compressed slices, if they are compressed.
    pub space: Option<SliceSpace>,
}

impl OpenHdf5 {
    /// Returns the file and the offset of an uncompressed slice.
    fn place(&self, place: usize) -> (&fs::File, u64) {
        let parts = self.files.len();
        let (file, offset) = &self.files[place % parts];
        (file, offset + (place / parts) as u64 * self.description.slice_bytes() as u64)
    }

    /// Appends a slice as a chunk and returns the CRC-32 of its samples.
    fn append(&self, space: &SliceSpace, place: usize, samples: &[u8]) -> io::Result<u32> {
        let chunk = shuffled(samples, self.description.dtype.bytes())?;
        let bytes = u32::try_from(chunk.len()).map_err(io::Error::other)?;
        let part = place % self.files.len();
        let offset = space.reserve(part, bytes.into())?;
        self.files[part].0.write_all_at(&chunk, offset)?;
        space.set(place, StoredFrame { offset, bytes })?;
        Ok(crc32fast::hash(samples))
    }

    /// Reads a slice that is stored as a chunk.
    fn decode(&self, space: &SliceSpace, place: usize) -> io::Result<Vec<u8>> {
        let (file, _) = self.place(place);
        let length = self.description.slice_bytes();
        let StoredFrame { offset, bytes } = space.get(place)?;
        // sizes that a damaged file claims must not take memory
        let (stored, in_file) = (u64::from(bytes), file.metadata()?.len());
        if offset.checked_add(stored).is_none_or(|end| end > in_file) || length as u64 > stored.saturating_mul(DEFLATES)
        {
            return Err(invalid(Hdf5OutputError::StoredLength));
        }
        let mut buffers = DecodeBuffers::default();
        buffers.bytes.resize(bytes as usize, 0);
        file.read_exact_at(&mut buffers.bytes, offset)?;
        let pipeline = Pipeline::shuffled(self.description.dtype.bytes());
        let pipeline = pipeline.ok_or_else(|| invalid(Hdf5OutputError::NoSampleSize))?;
        let decoded = pipeline.decode(0, &mut buffers, length, &(0..length));
        decoded.map_err(|e| invalid(Hdf5OutputError::Slice { place, error: e.into() }))?;
        Ok(buffers.bytes)
    }

    /// Returns the places of all slices of a part.
    fn frames(&self, space: &SliceSpace, part: usize) -> io::Result<Vec<StoredFrame>> {
        let places = (part..self.description.slices.len()).step_by(self.files.len());
        places.map(|place| space.get(place)).collect()
    }

    /// Returns the offset at which the header of the dataset of a part has the address of its chunk index.
    fn index_address(&self, part: usize) -> io::Result<u64> {
        let name = if self.description.parts.is_some() { PART_DATA_PATH } else { DATA_PATH };
        let file = open_closed(&self.paths[part])?;
        let header = vds_sys::header_address(&own_dataset(&file, name)?);
        let address = header.and_then(|header| tree_address(&self.files[part].0, header));
        address.ok_or_else(|| invalid(Hdf5OutputError::NoChunks))
    }

    /// Writes the chunk index of a part.
    fn index(&self, space: &SliceSpace, part: usize) -> io::Result<()> {
        let frames = self.frames(space, part)?;
        // no job writes slices any longer
        let start = space.reserve_alone(part, ChunkTree::bytes(frames.len()))?;
        write_tree(&ChunkTree::new(&frames, start), &self.files[part].0, start, self.index_address(part)?)
    }

    /// Writes the index that a part of another file with these slices must have, if that part has one, and returns its
    /// place.
    pub fn index_again(&self, part: usize, slices: &SliceSpace, file: &fs::File) -> io::Result<Option<Range<u64>>> {
        let address = self.index_address(part)?;
        let mut root = [0; 8];
        file.read_exact_at(&mut root, address)?;
        if u64::from_le_bytes(root) == UNDEFINED {
            return Ok(None);
        }
        let frames = self.frames(slices, part)?;
        let end = slices.end(part)?;
        let in_file = file.metadata()?.len();
        let start = end.checked_sub(ChunkTree::bytes(frames.len())).filter(|_| end <= in_file);
        let start = start.ok_or_else(|| invalid(Hdf5OutputError::IndexPlace))?;
        write_tree(&ChunkTree::new(&frames, start), &self.files[part].0, start, address)?;
        Ok(Some(start..end))
    }
}

impl OpenVolume for OpenHdf5 {
    fn description(&self) -> &VolumeDescription {
        &self.description
    }

    fn marks(&self) -> &Marks {
        &self.marks
    }

    fn write(&self, slices: &[(usize, EncodedPage)]) -> io::Result<WrittenSlices> {
        let written = slices.par_iter().map(|(place, page)| {
            if let Some(space) = &self.space {
                return Ok((*place, self.append(space, *place, page.samples())?));
            }
            let (file, offset) = self.place(*place);
            Ok((*place, page.write_at(file, offset)?.crc32))
        });
        Ok(WrittenSlices { slices: written.collect::<io::Result<_>>()?, coarser: None })
    }

    fn read(&self, place: usize) -> io::Result<Vec<u8>> {
        if let Some(space) = &self.space {
            return self.decode(space, place);
        }
        let (file, offset) = self.place(place);
        let mut samples = vec![0; self.description.slice_bytes()];
        file.read_exact_at(&mut samples, offset)?;
        Ok(samples)
    }

    fn is_as_written(&self, place: usize) -> io::Result<bool> {
        let Some(space) = &self.space else { return Ok(true) };
        let samples = self.decode(space, place)?;
        let StoredFrame { offset, bytes } = space.get(place)?;
        let mut stored = vec![0; bytes as usize];
        self.place(place).0.read_exact_at(&mut stored, offset)?;
        Ok(shuffled(&samples, self.description.dtype.bytes())? == stored)
    }

    fn complete(&self) -> io::Result<()> {
        let Some(space) = &self.space else { return Ok(()) };
        (0..self.files.len()).try_for_each(|part| self.index(space, part))
    }
}

/// Writes the index of a dataset at `start` of a file, which then ends with it, and the address of its root at `place` in
/// the header of the dataset. The library made the dataset without chunks; files of this version have no checksums.
fn write_tree(tree: &ChunkTree, file: &fs::File, start: u64, place: u64) -> io::Result<()> {
    let mut first = [0; Superblock::BYTES];
    file.read_exact_at(&mut first, 0)?;
    if Superblock::parse(&first).version != 0 {
        return Err(io::Error::other(Hdf5OutputError::Superblock));
    }
    file.write_all_at(&tree.nodes, start)?;
    file.write_all_at(&(start + tree.nodes.len() as u64).to_le_bytes(), Superblock::END)?;
    file.write_all_at(&tree.root.to_le_bytes(), place)
}

/// Reports whether two files have the same first `length` bytes, except for the skipped ranges.
pub(super) fn is_same(a: &fs::File, b: &fs::File, length: u64, skipped: &[Range<u64>]) -> io::Result<bool> {
    const BLOCK: u64 = 1 << 20;
    if a.metadata()?.len() < length || b.metadata()?.len() < length {
        return Ok(false);
    }
    let mut bounds: Vec<u64> = skipped.iter().flat_map(|range| [range.start, range.end]).collect();
    bounds.extend([0, length]);
    bounds.retain(|&bound| bound <= length);
    bounds.sort_unstable();
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for pair in bounds.windows(2).filter(|pair| !skipped.iter().any(|s| s.start <= pair[0] && pair[1] <= s.end)) {
        for at in (pair[0]..pair[1]).step_by(BLOCK as usize) {
            let bytes = BLOCK.min(pair[1] - at) as usize;
            left.resize(bytes, 0);
            right.resize(bytes, 0);
            a.read_exact_at(&mut left, at)?;
            b.read_exact_at(&mut right, at)?;
            if left != right {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
