//! Where the compressed slices of an HDF5 output are: a table in the file, which all jobs of a run share until the index of
//! the dataset is written from it.

use super::chunk_tree::StoredFrame;
use crate::files::Lock;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Numbers of a row: offset and bytes of a slice; or, after those of the slices, the end of what is in use of a part, and 0.
pub(super) const ROW: usize = 2;
/// Chunks begin at multiples of this.
const ALIGNMENT: u64 = 8;

/// The table in an open file.
#[derive(Debug)]
pub(super) struct SliceSpace {
    file: File,
    /// Of the table in the file.
    offset: u64,
    slices: usize,
    /// What other jobs lock while they reserve space.
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

    /// Says where the space of a part ends in its file before any slice is in it.
    pub fn start(&self, part: usize, end: u64) -> io::Result<()> {
        self.put(self.slices + part, [end.next_multiple_of(ALIGNMENT), 0])
    }

    /// Reserves bytes of a part and returns their offset.
    pub fn reserve(&self, part: usize, bytes: u64) -> io::Result<u64> {
        let _alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let _others = Lock::wait(&self.lock).map_err(|e| io::Error::other(e.to_string()))?;
        self.reserve_alone(part, bytes)
    }

    /// The same while no other job reserves any.
    pub fn reserve_alone(&self, part: usize, bytes: u64) -> io::Result<u64> {
        let [offset, _] = self.numbers(self.slices + part)?;
        let end = offset.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "is damaged; run again without --resume");
        self.put(self.slices + part, [end.ok_or_else(damaged)?, 0])?;
        Ok(offset)
    }

    /// Where the table is in the file, if the slices are in so many parts.
    pub fn extent(&self, parts: usize) -> Range<u64> {
        self.offset..self.row(self.slices + parts)
    }

    /// Where the space of a part ends that is in use.
    pub fn end(&self, part: usize) -> io::Result<u64> {
        Ok(self.numbers(self.slices + part)?[0])
    }

    /// Where a slice is.
    pub fn get(&self, slice: usize) -> io::Result<StoredFrame> {
        let [offset, bytes] = self.numbers(slice)?;
        let damaged = |_| io::Error::new(io::ErrorKind::InvalidData, "a slice has an impossible length; run again");
        Ok(StoredFrame { offset, bytes: u32::try_from(bytes).map_err(damaged)? })
    }

    pub fn set(&self, slice: usize, StoredFrame { offset, bytes }: StoredFrame) -> io::Result<()> {
        self.put(slice, [offset, bytes.into()])
    }
}
