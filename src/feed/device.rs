//! Rows that a device corrects, for its own slices.

use super::{Piece, ScanRows};
use crate::device::Session;
use crate::error::{Error, Result};
use crate::operations::{BlockCorrector, BlockShape, DetectorBatch, DeviceRows, RowCorrection};
use crate::steps::Counts;
use opencl3::memory::Buffer;
use std::collections::BTreeSet;

/// Correction of rows on a device, which makes sinograms of what was read.
pub struct DeviceFeed {
    corrector: BlockCorrector,
}

/// Counts of replaced values in the data that a device corrected.
pub struct FoundReplaced {
    /// Number of the block, if blocks are kept.
    block: Option<usize>,
    counts: Counts,
}

/// Counts of replaced values in the data that all devices correct; a block is counted once, whichever devices take
/// slices from it.
#[derive(Default)]
pub struct DeviceCounts {
    pub all: Counts,
    blocks: BTreeSet<usize>,
}

impl DeviceCounts {
    /// Adds the counts of a device.
    pub fn add(&mut self, found: FoundReplaced) {
        if found.block.is_none_or(|block| self.blocks.insert(block)) {
            self.all += found.counts;
        }
    }
}

/// A chunk of slices on its way to a device: numbers of its slices, and where their sinograms go.
pub struct FedChunk<'a> {
    /// List of the numbers of slices.
    pub slices: &'a [usize],
    /// Position of the chunk's first slice in the list.
    pub first: usize,
    pub sinograms: &'a mut Buffer<f32>,
    /// Number of values from one sinogram to the next.
    pub stride: usize,
}

impl DeviceFeed {
    /// Builds kernels and allocates memory.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] if it cannot do all steps.
    pub fn new(session: &Session, scan: &ScanRows, shape: BlockShape) -> Result<Self> {
        let Some(correction) = scan.correction() else {
            return Err(Error::Internal("a step on rows of projections has no kernel".into()));
        };
        DeviceFeed::with(session, scan, &correction, shape)
    }

    /// Builds kernels and allocates memory for a correction, which may end before that of the scan does.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn with(session: &Session, scan: &ScanRows, correction: &RowCorrection, shape: BlockShape) -> Result<Self> {
        let stored = scan.stack.stored();
        Ok(DeviceFeed { corrector: BlockCorrector::new(session, correction, stored, scan.order(), shape)? })
    }

    /// Ends what the corrector does in threads of its own.
    pub fn end(&mut self) {
        self.corrector.end();
    }

    /// Returns the largest number of bytes that are read at once.
    pub fn most_bytes(&self) -> usize {
        self.corrector.most_bytes()
    }

    /// Makes the sinograms of a piece that was read.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn correct(
        &mut self,
        session: &Session,
        scan: &ScanRows,
        piece: &Piece,
        samples: &[u8],
        chunk: FedChunk,
    ) -> Result<()> {
        let FedChunk { slices, first, sinograms, stride } = chunk;
        match piece {
            Piece::Slices(positions) => {
                let place = positions.start - first;
                let batch = scan.of_all_projections(&slices[positions.clone()], place);
                let into = DeviceRows { values: sinograms, first: place * stride, stride };
                self.correct_into(session, scan, &batch, samples, &into)
            }
            Piece::Batch { batch, .. } => self.corrector.correct(session, batch, &samples[..scan.sample_bytes(batch)]),
            Piece::OfBlock(positions) => {
                let place = (positions.start - first) * stride;
                self.corrector.copy(session, &slices[positions.clone()], sinograms, place, stride)
            }
            Piece::Projections(batch) => {
                let into = DeviceRows { values: sinograms, first: 0, stride };
                self.correct_into(session, scan, batch, samples, &into)
            }
        }
    }

    /// Corrects a batch of rows, whose samples are at the beginning of `samples`, into a buffer. Waits until the device has the
    /// samples, but not for its kernels.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn correct_into(
        &mut self,
        session: &Session,
        scan: &ScanRows,
        batch: &DetectorBatch,
        samples: &[u8],
        into: &DeviceRows,
    ) -> Result<()> {
        self.corrector.correct_into(session, batch, &samples[..scan.sample_bytes(batch)], into)
    }

    /// Waits for a piece that completes a block, or a chunk of slices, or is a part of the projections for an inclined axis.
    /// Returns the counts of values replaced in what is complete.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn wait(
        &mut self,
        session: &Session,
        scan: &ScanRows,
        piece: &Piece,
        complete: Option<&[usize]>,
    ) -> Result<Option<FoundReplaced>> {
        Ok(match (piece, complete) {
            (Piece::Slices(_), Some(slices)) => {
                let found = self.corrector.take_counts(session, slices.len())?;
                let counts = scan.preparation.counts(slices.iter().copied(), scan.used, &found);
                Some(FoundReplaced { block: None, counts })
            }
            (Piece::Batch { block, batch }, _) if batch.projections.end == scan.used.len() => {
                Some(FoundReplaced { block: Some(*block), counts: self.counts_of(session, scan, batch)? })
            }
            (Piece::Projections(batch), _) if batch.projections.end == scan.used.len() => {
                Some(FoundReplaced { block: None, counts: self.counts_of(session, scan, batch)? })
            }
            (Piece::Projections(_), _) => {
                session.finish_uploads()?;
                None
            }
            (Piece::OfBlock(_), Some(_)) => {
                session.finish_uploads()?;
                None
            }
            _ => None,
        })
    }

    /// Waits for all batches of some rows, of which this is the last, and returns the counts of values replaced there.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn counts_of(&mut self, session: &Session, scan: &ScanRows, last: &DetectorBatch) -> Result<Counts> {
        if last.counted.is_empty() {
            session.finish_uploads()?;
            return Ok(Counts::default());
        }
        let found = self.corrector.take_counts(session, last.counted.len())?;
        let rows = last.rows[last.counted.clone()].iter().copied();
        Ok(scan.preparation.counts(rows, scan.used, &found))
    }
}
