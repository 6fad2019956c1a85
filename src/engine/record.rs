//! What a run is known by afterwards: its key, which every slice carries, and its record, a run file beside the slices.

use super::crew::Member;
use super::source::Source;
use super::stages::Done;
use crate::cli::{InputArgs, ReconstructArgs, ScanArgs, Text};
use crate::error::{Error, Result};
use crate::files::{Hold, Lock};
use crate::recipe::{FACTS, Job, Scaling, run_file};
use crate::report::Reporter;
use crate::sink::{Dtype, SliceStamp, SliceState, Target, write_text};
use crate::spectrum::padded_length;
use crate::steps::ClampedCounts;
use rayon::prelude::*;
use rustix::system::uname;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf, absolute};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::SystemTime;

/// Everything that decides the bytes of slices, by name. Shards of a run have the same; so have runs on one device and on
/// several alike.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Identity(BTreeMap<String, String>);

impl Identity {
    pub fn new(job: &Job, source: &Source, members: &[Member]) -> Identity {
        let scan = &source.scan;
        let geometry = &scan.geometry;
        let each = |of: &dyn Fn(&Member) -> String| {
            members.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ")
        };
        let bits = |values: &[f64]| digest(values.iter().map(|v| format!("{:016x} ", v.to_bits())));
        let mut facts = vec![
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("input", source.fingerprint()),
            ("field-mode", if job.input.median() { "median" } else { "mean" }.to_owned()),
            ("minus-log", source.preparation.minus_log().to_string()),
            ("projections", digest(scan.used.iter().map(|p| format!("{p} ")))),
            ("angles", bits(&geometry.angles)),
            ("weights", bits(&geometry.weights)),
            ("axis", bits(&geometry.axis)),
            ("bins", geometry.bins.to_string()),
            ("padded-bins", padded_length(geometry.bins).to_string()),
            ("extended-field", job.extended_field.to_string()),
            ("size", geometry.size.to_string()),
            ("roi", geometry.roi.to_string()),
            ("filter", job.filter.to_string()),
            ("filter-cutoff", job.cutoff.to_string()),
            ("padding", job.padding.to_string()),
            ("dtype", job.dtype.to_string()),
            ("kernel", each(&|m| m.engine.source.key.clone())),
            ("filter-rows", each(&|m| m.plan.rows.way.to_string())),
            ("parts", each(&|m| m.plan.cut.projections.to_string())),
            ("device", each(&|m| format!("{}, {}, {}", m.facts().name, m.facts().platform, m.facts().driver))),
        ];
        facts.extend(job.preprocess.flags());
        facts.extend(job.pixel_size.as_ref().map(|size| ("pixel-size", size.to_string())));
        facts.extend(job.mask.map(|mask| ("mask", mask.to_string())));
        if let Dtype::U8 | Dtype::U16 = job.dtype {
            facts.push(match job.scaling {
                Scaling::Percentile(low, high) => {
                    ("percentile", format!("{low},{high} of {}", digest(scan.whole.iter().map(|s| format!("{s} ")))))
                }
                Scaling::Fixed(low, high) => ("range", pair((low, high))),
            });
        }
        Identity(facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// With the range that percentiles led to.
    pub fn with_range(mut self, range: (f32, f32)) -> Identity {
        self.0.insert("range".into(), pair(range));
        self
    }

    /// 128 bits in hexadecimal digits.
    pub fn key(&self) -> String {
        digest(self.0.iter().map(|(name, value)| format!("{name}={value}\n")))
    }

    /// What is not the same, in words.
    fn differences(&self, other: &BTreeMap<String, String>) -> String {
        let names: BTreeSet<_> = self.0.keys().chain(other.keys()).collect();
        let differ: Vec<_> =
            names.into_iter().filter(|&name| self.0.get(name) != other.get(name)).map(String::as_str).collect();
        differ.join(", ")
    }
}

/// As `--range` takes it.
fn pair((low, high): (f32, f32)) -> String {
    format!("{low},{high}")
}

/// The first half of a SHA-256.
pub(super) fn digest(parts: impl IntoIterator<Item = impl AsRef<[u8]>>) -> String {
    let mut hash = Sha256::new();
    parts.into_iter().for_each(|part| hash.update(part));
    hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What slices say of the run.
pub(super) fn stamp(job: &Job, source: &Source, key: &str) -> SliceStamp {
    let centimetres = |unit: &str| match unit {
        "nm" => Some(1e-7),
        "um" | "µm" => Some(1e-4),
        "mm" => Some(0.1),
        "cm" => Some(1.0),
        "m" => Some(100.0),
        _ => None,
    };
    let size = job.pixel_size.as_ref();
    SliceStamp {
        run: key.to_owned(),
        center: source.scan.center,
        pixel_size: size.map(|size| format!("{:?} {}", size.value, size.unit.replace('µ', "u"))),
        per_centimetre: size.and_then(|size| Some(1.0 / (size.value * centimetres(&size.unit)?))),
    }
}

/// The right to write to an output.
pub(super) struct Claim<'a> {
    lock: Lock,
    target: &'a Target,
}

impl<'a> Claim<'a> {
    /// Keeps runs that are not shards of this one away from the output, and clears away what dead ones left.
    ///
    /// # Errors
    /// [`Error::Output`] when another run has it, or the directory cannot be made or written to.
    pub fn take(job: &Job, target: &'a Target, reporter: &Reporter) -> Result<Claim<'a>> {
        target.make_directory()?;
        let hold = if job.shard.is_some() { Hold::Shared } else { Hold::Alone };
        let lock = Lock::take(&target.lock(), hold, &owner(job))?;
        if !lock.works() {
            reporter.note("note: the file system of --output knows no locks: let no other run write there");
        } else if hold == Hold::Alone {
            target.sweep();
        }
        Ok(Claim { lock, target })
    }

    /// Makes sure that all who share the output now are of one run: the first says which.
    ///
    /// # Errors
    /// [`Error::Output`] when they are of another.
    fn agree(&mut self, job: &Job, key: &str) -> Result<()> {
        const RUN: &str = "run ";
        self.lock.add(&format!("{RUN}{key} of {}", owner(job)))?;
        let lines = self.lock.lines();
        match lines.iter().find_map(|line| line.strip_prefix(RUN)) {
            Some(first) if !first.starts_with(key) => Err(Error::output(
                self.target.directory(),
                format!(
                    "--output: run {first} is writing here, and this is run {key}: their slices would not be of one run \
                     (other input, flags, device or driver); wait until it has ended, or choose another --output"
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // the last one out knows that all others are gone, those that were killed, too
        if self.lock.is_last() {
            self.target.sweep();
        }
    }
}

fn host() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

fn owner(job: &Job) -> String {
    let shard = job.shard.map(|shard| format!(" (shard {shard})")).unwrap_or_default();
    format!("process {} on {}{shard}", std::process::id(), host())
}

/// The table of facts in a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Facts {
    /// The key that every slice carries.
    run: String,
    version: String,
    /// Values that became 0 and the largest integer, where percentiles were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<(f32, f32)>,
    /// What the key is made of.
    key: BTreeMap<String, String>,
    /// Whoever wrote slices.
    #[serde(default)]
    jobs: Vec<Part>,
}

/// What a job did for the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    host: String,
    process: u32,
    started: String,
    /// `running`, `done`, or why it ended; a job that was killed seems to run.
    state: String,
    slices: usize,
    /// Of these, those that were there already.
    kept: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<ClampedCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clipped: Option<u64>,
    devices: Vec<Device>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Device {
    device: String,
    driver: String,
    profile: String,
    kernel: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<usize>,
}

/// The facts of a record that is there and makes sense.
fn facts(path: &Path) -> Option<Facts> {
    let mut table: toml::Table = std::fs::read_to_string(path).ok()?.parse().ok()?;
    table.remove(FACTS)?.try_into().ok()
}

/// The range that percentiles led to, when a run that is the same but for it has left its record.
pub(super) fn known_range(target: &Target, identity: &Identity) -> Option<(f32, f32)> {
    let facts = facts(&target.record())?;
    facts.range.filter(|&range| identity.clone().with_range(range).key() == facts.run)
}

/// The record of a run that goes on.
pub(super) struct Record<'a> {
    target: &'a Target,
    /// Nobody had written one.
    new: bool,
    run: ReconstructArgs,
    facts: Facts,
    part: Part,
}

impl<'a> Record<'a> {
    /// Says that slices of this run are about to be written.
    ///
    /// # Errors
    /// [`Error::Output`] when slices of another run are there or being written, and when it cannot be written.
    pub fn begin(
        job: &Job,
        source: &Source,
        members: &[Member],
        claim: &mut Claim<'a>,
        identity: &Identity,
        range: Option<(f32, f32)>,
    ) -> Result<Record<'a>> {
        let target = claim.target;
        let key = identity.key();
        let _turn = Lock::wait(&turn(target))?;
        claim.agree(job, &key)?;
        let before = facts(&target.record());
        if let Some(before) = before.as_ref().filter(|before| before.run != key)
            && job.shard.is_some()
            && !(job.overwrite || job.resume)
        {
            return Err(Error::output(
                &target.record(),
                format!(
                    "is of run {}, and this is run {key}: not the same are {}; the slices would not be of one run. \
                     Give all shards the same flags and devices, or --resume to do the others' slices again",
                    before.run,
                    identity.differences(&before.key)
                ),
            ));
        }
        let part = Part {
            shard: job.shard.map(|shard| shard.to_string()),
            host: host(),
            process: std::process::id(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            state: "running".into(),
            slices: source.scan.slices.len(),
            kept: 0,
            seconds: None,
            replaced: None,
            clipped: None,
            devices: members
                .iter()
                .map(|member| Device {
                    device: member.label.clone(),
                    driver: member.facts().driver.clone(),
                    profile: member.plan.profile.name.clone(),
                    kernel: member.engine.source.key.clone(),
                    slices: None,
                })
                .collect(),
        };
        let new = before.is_none();
        let facts = Facts {
            run: key,
            version: env!("CARGO_PKG_VERSION").into(),
            range,
            key: identity.0.clone(),
            jobs: Vec::new(),
        };
        let record = Record { target, new, run: repeatable(job, source)?, facts, part };
        record.put(before)?;
        Ok(record)
    }

    /// Writes it, with what others have said of the same run.
    fn put(&self, before: Option<Facts>) -> Result<()> {
        let mut facts = self.facts.clone();
        facts.jobs = before.filter(|before| before.run == facts.run).map(|before| before.jobs).unwrap_or_default();
        facts.jobs.retain(|part| part.shard != self.part.shard);
        facts.jobs.push(self.part.clone());
        let toml = |e: toml::ser::Error| Error::Output(format!("{}: {e}", self.target.record().display()));
        let table = toml::Table::from_iter([(FACTS.to_owned(), toml::Value::try_from(facts).map_err(toml)?)]);
        let head = "# Written by `fbp reconstruct`. `--config` takes this file for the same slices again.\n";
        let text = format!("{head}{}\n{}", run_file(&self.run)?, toml::to_string(&table).map_err(toml)?);
        write_text(&self.target.record(), &text)
    }

    /// Says how it went. A run without a slice leaves no record.
    pub fn end(mut self, outcome: &Result<Done>, kept: usize, seconds: f64, c: ClampedCounts) -> Result<()> {
        self.part.kept = kept;
        self.part.seconds = Some(seconds);
        self.part.replaced = Some(c);
        self.part.state = match outcome {
            Ok(done) => {
                self.part.clipped = Some(done.clipped);
                for (device, (slices, _)) in self.part.devices.iter_mut().zip(&done.devices) {
                    device.slices = Some(*slices);
                }
                "done".into()
            }
            Err(error) => error.to_string(),
        };
        let _turn = Lock::wait(&turn(self.target))?;
        let path = self.target.record();
        let before = facts(&path);
        if outcome.is_err()
            && self.new
            && before.as_ref().is_none_or(|before| before.jobs.len() <= 1)
            && !self.target.is_started()
        {
            return std::fs::remove_file(&path).map_err(|e| Error::output(&path, format!("cannot be removed: {e}")));
        }
        self.put(before)
    }
}

/// The lock of who writes the record.
fn turn(target: &Target) -> PathBuf {
    let record = target.record();
    let name = record.file_name().unwrap_or_default().to_string_lossy().into_owned();
    record.with_file_name(format!(".{name}.lock"))
}

/// The run as flags that lead to the same slices from anywhere: what decides them, with nothing that is about this job.
fn repeatable(job: &Job, source: &Source) -> Result<ReconstructArgs> {
    let path = |path: &Path| absolute(path).map_err(|e| Error::output(path, e));
    let spec = |spec: &Option<String>| -> Result<Option<String>> {
        spec.as_deref().map(|spec| Ok(path(Path::new(spec))?.to_string_lossy().into_owned())).transpose()
    };
    let file = |file: &Option<PathBuf>| file.as_deref().map(path).transpose();
    let args = job.resolved.clone();
    Ok(ReconstructArgs {
        input: InputArgs {
            sinograms: spec(&args.input.sinograms)?,
            projections: spec(&args.input.projections)?,
            hdf5: spec(&args.input.hdf5)?,
            flats: spec(&args.input.flats)?,
            flats2: spec(&args.input.flats2)?,
            darks: spec(&args.input.darks)?,
            ..args.input
        },
        scan: ScanArgs {
            angles: file(&args.scan.angles)?,
            center_shifts: file(&args.scan.center_shifts)?,
            ..args.scan
        },
        output: spec(&args.output)?,
        center: Some(Text(format!("{:?}", source.scan.center))),
        preview: None,
        histogram: None,
        sections: None,
        overwrite: false,
        resume: false,
        watch: None,
        expect: None,
        shard: None,
        progress: None,
        log: None,
        report: None,
        ..args
    })
}

/// Why slices are done again: how many, for every reason.
#[derive(Default)]
struct Again {
    missing: usize,
    torn: usize,
    other: usize,
    unreadable: Vec<String>,
    preview: usize,
}

/// The slices of this job that are there, whole and of this run.
///
/// # Errors
/// [`Error::Interrupted`] when a signal comes.
pub(super) fn kept(
    job: &Job,
    source: &Source,
    target: &Target,
    key: &str,
    reporter: &Reporter,
    cancelled: &AtomicBool,
) -> Result<Vec<usize>> {
    let slices = &source.scan.slices;
    let look = |&slice: &usize| match cancelled.load(Relaxed) {
        true => Err(interrupted(target)),
        false => Ok((slice, target.examine(slice))),
    };
    let found: Vec<_> = slices.par_iter().map(look).collect::<Result<_>>()?;
    // a preview shows the values, which a file may not hold as they are
    let shown = job.preview.as_ref().map(|_| middle(slices));
    let mut again = Again::default();
    let mut kept = Vec::new();
    for (slice, found) in found {
        match found {
            SliceState::Whole(d) if d.slice == slice && d.stamp.as_ref().is_some_and(|stamp| stamp.run == key) => {
                match shown == Some(slice) {
                    true => again.preview += 1,
                    false => kept.push(slice),
                }
            }
            SliceState::Whole(_) | SliceState::Unknown => again.other += 1,
            SliceState::Missing => again.missing += 1,
            SliceState::Torn => again.torn += 1,
            SliceState::Unreadable(why) => again.unreadable.push(why),
        }
    }
    let reasons: Vec<_> = [
        (again.missing, "missing".to_owned()),
        (again.torn, "torn".to_owned()),
        (again.other, "of another run (other input, flags, device or version)".to_owned()),
        (again.unreadable.len(), format!("unreadable ({})", again.unreadable.first().map_or("", String::as_str))),
        (again.preview, "for --preview".to_owned()),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, why)| format!("{count} {why}"))
    .collect();
    let rest =
        if reasons.is_empty() { "nothing is left to do".into() } else { format!("done now: {}", reasons.join(", ")) };
    reporter.note(&format!("--resume: {} of {} slices are kept; {rest}", kept.len(), slices.len()));
    Ok(kept)
}

/// The slice in the middle of a list that is not empty.
pub(super) fn middle(slices: &[usize]) -> usize {
    slices.get(slices.len() / 2).copied().unwrap_or_default()
}

/// What a run ends with after a signal.
pub(super) fn interrupted(target: &Target) -> Error {
    Error::Interrupted(match target.resumable() {
        true => "interrupted: every slice that is there is whole; run again with --resume to do the others".into(),
        false => format!("interrupted: {} is not written; run again", target.path_of(0).display()),
    })
}
