//! Replacement for the reader in a build without HDF5.

use super::{Hdf5Contents, Hdf5Input};
use crate::error::{Error, Result};
use crate::source::Stacks;
use std::path::Path;

fn missing() -> Error {
    Error::usage(
        "--hdf5: this fbp was built without HDF5; build it with `cargo build --release --locked --features hdf5`, which needs \
         the HDF5 library (libhdf5-dev on Debian and Ubuntu)",
    )
}

/// Checks that this build reads HDF5.
///
/// # Errors
/// [`Error::Usage`]: it does not.
pub fn built_in() -> Result<()> {
    Err(missing())
}

/// Opens a scan.
///
/// # Errors
/// Those of [`built_in`].
pub fn open(_: &Hdf5Input, _: bool, _: u64) -> Result<Stacks> {
    Err(missing())
}

/// Whether a file is HDF5; always false in this build.
pub fn is_hdf5(_: &Path) -> bool {
    false
}

/// Contents of a file.
///
/// # Errors
/// Those of [`built_in`].
pub fn contents(_: &Path) -> Result<Hdf5Contents> {
    Err(missing())
}
