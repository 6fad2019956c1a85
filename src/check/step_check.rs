//! The test of each step that a device can do.

use super::least_squares;
use super::on_images::{distorted, images, straight};
use super::on_rows::{StepsOnRows, binning, extension, rows};
use super::on_sinograms::stripes;
use super::slices::{histogram, samples};
use super::sums::sums;
use super::values::{BINS, PROJECTIONS, ROWS};
use crate::device::Session;
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::kernel::{StepBackend, StepBackends};
use crate::operations::{EncodedSample, RowBlocks, SliceCounter};
use crate::steps::stripes::Stripes;
use crate::steps::{Air, BeamHardening, Outliers, Paganin, Steps, Tilt};
use std::fmt;

/// Sizes of a run that decide which programs the steps need; the steps that are tried have them, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestShape {
    /// Number of values of a column.
    pub projections: usize,
    /// Bins, and blocks of rows, for steps on images; `None` for a small detector in blocks that suit it.
    pub images: Option<(usize, RowBlocks)>,
}

impl Default for TestShape {
    fn default() -> Self {
        TestShape { projections: PROJECTIONS, images: None }
    }
}

impl TestShape {
    /// Returns bins, and blocks of rows as a step needs them that is alone.
    fn blocks(&self, alone: impl Fn(RowBlocks) -> RowBlocks) -> Option<(usize, RowBlocks)> {
        self.images.map(|(bins, blocks)| (bins, alone(blocks)))
    }
}

/// The test of a step: the error of its result on a device.
type StepTest = Box<dyn Fn(&Session, TestShape) -> Result<f64>>;

/// The largest error of a device that does the step correctly, relative to the range of values, and why so much is allowed.
type StepMargin = (f64, &'static str);

const ONE_ROUNDING: StepMargin = (5e-7, "one rounding to f32");
const DIVISIONS: StepMargin = (1e-5, "roundings of divisions and of the logarithm");
const POSITIONS: StepMargin = (1e-5, "roundings of positions and weights");
const EXACT: StepMargin = (0.0, "bit for bit");

/// A step that is tried on its own.
pub struct StepCheck {
    name: String,
    backend: fn(StepBackends) -> StepBackend,
    margin: StepMargin,
    lacks: fn(&DeviceFacts) -> Option<&'static str>,
    test: StepTest,
}

impl fmt::Debug for StepCheck {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq)]
pub struct StepError {
    pub step: String,
    /// Error relative to the range of values; for samples of slices, their difference; for a histogram, 1 if it
    /// differs.
    pub error: f64,
    pub margin: f64,
}

impl StepError {
    /// Reports whether the step is right.
    pub fn right(&self) -> bool {
        self.error <= self.margin
    }
}

/// The tests, one for each step.
impl StepCheck {
    /// Means of this many bins and rows.
    pub fn binning(by: usize) -> Self {
        let test = move |session: &Session, _| binning(session, by);
        StepCheck::new(format!("binning {by}"), |by| by.rows, ONE_ROUNDING, test)
    }

    /// Steps on rows of projections, with the removal of outliers or without.
    pub fn rows(outliers: Option<Outliers>) -> Self {
        let name = outliers.as_ref().map_or("rows".to_owned(), |outliers| format!("rows with outliers {outliers}"));
        StepCheck::on_rows(name, move || StepsOnRows {
            outliers: outliers.as_ref().map(Outliers::form),
            ..StepsOnRows::default()
        })
    }

    /// Steps on rows of projections with the normalisation by air.
    pub fn air(air: Air) -> Self {
        StepCheck::on_rows(format!("air {air}"), move || StepsOnRows { air: Some(air), ..StepsOnRows::default() })
    }

    /// Steps on rows of projections with components of the beam.
    pub fn eigen_flats() -> Self {
        StepCheck::on_rows("eigen flats".to_owned(), || StepsOnRows { eigen: true, ..StepsOnRows::default() })
    }

    /// Steps on rows of projections with the division by an image, and the sums that make it.
    pub fn double_flat() -> Self {
        let test = |session: &Session, shape: TestShape| {
            let divided = rows(session, StepsOnRows { divided: true, ..StepsOnRows::default() })?;
            Ok(divided.max(sums(session, [ROWS, shape.projections, BINS])?))
        };
        StepCheck::new("double flat".to_owned(), |by| by.rows, DIVISIONS, test)
    }

    /// Steps on rows of projections with a polynomial of line integrals.
    pub fn hardening(polynomial: BeamHardening) -> Self {
        let name = format!("beam hardening {polynomial}");
        let test = move |session: &Session, _| {
            rows(session, StepsOnRows { hardening: Some(&polynomial), ..StepsOnRows::default() })
        };
        StepCheck::new(name, |by| by.rows, DIVISIONS, test)
    }

    /// Rows of an extended field.
    pub fn extension() -> Self {
        let test = |session: &Session, _| extension(session);
        StepCheck::new("extension of rows".to_owned(), |by| by.rows, ONE_ROUNDING, test)
    }

