//! Copies of corrected projections from a device to the host.

use super::{HostMemory, Session, cl_error};
use crate::error::{Error, Result};
use opencl3::event::Event;
use opencl3::memory::Buffer;
use opencl3::types::CL_NON_BLOCKING;

/// Projections that are being copied from a device.
pub struct CopiedProjections {
    memory: HostMemory,
    /// Event of the last copy; the queue runs one copy after the other.
    last: Option<Event>,
}

impl CopiedProjections {
    /// Starts to copy `count` projections of `[bins, height]` from the start of a buffer, `[row][projection][bin]`, to
    /// `memory`, `[projection][row][bin]`.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn start(
        session: &Session,
        rows: &Buffer<f32>,
        count: usize,
        [bins, height]: [usize; 2],
        memory: HostMemory,
    ) -> Result<Self> {
        let mut copied = CopiedProjections { memory, last: None };
        if copied.memory.len() < count * height * bins {
            return Err(Error::Internal(format!("{count} projections do not fit {} values", copied.memory.len())));
        }
        session.expect_length(rows, count * height * bins, "projections")?;
        for projection in 0..count {
            let (from, to) = ([4 * projection * bins, 0, 0], [0; 3]);
            let page = &mut copied.memory[projection * height * bins..][..height * bins];
            // SAFETY: rows and page were checked, and the memory is kept until the copy is over.
            let copy = unsafe {
                session.uploads.enqueue_read_buffer_rect(
                    rows,
                    CL_NON_BLOCKING,
                    from.as_ptr(),
                    to.as_ptr(),
                    [4 * bins, height, 1].as_ptr(),
                    4 * count * bins,
                    0,
                    4 * bins,
                    0,
                    page.as_mut_ptr().cast(),
                    &[],
                )
            };
            match copy {
                Ok(copy) => copied.last = Some(copy),
                Err(e) => {
                    session.finish_uploads()?;
                    return Err(cl_error("downloading projections", session.device_name(), e));
                }
            }
        }
        session.uploads.flush().map_err(|e| cl_error("downloading projections", session.device_name(), e))?;
        Ok(copied)
    }

    /// Waits for the copies and returns the memory, `[projection][row][bin]`.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn wait(mut self, session: &Session) -> Result<HostMemory> {
        if let Some(last) = self.last.take() {
            session.wait_for_upload(&last)?;
        }
        Ok(std::mem::replace(&mut self.memory, HostMemory::plain(0)?))
    }
}

impl Drop for CopiedProjections {
    /// Waits for the last copy, so that nothing is copied into freed memory.
    fn drop(&mut self) {
        if let Some(last) = &self.last {
            let _ = last.wait();
        }
    }
}
