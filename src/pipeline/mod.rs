//! A run: read, correct, upload, filter, back-project, download, write, in chunks, on three threads.
//!
//! The reader, the device and the writer each work on their own chunk and hand it on through channels of one, so
//! memory is bounded whatever the stack's size. The first error stops all of them.

mod bench;
mod check;
mod engine;
mod selftest;

pub use bench::{Bench, Measured, Wish};
pub use check::{Checked, examine_rows};
pub use engine::{DeviceSeconds, Engine, Setup, open, texel_works};
pub use selftest::unwritable;

use crate::config::{Input, Job, Scaling, pieces, run_file};
use crate::device::{self, FoundDevice};
use crate::error::{Error, Result};
use crate::geometry::{parse_numbers, slice_centre};
use crate::io::{Dtype, Encoding, SliceWriter, Stack};
use crate::known::KnownFailures;
use crate::picture::{Panel, write_preview};
use crate::plan::{Avoid, Plan, Scan, StackShape, available_memory};
use crate::preprocess::{Clamped, ClampedCounts, Correction, Fields};
use crate::profile::ProfileStore;
use crate::report::Reporter;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use rayon::prelude::*;
use selftest::{Prepared, open_device};
use serde_json::json;
use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// What the `Software` tag of every slice says.
pub const SOFTWARE: &str = concat!("fbp ", env!("CARGO_PKG_VERSION"));

/// The stack, its correction and the scan that it holds.
struct Source {
    stack: Stack,
    correction: Correction,
    sinograms: bool,
    scan: Scan,
}

impl Source {
    /// Opens the input, reads the text files beside it, and checks that all fits together.
    fn open(job: &Job, reporter: &Reporter) -> Result<Source> {
        let (path, flag) = job.input.stack();
        let stack = Stack::open(path, flag)?;
        for note in stack.notes() {
            reporter.note(&format!("note: {note}"));
        }
        let sinograms = matches!(job.input, Input::Sinograms(_));
        let numbers = |path: &Path, flag: &str| -> Result<Vec<f64>> {
            let text = std::fs::read_to_string(path).map_err(|e| Error::input(path, format!("{flag}: {e}")))?;
            parse_numbers(&text, &format!("{flag} {}", path.display()))
        };
        let angles = match &job.angles {
            crate::config::AngleSource::File(file) => Some(numbers(file, "--angles")?),
            crate::config::AngleSource::Even { .. } => None,
        };
        let shifts = job.center_shifts.as_deref().map(|file| numbers(file, "--center-shifts")).transpose()?;
        let (slices, projections) = match sinograms {
            true => (stack.len(), stack.height()),
            false => (stack.height(), stack.len()),
        };
        let shape = StackShape { slices, projections, bins: stack.width(), angles, shifts };
        let scan = Scan::new(job, &shape)?;
        for note in &scan.notes {
            reporter.note(&format!("note: {note}"));
        }
        let fields = match &job.input {
            Input::Projections { flats: Some(flats), flats2, darks, median, .. } => {
                if darks.is_none() {
                    reporter.note("note: no --darks, the dark level is taken as 0");
                }
                Some(Fields::read(flats, flats2.as_deref(), darks.as_deref(), *median, &stack)?)
            }
            _ => None,
        };
        Ok(Source {
            stack,
            correction: Correction { fields, minus_log: job.minus_log, clamped: Clamped::default() },
            sinograms,
            scan,
        })
    }

    /// Values of one sinogram.
    fn sinogram_len(&self) -> usize {
        self.scan.geometry.projections() * self.scan.geometry.bins
    }

    /// Corrected sinograms `[slice][projection][bin]` of some slices of the scan.
    fn read(&self, which: &[usize]) -> Result<Vec<f32>> {
        let mut out = Vec::new();
        self.read_into(which, &mut Vec::new(), &mut out)?;
        Ok(out)
    }

