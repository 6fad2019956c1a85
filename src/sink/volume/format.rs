//! Outputs of one volume as formats of `--output`.

use super::container::Container;
use super::errors::VolumeError;
use super::output::VolumeOutput;
use super::paths::is_there;
use super::sink::VolumeSink;
use super::stored::StoredVolume;
use crate::error::{Error, Result};
use crate::files::temporary_path;
use crate::sink::compression::Compression;
use crate::sink::errors::SliceOutputError;
use crate::sink::existing::{Origin, StoredSlices};
use crate::sink::format::{OutputFormat, Sink};
use crate::sink::spec::{OneFile, spec_of};
use crate::sink::target::Target;
use crate::source::zarr::is_zarr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

impl<C: Container> VolumeOutput<C> {
    /// Returns the output at a path, in this format.
    pub fn target(path: impl Into<PathBuf>, container: C) -> Target {
        Target::new(VolumeOutput { file: OneFile(path.into()), container })
    }
}

impl<C: Container> OutputFormat for VolumeOutput<C> {
    fn spec(&self) -> String {
        spec_of(&self.file.0)
    }

    fn path_of(&self, _: usize) -> PathBuf {
        self.file.0.clone()
    }

    fn directory(&self) -> &Path {
        self.file.directory()
    }

    fn fills_directory(&self) -> bool {
        false
    }

    fn record_prefix(&self) -> String {
        self.file.name()
    }

    fn lock(&self) -> String {
        self.file.lock()
    }

    fn writes(&self, name: &str) -> bool {
        name == self.file.name() || self.unfinished().file_name().is_some_and(|unfinished| unfinished == name)
    }

    fn one_file(&self) -> bool {
        true
    }

    fn resumable(&self) -> bool {
        true
    }

    fn shareable(&self) -> bool {
        true
    }

    fn replaced(&self, _: &[usize]) -> Vec<PathBuf> {
        let with_parts = |path: PathBuf| {
            let mut parts = path.clone().into_os_string();
            parts.push(".parts");
            [path, parts.into()]
        };
        [self.file.0.clone(), self.unfinished()].into_iter().flat_map(with_parts).collect()
    }

    fn origin_of(&self, _: usize) -> Origin {
        self.container.origin(&self.file.0)
    }

    fn own_flag(&self) -> Option<&'static str> {
        C::FLAG
    }

    fn compressions(&self) -> &[Compression] {
        self.container.compressions()
    }

    fn why_not_others(&self) -> &'static str {
        self.container.why_not_others()
    }

    fn unfinished_slices(&self) -> Result<usize> {
        let unfinished = self.unfinished();
        let count = || match is_there(&unfinished)? {
            true => {
                let volume = self.container.open(&unfinished, false)?;
                volume.marks().count(volume.description().slices.len())
            }
            false => Ok(0),
        };
        match count() {
            // another job may have given it its final name in the meantime
            Err(_) if is_there(&unfinished).is_ok_and(|there| !there) => Ok(0),
            counted => counted.map_err(|e| self.unreadable(&e)),
        }
    }

    fn remove_unfinished(&self) -> Result<()> {
        if self.unfinished_slices()? == 0 {
            let _ = self.container.remove(&self.unfinished()); // it is hidden, and the next run tries again
        }
        Ok(())
    }

    fn stored(&self, run: &[usize]) -> Box<dyn StoredSlices + '_> {
        Box::new(StoredVolume::new(self, run))
    }

    fn create(&self, slices: &[usize], overwrite: bool) -> Result<Box<dyn Sink>> {
        let path = &self.file.0;
        let holds = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if holds && !is_zarr(path) {
            return Err(Error::output(path, VolumeError::NotZarr));
        }
        // tests whether this directory is writable
        let temporary = temporary_path(&self.file.0).map_err(|e| Error::output(&self.file.0, e))?;
        let written = fs::write(&temporary, "").and_then(|()| fs::remove_file(&temporary));
        written.map_err(|error| Error::output(self.file.directory(), SliceOutputError::CannotWriteHere { error }))?;
        if slices.is_empty() {
            return Err(Error::output(&self.file.0, SliceOutputError::NoSlices));
        }
        Ok(Box::new(VolumeSink { output: self.clone(), slices: slices.to_vec(), overwrite, volume: OnceLock::new() }))
    }
}
