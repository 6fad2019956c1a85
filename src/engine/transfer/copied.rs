//! Copies pieces to a device with its own memory, and slices from it.

use super::channels::{Chunk, Delivery, DeviceChannels, FoundInSlices, ReadPiece, Transfer};
use super::stream::{Buffers, Computing, stream};
use crate::device::{HostMemory, Session};
use crate::engine::chunks::{ChunkShape, Engine, SliceBuffers};
use crate::engine::run::Run;
use crate::engine::seconds::DeviceSeconds;
use crate::error::Result;
use crate::feed::{DeviceCounts, DeviceFeed, FedChunk, Piece, ScanRows, parts_of};
use crate::plan::{PIECES, WRITTEN_PIECES};
use crate::report::Stage;
use crossbeam_channel::{Receiver, Sender, unbounded};
use opencl3::memory::Buffer;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Transfer that copies chunks piece by piece through memory of the host that the device copies from and to.
pub(super) struct Copied;

impl Transfer for Copied {
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds> {
        let DeviceChannels { device, work, run, counts, pieces_of, pieces, free_sinograms, computed, free_slices } =
            channels;
        let (slices_back, free_slices) = free_slices;
        let Engine { session, kernels, inputs, outputs, shape, feed, sinograms, .. } = engine;
        let (session, shape) = (&*session, *shape);
        let in_bytes = feed.as_ref().map_or(4 * pieces_of.read * shape.in_slice, DeviceFeed::most_bytes);
        let (encoded, finished) = (kernels.encoded_bytes(), kernels.finishes());
        let out_bytes = encoded.unwrap_or(4 * shape.out_slice);
        let (sinograms_done, free_buffers) = unbounded();
        let (slices_done, free) = unbounded();
        // the receivers are here
        inputs.drain(..).for_each(|sinograms| drop(sinograms_done.send(sinograms)));
        outputs.drain(..).for_each(|slices| drop(slices_done.send(slices)));
        let upload = move |out| {
            for _ in 0..PIECES {
                let _ = free_sinograms.send(session.host_memory(in_bytes.div_ceil(4))?);
            }
            let scan = run.source.rows();
            let rows = Rows { session, shape, device: feed.as_mut(), run, scan, counts };
            rows.upload(pieces, free_buffers, free_sinograms, out)
        };
        let download = move |chunks, delivery: &Delivery| {
            for _ in 0..WRITTEN_PIECES {
                let _ = slices_back.send(session.host_memory((pieces_of.written * out_bytes).div_ceil(4))?);
            }
            drop(slices_back);
            let way = SlicesToHost { session, shape, piece: pieces_of.written, encoded, finished };
            way.download(chunks, free_slices, slices_done, delivery)
        };
        let buffers = DeviceBuffers { sinograms_done, free };
        let computing = Computing { session, kernels, sinograms: sinograms.as_mut() };
        stream(computing, Delivery { device, work, run, computed }, upload, buffers, download)
    }
}

/// Buffers on the device that are used again and again.
struct DeviceBuffers {
    sinograms_done: Sender<Buffer<f32>>,
    free: Receiver<SliceBuffers>,
}

impl Buffers for DeviceBuffers {
    fn free_slices(&self) -> Result<Option<SliceBuffers>> {
        Ok(self.free.recv().ok())
    }

    fn sinograms_done(&self, sinograms: Buffer<f32>) -> Result<()> {
        // all may have been read
        let _ = self.sinograms_done.send(sinograms);
        Ok(())
    }
}

/// The way of rows to the device.
struct Rows<'a> {
    session: &'a Session,
    shape: ChunkShape,
    /// Correction of rows on the device, unless the host corrects them.
    device: Option<&'a mut DeviceFeed>,
    run: Run<'a>,
    scan: ScanRows<'a>,
    counts: &'a Mutex<DeviceCounts>,
}

