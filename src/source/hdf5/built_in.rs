//! The check that this build reads HDF5.

use crate::error::{Result, messages};

messages! {
    /// What a build without HDF5 says about it.
    pub(super) enum Hdf5BuildError: Usage {
        Missing =>
            "--hdf5: this fbp was built without HDF5";
            "build it with `cargo build --release --locked --features hdf5`, which needs the HDF5 library (libhdf5-dev \
             on Debian and Ubuntu)",
    }
}

/// Checks that this build reads HDF5.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) if it does not.
pub fn built_in() -> Result<()> {
    match cfg!(feature = "hdf5") {
        true => Ok(()),
        false => Err(Hdf5BuildError::Missing.into()),
    }
}
