//! Processes chunks about an inclined axis: rows come in pieces of some projections, and slices leave in pieces when all
//! projections have been added.

use super::channels::{Delivery, DeviceChannels, FoundInSlices, ReadPiece, Transfer};
use super::stream::fail_on_purpose;
use crate::engine::chunks::Engine;
use crate::engine::seconds::DeviceSeconds;
use crate::error::{Error, Result};
use crate::feed::{Piece, parts_of};
use crate::report::Stage;
use std::time::Instant;

/// Transfer in which a piece has rows of some projections.
pub(super) struct Inclined;

impl Transfer for Inclined {
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds> {
        let DeviceChannels { device, work, run, pieces, free_sinograms, computed, free_slices, .. } = channels;
        let (slices_back, free_slices) = free_slices;
        let Some(stage) = &engine.lamino else { return Err(Error::Internal("the axis is not inclined".into())) };
        let (of_host, rows, all) = (stage.pieces, stage.rows, stage.projections());
        let out_slice = engine.shape.out_slice;
        let bins = engine.shape.in_slice / all.max(1);
        for _ in 0..of_host.read {
            // the receivers are here
            let _ = free_sinograms.send(engine.session.host_memory(rows * of_host.projections * bins)?);
        }
        for _ in 0..of_host.written {
            let _ = slices_back.send(engine.session.host_memory(of_host.slices * out_slice)?);
        }
        drop(slices_back);
        let delivery = Delivery { device, work, run, computed };
        let (mut busy, mut number) = (DeviceSeconds::default(), 0);
        'pieces: for ReadPiece { chunk, piece, values } in pieces {
            let (Piece::Projections(projections), Some(values)) = (piece, values) else { continue };
            if projections.start == 0 {
                fail_on_purpose(run, device, number)?;
                number += 1;
            }
            if run.is_cancelled() {
                break;
            }
            let start = Instant::now();
            let which = &run.slices[chunk.clone()];
            let needed = engine.lamino.as_ref().map_or(0, |stage| stage.rows_of(which).len());
            let values_of = needed * projections.len() * bins;
            let is_last = projections.end == all;
            busy = busy + engine.add_inclined(which, projections, &values[..values_of])?;
            run.clock.add(Stage::Computing, start.elapsed());
            // the reader may have read all
            let _ = free_sinograms.send(values);
            if !is_last {
                continue;
            }
            work.ready(device);
            for part in parts_of(chunk.len(), of_host.slices) {
                let Ok(mut slices) = free_slices.recv() else { break 'pieces };
                busy.download += engine.download_slices(part.start, &mut slices[..part.len() * out_slice])?;
                let positions = chunk.start + part.start..chunk.start + part.end;
                if !delivery.deliver(positions, slices, FoundInSlices::default()) {
                    break 'pieces;
                }
            }
        }
        Ok(busy)
    }
}
