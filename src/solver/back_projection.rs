//! Back projection of rows onto the grid of a slice, as they are and filtered.

use super::form::LevelKernels;
use crate::device::{BackProjector, Session, SinogramStore, grid_values};
use crate::error::Result;
use crate::fft::{FilterSetup, RowBatch, RowStage};
use crate::spectrum::Padding;
use opencl3::memory::Buffer;
use std::f64::consts::PI;

/// Transforms of rows, and the kernels that spread their frequencies over a grid.
pub(super) struct RowsToImages {
    /// Of rows as they are, and of filtered ones.
    stages: [RowStage; 2],
    projector: BackProjector,
    sinogram: SinogramStore,
    /// Number of slices of a pass.
    pass: usize,
    projections: usize,
    /// Number of values of a sinogram, and of an image.
    rows: usize,
    pixels: usize,
}

/// What rows are multiplied by before they are back-projected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowFactors {
    /// Weights in the misfit: the result is `A^T W d`.
    Plain,
    /// The filter and the weights of filtered back projection.
    Filtered,
}

impl RowsToImages {
    /// `filter` has the factors of the frequencies of a period.
    pub fn new(session: &Session, level: &LevelKernels, filter: &[f64]) -> Result<RowsToImages> {
        let LevelKernels { geometry, spec, rows, .. } = level;
        let (bins, projections) = (geometry.bins, geometry.projections());
        // the projector multiplies by pi / P
        let unit = projections as f64 / PI;
        let stage = |factors: &dyn Fn(usize) -> f64, weights: Vec<f32>| {
            let length = rows.length;
            // the Nyquist frequency is left out
            let factor = |k: usize| if 2 * k == length { 0.0 } else { (factors(k) / length as f64) as f32 };
            let spectrum: Vec<f32> = (0..length).map(factor).collect();
            let setup = FilterSetup {
                spec,
                rows: *rows,
                padding: Padding::Zero,
                bins,
                projections,
                spectrum: &spectrum,
                weights: &weights,
                in_place: false,
            };
            RowStage::new(session, setup)
        };
        let plain = match &geometry.misfit_weights {
            None => vec![unit as f32; projections],
            Some(weights) => weights.iter().map(|weight| (weight * unit) as f32).collect(),
        };
        let spacing = geometry.weights.iter().map(|weight| (weight * unit) as f32).collect();
        let grids = grid_values(&session.facts, spec, std::iter::once(geometry.roi))?;
        Ok(RowsToImages {
            stages: [stage(&|_| 1.0, plain)?, stage(&|k| filter[k], spacing)?],
            projector: BackProjector::new(session, spec, geometry, 0..projections)?,
            sinogram: SinogramStore::new(session, spec.texel, bins, projections, spec.element_bytes())?
                .with_grids(session, grids)?,
            pass: spec.slices as usize,
            projections,
            rows: projections * bins,
            pixels: geometry.roi.pixels(),
        })
    }

    /// Back-projects the rows of `count` slices, the first of which begin at value `first`.
    pub fn run(
        &mut self,
        session: &Session,
        kind: RowFactors,
        (rows, first): (&Buffer<f32>, usize),
        images: &Buffer<f32>,
        count: usize,
    ) -> Result<()> {
        let stage = &mut self.stages[kind as usize];
        for start in (0..count).step_by(self.pass) {
            let valid = self.pass.min(count - start);
            let batch = RowBatch {
                rows,
                first: first + start * self.rows,
                valid,
                projections: 0..self.projections,
                phases: self.projector.phases(),
            };
            stage.run(session, &batch, &mut self.sinogram)?;
            self.projector.run(session, &self.sinogram, stage.peaks(), images, start * self.pixels, valid)?;
        }
        Ok(())
    }
}
