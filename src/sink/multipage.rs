//! A TIFF, or BigTIFF, with one page per slice.

use super::compression::Compression;
use super::errors::SliceOutputError;
use super::existing::{StoredPages, StoredSlices};
use super::file::{create, failed, finish};
use super::form::PageForm;
use super::format::{OutputFormat, Sink};
use super::page::{OutputPage, Pixels, PlacedPage, aligned};
use super::request::OutputRequest;
use super::spec::{OneFile, is_tiff, spec_of};
use super::target::Target;
use crate::error::{Error, Result};
use crate::files::AtomicFile;
use rayon::prelude::*;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// One file, which gets its name when all of its pages are written.
#[derive(Debug)]
struct MultiPage(OneFile);

/// Parses a specification that is the name of a TIFF and not a directory.
pub(super) fn parse_single(spec: &str) -> Result<Option<Target>> {
    let single = is_tiff(spec) && !Path::new(spec).is_dir();
    Ok(single.then(|| Target::single(spec)))
}

impl Target {
    /// Returns the output of one file with a page for each slice.
    pub fn single(path: impl Into<PathBuf>) -> Target {
        Target::new(MultiPage(OneFile(path.into())))
    }
}

impl OutputFormat for MultiPage {
    fn spec(&self) -> String {
        spec_of(&self.0.0)
    }

    fn path_of(&self, _: usize) -> PathBuf {
        self.0.0.clone()
    }

    fn directory(&self) -> &Path {
        self.0.directory()
    }

    fn fills_directory(&self) -> bool {
        false
    }

    fn record_prefix(&self) -> String {
        self.0.name()
    }

    fn lock(&self) -> String {
        self.0.lock()
    }

    fn writes(&self, name: &str) -> bool {
        name == self.0.name()
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

    fn stored(&self, run: &[usize]) -> Box<dyn StoredSlices + '_> {
        Box::new(StoredPages::new(&self.0.0, run))
    }

    fn create(&self, slices: &[usize], overwrite: bool) -> Result<Box<dyn Sink>> {
        let path = &self.0.0;
        if slices.is_empty() {
            return Err(Error::output(path, SliceOutputError::NoSlices));
        }
        if path.is_dir() {
            return Err(Error::output(path, SliceOutputError::IsDirectory));
        }
        Ok(Box::new(MultiPageSink {
            path: path.clone(),
            file: create(path)?,
            slices: slices.to_vec(),
            placed: Mutex::new(slices.iter().map(|_| None).collect()),
            end: AtomicU64::new(0),
            failure: OnceLock::new(),
            overwrite,
        }))
    }
}

/// Writer of the samples of pages, in any order and several at the same time, to a file with a temporary name. The
/// directories follow when all pages are written.
///
/// Uncompressed pages have fixed places, whatever the order. Compressed pages follow each other in the order of
/// writing.
struct MultiPageSink {
    path: PathBuf,
    /// File with a temporary name, which is removed unless it is finished.
    file: AtomicFile,
    /// Numbers of the slices, ascending.
    slices: Vec<usize>,
    /// Places of the pages that were written.
    placed: Mutex<Vec<Option<PlacedPage>>>,
    /// Offset of the next compressed page, after the pages written before.
    end: AtomicU64,
    /// Message of the first error, after which nothing more is written.
    failure: OnceLock<String>,
    overwrite: bool,
}

impl MultiPageSink {
    /// Returns the offset of a page whose samples take `bytes` bytes in the file.
    fn place(&self, page: usize, bytes: u64, form: &PageForm) -> u64 {
        let begin = aligned(form.tiff(self.slices.len()).header_bytes() as u64);
        match form.compression {
            Compression::None => begin + page as u64 * aligned(form.sample_bytes()),
            _ => begin + self.end.fetch_add(aligned(bytes), Relaxed),
        }
    }

    fn write_page(&self, index: usize, pixels: Pixels, form: &PageForm) -> Result<u64> {
        let path = &self.path;
        let Ok(page) = self.slices.binary_search(&index) else { return Ok(0) };
        if let Some(failure) = self.failure.get() {
            let error = failure.clone();
            return Err(Error::output(path, SliceOutputError::FailedBefore { slice: index, error }));
        }
        let page_of_slice = OutputPage { form, pixels, slice: Some(index), number: None };
        let encoded = page_of_slice.encode(path)?;
        let data = self.place(page, encoded.bytes(), form);
        let placed = encoded.write_at(self.file.file(), data).map_err(|e| failed(path, &e))?;
        self.placed()[page] = Some(placed);
        Ok(encoded.clamped)
    }

    fn placed(&self) -> MutexGuard<'_, Vec<Option<PlacedPage>>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the offset of the directories of all pages, and their bytes.
    fn directories(&self, form: &PageForm) -> Result<(u64, Vec<u8>)> {
        let (placed, pages) = (self.placed(), self.slices.len());
        let tiff = form.tiff(pages);
        let missing = || Error::output(&self.path, SliceOutputError::Incomplete);
        let end = placed.iter().map(|page| page.as_ref().map(PlacedPage::end).ok_or_else(missing));
        let begin = aligned(end.collect::<Result<Vec<_>>>()?.into_iter().max().ok_or_else(missing)?);
        let mut bytes = Vec::new();
        for (page, (placed, &slice)) in placed.iter().flatten().zip(&self.slices).enumerate() {
            let output =
                OutputPage { form, pixels: Pixels::Values(&[]), slice: Some(slice), number: Some((page, pages)) };
            let directory = output.directory(placed);
            let at = begin + bytes.len() as u64;
            let next = at + aligned(directory.bytes(tiff, at, 0).len() as u64);
            bytes.extend(directory.bytes(tiff, at, if page + 1 < pages { next } else { 0 }));
            bytes.resize((next - begin) as usize, 0);
        }
        if !tiff.reaches(begin + bytes.len() as u64) {
            return Err(Error::output(&self.path, SliceOutputError::TooLarge));
        }
        Ok((begin, bytes))
    }
}

impl Sink for MultiPageSink {
    fn write(&self, slices: &[(usize, Pixels)], form: &PageForm) -> Result<u64> {
        let write = |(index, pixels): &(usize, Pixels)| {
            let result = self.write_page(*index, *pixels, form);
            result.inspect_err(|e| drop(self.failure.set(e.to_string())))
        };
        slices.par_iter().map(write).collect::<Vec<_>>().into_iter().sum()
    }

    fn finish(self: Box<Self>, request: &OutputRequest) -> Result<Vec<PathBuf>> {
        let form = &request.page;
        let (begin, directories) = self.directories(form)?;
        let MultiPageSink { path, file, slices, overwrite, .. } = *self;
        let header = form.tiff(slices.len()).header(begin);
        let written = file.file().write_all_at(&directories, begin).and_then(|()| file.file().write_all_at(&header, 0));
        written.map_err(|e| failed(&path, &e))?;
        finish(file, overwrite)?;
        Ok(vec![path])
    }
}
