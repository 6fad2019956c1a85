//! Place and format of an output.

use super::compression::Compression;
use super::errors::{OutputSpecError, SliceOutputError};
use super::existing::{Origin, StoredSlices};
use super::format::{OutputFormat, Sink};
use super::stamp::PageContent;
use crate::error::{Error, Result, messages};
use crate::files::{OutputKind, name_of_temporary};
use crate::visible::Shown;
use rayon::prelude::*;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::collections::HashSet;
use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

messages! {
    /// The end of a run that was stopped by a signal.
    enum StoppedOutputError: Interrupted {
        SlicesStay =>
            "interrupted: every slice written is complete"; "run again with --resume to reconstruct the others",
        NothingStays { path: String } => "interrupted: {path} is not written"; "run again",
    }
}

/// Place and format of the slices.
#[derive(Clone, Debug, SerializeDisplay, DeserializeFromStr)]
pub struct Target(Arc<dyn OutputFormat>);

/// Formats the output as `--output` takes it.
impl Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.spec())
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Target) -> bool {
        self.0.spec() == other.0.spec()
    }
}

impl Target {
    /// Creates a target of this format.
    pub fn new(format: impl OutputFormat + 'static) -> Target {
        Target(Arc::new(format))
    }

    /// Returns the file that contains slice `index`.
    pub fn path_of(&self, index: usize) -> PathBuf {
        self.0.path_of(index)
    }

    /// Returns the directory that contains the files.
    pub fn directory(&self) -> &Path {
        self.0.directory()
    }

    /// Reports whether the directory contains nothing but the slices.
    pub fn fills_directory(&self) -> bool {
        self.0.fills_directory()
    }

    /// Reports whether all slices are in one file.
    pub fn one_file(&self) -> bool {
        self.0.one_file()
    }

    /// Reports whether existing slices can be kept when a run is resumed.
    pub fn resumable(&self) -> bool {
        self.0.resumable()
    }

    /// Reports whether several jobs may each write a part of the slices.
    pub fn shareable(&self) -> bool {
        self.0.shareable()
    }

    /// Checks that the format supports this compression.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the supported ones.
    pub fn check_compression(&self, compression: Compression) -> Result<()> {
        let known = self.0.compressions();
        if known.contains(&compression) {
            return Ok(());
        }
        let known = known.iter().map(Compression::to_string).collect::<Vec<_>>().join(" or ");
        let (output, why) = (self.to_string(), self.0.why_not_others());
        Err(OutputSpecError::OtherCompression { output, compression, why, known }.into())
    }

