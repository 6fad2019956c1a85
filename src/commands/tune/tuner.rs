//! The search around one shipped kernel, and the comparison with the best kernel found.

use super::super::bench::resident;
use super::errors::TuneDeviceError;
use super::problem::{problem, rows_of, slice_modes};
use crate::device::{FoundDevice, Session};
use crate::error::{BoxedError, Error, Result};
use crate::fault;
use crate::kernel::KernelSpec;
use crate::kernel::{Algorithm, Offer};
use crate::margins::margin;
use crate::measure::{
    Bench, BenchRow, Candidate, Log, LogEntry, OfferFilter, Outcome, Point, Predict, Protocol, Reach, Search, Space,
    TimedKernel, TimingOptions, Verdict, changes, describe_changes, forbids, scientific, starting_kernels,
    three_digits,
};
use crate::profile::Profile;
use crate::reference::Reference;
use crate::report::Reporter;
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Share of the budget for searches; comparisons get the remainder.
const SEARCHING: f64 = 0.75;

/// Turns of a comparison, whose median counts; turns 0 and 1 belong to the search.
const TURNS: std::ops::RangeInclusive<u32> = 2..=4;

/// Factor by which a kernel may be slower than the best before it is timed with one pass only.
const FAR: f64 = 3.0;

/// Prefix of the keys of planted candidates.
const PLANTED: &str = "planted-";

/// A measurement in the form that `--json` shows.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    #[serde(flatten)]
    row: BenchRow,
    /// Turn: 0 in the search, 1 for a point that the search measured again, from 2 in the comparison at its end.
    turn: u32,
    /// Differences from the shipped kernel.
    changed: BTreeMap<String, String>,
}

/// The searches on one device, with all measurements.
pub struct Tuner<'a> {
    pub found: &'a FoundDevice,
    pub profile: &'a Profile,
    pub wanted: &'a OfferFilter,
    pub protocol: Protocol,
    pub references: [Reference; 1],
    pub bench: Option<Bench>,
    pub log: Log,
    /// Measurements that are charged to the budget, in this run or the one that it resumes.
    pub spent: HashSet<(String, u32)>,
    pub elapsed: Duration,
    pub budget: Duration,
    pub reach: Reach,
    /// True if kernels may be tried whose last bits depend on scheduling.
    pub scheduling: bool,
    pub reporter: &'a Reporter,
    pub cancelled: &'a AtomicBool,
    /// Measurements in the order in which they were made.
    pub measurements: Vec<Measurement>,
}

