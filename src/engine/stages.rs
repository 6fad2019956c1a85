//! The stages of a run, side by side: one reader, for every device a thread each that uploads, computes and downloads, and
//! one writer.
//!
//! Memory is bounded whatever the stack's size: every device has so many buffers of its own, which go round. The reader
//! fills the free buffers of the device that a chunk goes to; the writer gives back what it has written. A stage whose
//! neighbour is gone ends quietly; the first that failed has the error.

use super::chunks::{DeviceSeconds, Engine, Kernels, Set, Shape};
use super::devices::{ReadyDevice, panicked};
use super::source::{Finish, Source};
use super::work::Work;
use crate::device::{HostMemory, Session, lost};
use crate::error::{Error, Result};
use crate::plan::PIECES;
use crate::recipe::Recipe;
use crate::report::Reporter;
use crate::sink::{SliceWriter, Target};
use crate::steps::Counts;
use crossbeam_channel::{Receiver, Sender, unbounded};
use opencl3::memory::Buffer;
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
    /// Sees every slice, with its number, before it is written; from any thread, in any order.
    pub observer: Option<&'a (dyn Fn(usize, &[f32]) + Sync)>,
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
    /// For every device, how many slices it computed, and the seconds that it was busy.
    pub devices: Vec<(usize, DeviceSeconds)>,
}

/// Part of a chunk: positions in the scan's list of slices, and sinograms.
struct Piece {
    chunk: Range<usize>,
    which: Range<usize>,
    values: HostMemory,
}

/// Slices from a device.
struct Slices {
    device: usize,
    which: Range<usize>,
    values: HostMemory,
}

/// A chunk on the device: positions in the scan's list, and sinograms or slices.
type Chunk = (Range<usize>, Buffer<f32>);

/// The reader's side of a device.
struct Port {
    feed: Sender<Piece>,
    free: Receiver<HostMemory>,
    /// Slices of a piece.
    piece: usize,
}

/// A device's side of the same, and of the writer.
struct Line<'a> {
    place: usize,
    piece: usize,
    work: &'a Work,
    fed: Receiver<Piece>,
    free_sinograms: Sender<HostMemory>,
    free_slices: (Sender<HostMemory>, Receiver<HostMemory>),
    out: Sender<Slices>,
}

