//! Warns before a run that will take long, with its estimated time.

use crate::engine::{ReadyDevice, Source};
use crate::error::Result;
use crate::facts::DeviceKind;
use crate::job::Job;
use crate::kernel::{Interpolation, Mode};
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
    let processor = devices.iter().all(|device| device.facts().kind == DeviceKind::Cpu);
    let warning = (rate > 0.0).then(|| warning(job, source.scan.geometry.size, processor, slices as f64 / rate));
    warning.flatten().iter().for_each(|warning| reporter.note(warning));
    Ok(())
}

/// What is said of a run of slices of this side that takes so many seconds, if that is long.
fn warning(job: &Job, size: usize, processor: bool, seconds: f64) -> Option<String> {
    let flags = || faster(job, size, processor).join("; ");
    (seconds > LONG).then(|| {
        format!("warning: back projection will take about {}; try a faster way: {}", readable(seconds), flags())
    })
}

/// Slices a second by one that is timed; `None` for a run that is too short for that.
fn timed(source: &Source, device: &mut ReadyDevice, slices: usize) -> Result<Option<f64>> {
    let per_slice = source.scan.updates() / source.scan.slices.len().max(1) as f64;
    let pass = device.plan.spec.slices as usize;
    if slices < TRIAL * pass || slices as f64 * per_slice < FEWEST {
        return Ok(None);
    }
    let (_, seconds) = device.engine.timed_slice(source, source.scan.slices[0])?;
    // steps run beside the others
    let seconds = (seconds.filter + seconds.back_projection).max(seconds.steps);
    // a pass takes as long for one slice as for all
    Ok((seconds > 0.0).then(|| pass as f64 / seconds))
}

/// What would make a run faster, in the order of how little it changes.
fn faster(job: &Job, size: usize, processor: bool) -> Vec<&'static str> {
    let mut flags = Vec::new();
    let kernel = &job.recipe.kernel;
    if kernel.interpolation != Interpolation::Exact && size >= LARGE {
        flags.push("--interpolation exact needs fewer operations for slices of this size");
    }
    if processor {
        flags.push("a GPU is many times faster than a CPU (--device gpu; fbp devices lists all devices)");
    } else if kernel.mode == Mode::Precise {
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
