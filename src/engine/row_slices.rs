//! One slice by several jobs: about trial axes, or from parts of the projections.

use super::chunks::{Engine, Setup};
use super::devices::host_budget;
use super::finish::Finish;
use super::prepare::{Prepared, open_device};
use super::source::Source;
use crate::device;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::plan::Memory;
use crate::recipe::{Recipe, ScanRecipe};
use crate::report::Reporter;

/// A slice in the unit of its job.
pub struct RowSlice {
    /// Side of a whole slice in pixels.
    pub size: usize,
    /// Values `[y][x]` of the region.
    pub values: Vec<f32>,
}

/// Everything of a job and its scan that decides the plan for a single slice, but for the axis.
#[derive(PartialEq)]
struct PlannedFor {
    recipe: Recipe,
    bins: usize,
    angles: Vec<f64>,
}

/// Reconstructs a row of the scan by each of the jobs, as a run of this row would, on the first of the jobs' devices.
/// `take` receives the slices one after the other.
///
/// # Errors
/// Errors of a run, and those of `take`.
pub fn row_slices(
    jobs: &[Job],
    source: &Source,
    row: usize,
    reporter: &Reporter,
    mut take: impl FnMut(RowSlice) -> Result<()>,
) -> Result<()> {
    let Some(first) = jobs.first() else { return Ok(()) };
    let devices = device::find(&first.execution.devices)?;
    let found = devices.first().ok_or_else(|| Error::Internal("there is no device".into()))?;
    let mut ready: Option<(PlannedFor, Prepared)> = None;
    for job in jobs {
        let mut source = source.as_of(job)?;
        (source.scan.slices, source.scan.run_slices) = (vec![row], vec![row]);
        let scan = &source.scan;
        // an extended field is as wide as the axis is off the middle
        let wanted = PlannedFor {
            recipe: Recipe { scan: ScanRecipe::default(), ..job.recipe.clone() },
            bins: scan.geometry.bins,
            angles: scan.geometry.angles.clone(),
        };
        let prepared = match ready.take() {
            Some((planned, prepared)) if planned == wanted => prepared,
            _ => {
                let memory = Memory { host: host_budget(job, scan)?, device: job.execution.device_memory, devices: 1 };
                open_device(job, scan, found, memory, reporter)?
            }
        };
        let Prepared { session, plan, self_test } = prepared;
        let mut engine = Engine::new(session, &Setup::of(&job.recipe, &scan.geometry, &plan))?;
        engine.add_steps(&job.recipe, &source, &plan)?;
        let mut values = engine.slice(&source, row)?;
        Finish::new(&job.recipe, scan.geometry.size).apply(scan.geometry.roi, &mut values);
        ready = Some((wanted, Prepared { session: engine.into_session(), plan, self_test }));
        take(RowSlice { size: scan.geometry.size, values })?;
    }
    if let Some((_, Prepared { session, .. })) = ready {
        session.keep();
    }
    Ok(())
}
