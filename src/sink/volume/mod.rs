//! Outputs with all slices in one array: HDF5, NumPy and OME-Zarr.
//!
//! Slices go to a hidden file or directory next to the output, `.NAME.unfinished`, which gets its name when all slices
//! of the run are complete. It contains a mark for every slice, with its checksum, which is set when the samples are
//! written. Thus, several jobs may write to it, and a run that was stopped can be resumed.

mod container;
mod description;
mod errors;
mod format;
#[cfg(feature = "hdf5")]
mod hdf5;
mod marks;
mod npy;
mod output;
#[cfg(feature = "hdf5")]
mod parts;
mod paths;
mod sink;
#[cfg(feature = "hdf5")]
mod space;
mod stored;
mod zarr;

pub use description::VolumeDescription;

use super::target::Target;
use crate::error::{Result, messages};
#[cfg(feature = "hdf5")]
use hdf5::Hdf5File;
use npy::NpyFile;
use output::VolumeOutput;
use std::path::Path;
use zarr::ZarrDirectory;

messages! {
    /// What a build without HDF5 says to the name of an HDF5 file.
    #[cfg_attr(feature = "hdf5", allow(dead_code, reason = "it is in the list of messages of all builds"))]
    enum NoHdf5OutputError: Usage {
        Refused { spec: String } =>
            "--output {spec}: this fbp was built without HDF5";
            "build it with `cargo build --release --locked --features hdf5`, or name a directory, a TIFF or a \
             directory that ends in .zarr",
    }
}

/// Parses a specification that ends in `.zarr`.
pub(super) fn parse_zarr(spec: &str) -> Result<Option<Target>> {
    let name = spec.trim_end_matches('/');
    let is_zarr = name.to_ascii_lowercase().ends_with(".zarr");
    Ok(is_zarr.then(|| VolumeOutput::target(name, ZarrDirectory)))
}

/// Parses a specification that is the name of a NumPy file and not a directory.
pub(super) fn parse_npy(spec: &str) -> Result<Option<Target>> {
    let single = spec.to_ascii_lowercase().ends_with(".npy") && !Path::new(spec).is_dir();
    Ok(single.then(|| VolumeOutput::target(spec, NpyFile)))
}

/// Parses a specification that is the name of an HDF5 file and not a directory.
#[cfg(feature = "hdf5")]
pub(super) fn parse_hdf5(spec: &str) -> Result<Option<Target>> {
    let single = is_hdf5_name(spec) && !Path::new(spec).is_dir();
    Ok(single.then(|| VolumeOutput::target(spec, Hdf5File::new(spec))))
}

/// Refuses names of HDF5 files in a build without HDF5.
#[cfg(not(feature = "hdf5"))]
pub(super) fn parse_hdf5(spec: &str) -> Result<Option<Target>> {
    match is_hdf5_name(spec) {
        true => Err(NoHdf5OutputError::Refused { spec: spec.to_owned() }.into()),
        false => Ok(None),
    }
}

/// Reports whether a name has the extension of an HDF5 file.
fn is_hdf5_name(spec: &str) -> bool {
    let lower = spec.to_ascii_lowercase();
    [".h5", ".hdf5", ".hdf", ".nx", ".nxs"].iter().any(|end| lower.ends_with(end))
}

/// Returns the description in a finished output, if it has all slices in one array.
pub fn described_volume(path: &Path) -> Option<VolumeDescription> {
    let described = zarr::describe(path).or_else(|| npy::describe(path));
    #[cfg(feature = "hdf5")]
    let described = described.or_else(|| hdf5::describe(path));
    described
}
