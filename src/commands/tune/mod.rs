//! `fbp tune`: searches the parameters of the kernels on a device, and writes a profile with the result.

mod errors;
mod problem;
mod steps;
mod tuner;

use super::bench::{offer_filter, protocol, resident};
use crate::cli::TuneArgs;
use crate::device::{self, DeviceSelector, FoundDevice};
use crate::error::{Error, Result};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::files::{
    InputSet, OutputFile, OutputKind, TOML, cache_directory, directory, make_private, refused_cache, write_atomically,
};
use crate::kernel::{KernelSpec, Offer};
use crate::measure::{
    Log, MeasurementConditions, Outcome, Prediction, Protocol, Reach, TimedKernel, TuningRun, compose_profile,
    compose_sizes, size_table, tuned_file_stem, tuning_table,
};
use crate::profile::{Choice, Profile, ProfileStore, TUNED, tuned_directory};
use crate::recipe::parse_time;
use crate::reference::Reference;
use crate::report::{ProgressKind, Reporter};
use crate::visible::Shown;
use errors::{FailedTuneError, StoppedTuneError, TuneCommandError, TunedProfileOutputError};
use problem::{SIZE, SIZE_OF_PROCESSORS, fitting, most_slices, targets};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};
use steps::SizeTuner;
use tuner::Tuner;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the tuned profile goes.
struct ProfileDestination {
    /// The file of `--output`.
    output: Option<OutputFile>,
    /// The file in the cache, which is written without `--output`.
    cached: PathBuf,
}

/// Runs `fbp tune`; returns the text for stdout, and an error if the run did not finish.
pub fn tune(args: &TuneArgs, cancelled: &AtomicBool) -> Result<(String, Result<()>)> {
    let wanted = offer_filter(&args.kernels);
    let passes = args.passes.unwrap_or(if args.quick { 3 } else { 5 });
    let requested = protocol(args.size.unwrap_or(SIZE), args.bins, args.projections, passes)?;
    let budget = budget(args)?;
    let selector = args.device.as_deref().map(DeviceSelector::parse).transpose()?.unwrap_or_default();
    let store = ProfileStore::load()?;
    // names are checked before the driver is loaded
    if let Some(name) = args.profile.as_deref().filter(|name| *name != "auto") {
        store.named(name)?;
    }
    let (cache, tuned) = directories()?;
    let output = output_file(args)?;
    let reporter = Reporter::new(if args.quiet { -1 } else { 0 }, ProgressKind::None, None)?;
    let found = &device::find_one(&selector)?;
    let facts = &found.facts;

    let stem = tuned_file_stem(facts);
    let destination = ProfileDestination { output, cached: tuned.join(format!("{stem}.toml")) };
    let choice = store.untuned_for_device(args.profile.as_deref(), facts)?;
    if args.steps {
        let text = tune_steps(args, &store, &choice, &destination, found, &reporter, cancelled)?;
        return Ok((text, Ok(())));
    }
    let targets = targets(&choice.profile, &wanted);
    let protocol = fitting(args, requested, &choice.profile, &targets, facts)?;
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let log_file = cache.join("tune").join(format!("{stem}.jsonl"));
    let log = Log::open(&log_file, identity(facts, &protocol), args.resume, &date)?;
    let heading = heading(&choice, facts, &protocol, budget);
    announce(&reporter, &heading, &choice, &log, args.resume);

    let log_name = log.name();
    let most = most_slices(&choice.profile, facts, &targets, &wanted, &protocol)?;
    let mut tuner = Tuner {
        found,
        profile: &choice.profile,
        wanted: &wanted,
        protocol,
        references: [Reference::new(protocol.geometry(), most)],
        bench: None,
        log,
        spent: HashSet::new(),
        elapsed: Duration::ZERO,
        budget,
        reach: if args.quick { Reach::Adjacent } else { Reach::Any },
        scheduling: args.balance_by_multiprocessor,
        reporter: &reporter,
        cancelled,
        measurements: Vec::new(),
    };
    // without known rates points are tried in the order of the parameters
    let rates = choice.profile.throughput.as_ref();
    let predict = |spec: &KernelSpec| {
        let speed = rates?.bound(spec, facts)?.1;
        Some(Prediction { speed, occupancy: resident(spec, rates, None).map_or(0.0, |(share, _)| share) })
    };
    let outcomes = tuner.search_all(&targets, &predict)?;
    let finished = outcomes.len();
    // without a correct kernel there is nothing to add to the profile
    let (outcomes, failed): (Vec<Outcome>, Vec<Outcome>) = outcomes.into_iter().partition(|o| o.tuned.speed.is_some());

    let mut text = String::new();
    if !outcomes.is_empty() {
        // results of earlier runs for other modes stay in the profile of this device
        let earlier = store.for_device(None, facts)?.profile;
        let earlier = Some(&earlier).filter(|p| p.tuned.is_some() && args.output.is_none());
        let problem = [protocol.bins, protocol.projections, protocol.size];
        let run = TuningRun { facts, version: VERSION, date: &date[..10], problem, log: &log_name };
        let profile = compose_profile(&choice.profile, earlier, &outcomes, &run)?;
        write(&profile, &destination, &reporter)?;
        text = format!("{heading}\n\n{}", tuning_table(&outcomes));
    }
    if args.json {
        let value = serde_json::to_value(&tuner.measurements).map_err(|e| Error::Internal(format!("JSON: {e}")))?;
        text = format!("{value:#}\n");
    }
    Ok((text, verdict(finished, targets.len(), failed.first(), facts)))
}