impl Rows<'_> {
    /// Copies pieces from the host into chunks on the device. Returns the seconds that this took.
    fn upload(
        mut self,
        pieces: Receiver<ReadPiece>,
        free: Receiver<Buffer<f32>>,
        done: Sender<HostMemory>,
        out: Sender<Chunk<Buffer<f32>>>,
    ) -> Result<f64> {
        let mut busy = 0.0;
        let mut filling: Option<Buffer<f32>> = None;
        for ReadPiece { chunk, piece, values } in pieces {
            let mut rows = match filling.take() {
                Some(rows) => rows,
                None => match free.recv() {
                    Ok(rows) => rows,
                    Err(_) => break,
                },
            };
            let start = Instant::now();
            let complete = match &piece {
                Piece::Slices(positions) | Piece::OfBlock(positions) => positions.end == chunk.end,
                Piece::Batch { .. } | Piece::Projections(_) => false,
            };
            self.copy(&chunk, &piece, values.as_ref(), &mut rows)?;
            self.wait(&piece, complete.then_some(&chunk))?;
            busy += start.elapsed().as_secs_f64();
            self.run.clock.add(Stage::Uploading, start.elapsed());
            if let Some(values) = values {
                // the reader may have read all
                let _ = done.send(values);
            }
            if !complete {
                filling = Some(rows);
            } else if out.send((chunk, rows)).is_err() {
                break;
            }
        }
        Ok(busy)
    }

    /// Copies sinograms, or samples that become sinograms on the device.
    fn copy(
        &mut self,
        chunk: &Range<usize>,
        piece: &Piece,
        values: Option<&HostMemory>,
        rows: &mut Buffer<f32>,
    ) -> Result<()> {
        let in_slice = self.shape.in_slice;
        match (&mut self.device, piece, values) {
            (Some(device), ..) => {
                let bytes = values.map_or(&[][..], HostMemory::as_bytes);
                let chunk = FedChunk { slices: self.run.slices, first: chunk.start, sinograms: rows, stride: in_slice };
                device.correct(self.session, &self.scan, piece, bytes, chunk)
            }
            (None, Piece::Slices(positions), Some(values)) => {
                let (place, sinograms) = (positions.start - chunk.start, &values[..positions.len() * in_slice]);
                self.session.upload(rows, place * in_slice, sinograms, "sinograms")
            }
            _ => Ok(()),
        }
    }

    /// Waits for what is complete on the device, if it corrects rows, and adds the counts of values replaced there.
    fn wait(&mut self, piece: &Piece, complete: Option<&Range<usize>>) -> Result<()> {
        let Some(device) = &mut self.device else { return Ok(()) };
        let complete = complete.map(|chunk| &self.run.slices[chunk.clone()]);
        if let Some(found) = device.wait(self.session, &self.scan, piece, complete)? {
            self.counts.lock().unwrap_or_else(PoisonError::into_inner).add(found);
        }
        Ok(())
    }
}

/// The way of slices to the host.
struct SlicesToHost<'a> {
    session: &'a Session,
    shape: ChunkShape,
    /// Number of slices of a piece.
    piece: usize,
    /// Bytes of an encoded slice; `None` if slices are not encoded, or are encoded in place.
    encoded: Option<usize>,
    /// True if the device finishes slices.
    finished: bool,
}

impl SlicesToHost<'_> {
    /// Copies chunks on the device into pieces on the host. Returns the seconds that this took.
    fn download(
        &self,
        chunks: Receiver<Chunk<SliceBuffers>>,
        free: Receiver<HostMemory>,
        done: Sender<SliceBuffers>,
        delivery: &Delivery,
    ) -> Result<f64> {
        let mut busy = 0.0;
        for (chunk, slices) in chunks {
            let mut found = self.found(&slices, chunk.len())?;
            for part in parts_of(chunk.len(), self.piece) {
                let Ok(mut values) = free.recv() else { return Ok(busy) };
                let start = Instant::now();
                self.copy(&slices, part.clone(), &mut values)?;
                busy += start.elapsed().as_secs_f64();
                delivery.run.clock.add(Stage::Downloading, start.elapsed());
                let found = found.take_first(part.len());
                if !delivery.deliver(chunk.start + part.start..chunk.start + part.end, values, found) {
                    return Ok(busy);
                }
            }
            // there may be nothing more to compute
            let _ = done.send(slices);
        }
        Ok(busy)
    }

    fn found(&self, slices: &SliceBuffers, count: usize) -> Result<FoundInSlices> {
        let SliceBuffers { encoded, counts, .. } = slices;
        Ok(FoundInSlices {
            clamped: encoded.as_ref().map(|encoded| encoded.clamped(self.session, count)).transpose()?,
            counted: counts.as_ref().map(|counts| counts.slices(self.session)).transpose()?,
            finished: self.finished,
        })
    }

    fn copy(&self, slices: &SliceBuffers, part: Range<usize>, values: &mut HostMemory) -> Result<()> {
        match self.encoded {
            Some(bytes) => {
                let into = &mut values.as_bytes_mut()[..part.len() * bytes];
                self.session.download_bytes(&slices.values, part.start * bytes, into, "encoded slices")
            }
            None => {
                let length = self.shape.out_slice;
                let into = &mut values[..part.len() * length];
                self.session.download(&slices.values, part.start * length, into, "slices")
            }
        }
    }
}
