//! How chunks get to a device, and slices from it: copied, mapped, or in parts.

mod copied;
mod in_parts;
mod mapped;

use super::chunks::{ChunkKernels, DevicePass, DeviceSeconds, Engine, SliceBuffers};
use super::sinograms::SinogramStage;
use super::stages::{Run, joined, threads};
use super::work::Work;
use crate::device::{HostMemory, Session};
use crate::error::{Error, Result};
use crate::fault;
use crate::feed::{DeviceCounts, Piece};
use crate::histogram::CountedSlice;
use crate::plan::Pieces;
use crate::report::Stage;
use copied::Copied;
use crossbeam_channel::{Receiver, Sender, unbounded};
use in_parts::InParts;
use mapped::Mapped;
use opencl3::memory::Buffer;
use std::ops::Range;
use std::sync::Mutex;
use std::thread::scope;
use std::time::{Duration, Instant};

/// What was read at once for a chunk of the list of slices; in memory, unless there was nothing to read.
pub(super) struct ReadPiece {
    pub chunk: Range<usize>,
    pub piece: Piece,
    pub values: Option<HostMemory>,
}

impl ReadPiece {
    /// Positions in the list of slices, and their sinograms.
    fn sinograms(self) -> Option<(Range<usize>, HostMemory)> {
        match (self.piece, self.values) {
            (Piece::Slices(positions), Some(values)) => Some((positions, values)),
            _ => None,
        }
    }
}

/// Slices from a device.
pub(super) struct ComputedSlices {
    pub device: usize,
    pub positions: Range<usize>,
    pub values: HostMemory,
    pub found: FoundInSlices,
}

/// What a device found out about slices.
#[derive(Default)]
pub(super) struct FoundInSlices {
    /// Of each slice, if they are samples as they are written: how many of them were clamped.
    pub clamped: Option<Vec<u32>>,
    /// Of each slice, if the device counts values.
    pub counted: Option<Vec<CountedSlice>>,
    /// Whether values have their unit of length and the mask.
    pub finished: bool,
}

impl FoundInSlices {
    /// Takes away what is about the first `count` slices.
    fn take_first(&mut self, count: usize) -> FoundInSlices {
        FoundInSlices {
            clamped: self.clamped.as_mut().map(|clamped| clamped.drain(..count).collect()),
            counted: self.counted.as_mut().map(|counted| counted.drain(..count).collect()),
            finished: self.finished,
        }
    }
}

/// A chunk on the device: positions in the list of slices, and sinograms or slices.
type Chunk<T> = (Range<usize>, T);

/// What a device shares with the reader and the writer.
pub(super) struct DeviceChannels<'a> {
    /// Number of the device.
    pub device: usize,
    pub work: &'a Work,
    pub run: Run<'a>,
    /// What was replaced in the data that the device corrects.
    pub counts: &'a Mutex<DeviceCounts>,
    /// Slices that are copied at once.
    pub pieces_of: Pieces,
    /// From the reader, and memory back to it.
    pub pieces: Receiver<ReadPiece>,
    pub free_sinograms: Sender<HostMemory>,
    /// To the writer, and memory back from it.
    pub computed: Sender<ComputedSlices>,
    pub free_slices: (Sender<HostMemory>, Receiver<HostMemory>),
}

/// A way for chunks to a device, and for slices from it.
pub(super) trait Transfer {
    /// Computes chunks until no more come; the seconds of every stage.
    ///
    /// # Errors
    /// The device's. A neighbour that is gone is no error: the stage ends.
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds>;
}

/// The way that suits a device and its plan.
pub(super) fn transfer_of(engine: &Engine) -> &'static dyn Transfer {
    match (engine.is_whole(), engine.is_mapped()) {
        (false, _) => &InParts,
        (true, true) => &Mapped,
        (true, false) => &Copied,
    }
}

/// Takes a device out of the run when it is dropped, whatever the reason.
pub(super) struct LeaveOnDrop<'a>(pub &'a Work, pub usize);

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// The way of slices to the writer.
struct Delivery<'a> {
    device: usize,
    work: &'a Work,
    run: Run<'a>,
    computed: Sender<ComputedSlices>,
}

impl Delivery<'_> {
    /// Hands slices on; false if there is no writer any more.
    fn deliver(&self, positions: Range<usize>, values: HostMemory, found: FoundInSlices) -> bool {
        let slices = ComputedSlices { device: self.device, positions: positions.clone(), values, found };
        let sent = self.computed.send(slices).is_ok();
        match sent {
            true => self.work.done(self.device, positions),
            // nobody waits for this device any more
            false => self.work.leave(self.device),
        }
        sent
    }
}

