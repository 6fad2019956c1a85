//! Transfer to a device that computes in host memory: the buffers of chunks themselves are passed around, mapped while
//! the reader or the writer uses them.

use super::channels::{Chunk, Delivery, DeviceChannels, FoundInSlices, ReadPiece, Transfer};
use super::stream::{Buffers, Computing, stream};
use crate::device::{HostMemory, Session};
use crate::engine::chunks::{ChunkShape, Engine, SliceBuffers};
use crate::engine::seconds::DeviceSeconds;
use crate::error::Result;
use crossbeam_channel::{Receiver, Sender};
use opencl3::memory::Buffer;
use std::time::Instant;

/// Transfer that copies nothing; a piece is a chunk.
pub(super) struct Mapped;

impl Transfer for Mapped {
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds> {
        let DeviceChannels { device, work, run, pieces, free_sinograms, computed, free_slices, .. } = channels;
        let (slices_back, free_slices) = free_slices;
        let Engine { session, kernels, inputs, outputs, shape, sinograms, .. } = engine;
        let (session, shape) = (&*session, *shape);
        // the receivers are here
        for sinograms in inputs.drain(..) {
            let _ = free_sinograms.send(session.map(sinograms, shape.chunk * shape.in_slice, "sinograms")?);
        }
        for slices in outputs.drain(..) {
            let _ = slices_back.send(session.map(slices.values, shape.chunk * shape.out_slice, "slices")?);
        }
        // else the computing would wait for slices after the writer has failed
        drop(slices_back);
        let upload = move |out| unmap_sinograms(session, pieces, out);
        let download = move |chunks, delivery: &Delivery| map_slices(session, shape, chunks, delivery);
        let buffers = HostBuffers { session, shape, free_sinograms, free_slices };
        let computing = Computing { session, kernels, sinograms: sinograms.as_mut() };
        stream(computing, Delivery { device, work, run, computed }, upload, buffers, download)
    }
}

/// Buffers that come back by way of the reader and the writer.
struct HostBuffers<'a> {
    session: &'a Session,
    shape: ChunkShape,
    free_sinograms: Sender<HostMemory>,
    free_slices: Receiver<HostMemory>,
}

impl Buffers for HostBuffers<'_> {
    fn free_slices(&self) -> Result<Option<SliceBuffers>> {
        let Ok(slices) = self.free_slices.recv() else { return Ok(None) };
        Ok(Some(SliceBuffers { values: self.session.unmap(slices, "slices")?, encoded: None, counts: None }))
    }

    fn sinograms_done(&self, sinograms: Buffer<f32>) -> Result<()> {
        let ChunkShape { chunk, in_slice, .. } = self.shape;
        // the reader may have read all, or be gone
        let _ = self.free_sinograms.send(self.session.map(sinograms, chunk * in_slice, "sinograms")?);
        Ok(())
    }
}

fn unmap_sinograms(session: &Session, pieces: Receiver<ReadPiece>, out: Sender<Chunk<Buffer<f32>>>) -> Result<f64> {
    let mut busy = 0.0;
    // a piece is a chunk
    for (chunk, values) in pieces.into_iter().filter_map(ReadPiece::sinograms) {
        let start = Instant::now();
        let sinograms = session.unmap(values, "sinograms")?;
        busy += start.elapsed().as_secs_f64();
        if out.send((chunk, sinograms)).is_err() {
            break;
        }
    }
    Ok(busy)
}

fn map_slices(
    session: &Session,
    shape: ChunkShape,
    chunks: Receiver<Chunk<SliceBuffers>>,
    delivery: &Delivery,
) -> Result<f64> {
    let mut busy = 0.0;
    for (chunk, slices) in chunks {
        let start = Instant::now();
        let values = session.map(slices.values, shape.chunk * shape.out_slice, "slices")?;
        busy += start.elapsed().as_secs_f64();
        if !delivery.deliver(chunk, values, FoundInSlices::default()) {
            break;
        }
    }
    Ok(busy)
}
