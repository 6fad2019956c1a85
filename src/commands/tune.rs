//! `fbp tune`: the parameters of the kernels searched on a device, and the profile that comes of it.

use super::bench::{protocol, wanted};
use crate::bench::{Protocol, Reference, Row, Verdict, Wanted, scientific, three_digits};
use crate::cache;
use crate::cli::TuneArgs;
use crate::device::{self, DeviceSelector, FoundDevice};
use crate::engine::{Bench, Wish};
use crate::error::{Error, Result};
use crate::facts::{DeviceFacts, DeviceKind};
use crate::kernel::{Algorithm, Interpolation, KernelSpec, Mode, Offer, Problem, RowFilter, SLICE_MODES};
use crate::margins::margin;
use crate::model;
use crate::profile::{Choice, Profile, ProfileStore, tuned_directory};
use crate::recipe::{ProgressKind, parse_time};
use crate::report::Reporter;
use crate::tune::{
    Candidate, Entry, Identity, Log, Outcome, Point, Predict, Reach, Search, Side, Space, Stamp, changes, compose,
    describe, file_stem, forbids, shipped, starts, table,
};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Sides of slices, see `--size`.
const SIZE: usize = 2048;
const SIZE_OF_PROCESSORS: usize = 512;

/// The part of the budget that searches may take; the rest is for comparisons.
const SEARCHING: f64 = 0.75;

/// Turns of a comparison, of which medians count; those before are of the search.
const TURNS: std::ops::RangeInclusive<u32> = 2..=4;

/// A kernel that is slower than the best by this factor is timed by one pass.
const FAR: f64 = 3.0;

/// A line of `--json`.
#[derive(Clone, Debug, Serialize)]
struct Line {
    #[serde(flatten)]
    row: Row,
    /// 0 in the search, 1 for a point measured again there, from 2 in the comparison at its end.
    turn: u32,
    /// How it differs from the shipped kernel.
    changed: BTreeMap<String, String>,
}

