//! Processes chunks about an inclined axis: rows come in pieces of some projections, and slices leave in pieces when all
//! projections have been added.

use super::channels::{Delivery, DeviceChannels, FoundInSlices, ReadPiece, Transfer};
use super::stream::fail_on_purpose;
use crate::engine::chunks::Engine;
use crate::engine::lamino::InclinedRows;
use crate::engine::run::Run;
use crate::engine::seconds::DeviceSeconds;
use crate::error::{Error, Result};
use crate::feed::{Piece, parts_of};
use crate::report::Stage;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

/// Transfer in which a piece has rows of some projections.
pub(super) struct Inclined;

impl Transfer for Inclined {
    fn run(&self, engine: &mut Engine, channels: DeviceChannels) -> Result<DeviceSeconds> {
        let DeviceChannels { device, work, run, counts, pieces, free_sinograms, computed, free_slices, .. } = channels;
        let (slices_back, free_slices) = free_slices;
        let Some(stage) = &engine.lamino else { return Err(Error::Internal("the axis is not inclined".into())) };
        let of_host = stage.pieces;
        let (in_piece, out_slice) = (engine.inclined_piece(), engine.shape.out_slice);
        for _ in 0..of_host.read {
            // the receivers are here
            let _ = free_sinograms.send(engine.session.host_memory(in_piece)?);
        }
        let mut slices_back = Some(slices_back);
        let delivery = Delivery { device, work, run, computed };
        let scan = run.source.rows();
        let (mut busy, mut number) = (DeviceSeconds::default(), 0);
        'pieces: for ReadPiece { chunk, piece, values } in pieces {
            let (Piece::Projections(batch), Some(values)) = (&piece, values) else { continue };
            if batch.projections.start == 0 {
                fail_on_purpose(run, device, number)?;
                number += 1;
            }
            if run.is_cancelled() {
                break;
            }
            let rows = InclinedRows { scan: &scan, piece: &piece, values: &values };
            let (seconds, found) = engine.add_inclined(&run.slices[chunk.clone()], rows)?;
            busy = busy + counted(run, seconds);
            if let Some(found) = found {
                counts.lock().unwrap_or_else(PoisonError::into_inner).add(found);
            }
            // the reader may have read all
            let _ = free_sinograms.send(values);
            // while the device computes
            if let Some(slices_back) = slices_back.take() {
                for _ in 0..of_host.written {
                    let _ = slices_back.send(engine.session.host_memory(of_host.slices * out_slice)?);
                }
            }
            if batch.projections.end < scan.used.len() {
                continue;
            }
            work.ready(device);
            while let Some(complete) = engine.complete_inclined()? {
                for part in parts_of(complete.len(), of_host.slices) {
                    let Ok(mut slices) = free_slices.recv() else { break 'pieces };
                    let (first, start) = (complete.start + part.start, Instant::now());
                    busy.download += engine.download_slices(first, &mut slices[..part.len() * out_slice])?;
                    run.clock.add(Stage::Downloading, start.elapsed());
                    let positions = chunk.start + first..chunk.start + first + part.len();
                    if !delivery.deliver(positions, slices, FoundInSlices::default()) {
                        break 'pieces;
                    }
                }
            }
            busy = busy + counted(run, engine.end_inclined()?);
        }
        Ok(busy)
    }
}

/// Adds the seconds of parts to the clock of the run.
fn counted(run: Run, seconds: DeviceSeconds) -> DeviceSeconds {
    run.clock.add(Stage::Uploading, Duration::from_secs_f64(seconds.upload));
    run.clock.add(Stage::Computing, Duration::from_secs_f64(seconds.filter + seconds.back_projection));
    seconds
}
