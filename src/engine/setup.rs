//! The parts that an engine is made from.

use crate::geometry::{Cut, Geometry};
use crate::host_filter::RowForm;
use crate::kernel::{KernelSpec, RowFilter};
use crate::least_squares::LeastSquares;
use crate::plan::{LaminoPlan, Plan, SolverMemory};
use crate::recipe::{Recipe, RowFilterRecipe};
use crate::spectrum::{Filter, Padding, scaled_spectrum};
use std::borrow::Cow;

/// The part of the filter that can differ from slice to slice of a pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SliceForm {
    pub filter: RowFilterRecipe,
    /// By how many whole bins the slice's axis is to the left of the axis of the scan.
    pub shift: usize,
}

/// Everything that an engine is made from.
pub struct Setup<'a> {
    pub spec: &'a KernelSpec,
    pub geometry: &'a Geometry,
    pub filter: Filter,
    /// Cutoff of the filter in units of the Nyquist frequency.
    pub cutoff: f64,
    pub padding: Padding,
    /// How rows are filtered.
    pub row_filter: RowFilter,
    /// Number of slices that are on the device together.
    pub chunk: usize,
    /// Number of chunks that the device has buffers for.
    pub chunks_held: usize,
    /// Number of further chunks of which the device has buffers for the sinograms alone.
    pub sinograms_ahead: usize,
    /// The part of a chunk that is on the device at a time.
    pub cut: Cut,
    /// Least squares in place of filter and back projection.
    pub solver: Option<(LeastSquares, &'a SolverMemory)>,
    /// How slices about an inclined axis are computed, if the axis is inclined.
    pub lamino: Option<&'a LaminoPlan>,
    /// How the first slices of a pass differ; empty if they do not. Only the filter on the host can tell them apart.
    pub forms: &'a [SliceForm],
}

impl<'a> Setup<'a> {
    /// Returns the setup for a plan of a job.
    pub fn of(recipe: &Recipe, geometry: &'a Geometry, plan: &'a Plan) -> Setup<'a> {
        Setup {
            spec: &plan.spec,
            geometry,
            filter: recipe.filter.name,
            cutoff: recipe.filter.cutoff,
            padding: recipe.filter.padding,
            row_filter: plan.row_filter,
            chunk: plan.chunk,
            chunks_held: plan.chunks_held,
            sinograms_ahead: plan.sinograms_ahead,
            cut: plan.cut,
            solver: recipe.solver.zip(plan.solver.as_ref()),
            lamino: plan.lamino.as_ref(),
            forms: &[],
        }
    }

    /// Returns the scan with rows as wide as those of the compound sinogram.
    pub(super) fn stored(&self) -> Cow<'a, Geometry> {
        match self.forms.iter().map(|form| form.shift).max() {
            None | Some(0) => Cow::Borrowed(self.geometry),
            Some(most) => Cow::Owned(Geometry { bins: self.geometry.bins + most, ..self.geometry.clone() }),
        }
    }

    /// Returns how the rows of the first slices of a pass are filtered, and where they are stored.
    pub(super) fn row_forms(&self) -> Vec<RowForm> {
        let spectrum = |filter: RowFilterRecipe| scaled_spectrum(filter.name, filter.cutoff, self.row_filter.length);
        let form = |&SliceForm { filter, shift }: &SliceForm| RowForm {
            padding: filter.padding,
            spectrum: spectrum(filter),
            shift,
        };
        self.forms.iter().map(form).collect()
    }
}
