//! What a step before the filter is.

use super::{Counts, Repairs, widened};
use crate::cli::{InputArgs, StepArgs};
use crate::error::{Error, Result};
use crate::source::Stacks;
use crate::units::Length;
use std::ops::Range;

/// The flags that steps are read from.
#[derive(Clone, Copy, Debug)]
pub struct StepFlags<'a> {
    pub input: &'a InputArgs,
    pub steps: &'a StepArgs,
    /// Of a pixel of the data, after binning.
    pub pixel_size: Option<&'a Length>,
}

/// A step as it was asked for: plain data, whose default is that it was not.
pub trait Step {
    /// Its flag, without dashes.
    fn flag(&self) -> &'static str;

    /// Reads it from its flags.
    ///
    /// # Errors
    /// [`Error::Usage`] for a value that makes no sense, or that does not go with the other flags.
    fn parse(args: &StepFlags) -> Result<Self>
    where
        Self: Sized;

    /// As its flag takes it, if it was asked for.
    fn value(&self) -> Option<String>;

    /// What people are told of it, if it does anything to the data.
    fn describe(&self, _: &Data) -> Option<String> {
        self.value().map(|value| format!("{} {value}", self.flag()))
    }

    /// Rows of a projection, of `bins` x `height`, that it needs above and below the rows that are wanted, unless the
    /// projection ends before.
    fn halo(&self, _bins: usize, _height: usize) -> usize {
        0
    }

    /// Whether rows are corrected in blocks that are the same for every run: because the result depends a little on the rows
    /// that are done together, or because the halo is much work.
    fn in_blocks(&self) -> bool {
        false
    }

    /// Makes it ready for the data, if there is anything to do; `before` are the steps that the data go through first.
    ///
    /// # Errors
    /// [`Error::Usage`] when it does not fit the data, and those of reading.
    fn ready(&self, data: &Data, before: &RowSteps) -> Result<Option<Ready>>;
}

/// The data that steps are made ready for.
pub struct Data<'a> {
    pub stacks: &'a Stacks,
    /// Fields are medians of their frames instead of means.
    pub median: bool,
    /// The data become line integrals.
    pub minus_log: bool,
    /// Most rows of a projection that are wanted at once.
    pub most_rows: usize,
}

/// A step made ready, by what it works on.
pub enum Ready {
    /// Rows of a projection.
    Rows(Box<dyn RowStep>),
    /// A sinogram of line integrals.
    Sinogram(Box<dyn SinogramStep>),
}

/// A step on rows of a projection.
pub trait RowStep: Send + Sync {
    /// Changes the rows of a band in place, and counts what it replaced in those that are wanted. Bands may be done side by
    /// side.
    fn apply(&self, band: &mut Band, counts: &mut Counts);

    /// Adds what was found when the step was made ready.
    fn found(&self, _: &mut Repairs) {}
}

/// A step on a whole sinogram.
pub trait SinogramStep: Send + Sync {
    /// Changes a sinogram `[projection][bin]` in place, and counts what it replaced. Sinograms may be done side by side.
    fn apply(&self, sinogram: &mut [f32], bins: usize, counts: &mut Counts);

    /// Bytes that [`apply`](Self::apply) needs beside the sinogram, about.
    fn memory(&self, projections: usize, bins: usize) -> usize;
}

/// Rows of a projection.
pub struct Band<'a> {
    /// `[row][bin]`, of the rows `read`.
    pub values: &'a mut [f32],
    pub bins: usize,
    /// Rows of the projection.
    pub height: usize,
    pub read: Range<usize>,
    /// Those that a step has to work out: the ones that are wanted, and what later steps need around them.
    pub rows: Range<usize>,
    /// Those that are wanted in the end.
    pub wanted: Range<usize>,
    /// Number of the projection, of so many.
    pub projection: usize,
    pub projections: usize,
    /// Replaced values are counted bin by bin, too.
    pub watched: bool,
}

impl<'a> Band<'a> {
    /// Rows `wanted` of a projection of `height` rows, among the rows `read`.
    pub fn new(values: &'a mut [f32], height: usize, read: Range<usize>, wanted: Range<usize>) -> Band<'a> {
        let bins = values.len() / read.len().max(1);
        let rows = wanted.clone();
        Band { values, bins, height, read, rows, wanted, projection: 0, projections: 1, watched: false }
    }

    /// Where some of its rows stand among those that were read.
    pub fn within(&self, rows: &Range<usize>) -> Range<usize> {
        rows.start - self.read.start..rows.end - self.read.start
    }

    /// Values of some of its rows.
    pub fn values_of(&mut self, rows: &Range<usize>) -> &mut [f32] {
        let within = self.within(rows);
        &mut self.values[within.start * self.bins..within.end * self.bins]
    }

    /// The rows to be worked out, by number.
    pub fn lines(&mut self) -> impl Iterator<Item = (usize, &mut [f32])> {
        let (rows, bins) = (self.rows.clone(), self.bins);
        rows.clone().zip(self.values_of(&rows).chunks_mut(bins))
    }

    /// The part of it that has up to `read` rows around the wanted ones, of which a step has to work out up to `rows`.
    fn part(&mut self, read: usize, rows: usize) -> Band<'_> {
        let around = |halo: usize| {
            let around = widened(&self.wanted, halo, self.read.end);
            around.start.max(self.read.start)..around.end
        };
        let (read, rows) = (around(read), around(rows));
        let wanted = self.wanted.clone();
        let Band { bins, height, projection, projections, watched, .. } = *self;
        let values = self.values_of(&read);
        Band { values, bins, height, read, rows, wanted, projection, projections, watched }
    }
}

/// Steps on rows of projections, in order, each with its halo.
#[derive(Default)]
pub struct RowSteps(Vec<(Box<dyn RowStep>, usize)>);

impl RowSteps {
    /// Adds a step that is done after those that are there.
    pub fn push(&mut self, step: Box<dyn RowStep>, halo: usize) {
        self.0.push((step, halo));
    }

    /// Rows around those that are wanted that all steps together need.
    pub fn halo(&self) -> usize {
        self.0.iter().map(|(_, halo)| halo).sum()
    }

    /// Does all steps on the wanted rows of a band, in place; of the other rows none is of use afterwards.
    pub fn apply(&self, band: &mut Band, counts: &mut Counts) {
        let mut around = self.halo();
        for (step, halo) in &self.0 {
            let after = around - halo;
            step.apply(&mut band.part(around, after), counts);
            around = after;
        }
    }

    /// What the steps found when they were made ready.
    pub fn found(&self, repairs: &mut Repairs) {
        self.0.iter().for_each(|(step, _)| step.found(repairs));
    }
}

/// Refuses a step on whole projections where sinograms come in.
///
/// # Errors
/// [`Error::Usage`] with the step's flag.
pub fn check_projections(flag: &str, args: &StepFlags) -> Result<()> {
    match args.input.sinograms {
        None => Ok(()),
        Some(_) => Err(Error::usage(format!("--{flag}: works on whole projections; give --projections or --hdf5"))),
    }
}
