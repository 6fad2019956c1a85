//! The interface of the transforms of rows.

use crate::device::Session;
use crate::error::Result;
use opencl3::event::Event;
use opencl3::memory::Buffer;

/// A plan for in-place, unscaled complex transforms of all rows of a buffer.
pub trait RowTransform: Send {
    /// Transforms values to frequencies.
    fn forward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event>;
    /// Transforms frequencies to values; a round trip multiplies by the row's length.
    fn backward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event>;
}
