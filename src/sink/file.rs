//! Files of an output, with errors that contain advice.

use crate::error::{Error, Result};
use crate::files::AtomicFile;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Creates a temporary file of an output.
pub(super) fn create(path: &Path) -> Result<AtomicFile> {
    AtomicFile::create(path).map_err(|e| {
        if e.kind() == ErrorKind::InvalidInput {
            return Error::output(path, e);
        }
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Error::output(directory, format!("cannot write here: {e}; choose another --output"))
    })
}

/// Renames a file to its final name.
pub(super) fn finish(file: AtomicFile, overwrite: bool) -> Result<()> {
    let path = file.path().to_owned();
    if !overwrite && path.exists() {
        return Err(Error::output(
            &path,
            "was created in the meantime, perhaps by another run; choose another --output",
        ));
    }
    file.finish().map_err(|e| {
        let why = format!("cannot be renamed to its final name: {e}; check that the directory exists and is writable");
        Error::output(&path, why)
    })
}

/// Returns the error of writing to a file.
pub(super) fn failed(path: &Path, error: &io::Error) -> Error {
    Error::output(path, format!("cannot be written: {error}; free some space or choose another --output"))
}