    /// Reports whether `flag`, given without dashes, is the flag that concerns only files of this format.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.0.own_flag() == Some(flag)
    }

    /// Refuses to write to the input, over it or among it.
    ///
    /// # Errors
    /// [`Error::Output`] when an input is, or lies in, a path that a run with these slices writes or replaces, or when
    /// slices would be taken for pages of the input.
    pub fn check_inputs<'a>(&self, inputs: impl Iterator<Item = &'a Path>, run: &[usize]) -> Result<()> {
        let inputs: HashSet<_> = inputs.filter_map(|path| path.canonicalize().ok()).collect();
        let among = |directory: &Path| {
            let holds = |path: &PathBuf| path.is_file() && path.parent() == Some(directory);
            inputs.contains(directory) || self.fills_directory() && inputs.iter().any(holds)
        };
        if !self.one_file() && self.directory().canonicalize().is_ok_and(|directory| among(&directory)) {
            return Err(Error::output(self.directory(), SliceOutputError::BesideInput));
        }
        let within: HashSet<_> = inputs.iter().flat_map(|path| path.ancestors()).collect();
        match self.0.replaced(run).into_iter().find(|path| path.canonicalize().is_ok_and(|p| within.contains(&*p))) {
            Some(path) => Err(Error::output(&path, SliceOutputError::OverInput)),
            None => Ok(()),
        }
    }

    /// Returns the existing slices of a run with these ascending numbers.
    pub fn stored(&self, run: &[usize]) -> Box<dyn StoredSlices + '_> {
        self.0.stored(run)
    }

    /// Returns the number of complete slices that are not yet in a file with its final name; see
    /// [`OutputFormat::unfinished_slices`].
    ///
    /// # Errors
    /// [`Error::Output`] when there is an unfinished output, but it cannot be read.
    pub fn unfinished_slices(&self) -> Result<usize> {
        self.0.unfinished_slices()
    }

    /// Refuses to replace anything other than an output with this content that was written by this program.
    ///
    /// # Errors
    /// [`Error::Output`] that names the file.
    pub fn check_replaceable(&self, slices: &[usize], content: PageContent) -> Result<()> {
        let slices = if self.one_file() { &[0] } else { slices };
        // a torn file does not say who wrote it, but the run record next to it does
        let is_recorded = content == PageContent::Slices && OutputKind::Toml.wrote(&self.record());
        let may_go = |origin: Origin| match origin {
            Origin::Nothing => true,
            Origin::Own(found) => found == content,
            Origin::Torn => is_recorded,
            Origin::Foreign => false,
        };
        let found = slices.par_iter().map(|&slice| (slice, self.0.origin_of(slice)));
        let Some((slice, origin)) = found.find_first(|(_, origin)| !may_go(*origin)) else { return Ok(()) };
        let path = self.path_of(slice);
        let what = match origin {
            Origin::Torn => SliceOutputError::Torn,
            Origin::Own(PageContent::Slices) => SliceOutputError::OwnSlices,
            Origin::Own(PageContent::Pages) => SliceOutputError::OwnPages,
            Origin::Foreign | Origin::Nothing => SliceOutputError::Foreign,
        };
        Err(Error::output(&path, what))
    }

    /// Prepares to write slices; see [`OutputFormat::create`].
    pub(super) fn create(&self, slices: &[usize], overwrite: bool) -> Result<Box<dyn Sink>> {
        self.0.create(slices, overwrite)
    }

    /// Returns the file that records the run: `fbp-run.toml` in a directory, otherwise a name derived from the output.
    pub fn record(&self) -> PathBuf {
        self.0.record()
    }

    /// Returns the hidden file that is locked while a run writes here.
    pub fn lock(&self) -> PathBuf {
        self.directory().join(self.0.lock())
    }

    /// Returns the error of a run that was stopped by a signal.
    pub fn interrupted(&self) -> Error {
        match self.resumable() {
            true => StoppedOutputError::SlicesStay.into(),
            false => StoppedOutputError::NothingStays { path: self.path_of(0).shown() }.into(),
        }
    }

    /// Creates the directory that contains the files.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be created.
    pub fn make_directory(&self) -> Result<()> {
        let directory = self.directory();
        fs::create_dir_all(directory).map_err(|error| Error::output(directory, SliceOutputError::Directory { error }))
    }

    /// Reports whether there is any slice or, in a directory, any file except the run record.
    pub fn is_started(&self) -> bool {
        if self.one_file() {
            return self.path_of(0).exists() || !matches!(self.unfinished_slices(), Ok(0));
        }
        let record = self.record();
        let entries = fs::read_dir(self.directory()).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name());
        names.any(|name| !name.to_string_lossy().starts_with('.') && Some(name.as_os_str()) != record.file_name())
    }

    /// Removes temporary files that killed runs left in this output. Must only be called while no other run writes
    /// here.
    ///
    /// # Errors
    /// [`Error::Output`] when there is an unfinished output, but it cannot be read; then it is kept.
    pub fn remove_temporary_files(&self) -> Result<()> {
        for entry in fs::read_dir(self.directory()).into_iter().flatten().flatten() {
            if self.is_temporary(&entry.file_name().to_string_lossy()) {
                let remove = if entry.path().is_dir() { fs::remove_dir_all } else { fs::remove_file };
                let _ = remove(entry.path()); // it is hidden, and the next run tries again
            }
        }
        self.0.remove_unfinished()
    }

    /// Reports whether a file with this name is a temporary file of this output.
    fn is_temporary(&self, name: &str) -> bool {
        let Some(name) = name_of_temporary(name) else { return false };
        let is_record = || self.record().file_name().is_some_and(|record| record.to_string_lossy() == name);
        self.0.writes(name) || is_record()
    }
}
