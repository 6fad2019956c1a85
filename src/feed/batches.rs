//! Rows that a device corrects in batches, while a thread reads the next: for all who take rows and reconstruct nothing.

use super::{DeviceFeed, ScanRows};
use crate::device::{HostMemory, Session};
use crate::error::{Error, Result};
use crate::operations::{BlockShape, DetectorBatch, DeviceRows, RowCorrection};
use crate::steps::Counts;
use crate::threads::joined;
use crossbeam_channel::{Receiver, Sender, unbounded};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::thread::scope;

/// Number of batches in the host's memory on their way to the device: one is read while the other is copied.
pub const BATCHES_READ: usize = 2;

/// The place of corrected rows `[row][projection][bin]` in the buffer that all batches share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPlace {
    /// Every batch is at the beginning, with its projections.
    Beginning,
    /// Batches of a row are put together to its sinogram of all projections.
    Sinogram,
}

/// Correction of rows on a device, batch after batch.
pub struct BatchFeed<'a> {
    scan: ScanRows<'a>,
    feed: DeviceFeed,
    place: BatchPlace,
    /// Corrected rows.
    pub values: Buffer<f32>,
}

impl<'a> BatchFeed<'a> {
    /// Builds kernels and allocates memory for `rows` rows of `projections` projections.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        session: &Session,
        scan: ScanRows<'a>,
        correction: &RowCorrection,
        shape: BlockShape,
        [rows, projections]: [usize; 2],
        place: BatchPlace,
    ) -> Result<Self> {
        let values = rows * projections * scan.stack.width();
        Ok(BatchFeed {
            feed: DeviceFeed::with(session, &scan, correction, shape)?,
            values: session.buffer(values, CL_MEM_READ_WRITE, "corrected rows")?,
            scan,
            place,
        })
    }

    /// Returns the number of values of a row.
    pub fn bins(&self) -> usize {
        self.scan.stack.width()
    }

    /// Corrects batches in order. `take` gets each with its values once the device has its samples, and ends it with `false`.
    ///
    /// # Errors
    /// Errors of reading, of the device, and those of `take`.
    pub fn correct(
        &mut self,
        session: &Session,
        batches: impl Iterator<Item = DetectorBatch> + Send,
        mut take: impl FnMut(&mut Self, &DetectorBatch) -> Result<bool>,
    ) -> Result<()> {
        let memory = || session.host_memory(self.feed.most_bytes().div_ceil(size_of::<f32>()));
        let memories = (0..BATCHES_READ).map(|_| memory()).collect::<Result<Vec<HostMemory>>>()?;
        let scan = self.scan;
        read_ahead(&scan, batches, memories, |read, back| {
            for (batch, memory) in read {
                self.correct_batch(session, &batch, memory.as_bytes())?;
                // the reader may have read all
                let _ = back.send(memory);
                if !take(self, &batch)? {
                    break;
                }
            }
            Ok(())
        })
    }

    fn correct_batch(&mut self, session: &Session, batch: &DetectorBatch, samples: &[u8]) -> Result<()> {
        let BatchFeed { scan, feed, place, values } = self;
        let bins = scan.stack.width();
        let into = match place {
            BatchPlace::Beginning => DeviceRows { values, first: 0, stride: batch.projections.len() * bins },
            BatchPlace::Sinogram => {
                DeviceRows { values, first: batch.projections.start * bins, stride: scan.used.len() * bins }
            }
        };
        feed.correct_into(session, scan, batch, samples, &into)
    }

    /// Takes the counts of replaced values in a batch, and in earlier ones whose counts were not taken.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn counts_of(&mut self, session: &Session, batch: &DetectorBatch) -> Result<Counts> {
        self.feed.counts_of(session, &self.scan, batch)
    }
}

/// Makes something for `most` rows or pages, or for half as many while the device's memory does not suffice.
///
/// # Errors
/// Those of `make`.
pub fn with_room<T>(most: usize, mut make: impl FnMut(usize) -> Result<T>) -> Result<T> {
    let mut count = most;
    loop {
        match make(count) {
            Err(Error::Memory(_)) if count > 1 => count /= 2,
            made => return made,
        }
    }
}

/// Batches in order, with the memory in which their samples are.
type ReadBatches = Receiver<(DetectorBatch, HostMemory)>;

/// Reads the samples of batches of a scan into `memories`, each large enough for any of them, in a thread of its own. `take`
/// gets the batches, and gives their memory back for others; it may end before it has had all.
///
/// # Errors
/// Errors of reading, and those of `take`.
fn read_ahead(
    scan: &ScanRows,
    batches: impl Iterator<Item = DetectorBatch> + Send,
    memories: Vec<HostMemory>,
    take: impl FnOnce(ReadBatches, Sender<HostMemory>) -> Result<()>,
) -> Result<()> {
    let (read, taken) = unbounded();
    let (back, free) = unbounded::<HostMemory>();
    for memory in memories {
        // the receiver is here
        let _ = back.send(memory);
    }
    let reading = move || -> Result<()> {
        for batch in batches {
            // nobody answers who has ended
            let Ok(mut memory) = free.recv() else { break };
            scan.read_samples(&batch, memory.as_bytes_mut())?;
            if read.send((batch, memory)).is_err() {
                break;
            }
        }
        Ok(())
    };
    scope(|scope| {
        let reader = scope.spawn(reading);
        let result = take(taken, back);
        joined(reader, "reader")?;
        result
    })
}
