//! The search of slices on a device.

use super::back_projection::{RowFactors, RowsToImages};
use super::form::SolverForm;
use crate::device::Session;
use crate::error::{Error, Result};
use crate::geometry::{Geometry, GridSides, Roi};
use crate::least_squares::{
    AT_START, FEWEST, Iterations, LeastSquares, RELAX, RowScale, ScanLevel, ScanOperators, SliceOutcome, SliceScale,
    SplitForm, is_anew,
};
use crate::operations::{SliceWeights, SplitEnd, SplitGroups, SplitImages, SplitIteration, SplitTables};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// Number of iterations between two looks at whether all slices have ended.
const LOOK: usize = 5;

/// What a search of slices begins with.
#[derive(Clone, Copy)]
pub struct SolverStart<'a> {
    pub request: LeastSquares,
    /// Largest number of slices that are searched at a time.
    pub slices: usize,
    /// The spectrum of the filter for the slices to begin with, given its length.
    pub filter: &'a dyn Fn(usize) -> Vec<f64>,
}

/// The search of slices of a scan on a device.
pub struct DeviceSolver {
    /// The resolutions, the highest first.
    levels: Vec<SolverLevel>,
    request: LeastSquares,
    /// Number of slices that are searched at a time.
    slices: usize,
    projections: usize,
    bins: usize,
    /// The region to store, in pixels of the highest resolution.
    region: Roi,
}

struct SolverLevel {
    level: ScanLevel,
    back_projection: RowsToImages,
    images: SplitImages,
    /// Rows with fewer bins, except at the highest resolution.
    rows: Option<Buffer<f32>>,
}

impl DeviceSolver {
    /// Computes what the slices of a scan share, and allocates memory.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(session: &Session, scan: &Geometry, form: &SolverForm, start: SolverStart) -> Result<DeviceSolver> {
        let SolverStart { request, slices, filter } = start;
        let operators = ScanOperators::new(scan, GridSides::PowersOfTwo, filter);
        let (projections, bins) = (operators.projections, operators.bins);
        let mut levels = Vec::new();
        for (number, (kernels, level)) in form.levels.iter().zip(operators.levels).enumerate() {
            let count = slices * projections * level.form.bins;
            let rows = (number > 0).then(|| session.buffer(count, CL_MEM_READ_WRITE, "halved rows")).transpose()?;
            let back_projection = RowsToImages::new(session, kernels, &filter(level.form.length))?;
            let images = split_images(session, kernels.groups, slices, &level)?;
            levels.push(SolverLevel { back_projection, images, rows, level });
        }
        let Some(first) = levels.first() else {
            return Err(Error::Internal("a search of slices without a resolution".into()));
        };
        let offset = first.level.form.offset;
        let region = Roi { x: scan.roi.x + offset, y: scan.roi.y + offset, ..scan.roi };
        Ok(DeviceSolver { levels, request, slices, projections, bins, region })
    }

    /// Searches the slices of `scales`: rows `[slice][projection][bin]` are those of a buffer from its beginning on, and slices
    /// `[slice][y][x]` of the region are stored in another. Waits for them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn run(
        &mut self,
        session: &Session,
        rows: &Buffer<f32>,
        slices: &Buffer<f32>,
        scales: &[RowScale],
    ) -> Result<Vec<SliceOutcome>> {
        let mut outcomes = Vec::with_capacity(scales.len());
        for (number, scales) in scales.chunks(self.slices).enumerate() {
            let first = number * self.slices;
            outcomes.extend(self.search(session, (rows, first * self.projections * self.bins), scales)?);
            if let Some(highest) = self.levels.first() {
                highest.images.store(session, scales.len(), self.region, slices, first * self.region.pixels())?;
            }
        }
        session.finish()?;
        Ok(outcomes)
    }

    /// Searches slices whose rows begin at a value of a buffer.
    fn search(
        &mut self,
        session: &Session,
        rows: (&Buffer<f32>, usize),
        scales: &[RowScale],
    ) -> Result<Vec<SliceOutcome>> {
        self.halve(session, rows, scales.len())?;
        let mut found = Vec::new();
        for number in (0..self.levels.len()).rev() {
            // halving rows halves the variance of their noise
            let sigmas: Vec<f64> = scales.iter().map(|of| of.sigma / 2f64.powi(number as i32).sqrt()).collect();
            let (levels, below) = self.levels.split_at_mut(number + 1);
            let Some(level) = levels.last_mut() else { continue };
            let iterations = if number == 0 { self.request.iterations } else { Iterations::Exactly(AT_START) };
            let slice_scales = level.back_project(session, rows, &self.request, self.projections, &sigmas)?;
            let forms: Vec<_> =
                slice_scales.iter().map(|scale| SplitForm::new(&level.level, &self.request, scale)).collect();
            let weights: Vec<_> = forms.iter().map(|form| slice_weights(&level.level, form.as_ref())).collect();
            match below.first() {
                None => level.images.begin(session, &weights, false)?,
                Some(below) => level.images.begin_doubled(session, &weights, &below.images)?,
            }
            level.iterate(session, scales.len(), iterations, self.request.tolerance)?;
            found = slice_scales.into_iter().zip(forms).collect();
        }
        let Some(highest) = self.levels.first_mut() else { return Ok(Vec::new()) };
        highest.outcomes(session, scales, &found, self.request.iterations)
    }

    /// Stores rows with fewer bins for all resolutions but the highest.
    fn halve(&self, session: &Session, (rows, first): (&Buffer<f32>, usize), count: usize) -> Result<()> {
        let mut from = (rows, first);
        for level in &self.levels {
            let Some(halved) = &level.rows else { continue };
            let values = count * self.projections * level.level.form.bins;
            level.images.halve(session, from.0, from.1, halved, values)?;
            from = (halved, 0);
        }
        Ok(())
    }
}