/// The device's buffers between uploading, computing and downloading.
trait Buffers {
    /// The next buffers for slices that are free; `None` if none will be.
    fn free_slices(&self) -> Result<Option<SliceBuffers>>;

    /// Gives back sinograms that are done.
    fn sinograms_done(&self, sinograms: Buffer<f32>) -> Result<()>;
}

/// What a device computes with.
struct Computing<'a> {
    session: &'a Session,
    kernels: &'a mut ChunkKernels,
    /// Steps before the filter, if the device does them.
    sinograms: Option<&'a mut SinogramStage>,
}

/// Uploads, corrects sinograms, computes and downloads side by side. When the computing ends, `buffers` are dropped, which ends
/// the others.
fn stream(
    computing: Computing,
    delivery: Delivery,
    upload: impl FnOnce(Sender<Chunk<Buffer<f32>>>) -> Result<f64> + Send,
    buffers: impl Buffers,
    download: impl FnOnce(Receiver<Chunk<SliceBuffers>>, &Delivery) -> Result<f64> + Send,
) -> Result<DeviceSeconds> {
    let Delivery { device, work, run, .. } = delivery;
    let Computing { session, kernels, sinograms } = computing;
    let (to_device, uploaded) = unbounded();
    let (to_download, reconstructed) = unbounded();
    scope(|scope| {
        let uploading = scope.spawn(move || upload(to_device));
        let downloading = scope.spawn(move || {
            // nothing is delivered after this thread
            let _leave = LeaveOnDrop(work, device);
            download(reconstructed, &delivery)
        });
        let (ready, correcting) = match sinograms {
            None => (uploaded, None),
            Some(stage) => {
                let (to_compute, ready) = unbounded();
                let correct = move || {
                    threads("correct sinograms")?.install(|| correct_sinograms(stage, run, uploaded, to_compute))
                };
                (ready, Some(scope.spawn(correct)))
            }
        };
        let computed = compute(session, kernels, (work, device, run), ready, &buffers, to_download);
        drop(buffers);
        let (upload, download) = (joined(uploading, "upload"), joined(downloading, "download"));
        let steps = correcting.map_or(Ok(0.0), |correcting| joined(correcting, "correction of sinograms"));
        let mut seconds = DeviceSeconds { upload: upload?, download: download?, ..computed? };
        seconds.steps += steps?;
        Ok(seconds)
    })
}

/// Does the steps on sinograms of chunk after chunk; the seconds that took.
fn correct_sinograms(
    stage: &mut SinogramStage,
    run: Run,
    uploaded: Receiver<Chunk<Buffer<f32>>>,
    out: Sender<Chunk<Buffer<f32>>>,
) -> Result<f64> {
    let mut seconds = 0.0;
    for (chunk, sinograms) in uploaded {
        if run.is_cancelled() {
            break;
        }
        let busy = stage.run(&sinograms, chunk.len())?;
        seconds += busy;
        run.clock.add(Stage::Correcting, Duration::from_secs_f64(busy));
        if out.send((chunk, sinograms)).is_err() {
            break;
        }
    }
    Ok(seconds)
}

/// Chunk after chunk, each into the next free buffer, until the run is cancelled; the seconds of computing.
fn compute(
    session: &Session,
    kernels: &mut ChunkKernels,
    (work, device, run): (&Work, usize, Run),
    ready: Receiver<Chunk<Buffer<f32>>>,
    buffers: &impl Buffers,
    out: Sender<Chunk<SliceBuffers>>,
) -> Result<DeviceSeconds> {
    let mut seconds = DeviceSeconds::default();
    for (number, (chunk, sinograms)) in ready.into_iter().enumerate() {
        fail_on_purpose(run, device, number)?;
        if run.is_cancelled() {
            break;
        }
        let Some(mut slices) = buffers.free_slices()? else { break };
        let start = Instant::now();
        let pass = DevicePass { step: 0, rows: sinograms, slices: &slices.values, count: chunk.len() };
        let filtered = |sinograms| {
            buffers.sinograms_done(sinograms)?;
            work.ready(device);
            Ok(())
        };
        seconds = seconds + kernels.run(session, pass, filtered)?;
        seconds.finish += kernels.finish(session, &mut slices, chunk.len())?;
        run.clock.add(Stage::Computing, start.elapsed());
        if out.send((chunk, slices)).is_err() {
            break;
        }
    }
    Ok(seconds)
}

/// An error where a test wants the device to fail; waits where a test wants that.
fn fail_on_purpose(run: Run, device: usize, chunk: usize) -> Result<()> {
    if fault::lost(device, chunk) {
        return Err(Error::Internal("lost on purpose".into()));
    }
    while fault::held(device, chunk) && !run.is_cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
