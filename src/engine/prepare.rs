//! Prepares a device for a run: checks its kernel, once for each device and driver, and avoids kernels that it computes
//! incorrectly.

use crate::cache::{StoredVerdict, Verdicts};
use crate::check::{DeviceSteps, KernelTest, LaminoTest, StepError, TestShape};
use crate::device::{self, DeviceList, FoundDevice, PROGRAMS, ProgramStore, Session};
use crate::error::{Error, KernelBuildError, Result};
use crate::fft::image_transform;
use crate::files::refused_cache;
use crate::geometry::Geometry;
use crate::job::Job;
use crate::kernel::{KernelSource, StepBackend, StepBackends};
use crate::known::KnownFailures;
use crate::margins::margin;
use crate::operations::{EncodedSample, LaminoForm, generate_lamino};
use crate::plan::{Avoid, Memory, Plan, Refused, Request, Scan, encoded_sample};
use crate::profile::{Choice, Profile, ProfileStore, TUNED};
use crate::report::Reporter;
use crate::source::StoredRows;
use serde::Serialize;
use std::time::Instant;

/// An open device, and a plan whose kernel it computes correctly.
pub struct Prepared {
    pub session: Session,
    pub plan: Plan,
    pub self_test: SelfTest,
}

/// Outcome of the check of a kernel before a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum SelfTest {
    /// The kernel is correct; `seconds` is `None` if that is remembered from an earlier check.
    Right { error: f64, margin: f64, seconds: Option<f64> },
    /// The user asked for no check.
    Skipped,
}

impl std::fmt::Display for SelfTest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SelfTest::Skipped => f.write_str("self-test: skipped (--no-self-test)"),
            SelfTest::Right { error, margin, seconds } => {
                write!(f, "self-test: right, error {error:.1e} (margin {margin:.0e}), ")?;
                match seconds {
                    Some(seconds) => write!(f, "{:.0} ms including its build", seconds * 1e3),
                    None => f.write_str("from the cache"),
                }
            }
        }
    }
}

/// Chooses the profile for a device.
fn profile_for(job: &Job, found: &FoundDevice, reporter: &Reporter) -> Result<Choice> {
    let choice = ProfileStore::load()?.for_device(job.recipe.kernel.profile.as_deref(), &found.facts)?;
    reporter.detail(&format!("profile {}: {}", choice.profile.name, choice.reason));
    for note in &choice.notes {
        reporter.note(&format!("note: {note}"));
    }
    Ok(choice)
}

/// Plans for a device, trusting its driver except for known failures.
pub fn plan_for(job: &Job, scan: &Scan, found: &FoundDevice, memory: Memory, reporter: &Reporter) -> Result<Plan> {
    let avoid = Avoid { known: &KnownFailures::built_in()?, refused: &[] };
    let choice = profile_for(job, found, reporter)?;
    Plan::new(&request(job, scan, &choice, found, memory, avoid))
}

fn request<'a>(
    job: &'a Job,
    scan: &'a Scan,
    choice: &'a Choice,
    found: &'a FoundDevice,
    memory: Memory,
    avoid: Avoid<'a>,
) -> Request<'a> {
    let self_test = !job.execution.skip_self_test;
    let (keeps_values, histogram) = (job.execution.keeps_values(), job.execution.counts_values());
    Request {
        recipe: &job.recipe,
        self_test,
        keeps_values,
        histogram,
        scan,
        choice,
        facts: &found.facts,
        memory,
        avoid,
    }
}

/// Opens a device for its profile. Programs of a cache that others may write to are not used, with a warning.
fn open(found: &FoundDevice, choice: &Choice, reporter: &Reporter) -> Result<Session> {
    refused_cache(&[PROGRAMS, TUNED]).iter().for_each(|warning| reporter.note_once(warning));
    let session = Session::open(found)?.with_programs(ProgramStore::in_cache());
    let Profile { step_sizes, fft, .. } = &choice.profile;
    Ok(session.with_step_sizes(step_sizes.clone()).with_image_transforms(fft.images, image_transform))
}