/// The text for stdout, and whether the run came to its end.
pub fn tune(args: &TuneArgs, cancelled: &AtomicBool) -> Result<(String, Result<()>)> {
    let wanted = wanted(&args.algorithm, &args.interpolation, &args.mode, &args.slices_per_pass)?;
    let passes = args.passes.unwrap_or(if args.quick { 3 } else { 5 });
    let asked = protocol(args.size.unwrap_or(SIZE), args.bins, args.projections, passes)?;
    let budget = budget(args)?;
    let selector = args.device.as_deref().map(DeviceSelector::parse).transpose()?.unwrap_or_default();
    let store = ProfileStore::load()?;
    // names are checked before the driver is bothered
    if let Some(name) = args.profile.as_deref().filter(|name| *name != "auto") {
        store.named(name)?;
    }
    let home = cache::directory().zip(tuned_directory());
    let (cache, tuned) = home.ok_or_else(|| {
        Error::usage("there is no directory for the log of measurements; set FBP_CACHE_DIR, XDG_CACHE_HOME or HOME")
    })?;
    if let Some(path) = &args.output
        && let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir())
    {
        return Err(Error::output(path, format!("--output: there is no directory {}", parent.display())));
    }
    let reporter = Reporter::new(if args.quiet { -1 } else { 0 }, ProgressKind::None, None)?;
    let devices = device::enumerate()?;
    let facts: Vec<_> = devices.iter().map(|d| &d.facts).collect();
    let found = &devices[selector.select(&facts)?];
    let facts = &found.facts;

    let choice = store.untuned_for_device(args.profile.as_deref(), facts)?;
    let targets = targets(&choice.profile, &wanted);
    let protocol = fitting(args, asked, &choice.profile, &targets, facts)?;
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let stem = file_stem(facts);
    let identity = Identity {
        device: facts.name.clone(),
        driver: facts.driver.clone(),
        version: VERSION.to_owned(),
        bins: protocol.bins,
        projections: protocol.projections,
        size: protocol.size,
        passes: protocol.passes,
    };
    let log = Log::open(&cache.join("tune").join(format!("{stem}.jsonl")), identity, args.resume, &date)?;
    let head = head(&choice, facts, &protocol, budget);
    reporter.note(&head);
    for note in &choice.notes {
        reporter.note(&format!("note: {note}"));
    }
    if log.unreadable > 0 {
        reporter.note(&format!("note: {} lines of the log {} cannot be read", log.unreadable, log.name()));
    }
    if args.resume {
        reporter.note(&format!("{} measurements are in the log {}", log.resumed, log.name()));
    }

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
        reach: if args.quick { Reach::Beside } else { Reach::Any },
        reporter: &reporter,
        cancelled,
        lines: Vec::new(),
    };
    // without known rates points go by the order of the parameters
    let rates = choice.profile.throughput.as_ref();
    let predict = |spec: &KernelSpec| Some(model::bound(spec, rates?, facts)?.1);
    let mut outcomes = Vec::new();
    for (number, shipped) in targets.iter().enumerate() {
        // every search may take as much of what is left as the others
        let left = budget.saturating_sub(tuner.elapsed) / (targets.len() - number) as u32;
        match tuner.search(shipped, left, &predict) {
            Ok(Some(outcome)) => outcomes.push(outcome),
            Ok(None) => break,
            // drivers do not take signals well
            Err(Error::Device(_) | Error::KernelBuild { .. }) if cancelled.load(Relaxed) => break,
            Err(error) => return Err(error),
        }
    }
    let finished = outcomes.len();
    let lines = tuner.lines;
    // what has no right kernel at all is no result
    let (outcomes, hopeless): (Vec<Outcome>, Vec<Outcome>) =
        outcomes.into_iter().partition(|o| o.tuned.speed.is_some());

    let mut text = String::new();
    if !outcomes.is_empty() {
        let path = args.output.clone().unwrap_or_else(|| tuned.join(format!("{stem}.toml")));
        // what an earlier run found for other modes stays in the profile of this device
        let earlier = store.for_device(None, facts)?.profile;
        let earlier = Some(&earlier).filter(|p| p.tuned.is_some() && args.output.is_none());
        let stamp = Stamp {
            facts,
            version: VERSION,
            date: &date[..10],
            problem: [protocol.bins, protocol.projections, protocol.size],
            log: &log_name,
        };
        let profile = compose(&choice.profile, earlier, &outcomes, &stamp)?;
        write(&profile, &path)?;
        reporter.note(&format!("profile {} is in {}", profile.name, path.display()));
        text = format!("{head}\n\n{}", table(&outcomes));
    }
    if args.json {
        let value = serde_json::to_value(&lines).map_err(|e| Error::Output(format!("JSON: {e}")))?;
        text = format!("{value:#}\n");
    }
    if finished < targets.len() {
        return Ok((
            text,
            Err(Error::Interrupted(format!(
                "interrupted: {finished} of {} searches are done, all measurements are in the log; go on with --resume",
                targets.len()
            ))),
        ));
    }
    let verdict = match hopeless.first() {
        None => Ok(()),
        Some(Outcome { shipped: Side { offer, .. }, .. }) => Err(Error::Unequal(format!(
            "no kernel for {} {} fits and is right on {}; try another --profile, a smaller --size or other --algorithm",
            offer.interpolation, offer.mode, facts.name
        ))),
    };
    Ok((text, verdict))
}

fn budget(args: &TuneArgs) -> Result<Duration> {
    let Some(text) = &args.budget else {
        return Ok(Duration::from_secs(if args.quick { 80 } else { 20 * 60 }));
    };
    parse_time(text, "--budget")
}

