//! A block of corrected rows that the host keeps, because the device's memory does not hold it.

use super::blocks::BlockShape;
use super::{HostMemory, Session, cl_error};
use crate::error::{Error, Result};
use opencl3::command_queue::CommandQueue;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::types::CL_NON_BLOCKING;
use std::collections::VecDeque;
use std::ops::Range;

/// Most bytes of a part of the block, if rows are not larger; drivers limit single allocations, too.
const PART: usize = 1 << 30;

/// The block, in memory that the device copies to and from.
pub(super) struct KeptBlock {
    /// `[row][projection][bin]`, some rows each.
    parts: Vec<HostMemory>,
    /// Rows of a part.
    part_rows: usize,
    /// Values of a row.
    row: usize,
    /// Taken in turn: one is copied to the host while the next is corrected.
    batches: VecDeque<Batch>,
    /// Queue for copies to the host.
    queue: CommandQueue,
}

/// A batch of projections on the device.
struct Batch {
    /// `[row][projection][bin]`.
    rows: Buffer<f32>,
    /// The last copy of them.
    copied: Option<Event>,
}

impl KeptBlock {
    pub fn new(session: &Session, shape: &BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, projections, batch, .. } = *shape;
        let row = projections * bins;
        let part = PART.min(session.facts.max_allocation as usize);
        let part_rows = (part / (4 * row).max(1)).clamp(1, blocks.rows.max(1));
        let firsts = (0..blocks.rows).step_by(part_rows);
        let parts = firsts.map(|first| session.host_memory(part_rows.min(blocks.rows - first) * row));
        let on_device = || -> Result<_> {
            let rows = session.buffer(blocks.rows * batch * bins, CL_MEM_READ_WRITE, "a batch of a block of rows")?;
            Ok(Batch { rows, copied: None })
        };
        Ok(KeptBlock {
            parts: parts.collect::<Result<_>>()?,
            part_rows,
            row,
            batches: (0..shape.kept_batches).map(|_| on_device()).collect::<Result<_>>()?,
            queue: session.new_queue()?,
        })
    }

    /// Goes on to a batch on the device that has been copied.
    pub fn next_batch(&mut self, session: &Session) -> Result<()> {
        self.batches.rotate_left(1);
        self.batches[0].copied.take().map_or(Ok(()), |copied| self.wait(session, &copied))
    }

    /// Room on the device for a batch.
    pub fn batch(&self) -> &Buffer<f32> {
        &self.batches[0].rows
    }

    /// Copies the batch of these projections of all rows, of `bins` bins, when a kernel has `corrected` it. Does not wait.
    pub fn take(
        &mut self,
        session: &Session,
        projections: &Range<usize>,
        bins: usize,
        corrected: &Event,
    ) -> Result<()> {
        let (stride, count) = (self.row, projections.len() * bins);
        if projections.end * bins > stride {
            return Err(Error::Internal(format!("projections {projections:?} of rows of {stride} values")));
        }
        let failed = |e| cl_error("downloading rows", session.device_name(), e);
        let batch = &mut self.batches[0];
        session.expect_length(&batch.rows, self.parts.iter().map(|part| part.len() / stride * count).sum(), "rows")?;
        // other queues wait only for what the driver has got
        session.uploads.flush().map_err(failed)?;
        let mut first = 0;
        for part in &mut self.parts {
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
            batch.copied = Some(copied.map_err(failed)?);
            first += rows;
        }
        self.queue.flush().map_err(failed)
    }

    /// Copies rows of the block to places in `sinograms`, in values. Waits for the block and for the copies.
    pub fn copy(
        &mut self,
        session: &Session,
        rows: impl Iterator<Item = (usize, usize)>,
        sinograms: &mut Buffer<f32>,
    ) -> Result<()> {
        for number in 0..self.batches.len() {
            if let Some(copied) = self.batches[number].copied.take() {
                self.wait(session, &copied)?;
            }
        }
        let mut last = Ok(None);
        for (row, place) in rows {
            let values = &self.parts[row / self.part_rows][row % self.part_rows * self.row..][..self.row];
            // SAFETY: waited for below, whatever happens, and the driver checks the place against the buffer's.
            last = unsafe { session.uploads.enqueue_write_buffer(sinograms, CL_NON_BLOCKING, 4 * place, values, &[]) }
                .map(Some);
            if last.is_err() {
                break;
            }
        }
        match last {
            Ok(Some(last)) => session.wait_for_upload(&last),
            Ok(None) => Ok(()),
            Err(e) => {
                session.finish_uploads()?;
                Err(cl_error("uploading sinograms", session.device_name(), e))
            }
        }
    }

    fn wait(&self, session: &Session, copied: &Event) -> Result<()> {
        session.sleep_until(&self.queue, copied).map_err(|e| cl_error("downloading rows", session.device_name(), e))
    }
}

impl Drop for KeptBlock {
    /// Nothing is copied into memory that is gone.
    fn drop(&mut self) {
        let _ = self.queue.finish();
    }
}
