//! Sinograms on a device, between what corrects them and the filter.

use super::Session;
use crate::error::Result;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

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

impl SinogramBatch<'_> {
    /// Values of a sinogram.
    pub fn sinogram_len(&self) -> usize {
        self.projections * self.bins
    }

    /// As many sinograms of this size at the start of another buffer.
    pub fn in_buffer<'b>(&self, values: &'b Buffer<f32>) -> SinogramBatch<'b> {
        SinogramBatch { values, first: 0, slices: self.slices, projections: self.projections, bins: self.bins }
    }

    /// Checks that the buffer holds all of them.
    ///
    /// # Errors
    /// [`Error::Internal`](crate::error::Error::Internal) when it does not.
    pub fn check(&self, session: &Session) -> Result<()> {
        session.expect_length(self.values, self.first + self.slices * self.sinogram_len(), "sinograms")
    }
}

impl Session {
    /// A buffer of `count` values that only kernels use; `what` names it in messages.
    ///
    /// # Errors
    /// [`Error::Memory`](crate::error::Error::Memory) when it cannot be allocated.
    pub fn scratch(&self, count: usize, what: &str) -> Result<DeviceValues> {
        self.buffer(count, CL_MEM_READ_WRITE, what)
    }
}