/// The kernels that tuned ones are compared with, one for each interpolation and mode.
fn targets(profile: &Profile, wanted: &Wanted) -> Vec<Offer> {
    let mut targets = Vec::new();
    for &interpolation in Interpolation::ALL {
        for &mode in Mode::ALL {
            let asked = (wanted.interpolations.is_empty() || wanted.interpolations.contains(&interpolation))
                && (wanted.modes.is_empty() || wanted.modes.contains(&mode));
            if asked {
                targets.extend(shipped(profile, interpolation, mode, &|offer| wanted.has(offer)));
            }
        }
    }
    targets
}

fn problem(protocol: &Protocol) -> Problem {
    Problem { projections: protocol.projections, same_axis: true }
}

/// How rows are filtered for a kernel.
fn rows_of(spec: &KernelSpec, profile: &Profile, protocol: &Protocol, facts: &DeviceFacts) -> RowFilter {
    RowFilter::new(spec, &profile.fft, protocol.bins, Some(facts))
}

/// Why a device cannot run a kernel in any layout of the sinogram, if so.
fn refuses(offer: &Offer, profile: &Profile, protocol: &Protocol, facts: &DeviceFacts) -> Result<Option<String>> {
    let mut why = None;
    for texel in offer.texels() {
        let spec = KernelSpec::new(offer, profile, texel, problem(protocol), Some(facts));
        why = protocol.refuses(&spec, rows_of(&spec, profile, protocol, facts), facts)?;
        if why.is_none() {
            break;
        }
    }
    Ok(why)
}

/// The problem: as asked, else as large as the device likes and holds with every shipped kernel.
fn fitting(
    args: &TuneArgs,
    asked: Protocol,
    profile: &Profile,
    targets: &[Offer],
    facts: &DeviceFacts,
) -> Result<Protocol> {
    if args.size.is_some() {
        return Ok(asked);
    }
    let (usual, part) = if facts.kind == DeviceKind::Cpu { (SIZE_OF_PROCESSORS, 2) } else { (SIZE, 4) };
    let mut size = if args.quick { usual / part } else { usual };
    loop {
        let problem = protocol(size, args.bins, args.projections, asked.passes)?;
        let mut fits = true;
        for offer in targets {
            fits &= refuses(offer, profile, &problem, facts)?.is_none();
        }
        if fits || size <= 64 {
            return Ok(problem);
        }
        size /= 2;
    }
}

/// The slices per pass that may be tried.
fn slice_modes(wanted: &Wanted) -> Vec<u32> {
    SLICE_MODES.into_iter().filter(|n| wanted.slices.is_empty() || wanted.slices.contains(n)).collect()
}

/// Most slices that any kernel may want.
fn most_slices(
    profile: &Profile,
    facts: &DeviceFacts,
    targets: &[Offer],
    wanted: &Wanted,
    protocol: &Protocol,
) -> Result<usize> {
    let modes = slice_modes(wanted);
    let mut most = 1;
    for target in targets {
        let first = starts(profile, facts, target, &modes, &wanted.algorithms, &|offer| wanted.has(offer));
        for start in first {
            for &slices in modes.iter().chain([&start.slices]) {
                let offer = Offer { slices, ..start.clone() };
                let legal = offer.check(&profile.build).is_ok();
                if slices > most && legal && refuses(&offer, profile, protocol, facts)?.is_none() {
                    most = slices;
                }
            }
        }
    }
    Ok(most as usize)
}

/// What is tuned on what, for people.
fn head(choice: &Choice, facts: &DeviceFacts, p: &Protocol, budget: Duration) -> String {
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

/// Writes a profile under a temporary name first; it is read back as it will be.
fn write(profile: &Profile, path: &Path) -> Result<()> {
    let name = path.display().to_string();
    let text = toml::to_string_pretty(profile).map_err(|e| Error::profile(&name, e.to_string()))?;
    if Profile::parse(&text, &name)? != *profile {
        return Err(Error::profile(&name, "does not read back as it was written; please report this"));
    }
    let wrong = |e: std::io::Error| Error::output(path, format!("the tuned profile: {e}"));
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).map_or(PathBuf::from("."), Path::to_owned);
    std::fs::create_dir_all(&directory).map_err(wrong)?;
    // readable like any other file, as far as the umask lets it be
    let everybody = Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new().permissions(everybody).tempfile_in(&directory).map_err(wrong)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    file.persist(path).map_err(|e| wrong(e.error))?;
    Ok(())
}

