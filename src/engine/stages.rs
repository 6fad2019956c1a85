//! The stages of a run, side by side: one reader, for every device a thread each that uploads, computes and downloads, and
//! one writer.
//!
//! Memory is bounded whatever the stack's size: every device has so many buffers of its own, which go round. The reader
//! fills the free buffers of the device that a chunk goes to; the writer gives back what it has written. A stage whose
//! neighbour is gone ends quietly; the first that failed has the error.

use super::chunks::DeviceSeconds;
use super::devices::{ReadyDevice, panicked};
use super::finish::Finish;
use super::source::Source;
use super::transfer::{ComputedSlices, DeviceChannels, LeaveOnDrop, Piece, transfer_of};
use super::work::Work;
use crate::device::HostMemory;
use crate::error::Result;
use crate::recipe::Recipe;
use crate::report::Reporter;
use crate::sink::{SliceWriter, Target};
use crate::steps::Counts;
use crossbeam_channel::{Receiver, Sender, unbounded};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    /// Looked at before every piece that is read; what is in hand then is still written.
    pub cancelled: &'a AtomicBool,
    /// Slices that may be held back until others before them are done; `None` where their order does not matter.
    pub window: Option<usize>,
    pub target: &'a Target,
    /// The slice whose values are handed back, if one is wanted.
    pub keep: Option<usize>,
    /// Sees every slice before it is written.
    pub observer: Option<&'a Observer<'a>>,
}

/// Sees the number of a slice and its values; from any thread, in any order.
pub type Observer<'a> = dyn Fn(usize, &[f32]) + Sync + 'a;

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
    /// For every device, how many slices it computed, and the seconds that it was busy.
    pub devices: Vec<(usize, DeviceSeconds)>,
}

/// The reader's side of a device.
struct DeviceInput {
    pieces: Sender<Piece>,
    free: Receiver<HostMemory>,
    /// Slices of a piece.
    piece: usize,
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
    let work = &Work::new(run.slices.len(), &paces, run.window);
    scope(|scope| {
        let (out, computed) = unbounded();
        let (mut inputs, mut memory_back, mut threads) = (Vec::new(), Vec::new(), Vec::new());
        for (number, ready) in devices.iter_mut().enumerate() {
            let (to_device, pieces) = unbounded();
            let (free_sinograms, free) = unbounded();
            let free_slices = unbounded();
            let piece = ready.plan.piece;
            inputs.push(DeviceInput { pieces: to_device, free, piece });
            memory_back.push(free_slices.0.clone());
            let computed = out.clone();
            let channels =
                DeviceChannels { device: number, work, piece, pieces, free_sinograms, computed, free_slices };
            threads.push(scope.spawn(move || run_device(run, ready, channels)));
        }
        drop(out);
        let reading = scope.spawn(move || read(run, work, inputs, counts));
        let writing = scope.spawn(move || write(run, writer, computed, memory_back, advance));
        let read = joined(reading, "reader");
        let devices: Vec<_> = threads.into_iter().map(|thread| joined(thread, "device")).collect();
        let written = joined(writing, "writer");
        let (read, mut done) = match (read, written) {
            (Err(error), _) | (_, Err(error)) => return Err(error),
            (Ok(read), Ok(done)) => (read, done),
        };
        if !work.complete() {
            return Err(devices.into_iter().find_map(Result::err).unwrap_or_else(|| panicked("run")));
        }
        done.read = read;
        done.seconds = started.elapsed().as_secs_f64();
        let busy = devices.into_iter().map(Result::unwrap_or_default);
        done.devices = work.shares().into_iter().zip(busy).collect();
        Ok(done)
    })
}

pub(super) fn joined<T>(thread: ScopedJoinHandle<Result<T>>, stage: &str) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(panicked(stage)))
}

/// Reads chunk after chunk for whichever device has a free buffer; the seconds that took.
fn read(run: Run, work: &Work, inputs: Vec<DeviceInput>, counts: &mut Counts) -> Result<f64> {
    let Run { source, .. } = run;
    let mut busy = 0.0;
    while let Some((device, chunk)) = work.next() {
        let input = &inputs[device];
        for part in parts_of(chunk.len(), input.piece) {
            if run.cancelled.load(Relaxed) {
                return Err(run.target.interrupted());
            }
            let positions = chunk.start + part.start..chunk.start + part.end;
            let Ok(mut values) = input.free.recv() else { break };
            let start = Instant::now();
            let into = &mut values[..positions.len() * source.sinogram_len()];
            *counts += source.read_into(&run.slices[positions.clone()], into)?;
            busy += start.elapsed().as_secs_f64();
            if input.pieces.send(Piece { chunk: chunk.clone(), positions, values }).is_err() {
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
    let result = transfer_of(&ready.engine).run(&mut ready.engine, channels);
    drop(leave);
    // the others may have done it already, and left
    if let Err(error) = &result
        && (work.has_devices() || work.complete())
    {
        run.reporter.note(&format!("warning: {} failed, others do what it had in hand: {error}", ready.label));
    }
    result
}

/// The contiguous parts of at most `most` of a list of slices.
pub(super) fn parts_of(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(most.max(1)).map(move |start| start..(start + most.max(1)).min(count))
}

/// Finishes and writes slices as they come, or in order where they go into one file.
fn write(
    run: Run,
    mut writer: SliceWriter,
    computed: Receiver<ComputedSlices>,
    memory_back: Vec<Sender<HostMemory>>,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Done> {
    let scan = &run.source.scan;
    let pixels = scan.geometry.roi.pixels();
    let mut kept = Vec::new();
    let mut busy = 0.0;
    let mut written = 0;
    let mut put = |positions: Range<usize>, values: &[f32]| -> Result<()> {
        let slices: Vec<_> = positions.clone().map(|at| run.slices[at]).zip(values.chunks(pixels)).collect();
        writer.write_all(&slices)?;
        if let Some((_, values)) = slices.iter().find(|(slice, _)| Some(*slice) == run.keep) {
            kept = values.to_vec();
        }
        written += positions.len();
        advance(positions.len());
        Ok(())
    };
    // slices that came before their turn
    let mut held: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
    let mut next = 0;
    for ComputedSlices { device, positions, mut values } in computed {
        let start = Instant::now();
        let slices = &mut values[..positions.len() * pixels];
        slices.par_chunks_mut(pixels).zip(&run.slices[positions.clone()]).for_each(|(values, &slice)| {
            run.finish.apply(scan, values);
            if let Some(observe) = run.observer {
                observe(slice, values);
            }
        });
        if run.window.is_none() {
            put(positions, slices)?;
        } else if positions.start == next {
            next = positions.end;
            put(positions, slices)?;
            while let Some(slices) = held.remove(&next) {
                let positions = next..next + slices.len() / pixels;
                next = positions.end;
                put(positions, &slices)?;
            }
        } else {
            held.insert(positions.start, slices.to_vec());
        }
        busy += start.elapsed().as_secs_f64();
        // its device may have ended
        let _ = memory_back[device].send(values);
    }
    let clipped = writer.clamped();
    if written == run.slices.len() {
        writer.finish()?;
    }
    Ok(Done { seconds: 0.0, read: 0.0, write: busy, clipped, kept, devices: Vec::new() })
}
