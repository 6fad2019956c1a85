//! Pieces are copied to a device that has memory of its own, and slices from it.

use super::{Buffers, Chunk, Delivery, DeviceChannels, Piece, Transfer, stream};
use crate::device::{HostMemory, Session};
use crate::engine::chunks::{ChunkShape, DeviceSeconds, DeviceSet, Engine};
use crate::engine::stages::parts_of;
use crate::error::Result;
use crate::plan::PIECES;
use crossbeam_channel::{Receiver, Sender, unbounded};
use opencl3::memory::Buffer;
use std::time::Instant;

/// Chunks are copied piece by piece through memory of the host that the device copies from and to.
pub(super) struct Copied;

impl Transfer for Copied {
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds> {
        let DeviceChannels { device, work, piece, pieces, free_sinograms, computed, free_slices } = channels;
        let (slices_back, free_slices) = free_slices;
        let Engine { session, kernels, sets, shape, .. } = engine;
        let (session, shape) = (&*session, *shape);
        let (sinograms_done, free_buffers) = unbounded();
        let (slices_done, free) = unbounded();
        for DeviceSet { rows, slices } in sets.drain(..) {
            // the receivers are here
            let _ = sinograms_done.send(rows);
            let _ = slices_done.send(slices);
        }
        let upload = move |out| {
            for _ in 0..PIECES {
                let _ = free_sinograms.send(session.host_memory(piece * shape.in_slice)?);
            }
            upload(session, shape, (pieces, free_buffers), free_sinograms, out)
        };
        let download = move |chunks, delivery: &Delivery| {
            for _ in 0..PIECES {
                let _ = slices_back.send(session.host_memory(piece * shape.out_slice)?);
            }
            drop(slices_back);
            download(session, (shape, piece), chunks, free_slices, slices_done, delivery)
        };
        let buffers = DeviceBuffers { sinograms_done, free };
        stream(session, kernels, Delivery { device, work, computed }, upload, buffers, download)
    }
}

/// Buffers that go round on the device.
struct DeviceBuffers {
    sinograms_done: Sender<Buffer<f32>>,
    free: Receiver<Buffer<f32>>,
}

impl Buffers for DeviceBuffers {
    fn free_slices(&self) -> Result<Option<Buffer<f32>>> {
        Ok(self.free.recv().ok())
    }

    fn sinograms_done(&self, sinograms: Buffer<f32>) -> Result<()> {
        // all may have been read
        let _ = self.sinograms_done.send(sinograms);
        Ok(())
    }
}

/// Pieces from the host into chunks on the device; the seconds that took.
fn upload(
    session: &Session,
    shape: ChunkShape,
    (pieces, free): (Receiver<Piece>, Receiver<Buffer<f32>>),
    done: Sender<HostMemory>,
    out: Sender<Chunk>,
) -> Result<f64> {
    let mut busy = 0.0;
    let mut filling: Option<Buffer<f32>> = None;
    for Piece { chunk, positions, values } in pieces {
        let mut rows = match filling.take() {
            Some(rows) => rows,
            None => match free.recv() {
                Ok(rows) => rows,
                Err(_) => break,
            },
        };
        let start = Instant::now();
        let sinograms = &values[..positions.len() * shape.in_slice];
        session.upload(&mut rows, (positions.start - chunk.start) * shape.in_slice, sinograms, "sinograms")?;
        busy += start.elapsed().as_secs_f64();
        // the reader may have read all
        let _ = done.send(values);
        if positions.end < chunk.end {
            filling = Some(rows);
        } else if out.send((chunk, rows)).is_err() {
            break;
        }
    }
    Ok(busy)
}

/// Chunks on the device into pieces on the host; the seconds that took.
fn download(
    session: &Session,
    (shape, piece): (ChunkShape, usize),
    chunks: Receiver<Chunk>,
    free: Receiver<HostMemory>,
    done: Sender<Buffer<f32>>,
    delivery: &Delivery,
) -> Result<f64> {
    let mut busy = 0.0;
    for (chunk, slices) in chunks {
        for part in parts_of(chunk.len(), piece) {
            let Ok(mut values) = free.recv() else { return Ok(busy) };
            let start = Instant::now();
            let into = &mut values[..part.len() * shape.out_slice];
            session.download(&slices, part.start * shape.out_slice, into, "slices")?;
            busy += start.elapsed().as_secs_f64();
            if !delivery.deliver(chunk.start + part.start..chunk.start + part.end, values) {
                return Ok(busy);
            }
        }
        // there may be nothing more to compute
        let _ = done.send(slices);
    }
    Ok(busy)
}
