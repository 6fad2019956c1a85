//! `fbp bench`: checks and times every kernel of a profile on a device.

use super::errors::{CommandCheckError, CommandFlagError, CommandNumberError, CommandOutputError};
use crate::check::{StepCheck, TestShape};
use crate::cli::{BenchArgs, KernelSelectionArgs};
use crate::device::{self, DeviceSelector, FoundDevice, ProgramStore, Session};
use crate::error::{Error, Result};
use crate::files::{InputSet, OutputFile, OutputKind};
use crate::kernel::{KernelSpec, Offer, RowFilter};
use crate::known::KnownFailures;
use crate::least_squares::SliceMethod;
use crate::margins::margin;
use crate::measure::{
    Bench, BenchRow, KernelTiming, OfferFilter, Protocol, Verdict, bench_plot, bench_table, iteration_text, occupancy,
    time_iterations,
};
use crate::profile::{Choice, Profile, ProfileStore, Throughput};
use crate::reference::Reference;
use crate::report::{ProgressKind, Reporter};
use crate::visible::Shown;

/// Largest number of pixels on a side, of bins or of projections, so that every product of them fits into 64 bits.
const LARGEST: usize = 1 << 16;

/// A kernel of a profile that is to be checked and timed.
pub(super) struct ProfileOffer<'a> {
    profile: &'a Profile,
    offer: Offer,
}

/// Runs `fbp bench`; returns the text for stdout, and an error if a kernel is incorrect.
pub fn bench(args: &BenchArgs) -> Result<(String, Result<()>)> {
    let protocol = protocol(args.size, args.bins, args.projections, args.passes)?;
    let slices = args.slices.map(|slices| within(slices, LARGEST, "--slices")).transpose()?;
    let protocol = Protocol { slices, ..protocol };
    let wanted = offer_filter(&args.kernels);
    let selector = args.device.as_deref().map(DeviceSelector::parse).transpose()?.unwrap_or_default();
    if let Some(method) = &args.method {
        return iterations(args, method, &selector);
    }
    if let Some(path) = &args.plot
        && let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir())
    {
        return Err(Error::output(path, CommandOutputError::NoDirectoryOfPlot { directory: parent.shown() }));
    }
    let store = ProfileStore::load()?;
    // names are checked before the driver is loaded
    for name in args.profile.iter().filter(|name| !matches!(name.as_str(), "auto" | "all")) {
        store.named(name)?;
    }
    let reporter = Reporter::new(if args.quiet { -1 } else { 0 }, ProgressKind::None, None)?;
    let chart = args.plot.as_deref();
    let chart = chart.map(|path| OutputFile::new("--plot", path, OutputKind::Svg, &InputSet::default(), None));
    let chart = chart.transpose()?;
    let found = &device::find_one(&selector)?;

    let choices = choices(&args.profile, &store, found)?;
    for note in choices.iter().flat_map(|choice| &choice.notes) {
        reporter.note(&format!("note: {note}"));
    }
    let candidates = candidates(&choices, &wanted)?;
    let once = args.profile.iter().any(|name| name == "all");
    let head = head(found, &choices, once, &protocol);
    if args.json {
        reporter.note(&head);
    }
    let own = store.for_device(None, &found.facts)?.profile;
    let rows = measure(found, Some(&own), None, &candidates, &[protocol], once, &reporter)?;

    if let Some(file) = chart {
        file.write(bench_plot(&rows))?;
    }
    let text = if args.json {
        let value = serde_json::to_value(&rows).map_err(|e| Error::Internal(format!("JSON: {e}")))?;
        format!("{value:#}\n")
    } else {
        format!("{head}\n\n{}", bench_table(&rows))
    };
    Ok((text, verdict(&rows, &found.facts.name)))
}

/// Checks and times the iterations of least squares.
fn iterations(args: &BenchArgs, method: &str, selector: &DeviceSelector) -> Result<(String, Result<()>)> {
    let method = match method.parse() {
        Ok(method @ (SliceMethod::Tv | SliceMethod::Huber)) => method,
        _ => return Err(CommandFlagError::NoIterations { method: method.to_owned() }.into()),
    };
    let size = within(args.size, LARGEST, "--size")?;
    let found = &device::find_one(selector)?;
    let choice = ProfileStore::load()?.for_device(args.profile.first().map(String::as_str), &found.facts)?;
    let session = Session::open(found)?.with_step_sizes(choice.profile.step_sizes.clone());
    let check = StepCheck::least_squares();
    let lacking = || CommandFlagError::NoSolver { device: found.facts.name.clone(), size };
    if check.lacks(&found.facts).is_some() {
        return Err(lacking().into());
    }
    let checked = check.run(&session, TestShape::default())?;
    let rates = choice.profile.throughput.as_ref();
    let timing = time_iterations(&session, method, size, args.passes, rates)?.ok_or_else(lacking)?;
    let text = match args.json {
        true => {
            let value = serde_json::to_value(&timing).map_err(|e| Error::Internal(format!("JSON: {e}")))?;
            format!("{value:#}\n")
        }
        false => format!("{}error {:.1e}, margin {:.0e}\n", iteration_text(&timing), checked.error, checked.margin),
    };
    let wrong = || CommandCheckError::Iterations { device: found.facts.name.clone(), error: checked.error };
    Ok((text, if checked.right() { Ok(()) } else { Err(wrong().into()) }))
}

