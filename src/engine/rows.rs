//! The path of rows from the input to sinograms on a device: what is read at once, and how the device processes it.

use super::source::Source;
use super::stages::parts_of;
use crate::device::{BlockCorrector, BlockShape, HostMemory, RowCorrector, Session};
use crate::error::{Error, Result};
use crate::kernel::{StepBackend, StepBackends};
use crate::plan::{Pieces, Plan};
use crate::steps::Counts;
use opencl3::memory::Buffer;
use std::collections::BTreeSet;
use std::ops::Range;

/// What is read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Portion {
    /// Sinograms, or samples as they are stored, of slices at these positions of the list.
    Slices(Range<usize>),
    /// Samples of some projections of a block of rows, of which some are counted.
    Block { block: usize, projections: Range<usize>, counted: Range<usize> },
    /// Nothing: the rows of these slices are in the block that was read before.
    OfBlock(Range<usize>),
}

/// What a device wants to get.
#[derive(Clone, Copy)]
pub(super) struct RowsPlan {
    pub steps: StepBackends,
    pub pieces: Pieces,
    blocks: Option<BlockShape>,
}

impl From<&Plan> for RowsPlan {
    fn from(plan: &Plan) -> Self {
        RowsPlan { steps: plan.steps, pieces: plan.pieces, blocks: plan.blocks }
    }
}

impl RowsPlan {
    /// Sinograms, so many at a time.
    pub fn of_host(most: usize) -> Self {
        RowsPlan { steps: StepBackends::HOST, pieces: Pieces { read: most, written: most, at_once: 1 }, blocks: None }
    }

    /// What is read for a chunk of a list of slices, in order. `loaded` is the block that was read last.
    pub fn portions(
        &self,
        source: &Source,
        slices: &[usize],
        chunk: &Range<usize>,
        loaded: &mut Option<usize>,
    ) -> Vec<Portion> {
        let of_chunk = |part: Range<usize>| chunk.start + part.start..chunk.start + part.end;
        let Some(shape) = self.blocks else {
            let parts = match self.steps.rows {
                StepBackend::Device => source.parts(&slices[chunk.clone()], self.pieces.read),
                StepBackend::Host => parts_of(chunk.len(), self.pieces.read).collect(),
            };
            return parts.into_iter().map(|part| Portion::Slices(of_chunk(part))).collect();
        };
        let block_of = |slice: usize| slice / shape.blocks.rows;
        let (mut portions, mut start) = (Vec::new(), chunk.start);
        for same in slices[chunk.clone()].chunk_by(|a, b| block_of(*a) == block_of(*b)) {
            let block = block_of(same[0]);
            if loaded.replace(block) != Some(block) {
                let counted = source.counted(&shape.blocks.of(block, shape.height));
                let batches = parts_of(shape.projections, shape.batch);
                portions.extend(batches.map(|projections| Portion::Block {
                    block,
                    projections,
                    counted: counted.clone(),
                }));
            }
            portions.push(Portion::OfBlock(start..start + same.len()));
            start += same.len();
        }
        portions
    }

    /// Reads a portion into memory that holds it, and corrects it unless the device does; what was replaced.
    pub fn read(
        &self,
        source: &Source,
        slices: &[usize],
        portion: &Portion,
        values: &mut HostMemory,
    ) -> Result<Counts> {
        match (portion, self.blocks) {
            (Portion::Slices(positions), _) => {
                let which = &slices[positions.clone()];
                if self.steps.rows == StepBackend::Device {
                    let bytes = source.stored_bytes(which);
                    source.read_stored(which, &mut values.as_bytes_mut()[..bytes])?;
                    return Ok(Counts::default());
                }
                source.read_into(which, self.steps, &mut values[..which.len() * source.sinogram_len()])
            }
            (Portion::Block { block, projections, .. }, Some(shape)) => {
                let rows = shape.blocks.of(*block, shape.height);
                source.read_block(rows, projections.clone(), values.as_bytes_mut())?;
                Ok(Counts::default())
            }
            _ => Ok(Counts::default()),
        }
    }
}