/// A device at work, with all that was measured on it.
struct Tuner<'a> {
    found: &'a FoundDevice,
    profile: &'a Profile,
    wanted: &'a Wanted,
    protocol: Protocol,
    references: [Reference; 1],
    bench: Option<Bench>,
    log: Log,
    /// Measurements that the budget has paid for, in this run or the one that it resumes.
    spent: HashSet<(String, u32)>,
    elapsed: Duration,
    budget: Duration,
    reach: Reach,
    reporter: &'a Reporter,
    cancelled: &'a AtomicBool,
    lines: Vec<Line>,
}

impl Tuner<'_> {
    /// Searches around a shipped kernel for as long as `time`; `None` when a signal ends it.
    fn search(&mut self, shipped: &Offer, time: Duration, predict: &Predict) -> Result<Option<Outcome>> {
        let begun = self.elapsed;
        let base = match self.candidate(shipped, None)? {
            Ok(base) => base,
            Err(why) => {
                self.reporter.note(&format!("{}: left out, {why}", self.place(shipped)));
                let side = Side {
                    offer: shipped.clone(),
                    kernel: String::new(),
                    key: String::new(),
                    speed: None,
                    error: None,
                };
                return Ok(Some(Outcome::decide(side, None)));
            }
        };
        let space = Space {
            reach: self.reach,
            slices: slice_modes(self.wanted),
            registers: !self.profile.hardware.register_option.is_empty(),
        };
        let modes = space.slices.clone();
        let asked: &[Algorithm] = &self.wanted.algorithms;
        let wanted = self.wanted;
        let first = starts(self.profile, &self.found.facts, shipped, &modes, asked, &|offer| wanted.has(offer));
        let mut candidates = Vec::new();
        for point in &first {
            match self.candidate(point, Some(&base.spec))? {
                Ok(candidate) => candidates.push(candidate),
                Err(why) => {
                    self.reporter.note(&format!("{}: left out, {why}", self.place(point)));
                }
            }
        }
        if device::planted() {
            let planted = Candidate { key: format!("{PLANTED}{}", base.key), ..base.clone() };
            candidates.insert(1.min(candidates.len()), planted);
        }
        let mut search = Search::new(space, candidates);
        let mut first = true;
        loop {
            if self.cancelled.load(Relaxed) {
                return Ok(None);
            }
            // the shipped kernel is measured however little time there is
            if !first && (self.elapsed - begun).as_secs_f64() >= time.as_secs_f64() * SEARCHING {
                self.reporter.note(&format!("{}: the time for this search is over", self.place(shipped)));
                break;
            }
            first = false;
            let next = search.next(&mut |point| Ok(self.candidate(point, Some(&base.spec))?.ok()), predict)?;
            let Some(step) = next else { break };
            let best = search.best().map(|(_, speed)| speed).filter(|_| !step.again);
            let Some(entry) = self.measure(&step.candidate, u32::from(step.again), best)? else {
                return Ok(None);
            };
            search.tell(&step, entry.speed());
            let best = search.best().map(|(_, speed)| speed);
            self.report(shipped, &step.candidate, &entry, best);
        }
        let best = search.best().map(|(candidate, _)| candidate.clone()).filter(|best| best.key != base.key);
        self.compare(base, best, begun + time)
    }

    /// The shipped kernel and the best one again, in turns, so that noise does not choose; as many turns as there is time
    /// for, at least one. `None` when a signal ends it.
    fn compare(&mut self, base: Candidate, best: Option<Candidate>, until: Duration) -> Result<Option<Outcome>> {
        let Some(best) = best else {
            let entries: Vec<Entry> =
                [0, 1].iter().filter_map(|&turn| self.log.find(&base.key, turn).cloned()).collect();
            let side = side(&base, &entries);
            return Ok(Some(Outcome::decide(side, None)));
        };
        let shipped = base.point.clone();
        let mut sides = [(base, Vec::new()), (best, Vec::new())];
        for turn in TURNS {
            let begun = self.elapsed;
            // neither is always the first
            for at in if turn % 2 == 0 { [0, 1] } else { [1, 0] } {
                if self.cancelled.load(Relaxed) {
                    return Ok(None);
                }
                let (candidate, entries) = &mut sides[at];
                let Some(entry) = self.measure(candidate, turn, None)? else {
                    return Ok(None);
                };
                self.report(&shipped, candidate, &entry, None);
                entries.push(entry);
            }
            let took = self.elapsed - begun;
            if self.elapsed + took > until {
                break;
            }
        }
        // faster by the median, and in most turns
        let [shipped, best] = [0, 1].map(|at| sides[at].1.iter().map(Entry::speed));
        let turns = shipped.len();
        let wins = best.zip(shipped).filter(|(best, shipped)| best > shipped).count();
        let [base, best] = sides.map(|(candidate, entries)| side(&candidate, &entries));
        Ok(Some(Outcome::decide(base, Some(best).filter(|_| 2 * wins > turns))))
    }

    /// A point as a candidate, or why it cannot be one here or may not stand in for the shipped kernel.
    fn candidate(&mut self, point: &Point, shipped: Option<&KernelSpec>) -> Result<Result<Candidate, String>> {
        if let Err(why) = point.check(&self.profile.build) {
            return Ok(Err(why));
        }
        let facts = &self.found.facts;
        let texel = self.open()?.texel(point)?;
        let spec = KernelSpec::new(point, self.profile, texel, problem(&self.protocol), Some(facts));
        let refused = self.protocol.refuses(&spec, rows_of(&spec, self.profile, &self.protocol, facts), facts)?;
        let forbidden = shipped.and_then(|shipped| forbids(point.mode, &spec, shipped, self.protocol.bins));
        Ok(match refused.or(forbidden) {
            Some(why) => Err(why),
            None => Ok(Candidate { point: point.clone(), key: spec.generate()?.key, spec }),
        })
    }

    /// The device with noise on it.
    fn open(&mut self) -> Result<&mut Bench> {
        let bench = match self.bench.take() {
            Some(bench) => bench,
            None => {
                Bench::new(self.found, self.protocol, &self.references).map_err(|error| match self.spent.len() {
                    0 => error,
                    _ => Error::Device(format!("{error}; all measurements so far are in the log; go on with --resume")),
                })?
            }
        };
        Ok(self.bench.insert(bench))
    }

    /// What is known of a candidate, else what a measurement says; `None` when a signal spoiled it. `best` is the speed to
    /// be beaten.
    fn measure(&mut self, candidate: &Candidate, turn: u32, best: Option<f64>) -> Result<Option<Entry>> {
        let known = self.log.find(&candidate.key, turn).cloned();
        let entry = match known {
            Some(entry) => entry,
            None => {
                let entry = self.run(candidate, turn, best)?;
                // compilers that run as processes fail by the signal, which says nothing about the kernel
                if entry.verdict == "failed" && self.cancelled.load(Relaxed) {
                    return Ok(None);
                }
                self.log.add(entry.clone())?;
                entry
            }
        };
        if self.spent.insert((entry.key.clone(), turn)) {
            self.elapsed += Duration::from_millis(entry.milliseconds);
        }
        Ok(Some(entry))
    }

    fn run(&mut self, candidate: &Candidate, turn: u32, best: Option<f64>) -> Result<Entry> {
        let updates = self.protocol.updates(candidate.point.slices) * 1e-9;
        let planted = candidate.key.starts_with(PLANTED);
        let wish = Wish {
            hopeless: best.map(|best| FAR * updates / best),
            projections: planted.then(|| self.protocol.projections.div_ceil(8)),
        };
        let start = Instant::now();
        self.open()?;
        let rows = rows_of(&candidate.spec, self.profile, &self.protocol, &self.found.facts);
        let references = &mut self.references;
        // a driver may hand out nothing but errors after one: then it is opened again
        let measured = match self.bench.take() {
            Some(mut bench) => {
                let measured = bench.time(&candidate.spec, rows, references, &wish);
                self.bench = Some(bench).filter(|_| measured.is_ok());
                measured
            }
            None => Err(Error::Device("the device is not open".into())),
        };
        let (verdict, reason, error, seconds) = match measured {
            Ok(m) if m.seconds.is_some() => ("right", None, Some(m.checked.error), m.seconds),
            Ok(m) => ("wrong", None, Some(m.checked.error), None),
            Err(error) => ("failed", Some(error.to_string()), None, None),
        };
        Ok(Entry {
            key: candidate.key.clone(),
            kernel: candidate.spec.name(),
            turn,
            verdict: verdict.to_owned(),
            reason,
            error: error.filter(|e| e.is_finite()),
            gu_per_s: seconds.map(|s| updates / s),
            milliseconds: start.elapsed().as_millis() as u64,
        })
    }

    fn place(&self, point: &Point) -> String {
        format!("{} {} {} x{}", point.interpolation, point.mode, point.parameters.algorithm(), point.slices)
    }

    /// Keeps a measurement for `--json`, and says how it went.
    fn report(&mut self, shipped: &Offer, candidate: &Candidate, entry: &Entry, best: Option<f64>) {
        let point = &candidate.point;
        let margin = margin(&candidate.spec).relative_rms;
        let facts = &self.found.facts;
        let names = (entry.kernel.as_str(), entry.key.as_str());
        let row = Row {
            verdict: entry.verdict(),
            reason: entry.reason.clone(),
            error: entry.error,
            gu_per_s: entry.speed(),
            seconds_per_slice: entry.speed().map(|speed| self.protocol.updates(1) * 1e-9 / speed),
            ..Row::new(facts, self.profile, point, &self.protocol, names, margin)
        };
        let mut changed = changes(shipped, point);
        if candidate.key.starts_with(PLANTED) {
            changed.push(("planted".to_owned(), "true".to_owned()));
        }
        let how = match &row.verdict {
            Verdict::Failed(_) => row.describe(),
            verdict => format!(
                "{} GU/s, error {}, {verdict}",
                row.gu_per_s.map_or("no".to_owned(), three_digits),
                scientific(row.error)
            ),
        };
        let turn = match entry.turn {
            0 => String::new(),
            1 => " again".to_owned(),
            turn => format!(" turn {}", turn - 1),
        };
        let best = best.map_or(String::new(), |best| format!("; best {}", three_digits(best)));
        let left = Duration::from_secs(self.budget.saturating_sub(self.elapsed).as_secs());
        self.reporter.note(&format!(
            "{}{turn}, {}: {how}{best}, {} left",
            self.place(point),
            describe(&changed),
            humantime::format_duration(left)
        ));
        self.lines.push(Line { row, turn: entry.turn, changed: changed.into_iter().collect() });
    }
}

/// What the keys of planted candidates begin with.
const PLANTED: &str = "planted-";

/// A candidate with the median of its speeds and its worst error; no speed if it was not right once.
fn side(candidate: &Candidate, entries: &[Entry]) -> Side {
    let speeds: Option<Vec<f64>> = entries.iter().map(Entry::speed).collect();
    let speed = speeds.filter(|speeds| !speeds.is_empty()).map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        let middle = speeds.len() / 2;
        if speeds.len() % 2 == 1 { speeds[middle] } else { (speeds[middle - 1] + speeds[middle]) / 2.0 }
    });
    Side {
        offer: candidate.point.clone(),
        kernel: candidate.spec.name(),
        key: candidate.key.clone(),
        speed,
        error: entries.iter().filter_map(|entry| entry.error).reduce(f64::max),
    }
}
