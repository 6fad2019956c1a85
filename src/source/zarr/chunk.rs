//! Files of chunks.

use super::errors::ZarrChunkError;
use crate::files::open_regular;
use crate::visible::Shown;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Open file that contains a chunk.
#[derive(Debug)]
pub struct StoredChunk {
    pub file: File,
    pub path: PathBuf,
    /// Range of bytes of the chunk in the file, if the file contains several chunks.
    pub bytes: Option<Range<u64>>,
}

impl StoredChunk {
    /// Opens the file of one chunk.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn open(path: PathBuf) -> io::Result<StoredChunk> {
        Ok(StoredChunk { file: open_regular(&path)?, path, bytes: None })
    }

    fn unreadable(&self, error: io::Error) -> ZarrChunkError {
        ZarrChunkError::Unreadable { path: self.path.shown(), error }
    }

    /// Returns the range of bytes of the chunk in the file.
    pub(super) fn place(&self) -> Result<Range<u64>, ZarrChunkError> {
        match &self.bytes {
            Some(bytes) => Ok(bytes.clone()),
            None => Ok(0..self.file.metadata().map_err(|e| self.unreadable(e))?.len()),
        }
    }

    /// Reads bytes from an offset of the file on.
    pub(super) fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), ZarrChunkError> {
        self.file.read_exact_at(out, offset).map_err(|e| self.unreadable(e))
    }
}