/// Opens a device and plans for it, without image formats that do not work and kernels that it computes incorrectly.
///
/// # Errors
/// Errors of planning and opening.
pub fn open_device(
    job: &Job,
    scan: &Scan,
    found: &FoundDevice,
    memory: Memory,
    reporter: &Reporter,
) -> Result<Prepared> {
    let mut found = found.clone();
    let mut choice = profile_for(job, &found, reporter)?;
    let known = KnownFailures::built_in()?;
    let mut cache = Verdicts::load(&found.facts);
    let mut refused = Vec::new();
    let plan_without = |choice: &Choice, found: &FoundDevice, refused: &[Refused]| {
        Plan::new(&request(job, scan, choice, found, memory, Avoid { known: &known, refused }))
    };
    let mut plan = plan_without(&choice, &found, &refused)?;
    let mut session = open(&found, &choice, reporter)?;
    let self_test = loop {
        if !session.texel_works(plan.spec.texel)? {
            let broken = plan.spec.texel.format();
            if let Some(format) = broken {
                reporter
                    .note(&format!("note: image format {format} returns wrong values on this device and is not used"));
            }
            found.facts.image_formats.retain(|f| Some(*f) != broken);
        } else if job.execution.skip_self_test {
            break SelfTest::Skipped;
        } else {
            let source = match plan.lamino {
                Some(plan) => generate_lamino(LaminoForm::new(session.step_target(), &plan.lamino))?,
                None => plan.spec.generate()?,
            };
            match check(&session, &plan, &source, job, scan, cache.as_mut(), reporter)? {
                Ok(right) => match check_steps(&session, &plan, job, scan, cache.as_mut(), reporter)? {
                    None => break right,
                    Some(why) => {
                        reporter.note(&format!("note: {why}; the host does the steps before and after the kernels"));
                        choice.profile.steps = StepBackends::HOST;
                        session = open(&found, &choice, reporter)?;
                    }
                },
                Err(why) => {
                    refused.push(Refused { key: source.key, why });
                    // after an error a driver may hand out nothing else
                    session = open(&found, &choice, reporter)?;
                }
            }
        }
        plan = plan_without(&choice, &found, &refused)?;
    };
    for note in &plan.notes {
        reporter.note(&format!("note: {note}"));
    }
    reporter.detail(&self_test.to_string());
    Ok(Prepared { session, plan, self_test })
}

/// Checks the plan's kernel, unless it is known to be correct; the inner error says what is wrong with it.
///
/// # Errors
/// [`Error::Memory`], which says nothing of the kernel.
fn check(
    session: &Session,
    plan: &Plan,
    source: &KernelSource,
    job: &Job,
    scan: &Scan,
    cache: Option<&mut Verdicts>,
    reporter: &Reporter,
) -> Result<Result<SelfTest, String>> {
    let inclined = plan.lamino.map(|plan| LaminoTest::new(plan.lamino.degrees, plan.lamino.step));
    let margin = inclined.as_ref().map_or_else(|| margin(&plan.spec).relative_rms, |_| LaminoTest::MARGIN);
    let geometry = &scan.geometry;
    let roi = plan.cut.bands(geometry.roi).next().unwrap_or(geometry.roi);
    let test = KernelTest {
        spec: &plan.spec,
        rows: plan.row_filter,
        padding: job.recipe.filter.padding,
        scan: &Geometry { roi, ..geometry.clone() },
    };
    let key = if inclined.is_some() { source.key.clone() } else { test.key(&session.facts, &source.key)? };
    if let Some(error) = cache.as_ref().and_then(|cache| cache.correct_error(&key, margin)) {
        return Ok(Ok(SelfTest::Right { error, margin, seconds: None }));
    }
    let start = Instant::now();
    let checked = inclined.as_ref().map_or_else(|| test.run(session), |test| test.run(session));
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
        let remembered = StoredVerdict { name: source.name.clone(), verdict: verdict.into(), error, margin };
        if let Err(error) = cache.store([(key, remembered)]) {
            reporter.note(&cache.unwritable(&error));
        }
    }
    Ok(outcome)
}

/// Returns the step that the device computes incorrectly, if there is one among those that the plan gives it and that
/// are not known to be correct.
///
/// # Errors
/// [`Error::Memory`], which says nothing of the kernels.
fn check_steps(
    session: &Session,
    plan: &Plan,
    job: &Job,
    scan: &Scan,
    cache: Option<&mut Verdicts>,
    reporter: &Reporter,
) -> Result<Option<String>> {
    let steps = DeviceSteps {
        steps: &job.recipe.steps,
        backends: plan.steps,
        binning: scan.samples.stored.by,
        extended: scan.field.is_some(),
        sample: encoded_sample(job.recipe.values.dtype),
        counts_values: plan.counts_values,
        shape: TestShape {
            projections: scan.geometry.projections(),
            images: plan.kept_blocks().map(|shape| (shape.bins, shape.blocks)),
        },
    };
    wrong_step(session, &steps, cache, reporter)
}

