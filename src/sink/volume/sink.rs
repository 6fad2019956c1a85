//! Writing slices to a volume.

use super::container::{Container, OpenVolume};
use super::errors::VolumeError;
use super::marks::Mark;
use super::output::VolumeOutput;
use super::paths::is_there;
use crate::error::{Error, Result};
use crate::sink::form::PageForm;
use crate::sink::format::Sink;
use crate::sink::page::{OutputPage, Pixels};
use crate::sink::request::OutputRequest;
use crate::visible::Shown;
use rayon::prelude::*;
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Writer of slices to a volume that does not have its final name yet.
pub(super) struct VolumeSink<C> {
    pub output: VolumeOutput<C>,
    /// Numbers of this job's slices, ascending.
    pub slices: Vec<usize>,
    pub overwrite: bool,
    /// The volume, once the sink is started.
    pub volume: OnceLock<Box<dyn OpenVolume>>,
}

impl<C: Container> VolumeSink<C> {
    /// Writes slices that are passed to [`OpenVolume::write`] together.
    fn write_group(&self, volume: &dyn OpenVolume, group: &[(usize, Pixels)], form: &PageForm) -> Result<u64> {
        let mut pages = Vec::new();
        for (index, pixels) in group {
            let Ok(place) = volume.description().slices.binary_search(index) else { continue };
            let page = OutputPage { form, pixels: *pixels, slice: None, number: None };
            pages.push((place, page.samples(&self.output.file.0)?));
        }
        let write = || -> io::Result<()> {
            let written = volume.write(&pages)?;
            let mark = |mark: fn(u32) -> Mark| {
                written.slices.iter().try_for_each(|&(place, crc)| volume.marks().set(place, mark(crc)))
            };
            mark(Mark::Written)?;
            volume.written(&written)?;
            mark(Mark::Complete)
        };
        write().map_err(|e| self.output.failed(&e))?;
        Ok(pages.iter().map(|(_, page)| page.clamped).sum())
    }
}

impl<C: Container> Sink for VolumeSink<C> {
    fn start(&self, request: &OutputRequest, kept: &[usize]) -> Result<()> {
        let _alone = self.output.alone()?;
        let left: Vec<_> = self.slices.iter().filter(|slice| kept.binary_search(slice).is_err()).collect();
        if left.is_empty() {
            return Ok(());
        }
        let volume = self.output.prepare(request)?;
        for slice in left {
            let Ok(place) = volume.description().slices.binary_search(slice) else { continue };
            let marked = volume.marks().get(place).map_err(|e| self.output.failed(&e))?;
            if matches!(marked, Mark::Complete(_)) && !self.overwrite {
                return Err(Error::output(&self.output.file.0, VolumeError::SliceExists { slice: *slice }));
            }
            volume.forget(place).map_err(|e| self.output.failed(&e))?;
        }
        let _ = self.volume.set(volume); // a sink is started once
        Ok(())
    }

    fn write(&self, slices: &[(usize, Pixels)], form: &PageForm) -> Result<u64> {
        let volume = self.volume.get().ok_or_else(|| Error::Internal("an output was not started".into()))?;
        let pair = |index: usize| volume.description().slices.binary_search(&index).ok().map(|place| place / 2);
        let groups: Vec<_> = slices.chunk_by(|(a, _), (b, _)| pair(*a) == pair(*b)).collect();
        let written = groups.into_par_iter().map(|group| self.write_group(&**volume, group, form));
        written.collect::<Vec<_>>().into_iter().sum()
    }

    fn finish(self: Box<Self>, request: &OutputRequest) -> Result<Vec<PathBuf>> {
        let _alone = self.output.alone()?;
        let (path, unfinished) = (&self.output.file.0, self.output.unfinished());
        if !is_there(&unfinished).map_err(|e| self.output.unreadable(&e))? {
            // all slices existed before, or another job was the last one
            let unfinished = unfinished.shown();
            let why = match self.output.is_of_run(path, &self.output.container.describe(request)) {
                Ok(true) => return Ok(vec![path.clone()]),
                Ok(false) => VolumeError::RemovedForAnotherRun { unfinished },
                Err(error) => VolumeError::Removed { unfinished, error },
            };
            return Err(Error::output(path, why));
        }
        let volume = self.output.container.open(&unfinished, true).map_err(|e| self.output.failed(&e))?;
        let planes = volume.description().slices.len();
        if *volume.description() != self.output.container.describe(request) {
            return Err(Error::output(path, VolumeError::Replaced));
        }
        if volume.marks().count(planes).map_err(|e| self.output.failed(&e))? < planes {
            return Ok(Vec::new());
        }
        volume.complete().map_err(|e| self.output.failed(&e))?;
        let description = volume.description().clone();
        drop(volume);
        self.output.publish(&description, self.overwrite)?;
        Ok(vec![path.clone()])
    }
}
