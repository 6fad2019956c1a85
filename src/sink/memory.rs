//! Slices in memory: each is handed to a caller as it is finished.

use super::existing::Origin;
use super::form::PageForm;
use super::format::{OutputFormat, Sink};
use super::page::Pixels;
use super::request::OutputRequest;
use super::target::Target;
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Function that takes a slice, given as its number and its values `[row][pixel]`. Several threads call it, each number
/// once.
pub type TakeSlice = Arc<dyn Fn(usize, &[f32]) + Send + Sync>;

/// Output that no file stands for.
struct MemoryOutput(TakeSlice);

impl Target {
    /// Returns the output of 32-bit slices that `take` gets. It has no record and no lock.
    pub fn in_memory(take: TakeSlice) -> Target {
        Target::new(MemoryOutput(take))
    }
}

impl fmt::Debug for MemoryOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryOutput")
    }
}

impl OutputFormat for MemoryOutput {
    fn spec(&self) -> String {
        "memory".into()
    }

    /// Returns what messages call the slices.
    fn path_of(&self, _: usize) -> PathBuf {
        "the array of slices".into()
    }

    fn directory(&self) -> &Path {
        Path::new(".")
    }

    fn fills_directory(&self) -> bool {
        false
    }

    fn record_prefix(&self) -> String {
        String::new()
    }

    fn lock(&self) -> String {
        String::new()
    }

    fn writes(&self, _: &str) -> bool {
        false
    }

    fn one_file(&self) -> bool {
        true
    }

    fn resumable(&self) -> bool {
        false
    }

    fn shareable(&self) -> bool {
        false
    }

    fn replaced(&self, _: &[usize]) -> Vec<PathBuf> {
        Vec::new()
    }

    fn origin_of(&self, _: usize) -> Origin {
        Origin::Nothing
    }

    fn create(&self, _: &[usize], _: bool) -> Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink(Arc::clone(&self.0))))
    }
}

/// Hands slices on.
struct MemorySink(TakeSlice);

impl Sink for MemorySink {
    fn write(&self, slices: &[(usize, Pixels)], _: &PageForm) -> Result<u64> {
        slices.par_iter().try_for_each(|(number, pixels)| match pixels {
            Pixels::Values(values) => {
                (self.0)(*number, values);
                Ok(())
            }
            Pixels::Samples(..) => Err(Error::Internal("slices in memory have 32 bits".into())),
        })?;
        Ok(0)
    }

    fn finish(self: Box<Self>, _: &OutputRequest) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }
}