    /// Pixels that are looked up elsewhere.
    pub fn distortion() -> Self {
        let test = |session: &Session, shape: TestShape| {
            let alone = |blocks| RowBlocks { filter_halo: 0, images: None, mapped: true, ..blocks };
            images(session, Steps::default(), shape.blocks(alone), distorted)
        };
        StepCheck::new("distortion".to_owned(), |by| by.images, POSITIONS, test)
    }

    /// The rotation of projections.
    pub fn tilt(tilt: Tilt) -> Self {
        let test = move |session: &Session, shape: TestShape| {
            let alone = |blocks| RowBlocks { filter_halo: 0, images: None, mapped: false, ..blocks };
            images(session, Steps { tilt: Some(tilt), ..Steps::default() }, shape.blocks(alone), straight)
        };
        StepCheck::new(format!("tilt {}", tilt.degrees), |by| by.images, POSITIONS, test)
    }

    /// The phase filter.
    pub fn phase(phase: Paganin) -> Self {
        let amount = phase.unsharp.map_or(0.0, |unsharp| unsharp.amount);
        let margin = (2e-5 * (1.0 + amount), "images of other sizes, which end beyond the filter's halo");
        let test = move |session: &Session, shape: TestShape| {
            let alone = |blocks| RowBlocks { rotation_halo: 0, mapped: false, ..blocks };
            images(session, Steps { phase: Some(phase), ..Steps::default() }, shape.blocks(alone), straight)
        };
        StepCheck::new(format!("phase {phase}"), |by| by.images, margin, test)
    }

    /// A method that removes stripes.
    pub fn stripes(method: Stripes) -> Self {
        let margin = match method {
            Stripes::Filtering { .. } => (1e-2, "values that are equal within rounding may be sorted in another order"),
            _ => (1e-5, "sums over projections or bins in f32"),
        };
        let test = move |session: &Session, shape: TestShape| stripes(session, &method, shape.projections);
        StepCheck::new(format!("stripes {method}"), |by| by.sinograms, margin, test)
    }

    /// Samples of slices as they are written.
    pub fn samples(sample: EncodedSample) -> Self {
        let (name, whole) = match sample {
            EncodedSample::Float => ("f32", false),
            EncodedSample::Half => ("f16", false),
            EncodedSample::Unsigned16 => ("u16", true),
            EncodedSample::Unsigned8 => ("u8", true),
        };
        let name = format!("samples of slices, {name}");
        let check = StepCheck::new(name, |by| by.slices, EXACT, move |session, _| samples(session, sample));
        // whole numbers are scaled in f64 everywhere
        let lacks = |facts: &DeviceFacts| (!facts.has("cl_khr_fp64")).then_some("double precision");
        if whole { StepCheck { lacks, ..check } } else { check }
    }

    /// Counts and moments of the values of slices.
    pub fn histogram() -> Self {
        let name = "histogram of slices".to_owned();
        let check = StepCheck::new(name, |by| by.slices, EXACT, |session, _| histogram(session));
        StepCheck { lacks: SliceCounter::lacks, ..check }
    }

    /// Iterations of least squares.
    pub fn least_squares() -> Self {
        let margin = (1e-3, "roundings that grow where gradients are shrunk or not");
        let test = |session: &Session, _| least_squares::least_squares(session);
        let check = StepCheck::new("least squares".to_owned(), |by| by.solver, margin, test);
        StepCheck { lacks: least_squares::lacks, ..check }
    }

    fn on_rows(name: String, steps: impl Fn() -> StepsOnRows<'static> + 'static) -> Self {
        StepCheck::new(name, |by| by.rows, DIVISIONS, move |session, _| rows(session, steps()))
    }

    fn new(
        name: String,
        backend: fn(StepBackends) -> StepBackend,
        margin: StepMargin,
        test: impl Fn(&Session, TestShape) -> Result<f64> + 'static,
    ) -> Self {
        StepCheck { name, backend, margin, lacks: |_| None, test: Box::new(test) }
    }
}

impl StepCheck {
    /// Returns the step that is checked, with its parameters.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the backend that does the step.
    pub fn backend(&self, backends: StepBackends) -> StepBackend {
        (self.backend)(backends)
    }

    /// Returns the capability that the device lacks for the step, if any.
    pub fn lacks(&self, facts: &DeviceFacts) -> Option<&'static str> {
        (self.lacks)(facts)
    }

    /// Returns the margin, and its reason.
    #[cfg(test)]
    pub(super) fn margin(&self) -> StepMargin {
        self.margin
    }

    /// Tries the step on a device.
    ///
    /// # Errors
    /// Errors of the device; a wrong result is none.
    pub fn run(&self, session: &Session, shape: TestShape) -> Result<StepError> {
        Ok(StepError { step: self.name.clone(), error: (self.test)(session, shape)?, margin: self.margin.0 })
    }
}
