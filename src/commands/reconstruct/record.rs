//! The identity of a run on disk: its key, which every slice contains, and its record, a run file next to the slices.

use super::errors::{ReconstructInputError, RunRecordError};
use super::reconstruction::Reconstruction;
use super::summary::Summary;
use crate::axis::Axis;
use crate::cli::{InputArgs, ReconstructArgs, ScanArgs, StepArgs, Text};
use crate::digest::PartsDigest;
use crate::engine::{FieldCounts, ReadyDevice, Source};
use crate::error::{Error, Result};
use crate::execution::Existing;
use crate::files::{Lock, LockMode, OutputKind, TOML, excerpt_of_lines, read_text, write_atomically};
use crate::geometry::Roi;
use crate::job::Job;
use crate::recipe::{DeviceIdentity, FACTS, Identity, Scaling, run_file};
use crate::remark::Doubt;
use crate::report::Reporter;
use crate::resolution::Resolution;
use crate::sink::{OutputLock, ScanMetadata, SliceStamp, Target};
use crate::source::{CurrentSource, FileNames, JoinedPart, PART, absolute_spec, distortion_files};
use crate::steps::ClampedCounts;
use crate::units::Length;
use rustix::system::uname;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf, absolute};
use std::time::SystemTime;

/// Returns everything that determines the bytes of this run's slices.
pub(super) fn identity(job: &Job, source: &Source, devices: &[ReadyDevice]) -> Identity {
    let scan = &source.scan;
    let of_device = |device: &ReadyDevice| DeviceIdentity {
        device: device.facts().name.clone(),
        platform: device.facts().platform.clone(),
        driver: device.facts().driver.clone(),
        kernel: device.engine.kernel_source.key.clone(),
        rows: device.plan.row_filter.method.to_string(),
        // samples of slices are the same, whether the device or the host encodes them
        row_steps: device.plan.steps.rows,
        sinogram_steps: device.plan.steps.sinograms,
        part: device.plan.cut.projections,
    };
    let sampled = match job.recipe.values.scaling {
        Some(Scaling::Percentile(_)) => Some(PartsDigest::of(scan.run_slices.iter().map(usize::to_string)).to_string()),
        _ => None,
    };
    Identity {
        version: env!("CARGO_PKG_VERSION"),
        recipe: job.recipe.about(scan.center),
        input: source.fingerprint(),
        sampled,
        range: None,
        devices: devices.iter().map(of_device).collect(),
    }
}

/// Returns the names of the parts that differ from those of another run.
fn differences(identity: &Identity, other: &BTreeMap<String, String>) -> String {
    let parts = identity.parts();
    let names: BTreeSet<_> = parts.keys().chain(other.keys()).collect();
    let differ: Vec<_> = names.into_iter().filter(|&name| parts.get(name) != other.get(name)).cloned().collect();
    differ.join(", ")
}

/// Returns the stamp that identifies the run in each slice.
pub(super) fn stamp(job: &Job, source: &Source, key: &str) -> SliceStamp {
    let size = job.recipe.slice.pixel_size.as_ref();
    SliceStamp {
        run: key.to_owned(),
        center: source.scan.center,
        pixel_size: size.map(|size| format!("{:?} {}", size.value, size.unit.replace('µ', "u"))),
        per_centimetre: pixel_of(job, source).and_then(|size| Some(0.01 / size.metres()?)),
    }
}

/// Returns the side of a pixel of the slices: as given, or as the input says.
fn pixel_of(job: &Job, source: &Source) -> Option<Length> {
    let by_input = || {
        let size = source.measures().pixel_size.as_ref()?;
        Some(Length { value: size.value, unit: size.unit.to_owned() }.times(job.recipe.input.binning as f64))
    };
    let size = job.recipe.slice.pixel_size.clone().or_else(by_input)?;
    Some(Length { unit: size.unit.replace('µ', "u"), ..size })
}

/// Returns what outputs of all slices say of the scan.
pub(super) fn metadata(job: &Job, source: &Source) -> ScanMetadata {
    let geometry = &source.scan.geometry;
    let (middle, roi) = ((geometry.size as f64 - 1.0) / 2.0, geometry.roi);
    let by_input = || source.measures().energy.as_ref().map(|energy| energy.value);
    ScanMetadata {
        axis: [middle - roi.x as f64, middle - roi.y as f64],
        pixel: pixel_of(job, source),
        energy_kev: job.recipe.scan.energy_kev.or_else(by_input),
        angles: geometry.angles.clone(),
    }
}

