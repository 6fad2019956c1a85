//! How rows are corrected in blocks, and the bytes that this takes.

use super::images::RowBlocks;
use super::samples::PieceSize;
use super::{BufferLayout, Session};

/// Where the corrected rows of a block stay until their slices have been computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPlace {
    /// Nowhere: they go straight to where they are needed, as no step needs rows around them.
    Nowhere,
    /// On the device.
    Device,
    /// In the host's memory, because the device's does not hold them; there, so many batches of them are under way.
    Host { batches: usize },
}

/// Sizes of what a device holds to correct blocks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    pub blocks: RowBlocks,
    /// Bins and rows of the detector.
    pub bins: usize,
    pub height: usize,
    /// Projections of the scan.
    pub projections: usize,
    /// Projections that are copied and corrected at once: an even number where images are filtered.
    pub batch: usize,
    /// Pairs of projections that are filtered at once.
    pub pairs: usize,
    /// Batches whose samples are on the device together.
    pub at_once: usize,
    /// Rows in which replaced values are counted until the counts are taken.
    pub counted: usize,
    pub place: BlockPlace,
}

impl BlockShape {
    /// Blocks of a detector of `[bins, height]` whose rows go straight to where they are needed, of all projections at once.
    pub fn straight(blocks: RowBlocks, [bins, height]: [usize; 2], projections: usize) -> Self {
        let (batch, counted, place) = (projections, blocks.rows, BlockPlace::Nowhere);
        BlockShape { blocks, bins, height, projections, batch, pairs: 1, at_once: 1, counted, place }
    }

    /// The same in batches of so many projections, of which one is copied while another is corrected, with this many bytes
    /// for images that are filtered.
    pub fn in_batches(self, session: &Session, batch: usize, bytes: usize) -> Self {
        let of_pair = self.blocks.pair_bytes(&session.facts, session.image_backend).max(1);
        BlockShape { batch, pairs: (bytes / of_pair).clamp(1, (batch / 2).max(1)), at_once: 2, ..self }
    }

    /// Whether blocks stay in the host's memory.
    pub fn on_host(&self) -> bool {
        matches!(self.place, BlockPlace::Host { .. })
    }

    /// Most rows that are corrected for a block.
    pub(super) fn corrected(&self) -> usize {
        (self.blocks.rows + 2 * self.blocks.halo()).min(self.height)
    }

    pub(super) fn size(&self) -> PieceSize {
        PieceSize { rows: self.corrected(), projections: self.batch, counted: self.counted, at_once: self.at_once }
    }

    /// Bytes of a block in the host's memory.
    pub fn kept_bytes(&self) -> u64 {
        if self.on_host() { 4 * (self.blocks.rows * self.projections * self.bins) as u64 } else { 0 }
    }

    /// Buffers for what is kept of a block on the device.
    pub fn kept_layout(&self) -> BufferLayout {
        let BlockShape { blocks, bins, projections, batch, .. } = *self;
        match self.place {
            BlockPlace::Nowhere => BufferLayout::default(),
            BlockPlace::Device => {
                BufferLayout::default().with::<f32>("a block of rows", blocks.rows * projections * bins)
            }
            BlockPlace::Host { batches } => BufferLayout::default().several::<f32>(
                batches,
                "a batch of a block of rows",
                blocks.rows * batch * bins,
            ),
        }
    }
}
