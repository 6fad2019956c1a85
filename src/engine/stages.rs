//! The concurrent stages of a run: one reader; for every device one thread each that uploads, corrects sinograms if it does that,
//! computes and downloads; and writers.
//!
//! Memory is bounded whatever the size of the stack: every device has a fixed number of buffers, which are reused. The
//! reader fills the free buffers of the device that a chunk goes to; the writer gives back what it has written. A stage
//! whose neighbour has ended stops without an error; the first stage that failed reports it.

use super::chunks::DeviceSeconds;
use super::devices::{ReadyDevice, panicked};
use super::finish::Finish;
use super::source::Source;
use super::transfer::{ComputedSlices, DeviceChannels, FoundInSlices, LeaveOnDrop, ReadPiece, transfer_of};
use super::work::Work;
use crate::device::HostMemory;
use crate::error::{Error, Result};
use crate::feed::{DeviceCounts, FeedPlan, Piece};
use crate::histogram::CountedSlice;
use crate::plan::WRITTEN_PIECES;
use crate::recipe::Recipe;
use crate::report::{Reporter, Stage, StageClock};
use crate::sink::{Pixels, SliceWriter, Target};
use crate::steps::Counts;
use crossbeam_channel::{Receiver, Sender, select, unbounded};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{ScopedJoinHandle, scope};
use std::time::Instant;

/// What all stages see.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub recipe: &'a Recipe,
    pub source: &'a Source,
    /// Numbers of the slices to compute, ascending.
    pub slices: &'a [usize],
    pub finish: &'a Finish,
    pub reporter: &'a Reporter,
    /// Checked before a piece is read and before a chunk is computed; slices that are computed are still written.
    pub cancelled: &'a AtomicBool,
    pub target: &'a Target,
    /// The slice whose values are handed back, if one is wanted.
    pub keep: Option<usize>,
    /// Sees every slice before it is written.
    pub observer: Option<&'a Observer<'a>>,
    /// For how long stages were busy, while they are.
    pub clock: &'a StageClock,
}

impl Run<'_> {
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}

/// Sees the number of a slice and what is known of it; from any thread, in any order.
pub type Observer<'a> = dyn Fn(usize, ObservedSlice) + Sync + 'a;

/// A slice before it is written.
#[derive(Clone, Copy)]
pub struct ObservedSlice<'a> {
    /// The finished values; none if a device encodes slices.
    pub values: Option<&'a [f32]>,
    /// What a device counted, if it did.
    pub counted: Option<&'a CountedSlice>,
}

/// What the stages hand back.
pub struct Done {
    /// Seconds that all stages together took.
    pub seconds: f64,
    /// Seconds that the reader and the writer were busy.
    pub read: f64,
    pub write: f64,
    pub clipped: u64,
    /// The slice that was to be kept; empty if none was.
    pub kept: Vec<f32>,
    /// What every device did.
    pub devices: Vec<DeviceShare>,
}

/// What a device did of a run.
#[derive(Clone, Copy, Debug)]
pub struct DeviceShare {
    /// Number of slices that it computed.
    pub slices: usize,
    /// That it was busy.
    pub seconds: DeviceSeconds,
    /// Whether it stopped before the end.
    pub failed: bool,
}

/// The reader's side of a device.
struct DeviceInput {
    pieces: Sender<ReadPiece>,
    free: Receiver<HostMemory>,
    wants: FeedPlan,
    /// The block of rows that was read for it last.
    block: Option<usize>,
}

/// Runs all stages to the end, or to the first error that nobody can make good. What was replaced in what is read is added
/// to `counts`, whatever the end.
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
        let (read, mut done) = match (read, written) {
            (Err(error), _) | (_, Err(error)) => return Err(error),
            (Ok(read), Ok(done)) => (read, done),
        };
        if !work.complete() {
            let stopped = || if run.is_cancelled() { run.target.interrupted() } else { panicked("run") };
            return Err(devices.into_iter().find_map(Result::err).unwrap_or_else(stopped));
        }
        done.read = read;
        done.seconds = started.elapsed().as_secs_f64();
        let share = |(slices, busy): (usize, Result<DeviceSeconds>)| {
            let failed = busy.is_err();
            DeviceShare { slices, seconds: busy.unwrap_or_default(), failed }
        };
        done.devices = work.shares().into_iter().zip(devices).map(share).collect();
        Ok(done)
    });
    *counts += std::mem::take(&mut on_devices.lock().unwrap_or_else(PoisonError::into_inner).all);
    done
}

/// Where blocks of slices end whose rows several devices would correct as a whole each; if none do, all slices are one.
fn blocks_of(slices: &[usize], devices: &[ReadyDevice]) -> Vec<usize> {
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

pub(super) fn joined<T>(thread: ScopedJoinHandle<Result<T>>, stage: &str) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(panicked(stage)))
}

/// Reads chunk after chunk for whichever device has a free buffer; the seconds that took.
fn read(run: Run, work: &Work, inputs: Vec<DeviceInput>, counts: &mut Counts) -> Result<f64> {
    threads("read")?.install(|| read_chunks(run, work, inputs, counts))
}

/// Threads of a stage of its own: else stages wait for each other's tasks, such as writing a whole slice.
pub(super) fn threads(what: &str) -> Result<ThreadPool> {
    ThreadPoolBuilder::new().build().map_err(|e| {
        Error::Memory(format!(
            "cannot start the threads that {what}: {e}; allow more threads (ulimit -u), or fewer with RAYON_NUM_THREADS"
        ))
    })
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
    engine.loaded = None;
    let result = threads("compute").and_then(|pool| pool.install(|| transfer_of(engine).run(engine, channels)));
    drop(leave);
    // the others may have done it already, and left
    if let Err(error) = &result
        && (work.has_devices() || work.complete())
    {
        run.reporter.note(&format!("warning: {} failed, other devices take over its slices: {error}", ready.label));
    }
    result
}

