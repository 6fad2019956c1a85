//! `fbp doctor`: tests image formats, transforms, steps and every kernel of a profile on a device.

use super::bench::{candidates, choices, measure};
use crate::cache::{StoredVerdict, Verdicts};
use crate::check::{TestShape, all_step_checks};
use crate::cli::DoctorArgs;
use crate::device::{self, DeviceSelector, FoundDevice, PROGRAMS, ProgramStore, Session};
use crate::error::{Error, Result};
use crate::facts::ImageFormat;
use crate::fft::image_transform;
use crate::files::refused_cache;
use crate::kernel::{KernelSpec, Problem, RowFilter, StepBackend, Storage, Texel};
use crate::measure::{
    BenchRow, DOCTOR_BINS, DOCTOR_PROBLEMS, Diagnosis, Finding, OfferFilter, Protocol, QUICK_DOCTOR_BINS,
    QUICK_DOCTOR_PROBLEMS, Verdict, examine_rows,
};
use crate::profile::{Choice, Profile, ProfileStore, TUNED};
use crate::report::{ProgressKind, Reporter};
use crate::visible::Shown;
use std::path::PathBuf;

/// Runs `fbp doctor`; returns the text for stdout, and an error if something that is offered fails.
pub fn doctor(args: &DoctorArgs) -> Result<(String, Result<()>)> {
    let selector = args.device.as_deref().map(DeviceSelector::parse).transpose()?.unwrap_or_default();
    let store = ProfileStore::load()?;
    let names: Vec<String> = args.profile.clone().into_iter().collect();
    // a name is checked before the driver is loaded
    for name in names.iter().filter(|name| !matches!(name.as_str(), "auto" | "all")) {
        store.named(name)?;
    }
    let reporter = Reporter::new(if args.quiet { -1 } else { 0 }, ProgressKind::None, None)?;
    let found = &device::find_one(&selector)?;
    let facts = &found.facts;

    let choices = choices(&names, &store, found)?;
    let (profile, reason) = match choices.as_slice() {
        [one] => (one.profile.name.clone(), one.reason.clone()),
        several => ("all".to_owned(), format!("{} of them, each kernel once", several.len())),
    };
    let head = format!("{} [{}], driver {}; profile {profile} ({reason})", facts.name, facts.kind, facts.driver);
    reporter.note(&head);
    // verdicts apply to the programs that runs will use
    let programs = ProgramStore::in_cache();
    refused_cache(&[PROGRAMS, TUNED]).iter().for_each(|warning| reporter.note_once(warning));
    let of_profile = choices.first().map(|choice| (choice.profile.step_sizes.clone(), choice.profile.fft.images));
    let (sizes, images) = of_profile.unwrap_or_default();
    let session = Session::open(found)?.with_programs(programs.clone()).with_step_sizes(sizes);
    let mut session = session.with_image_transforms(images, image_transform);
    let formats = formats(&session);
    let bins: &[usize] = if args.quick { &QUICK_DOCTOR_BINS } else { &DOCTOR_BINS };
    let problems: &[Protocol] = if args.quick { &QUICK_DOCTOR_PROBLEMS } else { &DOCTOR_PROBLEMS };
    let lengths = lengths(&mut session, &choices, bins, &reporter)?;
    let steps = steps(&mut session, &choices, &reporter)?;
    drop(session);
    let candidates = candidates(&choices, &OfferFilter::default())?;
    let rows = measure(found, None, programs.as_ref(), &candidates, problems, true, &reporter)?;
    let cache = store_verdicts(found, &rows, &reporter);
    let kernels = rows.into_iter().map(Finding::kernel).collect();
    let diagnosis = Diagnosis::new(facts, profile, [formats, lengths, steps, kernels], cache);

    let text = if args.json {
        let value = serde_json::to_value(&diagnosis).map_err(|e| Error::Internal(format!("JSON: {e}")))?;
        format!("{value:#}\n")
    } else {
        let kept = diagnosis.cache.as_ref().map(|path| format!("verdicts are stored in {}\n", path.shown()));
        format!("{head}\n\n{}\n{}\n{}", diagnosis.table(), diagnosis.summary(), kept.unwrap_or_default())
    };
    Ok((text, diagnosis.verdict()))
}

/// Tests the image formats that the driver lists. Formats that do not work are not used.
fn formats(session: &Session) -> Vec<Finding> {
    let listed = session.listed_image_formats();
    let mut findings = Vec::new();
    for format in ImageFormat::ALL {
        let unused = |why: &str| (Verdict::Incorrect, Some(format!("{why}; it is not used")), true);
        let (verdict, reason, avoided) = if !listed.contains(&format) {
            (Verdict::Skipped(String::new()), Some("not listed by the driver".to_owned()), true)
        } else if !session.facts.image_formats.contains(&format) {
            unused("listed, but cannot be created")
        } else {
            match session.texel_works(Texel::Image(format)) {
                Ok(true) => (Verdict::Correct, None, false),
                Ok(false) => unused("returns other values"),
                Err(error) => (Verdict::Failed(String::new()), Some(error.to_string()), false),
            }
        };
        findings.push(Finding::plain(format.to_string(), verdict, reason, avoided));
    }
    findings
}

