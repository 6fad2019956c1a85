//! How long a run will take, said before it starts if that is long.

use crate::engine::{ReadyDevice, Source};
use crate::error::Result;
use crate::facts::DeviceKind;
use crate::job::Job;
use crate::kernel::{Interpolation, Mode};
use crate::plan::Scan;
use crate::report::{Reporter, readable};

/// A run that takes longer is announced, in seconds.
const LONG: f64 = 600.0;
/// Fewer updates take less time than that even on a slow processor, with 0.1 GU/s.
const FEWEST: f64 = LONG * 0.1e9;
/// A slice is timed where that is at most this share of the run.
const TRIAL: usize = 20;
/// From this side on a slice takes fewer operations by gridding than by sums over projections.
const LARGE: usize = 1024;

/// Warns of a run of more than ten minutes, with the flags that make it faster.
///
/// # Errors
/// Those of a slice that is reconstructed to be timed.
pub(super) fn warn_if_long(
    job: &Job,
    source: &Source,
    devices: &mut [ReadyDevice],
    slices: usize,
    reporter: &Reporter,
) -> Result<()> {
    let mut rate = 0.0;
    for device in devices.iter_mut() {
        match device.rate(&job.recipe, &source.scan) {
            Some(known) => rate += known,
            None => match timed(source, device, slices)? {
                Some(measured) => rate += measured,
                None => return Ok(()),
            },
        }
    }
    let seconds = slices as f64 / rate;
    if rate > 0.0 && seconds > LONG {
        reporter.note(&format!(
            "warning: this will take about {}, by the time of back projection: {}",
            readable(seconds),
            faster(job, &source.scan, devices).join("; ")
        ));
    }
    Ok(())
}

/// Slices a second by one that is timed; `None` for a run that is too short for that.
fn timed(source: &Source, device: &mut ReadyDevice, slices: usize) -> Result<Option<f64>> {
    let per_slice = source.scan.updates() / source.scan.slices.len().max(1) as f64;
    let pass = device.plan.spec.slices as usize;
    if slices < TRIAL * pass || slices as f64 * per_slice < FEWEST {
        return Ok(None);
    }
    let (_, seconds) = device.engine.timed_slice(source, source.scan.slices[0])?;
    let seconds = seconds.filter + seconds.back_projection + seconds.steps;
    // a pass takes as long for one slice as for all
    Ok((seconds > 0.0).then(|| pass as f64 / seconds))
}

/// What would make a run faster, in the order of how little it changes.
fn faster(job: &Job, scan: &Scan, devices: &[ReadyDevice]) -> Vec<String> {
    let mut flags = Vec::new();
    let kernel = &job.recipe.kernel;
    if kernel.interpolation != Interpolation::Exact && scan.geometry.size >= LARGE {
        flags.push("--interpolation exact needs fewer operations for slices of this size".to_owned());
    }
    if devices.iter().all(|device| device.facts().kind == DeviceKind::Cpu) {
        flags.push("a GPU is many times faster than a processor (--device gpu, fbp devices)".to_owned());
    } else if kernel.mode == Mode::Precise {
        flags.push("--mode fast is faster where single precision is not needed".to_owned());
    }
    if job.recipe.input.binning == 1 {
        flags.push("--binning 2 is an eighth of the work, for a first look".to_owned());
    }
    if job.execution.shard.is_none() {
        flags.push("--shard I/N divides it between jobs".to_owned());
    }
    flags
}