/// What corrects rows on a device.
pub(super) enum DeviceRows {
    /// Some rows at a time.
    Pieces(Box<RowCorrector>),
    /// Blocks of rows, because steps need the rows around them.
    Blocks(Box<BlockCorrector>),
}

/// What was replaced in the data that a device corrected.
pub(super) struct Found {
    /// The block, if rows are corrected in blocks.
    block: Option<usize>,
    counts: Counts,
}

/// What was replaced in the data that devices correct; in a block once, whichever devices take slices from it.
#[derive(Default)]
pub(super) struct DeviceCounts {
    pub all: Counts,
    blocks: BTreeSet<usize>,
}

impl DeviceCounts {
    pub fn add(&mut self, found: Found) {
        if found.block.is_none_or(|block| self.blocks.insert(block)) {
            self.all += found.counts;
        }
    }
}

impl DeviceRows {
    /// Ends what goes on in threads of its own.
    pub fn end(&mut self) {
        match self {
            DeviceRows::Pieces(_) => {}
            DeviceRows::Blocks(corrector) => corrector.end(),
        }
    }

    /// Most bytes that are read at once.
    pub fn most_bytes(&self) -> usize {
        match self {
            DeviceRows::Pieces(corrector) => corrector.most_bytes(),
            DeviceRows::Blocks(corrector) => corrector.most_bytes(),
        }
    }

    /// Makes sinograms of a portion, of `in_slice` values each, the first slice of the list at position `first`.
    ///
    /// # Errors
    /// The device's.
    pub fn correct(
        &mut self,
        session: &Session,
        (portion, bytes): (&Portion, &[u8]),
        (slices, first): (&[usize], usize),
        (rows, in_slice): (&mut Buffer<f32>, usize),
    ) -> Result<()> {
        match (self, portion) {
            (DeviceRows::Pieces(corrector), Portion::Slices(positions)) => {
                let (which, place) = (&slices[positions.clone()], positions.start - first);
                corrector.run(session, &bytes[..corrector.sample_bytes(which)], which, place, (rows, in_slice))
            }
            (DeviceRows::Blocks(corrector), Portion::Block { block, projections, counted }) => {
                let samples = &bytes[..corrector.sample_bytes(*block, projections.len())];
                corrector.correct(session, (*block, counted), projections.clone(), samples)
            }
            (DeviceRows::Blocks(corrector), Portion::OfBlock(positions)) => corrector.copy(
                session,
                &slices[positions.clone()],
                rows,
                ((positions.start - first) * in_slice, in_slice),
            ),
            _ => Err(Error::Internal(format!("{portion:?} are not for this device"))),
        }
    }

    /// Waits for a portion that completes a block, or a chunk of `slices`; what was replaced there.
    ///
    /// # Errors
    /// The device's.
    pub fn wait(
        &mut self,
        session: &Session,
        source: &Source,
        portion: &Portion,
        complete: Option<&[usize]>,
    ) -> Result<Option<Found>> {
        Ok(match (self, portion, complete) {
            (DeviceRows::Pieces(corrector), _, Some(slices)) => {
                let found = corrector.take_counts(session, slices.len())?;
                let rows = slices.iter().copied();
                Some(Found { block: None, counts: source.preparation.counts(rows, &source.scan.used, &found) })
            }
            (DeviceRows::Blocks(corrector), Portion::Block { block, projections, counted }, _)
                if projections.end == source.scan.used.len() =>
            {
                let found = corrector.take_counts(session, counted.len())?;
                let counts = source.preparation.counts(counted.clone(), &source.scan.used, &found);
                Some(Found { block: Some(*block), counts })
            }
            (DeviceRows::Blocks(_), _, Some(_)) => {
                session.finish_uploads()?;
                None
            }
            _ => None,
        })
    }
}
