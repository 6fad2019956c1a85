//! Kernels and buffers that a device needs to search the slices of a scan.

use crate::device::{GridForm, SinogramStore, sinogram_bytes};
use crate::facts::DeviceFacts;
use crate::fft::{RowStageForm, row_layout};
use crate::geometry::{Geometry, GridSides};
use crate::kernel::{Bound, Interpolation, KernelSpec, Mode, Parameters, Problem, RowFilter, StepTarget, Texel};
use crate::least_squares::{LeastSquares, LevelForm, SliceMethod};
use crate::operations::{SplitGroups, SplitImages};
use crate::profile::Profile;
use crate::spectrum::padded_length;

/// Largest error of back-projected rows, relative to their root mean square.
const ACCURACY: f64 = 1e-5;
/// Number of slices that a kernel back-projects together, if there is one for so many.
const TOGETHER: usize = 8;

/// The kernels and sizes with which a device searches slices: at every resolution, the highest first.
#[derive(Clone, Debug)]
pub struct SolverForm {
    pub(super) levels: Vec<LevelKernels>,
}

/// The kernels for one resolution.
#[derive(Clone, Debug)]
pub(super) struct LevelKernels {
    /// Geometry of the whole grid.
    pub geometry: Geometry,
    pub spec: KernelSpec,
    pub rows: RowFilter,
    pub grid: GridForm,
    pub groups: SplitGroups,
}

impl SolverForm {
    /// Returns the kernels of a profile for the slices of a scan; `None` where the host must search them: for other methods than the
    /// total variation, a sample that is cut off, without a kernel for exact interpolation, and for lines that the device does not hold.
    pub fn new(profile: &Profile, request: &LeastSquares, scan: &Geometry, facts: &DeviceFacts) -> Option<SolverForm> {
        if request.interior || !matches!(request.method, SliceMethod::Tv | SliceMethod::Huber) {
            return None;
        }
        let levels = LevelForm::all(scan, GridSides::PowersOfTwo).into_iter();
        let levels: Option<Vec<_>> = levels.map(|form| LevelKernels::new(profile, scan, form, facts)).collect();
        levels.map(|levels| SolverForm { levels })
    }

    /// Returns the bytes on the device for searching `slices` slices at a time.
    pub fn device_bytes(&self, slices: usize, facts: &DeviceFacts) -> u64 {
        let level = |(number, level): (usize, &LevelKernels)| {
            // binned rows of all resolutions but the highest
            let rows = if number > 0 { 4 * slices * level.geometry.projections() * level.geometry.bins } else { 0 };
            SplitImages::layout(level.groups, slices).bytes() + level.back_projection_bytes(facts) + rows as u64
        };
        self.levels.iter().enumerate().map(level).sum()
    }

    /// Returns the bytes of the largest buffer that grows with the number of slices.
    pub fn largest_buffer(&self, slices: usize) -> u64 {
        self.levels.iter().map(|level| SplitImages::layout(level.groups, slices).largest()).max().unwrap_or(0)
    }
}

impl LevelKernels {
    fn new(profile: &Profile, scan: &Geometry, form: LevelForm, facts: &DeviceFacts) -> Option<LevelKernels> {
        // exact interpolation has this period
        if form.length != padded_length(form.bins) {
            return None;
        }
        let geometry = form.geometry(scan);
        let groups = SplitGroups::new(StepTarget { facts, sizes: &profile.step_sizes }, form.grid)?;
        let offer = profile.select(None, Interpolation::Exact, Mode::Precise, None, TOGETHER, form.grid).ok()?;
        let Parameters::Gridding(gridding) = &offer.parameters else { return None };
        let grid = GridForm::new(facts, gridding, geometry.roi, ACCURACY).ok().flatten()?;
        let problem = Problem {
            size: form.grid,
            span: geometry.span(),
            bound: Some(Bound { accuracy: ACCURACY, width: grid.grid.width() }),
            ..Problem::new(geometry.projections(), geometry.same_axis())
        };
        let texel = offer.texels().first().copied().unwrap_or(Texel::Buffer);
        let spec = KernelSpec::new(&offer, profile, texel, problem, Some(facts));
        let rows = RowFilter::new(&spec, &profile.fft, form.bins, Some(facts));
        Some(LevelKernels { geometry, spec, rows, grid, groups })
    }

    fn back_projection_bytes(&self, facts: &DeviceFacts) -> u64 {
        let LevelKernels { geometry, spec, rows, grid, .. } = self;
        let (bins, projections) = (geometry.bins, geometry.projections());
        let stage = row_layout(RowStageForm {
            spec,
            rows: *rows,
            bins,
            projections,
            all_projections: projections,
            in_place: false,
            units: facts.compute_units,
        });
        let sinogram = sinogram_bytes(spec.texel, bins, projections, spec.element_bytes());
        let grids = 8 * grid.values(spec.slices as usize) as u64;
        2 * stage.bytes() + SinogramStore::layout(spec.texel, sinogram).bytes() + grids + grid.table_bytes(geometry)
    }
}
