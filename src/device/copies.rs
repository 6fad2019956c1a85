//! Copies between the host and a device, host memory for them, and waiting for a device.

use super::errors::DriverError;
use super::host_memory::{HostMemory, HostValues, MappedBuffer, pages};
use super::{Session, cl_error};
use crate::error::{Error, Result};
use memmap2::MmapMut;
use opencl3::command_queue::{CommandQueue, enqueue_copy_buffer, enqueue_read_buffer};
use opencl3::error_codes::ClError;
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::memory::{Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR, ClMem};
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_map_flags};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// Interval at which a waiting thread asks the device whether a command is done.
const ASKED: Duration = Duration::from_micros(200);

/// Size in bytes below which a copy is waited for in the driver: it is over sooner than a thread wakes up.
const SHORT: usize = 1 << 20;

/// A copy of values to a device that is still running; the values stay borrowed until it is dropped.
pub(crate) struct Copying<'a> {
    session: &'a Session,
    copied: Event,
    what: &'a str,
    data: PhantomData<&'a [u8]>,
}

impl Copying<'_> {
    /// Returns the event of the copy, which commands of other queues can wait for.
    pub fn event(&self) -> &Event {
        &self.copied
    }

    /// Waits until the copy is complete.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn wait(self) -> Result<()> {
        self.session.sleep_until(&self.session.copies, &self.copied).map_err(|e| self.failed(e))
    }

    fn failed(&self, e: ClError) -> Error {
        cl_error(&format!("uploading {}", self.what), self.session.device_name(), e)
    }
}

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        let _ = self.copied.wait();
    }
}

impl Session {
    /// Copies `data` to the start of a buffer and waits until it is there, also for the other queues. A blocking call
    /// alone need not wait for more than that `data` may change (OpenCL 1.2, 5.2.2), and Intel's does not.
    pub fn write<T: Copy>(&self, buffer: &mut Buffer<T>, data: &[T], what: &str) -> Result<Event> {
        // SAFETY: blocking, and the driver checks the size against the buffer's.
        unsafe { self.queue.enqueue_write_buffer(buffer, CL_BLOCKING, 0, data, &[]) }
            .and_then(|written| written.wait().map(|()| written))
            .map_err(|e| cl_error(&format!("uploading {what}"), self.device_name(), e))
    }

    /// Copies `data` to the start of a buffer through `queue` and waits for the copy, which starts after the kernel
    /// `used` that used the buffer last, but after no other kernel.
    pub(crate) fn write_beside<T: Copy>(
        &self,
        queue: &CommandQueue,
        buffer: &mut Buffer<T>,
        used: Option<&Event>,
        data: &[T],
        what: &str,
    ) -> Result<()> {
        let after: Vec<_> = used.iter().map(|used| used.get()).collect();
        // SAFETY: blocking, and the driver checks the size against the buffer's.
        let mut written = || unsafe { queue.enqueue_write_buffer(buffer, CL_BLOCKING, 0, data, &after) };
        // other queues wait only for what the driver has got
        self.queue
            .flush()
            .and_then(|()| written())
            .and_then(|written| written.wait())
            .map_err(|e| cl_error(&format!("uploading {what}"), self.device_name(), e))
    }

