//! The kernel of a run is checked before it, once for each device and driver; one that is wrong is not used.

use super::check::self_test;
use super::crew::prepare;
use super::engine::{open, texel_works};
use crate::cache::{Remembered, Verdicts};
use crate::device::{FoundDevice, Session};
use crate::error::{Error, Result, first_error};
use crate::kernel::KernelSource;
use crate::known::KnownFailures;
use crate::margins::margin;
use crate::plan::{Avoid, Plan, Refused, Scan};
use crate::recipe::Job;
use crate::report::Reporter;
use serde::Serialize;
use std::time::Instant;

/// An open device with a plan whose kernel is right there.
pub(super) struct Prepared {
    pub session: Session,
    pub plan: Plan,
    pub self_test: SelfTest,
}

/// How the check before a run went.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub(super) enum SelfTest {
    /// Checked now, or remembered if it took no time.
    Right { error: f64, margin: f64, seconds: Option<f64> },
    /// The person said so.
    Skipped,
}

impl std::fmt::Display for SelfTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SelfTest::Skipped => f.write_str("self-test: skipped (--no-self-test)"),
            SelfTest::Right { error, margin, seconds } => {
                write!(f, "self-test: right, error {error:.1e} (margin {margin:.0e}), ")?;
                match seconds {
                    Some(seconds) => write!(f, "{:.0} ms with building it", seconds * 1e3),
                    None => f.write_str("from the cache"),
                }
            }
        }
    }
}

/// Opens a device and plans: without image formats that do not work and kernels that are wrong. `host` is the memory that
/// the plan may use there, in bytes.
pub(super) fn open_device(
    job: &Job,
    scan: &Scan,
    found: &FoundDevice,
    host: u64,
    reporter: &Reporter,
) -> Result<Prepared> {
    let mut found = found.clone();
    let mut plan = prepare(job, scan, &found, host, reporter)?;
    let mut session = open(&found)?;
    let choice = crate::profile::Choice {
        profile: plan.profile.clone(),
        reason: plan.profile_reason.clone(),
        notes: Vec::new(),
    };
    let known = KnownFailures::built_in()?;
    let mut cache = Verdicts::load(&found.facts);
    let mut refused = Vec::new();
    let self_test = loop {
        if !texel_works(&session, plan.spec.texel)? {
            let broken = plan.spec.texel.format();
            if let Some(format) = broken {
                reporter.note(&format!(
                    "note: image format {format} gives back wrong values on this device, it is not used"
                ));
            }
            found.facts.image_formats.retain(|f| Some(*f) != broken);
        } else if !job.self_test {
            break SelfTest::Skipped;
        } else {
            let source = plan.spec.generate()?;
            match check(&session, &plan, &source, job, cache.as_mut(), reporter)? {
                Ok(right) => break right,
                Err(why) => {
                    refused.push(Refused { key: source.key, why });
                    // after an error a driver may hand out nothing else
                    session = open(&found)?;
                }
            }
        }
        plan = Plan::new(job, scan, &choice, &found.facts, host, Avoid { known: &known, refused: &refused })?;
    };
    for note in &plan.notes {
        reporter.note(&format!("note: {note}"));
    }
    reporter.detail(&self_test.to_string());
    Ok(Prepared { session, plan, self_test })
}

/// Checks the plan's kernel, unless it is known to be right; else what is wrong.
///
/// # Errors
/// [`Error::Memory`], which says nothing of the kernel.
fn check(
    session: &Session,
    plan: &Plan,
    source: &KernelSource,
    job: &Job,
    cache: Option<&mut Verdicts>,
    reporter: &Reporter,
) -> Result<Result<SelfTest, String>> {
    let margin = margin(&plan.spec).relative_rms;
    if let Some(error) = cache.as_ref().and_then(|cache| cache.right(&source.key, margin)) {
        return Ok(Ok(SelfTest::Right { error, margin, seconds: None }));
    }
    let start = Instant::now();
    let checked = self_test(session, &plan.spec, plan.rows, job.padding);
    let seconds = start.elapsed().as_secs_f64();
    let (verdict, error, outcome) = match checked {
        Ok(checked) if checked.right() => {
            let right = SelfTest::Right { error: checked.error, margin, seconds: Some(seconds) };
            ("right", Some(checked.error), Ok(right))
        }
        Ok(checked) => {
            let why = format!("wrong on this device: error {:.1e} (margin {margin:.0e})", checked.error);
            ("wrong", Some(checked.error), Err(why))
        }
        Err(error @ Error::Memory(_)) => return Err(error),
        Err(error) => {
            reporter.detail(&format!("self-test: {error}"));
            ("failed", None, Err(brief(&error)))
        }
    };
    if let Some(cache) = cache {
        let remembered = Remembered { name: source.name.clone(), verdict: verdict.into(), error, margin };
        if let Err(error) = cache.store([(source.key.clone(), remembered)]) {
            reporter.note(&unwritable(cache, &error));
        }
    }
    Ok(outcome)
}

/// What people are told when verdicts cannot be kept.
pub fn unwritable(cache: &Verdicts, error: &std::io::Error) -> String {
    let path = cache.path().display();
    format!("warning: {path}: {error}; verdicts are not remembered, FBP_CACHE_DIR names another directory")
}

/// An error in one line.
fn brief(error: &Error) -> String {
    match error {
        Error::KernelBuild { log, .. } => format!("does not build on this device: {}", first_error(log)),
        error => error.to_string().lines().next().unwrap_or("").to_owned(),
    }
}