/// Takes the lock of the output: alone, or together with other shards of the run.
///
/// # Errors
/// Errors as of [`OutputLock::take`].
pub(super) fn lock_output<'a>(job: &Job, target: &'a Target, reporter: &Reporter) -> Result<OutputLock<'a>> {
    let mode = if job.execution.shard.is_some() { LockMode::Shared } else { LockMode::Exclusive };
    let lock = OutputLock::take(target, mode, &owner(job))?;
    if !lock.works() {
        reporter.note("note: the file system of --output has no locks: make sure that no other run writes there");
    }
    Ok(lock)
}

/// Makes sure that all jobs that share the output are of one run, which the first one states in the lock.
///
/// # Errors
/// [`Error::Output`] if another run is writing there.
fn agree(lock: &mut OutputLock, job: &Job, key: &str) -> Result<()> {
    const RUN: &str = "run ";
    let lines = lock.add(&format!("{RUN}{key} of {}", owner(job)))?;
    match lines.iter().find_map(|line| line.strip_prefix(RUN)) {
        Some(first) if !first.starts_with(key) => {
            let (first, key) = (first.to_owned(), key.to_owned());
            Err(Error::output(lock.target().directory(), RunRecordError::OtherRunWrites { first, key }))
        }
        _ => Ok(()),
    }
}

fn host() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

fn owner(job: &Job) -> String {
    let shard = job.execution.shard.map(|shard| format!(" (shard {shard})")).unwrap_or_default();
    format!("process {} on {}{shard}", std::process::id(), host())
}

/// The table of facts in a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::commands) struct Facts {
    /// Key of the run, which every slice carries.
    pub run: String,
    pub version: String,
    /// Values that became 0 and the largest integer, where percentiles were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f32, f32)>,
    /// Description of the slices; absent in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanRecord>,
    /// Parts that the key is computed from.
    key: BTreeMap<String, String>,
    /// Jobs that have written slices.
    #[serde(default)]
    pub jobs: Vec<JobRecord>,
}

/// Description of the slices of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::commands) struct ScanRecord {
    /// Number of the first slice, count of slices, and step between their numbers.
    pub slices: [usize; 3],
    /// Side of a whole slice in pixels.
    pub size: usize,
    /// Region of a slice that was reconstructed.
    pub region: Roi,
    pub projections: usize,
    /// Names of the files of projections or sinograms; absent in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<FileNames>,
    /// Numbers of the frames that correct projections; absent in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<FieldCounts>,
    /// Parts of which the scan was joined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<JoinedPart>,
    /// Number of bins of the rows that are filtered.
    pub bins: usize,
    /// Angles of the first and the last projection in degrees.
    pub angles: [f64; 2],
    pub axis: Axis,
    /// Smallest and largest shift of the axis in a projection, in bins, where the input contains shifts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shifts: Option<(f64, f64)>,
    /// Log beside projections that angles or the pixel size were taken from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
}

impl Facts {
    /// Returns the facts of a run of version 1.2.3 that no job has begun.
    #[cfg(test)]
    pub(super) fn of_scan(scan: ScanRecord, range: Option<(f32, f32)>) -> Facts {
        let (run, version) = (String::new(), "1.2.3".into());
        Facts { run, version, range, scan: Some(scan), key: BTreeMap::new(), jobs: Vec::new() }
    }

    /// Reports whether `fingerprint` is that of the run's input.
    pub fn is_input(&self, fingerprint: &str) -> bool {
        self.key.get("input").is_some_and(|input| input == fingerprint)
    }

    /// Returns the doubts about the data of all slices.
    pub fn all_doubts(&self) -> Vec<Doubt> {
        self.doubts(&None)
    }

    /// Reports whether this process wrote the last entry.
    pub fn is_of_this_process(&self) -> bool {
        self.jobs.last().is_some_and(|job| job.process == std::process::id() && job.host == host())
    }

    /// Returns the doubts of jobs about the data of slices of this shard, or of all slices.
    fn doubts(&self, shard: &Option<String>) -> Vec<Doubt> {
        let shares = |job: &&JobRecord| shard.is_none() || job.shard.is_none() || job.shard == *shard;
        let mut doubts: Vec<Doubt> = Vec::new();
        for doubt in self.jobs.iter().filter(shares).flat_map(|job| &job.doubts) {
            if !doubts.contains(doubt) {
                doubts.push(doubt.clone());
            }
        }
        doubts
    }
}

