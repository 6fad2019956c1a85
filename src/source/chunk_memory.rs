//! Memory for chunks of HDF5 and Zarr, both for those being decoded and for decoded ones that are needed again.

use crate::layout::codec::DecodeBuffers;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Divisor of the available memory: chunks that are being decoded or kept may take this part of it.
const SHARE: u64 = 4;

/// Number and sizes of the chunks of a dataset.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkSizes {
    /// Number of chunks that were written.
    pub count: u64,
    /// Bytes of a decoded chunk.
    pub decoded: u64,
    /// Bytes of the largest chunk as it is stored.
    pub stored: u64,
    /// Number of chunks that a frame shares with other frames, if chunks are decoded.
    pub across_frames: u64,
    /// True if chunks are decoded and needed more than once.
    pub again: bool,
}

/// Memory for the chunks of datasets that are read together.
#[derive(Debug)]
pub(super) struct ChunkMemory {
    /// Buffers for as many chunks as are decoded at a time.
    buffers: (Sender<DecodeBuffers>, Receiver<DecodeBuffers>),
    kept: Mutex<KeptChunks>,
    /// Bytes of all memory of the buffers and the kept chunks.
    pub held: u64,
}

impl ChunkMemory {
    /// Creates memory for the chunks of `datasets`: a part of `memory` bytes, but enough for at least one chunk.
    pub fn new(datasets: &[ChunkSizes], memory: u64) -> ChunkMemory {
        let largest = |bytes: fn(&ChunkSizes) -> u64| datasets.iter().map(bytes).max().unwrap_or(0);
        let count = |of: fn(&ChunkSizes) -> bool| {
            datasets.iter().filter(|sizes| of(sizes)).map(|sizes| sizes.count).sum::<u64>()
        };
        let budget = memory / SHARE;
        let bytes = largest(|sizes| sizes.decoded).max(1);
        // stored, decoded, and with bytes or bits rearranged
        let each = largest(|sizes| sizes.stored + 2 * sizes.decoded).max(1);
        let most = if datasets.is_empty() { 1 } else { rayon::current_num_threads() as u64 };
        let threads = (budget / each).clamp(1, most);
        let buffers = bounded(threads as usize);
        (0..threads).try_for_each(|_| buffers.0.send(DecodeBuffers::default())).unwrap_or_default();
        // each thread works on other frames
        let recent = largest(|sizes| sizes.across_frames) * (threads + 1);
        let room = budget.saturating_sub(threads * each) / bytes;
        let recent = recent.min(room.max(1));
        let stay = room.saturating_sub(recent).min(count(|sizes| sizes.again));
        let kept = (stay + recent).min(count(|_| true));
        ChunkMemory {
            buffers,
            kept: Mutex::new(KeptChunks { stay: stay as usize, recent: recent as usize, ..Default::default() }),
            held: if datasets.is_empty() { 0 } else { threads * each + kept * bytes },
        }
    }

    /// Passes the decoded bytes of a chunk to `take`.
    ///
    /// The bytes are kept ones if the chunk has a key, and otherwise those that `decode` leaves in its buffers. The
    /// second argument of `decode` tells whether all bytes of the chunk are needed, or only the wanted ones.
    ///
    /// # Errors
    /// The errors of `decode`.
    pub fn with_chunk<E>(
        &self,
        key: Option<ChunkKey>,
        decode: impl FnOnce(&mut DecodeBuffers, bool) -> Result<(), E>,
        take: impl FnOnce(&[u8]),
    ) -> Result<(), E> {
        let Some(slot) = key.and_then(|key| self.slot(key)) else {
            return self.with_buffers(|buffers| {
                decode(buffers, false)?;
                take(&buffers.bytes);
                Ok(())
            });
        };
        // another thread that wants this chunk waits here until it is decoded
        let mut kept = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let chunk = match &*kept {
            Some(chunk) => chunk.clone(),
            None => {
                let chunk = self.with_buffers(|buffers| {
                    decode(buffers, true)?;
                    Ok(Arc::new(std::mem::take(&mut buffers.bytes)))
                })?;
                *kept = Some(Arc::clone(&chunk));
                chunk
            }
        };
        drop(kept);
        take(&chunk);
        Ok(())
    }

    /// Returns the slot of a chunk, if the chunk is to be kept.
    fn slot(&self, key: ChunkKey) -> Option<ChunkSlot> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).slot(key)
    }

    /// Lends buffers that no other thread uses in the meantime.
    fn with_buffers<T, E>(&self, decode: impl FnOnce(&mut DecodeBuffers) -> Result<T, E>) -> Result<T, E> {
        let buffers = self.buffers.1.recv().unwrap_or_default();
        let mut borrowed = BorrowedBuffers { buffers, home: &self.buffers.0 };
        decode(&mut borrowed.buffers)
    }
}

/// Buffers that go back to their channel when they are dropped.
struct BorrowedBuffers<'a> {
    buffers: DecodeBuffers,
    home: &'a Sender<DecodeBuffers>,
}

impl Drop for BorrowedBuffers<'_> {
    fn drop(&mut self) {
        // the channel has room for all buffers
        self.home.try_send(std::mem::take(&mut self.buffers)).unwrap_or_default();
    }
}

/// Key of a chunk: the index of its dataset among those that are read together, and its number in the dataset.
pub(super) type ChunkKey = (usize, u64);

/// Slot of a chunk that is decoded or about to be.
type ChunkSlot = Arc<Mutex<Option<Arc<Vec<u8>>>>>;

/// Decoded chunks that are needed again, as a run reads some rows of all frames, then the next rows of all frames.
#[derive(Debug, Default)]
struct KeptChunks {
    /// Number of chunks that stay once they are decoded: as all are needed in turn, replacing them would save nothing.
    stay: usize,
    /// Number of further chunks, for several frames; the oldest is replaced first.
    recent: usize,
    slots: HashMap<ChunkKey, ChunkSlot>,
    /// Keys of the chunks that may be replaced, the oldest first.
    order: VecDeque<ChunkKey>,
}

impl KeptChunks {
    /// Returns the slot of a chunk, if the chunk is to be kept.
    fn slot(&mut self, key: ChunkKey) -> Option<ChunkSlot> {
        if let Some(slot) = self.slots.get(&key) {
            return Some(slot.clone());
        }
        if self.slots.len() - self.order.len() >= self.stay {
            if self.recent == 0 {
                return None;
            }
            while self.order.len() >= self.recent
                && let Some(oldest) = self.order.pop_front()
            {
                self.slots.remove(&oldest);
            }
            self.order.push_back(key);
        }
        Some(self.slots.entry(key).or_default().clone())
    }
}
