//! Bytes of a file that contains an index.

use super::checksum;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Undefined address, which stands for an object that does not exist.
pub const UNDEFINED: u64 = u64::MAX;

/// File in which an index is read, with the number of bytes that may still be read: no valid index is larger than its
/// file.
pub(super) struct IndexFile<'a> {
    file: &'a File,
    left: u64,
}

impl IndexFile<'_> {
    /// Allows reading as many bytes as the file has, which is `length`.
    pub fn new(file: &File, length: u64) -> IndexFile<'_> {
        IndexFile { file, left: length }
    }

    /// Reads `length` bytes from the address `at` on.
    pub fn read(&mut self, at: u64, length: u64) -> Option<IndexBytes> {
        self.left = self.left.checked_sub(length)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(IndexBytes(bytes))
    }

    /// Reads `length` bytes from the address `at` on, and verifies the checksum at their end.
    pub fn read_checked(&mut self, at: u64, length: u64) -> Option<IndexBytes> {
        let bytes = self.read(at, length)?;
        let (data, sum) = bytes.0.split_last_chunk()?;
        // a fuzzer cannot produce valid checksums
        (cfg!(fuzzing) || checksum::lookup3(data) == u32::from_le_bytes(*sum)).then_some(bytes)
    }
}

/// Bytes of a file, which contain little-endian numbers of up to 8 bytes.
pub(super) struct IndexBytes(pub Vec<u8>);

impl IndexBytes {
    /// Returns the number of `length` bytes at `at`, unless it is outside.
    pub fn number(&self, at: usize, length: usize) -> Option<u64> {
        number(&self.0, at, length)
    }
}

/// Returns the little-endian number of `length` bytes at `at`.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..length)?.copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
    Some(u64::from_le_bytes(number))
}
