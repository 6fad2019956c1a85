//! The devices of a run: found, planned for, checked, and given memory.

use super::chunks::Engine;
use super::errors::{HostBudgetError, LostDeviceWarning};
use super::prepare::{Prepared, SelfTest, open_device, plan_for};
use super::setup::Setup;
use super::source::Source;
use super::work::Pace;
use crate::device::{self, FoundDevice};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::fault;
use crate::feed::DeviceFeed;
use crate::fft;
use crate::job::Job;
use crate::plan::{Memory, PIECES, Plan, Scan};
use crate::recipe::Recipe;
use crate::report::Reporter;
use crate::threads::panicked;
use crate::units::human;

/// A device that is ready.
pub struct ReadyDevice {
    /// Name of the device, which distinguishes parts of one device.
    pub label: String,
    pub engine: Engine,
    pub plan: Plan,
    pub self_test: SelfTest,
}

impl ReadyDevice {
    pub fn facts(&self) -> &DeviceFacts {
        &self.engine.session.facts
    }

    /// Returns the size of its chunks, and how fast it should be.
    pub(super) fn pace(&self, recipe: &Recipe, scan: &Scan) -> Pace {
        Pace {
            chunk: self.plan.chunk,
            pass: self.plan.lamino.map_or(self.plan.spec.slices as usize, |plan| plan.depth),
            within_blocks: self.plan.lamino.is_some(),
            slots: if self.engine.is_whole() { self.plan.chunks_held + self.plan.sinograms_ahead } else { PIECES },
            rate: self.rate(recipe, scan).filter(|_| !fault::loses_a_device()),
        }
    }

    /// Returns the slices per second that were measured on such a device, else the most that its units allow; `None` if
    /// neither is known.
    pub fn rate(&self, recipe: &Recipe, scan: &Scan) -> Option<f64> {
        let measured = self.plan.estimate(scan, self.facts(), recipe).map(|s| scan.slices.len() as f64 / s);
        let bound = || {
            let rates = self.plan.profile.throughput.as_ref()?;
            let (_, gu_per_s) = rates.bound(&self.plan.spec, self.facts())?;
            Some(gu_per_s * 1e9 * scan.slices.len() as f64 / scan.updates())
        };
        // the host finds slices by least squares, and rates are not those of an inclined axis
        if recipe.solver.is_some() || self.plan.lamino.is_some() { None } else { measured.or_else(bound) }
    }
}

/// Returns the devices that a job asks for, and the memory that each may use.
pub fn chosen(job: &Job, scan: &Scan) -> Result<(Vec<FoundDevice>, Memory)> {
    let devices = device::find(&job.execution.devices)?;
    let host = host_budget(job, scan)? / devices.len().max(1) as u64;
    let memory = Memory { host, device: job.execution.device_memory, devices: devices.len() };
    Ok((devices, memory))
}

/// Returns the bytes of host memory for the whole run, without those for chunks of the input.
///
/// # Errors
/// [`Error::Usage`] when nothing is left.
pub fn host_budget(job: &Job, scan: &Scan) -> Result<u64> {
    let all = job.execution.host_memory();
    all.checked_sub(scan.cached)
        .filter(|left| *left > 0)
        .ok_or_else(|| HostBudgetError::CachedTooLarge { all: human(all), cached: human(scan.cached) }.into())
}

/// Makes all devices of a job ready at the same time. One of several that cannot be used is left out.
///
/// # Errors
/// The error of the first device, if none can be used; a usage or profile error of any device.
pub fn ready_devices(job: &Job, source: &Source, reporter: &Reporter) -> Result<Vec<ReadyDevice>> {
    let (devices, memory) = chosen(job, &source.scan)?;
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            devices.iter().map(|found| scope.spawn(move || make_ready(job, source, found, memory, reporter))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked("start")))).collect()
    });
    let mut ready = Vec::new();
    let mut failed = None;
    for (result, found) in results.into_iter().zip(&devices) {
        match result {
            Ok(device) => ready.push(device),
            Err(error @ (Error::Usage(_) | Error::Profile { .. })) => return Err(error),
            Err(error) => {
                if devices.len() > 1 {
                    let (label, error) = (found.label(), error.to_string());
                    let message = LostDeviceWarning::NotUsed { label, error };
                    reporter.note(&format!("warning: {message}"));
                }
                failed = failed.or(Some(error));
            }
        }
    }
    match failed {
        Some(error) if ready.is_empty() => Err(error),
        _ => Ok(ready),
    }
}

/// Makes one device ready, with smaller chunks if its memory is less than its driver says.
fn make_ready(
    job: &Job,
    source: &Source,
    found: &FoundDevice,
    memory: Memory,
    reporter: &Reporter,
) -> Result<ReadyDevice> {
    let scan = &source.scan;
    let mut memory = memory;
    loop {
        let Prepared { session, plan, self_test } = open_device(job, scan, found, memory, reporter)?;
        let built = Engine::new(session, &Setup::of(&job.recipe, &scan.geometry, &plan)).and_then(|mut engine| {
            engine.add_steps(&job.recipe, source, &plan)?;
            engine.touch()?;
            Ok(engine)
        });
        let why = match built {
            Ok(engine) => {
                reporter.detail(plan.describe(job, scan, &engine.session.facts, &[]).trim_end());
                reporter.detail(&format!("kernel uses     {}", engine.resources));
                if let Some(note) = &engine.note {
                    reporter.note(&format!("note: {note}"));
                }
                return Ok(ReadyDevice { label: found.label(), engine, plan, self_test });
            }
            Err(Error::Memory(why)) => why,
            Err(error) => return Err(error),
        };
        let half = plan.device_bytes.iter().map(|b| b.bytes).sum::<u64>() / 2;
        memory.device = Some(half);
        // an error of the plan would not tell what the device said
        if plan_for(job, scan, found, memory, &Reporter::silent()).is_err() {
            return Err(Error::Memory(why));
        }
        reporter.note(&format!("note: {why}; trying with {}", human(half)));
    }
}

/// Leaves devices after a run without an error: to the next run if they are kept, else to the end of the process, which
/// frees them sooner than their drivers do.
pub fn leave(mut devices: Vec<ReadyDevice>) {
    devices.iter_mut().filter_map(|device| device.engine.feed.as_mut()).for_each(DeviceFeed::end);
    if device::devices_are_kept() {
        return devices.into_iter().for_each(|device| device.engine.into_session().keep());
    }
    fft::tear_down();
    std::mem::forget(devices);
}
