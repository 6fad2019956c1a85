//! Request for datasets of an HDF5 file, and description of its contents.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Path of a dataset that means that none is used.
pub const NOTHING: &str = "none";

/// An HDF5 file, and paths of datasets in it; those that are not given are located, and [`NOTHING`] means none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hdf5Input {
    pub file: PathBuf,
    pub data: Option<String>,
    pub flats: Option<String>,
    pub darks: Option<String>,
    pub angles: Option<String>,
    /// What every frame is, as NXtomo's `image_key` says it.
    pub keys: Option<String>,
}

/// How a scan was taken, as far as its file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hdf5Measures {
    /// In keV.
    pub energy: Option<Hdf5Measure>,
    /// From the sample to the detector.
    pub distance: Option<Hdf5Measure>,
    /// Of the detector, before binning.
    pub pixel_size: Option<Hdf5Measure>,
}

/// A value above 0 with its unit, as flags have it, and the path of its dataset.
#[derive(Clone, Debug, PartialEq)]
pub struct Hdf5Measure {
    pub value: f64,
    pub unit: &'static str,
    pub dataset: String,
}

/// Contents of an HDF5 file.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Contents {
    /// Path, shape, type and storage of every dataset of at least two dimensions, and of every list of numbers.
    pub datasets: Vec<String>,
    /// The scan that is read when no dataset is named,
    pub scan: Option<Hdf5Scan>,
    /// or why there is none.
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
    /// Number of its frames that are used.
    pub frames: usize,
    /// Pixels.
    pub width: usize,
    pub height: usize,
    /// Type, chunks and filters.
    pub stored: String,
}

/// Angles of the projections.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Angles {
    pub dataset: String,
    pub count: usize,
    /// Degrees.
    pub smallest: f64,
    pub largest: f64,
    /// As in the file.
    pub unit: Option<String>,
}