    /// The same into memory that was used before; `band` is for rows of projections.
    fn read_into(&self, which: &[usize], band: &mut Vec<f32>, out: &mut Vec<f32>) -> Result<()> {
        let bins = self.scan.geometry.bins;
        let used = &self.scan.used;
        out.resize(which.len() * self.sinogram_len(), 0.0);
        if self.sinograms {
            let total = self.stack.height();
            out.par_chunks_mut(self.sinogram_len()).zip(which).try_for_each(|(sinogram, &slice)| -> Result<()> {
                if used.len() == total {
                    self.stack.read_rows(slice, 0..total, sinogram)?;
                } else {
                    let mut all = vec![0f32; total * bins];
                    self.stack.read_rows(slice, 0..total, &mut all)?;
                    for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
                        row.copy_from_slice(&all[p * bins..(p + 1) * bins]);
                    }
                }
                for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
                    self.correction.apply(row, slice, p, total);
                }
                Ok(())
            })?;
        } else {
            // rows of a projection, then rows of a sinogram
            let rows = span_of(which);
            let total = self.stack.len();
            band.resize(used.len() * which.len() * bins, 0.0);
            band.par_chunks_mut(which.len() * bins).zip(used).try_for_each(|(wanted, &p)| -> Result<()> {
                if rows.len() == which.len() {
                    self.stack.read_rows(p, rows.clone(), wanted)?;
                } else {
                    for (row, &z) in wanted.chunks_mut(bins).zip(which) {
                        self.stack.read_rows(p, z..z + 1, row)?;
                    }
                }
                for (row, &z) in wanted.chunks_mut(bins).zip(which) {
                    self.correction.apply(row, z, p, total);
                }
                Ok(())
            })?;
            out.par_chunks_mut(self.sinogram_len()).enumerate().for_each(|(s, sinogram)| {
                for (p, row) in sinogram.chunks_mut(bins).enumerate() {
                    let from = (p * which.len() + s) * bins;
                    row.copy_from_slice(&band[from..from + bins]);
                }
            });
        }
        Ok(())
    }
}

/// From the first to the last of ascending numbers.
fn span_of(numbers: &[usize]) -> Range<usize> {
    match (numbers.first(), numbers.last()) {
        (Some(&first), Some(&last)) => first..last + 1,
        _ => 0..0,
    }
}

/// What is done to a slice after the device: length unit and mask.
struct Finish {
    factor: f32,
    /// Radius in pixels, squared.
    radius2: Option<f64>,
}

impl Finish {
    fn new(job: &Job, scan: &Scan) -> Self {
        Finish {
            factor: job.pixel_size.as_ref().map_or(1.0, |p| (1.0 / p.value) as f32),
            radius2: job.mask.map(|fraction| (fraction * scan.geometry.size as f64 / 2.0).powi(2)),
        }
    }

    fn apply(&self, scan: &Scan, slice: &mut [f32]) {
        let (roi, centre) = (scan.geometry.roi, slice_centre(scan.geometry.size));
        if self.factor != 1.0 {
            slice.iter_mut().for_each(|v| *v *= self.factor);
        }
        if let Some(radius2) = self.radius2 {
            for (y, row) in slice.chunks_mut(roi.width).enumerate() {
                let dy = (roi.y + y) as f64 - centre;
                for (x, value) in row.iter_mut().enumerate() {
                    let dx = (roi.x + x) as f64 - centre;
                    if dx * dx + dy * dy > radius2 {
                        *value = 0.0;
                    }
                }
            }
        }
    }
}

/// How a run went.
#[derive(Clone, Debug)]
pub struct Summary {
    pub slices: usize,
    /// Wall-clock seconds of the whole run.
    pub seconds: f64,
    /// Updates (pixels times projections, all slices).
    pub updates: f64,
    pub device: DeviceSeconds,
    /// Seconds the reader and the writer were busy.
    pub read: f64,
    pub write: f64,
    pub clamped: ClampedCounts,
    /// Values clamped by an integer range or by half's range.
    pub clipped: u64,
}

/// Finds the device and plans, trusting its driver but for what is known.
fn prepare(job: &Job, scan: &Scan, reporter: &Reporter) -> Result<(FoundDevice, Plan)> {
    let devices = device::enumerate()?;
    let facts: Vec<_> = devices.iter().map(|d| &d.facts).collect();
    let found = devices[job.device.select(&facts)?].clone();
    let choice = ProfileStore::load()?.for_device(job.profile.as_deref(), &found.facts)?;
    reporter.detail(&format!("profile {}: {}", choice.profile.name, choice.reason));
    for note in &choice.notes {
        reporter.note(&format!("note: {note}"));
    }
    let host = job.memory.unwrap_or_else(|| available_memory() / 2);
    let avoid = Avoid { known: &KnownFailures::built_in()?, refused: &[] };
    let plan = Plan::new(job, scan, &choice, &found.facts, host, avoid)?;
    Ok((found, plan))
}

