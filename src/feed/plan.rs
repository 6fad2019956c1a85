//! The pieces that are read for a chunk of slices.

use super::{HostFeed, ScanRows, parts_of};
use crate::device::HostMemory;
use crate::error::Result;
use crate::kernel::{StepBackend, StepBackends};
use crate::operations::{BlockPlace, BlockShape, DetectorBatch};
use crate::steps::Counts;
use std::ops::Range;

/// The rows that are read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Rows of the slices at some positions of the list: sinograms that the host has corrected, or samples.
    Slices(Range<usize>),
    /// Samples of a batch of a block that is kept, with the number of the block.
    Batch { block: usize, batch: DetectorBatch },
    /// Rows of some projections that the slices of a chunk about an inclined axis need: corrected by the host, or samples.
    Projections(DetectorBatch),
    /// Nothing to read: the rows of the slices at some positions are in the block that was read before.
    OfBlock(Range<usize>),
}

/// The way in which a device gets rows.
#[derive(Clone, Copy, Debug)]
pub struct FeedPlan {
    pub steps: StepBackends,
    /// Number of slices whose rows are read at once.
    pub read: usize,
    /// Blocks in which the device corrects rows, if it does.
    pub blocks: Option<BlockShape>,
    /// Number of projections that are read at once, if the axis is inclined.
    pub projections: Option<usize>,
}

impl FeedPlan {
    /// Returns the plan for sinograms that the host has corrected, `read` of them at a time.
    pub fn of_host(read: usize) -> Self {
        FeedPlan { steps: StepBackends::HOST, read, blocks: None, projections: None }
    }

    /// Returns the pieces of a chunk of a list of slices, in the order of reading. `loaded` is the block that was read
    /// last.
    pub fn pieces(
        &self,
        scan: &ScanRows,
        slices: &[usize],
        chunk: &Range<usize>,
        loaded: &mut Option<usize>,
    ) -> Vec<Piece> {
        if let Some(projections) = self.projections {
            let rows = scan.rows_of(&slices[chunk.clone()]);
            // those that slices before need, too, were counted for these
            let before = scan.rows_of(&slices[..chunk.start]);
            let new = before.last().map_or(0, |last| rows.partition_point(|row| row <= last));
            let batch =
                |projections| DetectorBatch { rows: rows.clone(), counted: new..rows.len(), place: 0, projections };
            return parts_of(scan.used.len(), projections).map(batch).map(Piece::Projections).collect();
        }
        let of_chunk = |part: Range<usize>| chunk.start + part.start..chunk.start + part.end;
        let Some(shape) = self.blocks.filter(|shape| shape.place != BlockPlace::Nowhere) else {
            let parts = match self.steps.rows {
                StepBackend::Device => scan.parts(&slices[chunk.clone()], self.read),
                StepBackend::Host => parts_of(chunk.len(), self.read).collect(),
            };
            return parts.into_iter().map(|part| Piece::Slices(of_chunk(part))).collect();
        };
        let block_of = |slice: usize| slice / shape.blocks.rows;
        let (mut pieces, mut start) = (Vec::new(), chunk.start);
        for same in slices[chunk.clone()].chunk_by(|a, b| block_of(*a) == block_of(*b)) {
            let block = block_of(same[0]);
            if loaded.replace(block) != Some(block) {
                let rows = shape.blocks.of(block, shape.height);
                let batches = parts_of(shape.projections, shape.batch);
                let batch = |projections| Piece::Batch { block, batch: scan.batch(rows.clone(), projections) };
                pieces.extend(batches.map(batch));
            }
            pieces.push(Piece::OfBlock(start..start + same.len()));
            start += same.len();
        }
        pieces
    }

    /// Reads a piece of a chunk into memory that holds it, and corrects it unless the device does. Returns the counts of replaced
    /// values.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn read(
        &self,
        host: &HostFeed,
        scan: &ScanRows,
        slices: &[usize],
        piece: &Piece,
        values: &mut HostMemory,
    ) -> Result<Counts> {
        match piece {
            Piece::Projections(batch) if self.steps.rows == StepBackend::Host => {
                let DetectorBatch { rows, counted, projections, .. } = batch;
                let part = ScanRows { wanted: &rows[counted.clone()], used: &scan.used[projections.clone()], ..*scan };
                return host.read(&part, rows, self.steps, true, &mut values[..rows.len() * part.sinogram_len()]);
            }
            Piece::Slices(positions) if self.steps.rows == StepBackend::Host => {
                let which = &slices[positions.clone()];
                let out = &mut values[..which.len() * scan.sinogram_len()];
                return host.read(scan, which, self.steps, true, out);
            }
            Piece::Slices(positions) => {
                let batch = scan.of_all_projections(&slices[positions.clone()], 0);
                scan.read_samples(&batch, &mut values.as_bytes_mut()[..scan.sample_bytes(&batch)])?;
            }
            Piece::Batch { batch, .. } | Piece::Projections(batch) => {
                scan.read_samples(batch, values.as_bytes_mut())?;
            }
            Piece::OfBlock(_) => {}
        }
        Ok(Counts::default())
    }
}
