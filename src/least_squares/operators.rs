//! What depends on the scan alone: the convolution that projects and back-projects, and its preconditioner.

use super::definition::{grid_length, row_length};
use super::interior::Margins;
use super::kernel::{ProjectionNormal, circulant, kernel};
use super::rows::{LevelScan, RowOperators};
use super::torus::{Torus, even_spectrum};
use crate::geometry::{Geometry, cos_sin_degrees, slice_centre};
use std::f64::consts::TAU;
use std::ops::Range;

/// Largest size of a slice that is not begun at half its resolution, in pixels.
const LARGEST_START: usize = 512;

/// Radius of the disc that the slice is searched in, relative to half its side.
const DISC: f64 = 0.98;

/// Everything about a scan that the slices share.
pub struct ScanOperators {
    /// The scan, and the scan at half the resolution and so on, from which larger slices are begun.
    pub(super) levels: Vec<ScanLevel>,
    pub(super) projections: usize,
    /// Number of measured bins.
    pub(super) bins: usize,
    /// What is added to rows and slices on each side.
    pub(super) margins: Margins,
}

/// The scan at one resolution.
pub(super) struct ScanLevel {
    /// Side of the slice in pixels, and of the grid on which it is computed.
    pub size: usize,
    pub grid: usize,
    /// Position of the slice's first pixel on the grid, along x and y.
    pub offset: usize,
    /// Bins of this level.
    pub bins: usize,
    /// Pixels of each row of the grid that are in the disc.
    pub disc: Vec<Range<usize>>,
    /// Number of pixels in the disc.
    pub pixels: usize,
    pub rows: RowOperators,
    /// Transforms of the grid, and of twice the grid.
    pub torus: Torus,
    pub twice: Torus,
    /// Spectrum of the convolution, for `twice`.
    pub response: Vec<f32>,
    /// Spectrum of the circulant, without scale, and its largest value.
    pub symbol: Vec<f32>,
    pub largest: f64,
    /// `2 - 2 cos` of the frequencies of the grid: the Laplacian along one axis.
    pub laplacian: Vec<f32>,
}

impl ScanOperators {
    /// Computes the operators of a scan for full slices, with a filter for the slices to begin with, given as a spectrum
    /// of any length.
    pub fn new(geometry: &Geometry, filter: impl Fn(usize) -> Vec<f64>) -> ScanOperators {
        let mut levels = vec![];
        let (mut bins, mut size, mut axis) = (geometry.bins, geometry.size, geometry.axis.clone());
        let halvings = (0..).take_while(|&n| can_halve(bins >> n, size >> n)).count();
        // the same pixels at all resolutions
        let margin = grid_length(size) - size;
        let mut offset = ((margin / 2) >> halvings) << halvings;
        loop {
            levels.push(ScanLevel::new(&LevelScan { geometry, bins, size, axis: &axis, offset }, &filter));
            if !can_halve(bins, size) {
                break;
            }
            (bins, size, offset) = (bins / 2, size / 2, offset / 2);
            axis.iter_mut().for_each(|axis| *axis = (*axis - 0.5) / 2.0);
        }
        ScanOperators { levels, projections: geometry.projections(), bins: geometry.bins, margins: Margins::default() }
    }

    /// Computes the operators of a scan of a sample that is wider than the detector, as [`new`](Self::new).
    pub fn interior(geometry: &Geometry, filter: impl Fn(usize) -> Vec<f64>) -> ScanOperators {
        let margins = Margins::around(geometry.bins, geometry.size);
        ScanOperators { margins, bins: geometry.bins, ..ScanOperators::new(&margins.widen(geometry), filter) }
    }

    /// Returns the bytes that the operators of slices of side `size` take, as far as they grow with its square.
    pub fn bytes(size: usize) -> u64 {
        // the kernel and its spectra in f64 while they are made
        let grid = grid_length(size) as u64;
        4 * grid * grid * 8 * 3
    }

    /// Returns the bytes that a slice of side `size` takes while it is searched, as far as they grow with its square.
    pub fn slice_bytes(size: usize) -> u64 {
        let grid = grid_length(size) as u64;
        // state and work, the preconditioner, and spectra of twice the grid
        grid * grid * 4 * (10 + 1 + 4)
    }
}

fn can_halve(bins: usize, size: usize) -> bool {
    size > LARGEST_START && size % 2 == 0 && bins % 2 == 0
}

impl ScanLevel {
    fn new(scan: &LevelScan, filter: impl Fn(usize) -> Vec<f64>) -> ScanLevel {
        let LevelScan { geometry, bins, size, offset, .. } = *scan;
        let grid = grid_length(size);
        let length = row_length(bins.max(grid));
        let of = |angle: &f64| {
            let (cos, sin) = cos_sin_degrees(*angle);
            ProjectionNormal { x: cos, y: -sin }
        };
        let directions: Vec<ProjectionNormal> = geometry.angles.iter().map(of).collect();
        let q = kernel(&directions, grid, length);
        let (torus, twice) = (Torus::new(grid), Torus::new(2 * grid));
        let scale = twice.scale();
        let response = even_spectrum(&q, 2 * grid).iter().map(|value| (value * scale) as f32).collect();
        // T. Chan's circulant has no negative eigenvalues, rounding has
        let symbol: Vec<f32> =
            even_spectrum(&circulant(&q, grid), grid).iter().map(|value| value.max(0.0) as f32).collect();
        let centre = slice_centre(size) + offset as f64;
        let radius = DISC * size as f64 / 2.0;
        let disc: Vec<Range<usize>> = (0..grid).map(|y| chord(radius, y as f64 - centre, centre, grid)).collect();
        ScanLevel {
            size,
            grid,
            offset,
            bins,
            pixels: disc.iter().map(Range::len).sum(),
            disc,
            rows: RowOperators::new(scan, &directions, length, &filter(length)),
            torus,
            twice,
            response,
            largest: symbol.iter().fold(0f32, |most, value| most.max(*value)).into(),
            symbol,
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