    /// Copies the start of a buffer to `data` after everything in the queue for kernels, and waits.
    pub fn read<T: Copy>(&self, buffer: &Buffer<T>, data: &mut [T], what: &str) -> Result<Event> {
        // SAFETY: blocking, and the driver checks the size against the buffer's.
        unsafe { self.queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, data, &[]) }
            .map_err(|e| cl_error(&format!("downloading {what}"), self.device_name(), e))
    }

    /// Maps `count` values of a buffer from value `first` on, passes them to `work`, and waits before and after. Values
    /// that `work` writes reach the device if `flags` allow it.
    pub fn with_mapped<B, T: Copy, R>(
        &self,
        buffer: &Buffer<B>,
        flags: cl_map_flags,
        first: usize,
        count: usize,
        what: &str,
        work: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R> {
        let failed = |e| cl_error(&format!("mapping {what}"), self.device_name(), e);
        let size = std::mem::size_of::<T>();
        let mut pointer = ptr::null_mut();
        // SAFETY: the driver checks offset and size against the buffer's, and keeps the region mapped until it is unmapped.
        let mapped = unsafe {
            self.queue.enqueue_map_buffer(buffer, CL_BLOCKING, flags, first * size, count * size, &mut pointer, &[])
        };
        mapped.map_err(failed)?;
        let values = pointer.cast::<T>();
        if values.is_null() || !values.is_aligned() {
            return Err(self.not_mapped(what));
        }
        // SAFETY: `count` values of plain data were mapped, aligned, and nothing else touches them until they are unmapped.
        let result = work(unsafe { std::slice::from_raw_parts_mut(values, count) });
        // SAFETY: `pointer` is what the driver mapped.
        unsafe { self.queue.enqueue_unmap_mem_object(buffer.get(), pointer, &[]) }.map_err(failed)?;
        self.finish()?;
        Ok(result)
    }

    fn not_mapped(&self, what: &str) -> Error {
        DriverError::NotMapped { device: self.device_name().to_owned(), what: what.to_owned() }.into()
    }

    /// Returns host memory for `count` values; where the driver offers it, pinned, so that the device copies at full
    /// speed.
    pub fn host_memory(&self, count: usize) -> Result<HostMemory> {
        self.host_memory_of(pages(count), count)
    }

    /// Returns host memory for `count` values in `pages`; ordinary memory if there are no pages, or if the driver does
    /// not pin them.
    pub(super) fn host_memory_of(&self, pages: Option<MmapMut>, count: usize) -> Result<HostMemory> {
        pages.and_then(|pages| self.pinned(pages, count)).map_or_else(|| HostMemory::plain(count), Ok)
    }

    /// Has the driver pin existing pages, which is faster than having it allocate them.
    fn pinned(&self, mut owned: MmapMut, count: usize) -> Option<HostMemory> {
        if owned.len() < count.max(1) * size_of::<f32>() {
            return None;
        }
        let flags = CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE;
        // SAFETY: the pages are those of `count` values, and are dropped after the buffer.
        let buffer = unsafe { Buffer::create(&self.context, flags, count.max(1), owned.as_mut_ptr().cast()) }.ok()?;
        let mapped = self.mapped(buffer, count, "copies").ok()?;
        Some(HostMemory(HostValues::Mapped(mapped.with_pages(owned))))
    }

    /// Returns the first `count` values of a buffer as host memory, once the device is done with them.
    pub fn map(&self, buffer: Buffer<f32>, count: usize, what: &str) -> Result<HostMemory> {
        Ok(HostMemory(HostValues::Mapped(self.mapped(buffer, count, what)?)))
    }

    fn mapped(&self, buffer: Buffer<f32>, count: usize, what: &str) -> Result<MappedBuffer> {
        let count = count.max(1);
        let mut pointer = ptr::null_mut();
        let flags = CL_MAP_READ | CL_MAP_WRITE;
        // SAFETY: the driver checks the size against the buffer's; it stays mapped for as long as the result lives.
        unsafe { self.downloads.enqueue_map_buffer(&buffer, CL_BLOCKING, flags, 0, count * 4, &mut pointer, &[]) }
            .map_err(|e| cl_error(&format!("mapping {what}"), self.device_name(), e))?;
        let pointer = pointer.cast::<f32>();
        if pointer.is_null() || !pointer.is_aligned() {
            return Err(self.not_mapped(what));
        }
        // SAFETY: the driver has just mapped them for this
        Ok(unsafe { MappedBuffer::new(pointer, count, buffer, Arc::clone(&self.downloads)) })
    }

    /// Gives a mapped buffer back to the device.
    pub fn unmap(&self, memory: HostMemory, what: &str) -> Result<Buffer<f32>> {
        let failed = |e| cl_error(&format!("unmapping {what}"), self.device_name(), e);
        let buffer = match memory.0 {
            HostValues::Mapped(mapped) => mapped.unmap(&self.uploads).map_err(failed)?,
            HostValues::Plain(_) => None,
        };
        buffer.ok_or_else(|| Error::Internal(format!("{}: {what} are not the device's", self.device_name())))
    }

    /// Copies `data` into a buffer from value `first` on, in the queue for uploads, and waits as [`Session::write`]
    /// does.
    pub fn upload<T: Copy>(&self, buffer: &mut Buffer<T>, first: usize, data: &[T], what: &str) -> Result<()> {
        let first = first * std::mem::size_of::<T>();
        // SAFETY: blocking, and the driver checks offset and size against the buffer's.
        unsafe { self.uploads.enqueue_write_buffer(buffer, CL_BLOCKING, first, data, &[]) }
            .and_then(|written| written.wait())
            .map_err(|e| cl_error(&format!("uploading {what}"), self.device_name(), e))
    }

    /// Starts to copy `data` to the start of a buffer, without waiting for the kernels among the uploads. The result
    /// must be dropped, not leaked, as its destructor waits for the copy.
    pub(crate) fn copy_ahead<'a, T: Copy>(
        &'a self,
        buffer: &mut Buffer<T>,
        data: &'a [T],
        what: &'a str,
    ) -> Result<Copying<'a>> {
        let blocking = if size_of_val(data) < SHORT { CL_BLOCKING } else { CL_NON_BLOCKING };
        // SAFETY: what is returned borrows the data until the copy is over; the driver checks the size against the buffer's.
        let copied = unsafe { self.copies.enqueue_write_buffer(buffer, blocking, 0, data, &[]) }
            .map_err(|e| cl_error(&format!("uploading {what}"), self.device_name(), e))?;
        let copying = Copying { session: self, copied, what, data: PhantomData };
        // other queues wait only for what the driver has got
        self.copies.flush().map_err(|e| copying.failed(e))?;
        Ok(copying)
    }

    /// Copies the start of a buffer to `data` after everything in the queue for uploads, and waits.
    pub fn read_uploaded<T: Copy>(&self, buffer: &Buffer<T>, data: &mut [T], what: &str) -> Result<()> {
        let failed = |e| cl_error(&format!("downloading {what}"), self.device_name(), e);
        // SAFETY: waited for, and the driver checks the size against the buffer's.
        let copied =
            unsafe { self.uploads.enqueue_read_buffer(buffer, CL_NON_BLOCKING, 0, data, &[]) }.map_err(failed)?;
        self.sleep_until(&self.uploads, &copied).map_err(failed)
    }

    /// Copies values of a buffer, from value `first` on, to `data` in the queue for downloads, and waits.
    pub fn download<T: Copy>(&self, buffer: &Buffer<T>, first: usize, data: &mut [T], what: &str) -> Result<()> {
        self.download_into(buffer, first * size_of::<T>(), data, what)
    }

    /// Copies bytes of a buffer, from byte `first` on, to `data` in the queue for downloads, and waits.
    pub fn download_bytes(&self, buffer: &Buffer<f32>, first: usize, data: &mut [u8], what: &str) -> Result<()> {
        self.download_into(buffer, first, data, what)
    }

    fn download_into<B, T: Copy>(&self, buffer: &Buffer<B>, first: usize, data: &mut [T], what: &str) -> Result<()> {
        let failed = |e| cl_error(&format!("downloading {what}"), self.device_name(), e);
        let (bytes, to) = (size_of_val(data), data.as_mut_ptr().cast());
        // SAFETY: waited for, and the driver checks offset and size against the buffer's; all that is copied is plain data.
        let copied = unsafe {
            enqueue_read_buffer(self.downloads.get(), buffer.get(), CL_NON_BLOCKING, first, bytes, to, 0, ptr::null())
        };
        let copied = copied.map(Event::new).map_err(|e| failed(ClError(e)))?;
        self.sleep_until(&self.downloads, &copied).map_err(failed)
    }

    /// Starts to copy `bytes` bytes from a buffer to another one, each from one of its bytes on.
    ///
    /// # Errors
    /// Errors of the device, also for bytes that a buffer does not have.
    pub(crate) fn copy_between<A, B>(
        &self,
        queue: &CommandQueue,
        (from, first): (&Buffer<A>, usize),
        (to, place): (&Buffer<B>, usize),
        bytes: usize,
        what: &str,
    ) -> Result<Event> {
        let (source, target) = (from.get(), to.get());
        // SAFETY: the driver refuses bytes beyond the end of a buffer, and keeps both until they are copied.
        unsafe { enqueue_copy_buffer(queue.get(), source, target, first, place, bytes, 0, ptr::null()) }
            .map(Event::new)
            .map_err(|e| cl_error(&format!("copying {what}"), self.device_name(), ClError(e)))
    }

    /// Waits for a command in a queue. Drivers of devices with memory of their own may keep a processor busy while they
    /// wait, which reading and writing need more; the thread therefore sleeps.
    pub(super) fn sleep_until(&self, queue: &CommandQueue, event: &Event) -> std::result::Result<(), ClError> {
        let mut begun = Ok(());
        if !self.shares_memory() {
            begun = queue.flush();
            while event.command_execution_status().is_ok_and(|status| status.0 > CL_COMPLETE) {
                sleep(ASKED);
            }
        }
        // whatever became of it, the command must be over
        event.wait().and(begun)
    }

    /// Waits for a kernel in the queue for uploads.
    pub fn wait_for_upload(&self, kernel: &Event) -> Result<()> {
        self.sleep_until(&self.uploads, kernel).map_err(|e| cl_error("waiting for uploads", self.device_name(), e))
    }

    /// Waits for everything in the queue for kernels up to the command `kernel`.
    pub fn wait_for(&self, kernel: &Event) -> Result<()> {
        let failed = |e| cl_error("waiting for the device", self.device_name(), e);
        self.sleep_until(&self.queue, kernel).map_err(failed)
    }

    /// Waits for everything in the queue for uploads.
    pub fn finish_uploads(&self) -> Result<()> {
        self.uploads.finish().map_err(|e| cl_error("waiting for uploads", self.device_name(), e))
    }

    /// Waits for everything in the queue for kernels.
    pub fn finish(&self) -> Result<()> {
        self.queue.finish().map_err(|e| cl_error("waiting for the device", self.device_name(), e))
    }

    /// Hands everything in the queue for kernels to the device, without waiting for it.
    pub fn flush(&self) -> Result<()> {
        self.queue.flush().map_err(|e| cl_error("passing commands to the device", self.device_name(), e))
    }
}
