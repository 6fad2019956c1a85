//! The parts and the input of a stage that filters rows.

use super::layout::{RowStageForm, row_layout};
use crate::device::{BufferLayout, Session};
use crate::geometry::Offset;
use crate::kernel::{KernelSpec, RowFilter};
use crate::spectrum::Padding;
use opencl3::memory::Buffer;
use std::ops::Range;

/// Everything that a stage is made from.
#[derive(Clone, Copy)]
pub struct FilterSetup<'a> {
    pub spec: &'a KernelSpec,
    pub rows: RowFilter,
    pub padding: Padding,
    pub bins: usize,
    /// Projections at a time.
    pub projections: usize,
    /// One value for each of `rows.length` frequencies, with the transform's `1 / length`.
    pub spectrum: &'a [f32],
    /// Relative weight of every projection of the scan.
    pub weights: &'a [f32],
    /// Rows are not needed any more: where that is possible, filtered rows take their place.
    pub in_place: bool,
}

impl FilterSetup<'_> {
    /// The buffers of the stage on a device.
    pub(super) fn layout(&self, session: &Session) -> BufferLayout {
        let FilterSetup { spec, rows, bins, projections, weights, in_place, .. } = *self;
        let (all_projections, units) = (weights.len(), session.facts.compute_units);
        row_layout(RowStageForm { spec, rows, bins, projections, all_projections, in_place, units })
    }
}

/// Rows of some slices.
#[derive(Clone)]
pub struct RowBatch<'a> {
    /// `[slice][projection][bin]`.
    pub rows: &'a Buffer<f32>,
    /// The value of `rows` that they start at.
    pub first: usize,
    /// Slices that there are.
    pub valid: usize,
    /// The part of the scan that `rows` has.
    pub projections: Range<usize>,
    /// For kernels that read frequencies.
    pub phases: Option<&'a Buffer<Offset>>,
}
