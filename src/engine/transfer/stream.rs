//! Uploading, correcting, computing and downloading at the same time.

use super::channels::{Chunk, Delivery, LeaveOnDrop};
use crate::device::Session;
use crate::engine::chunks::{ChunkKernels, DevicePass, SliceBuffers};
use crate::engine::run::Run;
use crate::engine::seconds::DeviceSeconds;
use crate::engine::sinograms::{ReadySinograms, SinogramStage};
use crate::engine::threads::threads;
use crate::engine::work::Work;
use crate::error::{Error, Result};
use crate::fault;
use crate::least_squares::RowScale;
use crate::report::Stage;
use crate::threads::joined;
use crossbeam_channel::{Receiver, Sender, unbounded};
use opencl3::memory::Buffer;
use std::thread::scope;
use std::time::{Duration, Instant};

/// The device's buffers between uploading, computing and downloading.
pub(super) trait Buffers {
    /// Waits for free buffers for slices; `None` if there will be none.
    fn free_slices(&self) -> Result<Option<SliceBuffers>>;

    /// Gives back the buffer of sinograms that are no longer needed.
    fn sinograms_done(&self, sinograms: Buffer<f32>) -> Result<()>;
}

/// The session and the kernels that a device computes with.
pub(super) struct Computing<'a> {
    pub session: &'a Session,
    pub kernels: &'a mut ChunkKernels,
    /// What happens to sinograms before, if anything does.
    pub sinograms: Option<&'a mut SinogramStage>,
}

/// A chunk on the device whose slices can be computed, with the scales of its rows, if they were examined.
type ReadyChunk = (Chunk<Buffer<f32>>, Vec<RowScale>);

/// A device among those of a run.
struct DeviceOfRun<'a> {
    run: Run<'a>,
    /// The slices that are shared out among the devices.
    work: &'a Work,
    /// Number of the device.
    device: usize,
}

/// Uploads, corrects sinograms, computes and downloads at the same time. When the computing ends, `buffers` are
/// dropped, which ends the others.
pub(super) fn stream(
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
        let (ready, correcting): (Box<dyn Iterator<Item = ReadyChunk>>, _) = match sinograms {
            None => (Box::new(uploaded.into_iter().map(|chunk| (chunk, Vec::new()))), None),
            Some(stage) => {
                let (to_compute, ready) = unbounded();
                let correct = move || {
                    threads("correct sinograms")?.install(|| correct_sinograms(stage, run, uploaded, to_compute))
                };
                (Box::new(ready.into_iter()), Some(scope.spawn(correct)))
            }
        };
        let computed = compute(session, kernels, DeviceOfRun { work, device, run }, ready, &buffers, to_download);
        drop(buffers);
        let (upload, download) = (joined(uploading, "upload"), joined(downloading, "download"));
        let steps = correcting.map_or(Ok(0.0), |correcting| joined(correcting, "correction of sinograms"));
        let mut seconds = DeviceSeconds { upload: upload?, download: download?, ..computed? };
        seconds.steps += steps?;
        Ok(seconds)
    })
}

/// Does the steps on sinograms of chunk after chunk, and examines their rows. Returns the seconds that this took.
fn correct_sinograms(
    stage: &mut SinogramStage,
    run: Run,
    uploaded: Receiver<Chunk<Buffer<f32>>>,
    out: Sender<ReadyChunk>,
) -> Result<f64> {
    let mut seconds = 0.0;
    for (chunk, sinograms) in uploaded {
        if run.is_cancelled() {
            break;
        }
        let ReadySinograms { scales, seconds: busy } = stage.run(&sinograms, chunk.len())?;
        seconds += busy;
        run.clock.add(Stage::Correcting, Duration::from_secs_f64(busy));
        if out.send(((chunk, sinograms), scales)).is_err() {
            break;
        }
    }
    Ok(seconds)
}

/// Computes chunk after chunk, each into the next free buffers, until the run is cancelled. Returns the seconds of
/// computing.
fn compute(
    session: &Session,
    kernels: &mut ChunkKernels,
    of_run: DeviceOfRun,
    ready: impl Iterator<Item = ReadyChunk>,
    buffers: &impl Buffers,
    out: Sender<Chunk<SliceBuffers>>,
) -> Result<DeviceSeconds> {
    let DeviceOfRun { work, device, run } = of_run;
    let mut seconds = DeviceSeconds::default();
    for (number, ((chunk, sinograms), scales)) in ready.enumerate() {
        fail_on_purpose(run, device, number)?;
        if run.is_cancelled() {
            break;
        }
        let Some(mut slices) = buffers.free_slices()? else { break };
        let start = Instant::now();
        let pass = DevicePass { part: 0, rows: sinograms, slices: &slices.values, count: chunk.len(), scales: &scales };
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

/// Fails or waits where a test wants the device to do so.
pub(super) fn fail_on_purpose(run: Run, device: usize, chunk: usize) -> Result<()> {
    if fault::lost(device, chunk) {
        return Err(Error::Internal("lost on purpose".into()));
    }
    while fault::held(device, chunk) && !run.is_cancelled() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
