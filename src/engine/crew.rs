//! The devices of a run: found, planned for, checked, and given memory.

use super::engine::{Engine, Setup};
use super::selftest::{Prepared, SelfTest, open_device};
use super::work::Pace;
use crate::device::{self, FoundDevice};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::known::KnownFailures;
use crate::model;
use crate::plan::{Avoid, PIECES, Plan, Scan, human};
use crate::profile::ProfileStore;
use crate::recipe::Job;
use crate::report::Reporter;

/// A device that is ready.
pub(super) struct Member {
    /// Its name, which tells parts of one device apart.
    pub label: String,
    pub engine: Engine,
    pub plan: Plan,
    pub self_test: SelfTest,
}

impl Member {
    pub fn facts(&self) -> &DeviceFacts {
        &self.engine.session.facts
    }

    /// What it takes, and how fast it should be.
    pub fn pace(&self, job: &Job, scan: &Scan) -> Pace {
        let measured = self.plan.estimate(scan, self.facts(), job).map(|s| scan.slices.len() as f64 / s);
        let bound = || {
            let rates = self.plan.profile.throughput.as_ref()?;
            let (_, gu_per_s) = model::bound(&self.plan.spec, rates, self.facts())?;
            Some(gu_per_s * 1e9 * scan.slices.len() as f64 / Plan::updates(scan))
        };
        Pace {
            chunk: self.plan.chunk,
            pass: self.plan.spec.slices as usize,
            room: if self.engine.is_whole() { self.plan.sets } else { PIECES },
            rate: measured.or_else(bound),
        }
    }
}

/// The devices that a job asks for, and the memory of the host that each may use, in bytes.
pub(super) fn chosen(job: &Job, scan: &Scan) -> Result<(Vec<FoundDevice>, u64)> {
    let devices = job.device.select(&device::enumerate()?)?;
    let each = host_budget(job, scan)? / devices.len().max(1) as u64;
    Ok((devices, each))
}

/// Memory of the host for the chunks of the whole run, in bytes.
///
/// # Errors
/// [`Error::Usage`] when it is not more than what reading holds.
pub(super) fn host_budget(job: &Job, scan: &Scan) -> Result<u64> {
    let all = job.host_memory();
    match all.checked_sub(scan.held + scan.cached) {
        Some(left) if left > 0 => Ok(left),
        _ => {
            let cached = match scan.cached {
                0 => String::new(),
                cached => format!(", and the HDF5 library {} for chunks", human(cached)),
            };
            Err(Error::usage(format!(
                "--memory: {} are not enough: the steps before the filter hold {} (--phase and --tilt filter rows of all \
                 projections together, --stripes works on a sinogram for every thread){cached}; give more, or fewer \
                 projections with --projection-range",
                human(all),
                human(scan.held)
            )))
        }
    }
}

/// Plans for a device, trusting its driver but for what is known.
pub(super) fn prepare(job: &Job, scan: &Scan, found: &FoundDevice, host: u64, reporter: &Reporter) -> Result<Plan> {
    let choice = ProfileStore::load()?.for_device(job.profile.as_deref(), &found.facts)?;
    reporter.detail(&format!("profile {}: {}", choice.profile.name, choice.reason));
    for note in &choice.notes {
        reporter.note(&format!("note: {note}"));
    }
    let avoid = Avoid { known: &KnownFailures::built_in()?, refused: &[] };
    Plan::new(job, scan, &choice, &found.facts, host, avoid)
}

/// Readies all devices of a job at the same time. One of several that cannot be used is left out.
///
/// # Errors
/// The first device's, if none can be used; a usage error always counts.
pub(super) fn muster(job: &Job, scan: &Scan, reporter: &Reporter) -> Result<Vec<Member>> {
    let (devices, host) = chosen(job, scan)?;
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            devices.iter().map(|found| scope.spawn(move || enlist(job, scan, found, host, reporter))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(crashed("start")))).collect()
    });
    let mut members = Vec::new();
    let mut failed = None;
    for (result, found) in results.into_iter().zip(&devices) {
        match result {
            Ok(member) => members.push(member),
            Err(error @ (Error::Usage(_) | Error::Profile { .. })) => return Err(error),
            Err(error) => {
                if devices.len() > 1 {
                    reporter.note(&format!("warning: {} is left out: {error}", found.label()));
                }
                failed = failed.or(Some(error));
            }
        }
    }
    match failed {
        Some(error) if members.is_empty() => Err(error),
        _ => Ok(members),
    }
}

/// Readies one device. Where its memory is not what its driver says, with smaller chunks.
fn enlist(job: &Job, scan: &Scan, found: &FoundDevice, host: u64, reporter: &Reporter) -> Result<Member> {
    let mut job = job.clone();
    loop {
        let Prepared { session, plan, self_test } = open_device(&job, scan, found, host, reporter)?;
        let built = Engine::new(session, &Setup::of(&job, &scan.geometry, &plan)).and_then(|mut engine| {
            engine.touch()?;
            Ok(engine)
        });
        let why = match built {
            Ok(engine) => {
                reporter.detail(plan.describe(&job, scan, &engine.session.facts, &[]).trim_end());
                reporter.detail(&format!("kernel uses     {}", engine.resources));
                if let Some(note) = &engine.note {
                    reporter.note(&format!("note: {note}"));
                }
                return Ok(Member { label: found.label(), engine, plan, self_test });
            }
            Err(Error::Memory(why)) => why,
            Err(error) => return Err(error),
        };
        let half = plan.device_bytes.iter().map(|b| b.bytes).sum::<u64>() / 2;
        job.device_memory = Some(half);
        // an error of the plan would not tell what the device said
        if prepare(&job, scan, found, host, &Reporter::silent()).is_err() {
            return Err(Error::Memory(why));
        }
        reporter.note(&format!("note: {why}; trying with {}", human(half)));
    }
}

/// What is left of a thread that panicked.
pub(super) fn crashed(stage: &str) -> Error {
    Error::Device(format!("the {stage} stopped unexpectedly; please report this"))
}
