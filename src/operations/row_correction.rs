//! Correction of rows of projections on a device, and counts of the values replaced in them: plain data.

use super::outliers::OutlierForm;
use super::row_blocks::ImageSteps;
use super::row_operation::{RowKernel, RowOperation};
use crate::device::Session;
use crate::error::{Error, Result};
use std::ops::Range;

/// The correction of the rows of some projections: plain data.
#[derive(Clone, Debug)]
pub struct RowCorrection<'a> {
    /// Number of bins of the detector.
    pub bins: usize,
    /// Number of rows of the detector.
    pub height: usize,
    /// Outliers, which are replaced before all other steps.
    pub outliers: Option<OutlierForm>,
    pub fields: Option<FieldImages<'a>>,
    /// Weights of the components of the beam, `[projection][component]`.
    pub weights: Vec<f32>,
    /// Counts from which a sample is saturated.
    pub saturation: Option<f32>,
    /// Largest magnitude of a value that later steps can carry.
    pub largest: f32,
    pub air: AirCorrection,
    /// What transmissions are divided by after those of air, `[row][bin]` of the detector, if they are.
    pub divisor: Option<&'a [f32]>,
    /// Steps on projections as images.
    pub images: ImageSteps,
    /// Where each pixel of the detector is looked up, `[row][bin]`, if it is: whole bins, whole rows, and the bits of the
    /// rests of both.
    pub places: &'a [[i32; 4]],
    /// Operations after all others, in order: -log, if it is taken, and those on line integrals.
    pub after: Vec<&'a dyn RowOperation>,
    /// State of every projection that is used.
    pub projections: Vec<ProjectionState>,
}

impl RowCorrection<'_> {
    /// Returns which images of the detector the correction holds on the device.
    pub fn detector_images(&self) -> DetectorImages {
        let flats = self.fields.map_or(0, |fields| if fields.flat2.is_some() { 2 } else { 1 });
        let components = self.fields.map_or(0, |fields| fields.components.len() / fields.flat.len().max(1));
        DetectorImages { flats, components, divisor: self.divisor.is_some() }
    }

    /// Reports whether -log is taken.
    pub fn takes_log(&self) -> bool {
        self.after.first().is_some_and(|first| first.is_minus_log())
    }

    /// Reports whether nothing comes between the correction of rows and -log, so that one kernel does both.
    pub(super) fn takes_log_at_once(&self) -> bool {
        !self.images.any() && self.takes_log()
    }

    /// Builds the kernels of the operations after all others, but not of -log where the correction takes it.
    ///
    /// # Errors
    /// [`Error::Internal`] if an operation comes before -log, and errors of the device.
    pub(super) fn kernels_after(&self, session: &Session) -> Result<Vec<Box<dyn RowKernel>>> {
        if self.after.iter().skip(1).any(|operation| operation.is_minus_log()) {
            return Err(Error::Internal("-log is not the first operation after those on images".into()));
        }
        let done = usize::from(self.takes_log_at_once());
        self.after.iter().skip(done).map(|operation| operation.build(session)).collect()
    }

    /// Returns the correction that leaves the rows of these projections unchanged.
    pub fn nothing(bins: usize, height: usize, projections: Vec<ProjectionState>) -> Self {
        RowCorrection {
            bins,
            height,
            outliers: None,
            fields: None,
            weights: Vec::new(),
            saturation: None,
            largest: f32::MAX,
            air: AirCorrection::Without,
            divisor: None,
            images: ImageSteps::default(),
            places: &[],
            after: Vec::new(),
            projections,
        }
    }
}

/// The images of the detector that a correction holds on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DetectorImages {
    /// Number of flat fields that counts are divided by: 0, 1, or 2 with one before the scan and one after it.
    pub flats: usize,
    /// Number of components of the beam that projections have weights of.
    pub components: usize,
    /// True if transmissions are divided by an image.
    pub divisor: bool,
}

/// Flat and dark fields of all rows of the detector, `[row][bin]`.
#[derive(Clone, Copy, Debug)]
pub struct FieldImages<'a> {
    pub flat: &'a [f32],
    /// Flat field after the scan.
    pub flat2: Option<&'a [f32]>,
    pub dark: &'a [f32],
    /// Components of the beam, `[component][row][bin]`.
    pub components: &'a [f32],
}

/// The transmissions of air that transmissions are divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AirCorrection {
    Without,
    /// Division by the line through the means of these numbers of bins at the left and at the right end.
    Sides(usize, usize),
    /// Division by the level of the projection.
    Levels,
}

/// The properties of a projection that its correction depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProjectionState {
    /// Number of the projection in the input.
    pub number: usize,
    /// Position between the flat fields before and after the scan, 0 to 1.
    pub progress: f32,
    /// Level of air.
    pub level: f32,
    /// True if replaced values are counted bin by bin.
    pub watched: bool,
}

/// Counts of the values that were replaced in the rows of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCounts {
    /// For every row, the number of values without light in the flat field, not finite or too large, without logarithm,
    /// and saturated.
    pub rows: Vec<[u32; 4]>,
    /// For every row, the number of outliers; empty if none are looked for.
    pub outliers: Vec<u32>,
    /// For every projection, nonzero if a row had no light at all.
    pub unlit: Vec<u32>,
    /// Mean transmissions of every projection, added up over the counted rows, in 4096ths; empty if -log is not taken.
    pub levels: Vec<i32>,
    /// How often each bin was replaced in the watched projections, `[row][bin]`; empty if nothing was replaced.
    pub bins: Vec<u32>,
}

/// Detector rows of some projections, which are corrected at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectorBatch {
    /// Numbers of the rows, ascending; contiguous where a step needs the rows around them.
    pub rows: Vec<usize>,
    /// Positions in `rows` of the rows in which replaced values are counted.
    pub counted: Range<usize>,
    /// Index of the first counted row among the counts.
    pub place: usize,
    /// Positions of the projections among those that are used.
    pub projections: Range<usize>,
}
