//! Host memory of least squares.

use super::errors::PlanFlagError;
use crate::error::Result;
use crate::geometry::Geometry;
use crate::least_squares::{LeastSquares, Margins, ScanOperators};
use crate::units::human;

/// Returns the side of slices that are searched, in pixels.
pub fn solved_side(request: &LeastSquares, geometry: &Geometry) -> usize {
    let margins = if request.interior { Margins::around(geometry.bins, geometry.size) } else { Margins::default() };
    geometry.size + 2 * margins.pixels
}

/// Host memory of least squares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SolverMemory {
    /// Largest number of slices that are searched at a time.
    pub at_once: usize,
    /// Bytes for these, and for what all slices share.
    pub bytes: u64,
}

impl SolverMemory {
    /// Divides `host` bytes among slices of side `size`, of which a pass has `pass`: at most half of the bytes are used,
    /// unless a single slice needs more.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) when there is not enough for a slice.
    pub fn new(size: usize, pass: usize, host: u64) -> Result<SolverMemory> {
        let (shared, each) = (ScanOperators::bytes(size), ScanOperators::slice_bytes(size));
        if shared + each >= host {
            let (memory, needed) = (human(host), human(shared + each));
            return Err(PlanFlagError::NoMemoryForSolver { memory, needed }.into());
        }
        let at_once = ((host / 2).saturating_sub(shared) / each).clamp(1, pass.max(1) as u64);
        Ok(SolverMemory { at_once: at_once as usize, bytes: shared + at_once * each })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_divided_among_slices() {
        let (shared, each) = (ScanOperators::bytes(512), ScanOperators::slice_bytes(512));
        let at_once = |host| SolverMemory::new(512, 8, host).map(|memory| memory.at_once);
        assert_eq!(at_once(1 << 40).unwrap(), 8);
        assert_eq!(at_once(2 * (shared + 3 * each)).unwrap(), 3);
        assert_eq!(at_once(shared + each + 1).unwrap(), 1);
        let error = at_once(shared + each).unwrap_err().to_string();
        assert!(error.contains("--memory") && error.contains("--method fbp"), "{error}");
    }
}
