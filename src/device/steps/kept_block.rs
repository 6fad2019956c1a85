//! Blocks of corrected rows that the host keeps, because the device's memory does not hold them: the one whose slices are
//! computed, and the next one, which is filled meanwhile.

use super::blocks::BlockShape;
use super::{HostMemory, Session, cl_error};
use crate::error::{Error, Result};
use opencl3::command_queue::CommandQueue;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::types::CL_NON_BLOCKING;
use std::collections::VecDeque;
use std::ops::Range;

/// Bytes of a part of the block, if rows are not larger: drivers limit single allocations.
const PART: usize = 256 << 20;

/// Batches of projections on the device: one is copied to the host while the next is corrected.
pub(super) const BATCHES: usize = 2;

/// Blocks in memory that the device copies to and from.
pub(super) struct KeptBlocks {
    shape: BlockShape,
    /// Those that there is memory for, in the order in which they were begun.
    blocks: VecDeque<KeptBlock>,
    /// Rows of a part.
    part_rows: usize,
    /// Values of a row.
    row: usize,
    /// Taken in turn.
    batches: VecDeque<Batch>,
    /// Queue for copies to the host.
    queue: CommandQueue,
}

/// The memory of a block.
struct KeptBlock {
    /// Number of the block that it is for, once there is one.
    number: Option<usize>,
    /// `[row][projection][bin]`, some rows each.
    parts: Vec<HostMemory>,
}

/// A batch of projections on the device.
struct Batch {
    /// `[row][projection][bin]`.
    rows: Buffer<f32>,
    /// The last copy of them, and the block that it goes to.
    copied: Option<(usize, Event)>,
}

impl KeptBlock {
    fn new(session: &Session, rows: usize, part_rows: usize, row: usize) -> Result<Self> {
        let firsts = (0..rows).step_by(part_rows);
        let parts = firsts.map(|first| session.host_memory(part_rows.min(rows - first) * row));
        Ok(KeptBlock { number: None, parts: parts.collect::<Result<_>>()? })
    }
}

