//! Replacement for the reader in a build without HDF5.

use super::built_in::Hdf5BuildError;
use super::{Hdf5Contents, Hdf5Input};
use crate::error::{Error, Result};
use crate::source::{ScanMeasures, Stack, Stacks};
use std::path::Path;

fn missing() -> Error {
    Hdf5BuildError::Missing.into()
}

/// Opens a scan.
///
/// # Errors
/// The errors of [`built_in`](super::built_in()).
pub fn open(_: &Hdf5Input, _: bool, _: u64) -> Result<Stacks> {
    Err(missing())
}

/// Reads the parameters of the acquisition.
///
/// # Errors
/// The errors of [`built_in`](super::built_in()).
pub fn measures(_: &Hdf5Input) -> Result<ScanMeasures> {
    Err(missing())
}

/// Reports whether a file is HDF5; always false in this build.
pub fn is_hdf5(_: &Path) -> bool {
    false
}

/// Returns the file and the dataset that a path of a stack means; `None` in this build.
pub fn dataset_path(_: &str) -> Option<(&Path, Option<&str>)> {
    None
}

/// Opens a dataset as a stack.
///
/// # Errors
/// The errors of [`built_in`](super::built_in()).
pub fn stack(_: &Path, _: Option<&str>, _: &str, _: u64) -> Result<Stack> {
    Err(missing())
}

/// Describes the contents of a file.
///
/// # Errors
/// The errors of [`built_in`](super::built_in()).
pub fn contents(_: &Path) -> Result<Hdf5Contents> {
    Err(missing())
}
