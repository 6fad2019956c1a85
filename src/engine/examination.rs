//! What slices that are searched on a device need to know of their rows: the host finds it while the device searches others.

use super::errors::CutOffError;
use crate::device::Session;
use crate::error::Result;
use crate::geometry::Geometry;
use crate::least_squares::{LeastSquares, RowScale, values_at_ends};
use opencl3::memory::{Buffer, CL_MAP_READ};
use rayon::prelude::*;

/// Mean value at the ends of rows, relative to their largest values, from which a sample counts as cut off.
const CUT_OFF: f64 = 0.1;

/// The examination of rows for least squares.
pub(super) struct RowExamination {
    request: LeastSquares,
    projections: usize,
    bins: usize,
    /// Weights of the projections, if they differ.
    weights: Option<Vec<f64>>,
}

impl RowExamination {
    pub fn new(request: LeastSquares, geometry: &Geometry) -> RowExamination {
        let weights = geometry.misfit_weights.clone();
        RowExamination { request, projections: geometry.projections(), bins: geometry.bins, weights }
    }

    /// Returns the scales of the first `count` sinograms of a buffer, by several threads.
    ///
    /// # Errors
    /// Those of [`expect_whole`](Self::expect_whole), and of the device.
    pub fn scales(&self, session: &Session, rows: &Buffer<f32>, count: usize) -> Result<Vec<RowScale>> {
        self.of_sinograms(session, rows, count, |sinogram| {
            self.expect_whole(sinogram).map(|()| RowScale::of(sinogram, self.bins, self.weights.as_deref()))
        })
    }

    /// Checks that rows see all of the sample, if least squares need that.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) for a sample that is cut off.
    pub fn expect_whole(&self, sinogram: &[f32]) -> Result<()> {
        let LeastSquares { method, interior, .. } = self.request;
        let ends = values_at_ends(sinogram, self.bins);
        match ends > CUT_OFF && !interior {
            true => Err(CutOffError::Sample { method, percent: 100.0 * ends }.into()),
            false => Ok(()),
        }
    }

    /// Returns what a function says of each of the first `count` sinograms of a buffer.
    pub fn of_sinograms<T: Send>(
        &self,
        session: &Session,
        rows: &Buffer<f32>,
        count: usize,
        of: impl Fn(&[f32]) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let values = self.projections * self.bins;
        let all = |sinograms: &mut [f32]| sinograms.par_chunks(values).map(&of).collect();
        session.with_mapped(rows, CL_MAP_READ, 0, count * values, "sinograms", all)?
    }
}
