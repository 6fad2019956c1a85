//! Layouts of buffers before they are allocated.
//!
//! Each buffer of a part of an engine is declared once, in the layout of that part: the plan of a run adds up the
//! bytes, and the part allocates from the same list.

use super::Session;
use crate::error::{Error, Result};
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE};
use opencl3::types::cl_mem_flags;

/// The buffers of a part of an engine, each with its purpose and its size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferLayout {
    buffers: Vec<(&'static str, usize)>,
}

impl BufferLayout {
    /// Adds a buffer of `values` values.
    pub fn with<T>(self, what: &'static str, values: usize) -> Self {
        self.several::<T>(1, what, values)
    }

    /// Adds `count` buffers of `values` values each.
    pub fn several<T>(mut self, count: usize, what: &'static str, values: usize) -> Self {
        // no buffer is empty
        let bytes = values.max(1) * std::mem::size_of::<T>();
        self.buffers.extend(std::iter::repeat_n((what, bytes), count));
        self
    }

    /// Adds a buffer of `values` values if it is `used`.
    pub fn with_if<T>(self, used: bool, what: &'static str, values: usize) -> Self {
        if used { self.with::<T>(what, values) } else { self }
    }

    /// Adds all buffers of another layout.
    pub fn and(mut self, other: BufferLayout) -> Self {
        self.buffers.extend(other.buffers);
        self
    }

    /// Returns the number of bytes of all buffers together.
    pub fn bytes(&self) -> u64 {
        self.buffers.iter().map(|(_, bytes)| *bytes as u64).sum()
    }

    /// Returns the number of bytes of the largest buffer, or 0 if there is none.
    pub fn largest(&self) -> u64 {
        self.buffers.iter().map(|(_, bytes)| *bytes as u64).max().unwrap_or(0)
    }

    /// Allocates a buffer of the layout that kernels read and write.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is too little, and [`Error::Internal`] if the layout has no such buffer.
    pub fn buffer<T>(&self, session: &Session, what: &'static str) -> Result<Buffer<T>> {
        self.allocate(session, what, CL_MEM_READ_WRITE)
    }

    /// Allocates a buffer of the layout that kernels only read.
    ///
    /// # Errors
    /// Those of [`buffer`](Self::buffer).
    pub fn input<T>(&self, session: &Session, what: &'static str) -> Result<Buffer<T>> {
        self.allocate(session, what, CL_MEM_READ_ONLY)
    }

    /// Allocates a buffer of the layout that holds `data` and is only read.
    ///
    /// # Errors
    /// Those of [`buffer`](Self::buffer), and [`Error::Internal`] if the layout has a buffer of another size.
    pub fn constant<T: Copy>(&self, session: &Session, what: &'static str, data: &[T]) -> Result<Buffer<T>> {
        let bytes = data.len().max(1) * std::mem::size_of::<T>();
        if !self.buffers.contains(&(what, bytes)) {
            return Err(Error::Internal(format!("{what} of {bytes} bytes are not in a layout")));
        }
        session.constant_buffer(data, what)
    }

    fn allocate<T>(&self, session: &Session, what: &'static str, flags: cl_mem_flags) -> Result<Buffer<T>> {
        session.buffer(self.bytes_of(what)? / std::mem::size_of::<T>(), flags, what)
    }

    /// Returns the number of bytes of the buffer named `what`.
    pub(super) fn bytes_of(&self, what: &str) -> Result<usize> {
        let found = self.buffers.iter().find(|(name, _)| *name == what);
        found.map(|(_, bytes)| *bytes).ok_or_else(|| Error::Internal(format!("no layout has {what}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_added_up() {
        let rows = BufferLayout::default().with::<f32>("rows", 10).several::<u8>(3, "samples", 7);
        let all = rows.clone().with_if::<u64>(false, "nothing", 9).with::<u64>("empty", 0).and(rows);
        assert_eq!((all.bytes(), all.largest()), (40 + 21 + 8 + 40 + 21, 40));
        assert_eq!((all.bytes_of("samples").unwrap(), all.bytes_of("empty").unwrap()), (7, 8));
        assert!(all.bytes_of("nothing").is_err());
    }
}