impl ScanRecord {
    fn new(source: &Source, axis: &Axis) -> ScanRecord {
        let (geometry, slices) = (&source.scan.geometry, &source.scan.run_slices);
        let first = slices.first().copied().unwrap_or_default();
        let ends = [geometry.angles.first(), geometry.angles.last()];
        ScanRecord {
            slices: [first, slices.len(), slices.get(1).map_or(1, |second| second - first)],
            size: geometry.size,
            region: geometry.roi,
            projections: geometry.projections(),
            files: Some(source.stack().file_names()),
            fields: Some(source.field_frames()),
            parts: source.parts().to_vec(),
            bins: geometry.bins,
            angles: ends.map(|angle| angle.copied().unwrap_or_default()),
            axis: axis.clone(),
            shifts: source.shift_range(),
            log: source.log().map(Path::to_owned),
        }
    }

    /// Returns the numbers of all slices of the run, ascending.
    pub fn slices(&self) -> Vec<usize> {
        let [first, count, step] = self.slices;
        (0..count).map(|i| first + i * step).collect()
    }
}

/// The part of a job in a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::commands) struct JobRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    host: String,
    process: u32,
    started: String,
    /// `running`, `done`, or the error that ended the job; a killed job remains `running`.
    state: String,
    slices: usize,
    /// Number of these slices that existed already.
    kept: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<ClampedCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clipped: Option<u64>,
    /// Stage that was busy for the largest share of the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<String>,
    /// Messages that were shown.
    #[serde(default)]
    notes: Vec<String>,
    /// Warnings about the data among the messages.
    #[serde(default)]
    doubts: Vec<Doubt>,
    /// Seconds of every stage, summed over all devices.
    #[serde(default)]
    stages: BTreeMap<String, f64>,
    /// Share of the time that every stage was busy.
    #[serde(default)]
    busy: BTreeMap<String, f64>,
    devices: Vec<DeviceRecord>,
    /// Resolution and noise, if they were measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolution: Option<Resolution>,
}

/// A device of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::commands) struct DeviceRecord {
    device: String,
    driver: String,
    profile: String,
    kernel: String,
    /// Rate of back projection in 10^9 updates per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    gu_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<usize>,
}

/// Reads the facts of a record; `None` if there is no valid one.
fn facts(path: &Path) -> Option<Facts> {
    let mut table: toml::Table = read_text(path).ok()?.parse().ok()?;
    table.remove(FACTS)?.try_into().ok()
}

/// A record that was read.
pub(in crate::commands) struct RecordFile {
    pub text: String,
    /// Flags that repeat the run.
    pub flags: ReconstructArgs,
    pub facts: Facts,
}

impl RecordFile {
    /// Reads the record of a run.
    ///
    /// # Errors
    /// [`Error::Input`] if the file cannot be read, or is no record.
    pub fn read(path: &Path) -> Result<RecordFile> {
        let text = read_text(path).map_err(|e| Error::input(path, e))?;
        let wrong = |error: String| Error::input(path, ReconstructInputError::NotARecord { error });
        let flags = toml::from_str(&text).map_err(|e| wrong(excerpt_of_lines(e.to_string().trim_end())))?;
        let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        let facts = table.remove(FACTS).ok_or_else(|| Error::input(path, ReconstructInputError::NoFacts))?;
        let facts = facts.try_into().map_err(|e: toml::de::Error| wrong(e.message().to_owned()))?;
        Ok(RecordFile { flags, facts, text })
    }
}

/// Returns the range that percentiles led to, from the record of a run that is the same except for the range.
pub(super) fn known_range(target: &Target, identity: &Identity) -> Option<(f32, f32)> {
    let facts = facts(&target.record())?;
    facts.range.filter(|&range| identity.clone().with_range(range).key() == facts.run)
}

/// The record of the present run.
pub(super) struct Record<'a> {
    target: &'a Target,
    /// True if there was no record before.
    new: bool,
    run: ReconstructArgs,
    facts: Facts,
    part: JobRecord,
    /// Doubts about slices that earlier jobs of this run have computed.
    earlier: Vec<Doubt>,
}

