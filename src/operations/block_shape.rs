//! Sizes of the blocks in which rows are corrected, and the bytes that these take.

use super::row_blocks::RowBlocks;
use super::samples::PieceSize;
use crate::device::{BufferLayout, KeptBlock, Session};

/// The place where the corrected rows of a block stay until their slices have been computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPlace {
    /// Nowhere: they go straight to where they are needed, as no step needs rows around them.
    Nowhere,
    /// On the device.
    Device,
    /// In host memory, because the device memory does not hold them; `batches` batches of them are on the device at a
    /// time.
    Host { batches: usize },
}

/// Sizes of the data that a device holds to correct blocks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    pub blocks: RowBlocks,
    /// Number of bins of the detector.
    pub bins: usize,
    /// Number of rows of the detector.
    pub height: usize,
    /// Number of projections of the scan.
    pub projections: usize,
    /// Number of projections that are copied and corrected at once: an even number where images are filtered.
    pub batch: usize,
    /// Number of pairs of projections that are filtered at once.
    pub pairs: usize,
    /// Number of batches whose samples are on the device together.
    pub at_once: usize,
    /// Number of rows in which replaced values are counted until the counts are taken.
    pub counted: usize,
    pub place: BlockPlace,
}

impl BlockShape {
    /// Returns the shape of blocks of a detector of `[bins, height]` whose rows go straight to where they are needed,
    /// with all projections at once.
    pub fn straight(blocks: RowBlocks, [bins, height]: [usize; 2], projections: usize) -> Self {
        let (batch, counted, place) = (projections, blocks.rows, BlockPlace::Nowhere);
        BlockShape { blocks, bins, height, projections, batch, pairs: 1, at_once: 1, counted, place }
    }

    /// Returns the shape with batches of `batch` projections, of which one is copied while another is corrected, and
    /// with `bytes` bytes for images that are filtered.
    pub fn in_batches(self, session: &Session, batch: usize, bytes: usize) -> Self {
        let of_pair = self.blocks.pair_bytes(&session.facts, session.image_backend).max(1);
        BlockShape { batch, pairs: (bytes / of_pair).clamp(1, (batch / 2).max(1)), at_once: 2, ..self }
    }

    /// Reports whether blocks stay in host memory.
    pub fn on_host(&self) -> bool {
        matches!(self.place, BlockPlace::Host { .. })
    }

    /// Returns the largest number of rows that are corrected for a block.
    pub(super) fn corrected(&self) -> usize {
        (self.blocks.rows + 2 * self.blocks.halo()).min(self.height)
    }

    pub(super) fn size(&self) -> PieceSize {
        PieceSize { rows: self.corrected(), projections: self.batch, counted: self.counted, at_once: self.at_once }
    }

    /// Returns the bytes of a block in host memory.
    pub fn kept_bytes(&self) -> u64 {
        if self.on_host() { 4 * (self.blocks.rows * self.projections * self.bins) as u64 } else { 0 }
    }

    /// Returns the buffers for the rows of a block that are kept on the device.
    pub fn kept_layout(&self) -> BufferLayout {
        let BlockShape { blocks, bins, projections, batch, .. } = *self;
        match self.place {
            BlockPlace::Nowhere => BufferLayout::default(),
            BlockPlace::Device => {
                BufferLayout::default().with::<f32>("a block of rows", blocks.rows * projections * bins)
            }
            BlockPlace::Host { batches } => {
                BufferLayout::default().several::<f32>(batches, KeptBlock::BATCH, blocks.rows * batch * bins)
            }
        }
    }
}