/// Returns an error if kernels are incorrect or do not run.
fn verdict(rows: &[BenchRow], device: &str) -> Result<()> {
    let bad: Vec<&BenchRow> = rows.iter().filter(|row| row.verdict.is_bad()).collect();
    let Some(first) = bad.first() else { return Ok(()) };
    let (failed, count, device) = (bad.len(), rows.len(), device.to_owned());
    let (kernel, profile) = (first.kernel.clone(), first.profile.clone());
    let error = match &first.reason {
        Some(reason) => {
            let reason = reason.trim_end().to_owned();
            CommandCheckError::KernelsWithReason { failed, count, device, kernel, profile, reason }
        }
        None => CommandCheckError::Kernels { failed, count, device, kernel, profile },
    };
    Err(error.into())
}

/// Returns the filter for the kernels that the flags select.
pub(super) fn offer_filter(args: &KernelSelectionArgs) -> OfferFilter {
    OfferFilter {
        algorithms: args.algorithm.clone(),
        interpolations: args.interpolation.clone(),
        modes: args.mode.clone(),
        slices: args.slices_per_pass.clone(),
    }
}

/// Checks that the value of a flag is between 1 and `most`.
fn within(value: usize, most: usize, flag: &'static str) -> Result<usize> {
    match value {
        0 => Err(CommandNumberError::Zero { flag }.into()),
        value if value > most => Err(CommandNumberError::TooLarge { flag, value, most }.into()),
        value => Ok(value),
    }
}

/// Returns the problem that the flags describe.
pub(super) fn protocol(
    size: usize,
    bins: Option<usize>,
    projections: Option<usize>,
    passes: usize,
) -> Result<Protocol> {
    let size = within(size, LARGEST, "--size")?;
    Ok(Protocol {
        size,
        bins: within(bins.unwrap_or(size), LARGEST, "--bins")?,
        projections: within(projections.unwrap_or(size), LARGEST, "--projections")?,
        passes: within(passes, LARGEST, "--passes")?,
        slices: None,
    })
}

/// Returns the requested profiles with the reason for each; without names, the profile that the device uses.
pub(super) fn choices(names: &[String], store: &ProfileStore, found: &FoundDevice) -> Result<Vec<Choice>> {
    if names.is_empty() {
        return Ok(vec![store.for_device(None, &found.facts)?]);
    }
    let mut choices = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => choices.extend(store.iter().map(|(p, origin)| Choice {
                profile: p.clone(),
                reason: format!("--profile all, {origin}"),
                notes: Vec::new(),
            })),
            name => choices.push(store.for_device(Some(name), &found.facts)?),
        }
    }
    Ok(choices)
}

/// Returns the selected kernels of some profiles.
pub(super) fn candidates<'a>(choices: &'a [Choice], wanted: &OfferFilter) -> Result<Vec<ProfileOffer<'a>>> {
    let mut candidates = Vec::new();
    for Choice { profile, .. } in choices {
        let offers = profile.offers().into_iter().filter(|offer| wanted.matches(offer));
        candidates.extend(offers.map(|offer| ProfileOffer { profile, offer }));
    }
    if candidates.is_empty() {
        let names: Vec<&str> = choices.iter().map(|c| c.profile.name.as_str()).collect();
        let mut there: Vec<String> = Vec::new();
        for offer in choices.iter().flat_map(|c| c.profile.offers()) {
            let kind = format!("{} {} {}", offer.parameters.algorithm(), offer.interpolation, offer.mode);
            if !there.contains(&kind) {
                there.push(kind);
            }
        }
        return Err(CommandFlagError::NoKernel { profiles: names.join(", "), kinds: there.join(", ") }.into());
    }
    Ok(candidates)
}

/// Returns the header of the output: device, profiles and problem.
fn head(found: &FoundDevice, choices: &[Choice], once: bool, p: &Protocol) -> String {
    let f = &found.facts;
    let clock = if f.clock_mhz > 0 { format!(" at up to {} MHz", f.clock_mhz) } else { String::new() };
    let profiles = match choices {
        [one] => format!("profile {} ({})", one.profile.name, one.reason),
        several if once => format!("{} profiles, each kernel once", several.len()),
        several => format!("{} profiles", several.len()),
    };
    format!(
        "{} [{}], {} compute units{clock}, driver {}; {profiles}\n\
         slices of {size} x {size} pixels from {} projections of {} bins; noise on the device, median of {} at a steady \
         rate",
        f.name,
        f.kind,
        f.compute_units,
        f.driver,
        p.projections,
        p.bins,
        p.slices.map_or(format!("{} passes", p.passes), |slices| format!("the passes of {slices} slices")),
        size = p.size
    )
}

