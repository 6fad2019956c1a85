//! The problem of a slice.

use super::levels::LevelForm;
use super::method::LeastSquares;
use super::operators::ScanLevel;
use super::torus::TorusMemory;
use std::f64::consts::PI;

/// A slice and how it was found.
#[derive(Clone, Debug)]
pub struct SolvedSlice {
    /// `[y][x]`, of the size of the scan's slices.
    pub slice: Vec<f32>,
    pub outcome: SliceOutcome,
}

/// How a slice was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceOutcome {
    pub iterations: usize,
    /// Last change relative to the contrast.
    pub change: f64,
    /// The change or the residual fell below its limit.
    pub converged: bool,
    /// Noise of the rows.
    pub sigma: f64,
    /// Value of what is minimised.
    pub objective: f64,
}

/// How far iterations have come.
#[derive(Clone, Copy, Debug)]
pub struct SolverProgress {
    pub iterations: usize,
    /// Last change of the slice relative to its contrast.
    pub change: f64,
    /// There is no need of more.
    pub converged: bool,
}

/// What is known of a slice at one resolution before it is searched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceScale {
    /// Standard deviation of the slice without noise, as far as the filtered back projection tells.
    pub contrast: f64,
    /// Weight of the regularisation.
    pub lambda: f64,
    /// Smallest value of the slice.
    pub low: f32,
}

/// The problem of a slice at one resolution.
pub struct SliceProblem<'a> {
    pub level: &'a ScanLevel,
    /// `A^T d`.
    pub data: Vec<f32>,
    /// The filtered back projection, 0 outside the disc.
    pub start: Vec<f32>,
    /// Sum of squares of the rows, times their weights.
    pub energy: f64,
    pub sigma: f64,
    pub scale: SliceScale,
}

impl SliceProblem<'_> {
    /// Returns what was found: a slice on the grid, with the penalty of the regularisation.
    pub fn solved(&self, slice: &[f32], penalty: f64, how: SolverProgress, memory: &mut TorusMemory) -> SolvedSlice {
        let objective = self.misfit(slice, memory) + penalty;
        let LevelForm { grid, size, offset, .. } = self.level.form;
        let rows = slice.chunks_exact(grid).skip(offset).take(size);
        let slice = rows.flat_map(|row| &row[offset..offset + size]).copied().collect();
        let SolverProgress { iterations, change, converged } = how;
        SolvedSlice { slice, outcome: SliceOutcome { iterations, change, converged, sigma: self.sigma, objective } }
    }

    /// Returns half the sum of squares of the difference between the data and a slice on the grid.
    fn misfit(&self, slice: &[f32], memory: &mut TorusMemory) -> f64 {
        let mut projected = vec![0f32; slice.len()];
        self.level.project(slice, &mut projected, memory);
        0.5 * (dot(slice, &projected) - 2.0 * dot(slice, &self.data) + self.energy)
    }
}

/// Size at which the constants of the methods were determined, in pixels.
const USUAL_SIZE: f64 = 200.0;
/// Least eigenvalue of the preconditioner relative to the largest.
const LEAST: f64 = 1e-6;
/// Value below which there is no bound.
const UNBOUNDED: f32 = -1e30;

impl ScanLevel {
    /// Returns by how much what grows with the root of a slice's side is larger than it is at the usual size.
    pub fn growth(&self) -> f64 {
        (self.form.size as f64 / USUAL_SIZE).sqrt()
    }

    /// Returns the scale of a slice, of whose filtered back projection in the disc the `sum` of values and that of their squares are
    /// given, with noise `sigma` of its rows.
    pub fn scale(
        &self,
        request: &LeastSquares,
        projections: usize,
        sigma: f64,
        [sum, squares]: [f64; 2],
    ) -> SliceScale {
        let (pixels, projections) = (self.pixels.max(1) as f64, projections as f64);
        let variance = squares / pixels - (sum / pixels).powi(2);
        // filtered back projection turns noise into this variance
        let of_noise = PI.powi(2) * sigma * sigma * self.mean_variance / 12.0 / projections;
        SliceScale {
            contrast: (variance - of_noise).max(0.1 * variance).max(0.0).sqrt(),
            lambda: request.strength * sigma * projections.sqrt() * self.growth(),
            low: if request.non_negative { 0.0 } else { UNBOUNDED },
        }
    }

    /// Returns what is added to the eigenvalues of the preconditioner, so that they are above 0.
    pub fn least_eigenvalue(&self) -> f64 {
        LEAST * self.largest
    }

    /// Sets pixels outside the disc to 0.
    pub fn keep_disc(&self, image: &mut [f32]) {
        for (row, inside) in image.chunks_exact_mut(self.form.grid).zip(&self.disc) {
            row[..inside.start].fill(0.0);
            row[inside.end..].fill(0.0);
        }
    }

    /// Computes `Q f`.
    pub fn project(&self, slice: &[f32], to: &mut [f32], memory: &mut TorusMemory) {
        self.twice.convolve(slice, to, &self.response, memory);
    }

    /// Returns the response of the inverse of the circulant, plus `rho` times the Laplacian, plus `shift` and a little.
    pub fn preconditioner(&self, rho: f64, shift: f64) -> Vec<f32> {
        let scale = self.torus.scale();
        let (rho, shift) = (rho as f32, (shift + self.least_eigenvalue()) as f32);
        let columns = self.symbol.chunks_exact(self.form.grid).zip(&self.laplacian);
        let value = |symbol: f32, laplacian: f32| (scale / f64::from(symbol + rho * laplacian + shift)) as f32;
        columns
            .flat_map(|(column, of_x)| column.iter().zip(&self.laplacian).map(move |(s, of_y)| value(*s, of_x + of_y)))
            .collect()
    }
}

/// Returns the sum of products, added up in `f64`.
pub fn dot(a: &[f32], b: &[f32]) -> f64 {
    let part = |(a, b): (&[f32], &[f32])| f64::from(a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>());
    a.chunks(64).zip(b.chunks(64)).map(part).sum()
}
