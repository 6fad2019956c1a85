//! Batches of rows that a thread reads while a device works on those before them.

use super::threads::joined;
use crate::device::HostMemory;
use crate::error::Result;
use crate::feed::ScanRows;
use crate::operations::DetectorBatch;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::thread::scope;

/// Batches in order, with the memory in which their samples are.
pub(super) type ReadBatches = Receiver<(DetectorBatch, HostMemory)>;

/// Reads the samples of batches of a scan into `memories`, each large enough for any of them, in a thread of its own. `take`
/// gets the batches, and gives their memory back for others; it may end before it has had all.
///
/// # Errors
/// Errors of reading, and those of `take`.
pub(super) fn read_ahead<T>(
    scan: &ScanRows,
    batches: impl Iterator<Item = DetectorBatch> + Send,
    memories: impl IntoIterator<Item = HostMemory>,
    take: impl FnOnce(ReadBatches, Sender<HostMemory>) -> Result<T>,
) -> Result<T> {
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