/// Returns the step that the device computes incorrectly, if there is one among `steps` that are not known to be
/// correct.
fn wrong_step(
    session: &Session,
    steps: &DeviceSteps,
    cache: Option<&mut Verdicts>,
    reporter: &Reporter,
) -> Result<Option<String>> {
    let Some(key) = steps.key(&session.step_sizes, session.image_backend) else { return Ok(None) };
    if cache.as_ref().is_some_and(|cache| cache.correct_error(&key, 1.0).is_some()) {
        return Ok(None);
    }
    let wrong = match steps.check(session) {
        Ok(found) => found
            .into_iter()
            .find(|found| found.error > found.margin)
            .map(|StepError { step, error, .. }| format!("{step}: wrong on this device, off by {error:.1e}")),
        Err(error @ Error::Memory(_)) => return Err(error),
        Err(error) => Some(format!("steps on this device: {}", brief(&error))),
    };
    let verdict = if wrong.is_some() { "wrong" } else { "right" };
    if let Some(cache) = cache {
        let error = wrong.is_none().then_some(0.0);
        let remembered = StoredVerdict { name: "steps".into(), verdict: verdict.into(), error, margin: 1.0 };
        if let Err(error) = cache.store([(key, remembered)]) {
            reporter.note(&cache.unwritable(&error));
        }
    }
    reporter.detail(&format!("steps on the device: {verdict}"));
    Ok(wrong)
}

/// Opens the first of a job's devices for steps on data that are not reconstructed: binning, steps on rows, and those
/// of the recipe.
///
/// Returns `None` if the host does them: the profile says so, there is no device and none was asked for, or the device
/// computes a step incorrectly. `stripes` tells whether the recipe's stripe removal is done.
///
/// # Errors
/// Errors of choosing and opening the device; [`Error::Memory`] of the tests of its steps.
pub(super) fn open_for_steps(
    job: &Job,
    stored: StoredRows,
    shape: TestShape,
    stripes: bool,
    reporter: &Reporter,
) -> Result<Option<Session>> {
    let list = &job.execution.devices;
    let devices = match device::find(list) {
        Err(error) if *list == DeviceList::default() => {
            reporter.detail(&format!("the host does all steps: {error}"));
            return Ok(None);
        }
        devices => devices?,
    };
    let Some(found) = devices.first() else { return Ok(None) };
    let choice = profile_for(job, found, reporter)?;
    let (of_profile, images) = (choice.profile.steps, shape.images);
    let stripes = stripes && !job.recipe.steps.stripes.is_empty();
    let needed = [(true, of_profile.rows), (images.is_some(), of_profile.images), (stripes, of_profile.sinograms)];
    if needed.contains(&(true, StepBackend::Host)) {
        return Ok(None);
    }
    let session = open(found, &choice, reporter)?;
    let on_device = |needed| if needed { StepBackend::Device } else { StepBackend::Host };
    let steps = DeviceSteps {
        steps: &job.recipe.steps,
        backends: StepBackends {
            rows: StepBackend::Device,
            images: on_device(images.is_some()),
            sinograms: on_device(stripes),
            slices: StepBackend::Host,
            solver: StepBackend::Host,
        },
        binning: stored.by,
        extended: false,
        sample: EncodedSample::Float,
        counts_values: false,
        shape,
    };
    if !job.execution.skip_self_test {
        let mut cache = Verdicts::load(&found.facts);
        if let Some(why) = wrong_step(&session, &steps, cache.as_mut(), reporter)? {
            reporter.note(&format!("note: {why}; the host does all steps"));
            return Ok(None);
        }
    }
    Ok(Some(session))
}

/// Returns an error in one line.
fn brief(error: &Error) -> String {
    match error {
        Error::KernelBuild(KernelBuildError::Refused { reason, .. }) => {
            format!("does not build on this device: {reason}")
        }
        error => error.to_string().lines().next().unwrap_or("").to_owned(),
    }
}
