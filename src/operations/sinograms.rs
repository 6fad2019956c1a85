//! Sinograms on a device, between their correction and the filter.

use crate::device::{Launch, Session};
use crate::error::{Error, Result};
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

impl<'a> SinogramBatch<'a> {
    /// Returns the number of values of a sinogram.
    pub fn sinogram_len(&self) -> usize {
        self.projections * self.bins
    }

    /// Returns the number of values of the buffer up to the end of the last sinogram.
    pub fn end(&self) -> usize {
        self.first + self.slices * self.sinogram_len()
    }

    /// Returns a batch of as many sinograms of the same size at the start of another buffer.
    pub fn in_buffer<'b>(&self, values: &'b Buffer<f32>) -> SinogramBatch<'b> {
        SinogramBatch { values, first: 0, slices: self.slices, projections: self.projections, bins: self.bins }
    }

    /// Divides the batch into parts of at most `most` sinograms.
    pub fn parts(&self, most: usize) -> impl Iterator<Item = SinogramBatch<'a>> + use<'a> {
        let all = *self;
        (0..all.slices).step_by(most.max(1)).map(move |start| SinogramBatch {
            first: all.first + start * all.sinogram_len(),
            slices: most.max(1).min(all.slices - start),
            ..all
        })
    }

    /// Copies the sinograms to others of the same size, in another buffer.
    ///
    /// # Errors
    /// [`Error::Internal`] if a buffer is too small, and errors of the device.
    pub fn copy_to(&self, session: &Session, to: &SinogramBatch) -> Result<()> {
        self.check(session)?;
        to.check(session)?;
        let count = self.slices * self.sinogram_len();
        if to.slices * to.sinogram_len() != count {
            return Err(Error::Internal("these sinograms are not of one size".into()));
        }
        let [from, into] = [self, to].map(|batch| (batch.values, 4 * batch.first));
        session.copy_between(&session.queue, from, into, 4 * count, "sinograms").map(drop)
    }

    /// Checks that the buffer holds all sinograms of the batch.
    ///
    /// # Errors
    /// [`Error::Internal`] if it does not.
    pub fn check(&self, session: &Session) -> Result<()> {
        session.expect_length(self.values, self.end(), "sinograms")
    }
}

/// Size of sinograms, and the largest number of them that are processed at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinogramShape {
    pub slices: usize,
    pub projections: usize,
    pub bins: usize,
}

impl SinogramShape {
    /// Checks that a batch has sinograms of this size, not too many of them, and all of them in its buffer.
    ///
    /// # Errors
    /// [`Error::Internal`] if it does not.
    pub fn expect(&self, session: &Session, batch: &SinogramBatch) -> Result<()> {
        let same = (batch.projections, batch.bins) == (self.projections, self.bins);
        if !same || batch.slices > self.slices {
            let SinogramBatch { slices, projections, bins, .. } = batch;
            let found = format!("{slices} sinograms of {projections} projections and {bins} bins");
            return Err(Error::Internal(format!("{found} are not what {self:?} was made for")));
        }
        batch.check(session)
    }
}

impl Launch<'_> {
    /// Sets the next argument to the buffer of a batch of sinograms, in which the kernel touches nothing after them.
    ///
    /// # Errors
    /// [`Error::Internal`] if the buffer does not hold all of them.
    pub fn sinograms(self, batch: &SinogramBatch) -> Result<Self> {
        self.buffer(batch.values, batch.end(), "sinograms")
    }
}

impl Session {
    /// Allocates a buffer of `count` values that only kernels use; `what` names it in messages.
    ///
    /// # Errors
    /// [`Error::Memory`] if it cannot be allocated.
    pub fn scratch(&self, count: usize, what: &str) -> Result<DeviceValues> {
        self.buffer(count, CL_MEM_READ_WRITE, what)
    }
}
