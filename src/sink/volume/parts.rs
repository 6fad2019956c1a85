//! Places of the files that contain the slices of an HDF5 output, if there are several.
//!
//! An output `NAME` refers to `NAME.parts/ID/part-000.h5` and so on. The identifier differs between runs, so an output
//! keeps its parts until another one has replaced it. The parts are in `.NAME.unfinished.parts` until all slices are
//! written; they get their final names before the output gets its own, which makes all of them valid in one step.

use super::description::VolumeDescription;
use super::paths::{remove, unfinished};
use crate::digest::PartsDigest;
use crate::error::messages;
use crate::visible::Shown;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

messages! {
    /// Errors of the directories of parts.
    enum PartsError: Output {
        NotADirectory { path: String } => "{path} must be a directory, but is a file",
    }
}

/// Returns the name of a part in its directory.
pub fn part_name(part: usize) -> String {
    format!("part-{part:03}.h5")
}

/// Returns the number of slices in a part: slice `i` of the output is in part `i` modulo the number of parts.
pub fn slices_of_part(slices: usize, parts: usize, part: usize) -> usize {
    slices.saturating_sub(part).div_ceil(parts)
}

/// Directories of the parts of an output.
#[derive(Clone, Debug)]
pub struct PartDirectories {
    pub output: PathBuf,
}

impl PartDirectories {
    /// Returns the directory of the parts of an unfinished output.
    pub fn hidden(&self) -> PathBuf {
        let mut path = unfinished(&self.output).into_os_string();
        path.push(".parts");
        path.into()
    }

    /// Returns the final directory of the parts, relative to the directory of the output.
    pub fn relative(&self, description: &VolumeDescription) -> PathBuf {
        let run = description.stamp.as_ref().map(|stamp| stamp.run.as_str()).unwrap_or_default();
        let slices = format!("{:?}", description.slices);
        let name = self.output.file_name().unwrap_or_default().to_string_lossy();
        PathBuf::from(format!("{name}.parts")).join(format!("{:.16}", PartsDigest::of([run, &slices])))
    }

    /// Returns the final directory of the parts.
    pub fn named(&self, description: &VolumeDescription) -> PathBuf {
        self.output.with_file_name(self.relative(description))
    }

    /// Returns the directory of the parts of the volume at a path, which is the output or an unfinished output.
    pub fn of(&self, path: &Path, description: &VolumeDescription) -> PathBuf {
        let hidden = self.hidden();
        if path != self.output && hidden.exists() { hidden } else { self.named(description) }
    }

    /// Makes the empty hidden directory.
    ///
    /// # Errors
    /// Errors of the system, and an existing file at the path of the parent of the final directory.
    pub fn make(&self, description: &VolumeDescription) -> io::Result<PathBuf> {
        let (hidden, named) = (self.hidden(), self.named(description));
        if let Some(parent) = named.parent().filter(|parent| parent.symlink_metadata().is_ok() && !parent.is_dir()) {
            let why = PartsError::NotADirectory { path: parent.shown() };
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        remove(&hidden)?;
        fs::create_dir(&hidden)?;
        Ok(hidden)
    }

    /// Gives the hidden directory its final name. An existing directory with that name is not in use: it is of the same
    /// run, and the output that referred to it was removed.
    pub fn show(&self, description: &VolumeDescription) -> io::Result<()> {
        let (hidden, named) = (self.hidden(), self.named(description));
        if !hidden.exists() {
            return Ok(()); // done before the run was stopped
        }
        fs::create_dir_all(named.parent().unwrap_or(&named))?;
        remove(&named)?;
        fs::rename(hidden, named)
    }

    /// Hides the final directory of an output that has lost its name.
    pub fn hide(&self, named: &Path) -> io::Result<()> {
        fs::rename(named, self.hidden())?;
        leave(named);
        Ok(())
    }

    /// Removes the directory of a volume that is about to be removed.
    pub fn remove(&self, directory: &Path) -> io::Result<()> {
        remove(directory)?;
        if directory != self.hidden() {
            leave(directory);
        }
        Ok(())
    }
}

/// Removes the directory that contained `named`, if it is empty.
fn leave(named: &Path) {
    let _ = fs::remove_dir(named.parent().unwrap_or(named)); // there may be something else in it
}