impl Tuner<'_> {
    /// Searches around each of the shipped kernels; returns fewer outcomes if a signal ends the search. Points with a
    /// high bound from `predict`, in GU/s, come first.
    pub fn search_all(&mut self, targets: &[Offer], predict: &Predict) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for (number, shipped) in targets.iter().enumerate() {
            // the remaining budget is divided evenly among the remaining searches
            let left = self.budget.saturating_sub(self.elapsed) / (targets.len() - number) as u32;
            match self.search(shipped, left, predict) {
                Ok(Some(outcome)) => outcomes.push(outcome),
                Ok(None) => break,
                // a driver may fail on the signal
                Err(Error::Device(_) | Error::KernelBuild(_)) if self.cancelled.load(Relaxed) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(outcomes)
    }

    /// Searches around a shipped kernel for up to `time`; returns `None` if a signal ends the search.
    fn search(&mut self, shipped: &Offer, time: Duration, predict: &Predict) -> Result<Option<Outcome>> {
        let start = self.elapsed;
        let base = match self.candidate(shipped, None)? {
            Ok(base) => base,
            Err(why) => {
                self.reporter.note(&format!("{}: left out, {why}", self.label(shipped)));
                let side = TimedKernel {
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
            scheduling: self.scheduling,
        };
        let modes = space.slices.clone();
        let algorithms: &[Algorithm] = &self.wanted.algorithms;
        let wanted = self.wanted;
        let first = starting_kernels(self.profile, &self.found.facts, shipped, &modes, algorithms, &|offer| {
            wanted.matches(offer)
        });
        let mut candidates = Vec::new();
        for point in &first {
            match self.candidate(point, Some(&base.spec))? {
                Ok(candidate) => candidates.push(candidate),
                Err(why) => {
                    self.reporter.note(&format!("{}: left out, {why}", self.label(point)));
                }
            }
        }
        if fault::planted() {
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
            if !first && (self.elapsed - start).as_secs_f64() >= time.as_secs_f64() * SEARCHING {
                self.reporter.note(&format!("{}: the time for this search is up", self.label(shipped)));
                break;
            }
            first = false;
            let next = search.next(&mut |point| Ok(self.candidate(point, Some(&base.spec))?.ok()), predict)?;
            let Some(step) = next else { break };
            let best = search.best().map(|(_, speed)| speed).filter(|_| !step.repeated);
            let Some(entry) = self.measure(&step.candidate, u32::from(step.repeated), best)? else {
                return Ok(None);
            };
            search.record(&step, entry.speed());
            let best = search.best().map(|(_, speed)| speed);
            self.report(shipped, &step.candidate, &entry, best);
        }
        let best = search.best().map(|(candidate, _)| candidate.clone()).filter(|best| best.key != base.key);
        self.compare(base, best, start + time)
    }

    /// Times the shipped kernel and the best one again in turns, so that noise does not decide; as many turns as time
    /// allows, at least one. Returns `None` if a signal ends the comparison.
    fn compare(&mut self, base: Candidate, best: Option<Candidate>, until: Duration) -> Result<Option<Outcome>> {
        let Some(best) = best else {
            let entries: Vec<LogEntry> =
                [0, 1].iter().filter_map(|&turn| self.log.find(&base.key, turn).cloned()).collect();
            let side = timed_kernel(&base, &entries);
            return Ok(Some(Outcome::decide(side, None)));
        };
        let shipped = base.point.clone();
        let mut sides = [(base, Vec::new()), (best, Vec::new())];
        for turn in TURNS {
            let start = self.elapsed;
            // neither kernel is always the first
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
            let took = self.elapsed - start;
            if self.elapsed + took > until {
                break;
            }
        }
        // the best kernel must be faster by the median and in most turns
        let [shipped, best] = [0, 1].map(|at| sides[at].1.iter().map(LogEntry::speed));
        let turns = shipped.len();
        let wins = best.zip(shipped).filter(|(best, shipped)| best > shipped).count();
        let [base, best] = sides.map(|(candidate, entries)| timed_kernel(&candidate, &entries));
        Ok(Some(Outcome::decide(base, Some(best).filter(|_| 2 * wins > turns))))
    }

    /// Returns a point as a candidate, or the reason why it cannot run here or must not replace the shipped kernel.
    fn candidate(&mut self, point: &Point, shipped: Option<&KernelSpec>) -> Result<Result<Candidate, BoxedError>> {
        if let Err(why) = point.check() {
            return Ok(Err(why.into()));
        }
        let facts = &self.found.facts;
        let texel = self.open()?.texel(point)?;
        let spec = KernelSpec::new(point, self.profile, texel, problem(&self.protocol), Some(facts));
        let refused = self.protocol.refuses(&spec, rows_of(&spec, self.profile, &self.protocol, facts), facts)?;
        let forbidden = shipped.and_then(|shipped| forbids(point.mode, &spec, shipped, self.protocol.bins));
        Ok(match refused.or(forbidden) {
            Some(why) => Err(why.into()),
            None => Ok(Candidate { point: point.clone(), key: spec.generate()?.key, spec }),
        })
    }

    /// Opens the device with noise as data, unless it is open.
    fn open(&mut self) -> Result<&mut Bench> {
        let bench = match self.bench.take() {
            Some(bench) => bench,
            None => {
                let opened = Session::open(self.found);
                let bench = opened.and_then(|session| Bench::new(session, self.protocol, &self.references));
                bench.map_err(|error| match self.spent.len() {
                    0 => error,
                    _ => TuneDeviceError::Failed { error: error.to_string() }.into(),
                })?
            }
        };
        Ok(self.bench.insert(bench))
    }

    /// Returns the measurement of a candidate from the log, or a new one; `None` if a signal interrupted it. `best` is
    /// the speed to beat.
    fn measure(&mut self, candidate: &Candidate, turn: u32, best: Option<f64>) -> Result<Option<LogEntry>> {
        let known = self.log.find(&candidate.key, turn).cloned();
        let entry = match known {
            Some(entry) => entry,
            None => {
                let entry = self.run(candidate, turn, best)?;
                // compilers that run as processes fail on the signal, which says nothing about the kernel
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

    fn run(&mut self, candidate: &Candidate, turn: u32, best: Option<f64>) -> Result<LogEntry> {
        let updates = self.protocol.updates(candidate.point.slices) * 1e-9;
        let planted = candidate.key.starts_with(PLANTED);
        let options = TimingOptions {
            give_up_after: best.map(|best| FAR * updates / best),
            projections: planted.then(|| self.protocol.projections.div_ceil(8)),
            patient: false,
        };
        let start = Instant::now();
        self.open()?;
        let rows = rows_of(&candidate.spec, self.profile, &self.protocol, &self.found.facts);
        let references = &mut self.references;
        // after an error a driver may return nothing but errors: it is opened again
        let measured = match self.bench.take() {
            Some(mut bench) => {
                let measured = bench.time(&candidate.spec, rows, references, &options);
                self.bench = Some(bench).filter(|_| measured.is_ok());
                measured
            }
            None => Err(Error::Internal("the device is not open".into())),
        };
        let registers = measured.as_ref().ok().and_then(|measured| measured.resources.registers);
        let (verdict, reason, error, seconds) = match measured {
            Ok(m) if m.time.is_some() => ("right", None, Some(m.checked.error), m.time.map(|time| time.seconds)),
            Ok(m) => ("wrong", None, Some(m.checked.error), None),
            Err(error) => ("failed", Some(error.to_string()), None, None),
        };
        Ok(LogEntry {
            key: candidate.key.clone(),
            kernel: candidate.spec.name(),
            turn,
            verdict: verdict.to_owned(),
            reason,
            error: error.filter(|e| e.is_finite()),
            gu_per_s: seconds.map(|s| updates / s),
            registers,
            milliseconds: start.elapsed().as_millis() as u64,
        })
    }

    fn label(&self, point: &Point) -> String {
        format!("{} {} {} x{}", point.interpolation, point.mode, point.parameters.algorithm(), point.slices)
    }

    /// Stores a measurement for `--json`, and prints a line about it.
    fn report(&mut self, shipped: &Offer, candidate: &Candidate, entry: &LogEntry, best: Option<f64>) {
        let point = &candidate.point;
        let margin = margin(&candidate.spec).relative_rms;
        let facts = &self.found.facts;
        let row = BenchRow {
            verdict: entry.verdict(),
            reason: entry.reason.clone(),
            error: entry.error,
            gu_per_s: entry.speed(),
            seconds_per_slice: entry.speed().map(|speed| self.protocol.updates(1) * 1e-9 / speed),
            ..BenchRow::new(facts, self.profile, point, &self.protocol, &entry.kernel, &entry.key, margin)
        };
        let rates = self.profile.throughput.as_ref();
        let row = row.with_occupancy(entry.registers, resident(&candidate.spec, rates, entry.registers));
        let mut changed = changes(shipped, point);
        if candidate.key.starts_with(PLANTED) {
            changed.push(("planted".to_owned(), "true".to_owned()));
        }
        let how = match &row.verdict {
            Verdict::Failed(_) => row.describe(),
            verdict => format!(
                "{} GU/s, error {}, {verdict}, occupancy {}",
                row.gu_per_s.map_or("no".to_owned(), three_digits),
                scientific(row.error),
                row.occupancy_cell()
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
            self.label(point),
            describe_changes(&changed),
            humantime::format_duration(left)
        ));
        self.measurements.push(Measurement { row, turn: entry.turn, changed: changed.into_iter().collect() });
    }
}

/// Returns a candidate with the median of its speeds and its largest error; without a speed if it was ever incorrect.
fn timed_kernel(candidate: &Candidate, entries: &[LogEntry]) -> TimedKernel {
    let speeds: Option<Vec<f64>> = entries.iter().map(LogEntry::speed).collect();
    let speed = speeds.filter(|speeds| !speeds.is_empty()).map(|mut speeds| {
        speeds.sort_by(f64::total_cmp);
        let middle = speeds.len() / 2;
        if speeds.len() % 2 == 1 { speeds[middle] } else { (speeds[middle - 1] + speeds[middle]) / 2.0 }
    });
    TimedKernel {
        offer: candidate.point.clone(),
        kernel: candidate.spec.name(),
        key: candidate.key.clone(),
        speed,
        error: entries.iter().filter_map(|entry| entry.error).reduce(f64::max),
    }
}
