//! Locks of outputs; every command takes one before it writes slices or pages.

use super::target::Target;
use crate::error::Result;
use crate::files::{Lock, LockMode};

/// Lock of an output, held until it is dropped. The last holder removes the temporary files of killed processes.
#[derive(Debug)]
pub struct OutputLock<'a> {
    lock: Lock,
    target: &'a Target,
}

impl<'a> OutputLock<'a> {
    /// Makes the directory of the output and takes its lock; `owner` is the text that other processes report. Temporary
    /// files of killed processes are removed if no other process may write here.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when another process has the lock, the directory cannot be made
    /// or written to, or an unfinished output cannot be read.
    pub fn take(target: &'a Target, mode: LockMode, owner: &str) -> Result<OutputLock<'a>> {
        target.make_directory()?;
        let lock = Lock::take(&target.lock(), mode, owner)?;
        if lock.works() && mode == LockMode::Exclusive {
            target.remove_temporary_files()?;
        }
        Ok(OutputLock { lock, target })
    }

    /// Takes the lock for this process alone.
    ///
    /// # Errors
    /// The errors of [`OutputLock::take`].
    pub fn alone(target: &'a Target) -> Result<OutputLock<'a>> {
        OutputLock::take(target, LockMode::Exclusive, &format!("process {}", std::process::id()))
    }

    pub fn target(&self) -> &'a Target {
        self.target
    }

    /// Reports whether the file system supports locks; if not, other processes are not kept out.
    pub fn works(&self) -> bool {
        self.lock.works()
    }

    /// Adds a line to the text that the holders share, and returns all lines.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when the text cannot be written.
    pub fn add(&mut self, line: &str) -> Result<Vec<String>> {
        self.lock.add(line)?;
        Ok(self.lock.lines())
    }
}

impl Drop for OutputLock<'_> {
    fn drop(&mut self) {
        // the last holder knows that all others have ended, including killed ones
        if self.lock.is_last() {
            let _ = self.target.remove_temporary_files(); // an output that cannot be read stays
        }
    }
}
