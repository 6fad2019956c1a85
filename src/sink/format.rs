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

/// A format for slices, with the place of the output.
pub trait OutputFormat: Debug + Send + Sync {
    /// As `--output` takes it.
    fn spec(&self) -> String;

    /// The file that holds slice `index`.
    fn path_of(&self, index: usize) -> PathBuf;

    /// The directory that the files go to.
    fn directory(&self) -> &Path;

    /// Whether the directory is only for the slices.
    fn fills_directory(&self) -> bool;

    /// Prefix of the record's name; may be empty.
    fn record_prefix(&self) -> String;

    /// Name of the hidden file that is locked while a run writes here.
    fn lock(&self) -> String;

    /// Whether a file of this name in the directory is written by this output.
    fn writes(&self, name: &str) -> bool;

    /// Whether all slices are in one file.
    fn one_file(&self) -> bool;

    /// Whether existing slices can be kept when a run is resumed.
    fn resumable(&self) -> bool;

    /// Whether several jobs may each write a part of the slices.
    fn shareable(&self) -> bool;

    /// Files and directories that a run with these slices writes or replaces, with all in them.
    fn replaced(&self, run: &[usize]) -> Vec<PathBuf> {
        run.iter().map(|&slice| self.path_of(slice)).collect()
    }

    /// A flag about files of this format only, without dashes.
    fn own_flag(&self) -> Option<&'static str> {
        None
    }

    /// How samples can be compressed.
    fn compressions(&self) -> &[Compression] {
        Compression::VARIANTS
    }

    /// Why there are no other ways, to follow the name of one; may be empty.
    fn why_not_others(&self) -> &'static str {
        ""
    }

    /// What is there of slices of a run, which has these numbers: TIFF files, unless the format says otherwise.
    fn stored(&self, _run: &[usize]) -> Box<dyn StoredSlices + '_> {
        Box::new(StoredTiffs(|index| self.path_of(index)))
    }

    /// Who wrote what is at the place of a slice.
    fn origin_of(&self, slice: usize) -> Origin {
        origin(&self.path_of(slice))
    }

    /// Number of slices that are kept for [`--resume`](Self::resumable) without a file that has their name yet.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when there is an unfinished output, but it cannot be read.
    fn unfinished_slices(&self) -> Result<usize> {
        Ok(0)
    }

    /// Removes an unfinished output if no slice was written to it. Must only be called while no other run writes here.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when it cannot be read; then it stays.
    fn remove_unfinished(&self) -> Result<()> {
        Ok(())
    }

    /// The file that records the run: `fbp-run.toml` in a directory, else named after the output.
    fn record(&self) -> PathBuf {
        let prefix = self.record_prefix();
        let prefix = if prefix.is_empty() { "fbp" } else { &prefix };
        self.directory().join(format!("{prefix}{RECORD_END}"))
    }

    /// Prepares to write slices with these ascending numbers; the directory exists. Existing files are only replaced with
    /// `overwrite`.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when the output is not writable.
    fn create(&self, slices: &[usize], overwrite: bool) -> Result<Box<dyn Sink>>;
}

/// How names of records end.
pub const RECORD_END: &str = "-run.toml";

/// Writes the slices of a run; several threads may write at the same time.
pub trait Sink: Send + Sync {
    /// Begins a run: all about it is known, and no slice but `kept` ones is there. Called once, before slices are written.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when the output cannot be made ready.
    fn start(&self, _request: &OutputRequest, _kept: &[usize]) -> Result<()> {
        Ok(())
    }

    /// Writes slices, given as numbers with pixels; returns how many values were clamped. Every number is one
    /// of those announced, and is written once.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when a slice cannot be written; then there is no file of its name.
    fn write(&self, slices: &[(usize, Pixels)], form: &PageForm) -> Result<u64>;

    /// Completes the output after all slices are written; returns its files in order, or none as long as other jobs have
    /// slices of them to write.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when a file cannot be renamed.
    fn finish(self: Box<Self>, request: &OutputRequest) -> Result<Vec<PathBuf>>;
}
