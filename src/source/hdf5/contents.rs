//! Requests for datasets of an HDF5 file, and descriptions of its contents.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Path of a dataset which means that none is used.
pub const NOTHING: &str = "none";

/// HDF5 file, and paths of datasets in it; those that are not given are located, and [`NOTHING`] means none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hdf5Input {
    pub file: PathBuf,
    pub data: Option<String>,
    pub flats: Option<String>,
    pub darks: Option<String>,
    pub angles: Option<String>,
    /// List of the kinds of all frames, as NXtomo's `image_key`.
    pub keys: Option<String>,
    /// List of the currents of the storage ring, if it is read.
    #[serde(default)]
    pub currents: Option<String>,
}

/// Contents of an HDF5 file.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Contents {
    /// Path, shape, type and storage of every dataset of at least two dimensions, and of every list of numbers.
    pub datasets: Vec<String>,
    /// The scan that is read when no dataset is named, if there is one.
    pub scan: Option<Hdf5Scan>,
    /// Reason why there is no such scan.
    pub problem: Option<String>,
}

/// The scan of an HDF5 file.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Scan {
    pub layout: &'static str,
    pub projections: Hdf5Frames,
    pub flats: Option<Hdf5Frames>,
    pub flats_after: Option<Hdf5Frames>,
    pub darks: Option<Hdf5Frames>,
    pub angles: Option<Hdf5Angles>,
    /// Pixel size of the detector with its unit, as in the file.
    pub pixel_size: Option<String>,
    pub notes: Vec<String>,
}

/// Frames of a dataset.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Frames {
    pub dataset: String,
    /// Number of frames of the dataset that are used.
    pub frames: usize,
    /// Width of a frame in pixels.
    pub width: usize,
    /// Height of a frame in pixels.
    pub height: usize,
    /// Type, chunks and filters.
    pub stored: String,
}

/// Angles of the projections.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Angles {
    pub dataset: String,
    pub count: usize,
    /// Smallest angle in degrees.
    pub smallest: f64,
    /// Largest angle in degrees.
    pub largest: f64,
    /// Unit as given in the file.
    pub unit: Option<String>,
}
