//! Warning before a run that will take long, with its estimated time.

use super::errors::ReconstructWarning;
use crate::engine::{ReadyDevice, Source};
use crate::error::Result;
use crate::facts::DeviceKind;
use crate::job::Job;
use crate::kernel::{Interpolation, Mode, StepBackend};
use crate::report::{Reporter, readable};

/// Estimated time of a run in seconds above which the user is warned.
const LONG: f64 = 600.0;
/// Number of updates that take less than [`LONG`] even on a slow processor, with 0.1 GU/s.
const FEWEST: f64 = LONG * 0.1e9;
/// Smallest ratio of a run to a pass for which a slice is timed.
const TRIAL: usize = 20;
/// Side of a slice from which gridding takes fewer operations than sums over projections.
const LARGE: usize = 1024;

/// Warns of a run of more than ten minutes, with the flags that make it faster.
///
/// # Errors
/// Errors of reconstructing the slice that is timed.
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
    let processor = devices.iter().all(|device| device.facts().kind == DeviceKind::Cpu);
    let warning = (rate > 0.0).then(|| warning(job, source.scan.geometry.size, processor, slices as f64 / rate));
    warning.flatten().iter().for_each(|warning| reporter.note(warning));
    Ok(())
}

/// Returns the warning about a run of slices of side `size` that takes `seconds`, if that is long.
fn warning(job: &Job, size: usize, processor: bool, seconds: f64) -> Option<String> {
    (seconds > LONG).then(|| {
        let (time, ways) = (readable(seconds), faster(job, size, processor).join("; "));
        format!("warning: {}", ReconstructWarning::Long { time, ways })
    })
}

/// Returns the slices per second, measured with one slice; `None` for a run that is too short for a measurement.
fn timed(source: &Source, device: &mut ReadyDevice, slices: usize) -> Result<Option<f64>> {
    let per_slice = source.scan.updates() / source.scan.slices.len().max(1) as f64;
    let pass = device.plan.spec.slices as usize;
    if source.scan.lamino.is_some() {
        // a slice needs nearly the rows of all
        return Ok(None);
    }
    let searched = device.engine.solver_counts().is_some();
    if slices < TRIAL * pass || !searched && slices as f64 * per_slice < FEWEST {
        return Ok(None);
    }
    let (_, seconds) = device.engine.timed_slice(source, source.scan.slices[0])?;
    if seconds.solver > 0.0 {
        // on the host, a slice in each thread
        let at_once = if device.plan.steps.solver == StepBackend::Host { rayon::current_num_threads() } else { 1 };
        return Ok(Some(pass.min(at_once) as f64 / seconds.solver));
    }
    // steps run in parallel with the other stages
    let seconds = (seconds.filter + seconds.back_projection).max(seconds.steps);
    // a pass takes as long for one slice as for all
    Ok((seconds > 0.0).then(|| pass as f64 / seconds))
}

/// Returns the ways to make a run faster, in the order of how little they change it.
fn faster(job: &Job, size: usize, processor: bool) -> Vec<&'static str> {
    let mut flags = Vec::new();
    let kernel = &job.recipe.kernel;
    // the host finds slices by least squares, whatever the device and the kernel
    let by_host = job.recipe.solver.is_some();
    if by_host {
        flags.extend(["--iterations with a smaller number", "--method fbp"]);
    }
    if !by_host && kernel.interpolation != Interpolation::Exact && size >= LARGE {
        flags.push("--interpolation exact needs fewer operations for slices of this size");
    }
    if !by_host && processor {
        flags.push("a GPU is many times faster than a CPU (--device gpu; fbp devices lists all devices)");
    } else if !by_host && kernel.mode == Mode::Precise {
        flags.push("--mode fast is faster if half precision is enough");
    }
    if job.recipe.input.binning == 1 {
        flags.push("--binning 2 is an eighth of the work, for a first look");
    }
    if job.execution.shard.is_none() {
        flags.push("--shard I/N divides the run between jobs");
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_runs_are_announced_with_flags() {
        let mut job = Job::default();
        job.recipe.input.binning = 1;
        assert_eq!(warning(&job, 2048, true, 599.0), None);
        let said = warning(&job, 2048, true, 4000.0).unwrap();
        for part in ["warning: ", "about 1 h 6 min", "--interpolation exact", "--device gpu", "--binning 2", "--shard"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        // what is given already, or does not help, is not named
        job.recipe.input.binning = 2;
        job.recipe.kernel.interpolation = Interpolation::Exact;
        let said = warning(&job, 512, false, 700.0).unwrap();
        assert!(said.contains("--mode fast") && said.contains("11 min 40 s"), "{said}");
        for part in ["--interpolation", "--binning", "--device"] {
            assert!(!said.contains(part), "{part}: {said}");
        }
    }
}
