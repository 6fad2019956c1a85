//! Interface of a step before the filter.

use super::air_pixels::Air;
use super::errors::StepFlagError;
use super::optics::Optics;
use super::{Counts, Repairs};
use crate::cli::{InputArgs, StepArgs};
use crate::device::Session;
use crate::error::Result;
use crate::operations::{RowCorrection, SinogramBatch, SinogramShape};
use crate::remark::Remark;
use crate::source::{Stacks, is_xrm_scan};
use crate::units::Length;
use std::ops::Range;
use std::sync::Arc;

/// The flags from which steps are read.
#[derive(Clone, Copy, Debug)]
pub struct StepFlags<'a> {
    pub input: &'a InputArgs,
    pub steps: &'a StepArgs,
    /// Pixel size after binning.
    pub pixel_size: Option<&'a Length>,
}

/// A step as requested by flags: plain data. By default it is not requested.
pub trait Step {
    /// Returns the flag of the step, without dashes.
    fn flag(&self) -> &'static str;

    /// Reads the step from its flags.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) for an invalid value, or one that conflicts with other flags.
    fn parse(args: &StepFlags) -> Result<Self>
    where
        Self: Sized;

    /// Returns the value of the flag, if the step was requested.
    fn value(&self) -> Option<String>;

    /// Returns a description of the step, if it changes the data.
    fn describe(&self, _: &Data) -> Option<String> {
        self.value().map(|value| format!("{} {value}", self.flag()))
    }

    /// Returns the number of rows of a projection that the step needs above and below the wanted rows, within
    /// the projection.
    fn halo(&self, _: &Optics) -> usize {
        0
    }

    /// Reports whether rows are corrected in blocks that are the same for every run, because the result depends
    /// slightly on which rows are processed together, or because the halo is expensive.
    fn in_blocks(&self) -> bool {
        false
    }

    /// Reports whether the step is prepared from the rows that are needed of all projections that are used.
    fn is_of_projections(&self) -> bool {
        false
    }

    /// Prepares the step for the data, if there is anything to do; `before` are the steps that are applied first.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) if the step does not fit the data, and errors of reading.
    fn ready(&self, data: &Data, before: &RowSteps) -> Result<Option<Ready>>;
}

/// The data for which steps are prepared.
pub struct Data<'a> {
    pub stacks: &'a Stacks,
    pub optics: &'a Optics,
    /// True if fields are medians of their frames, false if they are means.
    pub median: bool,
    /// True if -log is taken.
    pub minus_log: bool,
    /// True if projections are processed as images before -log.
    pub images: bool,
    /// Number of projections that are used.
    pub projections: usize,
    /// Numbers of the projections that are used, ascending.
    pub used: &'a [usize],
    /// The part of projections that is air, if the user has said it.
    pub air: Option<Air>,
    /// Rows of projections that are needed after the steps up to transmissions.
    pub rows: Range<usize>,
    /// Largest number of rows of a projection that are corrected at once.
    pub most_rows: usize,
    /// Means of all projections after the steps up to the double flat field, if they are known.
    pub means: Option<&'a [f64]>,
}

impl Data<'_> {
    /// Reports whether counts were divided by flat fields, also where this was done before parts were joined.
    pub fn has_flats(&self) -> bool {
        self.stacks.flats.is_some() || self.stacks.joined.as_ref().is_some_and(|joined| joined.has_flats)
    }
}

/// A prepared step, by the data that it works on.
pub enum Ready {
    /// A step on rows of a projection.
    Rows(Box<dyn RowStep>),
    /// A step on a sinogram of line integrals.
    Sinogram(Box<dyn SinogramStep>),
}

/// A step on rows of a projection.
pub trait RowStep: Send + Sync {
    /// Processes the rows of a band in place, and counts values replaced in the wanted rows. Bands may be processed in
    /// parallel.
    fn apply(&self, band: &mut Band, counts: &mut Counts);

    /// Adds the step to the correction of rows by a device; returns false if only the host can do it.
    fn on_device<'a>(&'a self, _: &mut RowCorrection<'a>) -> bool {
        false
    }

    /// Adds findings from preparing the step.
    fn found(&self, _: &mut Repairs) {}

    /// Returns remarks to the user that are made before the step is applied.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }

    /// Rejects detector rows of which the step would leave nothing.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) that says what is wrong.
    fn expect_light(&self, _rows: &[usize]) -> Result<()> {
        Ok(())
    }
}

/// A step on a complete sinogram.
pub trait SinogramStep: Send + Sync {
    /// Processes a sinogram `[projection][bin]` in place, and counts replaced values. Sinograms may be processed in parallel.
    fn apply(&self, sinogram: &mut [f32], bins: usize, counts: &mut Counts);

    /// Returns the approximate memory in bytes that [`apply`](Self::apply) needs besides the sinogram.
    fn memory(&self, projections: usize, bins: usize) -> usize;

    /// Returns the step on a device, for the sizes and number of sinograms of `shape`.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    fn on_device(&self, session: &Session, shape: SinogramShape) -> Result<Box<dyn DeviceSinogramStep>>;
}

/// A step on complete sinograms, on a device.
pub trait DeviceSinogramStep: Send {
    /// Processes sinograms in place, with the result of [`SinogramStep::apply`] within rounding. A result depends on
    /// its sinogram alone.
    ///
    /// # Errors
    /// Errors of the device.
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()>;

    /// Processes any number of sinograms in place, at most `most` at a time.
    ///
    /// # Errors
    /// Errors of the device.
    fn apply_in_parts(&mut self, session: &Session, sinograms: &SinogramBatch, most: usize) -> Result<()> {
        sinograms.parts(most).try_for_each(|part| self.apply(session, &part))
    }
}

