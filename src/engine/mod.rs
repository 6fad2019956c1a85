//! A run: read, correct, upload, filter, back-project, download, write, in chunks, every stage on a thread of its own.

mod bench;
mod center;
mod check;
mod crew;
mod engine;
mod overview;
mod record;
mod selftest;
mod source;
mod stages;
mod summary;
mod work;

pub use bench::{Bench, Measured, Wish};
pub use center::{Axis, Sampled, Trial, sample, trial_slices};
pub use check::{Checked, examine_rows};
pub use engine::{DeviceSeconds, Engine, Setup, open, texel_works};
pub use selftest::unwritable;

use crate::error::{Error, Result};
use crate::files::write_atomically;
use crate::picture::{Panel, write_preview};
use crate::plan::Scan;
use crate::recipe::{Center, Job, Scaling, run_file};
use crate::report::{Reporter, results};
use crate::sink::{Dtype, Encoding, Present, SliceWriter, Target};
use crate::steps::Counts;
use crew::{chosen, host_budget, muster, prepare};
use overview::{Overview, check_files};
use record::{Claim, Identity, Record, known_range, middle, stamp};
use source::{Finish, Source};
use stages::{Done, Run, stages};
use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use summary::Summary;

/// What the `Software` tag of every slice says.
pub const SOFTWARE: &str = concat!("fbp ", env!("CARGO_PKG_VERSION"));

