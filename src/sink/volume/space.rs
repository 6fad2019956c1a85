//! Table of the compressed slices of an HDF5 output. It is in the file, where all jobs of a run share it until the
//! index of the dataset is made from it.

use super::errors::invalid;
use crate::error::messages;
use crate::files::Lock;
use crate::layout::hdf5::StoredFrame;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

messages! {
    /// Errors of the table of compressed slices.
    enum SliceTableError: Output {
        Damaged => "is damaged"; "run again without --resume",
        SliceLength => "a slice has an impossible length"; "run again",
    }
}

/// Number of entries of a row: offset and length of a slice. For each part, a row after those of the slices has the end
/// of the space in use, and 0.
pub(super) const ROW: usize = 2;
/// Alignment of chunks in bytes.
const ALIGNMENT: u64 = 8;

/// Table in an open file.
#[derive(Debug)]
pub(super) struct SliceSpace {
    file: File,
    /// Offset of the table in the file.
    offset: u64,
    slices: usize,
    /// File that jobs lock while they reserve space.
    lock: PathBuf,
    alone: Mutex<()>,
}

impl SliceSpace {
    pub fn new(file: File, offset: u64, slices: usize, lock: PathBuf) -> SliceSpace {
        SliceSpace { file, offset, slices, lock, alone: Mutex::new(()) }
    }

    fn row(&self, number: usize) -> u64 {
        self.offset + (number * ROW * size_of::<u64>()) as u64
    }

    fn put(&self, row: usize, numbers: [u64; ROW]) -> io::Result<()> {
        self.file.write_all_at(&numbers.map(u64::to_le_bytes).concat(), self.row(row))
    }

    fn numbers(&self, row: usize) -> io::Result<[u64; ROW]> {
        let mut bytes = [[0; size_of::<u64>()]; ROW];
        self.file.read_exact_at(bytes.as_flattened_mut(), self.row(row))?;
        Ok(bytes.map(u64::from_le_bytes))
    }

    /// Stores the end of the space of a part in its file, before it contains any slice.
    pub fn start(&self, part: usize, end: u64) -> io::Result<()> {
        self.put(self.slices + part, [end.next_multiple_of(ALIGNMENT), 0])
    }

    /// Reserves bytes of a part and returns their offset.
    pub fn reserve(&self, part: usize, bytes: u64) -> io::Result<u64> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let _others = Lock::wait(&self.lock).map_err(io::Error::other)?;
        self.reserve_alone(part, bytes)
    }

    /// Reserves bytes of a part while no other job does so, and returns their offset.
    pub fn reserve_alone(&self, part: usize, bytes: u64) -> io::Result<u64> {
        let [offset, _] = self.numbers(self.slices + part)?;
        let end = offset.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
        let damaged = || invalid(SliceTableError::Damaged);
        self.put(self.slices + part, [end.ok_or_else(damaged)?, 0])?;
        Ok(offset)
    }

    /// Returns the range of bytes of the table in the file, if the slices are in `parts` parts.
    pub fn extent(&self, parts: usize) -> Range<u64> {
        self.offset..self.row(self.slices + parts)
    }

    /// Returns the end of the space of a part that is in use.
    pub fn end(&self, part: usize) -> io::Result<u64> {
        Ok(self.numbers(self.slices + part)?[0])
    }

    /// Returns the place of a slice.
    pub fn get(&self, slice: usize) -> io::Result<StoredFrame> {
        let [offset, bytes] = self.numbers(slice)?;
        let damaged = |_| invalid(SliceTableError::SliceLength);
        Ok(StoredFrame { offset, bytes: u32::try_from(bytes).map_err(damaged)? })
    }

    pub fn set(&self, slice: usize, StoredFrame { offset, bytes }: StoredFrame) -> io::Result<()> {
        self.put(slice, [offset, bytes.into()])
    }
}
