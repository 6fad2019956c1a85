//! A block of corrected rows that the host keeps, because the device memory does not hold it.

use super::host_memory::ComingMemory;
use super::session::Queue;
use super::{BufferLayout, HostMemory, Session, cl_error};
use crate::error::{Error, Result};
use crate::fault;
use opencl3::error_codes::ClError;
use opencl3::event::Event;
use opencl3::memory::Buffer;
use opencl3::types::CL_NON_BLOCKING;
use std::collections::VecDeque;
use std::ops::Range;

/// Largest number of bytes of a part of the block, unless a batch is larger; drivers limit single allocations, too.
const PART: usize = 1 << 30;

/// The block, in host memory that the device copies to and from.
pub struct KeptBlock {
    /// Queue for copies to the host. It is dropped first, which waits, so that nothing is copied into freed memory.
    queue: Queue,
    /// Parts `[row][projection][bin]` of some projections each, in order, as far as they have been needed.
    parts: Vec<HostMemory>,
    coming: ComingMemory,
    shape: PartShape,
    /// Number of rows of the block.
    rows: usize,
    /// Batches that are used in turn: one is copied to the host while the next is corrected.
    batches: VecDeque<Batch>,
}

/// A batch of projections on the device.
struct Batch {
    /// Corrected rows, `[row][projection][bin]`.
    rows: Buffer<f32>,
    /// Event of the last copy of the rows.
    copied: Option<Event>,
}

/// The division of a block into parts.
#[derive(Clone, Copy)]
struct PartShape {
    /// Number of projections of the scan.
    projections: usize,
    /// Number of projections of every part but the last.
    part: usize,
    bins: usize,
}

impl PartShape {
    /// Returns the number of parts.
    fn count(&self) -> usize {
        self.projections.div_ceil(self.part)
    }

    /// Returns the range of projections of a part.
    fn projections_of(&self, number: usize) -> Range<usize> {
        let first = number * self.part;
        first..(first + self.part).min(self.projections)
    }

    /// Returns the number of values in a row of a part.
    fn width(&self, number: usize) -> usize {
        self.projections_of(number).len() * self.bins
    }

    /// Returns the parts that contain some of `projections`, each with the range that it contains.
    fn parts_with(&self, projections: &Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let (shape, Range { start, end }) = (*self, projections.clone());
        (start / shape.part..end.div_ceil(shape.part)).map(move |number| {
            let all = shape.projections_of(number);
            (number, start.max(all.start)..end.min(all.end))
        })
    }
}

impl KeptBlock {
    /// Name of a batch on the device in layouts.
    pub const BATCH: &str = "a batch of a block of rows";

