//! The threads that stages run in.

use super::errors::StageError;
use crate::error::Result;
use rayon::{ThreadPool, ThreadPoolBuilder};

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
