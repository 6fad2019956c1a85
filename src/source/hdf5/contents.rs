//! What is asked of an HDF5 file, and what it holds.

use serde::Serialize;
use std::path::PathBuf;

/// What a path of a dataset must be for nothing to be taken.
pub const NOTHING: &str = "none";

/// An HDF5 file, and paths of datasets in it; what is not given is looked for, and [`NOTHING`] is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hdf5Input {
    pub file: PathBuf,
    pub data: Option<String>,
    pub flats: Option<String>,
    pub darks: Option<String>,
    pub angles: Option<String>,
}

/// What an HDF5 file holds.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Contents {
    /// Path, shape, type and storage of every dataset of at least two dimensions.
    pub datasets: Vec<String>,
    /// The scan that is taken from it when no dataset is named,
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
    /// Of the detector, with its unit, as the file says it.
    pub pixel_size: Option<String>,
    pub notes: Vec<String>,
}

/// Frames of a dataset.
#[derive(Clone, Debug, Serialize)]
pub struct Hdf5Frames {
    pub dataset: String,
    /// How many of its frames.
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
    /// As the file says it.
    pub unit: Option<String>,
}