impl<'a> Record<'a> {
    /// Writes that slices of this run, with this axis, are about to be written.
    ///
    /// # Errors
    /// [`Error::Output`] if slices of another run exist or are being written, or if the record cannot be written.
    pub fn begin(
        run: Reconstruction,
        devices: &[ReadyDevice],
        lock: &mut OutputLock<'a>,
        identity: &Identity,
        axis: &Axis,
    ) -> Result<Record<'a>> {
        let Reconstruction { job, flags, source, .. } = run;
        let target = lock.target();
        let key = identity.key();
        let _lock = Lock::wait(&record_lock(target))?;
        agree(lock, job, &key)?;
        let before = facts(&target.record());
        if let Some(before) = before.as_ref().filter(|before| before.run != key)
            && job.execution.shard.is_some()
            && job.execution.existing == Existing::Refuse
        {
            let (run, parts) = (before.run.clone(), differences(identity, &before.key));
            return Err(Error::output(&target.record(), RunRecordError::OfOtherRun { run, key, parts }));
        }
        let part = JobRecord {
            shard: job.execution.shard.map(|shard| shard.to_string()),
            host: host(),
            process: std::process::id(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            state: "running".into(),
            slices: source.scan.slices.len(),
            kept: 0,
            seconds: None,
            replaced: None,
            clipped: None,
            limit: None,
            notes: Vec::new(),
            doubts: Vec::new(),
            stages: BTreeMap::new(),
            busy: BTreeMap::new(),
            devices: devices
                .iter()
                .map(|device| DeviceRecord {
                    device: device.label.clone(),
                    driver: device.facts().driver.clone(),
                    profile: device.plan.profile.name.clone(),
                    kernel: device.engine.kernel_source.key.clone(),
                    gu_per_s: None,
                    slices: None,
                })
                .collect(),
            resolution: None,
        };
        let new = before.is_none();
        let same = before.as_ref().filter(|before| before.run == key);
        let earlier = same.map(|before| before.doubts(&part.shard)).unwrap_or_default();
        let facts = Facts {
            run: key,
            version: env!("CARGO_PKG_VERSION").into(),
            range: identity.range,
            scan: Some(ScanRecord::new(source, axis)),
            key: identity.parts(),
            jobs: Vec::new(),
        };
        let record = Record { target, new, run: repeatable(flags, job, source.scan.center)?, facts, part, earlier };
        record.put(before)?;
        Ok(record)
    }

    /// Writes the record, with the entries of other jobs of the same run.
    fn put(&self, before: Option<Facts>) -> Result<()> {
        let mut facts = self.facts.clone();
        facts.jobs = before.filter(|before| before.run == facts.run).map(|before| before.jobs).unwrap_or_default();
        facts.jobs.retain(|part| part.shard != self.part.shard);
        facts.jobs.push(self.part.clone());
        let toml = |e: toml::ser::Error| Error::output(&self.target.record(), e);
        let table = toml::Table::from_iter([(FACTS.to_owned(), toml::Value::try_from(facts).map_err(toml)?)]);
        let head = format!("{TOML} reconstruct`. With `--config`, this file reproduces the slices.\n");
        let text = format!("{head}{}\n{}", run_file(&self.run)?, toml::to_string(&table).map_err(toml)?);
        let path = self.target.record();
        if path.symlink_metadata().is_ok() && !OutputKind::Toml.wrote(&path) {
            return Err(Error::output(&path, RunRecordError::OtherFile));
        }
        write_atomically(&path, text).map_err(|e| Error::output(&path, RunRecordError::Unwritable { error: e.into() }))
    }

    /// Repeats the doubts of earlier jobs about the data of slices that are kept, as this job does not read those data.
    pub fn tell_earlier_doubts(&self, kept: usize, reporter: &Reporter) {
        let now = reporter.doubts();
        let others = self.earlier.iter().filter(|doubt| kept > 0 && !now.contains(doubt));
        others.for_each(|doubt| reporter.remark(doubt.clone()));
    }

    /// Writes the outcome of the job, with the messages that were shown.
    pub fn end(mut self, summary: &Summary, kept: usize, reporter: &Reporter) -> Result<()> {
        self.part.state = "done".into();
        self.part.kept = kept;
        self.part.seconds = Some(summary.seconds);
        self.part.replaced = Some(summary.repairs.clamped);
        self.part.clipped = Some(summary.done.clipped);
        self.part.limit = Some(summary.limit().to_owned());
        self.part.resolution = summary.resolution.clone();
        self.part.notes = reporter.said();
        self.part.doubts = reporter.doubts();
        self.part.stages = summary.stages().map(|(stage, seconds)| (stage.to_owned(), seconds)).into();
        self.part.busy = summary.busy().map(|(stage, share)| (stage.to_owned(), share)).into();
        for (device, (slices, rate)) in self.part.devices.iter_mut().zip(summary.rates()) {
            (device.slices, device.gu_per_s) = (Some(slices), Some(rate));
        }
        let _lock = Lock::wait(&record_lock(self.target))?;
        let before = facts(&self.target.record());
        self.put(before)
    }