/// A device is out of the run when this is dropped, whatever the reason.
struct Presence<'a>(&'a Work, usize);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// Runs all stages to the end, or to the first error that nobody can make good. What was replaced in what is read is added
/// to `counts`, whatever the end.
pub fn run_stages(
    run: Run,
    members: &mut [ReadyDevice],
    writer: SliceWriter,
    counts: &mut Counts,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Done> {
    let started = Instant::now();
    let scan = &run.source.scan;
    let paces: Vec<_> = members.iter().map(|m| m.pace(run.recipe, scan)).collect();
    let work = &Work::new(run.slices.len(), &paces, run.window);
    scope(|scope| {
        let (out, computed) = unbounded();
        let (mut ports, mut back, mut crew) = (Vec::new(), Vec::new(), Vec::new());
        for (place, member) in members.iter_mut().enumerate() {
            let (feed, fed) = unbounded();
            let (free_sinograms, free) = unbounded();
            let free_slices = unbounded();
            let piece = member.plan.piece;
            ports.push(Port { feed, free, piece });
            back.push(free_slices.0.clone());
            let line = Line { place, piece, work, fed, free_sinograms, free_slices, out: out.clone() };
            crew.push(scope.spawn(move || attend(run, &mut member.engine, &member.label, line)));
        }
        drop(out);
        let reading = scope.spawn(move || read(run, work, ports, counts));
        let writing = scope.spawn(move || write(run, writer, computed, back, advance));
        let read = joined(reading, "reader");
        let devices: Vec<_> = crew.into_iter().map(|thread| joined(thread, "device")).collect();
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

fn joined<T>(thread: ScopedJoinHandle<Result<T>>, stage: &str) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(panicked(stage)))
}

/// Reads chunk after chunk for whichever device has room; the seconds that took.
fn read(run: Run, work: &Work, ports: Vec<Port>, counts: &mut Counts) -> Result<f64> {
    let Run { source, .. } = run;
    let mut busy = 0.0;
    while let Some((device, chunk)) = work.next() {
        let port = &ports[device];
        for part in pieces(chunk.len(), port.piece) {
            if run.cancelled.load(Relaxed) {
                return Err(run.target.interrupted());
            }
            let which = chunk.start + part.start..chunk.start + part.end;
            let Ok(mut values) = port.free.recv() else { break };
            let start = Instant::now();
            let room = &mut values[..which.len() * source.sinogram_len()];
            *counts += source.read_into(&run.slices[which.clone()], room)?;
            busy += start.elapsed().as_secs_f64();
            if port.feed.send(Piece { chunk: chunk.clone(), which, values }).is_err() {
                break;
            }
        }
    }
    Ok(busy)
}

/// Keeps a device busy for as long as there is work.
fn attend(run: Run, engine: &mut Engine, label: &str, line: Line) -> Result<DeviceSeconds> {
    let presence = Presence(line.work, line.place);
    let result = if engine.is_whole() { device(engine, line) } else { device_in_parts(engine, line) };
    let work = presence.0;
    drop(presence);
    // the others may have done it already, and left
    if let Err(error) = &result
        && (work.manned() || work.complete())
    {
        run.reporter.note(&format!("warning: {label} failed, others do what it had in hand: {error}"));
    }
    result
}

/// Uploads, computes and downloads side by side.
///
/// Where the device computes in the host's memory, the chunk's buffers themselves go round, mapped while the reader or the
/// writer has them.
fn device(engine: &mut Engine, line: Line) -> Result<DeviceSeconds> {
    let Line { place, piece, work, fed, free_sinograms, free_slices: (slices_back, free_slices), out } = line;
    let Engine { session, kernels, sets, shape, .. } = engine;
    let (session, shape) = (&*session, *shape);
    let shared = session.shares_memory();
    let (rows_back, free_rows) = unbounded();
    let (room_back, free_room) = unbounded();
    for Set { rows, slices } in sets.drain(..) {
        // the receivers are here
        if shared {
            let _ = free_sinograms.send(session.map(rows, shape.chunk * shape.in_slice, "sinograms")?);
            let _ = slices_back.send(session.map(slices, shape.chunk * shape.out_slice, "slices")?);
        } else {
            let _ = rows_back.send(rows);
            let _ = room_back.send(slices);
        }
    }
    let (to_compute, uploaded) = unbounded();
    let (to_download, reconstructed) = unbounded();
    scope(|scope| {
        let read_again = free_sinograms.clone();
        let up = scope.spawn(move || {
            if shared {
                // or the reader would wait for what nobody gives back any more
                drop(free_sinograms);
                return hand_over(session, fed, to_compute);
            }
            for _ in 0..PIECES {
                let _ = free_sinograms.send(session.host_memory(piece * shape.in_slice)?);
            }
            upload(session, shape, fed, free_rows, free_sinograms, to_compute)
        });
        let deliver = |which: Range<usize>, values| {
            let sent = out.send(Slices { device: place, which: which.clone(), values }).is_ok();
            match sent {
                true => work.done(place, which),
                // the writer is gone: nobody waits for this device any more
                false => work.leave(place),
            }
            sent
        };
        let write_again = free_slices.clone();
        let down = scope.spawn(move || {
            // nothing is delivered after this thread
            let _presence = Presence(work, place);
            if shared {
                // or the computing stage would, after the writer has failed
                drop(slices_back);
                return take_over(session, shape, reconstructed, deliver);
            }
            for _ in 0..PIECES {
                let _ = slices_back.send(session.host_memory(piece * shape.out_slice)?);
            }
            drop(slices_back);
            download(session, shape, piece, reconstructed, free_slices, room_back, deliver)
        });
        // the reader may have read all, or be gone
        let done = |rows| -> Result<()> {
            let _ = match shared {
                true => read_again.send(session.map(rows, shape.chunk * shape.in_slice, "sinograms")?).is_ok(),
                false => rows_back.send(rows).is_ok(),
            };
            work.ready(place);
            Ok(())
        };
        let room = || match shared {
            true => write_again.recv().ok().map(|slices| session.unmap(slices, "slices")).transpose(),
            false => Ok(free_room.recv().ok()),
        };
        let computed = compute(session, kernels, place, uploaded, room, done, to_download);
        drop((read_again, write_again, rows_back, free_room));
        let (uploading, downloading) = (joined(up, "upload"), joined(down, "download"));
        let (filter, back_projection) = computed?;
        Ok(DeviceSeconds { upload: uploading?, filter, back_projection, download: downloading? })
    })
}

/// Computes chunks that are not on the device as a whole, one after the other: a piece is a chunk.
fn device_in_parts(engine: &mut Engine, line: Line) -> Result<DeviceSeconds> {
    let Line { place, work, fed, free_sinograms, free_slices: (slices_back, free_slices), out, .. } = line;
    let Shape { chunk, in_slice, out_slice } = engine.shape;
    for _ in 0..PIECES {
        // the receivers are here
        let _ = free_sinograms.send(engine.session.host_memory(chunk * in_slice)?);
        let _ = slices_back.send(engine.session.host_memory(chunk * out_slice)?);
    }
    drop(slices_back);
    let mut busy = DeviceSeconds::default();
    for (number, Piece { which, values, .. }) in fed.into_iter().enumerate() {
        if lost(place, number) {
            return Err(Error::Device("lost on purpose".into()));
        }
        let Ok(mut slices) = free_slices.recv() else { break };
        let (from, to) = (&values[..which.len() * in_slice], &mut slices[..which.len() * out_slice]);
        busy = busy + engine.reconstruct(from, to)?;
        // the reader may have read all
        let _ = free_sinograms.send(values);
        work.ready(place);
        if out.send(Slices { device: place, which: which.clone(), values: slices }).is_err() {
            break;
        }
        work.done(place, which);
    }
    Ok(busy)
}

/// The contiguous pieces of at most `most` of a list of slices.
fn pieces(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(most.max(1)).map(move |start| start..(start + most.max(1)).min(count))
}

/// Pieces from the host into chunks on the device.
fn upload(
    session: &Session,
    shape: Shape,
    fed: Receiver<Piece>,
    free: Receiver<Buffer<f32>>,
    done: Sender<HostMemory>,
    out: Sender<Chunk>,
) -> Result<f64> {
    let mut busy = 0.0;
    let mut filling: Option<Buffer<f32>> = None;
    for Piece { chunk, which, values } in fed {
        let mut rows = match filling.take() {
            Some(rows) => rows,
            None => match free.recv() {
                Ok(rows) => rows,
                Err(_) => break,
            },
        };
        let start = Instant::now();
        let sinograms = &values[..which.len() * shape.in_slice];
        session.upload(&mut rows, (which.start - chunk.start) * shape.in_slice, sinograms, "sinograms")?;
        busy += start.elapsed().as_secs_f64();
        // the reader may have read all
        let _ = done.send(values);
        if which.end < chunk.end {
            filling = Some(rows);
        } else if out.send((chunk, rows)).is_err() {
            break;
        }
    }
    Ok(busy)
}

/// The same without copies: a piece is the chunk.
fn hand_over(session: &Session, fed: Receiver<Piece>, out: Sender<Chunk>) -> Result<f64> {
    let mut busy = 0.0;
    for Piece { chunk, values, .. } in fed {
        let start = Instant::now();
        let rows = session.unmap(values, "sinograms")?;
        busy += start.elapsed().as_secs_f64();
        if out.send((chunk, rows)).is_err() {
            break;
        }
    }
    Ok(busy)
}

/// Chunk after chunk, each into the next `room` that is free; the seconds of filtering and of back projection.
fn compute(
    session: &Session,
    kernels: &mut Kernels,
    place: usize,
    uploaded: Receiver<Chunk>,
    room: impl Fn() -> Result<Option<Buffer<f32>>>,
    done: impl Fn(Buffer<f32>) -> Result<()>,
    out: Sender<Chunk>,
) -> Result<(f64, f64)> {
    let (mut filter, mut back_projection) = (0.0, 0.0);
    for (number, (chunk, rows)) in uploaded.into_iter().enumerate() {
        if lost(place, number) {
            return Err(Error::Device("lost on purpose".into()));
        }
        let Some(slices) = room()? else { break };
        let seconds = kernels.step(session, 0, &rows, &slices, chunk.len())?;
        filter += seconds.0;
        back_projection += seconds.1;
        done(rows)?;
        if out.send((chunk, slices)).is_err() {
            break;
        }
    }
    Ok((filter, back_projection))
}

/// Chunks on the device into pieces on the host.
fn download(
    session: &Session,
    shape: Shape,
    piece: usize,
    reconstructed: Receiver<Chunk>,
    free: Receiver<HostMemory>,
    done: Sender<Buffer<f32>>,
    deliver: impl Fn(Range<usize>, HostMemory) -> bool,
) -> Result<f64> {
    let mut busy = 0.0;
    for (chunk, slices) in reconstructed {
        for part in pieces(chunk.len(), piece) {
            let Ok(mut values) = free.recv() else { return Ok(busy) };
            let start = Instant::now();
            let room = &mut values[..part.len() * shape.out_slice];
            session.download(&slices, part.start * shape.out_slice, room, "slices")?;
            busy += start.elapsed().as_secs_f64();
            if !deliver(chunk.start + part.start..chunk.start + part.end, values) {
                return Ok(busy);
            }
        }
        // there may be nothing more to compute
        let _ = done.send(slices);
    }
    Ok(busy)
}

/// The same without copies.
fn take_over(
    session: &Session,
    shape: Shape,
    reconstructed: Receiver<Chunk>,
    deliver: impl Fn(Range<usize>, HostMemory) -> bool,
) -> Result<f64> {
    let mut busy = 0.0;
    for (chunk, slices) in reconstructed {
        let start = Instant::now();
        let values = session.map(slices, shape.chunk * shape.out_slice, "slices")?;
        busy += start.elapsed().as_secs_f64();
        if !deliver(chunk, values) {
            break;
        }
    }
    Ok(busy)
}

/// Finishes and writes slices as they come, or in order where they go into one file.
fn write(
    run: Run,
    mut writer: SliceWriter,
    computed: Receiver<Slices>,
    back: Vec<Sender<HostMemory>>,
    advance: &mut (dyn FnMut(usize) + Send),
) -> Result<Done> {
    let scan = &run.source.scan;
    let pixels = scan.geometry.roi.pixels();
    let mut kept = Vec::new();
    let mut busy = 0.0;
    let mut written = 0;
    let mut put = |which: Range<usize>, values: &[f32]| -> Result<()> {
        let slices: Vec<_> = which.clone().map(|at| run.slices[at]).zip(values.chunks(pixels)).collect();
        writer.write_all(&slices)?;
        if let Some((_, values)) = slices.iter().find(|(slice, _)| Some(*slice) == run.keep) {
            kept = values.to_vec();
        }
        written += which.len();
        advance(which.len());
        Ok(())
    };
    // slices that came before their turn
    let mut held: BTreeMap<usize, Vec<f32>> = BTreeMap::new();
    let mut next = 0;
    for Slices { device, which, mut values } in computed {
        let start = Instant::now();
        let slices = &mut values[..which.len() * pixels];
        slices.par_chunks_mut(pixels).zip(&run.slices[which.clone()]).for_each(|(values, &slice)| {
            run.finish.apply(scan, values);
            if let Some(observe) = run.observer {
                observe(slice, values);
            }
        });
        if run.window.is_none() {
            put(which, slices)?;
        } else if which.start == next {
            next = which.end;
            put(which, slices)?;
            while let Some(slices) = held.remove(&next) {
                let which = next..next + slices.len() / pixels;
                next = which.end;
                put(which, &slices)?;
            }
        } else {
            held.insert(which.start, slices.to_vec());
        }
        busy += start.elapsed().as_secs_f64();
        // its device may have ended
        let _ = back[device].send(values);
    }
    let clipped = writer.clamped();
    if written == run.slices.len() {
        writer.finish()?;
    }
    Ok(Done { seconds: 0.0, read: 0.0, write: busy, clipped, kept, devices: Vec::new() })
}
