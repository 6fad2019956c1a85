//! Batched complex row transforms on device buffers.

mod clfft;

pub use clfft::ClFftRows;

use crate::device::Session;
use crate::error::Result;
use opencl3::event::Event;
use opencl3::memory::Buffer;

/// A plan for in-place, unscaled complex transforms of all rows of a buffer.
pub trait RowTransform {
    /// To frequencies.
    fn forward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event>;
    /// And back; a round trip multiplies by the row's length.
    fn backward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event>;
}
