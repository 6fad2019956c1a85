//! Copies of buffers to host memory, which run beside the thread that starts them.

use super::session::Queue;
use super::{HostMemory, Session, cl_error};
use crate::error::{Error, Result};
use opencl3::event::Event;
use opencl3::memory::Buffer;
use opencl3::types::CL_NON_BLOCKING;

/// Host memory with the copy of a buffer's values, which can be read when the copy is over.
pub struct HostCopy {
    memory: HostMemory,
    /// The copy that was started, and the number of values that it brings.
    started: Option<(Event, usize)>,
}

impl HostCopy {
    /// Allocates host memory for `count` floats.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is too little.
    pub fn new(session: &Session, count: usize) -> Result<Self> {
        Ok(HostCopy { memory: session.host_memory(count)?, started: None })
    }

    /// Starts to copy the first `count` values of a buffer through `queue`, after a kernel in the queue for kernels. Waits
    /// only for a copy that was started before.
    ///
    /// # Errors
    /// [`Error::Internal`] for more values than there is memory for, and errors of the device.
    pub(crate) fn start<T: bytemuck::AnyBitPattern + bytemuck::NoUninit>(
        &mut self,
        session: &Session,
        queue: &Queue,
        buffer: &Buffer<T>,
        count: usize,
        after: &Event,
        what: &str,
    ) -> Result<()> {
        let failed = |e| cl_error(&format!("downloading {what}"), session.device_name(), e);
        if let Some((before, _)) = self.started.take() {
            before.wait().map_err(failed)?;
        }
        let floats = count * size_of::<T>() / size_of::<f32>();
        let Some(values) = self.memory.get_mut(..floats) else {
            return Err(Error::Internal(format!("no memory of the host for {count} {what}")));
        };
        let values: &mut [T] = bytemuck::cast_slice_mut(values);
        // other queues wait only for what the driver has got
        session.queue.flush().map_err(failed)?;
        // SAFETY: the memory is neither read nor given up before the copy is over; the driver checks the size.
        let copy = unsafe { queue.enqueue_read_buffer(buffer, CL_NON_BLOCKING, 0, values, &[after.get()]) };
        self.started = Some((copy.map_err(failed)?, floats));
        queue.flush().map_err(failed)
    }

    /// Waits for the copy that was started last and returns its values; none if nothing was started.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn wait(&mut self, session: &Session, what: &str) -> Result<&[f32]> {
        let Some((copied, count)) = self.started.take() else { return Ok(&[]) };
        copied.wait().map_err(|e| cl_error(&format!("downloading {what}"), session.device_name(), e))?;
        Ok(&self.memory[..count])
    }
}

impl Drop for HostCopy {
    /// Waits for the copy, so that nothing is copied into freed memory.
    fn drop(&mut self) {
        if let Some((copied, _)) = self.started.take() {
            let _ = copied.wait();
        }
    }
}
