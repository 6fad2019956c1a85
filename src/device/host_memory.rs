//! Host memory that devices copy from and to.

use super::errors::DeviceMemoryError;
use super::session::{Queue, Session};
use crate::error::{Error, Result};
use crossbeam_channel::{Receiver, unbounded};
use memmap2::MmapMut;
use opencl3::error_codes::ClError;
use opencl3::memory::{Buffer, ClMem};
use rayon::prelude::*;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Values that the host can read and write, from [`Session::host_memory`](super::Session::host_memory) or
/// [`Session::map`](super::Session::map).
pub struct HostMemory(pub(super) HostValues);

pub(super) enum HostValues {
    Plain(Vec<f32>),
    Mapped(MappedBuffer),
}

/// A buffer that stays mapped for as long as it is held here: drivers keep what is mapped when it is released.
pub(super) struct MappedBuffer {
    pointer: *mut f32,
    count: usize,
    /// Present until it is unmapped.
    buffer: Option<Buffer<f32>>,
    /// Queue in which it is unmapped unless that was done before.
    queue: Arc<Queue>,
    /// Host pages that the buffer consists of, if the driver did not allocate it; dropped after the buffer.
    pages: Option<MmapMut>,
}

// SAFETY: the mapped values belong to this object alone, whatever thread has it.
unsafe impl Send for MappedBuffer {}

impl MappedBuffer {
    /// Takes the first `count` values of a buffer, which are mapped at `pointer`.
    ///
    /// # Safety
    /// They are, and nobody else uses them.
    pub unsafe fn new(pointer: *mut f32, count: usize, buffer: Buffer<f32>, queue: Arc<Queue>) -> MappedBuffer {
        MappedBuffer { pointer, count, buffer: Some(buffer), queue, pages: None }
    }

    /// Keeps the pages that the buffer consists of.
    pub fn with_pages(mut self, pages: MmapMut) -> MappedBuffer {
        self.pages = Some(pages);
        self
    }

    /// Unmaps the buffer in a queue and returns it once that is done; `None` if it consists of pages of the host.
    ///
    /// # Errors
    /// The error of the driver.
    pub fn unmap(mut self, queue: &Queue) -> Result<Option<Buffer<f32>>, ClError> {
        let Some(buffer) = self.buffer.take_if(|_| self.pages.is_none()) else { return Ok(None) };
        // SAFETY: `pointer` is what the driver mapped, and nobody has it any more.
        unsafe { queue.enqueue_unmap_mem_object(buffer.get(), self.pointer.cast(), &[]) }?;
        queue.finish()?;
        Ok(Some(buffer))
    }
}

impl Drop for MappedBuffer {
    fn drop(&mut self) {
        let Some(buffer) = self.buffer.take() else { return };
        // SAFETY: `pointer` is what the driver mapped, and nobody has it any more.
        let unmapped = unsafe { self.queue.enqueue_unmap_mem_object(buffer.get(), self.pointer.cast(), &[]) };
        if unmapped.is_ok() && self.pages.is_some() {
            // the driver must be done with the pages
            let _ = self.queue.finish();
        }
    }
}

impl HostMemory {
    /// Returns ordinary memory for `count` values, all zero.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is too little.
    pub fn plain(count: usize) -> Result<Self> {
        let mut values = Vec::new();
        values.try_reserve_exact(count).map_err(|_| DeviceMemoryError::HostFull { bytes: 4 * count })?;
        values.resize(count, 0.0);
        Ok(HostMemory(HostValues::Plain(values)))
    }

    /// Returns the memory as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    /// Returns the memory as mutable bytes.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
}

impl Deref for HostMemory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.0 {
            HostValues::Plain(values) => values,
            // SAFETY: `count` floats are mapped there, and nothing writes while they are borrowed.
            HostValues::Mapped(mapped) => unsafe { std::slice::from_raw_parts(mapped.pointer, mapped.count) },
        }
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [f32] {
        match &mut self.0 {
            HostValues::Plain(values) => values,
            // SAFETY: `count` floats are mapped there, and this is the only way to them.
            HostValues::Mapped(mapped) => unsafe { std::slice::from_raw_parts_mut(mapped.pointer, mapped.count) },
        }
    }
}

/// Host memory for copies that a thread of its own allocates piece by piece, from the time when it is first needed.
pub(super) struct ComingMemory {
    /// The session of the thread, and the number of values of each piece in order, until the thread begins.
    planned: Option<(Session, Vec<usize>)>,
    making: Option<Making>,
}

/// A thread that allocates memory until nobody wants any more.
struct Making {
    pieces: Receiver<Result<HostMemory>>,
    thread: JoinHandle<()>,
}

impl ComingMemory {
    /// Plans pieces of `counts` values each, in this order.
    ///
    /// # Errors
    /// [`Error::Device`] if the device has no more queues.
    pub fn new(session: &Session, counts: Vec<usize>) -> Result<Self> {
        Ok(ComingMemory { planned: Some((session.beside()?, counts)), making: None })
    }

    /// Begins to allocate the pieces, unless it has already begun.
    ///
    /// # Errors
    /// [`Error::Memory`] if no thread can be started.
    pub fn begin(&mut self) -> Result<()> {
        let Some((session, counts)) = self.planned.take() else { return Ok(()) };
        let (out, pieces) = unbounded();
        let make = move || {
            let pages_of = |number: usize| counts.get(number).and_then(|&count| pages(count));
            let mut made = pages_of(0);
            for (number, &count) in counts.iter().enumerate() {
                // the next pages are made while the driver pins these
                let these = made.take();
                let pin = || {
                    let memory = session.host_memory_of(these, count);
                    // nothing follows a piece that is missing
                    let is_there = memory.is_ok();
                    out.send(memory).is_ok() && is_there
                };
                let (goes_on, next) = rayon::join(pin, || pages_of(number + 1));
                made = next;
                if !goes_on {
                    return;
                }
            }
        };
        let thread = Builder::new().spawn(make).map_err(|e| DeviceMemoryError::NoThread { error: e.to_string() })?;
        self.making = Some(Making { pieces, thread });
        Ok(())
    }

    /// Waits for the next piece and returns it.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is too little, [`Error::Internal`] if nothing has begun or there are no more pieces.
    pub fn next(&mut self) -> Result<HostMemory> {
        let none = || Error::Internal("there is no more memory of the host for a block".into());
        self.making.as_ref().and_then(|making| making.pieces.recv().ok()).ok_or_else(none)?
    }

    /// Ends the thread, so that it no longer uses the driver once everything else has ended.
    pub fn end(&mut self) {
        if let Some(Making { pieces, thread }) = self.making.take() {
            drop(pieces);
            let _ = thread.join();
        }
    }
}

impl Drop for ComingMemory {
    fn drop(&mut self) {
        self.end();
    }
}

/// Smallest size of a page of memory, in bytes.
const PAGE: usize = 4096;

/// Returns pages for `count` values, large ones where the system has them. Many threads touch them first; a driver
/// would do so one page after the other when it pins them.
pub(super) fn pages(count: usize) -> Option<MmapMut> {
    let mut pages = MmapMut::map_anon(count.max(1) * size_of::<f32>()).ok()?;
    // small pages do as well
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    pages.par_chunks_mut(PAGE << 9).for_each(|chunk| chunk.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0));
    Some(pages)
}
