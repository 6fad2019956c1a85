//! Files and directories of a volume before it has its final name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the file that is locked for operations that only one job may perform at a time.
pub(super) fn volume_lock(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.fbp-volume"))
}

/// Returns the path of a volume before it has its final name.
pub(super) fn unfinished(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.unfinished"))
}

/// Reports whether there is a file or directory with this name.
pub(super) fn is_there(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes a file, or a directory with everything in it, if it exists.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Err(e) => Err(e),
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.or_else(|e| if e.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(e) })
}
