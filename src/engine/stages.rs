//! The concurrent stages of a run: one reader; for every device one thread each that uploads, corrects sinograms if the
//! device does that, computes and downloads; and writers.
//!
//! Memory is bounded whatever the size of the stack: every device has a fixed number of buffers, which are reused. The
//! reader fills the free buffers of the device that a chunk goes to; the writer gives back what it has written. A stage
//! whose neighbour has ended stops without an error; the first stage that failed reports it.

use super::devices::ReadyDevice;
use super::errors::LostDeviceWarning;
use super::run::Run;
use super::seconds::DeviceSeconds;
use super::threads::threads;
use super::transfer::{DeviceChannels, LeaveOnDrop, ReadPiece, transfer_of};
use super::work::Work;
use super::writing::{Written, write};
use crate::device::HostMemory;
use crate::error::Result;
use crate::feed::{DeviceCounts, FeedPlan, Piece};
use crate::report::Stage;
use crate::sink::SliceWriter;
use crate::steps::Counts;
use crate::threads::{joined, panicked};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::{Mutex, PoisonError};
use std::thread::scope;
use std::time::Instant;

/// The results of all stages.
pub struct Done {
    /// Seconds from the start of the stages to their end.
    pub seconds: f64,
    /// Seconds that the reader was busy.
    pub read: f64,
    /// Seconds that the busiest writer was busy.
    pub write: f64,
    pub clipped: u64,
    /// Values of the slice that was to be kept; empty if none was.
    pub kept: Vec<f32>,
    /// Shares of the devices.
    pub devices: Vec<DeviceShare>,
}

/// A device's share of a run.
#[derive(Clone, Copy, Debug)]
pub struct DeviceShare {
    /// Number of slices that it computed.
    pub slices: usize,
    /// Seconds that the device was busy, by stage.
    pub seconds: DeviceSeconds,
    /// True if it stopped before the end.
    pub failed: bool,
}

/// The reader's side of a device.
struct DeviceInput {
    pieces: Sender<ReadPiece>,
    free: Receiver<HostMemory>,
    wants: FeedPlan,
    /// Block of rows that was read last for the device.
    block: Option<usize>,
}

