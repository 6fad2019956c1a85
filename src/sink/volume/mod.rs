//! Outputs with all slices in one array: HDF5 and OME-Zarr.
//!
//! Slices go to a hidden file or directory beside the output, `.NAME.unfinished`, which gets its name when all slices of the
//! run are there. Every slice has a mark in it, with its checksum, that is set when its samples are written. So several jobs
//! may write to it, and a run that was stopped goes on.

#[cfg(feature = "hdf5")]
mod chunk_tree;
mod container;
mod description;
mod format;
#[cfg(feature = "hdf5")]
mod hdf5;
mod marks;
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
#[cfg(not(feature = "hdf5"))]
use crate::error::Error;
use crate::error::Result;
#[cfg(feature = "hdf5")]
use hdf5::Hdf5File;
use output::VolumeOutput;
use std::path::Path;
use zarr::ZarrDirectory;

/// Reads a spec that ends in `.zarr`.
pub(super) fn parse_zarr(spec: &str) -> Result<Option<Target>> {
    let name = spec.trim_end_matches('/');
    let is_zarr = name.to_ascii_lowercase().ends_with(".zarr");
    Ok(is_zarr.then(|| VolumeOutput::target(name, ZarrDirectory)))
}

/// Reads a spec that is the name of an HDF5 file and not a directory.
#[cfg(feature = "hdf5")]
pub(super) fn parse_hdf5(spec: &str) -> Result<Option<Target>> {
    let single = is_hdf5_name(spec) && !Path::new(spec).is_dir();
    Ok(single.then(|| VolumeOutput::target(spec, Hdf5File::new(spec))))
}

/// Refuses names of HDF5 files in a build without HDF5.
#[cfg(not(feature = "hdf5"))]
pub(super) fn parse_hdf5(spec: &str) -> Result<Option<Target>> {
    match is_hdf5_name(spec) {
        true => Err(Error::usage(format!(
            "--output {spec}: this fbp was built without HDF5; build it with `cargo build --release --locked \
             --features hdf5`, or name a directory, a TIFF or a directory that ends in .zarr"
        ))),
        false => Ok(None),
    }
}

/// Whether a name is that of an HDF5 file.
fn is_hdf5_name(spec: &str) -> bool {
    let lower = spec.to_ascii_lowercase();
    [".h5", ".hdf5", ".hdf", ".nx", ".nxs"].iter().any(|end| lower.ends_with(end))
}

/// What a finished output says of itself, if it has all slices in one array.
pub fn described_volume(path: &Path) -> Option<VolumeDescription> {
    let zarr = zarr::describe(path);
    #[cfg(feature = "hdf5")]
    let zarr = zarr.or_else(|| hdf5::describe(path));
    zarr
}
