//! The stages of exact interpolation: what each costs for a slice, and the time that a device's units need for it.

use crate::device::grid_sides;
use crate::geometry::{FrequencyGrid, Roi};
use crate::kernel::{Bound, GridStage, GridTask, Gridding, KernelSpec, Parameters};
use crate::profile::{Throughput, Units};
use serde::Serialize;

/// A stage of a kernel, for one slice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    pub stage: &'static str,
    /// Cells of the grid along x and y.
    pub cells: [usize; 2],
    /// Cells of a side of the kernel.
    pub width: u32,
    /// Number of floating-point instructions.
    pub operations: f64,
    /// Bytes of local memory.
    pub local_bytes: f64,
    /// Bytes of buffers through the first cache.
    pub device_bytes: f64,
    /// Least milliseconds for a slice.
    pub ms: f64,
    /// Unit that needs most time.
    pub limit: &'static str,
}

/// Returns the unit that needs most time for a stage, and its milliseconds.
fn limit(stage: &GridStage, rates: &Throughput) -> (&'static str, f64) {
    // 10^9 slices per second
    let of_units = Units::of(&stage.load, rates, 1.0).limit().map(|(unit, rate)| (unit, 1e-6 / rate));
    let of_memory =
        (rates.device_memory > 0.0).then(|| ("device memory", 1e-6 * stage.device_bytes / rates.device_memory));
    let longest = of_units.into_iter().chain(of_memory).max_by(|a, b| a.1.total_cmp(&b.1));
    longest.unwrap_or(("-", 0.0))
}

/// Returns the grid of a kernel for slices of its size, and the kernel with the width of the grid; `None` for other
/// families.
fn on_grid(spec: &KernelSpec) -> Option<(&Gridding, FrequencyGrid, KernelSpec)> {
    let Parameters::Gridding(gridding) = &spec.parameters else { return None };
    let grid = FrequencyGrid::new(Roi::full(spec.size), spec.bound.accuracy, grid_sides(gridding.items))?;
    Some((gridding, grid, spec.bounded(Bound { width: grid.width(), ..spec.bound })))
}

/// Returns a kernel as it is for slices of its size.
pub(super) fn sized(spec: &KernelSpec) -> KernelSpec {
    on_grid(spec).map_or_else(|| spec.clone(), |(_, _, spec)| spec)
}

/// Returns the stages of a kernel for as many projections and bins as a side of its slices has pixels; empty for other
/// families.
pub(super) fn of_kernel(spec: &KernelSpec, rates: &Throughput) -> Vec<StageRow> {
    let Some((gridding, grid, spec)) = on_grid(spec) else { return Vec::new() };
    let (size, width) = (spec.size, grid.width());
    let task = GridTask { bins: size, projections: size, region: [size; 2], lengths: grid.lengths };
    let row = |stage: GridStage| {
        let (limit, ms) = limit(&stage, rates);
        StageRow {
            stage: stage.name,
            cells: grid.lengths,
            width,
            operations: stage.load.fp,
            local_bytes: stage.load.local_bytes,
            device_bytes: stage.device_bytes,
            ms,
            limit,
        }
    };
    gridding.stages(&spec.form(), &task).map(row).into()
}