/// Runs a job to its end, or prints its plan.
///
/// `cancelled` is looked at between chunks; a run that it stops leaves only whole slices behind.
pub fn run(job: &Job, cancelled: &AtomicBool) -> Result<()> {
    let start = Instant::now();
    let reporter = Reporter::new(job.verbosity, job.progress, job.log.as_deref())?;
    let source = Source::open(job, &reporter)?;
    let scan = &source.scan;
    if let Some(path) = &job.save_config {
        let text = run_file(&job.resolved)?;
        std::fs::write(path, text).map_err(|e| Error::output(path, format!("--save-config: {e}")))?;
    }
    if job.dry_run {
        let (found, plan) = prepare(job, scan, &reporter)?;
        print!("{}", plan.describe(job, scan, &found.facts));
        return Ok(());
    }
    // an output that cannot be written is found before the device is bothered
    let target = job.output.clone().ok_or_else(|| Error::usage("--output: missing"))?;
    let inputs: HashSet<_> = source.stack.files().iter().filter_map(|f| f.canonicalize().ok()).collect();
    for &slice in &scan.slices {
        let path = target.path_of(slice);
        if path.canonicalize().is_ok_and(|p| inputs.contains(&p)) {
            return Err(Error::output(&path, "--output: is a file of the input; choose another --output"));
        }
    }
    let roi = scan.geometry.roi;
    let encoding = |range| Encoding { dtype: job.dtype, range };
    let integer = matches!(job.dtype, Dtype::U8 | Dtype::U16);
    let fixed = match (integer, job.scaling) {
        (false, _) => None,
        (true, Scaling::Fixed(low, high)) => Some((low, high)),
        // a stand-in until the values are known
        (true, Scaling::Percentile(..)) => Some((0.0, 1.0)),
    };
    let mut writer = SliceWriter::create(
        target.clone(),
        roi.width,
        roi.height,
        encoding(fixed),
        &scan.slices,
        job.overwrite,
        SOFTWARE,
    )?;
    // their directories may be the one just made
    for (path, flag) in [(&job.report, "--report"), (&job.preview, "--preview")] {
        if let Some(path) = path
            && let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir())
        {
            return Err(Error::output(path, format!("{flag}: there is no directory {}", parent.display())));
        }
    }

    let Prepared { session, plan, self_test } = open_device(job, scan, &reporter)?;
    reporter.detail(plan.describe(job, scan, &session.facts).trim_end());
    let facts = session.facts.clone();
    let mut engine = Engine::new(
        session,
        &Setup {
            spec: &plan.spec,
            geometry: &scan.geometry,
            filter: job.filter,
            cutoff: job.cutoff,
            padding: job.padding,
            rows: plan.rows,
            chunk: plan.chunk,
            cut: plan.cut,
        },
    )?;
    reporter.detail(&format!("kernel uses     {}", engine.resources));
    if let Some(note) = &engine.note {
        reporter.note(&format!("note: {note}"));
    }
    let finish = Finish::new(job, scan);
    if let (true, Scaling::Percentile(low, high)) = (integer, job.scaling) {
        let range = percentile_range(&source, &mut engine, &finish, low, high)?;
        reporter.note(&format!("percentiles {low} and {high} of sampled slices: {} and {}", range.0, range.1));
        writer = writer.with_range(range)?;
        source.correction.clamped.reset();
        engine.seconds = DeviceSeconds::default();
    }

    let updates = roi.pixels() as f64 * scan.geometry.projections() as f64;
    let mut progress = reporter.progress(scan.slices.len(), updates);
    let outcome =
        stages(job, &source, &mut engine, writer, &finish, plan.chunk, cancelled, &mut |n| progress.advance(n));
    progress.finish();
    let done = outcome?;
    // the preview reads a sinogram once more, which must not count
    let clamped = source.correction.clamped.counts();
    if let Some(path) = &job.preview {
        preview(path, &source, &done)?;
    }
    let summary = Summary {
        slices: scan.slices.len(),
        seconds: start.elapsed().as_secs_f64(),
        updates: updates * scan.slices.len() as f64,
        device: engine.seconds,
        read: done.read,
        write: done.write,
        clamped,
        clipped: done.clipped,
    };
    tell(&summary, &reporter, &facts.name, job);
    if let Some(path) = &job.report {
        let report = json!({
            "run": job.resolved,
            "version": env!("CARGO_PKG_VERSION"),
            "device": facts.name,
            "platform": facts.platform,
            "driver": facts.driver,
            "profile": plan.profile.name,
            "profile_reason": plan.profile_reason,
            "kernels": [{
                "name": engine.source.name,
                "key": engine.source.key,
                "options": engine.source.options,
                "uses": engine.resources,
            }],
            "self_test": self_test,
            "slices": summary.slices,
            "projection_parts": plan.cut.parts(&scan.geometry).count(),
            "slice_bands": plan.cut.bands(roi).count(),
            "seconds": summary.seconds,
            "stages": {
                "read": summary.read,
                "upload": summary.device.upload,
                "filter": summary.device.filter,
                "back_projection": summary.device.back_projection,
                "download": summary.device.download,
                "write": summary.write,
            },
            "gu_per_s": rate(summary.updates, summary.device.back_projection),
            "total_gu_per_s": rate(summary.updates, summary.seconds),
            "clamped": summary.clamped.total(),
            "clamped_by_reason": summary.clamped,
            "clipped": summary.clipped,
            "notes": plan.notes,
        });
        std::fs::write(path, format!("{report:#}\n")).map_err(|e| Error::output(path, format!("--report: {e}")))?;
    }
    Ok(())
}