/// Tunes the sizes of the work-groups of steps; returns the text for stdout.
fn tune_steps(
    args: &TuneArgs,
    store: &ProfileStore,
    choice: &Choice,
    destination: &ProfileDestination,
    found: &FoundDevice,
    reporter: &Reporter,
    cancelled: &AtomicBool,
) -> Result<String> {
    let facts = &found.facts;
    let usual = if facts.kind == DeviceKind::Cpu { SIZE_OF_PROCESSORS } else { SIZE };
    let [bins, projections] = [args.bins, args.projections].map(|size| size.unwrap_or(usual));
    let passes = args.passes.unwrap_or(5);
    // validates the numbers
    protocol(SIZE, Some(bins), Some(projections), passes)?;
    let heading = format!(
        "{} [{}], driver {}; profile {} ({})\nsteps on {projections} projections of {bins} bins, median of {passes} passes",
        facts.name, facts.kind, facts.driver, choice.profile.name, choice.reason,
    );
    reporter.note(&heading);
    let mut tuner =
        SizeTuner { found, bins, projections, passes, reporter, cancelled, session: None, trials: Vec::new() };
    let (sizes, outcomes) = tuner.search(&choice.profile.step_sizes)?;
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let run = TuningRun { facts, version: VERSION, date: &date[..10], problem: [bins, projections, 0], log: "" };
    let earlier = store.for_device(None, facts)?.profile;
    let earlier = Some(&earlier).filter(|p| p.tuned.is_some() && args.output.is_none());
    let profile = compose_sizes(&choice.profile, earlier, &sizes, &outcomes, &run)?;
    write(&profile, destination, reporter)?;
    match args.json {
        true => serde_json::to_string_pretty(&tuner.trials)
            .map(|text| text + "\n")
            .map_err(|e| Error::Internal(format!("JSON: {e}"))),
        false => Ok(format!("{heading}\n\n{}", size_table(&outcomes))),
    }
}

/// Returns the file of `--output`, if it may be written.
fn output_file(args: &TuneArgs) -> Result<Option<OutputFile>> {
    let inputs = InputSet::new(args.profile.as_deref().map(Path::new));
    let file = |path: &PathBuf| OutputFile::new("--output", path, OutputKind::Toml, &inputs, None);
    args.output.as_ref().map(file).transpose()
}

