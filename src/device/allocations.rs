//! The memory that a session has allocated on its device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes allocated on a device, by purpose; shared by sessions that use the same buffers.
#[derive(Clone, Default)]
pub(super) struct Allocations(Arc<Mutex<BTreeMap<String, u64>>>);

impl Allocations {
    /// Adds an allocation.
    pub fn add(&self, what: &str, bytes: usize) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(what.to_owned()).or_default() += bytes as u64;
    }

    /// Returns the bytes of all allocations so far, including those of buffers that were freed.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the allocations so far.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}