/// 10^9 updates a second; 0 where no time is known.
fn rate(updates: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { updates / seconds * 1e-9 } else { 0.0 }
}

/// The summary for people.
fn tell(summary: &Summary, reporter: &Reporter, device: &str, job: &Job) {
    let c = summary.clamped;
    if c.total() > 0 {
        reporter.note(&format!(
            "warning: {} values were replaced: {} transmissions at or below 0, {} where the flat is not above the dark, {} not finite",
            c.total(),
            c.non_positive,
            c.dead,
            c.non_finite
        ));
    }
    if summary.clipped > 0 {
        let what = match job.dtype {
            Dtype::F16 => "are too large for f16 and were written as infinite; use --dtype f32",
            _ => "are outside the range and were clipped",
        };
        reporter.note(&format!("note: {} pixels {what}", summary.clipped));
    }
    let d = summary.device;
    reporter.detail(&format!(
        "busy: read {:.2} s, upload {:.2} s, filter {:.2} s, back projection {:.2} s, download {:.2} s, write {:.2} s",
        summary.read, d.upload, d.filter, d.back_projection, d.download, summary.write
    ));
    reporter.note(&format!(
        "{} slices in {:.2} s on {device}: back projection {:.2} GU/s, all together {:.2} GU/s",
        summary.slices,
        summary.seconds,
        rate(summary.updates, d.back_projection),
        rate(summary.updates, summary.seconds),
    ));
}

/// What the stages hand back.
struct Done {
    read: f64,
    write: f64,
    clipped: u64,
    /// The middle slice, for a preview.
    middle: Vec<f32>,
}

/// A chunk between two stages: positions in the scan's list of slices, and values.
struct Chunk {
    which: Range<usize>,
    values: Vec<f32>,
}

/// Runs reader, device and writer side by side.
#[allow(clippy::too_many_arguments)]
fn stages(
    job: &Job,
    source: &Source,
    engine: &mut Engine,
    writer: SliceWriter,
    finish: &Finish,
    chunk: usize,
    cancelled: &AtomicBool,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Done> {
    let (to_device, from_reader) = bounded::<Chunk>(1);
    let (to_writer, from_device) = bounded::<Chunk>(1);
    // memory of chunks that are done goes back to where it is filled
    let (read_again, spare_sinograms) = unbounded();
    let (fill_again, spare_slices) = unbounded();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read_stage(source, chunk, cancelled, to_device, spare_sinograms));
        let writing = scope.spawn(move || write_stage(job, source, writer, finish, from_device, fill_again, advance));
        let computed = device_stage(source, engine, from_reader, to_writer, read_again, spare_slices);
        let read = reader.join().unwrap_or_else(|_| Err(crashed("reader")));
        let written = writing.join().unwrap_or_else(|_| Err(crashed("writer")));
        // the first cause counts: a stage whose neighbour is gone just ends
        let (read, mut done) = match (read, computed, written) {
            (Err(e), _, _) | (_, Err(e), _) | (_, _, Err(e)) => return Err(e),
            (Ok(read), Ok(()), Ok(done)) => (read, done),
        };
        done.read = read;
        Ok(done)
    })
}

