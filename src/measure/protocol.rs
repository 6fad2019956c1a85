//! What is measured: the problem (paper, 2.3), and which kernels.

use crate::device::GridForm;
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::geometry::Geometry;
use crate::kernel::{Algorithm, Interpolation, KernelSpec, Mode, Offer, Parameters, Problem, RowFilter};
use crate::units::human;

/// The problem that kernels are timed on, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    pub bins: usize,
    pub projections: usize,
    /// Side of a slice in pixels.
    pub size: usize,
    /// Timed passes, of which the median counts; with 0 kernels are only checked.
    pub passes: usize,
    /// In place of a number of passes: slices that are computed, in as many passes as each kernel needs for them.
    pub slices: Option<usize>,
}

impl Protocol {
    /// The scan, over 180 degrees around the middle of the detector.
    pub fn geometry(&self) -> Geometry {
        Geometry::half_turn(self.bins, self.projections, self.size)
    }

    /// A problem on which kernels are only checked.
    pub const fn check(bins: usize, projections: usize, size: usize) -> Protocol {
        Protocol { bins, projections, size, passes: 0, slices: None }
    }

    /// Timed passes of a kernel with so many slices per pass.
    pub fn passes_of(&self, slices: u32) -> usize {
        self.slices.map_or(self.passes, |all| all.div_ceil(slices as usize))
    }

    /// What of the problem influences kernels.
    pub fn problem(&self) -> Problem {
        Problem { size: self.size, span: self.geometry().span(), ..Problem::new(self.projections, true) }
    }

    /// Updates of a pass over `slices` slices.
    pub fn updates(&self, slices: u32) -> f64 {
        (self.size * self.size) as f64 * self.projections as f64 * f64::from(slices)
    }

    /// Why a kernel cannot be timed on a device; `None` if it can.
    pub fn refuses(&self, spec: &KernelSpec, rows: RowFilter, facts: &DeviceFacts) -> Result<Option<String>> {
        let source = spec.generate()?;
        let group: usize = source.work_group.iter().product();
        if group > facts.max_work_group {
            return Ok(Some(format!("its work-group of {group} is larger than the device's {}", facts.max_work_group)));
        }
        let slices = spec.slices as usize;
        let geometry = self.geometry();
        let region = geometry.roi;
        let (grids, tables) = match &spec.parameters {
            Parameters::Gridding(gridding) => match GridForm::new(facts, gridding, region, spec.bound.accuracy)? {
                Some(form) => (8 * form.values(slices), form.table_bytes(&geometry)),
                None => return Ok(Some("a line of the grid does not fit into its local memory".to_owned())),
            },
            _ => (0, geometry.block_offsets_bytes(region, source.block)),
        };
        let row = spec.texel.row_length(self.bins) * self.projections * spec.element_bytes();
        let buffers = [
            slices * self.projections * self.bins * 4,
            slices * self.size * self.size * 4,
            slices * self.projections.div_ceil(2) * rows.pair_bytes(self.bins, spec.texel),
            8 * slices * rows.scratch(facts.compute_units),
            row,
            spec.texel.format().map_or(0, |_| row),
            grids,
        ]
        .map(|bytes| bytes as u64);
        let largest = buffers.into_iter().max().unwrap_or(0);
        let total = buffers.iter().sum::<u64>() + tables;
        let budget = facts.global_memory / 5 * 4;
        Ok((largest > facts.max_allocation || total > budget).then(|| {
            format!(
                "it needs {} of device memory (largest buffer {}), there are {} (largest allocation {})",
                human(total),
                human(largest),
                human(budget),
                human(facts.max_allocation)
            )
        }))
    }
}

/// Which kernels of a profile to select; an empty list selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferFilter {
    pub algorithms: Vec<Algorithm>,
    pub interpolations: Vec<Interpolation>,
    pub modes: Vec<Mode>,
    pub slices: Vec<u32>,
}

impl OfferFilter {
    /// Whether a kernel of a profile is selected.
    pub fn matches(&self, offer: &Offer) -> bool {
        fn any<T: PartialEq>(list: &[T], value: T) -> bool {
            list.is_empty() || list.contains(&value)
        }
        any(&self.algorithms, offer.parameters.algorithm())
            && any(&self.interpolations, offer.interpolation)
            && any(&self.modes, offer.mode)
            && any(&self.slices, offer.slices)
    }
}
