//! Interface of an output format.

use super::compression::Compression;
use super::existing::{Origin, StoredSlices, StoredTiffs, origin};
use super::form::PageForm;
use super::page::Pixels;
use super::request::OutputRequest;
use crate::error::Result;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use strum::VariantArray;

/// Format of an output of slices, together with its place.
pub trait OutputFormat: Debug + Send + Sync {
    /// Returns the output as `--output` takes it.
    fn spec(&self) -> String;

    /// Returns the file that contains slice `index`.
    fn path_of(&self, index: usize) -> PathBuf;

    /// Returns the directory that contains the files.
    fn directory(&self) -> &Path;

    /// Reports whether the directory contains nothing but the slices.
    fn fills_directory(&self) -> bool;

    /// Returns the prefix of the name of the run record; may be empty.
    fn record_prefix(&self) -> String;

    /// Returns the name of the hidden file that is locked while a run writes here.
    fn lock(&self) -> String;

    /// Reports whether a file with this name in the directory is written by this output.
    fn writes(&self, name: &str) -> bool;

    /// Reports whether all slices are in one file.
    fn one_file(&self) -> bool;

    /// Reports whether existing slices can be kept when a run is resumed.
    fn resumable(&self) -> bool;

    /// Reports whether several jobs may each write a part of the slices.
    fn shareable(&self) -> bool;

    /// Returns the files and directories that a run with these slices writes or replaces, including everything in them.
    fn replaced(&self, run: &[usize]) -> Vec<PathBuf> {
        run.iter().map(|&slice| self.path_of(slice)).collect()
    }

    /// Returns the flag that concerns only files of this format, without dashes.
    fn own_flag(&self) -> Option<&'static str> {
        None
    }

    /// Returns the supported compressions of samples.
    fn compressions(&self) -> &[Compression] {
        Compression::VARIANTS
    }

    /// Returns the reason why other compressions are not supported, as the end of a sentence; may be empty.
    fn why_not_others(&self) -> &'static str {
        ""
    }

    /// Returns the existing slices of a run with these numbers, in TIFF files by default.
    fn stored(&self, _run: &[usize]) -> Box<dyn StoredSlices + '_> {
        Box::new(StoredTiffs(|index| self.path_of(index)))
    }

    /// Returns the writer of the contents at the place of a slice.
    fn origin_of(&self, slice: usize) -> Origin {
        origin(&self.path_of(slice))
    }

    /// Returns the number of slices that are kept for [`--resume`](Self::resumable), but not yet in a file with its
    /// final name.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when there is an unfinished output, but it cannot be read.
    fn unfinished_slices(&self) -> Result<usize> {
        Ok(0)
    }

    /// Removes an unfinished output if no slice was written to it. Must only be called while no other run writes here.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when the unfinished output cannot be read; then it is kept.
    fn remove_unfinished(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the file that records the run: `fbp-run.toml` in a directory, otherwise a name derived from the output.
    fn record(&self) -> PathBuf {
        let prefix = self.record_prefix();
        let prefix = if prefix.is_empty() { "fbp" } else { &prefix };
        self.directory().join(format!("{prefix}{RECORD_END}"))
    }

    /// Prepares to write slices with these ascending numbers; the directory must exist. Existing files are only
    /// replaced with `overwrite`.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when the output is not writable.
    fn create(&self, slices: &[usize], overwrite: bool) -> Result<Box<dyn Sink>>;
}

/// Ending of the names of run records.
pub const RECORD_END: &str = "-run.toml";

/// Writer of the slices of a run, which several threads may use at the same time.
pub trait Sink: Send + Sync {
    /// Begins a run. `request` is complete, and no slices other than `kept` exist. Called once, before slices are
    /// written.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when the output cannot be prepared.
    fn start(&self, _request: &OutputRequest, _kept: &[usize]) -> Result<()> {
        Ok(())
    }

    /// Writes slices, given as numbers with pixels, and returns how many values were clamped. Each number must be one
    /// of those announced, and is written once.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when a slice cannot be written; then there is no file with its
    /// name.
    fn write(&self, slices: &[(usize, Pixels)], form: &PageForm) -> Result<u64>;

    /// Completes the output after all slices are written. Returns its files in order, or none as long as other jobs
    /// still have slices to write to them.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when a file cannot be renamed.
    fn finish(self: Box<Self>, request: &OutputRequest) -> Result<Vec<PathBuf>>;
}