/// Returns the weights of the iterations of a slice; all 0 for one that stays as it is.
pub fn slice_weights(level: &ScanLevel, form: Option<&SplitForm>) -> SliceWeights {
    let Some(SplitForm { weights, bounds, of_changes, .. }) = form else { return SliceWeights::default() };
    SliceWeights {
        gradient: weights.rho as f32,
        bounds: weights.nu as f32,
        loss: bounds.tau,
        least_share: bounds.least,
        lowest: bounds.low,
        least_eigenvalue: (weights.nu + level.least_eigenvalue()) as f32,
        of_changes: *of_changes as f32,
        of_double: 0.5,
    }
}

/// Makes the images of a resolution on a device.
///
/// # Errors
/// Errors of the device.
pub fn split_images(session: &Session, groups: SplitGroups, slices: usize, level: &ScanLevel) -> Result<SplitImages> {
    let disc: Vec<[i32; 2]> = level.disc.iter().map(|row| [row.start as i32, row.end as i32]).collect();
    let ScanLevel { response, symbol, laplacian, .. } = level;
    SplitImages::new(session, groups, slices, &SplitTables { response, symbol, laplacian, disc: &disc })
}

impl SolverLevel {
    /// Back-projects rows, those of this resolution if it has its own, and returns the scales of the slices.
    fn back_project(
        &mut self,
        session: &Session,
        rows: (&Buffer<f32>, usize),
        request: &LeastSquares,
        projections: usize,
        sigmas: &[f64],
    ) -> Result<Vec<SliceScale>> {
        let rows = self.rows.as_ref().map_or(rows, |own| (own, 0));
        let count = sigmas.len();
        self.back_projection.run(session, RowFactors::Plain, rows, self.images.data(), count)?;
        self.back_projection.run(session, RowFactors::Filtered, rows, self.images.image(), count)?;
        let sums = self.images.keep_disc(session, count)?;
        let scale = |(sums, sigma): ([f64; 2], &f64)| self.level.scale(request, projections, *sigma, sums);
        Ok(sums.into_iter().zip(sigmas).map(scale).collect())
    }

    fn iterate(&self, session: &Session, count: usize, iterations: Iterations, tolerance: f64) -> Result<()> {
        let tolerance = if iterations == Iterations::Auto { tolerance as f32 } else { 0.0 };
        let end = SplitEnd { fewest: FEWEST, tolerance };
        for number in 0..iterations.most() {
            self.images.iterate(session, count, SplitIteration { number, relax: RELAX, anew: is_anew(number) }, end)?;
            let look = iterations == Iterations::Auto && number % LOOK == LOOK - 1;
            if look && self.images.progress(session, count)?.iter().all(|of| of.ended != 0.0) {
                break;
            }
        }
        self.images.finish(session, count)
    }

    /// Returns how the slices were found, of which the scales and forms are given.
    fn outcomes(
        &mut self,
        session: &Session,
        rows: &[RowScale],
        found: &[(SliceScale, Option<SplitForm>)],
        iterations: Iterations,
    ) -> Result<Vec<SliceOutcome>> {
        let progress = self.images.progress(session, rows.len())?;
        let quadratic: Vec<f32> = found.iter().map(|(_, form)| form.map_or(0.0, |form| form.huber as f32)).collect();
        let objectives = self.images.objectives(session, &quadratic)?;
        let outcome = |(number, rows): (usize, &RowScale)| {
            let (of, objective) = (&progress[number], &objectives[number]);
            let misfit = 0.5 * (objective.projected - 2.0 * objective.data + rows.energy);
            SliceOutcome {
                iterations: of.iterations as usize,
                change: of.change.into(),
                converged: of.ended != 0.0 || iterations != Iterations::Auto,
                sigma: rows.sigma,
                objective: misfit + found[number].0.lambda * objective.penalty,
            }
        };
        Ok(rows.iter().enumerate().map(outcome).collect())
    }
}
