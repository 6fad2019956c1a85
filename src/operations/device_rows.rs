//! Rows of projections on a device, and the part of them that an operation reads and computes.

use crate::device::Launch;
use crate::error::{Error, Result};
use opencl3::memory::Buffer;
use std::ops::Range;

/// Rows on the device, `[row][projection][bin]`.
#[derive(Clone, Copy)]
pub struct DeviceRows<'a> {
    pub values: &'a Buffer<f32>,
    pub first: usize,
    /// Number of values from the start of one row to that of the next.
    pub stride: usize,
}

impl DeviceRows<'_> {
    /// Returns the number of values of the buffer up to the end of the last of `rows` rows of `width` values.
    pub fn end(&self, rows: usize, width: usize) -> usize {
        self.first + rows.saturating_sub(1) * self.stride + width
    }
}

impl Launch<'_> {
    /// Sets the next argument to the buffer of `rows` rows, of whose values the kernel touches the first `width`.
    ///
    /// # Errors
    /// [`Error::Internal`] if the buffer does not hold all of them.
    pub(super) fn rows(self, of: &DeviceRows, rows: usize, width: usize) -> Result<Self> {
        self.buffer(of.values, of.end(rows, width), "rows of projections")
    }
}

/// Detector rows of some projections that an operation reads, and those that it computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImagePart {
    pub read: Range<usize>,
    pub wanted: Range<usize>,
    pub projections: usize,
}

impl ImagePart {
    /// Checks that the rows that are read include the wanted ones.
    pub(super) fn check(&self) -> Result<()> {
        let ImagePart { read, wanted, projections } = self;
        if wanted.is_empty() || *projections == 0 || read.start > wanted.start || read.end < wanted.end {
            return Err(Error::Internal(format!("rows {wanted:?} of {projections} projections from rows {read:?}")));
        }
        Ok(())
    }

    /// Returns the number of values of rows of `bins` that are read.
    pub(super) fn read_len(&self, bins: usize) -> usize {
        self.read.len() * self.projections * bins
    }
}