/// Runs all stages to the end, or to the first error that no other device can make good.
///
/// Adds the counts of values that were replaced in what was read to `counts`, whatever the end.
pub fn run_stages(
    run: Run,
    devices: &mut [ReadyDevice],
    writer: SliceWriter,
    counts: &mut Counts,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Done> {
    let started = Instant::now();
    let scan = &run.source.scan;
    let paces: Vec<_> = devices.iter().map(|device| device.pace(run.recipe, scan)).collect();
    let work = &Work::new(blocks_of(run.slices, devices), &paces);
    let on_devices = &Mutex::new(DeviceCounts::default());
    let done = scope(|scope| {
        let (out, computed) = unbounded();
        let (mut inputs, mut memory_back, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for (number, ready) in devices.iter_mut().enumerate() {
            let (to_device, pieces) = unbounded();
            let (free_sinograms, free) = unbounded();
            let free_slices = unbounded();
            let pieces_of = ready.plan.pieces;
            ready.engine.set_range(writer.encoding().range);
            inputs.push(DeviceInput { pieces: to_device, free, wants: ready.engine.wants, block: None });
            memory_back.push(free_slices.0.clone());
            let computed = out.clone();
            let channels = DeviceChannels {
                device: number,
                work,
                run,
                counts: on_devices,
                pieces_of,
                pieces,
                free_sinograms,
                computed,
                free_slices,
            };
            threads.push(scope.spawn(move || run_device(run, ready, channels)));
        }
        drop(out);
        let reading = scope.spawn(|| read(run, work, inputs, counts));
        let writing = scope.spawn(move || write(run, writer, computed, memory_back, advance));
        let read = joined(reading, "reader");
        let devices: Vec<_> = threads.into_iter().map(|thread| joined(thread, "device")).collect();
        let written = joined(writing, "writer");
        let (read, Written { seconds: write, clipped, kept }) = match (read, written) {
            (Err(error), _) | (_, Err(error)) => return Err(error),
            (Ok(read), Ok(written)) => (read, written),
        };
        if !work.complete() {
            let stopped = || if run.is_cancelled() { run.target.interrupted() } else { panicked("run") };
            return Err(devices.into_iter().find_map(Result::err).unwrap_or_else(stopped));
        }
        let seconds = started.elapsed().as_secs_f64();
        let share = |(slices, busy): (usize, Result<DeviceSeconds>)| {
            let failed = busy.is_err();
            DeviceShare { slices, seconds: busy.unwrap_or_default(), failed }
        };
        let devices = work.shares().into_iter().zip(devices).map(share).collect();
        Ok(Done { seconds, read, write, clipped, kept, devices })
    });
    *counts += std::mem::take(&mut on_devices.lock().unwrap_or_else(PoisonError::into_inner).all);
    done
}

/// Returns where blocks of slices end whose rows several devices would correct as a whole each; all slices are one
/// block if there are none.
fn blocks_of(slices: &[usize], devices: &[ReadyDevice]) -> Vec<usize> {
    if let Some(plan) = devices.iter().filter_map(|device| device.plan.lamino).min_by_key(|plan| plan.rows) {
        let chunk = devices.iter().map(|device| device.plan.chunk).min().unwrap_or(1);
        return plan.blocks(slices, chunk);
    }
    let shape = devices.iter().find_map(|device| device.plan.kept_blocks()).filter(|_| devices.len() > 1);
    let rows = shape.map_or(usize::MAX, |shape| shape.blocks.rows);
    let blocks = slices.chunk_by(|a, b| a / rows == b / rows);
    blocks
        .scan(0, |end, block| {
            Some({
                *end += block.len();
                *end
            })
        })
        .collect()
}

/// Reads chunk after chunk for whichever device has a free buffer. Returns the seconds that reading took.
fn read(run: Run, work: &Work, inputs: Vec<DeviceInput>, counts: &mut Counts) -> Result<f64> {
    threads("read")?.install(|| read_chunks(run, work, inputs, counts))
}

fn read_chunks(run: Run, work: &Work, mut inputs: Vec<DeviceInput>, counts: &mut Counts) -> Result<f64> {
    let Run { source, slices, .. } = run;
    let (scan, mut busy) = (source.rows(), 0.0);
    while let Some((device, chunk)) = work.next() {
        let DeviceInput { pieces, free, wants, block } = &mut inputs[device];
        for piece in wants.pieces(&scan, slices, &chunk, block) {
            if run.is_cancelled() {
                return Err(run.target.interrupted());
            }
            let mut values = None;
            if !matches!(piece, Piece::OfBlock(_)) {
                let Ok(mut memory) = free.recv() else { break };
                let start = Instant::now();
                *counts += wants.read(&source.host, &scan, slices, &piece, &mut memory)?;
                busy += start.elapsed().as_secs_f64();
                run.clock.add(Stage::Reading, start.elapsed());
                values = Some(memory);
            }
            if pieces.send(ReadPiece { chunk: chunk.clone(), piece, values }).is_err() {
                break;
            }
        }
    }
    Ok(busy)
}

/// Keeps a device busy for as long as there is work.
fn run_device(run: Run, ready: &mut ReadyDevice, channels: DeviceChannels) -> Result<DeviceSeconds> {
    let work = channels.work;
    let leave = LeaveOnDrop(work, channels.device);
    let engine = &mut ready.engine;
    engine.begin();
    let result = threads("compute").and_then(|pool| pool.install(|| transfer_of(engine).run(engine, channels)));
    drop(leave);
    // the others may have done it already, and left
    if let Err(error) = &result
        && (work.has_devices() || work.complete())
    {
        let message = LostDeviceWarning::Failed { label: ready.label.clone(), error: error.to_string() };
        run.reporter.note(&format!("warning: {message}"));
    }
    result
}