/// Runs a job to its end, or prints its plan.
///
/// `cancelled` is looked at between pieces; a run that it stops leaves only whole slices behind.
pub fn run(job: &Job, cancelled: &AtomicBool) -> Result<()> {
    let start = Instant::now();
    let reporter = Reporter::new(job.verbosity, job.progress, job.log.as_deref())?;
    let mut source = Source::open(job, &reporter, cancelled)?;
    if let Some(path) = &job.save_config {
        let text = run_file(&job.resolved)?;
        write_atomically(path, text).map_err(|e| Error::output(path, format!("--save-config: {e}")))?;
    }
    let mut axis = Axis::given(&source.scan);
    let mut job = Cow::Borrowed(job);
    if let Center::Search(method) = job.center {
        axis = center::find(&source, method, &reporter)?;
        reporter.note(&format!("note: {axis}"));
        job.to_mut().center = Center::At(axis.value);
        source = source.with_axis_of(&job)?;
        for note in &source.scan.notes {
            reporter.note(&format!("note: {note}"));
        }
    }
    let (job, scan) = (&*job, &source.scan);
    if job.dry_run {
        let (devices, host) = chosen(job, scan)?;
        for found in &devices {
            let plan = prepare(job, scan, found, host, &reporter)?;
            results(&plan.describe(job, scan, &found.facts, &source.preparation.describe()))?;
        }
        return Ok(());
    }
    if let (Some(shard), true) = (job.shard, scan.slices.is_empty()) {
        reporter.note(&format!("nothing to do: there are {} slices for the {} shards", scan.whole.len(), shard.count));
        return Ok(());
    }
    let target = job.output.as_ref().ok_or_else(|| Error::usage("--output: missing"))?;
    // an output that cannot be written is found before the device is bothered
    check_paths(&source, target)?;
    let mut claim = Claim::take(job, target, &reporter)?;
    let mut writer = create_writer(job, &source.scan, target)?;
    // their directories may be the one just made
    check_files(job, &source, target)?;
    let mut members = muster(job, scan, &reporter)?;
    let finish = Finish::new(job, scan);
    let mut identity = Identity::new(job, &source, &members);
    let mut range = None;
    if let (Dtype::U8 | Dtype::U16, Scaling::Percentile(low, high)) = (job.dtype, job.scaling) {
        let found = match known_range(target, &identity) {
            Some(range) => range,
            None => percentile_range(&source, &mut members[0].engine, &finish, low, high)?,
        };
        reporter.note(&format!("percentiles {low} and {high} of sampled slices: {} and {}", found.0, found.1));
        writer = writer.with_range(found)?;
        identity = identity.with_range(found);
        range = Some(found);
    }
    let key = identity.key();
    let mut writer = writer.stamped(stamp(job, &source, &key));
    let record = Record::begin(job, &source, &members, &mut claim, &identity, range)?;
    let middle = middle(&scan.slices);
    let overview = Overview::new(job, scan, &finish);
    let mut kept = Vec::new();
    let mut counts = Counts::default();
    let outcome = (|| {
        if job.resume {
            kept = record::kept(job, &source, target, &key, &reporter, cancelled)?;
            writer.keep(&kept);
            source.scan.slices.retain(|slice| kept.binary_search(slice).is_err());
            if let Some(overview) = &overview {
                overview.add_kept(&kept, target, writer.encoding(), cancelled)?;
            }
        }
        let scan = &source.scan;
        let slice_bytes = scan.geometry.roi.pixels() as u64 * 4;
        let run = Run {
            job,
            source: &source,
            finish: &finish,
            reporter: &reporter,
            cancelled,
            // one file is written in order: what comes early waits in a part of the memory
            window: if target.in_order() {
                Some((host_budget(job, scan)? / 4 / slice_bytes.max(1)) as usize)
            } else {
                None
            },
            target,
            middle,
            overview: overview.as_ref(),
        };
        let updates = scan.geometry.roi.pixels() as f64 * scan.geometry.projections() as f64;
        let mut progress = reporter.progress(scan.slices.len(), updates);
        let outcome = stages(run, &mut members, writer, &mut counts, &mut |n| progress.advance(n));
        progress.finish();
        outcome
    })();
    let repairs = source.preparation.repairs(&counts);
    let told = record.end(&outcome, kept.len(), start.elapsed().as_secs_f64(), repairs.clamped);
    // what went wrong first says more than a record that cannot be written
    let done = outcome?;
    told?;
    if let Some(path) = &job.preview {
        preview(path, job, &source, middle, &done)?;
    }
    if let Some(overview) = overview {
        overview.write(job, &key)?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let summary = Summary::new(job, &source.scan, axis, &members, &done, seconds, repairs);
    summary.tell(&reporter);
    job.report.as_deref().map_or(Ok(()), |path| summary.write(path))
}

/// Refuses to write where the input is.
fn check_paths(source: &Source, target: &Target) -> Result<()> {
    let inputs: HashSet<_> = source.stack.files().iter().filter_map(|f| f.canonicalize().ok()).collect();
    for &slice in &source.scan.whole {
        let path = target.path_of(slice);
        if path.canonicalize().is_ok_and(|p| inputs.contains(&p)) {
            return Err(Error::output(&path, "--output: is a file of the input; choose another --output"));
        }
    }
    Ok(())
}

/// Checks the places of slices, and makes their directory.
fn create_writer(job: &Job, scan: &Scan, target: &Target) -> Result<SliceWriter> {
    let range = match (job.dtype, job.scaling) {
        (Dtype::F32 | Dtype::F16, _) => None,
        (_, Scaling::Fixed(low, high)) => Some((low, high)),
        // a stand-in until the values are known
        (_, Scaling::Percentile(..)) => Some((0.0, 1.0)),
    };
    let roi = scan.geometry.roi;
    let encoding = Encoding { dtype: job.dtype, range };
    SliceWriter::create(
        target.clone(),
        roi.width,
        roi.height,
        encoding,
        &scan.slices,
        Present::new(job.overwrite || job.resume, job.shard.map(|_| scan.whole.as_slice())),
        SOFTWARE,
    )
}

/// Slices that the percentiles are taken from.
const SAMPLED_SLICES: usize = 5;

/// The values at two percentiles of some slices spread over the whole run; they do not depend on chunks or shards.
fn percentile_range(source: &Source, engine: &mut Engine, finish: &Finish, low: f64, high: f64) -> Result<(f32, f32)> {
    let slices = &source.scan.whole;
    let count = SAMPLED_SLICES.min(slices.len());
    let mut values = Vec::new();
    for sample in 0..count {
        let at = (2 * sample + 1) * slices.len() / (2 * count);
        let mut slice = vec![0f32; source.scan.geometry.roi.pixels()];
        engine.reconstruct(&source.read(&slices[at..=at])?, &mut slice)?;
        finish.apply(&source.scan, &mut slice);
        values.append(&mut slice);
    }
    let mut at = |percentile: f64| {
        let index = ((values.len() - 1) as f64 * percentile / 100.0).round() as usize;
        *values.select_nth_unstable_by(index, f32::total_cmp).1
    };
    let (low, high) = (at(low), at(high));
    // all the same: a range that holds them, however large they are
    Ok(if low < high { (low, high) } else { (low, low + low.abs().max(1.0)) })
}

fn preview(path: &Path, job: &Job, source: &Source, middle: usize, done: &Done) -> Result<()> {
    let scan = &source.scan;
    let sinogram = source.read(&[middle])?;
    let roi = scan.geometry.roi;
    write_preview(
        path,
        &[
            Panel {
                title: &format!("slice {middle}"),
                unit: &job.unit(),
                width: roi.width,
                height: roi.height,
                data: &done.middle,
            },
            Panel {
                title: "its sinogram",
                unit: "line integral",
                width: scan.geometry.bins,
                height: scan.geometry.projections(),
                data: &sinogram,
            },
        ],
    )
}
