//! The stacks of a run.

use super::{Binning, Hdf5Measures, Stack};
use crate::error::Result;
use std::path::{Path, PathBuf};

/// The data of a run and their fields.
#[derive(Debug)]
pub struct Stacks {
    pub data: Stack,
    /// Frames of the beam without sample, taken before the scan.
    pub flats: Option<Stack>,
    /// Frames of the beam without sample, taken after the scan.
    pub flats2: Option<Stack>,
    /// Frames without beam.
    pub darks: Option<Stack>,
    /// Angle of every projection in degrees, if the input contains angles and they are used.
    pub angles: Option<Vec<f64>>,
    /// What the input says of the acquisition, for pixels that are not binned.
    pub measures: Hdf5Measures,
    /// Number of bytes that reading the data takes in addition to the values.
    pub held: u64,
}

impl Stacks {
    /// Creates stacks of data without fields.
    pub fn of(data: Stack) -> Stacks {
        let held = data.held();
        let measures = Hdf5Measures::default();
        Stacks { data, flats: None, flats2: None, darks: None, angles: None, measures, held }
    }

    /// Bins the pixels of all stacks.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) when no pixels of one would remain.
    pub(super) fn binned(self, binning: Binning) -> Result<Stacks> {
        let binned = |stack: Stack| stack.binned(binning);
        Ok(Stacks {
            data: binned(self.data)?,
            flats: self.flats.map(binned).transpose()?,
            flats2: self.flats2.map(binned).transpose()?,
            darks: self.darks.map(binned).transpose()?,
            ..self
        })
    }

    /// Returns the files of all stacks.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let stacks = [Some(&self.data), self.flats.as_ref(), self.flats2.as_ref(), self.darks.as_ref()];
        stacks.into_iter().flatten().flat_map(Stack::files).map(PathBuf::as_path)
    }
}