/// Tests the filters of detector rows of each width, by every method in the profiles.
fn lengths(session: &mut Session, choices: &[Choice], bins: &[usize], reporter: &Reporter) -> Result<Vec<Finding>> {
    let mut findings: Vec<Finding> = Vec::new();
    for (choice, &bins) in choices.iter().flat_map(|choice| bins.iter().map(move |bins| (choice, bins))) {
        let Some(spec) = first_kernel(&choice.profile, session) else { continue };
        let rows = RowFilter::new(&spec, &choice.profile.fft, bins, Some(&session.facts));
        let name = format!("{bins} bins, rows of {}, {}", rows.length, rows.method);
        if findings.iter().any(|finding| finding.name == name) {
            continue;
        }
        let (verdict, reason) = match examine_rows(session, &spec, rows, bins) {
            Ok(None) => (Verdict::Correct, None),
            other => {
                // after an error a driver may return nothing but errors
                *session = session.reopen()?;
                match other {
                    Err(error) => (Verdict::Failed(String::new()), Some(error.to_string())),
                    Ok(why) => (Verdict::Correct, why),
                }
            }
        };
        let why = reason.as_ref().map(|reason| format!(", {reason}")).unwrap_or_default();
        reporter.note(&format!("{name}: {verdict}{why}"));
        findings.push(Finding::plain(name, verdict, reason, false));
    }
    Ok(findings)
}

/// Tests the device's steps around the filter, with usual parameters. A run tests its own steps and leaves all of them
/// to the host if one is wrong, so a wrong step counts as avoided.
fn steps(session: &mut Session, choices: &[Choice], reporter: &Reporter) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for check in all_step_checks() {
        let name = check.name().to_owned();
        let host = choices.iter().all(|choice| check.backend(choice.profile.steps) == StepBackend::Host);
        let by_host = host.then(|| "the profile assigns it to the host".to_owned());
        if let Some(lack) = check.lacks(&session.facts) {
            let reason = format!("the device lacks {lack}; the host does it");
            findings.push(Finding::plain(name, Verdict::Skipped(String::new()), Some(reason), true));
            continue;
        }
        let finding = match check.run(session, TestShape::default()) {
            Ok(found) => {
                let right = found.right();
                let (verdict, reason) = match right {
                    true => (Verdict::Correct, by_host),
                    false => (Verdict::Incorrect, Some("a run does its steps on the host instead".to_owned())),
                };
                let (error, margin) = (Some(found.error), Some(found.margin));
                Finding { error, margin, ..Finding::plain(name, verdict, reason, host || !right) }
            }
            Err(error) => {
                // after an error a driver may return nothing but errors
                *session = session.reopen()?;
                let reason = format!("a run does its steps on the host instead: {error}");
                Finding::plain(name, Verdict::Failed(String::new()), Some(reason), true)
            }
        };
        let why = finding.reason.as_deref().filter(|_| finding.verdict.is_bad());
        let why = why.map(|reason| format!(", {reason}")).unwrap_or_default();
        reporter.note(&format!("{}: {}{why}", finding.name, finding.verdict));
        findings.push(finding);
    }
    Ok(findings)
}

/// Returns any kernel of a profile that reads a buffer: the filter depends on the kernel that it feeds.
fn first_kernel(profile: &Profile, session: &Session) -> Option<KernelSpec> {
    let offers = profile.offers();
    // preferably a kernel that reads floats, because the host filters only for these
    let offer = offers.iter().find(|o| o.parameters.storage() == Storage::Float).or(offers.first())?;
    let texel = offer.texels().last().copied()?;
    let problem = Problem::new(2, true);
    Some(KernelSpec::new(offer, profile, texel, problem, Some(&session.facts)))
}

/// Stores verdicts for later runs; returns the path of the file.
fn store_verdicts(found: &FoundDevice, rows: &[BenchRow], reporter: &Reporter) -> Option<PathBuf> {
    let mut cache = Verdicts::load(&found.facts)?;
    let tried = rows.iter().filter(|row| !matches!(row.verdict, Verdict::Skipped(_)));
    let kept = tried.map(|row| {
        let verdict = row.verdict.to_string().to_lowercase();
        let stored = StoredVerdict { name: row.kernel.clone(), verdict, error: row.error, margin: row.margin };
        (row.key.clone(), stored)
    });
    match cache.store(kept.collect::<Vec<_>>()) {
        Ok(()) => Some(cache.path().to_owned()),
        Err(error) => {
            reporter.note(&cache.unwritable(&error));
            None
        }
    }
}
