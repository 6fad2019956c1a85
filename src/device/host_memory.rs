//! Memory of the host that devices copy from and to.

use crate::error::{Error, Result};
use memmap2::MmapMut;
use opencl3::memory::Buffer;
use rayon::prelude::*;
use std::ops::{Deref, DerefMut};

/// Values that the host can read and write, from [`Session::host_memory`](super::Session::host_memory) or
/// [`Session::map`](super::Session::map).
pub struct HostMemory(pub(super) HostValues);

pub(super) enum HostValues {
    Plain(Vec<f32>),
    /// A buffer that is mapped for as long as it is here.
    Mapped {
        pointer: *mut f32,
        count: usize,
        buffer: Buffer<f32>,
        /// Pages of the host that it consists of, if the driver did not allocate it; dropped after the buffer.
        pages: Option<MmapMut>,
    },
}

// SAFETY: the mapped values belong to this object alone, whatever thread has it.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// Ordinary memory, all zeros.
    ///
    /// # Errors
    /// [`Error::Memory`] when there is too little.
    pub fn plain(count: usize) -> Result<Self> {
        let mut values = Vec::new();
        values.try_reserve_exact(count).map_err(|_| {
            Error::Memory(format!("the host has no memory for {} bytes; give a smaller --memory", 4 * count))
        })?;
        values.resize(count, 0.0);
        Ok(HostMemory(HostValues::Plain(values)))
    }

    /// The same memory as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    /// The same memory as bytes.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
}

impl Deref for HostMemory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.0 {
            HostValues::Plain(values) => values,
            // SAFETY: `count` floats are mapped there, and nothing writes while they are borrowed.
            HostValues::Mapped { pointer, count, .. } => unsafe { std::slice::from_raw_parts(*pointer, *count) },
        }
    }
}

impl DerefMut for HostMemory {
    fn deref_mut(&mut self) -> &mut [f32] {
        match &mut self.0 {
            HostValues::Plain(values) => values,
            // SAFETY: `count` floats are mapped there, and this is the only way to them.
            HostValues::Mapped { pointer, count, .. } => unsafe { std::slice::from_raw_parts_mut(*pointer, *count) },
        }
    }
}

/// Smallest size of a page of memory, in bytes.
const PAGE: usize = 4096;

/// Pages for `count` values, large ones where the system has them; made by many threads, as a driver would make one after the
/// other when it pins them.
pub(super) fn pages(count: usize) -> Option<MmapMut> {
    let mut pages = MmapMut::map_anon(count.max(1) * size_of::<f32>()).ok()?;
    // small pages do as well
    #[cfg(target_os = "linux")]
    let _ = pages.advise(memmap2::Advice::HugePage);
    pages.par_chunks_mut(PAGE << 9).for_each(|chunk| chunk.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0));
    Some(pages)
}
