//! The data that all stages of a run share, and the threads that they run in.

use super::finish::Finish;
use super::source::Source;
use crate::error::{Error, Result};
use crate::histogram::CountedSlice;
use crate::recipe::Recipe;
use crate::report::{Reporter, StageClock};
use crate::sink::Target;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;

/// The data that all stages share.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    pub recipe: &'a Recipe,
    pub source: &'a Source,
    /// Numbers of the slices to compute, ascending.
    pub slices: &'a [usize],
    pub finish: &'a Finish,
    pub reporter: &'a Reporter,
    /// Checked before a piece is read and before a chunk is computed; slices that are computed are still written.
    pub cancelled: &'a AtomicBool,
    pub target: &'a Target,
    /// The slice whose values are handed back, if one is wanted.
    pub keep: Option<usize>,
    /// Sees every slice before it is written.
    pub observer: Option<&'a Observer<'a>>,
    /// For how long stages were busy, while they are.
    pub clock: &'a StageClock,
}

impl Run<'_> {
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}

/// Sees the number of a slice and what is known of it; from any thread, in any order.
pub type Observer<'a> = dyn Fn(usize, ObservedSlice) + Sync + 'a;

/// A slice before it is written.
#[derive(Clone, Copy)]
pub struct ObservedSlice<'a> {
    /// The finished values; none if a device encodes slices.
    pub values: Option<&'a [f32]>,
    /// Counts of a device, if it counted values.
    pub counted: Option<&'a CountedSlice>,
}

/// Threads of a stage of its own: else stages wait for each other's tasks, such as writing a whole slice.
pub(super) fn threads(what: &str) -> Result<ThreadPool> {
    ThreadPoolBuilder::new().build().map_err(|e| {
        Error::Memory(format!(
            "cannot start the threads that {what}: {e}; allow more threads (ulimit -u), or fewer with RAYON_NUM_THREADS"
        ))
    })
}

/// The result of the thread of a stage.
pub(super) fn joined<T>(thread: ScopedJoinHandle<Result<T>>, stage: &str) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(panicked(stage)))
}

/// Makes the error of a thread that panicked.
pub(super) fn panicked(stage: &str) -> Error {
    Error::Internal(format!("the {stage} stopped unexpectedly"))
}
