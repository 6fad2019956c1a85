//! What a device does to rows of projections, of which it corrects some at once, and what it replaced in them: plain data.

use super::images::ImageSteps;
use super::outliers::OutlierForm;
use std::ops::Range;

/// What is done to the rows of some projections: plain data.
#[derive(Clone, Debug)]
pub struct RowCorrection<'a> {
    /// Bins of the detector.
    pub bins: usize,
    /// Rows of the detector.
    pub height: usize,
    /// What is replaced before all else.
    pub outliers: Option<OutlierForm>,
    pub fields: Option<FieldImages<'a>>,
    /// Counts from which a sample is saturated.
    pub saturation: Option<f32>,
    /// Largest magnitude of a value that what follows can carry.
    pub largest: f32,
    pub air: AirCorrection,
    /// Steps on projections as images, before -log.
    pub images: ImageSteps,
    pub minus_log: bool,
    /// Of every projection that is used.
    pub projections: Vec<ProjectionState>,
}

impl RowCorrection<'_> {
    /// Number of flat fields that counts are divided by: before the scan, and after it.
    pub fn flats(&self) -> usize {
        self.fields.map_or(0, |fields| if fields.flat2.is_some() { 2 } else { 1 })
    }

    /// Nothing is done to the rows of these projections.
    pub fn nothing(bins: usize, height: usize, projections: Vec<ProjectionState>) -> Self {
        RowCorrection {
            bins,
            height,
            outliers: None,
            fields: None,
            saturation: None,
            largest: f32::MAX,
            air: AirCorrection::Without,
            images: ImageSteps::default(),
            minus_log: false,
            projections,
        }
    }
}

/// Flat and dark fields of all rows of the detector, `[row][bin]`.
#[derive(Clone, Copy, Debug)]
pub struct FieldImages<'a> {
    pub flat: &'a [f32],
    /// After the scan.
    pub flat2: Option<&'a [f32]>,
    pub dark: &'a [f32],
}

/// How transmissions are divided by those of air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AirCorrection {
    Without,
    /// By the line through the means of so many bins at both ends.
    Sides(usize, usize),
    /// By the projection's level.
    Levels,
}

/// What distinguishes a projection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProjectionState {
    /// Number of the projection in the input.
    pub number: usize,
    /// Place between the flats before and after the scan, 0 to 1.
    pub progress: f32,
    /// Level of air.
    pub level: f32,
    /// Whether replaced values are counted bin by bin.
    pub watched: bool,
}

/// What was replaced in the rows of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCounts {
    /// For every row: without light in the flat field, not finite or too large, without logarithm, saturated.
    pub rows: Vec<[u32; 4]>,
    /// For every row the outliers; empty if none are looked for.
    pub outliers: Vec<u32>,
    /// For every projection whether a row had no light at all.
    pub unlit: Vec<u32>,
    /// Mean transmissions of every projection, added up over the counted rows, in 4096ths; empty if -log is not taken.
    pub levels: Vec<i32>,
    /// How often bins were replaced in the watched projections, `[row][bin]`; empty if nothing was replaced.
    pub bins: Vec<u32>,
}

/// Rows of the detector of some projections, which are corrected at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectorBatch {
    /// Numbers of the rows, ascending; next to each other where a step needs the rows around them.
    pub rows: Vec<usize>,
    /// Positions among these of the rows in which replaced values are counted.
    pub counted: Range<usize>,
    /// Where the first of the counted rows is among the counts.
    pub place: usize,
    /// Positions of the projections among those that are used.
    pub projections: Range<usize>,
}
