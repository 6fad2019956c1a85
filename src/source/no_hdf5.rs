//! In place of `hdf5`, in a build without it.

use super::stacks::{Hdf5Contents, Hdf5Input, Stacks};
use crate::error::{Error, Result};
use std::path::Path;

fn missing() -> Error {
    Error::usage(
        "--hdf5: this fbp was built without HDF5; build it with `cargo build --release --locked --features hdf5`, which needs \
         the HDF5 library (libhdf5-dev on Debian and Ubuntu)",
    )
}

/// That this build reads HDF5.
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

/// Whether a file is HDF5, as far as this build can tell.
pub fn is_hdf5(_: &Path) -> bool {
    false
}

/// What a file holds.
///
/// # Errors
/// Those of [`built_in`].
pub fn contents(_: &Path) -> Result<Hdf5Contents> {
    Err(missing())
}
