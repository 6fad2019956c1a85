//! Blocks of rows, corrected on a device by steps on images, and kept until their slices have been computed.

use super::batches::{BatchCorrector, BatchPart, StartedBatch};
use super::correction::{PieceSize, RowCorrection, RowCorrector, RowCounts};
use super::images::{ImageRows, RowBlocks};
use super::kept_block::KeptBlock;
use super::{Session, cl_error};
use crate::error::{Error, Result};
use crate::source::StoredRows;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::ops::Range;

/// Sizes of what a device holds for blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    pub blocks: RowBlocks,
    pub bins: usize,
    /// Rows of the detector.
    pub height: usize,
    /// Projections of the scan, and those that are copied and corrected at once: an even number.
    pub projections: usize,
    pub batch: usize,
    /// Pairs of projections that are filtered at once.
    pub pairs: usize,
    /// Batches whose samples are on the device together.
    pub at_once: usize,
    /// Batches of corrected rows on the device, if the host keeps the block because the device's memory does not hold it; else 0.
    pub kept_batches: usize,
}

impl BlockShape {
    /// Whether the host keeps the block that was corrected last.
    pub fn on_host(&self) -> bool {
        self.kept_batches > 0
    }

    /// Most rows that are corrected for a block.
    pub(super) fn corrected(&self) -> usize {
        (self.blocks.rows + 2 * self.blocks.halo()).min(self.height)
    }

    pub(super) fn size(&self) -> PieceSize {
        PieceSize { rows: self.corrected(), projections: self.batch, counted: self.blocks.rows, at_once: self.at_once }
    }

    /// Bytes of the host's memory for a block that it keeps.
    pub fn kept_bytes(&self) -> u64 {
        if self.on_host() { 4 * (self.blocks.rows * self.projections * self.bins) as u64 } else { 0 }
    }

    /// Bytes on the device, with `halo` rows more around what is corrected, so many field images, and the bytes for a pair of
    /// images: of the block, or a batch of it, and of the rest.
    pub fn bytes(&self, stored: StoredRows, halo: usize, fields: usize, pair_bytes: usize) -> [u64; 2] {
        let BlockShape { blocks, bins, height, batch, pairs, .. } = *self;
        let block = 4 * (blocks.rows * self.there() * bins) as u64;
        let images = 4 * (self.corrected() * batch * bins) as u64 * self.images();
        let spectra = (pairs * pair_bytes) as u64;
        [block, RowCorrector::bytes(stored, [bins, height], self.size(), halo, fields) + images + spectra]
    }

    /// Projections of a block that are on the device.
    fn there(&self) -> usize {
        if self.on_host() { self.kept_batches * self.batch } else { self.projections }
    }

    /// Images of every projection of a batch besides those of the block: before each step on images.
    fn images(&self) -> u64 {
        u64::from(self.blocks.rotation_halo > 0) + u64::from(self.blocks.images.is_some())
    }
}

/// Corrects blocks of rows of projections.
pub struct BlockCorrector {
    shape: BlockShape,
    batches: BatchCorrector,
    rows: BlockRows,
}

/// The block that was corrected last, `[row][projection][bin]`.
enum BlockRows {
    Device(Buffer<f32>),
    Host(Box<KeptBlock>),
}