impl KeptBlocks {
    /// With memory for one block; that for others is made when it is needed, as the driver takes long to pin it.
    pub fn new(session: &Session, shape: &BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, projections, batch, .. } = *shape;
        let row = projections * bins;
        let part_rows = (PART / (4 * row).max(1)).clamp(1, blocks.rows.max(1));
        let on_device = || -> Result<_> {
            let rows = session.buffer(blocks.rows * batch * bins, CL_MEM_READ_WRITE, "a batch of a block of rows")?;
            Ok(Batch { rows, copied: None })
        };
        Ok(KeptBlocks {
            shape: *shape,
            blocks: VecDeque::from([KeptBlock::new(session, blocks.rows, part_rows, row)?]),
            part_rows,
            row,
            batches: (0..BATCHES).map(|_| on_device()).collect::<Result<_>>()?,
            queue: session.new_queue()?,
        })
    }

    /// Makes memory ready for a block that is begun, unless it was before: that of the block that was begun first, or, if slices
    /// of that are still to be computed (`ahead`), other memory.
    pub fn begin(&mut self, session: &Session, block: usize, ahead: bool) -> Result<()> {
        if self.blocks.iter().any(|kept| kept.number == Some(block)) {
            return Ok(());
        }
        if ahead && self.blocks.len() < self.shape.on_host {
            self.blocks.push_back(KeptBlock::new(session, self.shape.blocks.rows, self.part_rows, self.row)?);
        } else {
            self.blocks.rotate_left(1);
        }
        if let Some(kept) = self.blocks.back_mut() {
            kept.number = Some(block);
        }
        Ok(())
    }

    /// Goes on to a batch on the device that has been copied.
    pub fn next_batch(&mut self, session: &Session) -> Result<()> {
        self.batches.rotate_left(1);
        self.batches[0].copied.take().map_or(Ok(()), |(_, copied)| self.wait(session, &copied))
    }

    /// Room on the device for a batch.
    pub fn batch(&self) -> &Buffer<f32> {
        &self.batches[0].rows
    }

    /// Copies the batch of these projections of all rows of a block that was begun, when a kernel has `corrected` it. Does not
    /// wait.
    pub fn take(
        &mut self,
        session: &Session,
        block: usize,
        projections: &Range<usize>,
        corrected: &Event,
    ) -> Result<()> {
        let bins = self.shape.bins;
        let (stride, count) = (self.row, projections.len() * bins);
        if projections.end * bins > stride {
            return Err(Error::Internal(format!("projections {projections:?} of rows of {stride} values")));
        }
        let failed = |e| cl_error("downloading rows", session.device_name(), e);
        let batch = &mut self.batches[0];
        session.expect_length(&batch.rows, self.shape.blocks.rows * count, "rows")?;
        let kept = self.blocks.iter_mut().find(|kept| kept.number == Some(block)).ok_or_else(|| not_kept(block))?;
        // other queues wait only for what the driver has got
        session.uploads.flush().map_err(failed)?;
        let mut first = 0;
        for part in &mut kept.parts {
            let rows = part.len() / stride;
            let (from, to) = ([4 * first * count, 0, 0], [4 * projections.start * bins, 0, 0]);
            // SAFETY: the batch has these rows, the part has these columns of as many, and stays until the copy is over.
            let copied = unsafe {
                self.queue.enqueue_read_buffer_rect(
                    &batch.rows,
                    CL_NON_BLOCKING,
                    from.as_ptr(),
                    to.as_ptr(),
                    [4 * count, rows, 1].as_ptr(),
                    4 * count,
                    0,
                    4 * stride,
                    0,
                    part.as_mut_ptr().cast(),
                    &[corrected.get()],
                )
            };
            batch.copied = Some((block, copied.map_err(failed)?));
            first += rows;
        }
        self.queue.flush().map_err(failed)
    }

    /// Copies rows of a block to places in `sinograms`, in values. Waits for what goes to the block and for these copies, but not
    /// for kernels that correct another block.
    pub fn copy(
        &mut self,
        session: &Session,
        block: usize,
        rows: impl Iterator<Item = (usize, usize)>,
        sinograms: &mut Buffer<f32>,
    ) -> Result<()> {
        for number in 0..self.batches.len() {
            if let Some((_, copied)) = self.batches[number].copied.take_if(|(of, _)| *of == block) {
                self.wait(session, &copied)?;
            }
        }
        let kept = self.blocks.iter().find(|kept| kept.number == Some(block)).ok_or_else(|| not_kept(block))?;
        let mut last = Ok(None);
        for (row, place) in rows {
            let values = &kept.parts[row / self.part_rows][row % self.part_rows * self.row..][..self.row];
            // SAFETY: waited for below, whatever happens, and the driver checks the place against the buffer's.
            last = unsafe { session.copies.enqueue_write_buffer(sinograms, CL_NON_BLOCKING, 4 * place, values, &[]) }
                .map(Some);
            if last.is_err() {
                break;
            }
        }
        let failed = |e| cl_error("uploading sinograms", session.device_name(), e);
        match last {
            Ok(Some(last)) => session.sleep_until(&session.copies, &last).map_err(failed),
            Ok(None) => Ok(()),
            Err(e) => {
                session.copies.finish().map_err(failed)?;
                Err(failed(e))
            }
        }
    }

    fn wait(&self, session: &Session, copied: &Event) -> Result<()> {
        session.sleep_until(&self.queue, copied).map_err(|e| cl_error("downloading rows", session.device_name(), e))
    }
}

/// A block whose batches did not come.
fn not_kept(block: usize) -> Error {
    Error::Internal(format!("block {block} is not kept"))
}

impl Drop for KeptBlocks {
    /// Nothing is copied into memory that is gone.
    fn drop(&mut self) {
        let _ = self.queue.finish();
    }
}
