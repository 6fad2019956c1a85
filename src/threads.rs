//! Results of threads.

use crate::error::{Error, Result};
use std::thread::ScopedJoinHandle;

/// Returns the result of the thread of a stage.
///
/// # Errors
/// Those of the stage, and [`Error::Internal`] if it panicked.
pub fn joined<T>(thread: ScopedJoinHandle<Result<T>>, stage: &str) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(panicked(stage)))
}

/// Makes the error of a thread that panicked.
pub fn panicked(stage: &str) -> Error {
    Error::Internal(format!("the {stage} stopped unexpectedly"))
}