    /// Creates a block of `[rows, projections, bins]` values that comes in batches of `batch` projections, with memory for
    /// `batches_there` batches on the device, buffers of the layout named [`BATCH`](Self::BATCH). The host memory is
    /// allocated from the first batch on, as that takes longer than correcting batches.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        session: &Session,
        [rows, projections, bins]: [usize; 3],
        batch: usize,
        layout: &BufferLayout,
        batches_there: usize,
    ) -> Result<Self> {
        let most = fault::kept_part().unwrap_or(PART).min(session.facts.max_allocation as usize);
        let of_batch = 4 * rows * batch * bins;
        let part = (most / of_batch.max(1)).max(1) * batch;
        let shape = PartShape { projections, part, bins };
        let on_device = || -> Result<_> {
            let rows = layout.buffer(session, Self::BATCH)?;
            Ok(Batch { rows, copied: None })
        };
        let batches = (0..batches_there).map(|_| on_device()).collect::<Result<_>>()?;
        Ok(KeptBlock {
            queue: session.new_queue()?,
            parts: Vec::with_capacity(shape.count()),
            coming: ComingMemory::new(session, (0..shape.count()).map(|number| rows * shape.width(number)).collect())?,
            shape,
            rows,
            batches,
        })
    }

    /// Advances to the next batch on the device, once it has been copied.
    pub fn next_batch(&mut self, session: &Session) -> Result<()> {
        self.coming.begin()?;
        self.batches.rotate_left(1);
        self.batches[0].copied.take().map_or(Ok(()), |copied| self.wait(session, &copied))
    }

    /// Returns the memory of the current batch on the device.
    pub fn batch(&self) -> &Buffer<f32> {
        &self.batches[0].rows
    }

    /// Copies all rows of the batch of `projections` to the host, after the kernel `corrected`. Waits only for host
    /// memory.
    pub fn take(&mut self, session: &Session, projections: &Range<usize>, corrected: &Event) -> Result<()> {
        let KeptBlock { parts, coming, shape, rows, batches, queue } = self;
        let count = projections.len() * shape.bins;
        if projections.end > shape.projections {
            return Err(Error::Internal(format!("projections {projections:?} of {}", shape.projections)));
        }
        let failed = |e| cl_error("downloading rows", session.device_name(), e);
        let batch = &mut batches[0];
        session.expect_length(&batch.rows, *rows * count, "rows")?;
        // other queues wait only for what the driver has got
        session.uploads.flush().map_err(failed)?;
        for (number, some) in shape.parts_with(projections) {
            while parts.len() <= number {
                parts.push(coming.next()?);
            }
            if parts[number].len() < *rows * shape.width(number) {
                return Err(Error::Internal(format!("part {number} of a block has no room for its rows")));
            }
            let first_of_part = shape.projections_of(number).start;
            let from = [4 * (some.start - projections.start) * shape.bins, 0, 0];
            let to = [4 * (some.start - first_of_part) * shape.bins, 0, 0];
            // SAFETY: the batch has these rows, the part has these columns of as many, and stays until the copy is over.
            let copied = unsafe {
                queue.enqueue_read_buffer_rect(
                    &batch.rows,
                    CL_NON_BLOCKING,
                    from.as_ptr(),
                    to.as_ptr(),
                    [4 * some.len() * shape.bins, *rows, 1].as_ptr(),
                    4 * count,
                    0,
                    4 * shape.width(number),
                    0,
                    parts[number].as_mut_ptr().cast(),
                    &[corrected.get()],
                )
            };
            batch.copied = Some(copied.map_err(failed)?);
        }
        queue.flush().map_err(failed)
    }

    /// Copies rows of the block to `sinograms`, from value `first` on, with `stride` values from the start of one row
    /// to that of the next. Waits for the block and for the copies.
    pub fn copy(
        &mut self,
        session: &Session,
        rows: &[usize],
        sinograms: &mut Buffer<f32>,
        first: usize,
        stride: usize,
    ) -> Result<()> {
        for number in 0..self.batches.len() {
            if let Some(copied) = self.batches[number].copied.take() {
                self.wait(session, &copied)?;
            }
        }
        let shape = self.shape;
        if rows.iter().any(|&row| row >= self.rows) || self.parts.len() < shape.count() {
            return Err(Error::Internal(format!("rows {rows:?} of a block of {} that is not complete", self.rows)));
        }
        match self.enqueue_rows(session, rows, sinograms, first, stride) {
            Ok(Some(last)) => session.wait_for_upload(&last),
            Ok(None) => Ok(()),
            Err(e) => {
                session.finish_uploads()?;
                Err(cl_error("uploading sinograms", session.device_name(), e))
            }
        }
    }

    /// Starts to copy rows as [`copy`](Self::copy) does, without waiting; returns the event of the last copy.
    fn enqueue_rows(
        &self,
        session: &Session,
        rows: &[usize],
        sinograms: &mut Buffer<f32>,
        first: usize,
        stride: usize,
    ) -> std::result::Result<Option<Event>, ClError> {
        let shape = self.shape;
        let (mut last, mut to) = (None, first);
        for run in rows.chunk_by(|row, next| row + 1 == *next) {
            for (number, part) in self.parts.iter().enumerate() {
                let width = 4 * shape.width(number);
                let into = to + shape.projections_of(number).start * shape.bins;
                // SAFETY: `copy` waits and has checked that the part has these rows, and its caller that the sinograms have room.
                let copied = unsafe {
                    session.uploads.enqueue_write_buffer_rect(
                        sinograms,
                        CL_NON_BLOCKING,
                        [4 * (into % stride), into / stride, 0].as_ptr(),
                        [0, run[0], 0].as_ptr(),
                        [width, run.len(), 1].as_ptr(),
                        4 * stride,
                        0,
                        width,
                        0,
                        part.as_ptr().cast_mut().cast(),
                        &[],
                    )
                };
                last = Some(copied?);
            }
            to += run.len() * stride;
        }
        Ok(last)
    }

    /// Ends the thread that allocates memory.
    pub fn end(&mut self) {
        self.coming.end();
    }

    fn wait(&self, session: &Session, copied: &Event) -> Result<()> {
        session.sleep_until(&self.queue, copied).map_err(|e| cl_error("downloading rows", session.device_name(), e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_find_their_parts() {
        let shape = PartShape { projections: 10, part: 4, bins: 3 };
        assert_eq!((shape.count(), shape.width(0), shape.width(2)), (3, 12, 6));
        let parts = |projections: Range<usize>| shape.parts_with(&projections).collect::<Vec<_>>();
        assert_eq!(parts(4..6), [(1, 4..6)]);
        assert_eq!(parts(2..10), [(0, 2..4), (1, 4..8), (2, 8..10)]);
        assert_eq!(parts(8..10), [(2, 8..10)]);
    }
}
