//! The stacks of a run.

use super::{BeamCurrents, Binning, DistortionMap, FrameRoles, ScanMeasures, Stack, StackPaths};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::fmt;
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
    /// Shift of the axis in every projection, in bins of the detector, if the input contains shifts and they are used.
    pub shifts: Option<Vec<f64>>,
    /// Distortion of the data and their fields by the optics, if it is corrected.
    pub distortion: Option<DistortionMap>,
    /// What the frames of an HDF5 file are that has them in one dataset.
    pub roles: Option<FrameRoles>,
    /// Currents of the storage ring, if projections are scaled by them.
    pub currents: Option<BeamCurrents>,
    /// Log beside projections that is used.
    pub log: Option<PathBuf>,
    /// Parameters of the acquisition that the input states, for pixels that are not binned.
    pub measures: ScanMeasures,
    /// Number of bytes that reading the data takes in addition to the values.
    pub held: u64,
    /// Parts of which the data were joined, if they were: then the data are transmissions, corrected by the fields of each
    /// part.
    pub joined: Option<Joined>,
}

/// Facts about data that were joined from several scans.
#[derive(Clone, Debug)]
pub struct Joined {
    /// True if the parts had flat fields.
    pub has_flats: bool,
    /// Numbers of the frames of flats, flats after the scan, and darks of all parts.
    pub frames: [usize; 3],
    /// Files of the fields of all parts.
    pub files: Vec<PathBuf>,
    /// Parts in the order of their places.
    pub parts: Vec<JoinedPart>,
}

/// Part of a joined scan, as it is recorded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JoinedPart {
    pub name: String,
    /// True if parts are side by side, so that bins are counted in place of rows.
    pub bins: bool,
    /// First row or bin of the joined detector that the part covers.
    pub first: usize,
    /// Number of rows or bins that it covers.
    pub count: usize,
    /// Overlap with the part before it, in rows or bins, before it is rounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// Standard deviation of the overlap, where it was found from the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<f64>,
    /// Factor on the transmissions of the part, and its standard deviation.
    pub level: f64,
    pub level_uncertainty: f64,
    /// Bins by which the part is shifted so that its axis is that of the first part.
    pub shift: f64,
}

/// Describes the part in a line.
impl fmt::Display for JoinedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JoinedPart { name, bins, first, count, overlap, uncertainty, level, level_uncertainty, shift } = self;
        let unit = if *bins { "bins" } else { "rows" };
        write!(f, "{name}: {unit} {first}..{}", first + count)?;
        if let Some(overlap) = overlap {
            write!(f, ", overlap {overlap:.2}")?;
            if let Some(uncertainty) = uncertainty {
                write!(f, " +- {uncertainty:.2}")?;
            }
            write!(f, " {unit}")?;
        }
        // levels and shifts are relative to the first part of the flag, which may lie anywhere
        if *level_uncertainty > 0.0 || overlap.is_some() {
            write!(f, ", level {level:.5} +- {level_uncertainty:.5}")?;
        }
        if *shift != 0.0 { write!(f, ", shifted by {shift:.2} bins") } else { Ok(()) }
    }
}

impl Stacks {
    /// Creates stacks of data without fields.
    pub fn of(data: Stack) -> Stacks {
        let held = data.held();
        let measures = ScanMeasures::default();
        Stacks {
            data,
            flats: None,
            flats2: None,
            darks: None,
            angles: None,
            shifts: None,
            distortion: None,
            roles: None,
            currents: None,
            log: None,
            measures,
            held,
            joined: None,
        }
    }

    /// Bins the pixels of all stacks.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) when no pixels of one would remain.
    pub fn binned(self, binning: Binning) -> Result<Stacks> {
        let binned = |stack: Stack| stack.binned(binning);
        Ok(Stacks {
            data: binned(self.data)?,
            flats: self.flats.map(binned).transpose()?,
            flats2: self.flats2.map(binned).transpose()?,
            darks: self.darks.map(binned).transpose()?,
            ..self
        })
    }

    /// Returns the smallest and the largest shift of the axis that the input contains, if it does.
    pub fn shift_range(&self) -> Option<(f64, f64)> {
        let shifts = self.shifts.as_ref()?.iter().copied();
        shifts.clone().reduce(f64::min).zip(shifts.reduce(f64::max))
    }

    /// Adds the distortion and the currents that files say, if there are any.
    ///
    /// # Errors
    /// The errors of [`DistortionMap::open`] and of [`BeamCurrents::open`].
    pub fn with_files(self, paths: &StackPaths) -> Result<Stacks> {
        let files = Some(&paths.distortion).filter(|files| !files.is_empty());
        let distortion = files.map(|files| DistortionMap::open(files)).transpose()?;
        let currents = paths
            .currents
            .as_ref()
            .map(|file| BeamCurrents::open(Path::new(file), self.roles.as_ref(), self.frame_counts()));
        let currents = currents.transpose()?.or(self.currents);
        Ok(Stacks { distortion, currents, ..self })
    }

    /// Returns the numbers of flats, of projections, and of flats after the scan.
    pub fn frame_counts(&self) -> [usize; 3] {
        let count = |stack: &Option<Stack>| stack.as_ref().map_or(0, Stack::len);
        [count(&self.flats), self.data.len(), count(&self.flats2)]
    }

    /// Returns the files of all stacks, the log beside them, and those of the distortion and of the currents.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let stacks = [Some(&self.data), self.flats.as_ref(), self.flats2.as_ref(), self.darks.as_ref()];
        let joined = self.joined.iter().flat_map(|joined| &joined.files);
        let of_stacks = stacks.into_iter().flatten().flat_map(Stack::files).chain(joined);
        let of_currents = self.currents.iter().filter_map(|currents| currents.file.as_ref());
        let beside = self.distortion.iter().flat_map(DistortionMap::files).chain(of_currents);
        of_stacks.chain(&self.log).chain(beside).map(PathBuf::as_path)
    }
}
