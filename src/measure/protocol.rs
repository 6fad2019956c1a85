//! The problem that is measured (paper, 2.3), and the selection of kernels.

use crate::device::{BufferLayout, GridForm, SinogramStore, projector_layout, sinogram_bytes};
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::fft::{RowStageForm, row_layout};
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
    /// Number of timed passes, of which the median counts; with 0, kernels are only checked.
    pub passes: usize,
    /// Number of slices that are computed in as many passes as each kernel needs for them, in place of a number of
    /// passes.
    pub slices: Option<usize>,
}

impl Protocol {
    /// Returns the geometry of the scan, over 180 degrees around the middle of the detector.
    pub fn geometry(&self) -> Geometry {
        Geometry::half_turn(self.bins, self.projections, self.size)
    }

    /// Returns a problem on which kernels are only checked.
    pub const fn check(bins: usize, projections: usize, size: usize) -> Protocol {
        Protocol { bins, projections, size, passes: 0, slices: None }
    }

    /// Returns the number of timed passes of a kernel with `slices` slices per pass.
    pub fn passes_of(&self, slices: u32) -> usize {
        self.slices.map_or(self.passes, |all| all.div_ceil(slices as usize))
    }

    /// Returns the part of the problem that influences kernels.
    pub fn problem(&self) -> Problem {
        Problem { size: self.size, span: self.geometry().span(), ..Problem::new(self.projections, true) }
    }

    /// Returns the number of updates of a pass over `slices` slices.
    pub fn updates(&self, slices: u32) -> f64 {
        (self.size * self.size) as f64 * self.projections as f64 * f64::from(slices)
    }

    /// Returns the reason why a kernel cannot be timed on a device; `None` if it can.
    pub fn refuses(&self, spec: &KernelSpec, rows: RowFilter, facts: &DeviceFacts) -> Result<Option<String>> {
        let source = spec.generate()?;
        let group: usize = source.work_group.iter().product();
        if group > facts.max_work_group {
            return Ok(Some(format!("its work-group of {group} is larger than the device's {}", facts.max_work_group)));
        }
        let slices = spec.slices as usize;
        let geometry = self.geometry();
        let region = geometry.roi;
        // tables of gridding depend on the angles, and are many buffers
        let (grids, tables) = match &spec.parameters {
            Parameters::Gridding(gridding) => match GridForm::new(facts, gridding, region, spec.bound.accuracy)? {
                Some(form) => {
                    let grids = BufferLayout::default().with::<[f32; 2]>("grids", form.values(slices));
                    (grids, form.table_bytes(&geometry))
                }
                None => return Ok(Some("a line of the grid does not fit into its local memory".to_owned())),
            },
            _ => (projector_layout(spec, &geometry, source.block), 0),
        };
        let stage = RowStageForm {
            spec,
            rows,
            bins: self.bins,
            projections: self.projections,
            all_projections: self.projections,
            in_place: true,
            units: facts.compute_units,
        };
        let sinogram = sinogram_bytes(spec.texel, self.bins, self.projections, spec.element_bytes());
        let layout = BufferLayout::default()
            .with::<f32>("sinograms", slices * self.projections * self.bins)
            .with::<f32>("slices", slices * self.size * self.size)
            .and(row_layout(stage))
            .and(SinogramStore::layout(spec.texel, sinogram))
            .and(grids);
        let (largest, total) = (layout.largest(), layout.bytes() + tables);
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

/// Selection of kernels of a profile; an empty list selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferFilter {
    pub algorithms: Vec<Algorithm>,
    pub interpolations: Vec<Interpolation>,
    pub modes: Vec<Mode>,
    pub slices: Vec<u32>,
}

impl OfferFilter {
    /// Reports whether a kernel of a profile is selected.
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
