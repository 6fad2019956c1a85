//! Finds slices by the requested method.

use super::conjugate;
use super::definition::energy;
use super::method::{Iterations, LeastSquares, SliceMethod};
use super::operators::{ScanLevel, ScanOperators};
use super::problem::{SliceProblem, SolvedSlice};
use super::row_scale::{RowScale, weighted};
use super::rows::BackProjected;
use super::torus::TorusMemory;
use super::variation::{FoundSplit, SplitForm, minimise};

/// Iterations at a lower resolution.
pub const AT_START: usize = 30;

/// Finds the slices of a scan.
pub struct SliceSolver<'a> {
    operators: &'a ScanOperators,
    request: LeastSquares,
}

/// What iterations begin with.
#[derive(Clone, Debug)]
pub struct SliceStart {
    /// `A^T d`, on the grid.
    pub data: Vec<f32>,
    /// The filtered back projection, on the grid.
    pub slice: Vec<f32>,
    /// What iterations depend on; `None` for rows without values.
    pub form: Option<SplitForm>,
}

impl<'a> SliceSolver<'a> {
    pub fn new(operators: &'a ScanOperators, request: LeastSquares) -> SliceSolver<'a> {
        SliceSolver { operators, request }
    }

    /// Finds the slice of a sinogram `[projection][bin]`.
    pub fn solve(&self, sinogram: &[f32]) -> SolvedSlice {
        let ScanOperators { levels, margins, bins, projections, weights } = self.operators;
        let RowScale { sigma, .. } = RowScale::of(sinogram, *bins, weights.as_deref());
        let sinogram = &margins.extend(sinogram, *bins);
        let mut memory = TorusMemory::default();
        let found = match self.request.method {
            SliceMethod::Tikhonov | SliceMethod::Cgls => {
                let problem = self.problem(&levels[0], sinogram, sigma);
                conjugate::solve(&problem, &self.request, *projections, &mut memory)
            }
            _ => self.variation(sinogram, sigma, 0, &mut memory).0,
        };
        SolvedSlice { slice: margins.crop(found.slice, levels[0].form.size), ..found }
    }

    /// Returns what iterations at the highest resolution begin with, without a lower one.
    pub fn start(&self, sinogram: &[f32]) -> SliceStart {
        let ScanOperators { bins, weights, .. } = self.operators;
        let RowScale { sigma, .. } = RowScale::of(sinogram, *bins, weights.as_deref());
        let SliceProblem { level, data, start, scale, .. } = self.problem(&self.operators.levels[0], sinogram, sigma);
        SliceStart { form: SplitForm::new(level, &self.request, &scale), data, slice: start }
    }

    /// Returns the problem of a sinogram with bins of a level.
    fn problem(&self, level: &'a ScanLevel, sinogram: &[f32], sigma: f64) -> SliceProblem<'a> {
        let BackProjected { plain, filtered: mut start } = level.rows.back_project(sinogram);
        level.keep_disc(&mut start);
        let sums = start.iter().fold([0.0; 2], |[sum, squares], value| {
            let value = f64::from(*value);
            [sum + value, squares + value * value]
        });
        SliceProblem {
            data: plain,
            start,
            energy: energy(&weighted(sinogram, level.form.bins, self.operators.weights.as_deref())),
            sigma,
            scale: level.scale(&self.request, self.operators.projections, sigma, sums),
            level,
        }
    }

    /// Finds a slice with a small total variation at one resolution, begun at the next lower one; also returns the
    /// slice on the grid and its multipliers.
    fn variation(
        &self,
        sinogram: &[f32],
        sigma: f64,
        level: usize,
        memory: &mut TorusMemory,
    ) -> (SolvedSlice, FoundSplit) {
        let begun = (level + 1 < self.operators.levels.len()).then(|| {
            let half: Vec<f32> = sinogram.chunks_exact(2).map(|pair| 0.5 * (pair[0] + pair[1])).collect();
            self.variation(&half, sigma / 2f64.sqrt(), level + 1, memory).1
        });
        let problem = self.problem(&self.operators.levels[level], sinogram, sigma);
        let iterations = if level == 0 { self.request.iterations } else { Iterations::Exactly(AT_START) };
        let (start, multipliers) = match begun {
            None => (problem.start.clone(), None),
            Some(FoundSplit { slice, multipliers }) => {
                let side = problem.level.form.grid / 2;
                // a pixel of half the size has half the line integral
                let slice = doubled(&slice, side).iter().map(|value| 0.5 * value).collect();
                (slice, Some(multipliers.map(|plane| doubled(&plane, side))))
            }
        };
        minimise(&problem, &self.request, iterations, start, multipliers, memory)
    }
}

/// Returns an image `side x side` at twice the resolution, by linear interpolation around the torus.
fn doubled(image: &[f32], side: usize) -> Vec<f32> {
    let mix = |near: f32, far: f32| 0.75 * near + 0.25 * far;
    let mut wide = Vec::with_capacity(2 * image.len());
    for row in image.chunks_exact(side) {
        for (x, value) in row.iter().enumerate() {
            wide.push(mix(*value, row[(x + side - 1) % side]));
            wide.push(mix(*value, row[(x + 1) % side]));
        }
    }
    let row = |y: usize| &wide[y % side * 2 * side..][..2 * side];
    let mut doubled = Vec::with_capacity(2 * wide.len());
    for y in 0..side {
        for neighbour in [y + side - 1, y + 1] {
            doubled.extend(row(y).iter().zip(row(neighbour)).map(|(near, far)| mix(*near, *far)));
        }
    }
    doubled
}
