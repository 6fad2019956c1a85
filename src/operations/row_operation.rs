//! Operations on the corrected rows of projections, in their place.

use super::device_rows::DeviceRows;
use crate::device::Session;
use crate::error::Result;
use opencl3::event::Event;
use opencl3::memory::Buffer;
use std::fmt::Debug;
use std::ops::Range;

/// An operation on corrected rows in their place, which needs no rows around them and no buffers of its own.
pub trait RowOperation: Debug + Send + Sync {
    /// Builds the kernels.
    ///
    /// # Errors
    /// Errors of the device.
    fn build(&self, session: &Session) -> Result<Box<dyn RowKernel>>;

    /// Reports whether the operation is -log, which the correction of rows takes where nothing comes between them.
    fn is_minus_log(&self) -> bool {
        false
    }
}

/// The kernels of a [`RowOperation`].
pub trait RowKernel: Send {
    /// Processes rows of some projections. Does not wait for the kernels, which are among the uploads.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`](crate::error::Error::Internal) for a buffer that is too small.
    fn run(&self, session: &Session, rows: &BatchRows) -> Result<Event>;
}

/// Corrected rows of a batch of projections.
pub struct BatchRows<'a> {
    pub values: DeviceRows<'a>,
    pub rows: usize,
    pub projections: usize,
    pub bins: usize,
    /// The rows in which replaced values are counted.
    pub counted: Range<usize>,
    /// Index of the first counted row among the counts.
    pub place: usize,
    /// For each counted row of all batches, the values that were replaced: without light in the flat field, not finite or too large,
    /// without logarithm, saturated.
    pub counts: &'a Buffer<[u32; 4]>,
}
