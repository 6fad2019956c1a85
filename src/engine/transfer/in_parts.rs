//! Processes chunks that are never on the device as a whole, one after another.

use super::channels::{Delivery, DeviceChannels, FoundInSlices, ReadPiece, Transfer};
use super::stream::fail_on_purpose;
use crate::engine::chunks::{ChunkShape, Engine};
use crate::engine::seconds::DeviceSeconds;
use crate::error::Result;
use crate::plan::PIECES;
use crate::report::Stage;
use std::time::Instant;

/// Transfer in which a piece is a chunk, of which the engine copies the parts that it needs.
pub(super) struct InParts;

impl Transfer for InParts {
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds> {
        let DeviceChannels { device, work, run, pieces, free_sinograms, computed, free_slices, .. } = channels;
        let (slices_back, free_slices) = free_slices;
        let ChunkShape { chunk, in_slice, out_slice } = engine.shape;
        for _ in 0..PIECES {
            // the receivers are here
            let _ = free_sinograms.send(engine.session.host_memory(chunk * in_slice)?);
            let _ = slices_back.send(engine.session.host_memory(chunk * out_slice)?);
        }
        drop(slices_back);
        let delivery = Delivery { device, work, run, computed };
        let mut busy = DeviceSeconds::default();
        for (number, (positions, values)) in pieces.into_iter().filter_map(ReadPiece::sinograms).enumerate() {
            fail_on_purpose(run, device, number)?;
            if run.is_cancelled() {
                break;
            }
            let Ok(mut slices) = free_slices.recv() else { break };
            let to = &mut slices[..positions.len() * out_slice];
            let start = Instant::now();
            busy = busy + engine.reconstruct(&values[..positions.len() * in_slice], to)?;
            run.clock.add(Stage::Computing, start.elapsed());
            // the reader may have read all
            let _ = free_sinograms.send(values);
            work.ready(device);
            if !delivery.deliver(positions, slices, FoundInSlices::default()) {
                break;
            }
        }
        Ok(busy)
    }
}