/// Threads that write pieces at the same time, so that none waits for the last slice of a piece.
pub const WRITERS: usize = WRITTEN_PIECES - 1;

/// Finishes and writes slices as they come.
fn write(
    run: Run,
    writer: SliceWriter,
    computed: Receiver<ComputedSlices>,
    memory_back: Vec<Sender<HostMemory>>,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Done> {
    let (encoding, pixels) = (writer.encoding(), run.source.scan.geometry.roi.pixels());
    let (going_on, stopped) = unbounded();
    let progress = Mutex::new(WriteProgress { kept: Vec::new(), written: 0, advance, going_on: Some(going_on) });
    let delivered = Delivered { run, writer: &writer, pixels, slice_bytes: pixels * encoding.dtype.bytes(), progress };
    let busy: Result<Vec<f64>> = scope(|scope| {
        let one = || {
            let _stop = StopOnDrop(&delivered);
            delivered.write_all(&computed, &stopped, &memory_back)
        };
        let threads: Vec<_> = (0..WRITERS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().map(|thread| joined(thread, "writer")).collect()
    });
    let busy = busy?.into_iter().fold(0.0, f64::max);
    let WriteProgress { kept, written, .. } = delivered.progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    let clipped = writer.clamped();
    if written == run.slices.len() {
        writer.finish()?;
    }
    Ok(Done { seconds: 0.0, read: 0.0, write: busy, clipped, kept, devices: Vec::new() })
}

/// Slices that devices have computed, on their way to files.
struct Delivered<'a> {
    run: Run<'a>,
    writer: &'a SliceWriter,
    /// Of a slice.
    pixels: usize,
    /// Of a slice as it is written.
    slice_bytes: usize,
    progress: Mutex<WriteProgress<'a>>,
}

/// What was written.
struct WriteProgress<'a> {
    /// The slice that is handed back.
    kept: Vec<f32>,
    written: usize,
    advance: &'a mut (dyn FnMut(usize) + Send),
    /// Until a thread ends: the others stop after it, as there is nothing left to write or something failed.
    going_on: Option<Sender<()>>,
}

/// Stops all threads that write when one ends, whatever the reason.
struct StopOnDrop<'a, 'b>(&'b Delivered<'a>);

impl Drop for StopOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.progress().going_on = None;
    }
}

impl<'a> Delivered<'a> {
    fn progress(&self) -> MutexGuard<'_, WriteProgress<'a>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes slices until no more come, or another thread failed; the seconds that took.
    fn write_all(
        &self,
        computed: &Receiver<ComputedSlices>,
        stopped: &Receiver<()>,
        memory_back: &[Sender<HostMemory>],
    ) -> Result<f64> {
        let mut busy = 0.0;
        let more = || select! { recv(computed) -> slices => slices.ok(), recv(stopped) -> _ => None };
        while let Some(ComputedSlices { device, positions, mut values, found }) = more() {
            let start = Instant::now();
            let slices = &mut values[..self.length(positions.len(), found.clamped.is_some())];
            self.finish(&positions, slices, &found);
            self.write(positions, slices, found.clamped.as_deref())?;
            busy += start.elapsed().as_secs_f64();
            self.run.clock.add(Stage::Writing, start.elapsed());
            // its device may have ended
            let _ = memory_back[device].send(values);
        }
        Ok(busy)
    }

    /// Values of the host's memory that some slices fill, as values or as samples.
    fn length(&self, slices: usize, encoded: bool) -> usize {
        if encoded { (slices * self.slice_bytes).div_ceil(4) } else { slices * self.pixels }
    }

    /// Finishes values, unless a device encoded them, and shows slices to whoever observes them.
    fn finish(&self, positions: &Range<usize>, values: &mut [f32], found: &FoundInSlices) {
        let Run { source, finish, observer, slices, .. } = self.run;
        let show = |place: usize, values: Option<&[f32]>| {
            let counted = found.counted.as_ref().map(|counted| &counted[place]);
            if let Some(observe) = observer {
                observe(slices[positions.start + place], ObservedSlice { values, counted });
            }
        };
        match found.clamped {
            Some(_) => (0..positions.len()).for_each(|place| show(place, None)),
            None => values.par_chunks_mut(self.pixels).enumerate().for_each(|(place, values)| {
                if !found.finished {
                    finish.apply(source.scan.geometry.roi, values);
                }
                show(place, Some(values));
            }),
        }
    }

    /// Writes slices: finished values, or samples of which some were clamped.
    fn write(&self, positions: Range<usize>, values: &[f32], clamped: Option<&[u32]>) -> Result<()> {
        let numbers = &self.run.slices[positions.clone()];
        let slices: Vec<_> = match clamped {
            None => numbers.iter().copied().zip(values.chunks(self.pixels).map(Pixels::Values)).collect(),
            Some(clamped) => {
                let samples = bytemuck::cast_slice(values).chunks(self.slice_bytes).zip(clamped);
                let samples = samples.map(|(samples, &clamped)| Pixels::Samples(samples, clamped.into()));
                numbers.iter().copied().zip(samples).collect()
            }
        };
        self.writer.write_all(&slices)?;
        let mut progress = self.progress();
        if let Some(place) = numbers.iter().position(|slice| Some(*slice) == self.run.keep) {
            progress.kept = values[place * self.pixels..(place + 1) * self.pixels].to_vec();
        }
        progress.written += positions.len();
        (progress.advance)(positions.len());
        Ok(())
    }
}
