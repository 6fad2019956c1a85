//! Output of one volume, from its preparation until it gets its final name.

use super::container::{Container, OpenVolume};
use super::description::VolumeDescription;
use super::errors::VolumeError;
use super::paths::{is_there, unfinished, volume_lock};
use crate::error::{Error, Result};
use crate::files::{Lock, temporary_path};
use crate::sink::errors::SliceOutputError;
use crate::sink::file::failed;
use crate::sink::request::OutputRequest;
use crate::sink::spec::OneFile;
use rustix::fs::{CWD, RenameFlags, rename, renameat_with};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Output of one volume.
#[derive(Clone, Debug)]
pub(super) struct VolumeOutput<C> {
    pub file: OneFile,
    pub container: C,
}

impl<C: Container> VolumeOutput<C> {
    /// Returns the path of the volume before it has its final name.
    pub fn unfinished(&self) -> PathBuf {
        unfinished(&self.file.0)
    }

    /// Takes the lock for operations that only one job may perform at a time.
    pub fn alone(&self) -> Result<Lock> {
        Lock::wait(&volume_lock(&self.file.0))
    }

    /// Returns the error of writing.
    pub fn failed(&self, error: &io::Error) -> Error {
        failed(&self.file.0, error)
    }

    /// Returns the error about an unfinished volume that may contain slices, and cannot be opened.
    pub fn unreadable(&self, error: &io::Error) -> Error {
        Error::output(&self.unfinished(), VolumeError::Unreadable { error: error.to_string() })
    }

    /// Reports whether a volume is of the run with this description.
    pub fn is_of_run(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool> {
        Ok(self.container.open(path, false)?.description().is_of_the_run_of(description))
    }

    /// Reports whether slices of the run with this description may be added to a volume.
    pub fn may_go_on(&self, path: &Path, description: &VolumeDescription) -> io::Result<bool> {
        Ok(self.is_of_run(path, description)? && self.container.is_as_made(path, description)?)
    }

    /// Returns the volume to which slices are written. An existing volume of the same run is kept.
    pub fn prepare(&self, request: &OutputRequest) -> Result<Box<dyn OpenVolume>> {
        let description = self.container.describe(request);
        let unfinished = self.unfinished();
        let goes_on = is_there(&unfinished).and_then(|there| Ok(there && self.may_go_on(&unfinished, &description)?));
        if !goes_on.map_err(|e| self.unreadable(&e))? {
            self.container.remove(&unfinished).map_err(|e| self.failed(&e))?;
            // a finished output that cannot be opened stays until it is replaced
            if self.may_go_on(&self.file.0, &description).unwrap_or(false) {
                rename(&self.file.0, &unfinished).map_err(|e| self.failed(&e.into()))?;
                self.container.hide_parts(&description).map_err(|e| self.failed(&e))?;
            } else {
                let temporary = temporary_path(&self.file.0).map_err(|e| self.failed(&e))?;
                let made = self.container.make(&temporary, &description, &request.run_file);
                // a full disk may have truncated it without an error
                let whole = made.and_then(|()| self.container.open(&temporary, false));
                let named = whole.and_then(|_| Ok(rename(&temporary, &unfinished)?));
                named.inspect_err(|_| drop(self.container.remove(&temporary))).map_err(|e| self.failed(&e))?;
            }
        }
        self.container.open(&unfinished, true).map_err(|e| self.failed(&e))
    }

    /// Gives a complete volume its final name, and replaces what has that name.
    pub fn publish(&self, description: &VolumeDescription, overwrite: bool) -> Result<()> {
        let (path, unfinished) = (&self.file.0, self.unfinished());
        let there = path.symlink_metadata().is_ok();
        if there && !overwrite {
            return Err(Error::output(path, SliceOutputError::Created));
        }
        self.container.show_parts(description).map_err(|e| self.failed(&e))?;
        let swapped = there.then(|| renameat_with(CWD, &unfinished, CWD, path, RenameFlags::EXCHANGE));
        let named = match swapped {
            Some(Ok(())) => return self.container.remove(&unfinished).map_err(|e| self.failed(&e)),
            // file systems that cannot exchange names; anything but a single file must be removed first
            Some(Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) if !self.container.is_single(path) => {
                self.container.remove(path).and_then(|()| Ok(rename(&unfinished, path)?))
            }
            Some(Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) | None => {
                rename(&unfinished, path).map_err(io::Error::from)
            }
            Some(Err(e)) => Err(e.into()),
        };
        named.map_err(|e| self.failed(&e))
    }

    /// Returns the volume that contains slices of the output: unfinished or finished.
    pub fn present(&self) -> Option<(PathBuf, io::Result<Box<dyn OpenVolume>>)> {
        let path = [self.unfinished(), self.file.0.clone()].into_iter().find(|path| path.exists())?;
        let volume = self.container.open(&path, false);
        Some((path, volume))
    }
}
