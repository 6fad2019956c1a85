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
    /// Samples of some projections of a block of rows, of which some are counted; `ahead` of slices of the block before it.
    Block { block: usize, projections: Range<usize>, counted: Range<usize>, ahead: bool },
    /// Nothing: the rows of these slices are in a block that was read before.
    OfBlock(Range<usize>),
}

/// The blocks of rows that were read for a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlocksRead {
    /// The one that slices are taken from.
    current: Option<usize>,
    /// The one that comes next, and how many of its projections have been read ahead.
    next: Option<(usize, usize)>,
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

    /// What is read for a chunk of a list of slices, in order, by a device that has read some blocks before.
    pub fn portions(
        &self,
        source: &Source,
        slices: &[usize],
        chunk: &Range<usize>,
        blocks: &mut BlocksRead,
    ) -> Vec<Portion> {
        let of_chunk = |part: Range<usize>| chunk.start + part.start..chunk.start + part.end;
        let Some(shape) = self.blocks else {
            let parts = match self.steps.rows {
                StepBackend::Device => source.parts(&slices[chunk.clone()], self.pieces.read),
                StepBackend::Host => parts_of(chunk.len(), self.pieces.read).collect(),
            };
            return parts.into_iter().map(|part| Portion::Slices(of_chunk(part))).collect();
        };
        portions_of_blocks(&shape, slices, chunk, blocks, |rows| source.counted(rows))
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

/// What is read for a chunk of slices from blocks of rows, of which some are `counted`: blocks that were not read yet, and, if the
/// host keeps two, after the slices that are taken from a block as large a share of the next block as these are of the block's,
/// so that it is complete when they are all taken. Batches of two blocks never mix.
fn portions_of_blocks(
    shape: &BlockShape,
    slices: &[usize],
    chunk: &Range<usize>,
    read: &mut BlocksRead,
    counted: impl Fn(&Range<usize>) -> Range<usize>,
) -> Vec<Portion> {
    let block_of = |slice: usize| slice / shape.blocks.rows;
    let batches = |block: usize, projections: Range<usize>, ahead: bool| {
        let counted = counted(&shape.blocks.of(block, shape.height));
        parts_of(projections.len(), shape.batch).map(move |part| Portion::Block {
            block,
            projections: projections.start + part.start..projections.start + part.end,
            counted: counted.clone(),
            ahead,
        })
    };
    let (mut portions, mut start) = (Vec::new(), chunk.start);
    for same in slices[chunk.clone()].chunk_by(|a, b| block_of(*a) == block_of(*b)) {
        let block = block_of(same[0]);
        if read.current != Some(block) {
            let done = read.next.filter(|(next, _)| *next == block).map_or(0, |(_, done)| done);
            portions.extend(batches(block, done..shape.projections, false));
            *read = BlocksRead { current: Some(block), next: None };
        }
        let end = start + same.len();
        portions.push(Portion::OfBlock(start..end));
        start = end;
        let first = slices.partition_point(|slice| block_of(*slice) < block);
        let last = slices.partition_point(|slice| block_of(*slice) <= block);
        let Some(next) = slices.get(last).map(|slice| block_of(*slice)).filter(|_| shape.on_host > 1) else { continue };
        let done = read.next.map_or(0, |(_, done)| done);
        let share = (shape.projections * (end - first)).div_ceil(last - first);
        let share = share.next_multiple_of(shape.batch).clamp(done, shape.projections.max(done));
        portions.extend(batches(next, done..share, end < last));
        read.next = Some((next, share));
    }
    portions
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
    /// Most bytes that are read at once.
    pub fn most_bytes(&self) -> usize {
        match self {
            DeviceRows::Pieces(corrector) => corrector.most_bytes(),
            DeviceRows::Blocks(corrector) => corrector.most_bytes(),
        }
    }

    /// Makes sinograms of a portion, of `in_slice` values each, the first slice of the list at position `first`; samples of a block
    /// need no room for them.
    ///
    /// # Errors
    /// The device's.
    pub fn correct(
        &mut self,
        session: &Session,
        (portion, bytes): (&Portion, &[u8]),
        (slices, first): (&[usize], usize),
        (rows, in_slice): (Option<&mut Buffer<f32>>, usize),
    ) -> Result<()> {
        match (self, portion, rows) {
            (DeviceRows::Pieces(corrector), Portion::Slices(positions), Some(rows)) => {
                let (which, place) = (&slices[positions.clone()], positions.start - first);
                corrector.run(session, &bytes[..corrector.sample_bytes(which)], which, place, (rows, in_slice))
            }
            (DeviceRows::Blocks(corrector), Portion::Block { block, projections, counted, ahead }, _) => {
                if *ahead {
                    corrector.read_ahead(session, *block)?;
                }
                let samples = &bytes[..corrector.sample_bytes(*block, projections.len())];
                corrector.correct(session, (*block, counted), projections.clone(), samples)
            }
            (DeviceRows::Blocks(corrector), Portion::OfBlock(positions), Some(rows)) => corrector.copy(
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
            (DeviceRows::Blocks(corrector), Portion::Block { block, projections, counted, .. }, _)
                if projections.end == source.scan.used.len() =>
            {
                let found = corrector.take_counts(session, counted.len())?;
                let counts = source.preparation.counts(counted.clone(), &source.scan.used, &found);
                Some(Found { block: Some(*block), counts })
            }
            (DeviceRows::Blocks(corrector), _, Some(_)) => {
                corrector.finish(session)?;
                None
            }
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::RowBlocks;

    /// Seven projections of blocks of ten rows, two at a time, of which the host keeps some.
    fn shape(on_host: usize) -> BlockShape {
        let blocks = RowBlocks { rows: 10, rotation_halo: 2, filter_halo: 0, images: None };
        BlockShape { blocks, bins: 5, height: 35, projections: 7, batch: 2, pairs: 1, at_once: 2, on_host }
    }

    /// What is read for chunks of so many slices: `b0-2` for these projections of block `b`, with `+` if they are read ahead, and
    /// `=0-4` for slices at these positions of the list.
    fn order(on_host: usize, slices: &[usize], chunk: usize) -> Vec<String> {
        let mut read = BlocksRead::default();
        let of = |portion: &Portion| match portion {
            Portion::Block { block, projections: Range { start, end }, ahead, .. } => {
                format!("{}{start}-{end}{}", ["a", "b", "c", "d"][*block], if *ahead { "+" } else { "" })
            }
            Portion::OfBlock(Range { start, end }) => format!("={start}-{end}"),
            Portion::Slices(positions) => panic!("{positions:?}"),
        };
        let of_chunk = |chunk: Range<usize>| {
            let portions = portions_of_blocks(&shape(on_host), slices, &chunk, &mut read, Range::clone);
            portions.iter().map(of).collect::<Vec<_>>().join(" ")
        };
        parts_of(slices.len(), chunk).map(of_chunk).collect()
    }

    #[test]
    fn blocks_are_read_when_their_first_slice_comes() {
        let all: Vec<usize> = (0..25).collect();
        assert_eq!(
            order(1, &all, 4),
            [
                "a0-2 a2-4 a4-6 a6-7 =0-4",
                "=4-8",
                "=8-10 b0-2 b2-4 b4-6 b6-7 =10-12",
                "=12-16",
                "=16-20",
                "c0-2 c2-4 c4-6 c6-7 =20-24",
                "=24-25",
            ]
        );
    }

    #[test]
    fn a_share_of_the_next_block_follows_the_slices_of_a_chunk() {
        let all: Vec<usize> = (0..25).collect();
        assert_eq!(
            order(2, &all, 4),
            [
                // 2.8 of 7 projections
                "a0-2 a2-4 a4-6 a6-7 =0-4 b0-2+ b2-4+",
                "=4-8 b4-6+",
                // block b is complete when its first slices come
                "=8-10 b6-7 =10-12 c0-2+",
                "=12-16 c2-4+ c4-6+",
                "=16-20 c6-7",
                "=20-24",
                "=24-25",
            ]
        );
    }

    #[test]
    fn blocks_without_slices_in_the_list_are_not_read() {
        let some = [3, 4, 8, 31, 32, 33, 34];
        assert_eq!(
            order(2, &some, 2),
            ["a0-2 a2-4 a4-6 a6-7 =0-2 d0-2+ d2-4+ d4-6+", "=2-3 d6-7 =3-4", "=4-6", "=6-7"]
        );
        // a block that is taken as a whole leaves its memory to the next one
        assert_eq!(order(2, &[1, 2, 11, 12], 2), ["a0-2 a2-4 a4-6 a6-7 =0-2 b0-2 b2-4 b4-6 b6-7", "=2-4"]);
        assert_eq!(order(0, &some[..3], 3), ["a0-2 a2-4 a4-6 a6-7 =0-3"]);
    }

    /// Every projection of every block that is needed comes once, in order, and those of two blocks do not mix.
    #[test]
    fn blocks_are_complete_before_their_slices() {
        for (on_host, chunk, step) in
            (0..3).flat_map(|on_host| (1..14).flat_map(move |chunk| (1..5).map(move |step| (on_host, chunk, step))))
        {
            let slices: Vec<usize> = (step..35).step_by(step).collect();
            let (mut read, mut complete, mut filling, mut taken) = (BlocksRead::default(), Vec::new(), None, 0);
            for chunk in parts_of(slices.len(), chunk) {
                for portion in portions_of_blocks(&shape(on_host), &slices, &chunk, &mut read, Range::clone) {
                    match portion {
                        Portion::Block { block, projections, counted, .. } => {
                            let (of, done) = filling.take().unwrap_or((block, 0));
                            assert_eq!((of, done), (block, projections.start));
                            assert_eq!(counted, block * 10..(block * 10 + 10).min(35));
                            match projections.end {
                                7 => complete.push(block),
                                end => filling = Some((block, end)),
                            }
                        }
                        Portion::OfBlock(positions) => {
                            assert_eq!(positions.start, taken);
                            taken = positions.end;
                            let blocks: BTreeSet<usize> = positions.map(|at| slices[at] / 10).collect();
                            let last: Vec<_> = complete.iter().rev().take(on_host.max(1)).collect();
                            assert!(blocks.len() == 1 && blocks.iter().all(|block| last.contains(&block)));
                        }
                        Portion::Slices(positions) => panic!("{positions:?}"),
                    }
                }
            }
            let needed: BTreeSet<usize> = slices.iter().map(|slice| slice / 10).collect();
            assert_eq!((taken, complete), (slices.len(), needed.into_iter().collect()));
        }
    }
}
