//! Bytes of a file that has an index.

use super::checksum;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// An address that stands for nothing.
pub(super) const UNDEFINED: u64 = u64::MAX;

/// A file that is read as an index, and how many more bytes of it may be read: no valid index has more than its file.
pub(super) struct IndexFile<'a> {
    file: &'a File,
    left: u64,
}

impl IndexFile<'_> {
    /// A file of `length` bytes.
    pub fn new(file: &File, length: u64) -> IndexFile<'_> {
        IndexFile { file, left: length }
    }

    /// Reads bytes from an address on.
    pub fn read(&mut self, at: u64, length: u64) -> Option<IndexBytes> {
        self.left = self.left.checked_sub(length)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(IndexBytes(bytes))
    }

    /// The same with a checksum at the end, which is verified.
    pub fn read_checked(&mut self, at: u64, length: u64) -> Option<IndexBytes> {
        let bytes = self.read(at, length)?;
        let (data, sum) = bytes.0.split_last_chunk()?;
        // a fuzzer would not get past it
        (cfg!(fuzzing) || checksum::lookup3(data) == u32::from_le_bytes(*sum)).then_some(bytes)
    }
}

/// Bytes of a file, with numbers of up to 8 bytes, little-endian.
pub(super) struct IndexBytes(pub Vec<u8>);

impl IndexBytes {
    /// The number at a place, unless it is outside.
    pub fn number(&self, at: usize, length: usize) -> Option<u64> {
        number(&self.0, at, length)
    }
}

/// A number among bytes, little-endian.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..length)?.copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
    Some(u64::from_le_bytes(number))
}
