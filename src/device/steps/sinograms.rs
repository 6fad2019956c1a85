//! Sinograms on a device, between what corrects them and the filter.

use super::{Session, cl_error};
use crate::error::{Error, Result};
use opencl3::command_queue::enqueue_copy_buffer;
use opencl3::error_codes::ClError;
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use std::ptr;

/// Values in a buffer on the device.
pub type DeviceValues = Buffer<f32>;

/// Sinograms in a buffer on the device: `[slice][projection][bin]`, the first at value `first`.
#[derive(Clone, Copy)]
pub struct SinogramBatch<'a> {
    pub values: &'a Buffer<f32>,
    pub first: usize,
    pub slices: usize,
    pub projections: usize,
    pub bins: usize,
}

impl<'a> SinogramBatch<'a> {
    /// Values of a sinogram.
    pub fn sinogram_len(&self) -> usize {
        self.projections * self.bins
    }

    /// As many sinograms of this size at the start of another buffer.
    pub fn in_buffer<'b>(&self, values: &'b Buffer<f32>) -> SinogramBatch<'b> {
        SinogramBatch { values, first: 0, slices: self.slices, projections: self.projections, bins: self.bins }
    }

    /// The same in parts of at most so many sinograms.
    pub fn parts(&self, most: usize) -> impl Iterator<Item = SinogramBatch<'a>> + use<'a> {
        let all = *self;
        (0..all.slices).step_by(most.max(1)).map(move |start| SinogramBatch {
            first: all.first + start * all.sinogram_len(),
            slices: most.max(1).min(all.slices - start),
            ..all
        })
    }

    /// Copies them to others of this size, in another buffer.
    ///
    /// # Errors
    /// [`Error::Internal`] when a buffer is too small, and the device's.
    pub fn copy_to(&self, session: &Session, to: &SinogramBatch) -> Result<()> {
        self.check(session)?;
        to.check(session)?;
        let count = self.slices * self.sinogram_len();
        if to.slices * to.sinogram_len() != count {
            return Err(Error::Internal("these sinograms are not of one size".into()));
        }
        let [from, into] = [self, to].map(|batch| batch.values.get());
        let [first, to_first] = [self, to].map(|batch| 4 * batch.first);
        // SAFETY: both buffers were checked.
        unsafe { enqueue_copy_buffer(session.queue.get(), from, into, first, to_first, 4 * count, 0, ptr::null()) }
            .map(|copied| drop(Event::new(copied)))
            .map_err(|e| cl_error("copying sinograms", session.device_name(), ClError(e)))
    }

    /// Checks that the buffer holds all of them.
    ///
    /// # Errors
    /// [`Error::Internal`] when it does not.
    pub fn check(&self, session: &Session) -> Result<()> {
        session.expect_length(self.values, self.first + self.slices * self.sinogram_len(), "sinograms")
    }
}

/// Memory for a step on sinograms; some of it may be what others use between passes only.
pub struct StepMemory<'a> {
    pub session: &'a Session,
    lent: Option<&'a Buffer<[f32; 2]>>,
    /// Bytes of that which are taken.
    taken: usize,
}

/// Bytes of memory that a step on sinograms needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepBytes {
    /// What nothing else may use.
    pub own: usize,
    /// What others may use when no step runs.
    pub shared: usize,
}

impl<'a> StepMemory<'a> {
    /// Parts of what others use between passes begin at multiples of so many bytes, which suit nearly all devices.
    const ALIGNED: usize = 512;

    /// With a buffer that others use between passes, if there is one.
    pub fn new(session: &'a Session, lent: Option<&'a Buffer<[f32; 2]>>) -> Self {
        StepMemory { session, lent, taken: 0 }
    }

    /// All of it, for another step that does not run at the same time.
    pub fn again(&self) -> Self {
        StepMemory { taken: 0, ..*self }
    }

    /// Bytes of what others use for buffers of so many values.
    pub fn shared_bytes(counts: impl IntoIterator<Item = usize>) -> usize {
        counts.into_iter().fold(0, |taken, count| taken.next_multiple_of(Self::ALIGNED) + 4 * count)
    }

    /// A buffer of `count` values that have no meaning when a pass begins; of its own, if there is no room in what is lent, or
    /// the device has no such parts.
    ///
    /// # Errors
    /// The device's.
    pub fn shared(&mut self, count: usize, what: &str) -> Result<DeviceValues> {
        let first = self.taken.next_multiple_of(Self::ALIGNED);
        let Some(lent) = self.lent.filter(|lent| lent.size().is_ok_and(|size| first + 4 * count <= size)) else {
            return self.session.scratch(count, what);
        };
        let pair = size_of::<[f32; 2]>();
        // SAFETY: the part lies within the buffer, which it keeps alive; commands that use both are in one queue.
        let part = unsafe { lent.create_sub_buffer(CL_MEM_READ_WRITE, first / pair, (4 * count).div_ceil(pair)) };
        let Ok(part) = part else { return self.session.scratch(count, what) };
        self.taken = first + 4 * count;
        // the same handle as a buffer of single values
        Ok(DeviceValues::new(std::mem::ManuallyDrop::new(part).get()))
    }
}

impl Session {
    /// A buffer of `count` values that only kernels use; `what` names it in messages.
    ///
    /// # Errors
    /// [`Error::Memory`] when it cannot be allocated.
    pub fn scratch(&self, count: usize, what: &str) -> Result<DeviceValues> {
        self.buffer(count, CL_MEM_READ_WRITE, what)
    }
}