/// Returns the directories of the log and of tuned profiles.
fn directories() -> Result<(PathBuf, PathBuf)> {
    cache_directory().zip(tuned_directory()).ok_or_else(|| {
        if let Some(why) = refused_cache(&[TUNED]) {
            return Error::usage(why.trim_start_matches("warning: "));
        }
        TuneCommandError::NoLogDirectory.into()
    })
}

fn identity(facts: &DeviceFacts, protocol: &Protocol) -> MeasurementConditions {
    MeasurementConditions {
        device: facts.name.clone(),
        driver: facts.driver.clone(),
        version: VERSION.to_owned(),
        bins: protocol.bins,
        projections: protocol.projections,
        size: protocol.size,
        passes: protocol.passes,
    }
}

/// Prints the heading, and notes on the profile and the log.
fn announce(reporter: &Reporter, heading: &str, choice: &Choice, log: &Log, resume: bool) {
    reporter.note(heading);
    for note in &choice.notes {
        reporter.note(&format!("note: {note}"));
    }
    if log.unreadable > 0 {
        reporter.note(&format!("note: {} lines of the log {} cannot be read", log.unreadable, log.name()));
    }
    if resume {
        reporter.note(&format!("{} measurements are in the log {}", log.resumed, log.name()));
    }
}

/// Returns an error if searches remain, or if `failed` is a search without a correct kernel.
fn verdict(finished: usize, searches: usize, failed: Option<&Outcome>, facts: &DeviceFacts) -> Result<()> {
    if finished < searches {
        return Err(StoppedTuneError::SearchesLeft { finished, searches }.into());
    }
    match failed {
        None => Ok(()),
        Some(Outcome { shipped: TimedKernel { offer: Offer { interpolation, mode, .. }, .. }, .. }) => {
            let (interpolation, mode, device) = (*interpolation, *mode, facts.name.clone());
            Err(FailedTuneError::NoKernel { interpolation, mode, device }.into())
        }
    }
}

fn budget(args: &TuneArgs) -> Result<Duration> {
    let Some(text) = &args.budget else {
        return Ok(Duration::from_secs(if args.quick { 80 } else { 20 * 60 }));
    };
    parse_time(text, "--budget")
}

/// Returns the header of the output: device, profile and problem.
fn heading(choice: &Choice, facts: &DeviceFacts, p: &Protocol, budget: Duration) -> String {
    format!(
        "{} [{}], driver {}; profile {} ({})\nslices of {size} x {size} pixels from {} projections of {} bins; noise on \
         the device, median of {} passes after a warm-up; budget {}",
        facts.name,
        facts.kind,
        facts.driver,
        choice.profile.name,
        choice.reason,
        p.projections,
        p.bins,
        p.passes,
        humantime::format_duration(budget),
        size = p.size
    )
}

/// Writes a profile to the file of `--output`, else to the cache, after checking that it reads back unchanged.
fn write(profile: &Profile, destination: &ProfileDestination, reporter: &Reporter) -> Result<()> {
    let ProfileDestination { output, cached } = destination;
    let path = output.as_ref().map_or(cached.as_path(), OutputFile::path);
    let name = path.shown();
    let text = toml::to_string_pretty(profile).map_err(|e| Error::profile(&name, e.to_string()))?;
    let text = format!("{TOML} tune`.\n{text}");
    if Profile::parse(&text, &name)? != *profile {
        return Err(Error::profile(&name, TuneCommandError::OtherValues));
    }
    match output {
        Some(file) => file.write(text)?,
        None => {
            let made = make_private(directory(path)).and_then(|()| write_atomically(path, text));
            made.map_err(|e| Error::output(path, TunedProfileOutputError::Unwritable { error: e.into() }))?;
        }
    }
    reporter.note(&format!("profile {} is in {name}", profile.name));
    Ok(())
}