/// A band of rows of a projection, as steps process it.
pub struct Band<'a> {
    /// Values `[row][bin]` of the rows `read`.
    pub values: &'a mut [f32],
    pub bins: usize,
    /// Number of rows of the projection.
    pub height: usize,
    pub read: Range<usize>,
    /// Rows that a step must compute: the wanted ones, and those that later steps need around them.
    pub rows: Range<usize>,
    /// Rows that are wanted in the end.
    pub wanted: Range<usize>,
    /// Wanted rows in which replaced values are counted.
    pub counted: Range<usize>,
    /// Index of the projection.
    pub projection: usize,
    /// Number of projections.
    pub projections: usize,
    /// True if replaced values are also counted bin by bin.
    pub watched: bool,
}

impl<'a> Band<'a> {
    /// Returns a band of the rows `wanted` of a projection of `height` rows, among the rows `read`.
    pub fn new(values: &'a mut [f32], height: usize, read: Range<usize>, wanted: Range<usize>) -> Band<'a> {
        let bins = values.len() / read.len().max(1);
        let (rows, counted) = (wanted.clone(), wanted.clone());
        Band { values, bins, height, read, rows, wanted, counted, projection: 0, projections: 1, watched: false }
    }

    /// Makes the band part of one of the projections of a scan.
    pub fn of(self, projection: usize, projections: usize) -> Band<'a> {
        Band { projection, projections, ..self }
    }

    /// Returns the range of some rows within the rows that were read.
    pub fn within(&self, rows: &Range<usize>) -> Range<usize> {
        rows.start - self.read.start..rows.end - self.read.start
    }

    /// Returns the values of some rows.
    pub fn values_of(&mut self, rows: &Range<usize>) -> &mut [f32] {
        let within = self.within(rows);
        &mut self.values[within.start * self.bins..within.end * self.bins]
    }

    /// Returns the rows to be computed, with their indices.
    pub fn lines(&mut self) -> impl Iterator<Item = (usize, &mut [f32])> {
        let (rows, bins) = (self.rows.clone(), self.bins);
        rows.clone().zip(self.values_of(&rows).chunks_mut(bins))
    }

    /// Returns the part with up to `read` rows around the wanted ones, of which a step must compute up to `rows`.
    fn part(&mut self, read: usize, rows: usize) -> Band<'_> {
        let around = |halo: usize| {
            let around = widened(&self.wanted, halo, self.read.end);
            around.start.max(self.read.start)..around.end
        };
        let (read, rows) = (around(read), around(rows));
        let (wanted, counted) = (self.wanted.clone(), self.counted.clone());
        let Band { bins, height, projection, projections, watched, .. } = *self;
        let values = self.values_of(&read);
        Band { values, bins, height, read, rows, wanted, counted, projection, projections, watched }
    }
}

/// Steps on rows of projections, in order, each with its halo.
#[derive(Default)]
pub struct RowSteps(Vec<(Arc<dyn RowStep>, usize)>);

impl RowSteps {
    /// Adds a step after the existing ones.
    pub fn push(&mut self, step: Box<dyn RowStep>, halo: usize) {
        self.0.push((Arc::from(step), halo));
    }

    /// Returns the number of steps.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the first `count` steps.
    pub fn first(&self, count: usize) -> RowSteps {
        RowSteps(self.0[..count].to_vec())
    }

    /// Returns the number of rows around the wanted ones that all steps together need.
    pub fn halo(&self) -> usize {
        self.0.iter().map(|(_, halo)| halo).sum()
    }

    /// Applies all steps to the wanted rows of a band in place; the other rows are undefined afterwards.
    pub fn apply(&self, band: &mut Band, counts: &mut Counts) {
        let mut around = self.halo();
        for (step, halo) in &self.0 {
            let after = around - halo;
            step.apply(&mut band.part(around, after), counts);
            around = after;
        }
    }

    /// Adds all steps to the correction of rows by a device; returns false if only the host can do one of them.
    pub fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        self.0.iter().all(|(step, _)| step.on_device(correction))
    }

    /// Returns remarks to the user that are made before the steps are applied.
    pub fn remarks(&self) -> Vec<Remark> {
        self.0.iter().flat_map(|(step, _)| step.remarks()).collect()
    }

    /// Rejects detector rows of which nothing would be left.
    ///
    /// # Errors
    /// Those of the steps.
    pub fn expect_light(&self, rows: &[usize]) -> Result<()> {
        self.0.iter().try_for_each(|(step, _)| step.expect_light(rows))
    }

    /// Adds findings from preparing the steps.
    pub fn found(&self, repairs: &mut Repairs) {
        self.0.iter().for_each(|(step, _)| step.found(repairs));
    }
}

/// Rejects a step on projections if the input is sinograms.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) with the step's flag.
pub fn check_projections(flag: &str, args: &StepFlags) -> Result<()> {
    match args.input.sinograms {
        None => Ok(()),
        Some(_) => Err(StepFlagError::OfProjections { flag: flag.into() }.into()),
    }
}

/// Reports whether the data can become transmissions: with flat fields, or if they are transmissions of which -log is taken.
/// What an HDF5 file or a scan in a `.txrm` file holds is not known yet.
pub fn may_have_transmissions(args: &StepFlags) -> bool {
    let input = &args.input;
    let unknown = input.hdf5_spec().is_some() || input.projections.as_deref().is_some_and(is_xrm_scan);
    unknown || input.flats.is_some() || input.minus_log && !input.no_minus_log
}

/// Returns `rows` extended by up to `halo` rows on either side, within `0..height`.
pub fn widened(rows: &Range<usize>, halo: usize, height: usize) -> Range<usize> {
    rows.start.saturating_sub(halo)..rows.end.saturating_add(halo).min(height)
}
