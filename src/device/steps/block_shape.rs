//! How rows are corrected in blocks, and the bytes that this takes.

use super::Session;
use super::correction::RowCorrector;
use super::images::RowBlocks;
use super::samples::PieceSize;
use crate::source::StoredRows;

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
        match self.place {
            BlockPlace::Nowhere => 0,
            BlockPlace::Device => self.projections,
            BlockPlace::Host { batches } => batches * self.batch,
        }
    }

    /// Images of every projection of a batch besides those of the block: before each step on images.
    fn images(&self) -> u64 {
        u64::from(self.blocks.rotation_halo > 0) + u64::from(self.blocks.images.is_some())
    }
}
