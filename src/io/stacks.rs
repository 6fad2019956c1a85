//! The stacks of a run, wherever they come from.

use super::Stack;
use std::path::PathBuf;

/// The data and their fields.
#[derive(Debug)]
pub struct Stacks {
    pub data: Stack,
    /// Beam without sample, before the scan.
    pub flats: Option<Stack>,
    /// The same after the scan.
    pub flats2: Option<Stack>,
    /// No beam.
    pub darks: Option<Stack>,
    /// Of every projection, in degrees, where the input has them and they are wanted.
    pub angles: Option<Vec<f64>>,
}

impl Stacks {
    /// Data alone.
    pub fn of(data: Stack) -> Stacks {
        Stacks { data, flats: None, flats2: None, darks: None, angles: None }
    }
}

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