    /// Writes the error that ended the job, and the doubts about the data until then. A run without a slice leaves no
    /// record.
    pub fn fail(
        mut self,
        error: &Error,
        kept: usize,
        seconds: f64,
        replaced: ClampedCounts,
        mut doubts: Vec<Doubt>,
    ) -> Result<()> {
        self.part.state = error.to_string();
        self.part.kept = kept;
        self.part.seconds = Some(seconds);
        self.part.replaced = Some(replaced);
        if kept > 0 {
            doubts.extend(self.earlier.iter().filter(|doubt| !doubts.contains(doubt)).cloned().collect::<Vec<_>>());
        }
        self.part.doubts = doubts;
        let _lock = Lock::wait(&record_lock(self.target))?;
        let path = self.target.record();
        let before = facts(&path);
        if self.new && before.as_ref().is_none_or(|before| before.jobs.len() <= 1) && !self.target.is_started() {
            return std::fs::remove_file(&path)
                .map_err(|error| Error::output(&path, RunRecordError::NotRemoved { error }));
        }
        self.put(before)
    }
}

/// Returns the path of the lock for writing the record.
fn record_lock(target: &Target) -> PathBuf {
    let record = target.record();
    let name = record.file_name().unwrap_or_default().to_string_lossy().into_owned();
    record.with_file_name(format!(".{name}.lock"))
}

/// Returns the run file that leads to the same slices.
pub(super) fn run_file_of(flags: &ReconstructArgs, job: &Job, center: f64) -> Result<String> {
    run_file(&repeatable(flags, job, center)?)
}

/// Returns flags that lead to the same slices from any directory: all that decide the slices, and none that are
/// specific to this job.
fn repeatable(flags: &ReconstructArgs, job: &Job, center: f64) -> Result<ReconstructArgs> {
    let path = |path: &Path| match path == Path::new("-") {
        true => Ok(path.to_owned()),
        false => absolute(path).map_err(|e| Error::output(path, e)),
    };
    let absolute_of = |spec: &str| absolute_spec(spec).map_err(|e| Error::output(Path::new(spec), e));
    let spec = |spec: &Option<String>| -> Result<Option<String>> {
        // the parts are absolute where a part belongs
        let of_parts = |spec: &&str| spec.contains(PART) && !flags.input.parts().is_empty();
        match spec.as_deref().filter(of_parts) {
            Some(spec) => Ok(Some(spec.to_owned())),
            None => spec.as_deref().map(absolute_of).transpose(),
        }
    };
    let parts = |parts: &[String]| parts.iter().map(|part| absolute_of(part)).collect::<Result<Vec<_>>>();
    let file = |file: &Option<PathBuf>| file.as_deref().map(path).transpose();
    let args = flags.clone();
    let distortion = args.steps.distortion.as_ref().map(|text| {
        let (files, repeat) = distortion_files(&text.0);
        let files = files.iter().map(|file| absolute_spec(file).map_err(|e| Error::output(Path::new(file), e)));
        let words = files.chain(repeat.then(|| Ok("repeat".to_owned()))).collect::<Result<Vec<_>>>()?;
        Ok::<_, Error>(Text(words.join(",")))
    });
    let beam_current = match (&args.steps.beam_current, job.recipe.steps.current) {
        (Some(text), Some(CurrentSource::File)) => spec(&Some(text.0.clone()))?.map(Text),
        (text, _) => text.clone(),
    };
    let of_file = job.execution.files.weights.is_some();
    Ok(ReconstructArgs {
        input: InputArgs {
            sinograms: spec(&args.input.sinograms)?,
            projections: spec(&args.input.projections)?,
            hdf5: spec(&args.input.hdf5)?,
            raw: spec(&args.input.raw)?,
            stack: parts(&args.input.stack)?,
            side_by_side: parts(&args.input.side_by_side)?,
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
        weights: if of_file { file(&args.weights)? } else { args.weights },
        output: spec(&args.output)?,
        center: Some(Text(format!("{center:?}"))),
        steps: StepArgs {
            beam_current,
            distortion: distortion.transpose()?,
            tilt: job.recipe.steps.tilt.map(|tilt| Text(format!("{:?}", tilt.degrees))),
            ..args.steps
        },
        preview: None,
        histogram: None,
        sections: None,
        resolution: false,
        overwrite: false,
        resume: false,
        watch: None,
        expect: None,
        shard: None,
        progress: None,
        log: None,
        strict: false,
        report: Vec::new(),
        ..args
    })
}
