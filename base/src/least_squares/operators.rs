//! What depends on the scan alone: the convolution that projects and back-projects, and its preconditioner.

use super::definition::grid_length;
use super::interior::Margins;
use super::kernel::{ProjectionNormal, circulant, kernel};
use super::levels::LevelForm;
use super::rows::RowOperators;
use super::torus::{Torus, even_spectrum};
use crate::geometry::{Geometry, GridSides, cos_sin_degrees};
use std::f64::consts::TAU;
use std::ops::Range;

/// Radius of the disc that the slice is searched in, relative to half its side.
const DISC: f64 = 0.98;

/// Everything about a scan that the slices share.
pub struct ScanOperators {
    /// The scan, and the scan at half the resolution and so on, from which larger slices are begun.
    pub levels: Vec<ScanLevel>,
    pub projections: usize,
    /// Number of measured bins.
    pub bins: usize,
    /// Weight of every projection, with the mean 1; `None` if all have the same.
    pub(super) weights: Option<Vec<f64>>,
    /// What is added to rows and slices on each side.
    pub(super) margins: Margins,
}

/// The scan at one resolution.
pub struct ScanLevel {
    pub form: LevelForm,
    /// Pixels of each row of the grid that are in the disc.
    pub disc: Vec<Range<usize>>,
    /// Number of pixels in the disc.
    pub pixels: usize,
    /// Mean of the projections' variances, if these are the inverse of their weights.
    pub(super) mean_variance: f64,
    pub(super) rows: RowOperators,
    /// Transforms of the grid, and of twice the grid.
    pub(super) torus: Torus,
    pub(super) twice: Torus,
    /// Spectrum of the convolution, for `twice`.
    pub response: Vec<f32>,
    /// Spectrum of the circulant, without scale, and its largest value.
    pub symbol: Vec<f32>,
    pub largest: f64,
    /// `2 - 2 cos` of the frequencies of the grid: the Laplacian along one axis.
    pub laplacian: Vec<f32>,
}

impl ScanOperators {
    /// Computes the operators of a scan for full slices, on grids with sides of a kind, with a filter for the slices to begin
    /// with, given as a spectrum of any length.
    pub fn new(geometry: &Geometry, sides: GridSides, filter: impl Fn(usize) -> Vec<f64>) -> ScanOperators {
        let levels = LevelForm::all(geometry, sides);
        let levels = levels.into_iter().map(|form| ScanLevel::new(geometry, form, &filter)).collect();
        let (projections, bins) = (geometry.projections(), geometry.bins);
        let weights = geometry.misfit_weights.clone();
        ScanOperators { levels, projections, bins, weights, margins: Margins::default() }
    }

    /// Computes the operators of a scan of a sample that is wider than the detector, as [`new`](Self::new).
    pub fn interior(geometry: &Geometry, filter: impl Fn(usize) -> Vec<f64>) -> ScanOperators {
        let margins = Margins::around(geometry.bins, geometry.size);
        ScanOperators {
            margins,
            bins: geometry.bins,
            ..ScanOperators::new(&margins.widen(geometry), GridSides::Thirds, filter)
        }
    }

    /// Returns the bytes that the operators of slices of side `size` take, as far as they grow with its square.
    pub fn bytes(size: usize, sides: GridSides) -> u64 {
        // the kernel and its spectra in f64 while they are made
        let grid = grid_length(size, sides) as u64;
        4 * grid * grid * 8 * 3
    }

    /// Returns the bytes that a slice of side `size` takes while it is searched, as far as they grow with its square.
    pub fn slice_bytes(size: usize) -> u64 {
        let grid = grid_length(size, GridSides::Thirds) as u64;
        // state and work, the preconditioner, and spectra of twice the grid
        grid * grid * 4 * (10 + 1 + 4)
    }
}

impl ScanLevel {
    fn new(geometry: &Geometry, form: LevelForm, filter: impl Fn(usize) -> Vec<f64>) -> ScanLevel {
        let LevelForm { size, grid, length, .. } = form;
        let uniform = vec![1.0; geometry.projections()];
        let weights = geometry.misfit_weights.as_ref().unwrap_or(&uniform);
        let of = |(angle, weight): (&f64, &f64)| {
            let (cos, sin) = cos_sin_degrees(*angle);
            ProjectionNormal { x: cos, y: -sin, weight: *weight }
        };
        let directions: Vec<ProjectionNormal> = geometry.angles.iter().zip(weights).map(of).collect();
        let q = kernel(&directions, grid, length);
        let (torus, twice) = (Torus::new(grid), Torus::new(2 * grid));
        let scale = twice.scale();
        let response = even_spectrum(&q, 2 * grid).iter().map(|value| (value * scale) as f32).collect();
        // T. Chan's circulant has no negative eigenvalues, rounding has
        let symbol: Vec<f32> =
            even_spectrum(&circulant(&q, grid), grid).iter().map(|value| value.max(0.0) as f32).collect();
        let centre = form.centre();
        let radius = DISC * size as f64 / 2.0;
        let disc: Vec<Range<usize>> = (0..grid).map(|y| chord(radius, y as f64 - centre, centre, grid)).collect();
        ScanLevel {
            pixels: disc.iter().map(Range::len).sum(),
            disc,
            mean_variance: weights.iter().map(|weight| weight.recip()).sum::<f64>() / weights.len().max(1) as f64,
            rows: RowOperators::new(&form, geometry, &directions, &filter(length)),
            torus,
            twice,
            response,
            largest: symbol.iter().fold(0f32, |most, value| most.max(*value)).into(),
            symbol,
            form,
            laplacian: (0..grid).map(|k| (2.0 - 2.0 * (TAU * k as f64 / grid as f64).cos()) as f32).collect(),
        }
    }
}

/// Returns the pixels, of `grid`, of a row at distance `y` from the centre of a disc that are inside.
fn chord(radius: f64, y: f64, centre: f64, grid: usize) -> Range<usize> {
    let is_inside = |x: &usize| (*x as f64 - centre).hypot(y) < radius;
    let first = (0..grid).find(is_inside).unwrap_or(0);
    let last = (0..grid).rfind(is_inside);
    first..last.map_or(first, |last| last + 1)
}
