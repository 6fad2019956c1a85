//! The data that all stages of a run share, and the threads that they run in.

use super::errors::StageError;
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
    /// True to end the run: read before a piece is read and before a chunk is computed; computed slices are still
    /// written.
    pub cancelled: &'a AtomicBool,
    pub target: &'a Target,
    /// Number of the slice whose values are returned, if one is wanted.
    pub keep: Option<usize>,
    /// Called with every slice before it is written.
    pub observer: Option<&'a Observer<'a>>,
    /// Collects for how long each stage is busy.
    pub clock: &'a StageClock,
}

impl Run<'_> {
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }
}

/// Function that gets the number of a slice and what is known of it, from any thread and in any order.
pub type Observer<'a> = dyn Fn(usize, ObservedSlice) + Sync + 'a;

/// A slice before it is written.
#[derive(Clone, Copy)]
pub struct ObservedSlice<'a> {
    /// The finished values; `None` if a device encodes slices.
    pub values: Option<&'a [f32]>,
    /// Counts of the values, if a device counted them.
    pub counted: Option<&'a CountedSlice>,
}

/// Makes a thread pool for one stage: in a common pool, stages would wait for each other's tasks, such as writing a
/// whole slice.
pub(super) fn threads(what: &str) -> Result<ThreadPool> {
    some_threads(what, rayon::current_num_threads())
}

/// Makes a thread pool of at most `most` threads.
pub(super) fn some_threads(what: &str, most: usize) -> Result<ThreadPool> {
    let built = ThreadPoolBuilder::new().num_threads(most.min(rayon::current_num_threads()).max(1)).build();
    built.map_err(|e| StageError::NoThreads { what: what.to_owned(), error: e.to_string() }.into())
}

/// Returns the result of the thread of a stage.
pub(super) fn joined<T>(thread: ScopedJoinHandle<Result<T>>, stage: &str) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(panicked(stage)))
}

/// Makes the error of a thread that panicked.
pub(super) fn panicked(stage: &str) -> Error {
    Error::Internal(format!("the {stage} stopped unexpectedly"))
}
