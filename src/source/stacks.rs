//! The stacks of a run.

use super::Stack;
use std::path::{Path, PathBuf};

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
    /// Angle of every projection in degrees, if the input has them and they are used.
    pub angles: Option<Vec<f64>>,
    /// Bytes that reading the data takes besides the values.
    pub held: u64,
}

impl Stacks {
    /// Data without fields.
    pub fn of(data: Stack) -> Stacks {
        let held = data.held();
        Stacks { data, flats: None, flats2: None, darks: None, angles: None, held }
    }

    /// The files of all stacks.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let stacks = [Some(&self.data), self.flats.as_ref(), self.flats2.as_ref(), self.darks.as_ref()];
        stacks.into_iter().flatten().flat_map(Stack::files).map(PathBuf::as_path)
    }
}
