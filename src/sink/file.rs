//! Files of an output, with errors that contain advice.

use super::errors::SliceOutputError;
use crate::error::{Error, Result};
use crate::files::AtomicFile;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Creates a temporary file of an output.
pub(super) fn create(path: &Path) -> Result<AtomicFile> {
    AtomicFile::create(path).map_err(|error| {
        if error.kind() == ErrorKind::InvalidInput {
            return Error::output(path, error);
        }
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Error::output(directory, SliceOutputError::CannotWriteHere { error })
    })
}

/// Renames a file to its final name.
pub(super) fn finish(file: AtomicFile, overwrite: bool) -> Result<()> {
    let path = file.path().to_owned();
    if !overwrite && path.exists() {
        return Err(Error::output(&path, SliceOutputError::Created));
    }
    file.finish().map_err(|error| Error::output(&path, SliceOutputError::NotRenamed { error }))
}

/// Returns the error of writing to a file.
pub(super) fn failed(path: &Path, error: &io::Error) -> Error {
    Error::output(path, SliceOutputError::NotWritten { error: error.to_string() })
}
