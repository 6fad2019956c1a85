//! Regularised least squares: slices from few or noisy projections (docs/least-squares.md).
//!
//! With rows that are band-limited and periodic, projecting and back-projecting an image is a convolution with a kernel
//! that depends on the scan alone, so an iteration costs the same for any number of projections. [`ScanOperators`] has
//! what depends on the scan, [`SliceSolver`] finds a slice.
//!
//! Sources: Delaney and Bresler 1996 (the convolution), T. Chan 1988 and Fessler and Booth 1999 (circulant
//! preconditioners), Goldstein and Osher 2009, Ramani and Fessler 2012 (the alternating direction method), Eckstein and
//! Bertsekas 1992 (over-relaxation).

mod conjugate;
mod definition;
mod interior;
mod kernel;
mod levels;
mod method;
mod noise;
mod operators;
mod problem;
mod row_scale;
mod rows;
mod solver;
mod state;
#[cfg(test)]
mod tests;
mod torus;
mod variation;

pub use definition::{dirichlet, energy, grid_length, values_at_ends};
pub use interior::Margins;
pub use levels::LevelForm;
pub use method::{Iterations, LeastSquares, ProjectionWeights, SliceMethod};
pub use noise::{noise, noise_along};
pub use operators::{ScanLevel, ScanOperators};
pub use problem::{SliceOutcome, SliceScale, SolvedSlice};
pub use row_scale::RowScale;
pub use solver::{AT_START, SliceSolver, SliceStart};
pub use variation::{FEWEST, RELAX, SplitForm, is_anew};