/// Measures every candidate, a row for each. Kernels that several profiles share are run once, and with `once` also
/// listed once. They are checked on every problem and timed on the first one. `own` is the profile with the rates of
/// the device; `programs` stores the programs that are built.
pub(super) fn measure(
    found: &FoundDevice,
    own: Option<&Profile>,
    programs: Option<&ProgramStore>,
    candidates: &[ProfileOffer],
    protocols: &[Protocol],
    once: bool,
    reporter: &Reporter,
) -> Result<Vec<BenchRow>> {
    let Some(protocol) = protocols.first() else { return Ok(Vec::new()) };
    let known_failures = KnownFailures::built_in()?;
    let facts = &found.facts;
    let rates = own.and_then(|profile| profile.throughput.as_ref());
    let rows_of = |spec: &KernelSpec, profile: &Profile| RowFilter::new(spec, &profile.fft, protocol.bins, Some(facts));
    let problem = protocol.problem();
    // enough noise for the largest kernel that fits, whatever layout it reads
    let mut most = 1;
    for ProfileOffer { profile, offer } in candidates {
        for texel in offer.texels() {
            let spec = KernelSpec::new(offer, *profile, texel, problem, Some(facts));
            if protocol.refuses(&spec, rows_of(&spec, profile), facts)?.is_none() {
                most = most.max(offer.slices as usize);
            }
        }
    }
    let mut references: Vec<_> = protocols.iter().map(|p| Reference::new(p.geometry(), most)).collect();
    let open = |references: &[Reference]| {
        Bench::new(Session::open(found)?.with_programs(programs.cloned()), *protocol, references)
    };
    let mut bench = None;
    let mut rows: Vec<BenchRow> = Vec::new();
    for (number, ProfileOffer { profile, offer }) in candidates.iter().enumerate() {
        // after an error a driver may return nothing but errors: it is opened again
        let mut here = match bench.take().map_or_else(|| open(&references), Ok) {
            Ok(here) => here,
            Err(error) if rows.is_empty() => return Err(error),
            Err(error) => {
                reporter.note(&format!(
                    "note: the device cannot be opened again, so the remaining kernels are skipped: {error}"
                ));
                break;
            }
        };
        let spec = KernelSpec::new(offer, *profile, here.texel(offer)?, problem, Some(facts));
        let source = spec.generate()?;
        let row = BenchRow::new(facts, profile, offer, protocol, &source.name, &source.key, margin(&spec).relative_rms)
            .with_known(known_failures.find(facts, &spec));
        let known = rows.iter().find(|r| (&r.kernel, &r.key) == (&row.kernel, &row.key)).cloned();
        let row = match (known, protocol.refuses(&spec, rows_of(&spec, profile), facts)?) {
            (Some(_), _) if once => {
                bench = Some(here);
                continue;
            }
            (Some(known), _) => {
                bench = Some(here);
                BenchRow { profile: row.profile, mode: row.mode, ..known }
            }
            (None, Some(reason)) => {
                bench = Some(here);
                row.without_numbers(Verdict::Skipped(reason))
            }
            (None, None) => match here.measure(&spec, rows_of(&spec, profile), &mut references) {
                Ok(measured) => {
                    for note in here.notes.drain(..) {
                        reporter.note(&format!("note: {note}"));
                    }
                    bench = Some(here);
                    let registers = measured.resources.registers;
                    with_numbers(row, &measured, protocol)
                        .with_bound(rates.and_then(|rates| rates.bound(&spec, facts)))
                        .with_occupancy(registers, resident(&spec, rates, registers))
                }
                Err(error) => row.without_numbers(Verdict::Failed(error.to_string())),
            },
        };
        let place = if once { format!("{}", rows.len() + 1) } else { format!("{}/{}", number + 1, candidates.len()) };
        reporter.note(&format!("{place} {} {}: {}", row.kernel, row.mode, row.describe()));
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the share of resident warps on a device with these rates, and its limiting resource.
pub(super) fn resident(
    spec: &KernelSpec,
    rates: Option<&Throughput>,
    registers: Option<u32>,
) -> Option<(f64, &'static str)> {
    let occupancy = occupancy(spec, rates?, registers)?;
    Some((occupancy.share, occupancy.limit))
}

/// Returns the row with the results of a measurement.
fn with_numbers(row: BenchRow, measured: &KernelTiming, protocol: &Protocol) -> BenchRow {
    let slices = f64::from(row.slices);
    BenchRow {
        verdict: if measured.checked.right() { Verdict::Correct } else { Verdict::Incorrect },
        error: Some(measured.checked.error),
        private_bytes: measured.resources.private_bytes,
        gu_per_s: measured.time.map(|time| protocol.updates(row.slices) / time.seconds * 1e-9),
        drift: measured.time.map(|time| time.drift),
        moved: measured.time.map(|time| time.moved),
        runs: measured.time.map(|time| time.runs),
        during: measured.time.map(|time| time.during),
        seconds_per_slice: measured.time.map(|time| time.seconds / slices),
        filter_seconds_per_slice: measured.filter.map(|s| s / slices),
        ..row
    }
}
