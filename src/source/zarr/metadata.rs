//! Metadata of groups and arrays in their directories, and lookup of the array of an image.

use super::errors::ZarrDirectoryError;
use crate::files::read_text;
use crate::layout::zarr::{ATTRIBUTES, GROUP, METADATA, ZarrVersion, first_level, is_array};
use crate::visible::Shown;
use serde_json::Value;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Reports whether a path is that of a Zarr group or array.
pub fn is_zarr(path: &Path) -> bool {
    [METADATA, GROUP, ZarrVersion::V2.array_file(), ATTRIBUTES].iter().any(|name| path.join(name).is_file())
}

/// Reads the attributes of the group or array in a directory; null if there are none.
///
/// # Errors
/// When they are not JSON, with the name of the file.
pub fn attributes(directory: &Path) -> Result<Value, ZarrDirectoryError> {
    match json_of(&directory.join(METADATA))? {
        Some(meta) => Ok(meta["attributes"].clone()),
        None => Ok(json_of(&directory.join(ATTRIBUTES))?.unwrap_or_default()),
    }
}

/// Reads a file of metadata, if it exists.
pub(super) fn json_of(path: &Path) -> Result<Option<Value>, ZarrDirectoryError> {
    match read_text(path) {
        Ok(text) => {
            let json = serde_json::from_str(&text);
            Ok(Some(json.map_err(|error| ZarrDirectoryError::NoJson { path: path.shown(), error })?))
        }
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ZarrDirectoryError::Unreadable { path: path.shown(), error }),
    }
}

/// Returns the directory of the array to read: the path itself, or the first level of the first image of a group.
pub(super) fn array_of(path: &Path) -> Result<PathBuf, ZarrDirectoryError> {
    let group = json_of(&path.join(METADATA))?;
    if path.join(ZarrVersion::V2.array_file()).is_file() || group.is_some_and(|meta| is_array(&meta)) {
        return Ok(path.to_owned());
    }
    let attributes = attributes(path)?;
    let level = first_level(&attributes).ok_or_else(|| no_image(path))?;
    let plain = Path::new(level).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !plain {
        return Err(ZarrDirectoryError::Outside { level: level.to_owned() });
    }
    Ok(path.join(level))
}

/// Returns the message about a group that is not an image, but may contain images or arrays.
fn no_image(path: &Path) -> ZarrDirectoryError {
    let entries = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    match entries.filter(|inside| is_zarr(inside)).min() {
        Some(first) => ZarrDirectoryError::NoImage { first: first.shown() },
        None => ZarrDirectoryError::Empty,
    }
}