fn crashed(stage: &str) -> Error {
    Error::Device(format!("the {stage} stopped unexpectedly; please report this"))
}

/// Reads chunk after chunk; the seconds that took.
fn read_stage(
    source: &Source,
    chunk: usize,
    cancelled: &AtomicBool,
    out: Sender<Chunk>,
    spare: Receiver<Vec<f32>>,
) -> Result<f64> {
    let slices = &source.scan.slices;
    let mut busy = 0.0;
    let mut band = Vec::new();
    for which in pieces(slices.len(), chunk) {
        if cancelled.load(Relaxed) {
            return Err(Error::Interrupted(
                "interrupted: every slice that is there is whole; run again with --overwrite to do them all".into(),
            ));
        }
        let start = Instant::now();
        let mut values = spare.try_recv().unwrap_or_default();
        source.read_into(&slices[which.clone()], &mut band, &mut values)?;
        busy += start.elapsed().as_secs_f64();
        if out.send(Chunk { which, values }).is_err() {
            break;
        }
    }
    Ok(busy)
}

fn device_stage(
    source: &Source,
    engine: &mut Engine,
    input: Receiver<Chunk>,
    out: Sender<Chunk>,
    done: Sender<Vec<f32>>,
    spare: Receiver<Vec<f32>>,
) -> Result<()> {
    let pixels = source.scan.geometry.roi.pixels();
    for chunk in input {
        let mut values = spare.try_recv().unwrap_or_default();
        values.resize(chunk.which.len() * pixels, 0.0);
        engine.reconstruct(&chunk.values, &mut values)?;
        // the reader may have read all
        let _ = done.send(chunk.values);
        if out.send(Chunk { which: chunk.which, values }).is_err() {
            break;
        }
    }
    Ok(())
}

/// Writes chunk after chunk.
fn write_stage(
    job: &Job,
    source: &Source,
    mut writer: SliceWriter,
    finish: &Finish,
    input: Receiver<Chunk>,
    spare: Sender<Vec<f32>>,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Done> {
    let scan = &source.scan;
    let pixels = scan.geometry.roi.pixels();
    let middle = scan.slices.len() / 2;
    let mut kept = Vec::new();
    let mut busy = 0.0;
    let mut written = 0;
    for mut chunk in input {
        let start = Instant::now();
        chunk.values.par_chunks_mut(pixels).for_each(|slice| finish.apply(scan, slice));
        let slices: Vec<_> = chunk.which.clone().map(|at| scan.slices[at]).zip(chunk.values.chunks(pixels)).collect();
        writer.write_all(&slices)?;
        if chunk.which.contains(&middle) && job.preview.is_some() {
            kept = slices[middle - chunk.which.start].1.to_vec();
        }
        busy += start.elapsed().as_secs_f64();
        written += chunk.which.len();
        advance(chunk.which.len());
        // who made it may be gone
        let _ = spare.send(chunk.values);
    }
    let clipped = writer.clamped();
    if written == scan.slices.len() {
        writer.finish()?;
    }
    Ok(Done { read: 0.0, write: busy, clipped, middle: kept })
}

/// Slices that the percentiles are taken from.
const SAMPLED_SLICES: usize = 5;

/// The values at two percentiles of some slices spread over the whole run; they do not depend on chunks.
fn percentile_range(source: &Source, engine: &mut Engine, finish: &Finish, low: f64, high: f64) -> Result<(f32, f32)> {
    let slices = &source.scan.slices;
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

fn preview(path: &Path, source: &Source, done: &Done) -> Result<()> {
    let scan = &source.scan;
    let middle = scan.slices[scan.slices.len() / 2];
    let sinogram = source.read(&[middle])?;
    let roi = scan.geometry.roi;
    write_preview(
        path,
        &[
            Panel { title: &format!("slice {middle}"), width: roi.width, height: roi.height, data: &done.middle },
            Panel {
                title: "its sinogram",
                width: scan.geometry.bins,
                height: scan.geometry.projections(),
                data: &sinogram,
            },
        ],
    )
}