impl BlockCorrector {
    /// Builds the kernels and allocates memory, but for that of a block that the host keeps.
    ///
    /// # Errors
    /// The device's.
    pub fn new(session: &Session, correction: &RowCorrection, stored: StoredRows, shape: BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, projections, .. } = shape;
        let batches = BatchCorrector::new(session, correction, stored, shape)?;
        // the host keeps blocks only for steps on images: others do not need them
        if !batches.has_images() && shape.on_host() {
            return Err(Error::Internal("blocks of other steps".into()));
        }
        Ok(BlockCorrector {
            batches,
            rows: match shape.on_host() {
                true => BlockRows::Host(Box::new(KeptBlock::new(session, &shape)?)),
                false => {
                    let values = blocks.rows * projections * bins;
                    BlockRows::Device(session.buffer(values, CL_MEM_READ_WRITE, "a block of rows")?)
                }
            },
            shape,
        })
    }

    /// Ends what goes on in threads of its own.
    pub fn end(&mut self) {
        if let BlockRows::Host(kept) = &mut self.rows {
            kept.end();
        }
    }

    /// Most bytes of the samples of a batch.
    pub fn most_bytes(&self) -> usize {
        self.batches.most_bytes()
    }

    /// Rows of the detector of a block.
    fn rows(&self, block: usize) -> Range<usize> {
        self.shape.blocks.of(block, self.shape.height)
    }

    /// Bytes of the samples of a batch of projections of a block.
    pub fn sample_bytes(&self, block: usize, projections: usize) -> usize {
        self.batches.sample_bytes(&self.rows(block), projections)
    }

    /// Corrects a batch of projections of a block, from samples `[projection][row][bin]` of all rows that are needed, and
    /// counts what is replaced in some rows of the block, the same for all batches. These come in any order; their
    /// projections begin at an even number. Waits for the samples' copy and for memory of the host, but not for the kernels.
    ///
    /// # Errors
    /// The device's, [`Error::Memory`] when the host has too little, and [`Error::Internal`] for what does not fit.
    pub fn correct(
        &mut self,
        session: &Session,
        (block, counted): (usize, &Range<usize>),
        projections: Range<usize>,
        samples: &[u8],
    ) -> Result<()> {
        let BlockShape { bins, projections: all, .. } = self.shape;
        let part = BatchPart { wanted: self.rows(block), counted: counted.clone(), projections };
        if let BlockRows::Host(kept) = &mut self.rows {
            kept.next_batch(session)?;
        }
        let into_block = match &self.rows {
            BlockRows::Device(values) => ImageRows { values, first: part.projections.start * bins, stride: all * bins },
            BlockRows::Host(kept) => {
                ImageRows { values: kept.batch(), first: 0, stride: part.projections.len() * bins }
            }
        };
        let StartedBatch { last, copying } = self.batches.start(session, &part, samples, &into_block)?;
        match (&mut self.rows, last) {
            (BlockRows::Device(_), _) => {}
            (BlockRows::Host(kept), Some(last)) => kept.take(session, &part.projections, &last)?,
            (BlockRows::Host(_), None) => return Err(Error::Internal(format!("no step for block {block}"))),
        }
        copying.wait()
    }

    /// Waits for a block, and hands out and forgets what was replaced in the `count` rows that are counted.
    ///
    /// # Errors
    /// The device's.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<RowCounts> {
        self.batches.take_counts(session, count)
    }

    /// Copies rows of the detector, of the block that was corrected, to `sinograms`, one after the other from value `first` on
    /// with `stride` values from one to the next. Waits only for what the host keeps.
    ///
    /// # Errors
    /// The device's, and [`Error::Internal`] for what does not fit.
    pub fn copy(
        &mut self,
        session: &Session,
        rows: &[usize],
        sinograms: &mut Buffer<f32>,
        (first, stride): (usize, usize),
    ) -> Result<()> {
        let length = self.shape.projections * self.shape.bins;
        let Some(last) = rows.len().checked_sub(1) else { return Ok(()) };
        session.expect_length(sinograms, first + last * stride + length, "sinograms")?;
        let of_block = self.shape.blocks.rows;
        let rows: Vec<usize> = rows.iter().map(|row| row % of_block).collect();
        let block = match &mut self.rows {
            BlockRows::Host(kept) => return kept.copy(session, &rows, sinograms, (first, stride)),
            BlockRows::Device(block) => block,
        };
        rows.iter().enumerate().try_for_each(|(at, row)| {
            let (from, place) = (row * length, first + at * stride);
            // SAFETY: a block has this row, and the sinograms were checked.
            unsafe { session.uploads.enqueue_copy_buffer(block, sinograms, 4 * from, 4 * place, 4 * length, &[]) }
                .map(drop)
                .map_err(|e| cl_error("copying sinograms", session.device_name(), e))
        })
    }
}
