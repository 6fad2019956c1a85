//! One TIFF, or BigTIFF, with a page for each slice.

use super::directory::TiffKind;
use super::file::{create, failed, finish};
use super::page::OutputPage;
use super::target::{OutputFormat, Target, is_tiff};
use super::{Pixels, Sink, SliceForm};
use crate::error::{Error, Result};
use crate::files::AtomicFile;
use rayon::prelude::*;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One file, which appears when all of its pages are written.
#[derive(Debug)]
struct MultiPage(PathBuf);

/// Reads a spec that is the name of a TIFF and not a directory.
pub(super) fn parse_single(spec: &str) -> Result<Option<Target>> {
    let single = is_tiff(spec) && !Path::new(spec).is_dir();
    Ok(single.then(|| Target::single(spec)))
}

impl Target {
    /// One file with a page for each slice.
    pub fn single(path: impl Into<PathBuf>) -> Target {
        Target::new(MultiPage(path.into()))
    }
}

impl MultiPage {
    fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl OutputFormat for MultiPage {
    fn spec(&self) -> String {
        self.0.display().to_string()
    }

    fn path_of(&self, _: usize) -> PathBuf {
        self.0.clone()
    }

    fn directory(&self) -> &Path {
        self.0.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    fn fills_directory(&self) -> bool {
        false
    }

    fn stem(&self) -> String {
        self.0.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn lock(&self) -> String {
        format!(".{}.fbp-lock", self.name())
    }

    fn writes(&self, name: &str) -> bool {
        name == self.name()
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

    fn create(&self, slices: &[usize], _: &SliceForm, overwrite: bool) -> Result<Box<dyn Sink>> {
        let path = &self.0;
        if slices.is_empty() {
            return Err(Error::output(path, "there is no slice to write to this file"));
        }
        if path.is_dir() {
            return Err(Error::output(path, "is a directory; expected the name of a file"));
        }
        Ok(Box::new(MultiPageSink {
            path: path.clone(),
            file: create(path)?,
            slices: slices.to_vec(),
            places: OnceLock::new(),
            failure: OnceLock::new(),
            overwrite,
        }))
    }
}

/// Where pages are in the file: all have as much room as the one with the longest description needs.
#[derive(Clone, Copy, Debug)]
struct PagePlaces {
    kind: TiffKind,
    /// Bytes of a page, and of its part before the directory.
    room: u64,
    data: u64,
    pages: usize,
}

impl PagePlaces {
    /// For these slices, of which the last has the longest number.
    fn new(form: &SliceForm, slices: &[usize]) -> Self {
        let (kind, pages) = (form.kind(slices.len()), slices.len());
        let last = pages.saturating_sub(1);
        let page = OutputPage {
            form,
            pixels: Pixels::Values(&[]),
            slice: slices.last().copied(),
            number: Some((last, pages)),
        };
        PagePlaces { kind, room: page.room(kind), data: form.data_bytes(), pages }
    }

    /// Offset of the samples of a page.
    fn of(&self, page: usize) -> u64 {
        self.kind.header_bytes() as u64 + page as u64 * self.room
    }

    /// Offset of the directory of a page; 0 after the last one.
    fn directory(&self, page: usize) -> u64 {
        if page < self.pages { self.of(page) + self.data } else { 0 }
    }
}

/// Writes pages, in any order and several at the same time, to the file under its temporary name.
struct MultiPageSink {
    path: PathBuf,
    /// Is removed unless it is finished.
    file: AtomicFile,
    /// Numbers, ascending.
    slices: Vec<usize>,
    /// Known when the first page is written: what is said of the run comes late.
    places: OnceLock<PagePlaces>,
    /// The first error: after it nothing is written any more.
    failure: OnceLock<String>,
    overwrite: bool,
}

impl MultiPageSink {
    fn write_page(&self, index: usize, pixels: Pixels, form: &SliceForm) -> Result<u64> {
        let path = &self.path;
        let Ok(page) = self.slices.binary_search(&index) else { return Ok(0) };
        let places = self.places.get_or_init(|| PagePlaces::new(form, &self.slices));
        if let Some(failure) = self.failure.get() {
            return Err(Error::output(path, format!("slice {index} came after this file failed: {failure}")));
        }
        if !places.kind.reaches(places.of(places.pages)) {
            return Err(Error::output(path, "has more bytes than its offsets reach"));
        }
        let output = OutputPage { form, pixels, slice: Some(index), number: Some((page, places.pages)) };
        let encoded = output.encode(path)?;
        let (data, next) = (places.of(page), places.directory(page + 1));
        let written = output.write_at(self.file.file(), places.kind, &encoded, data, next);
        written.map_err(|e| failed(path, &e))?;
        Ok(encoded.clamped)
    }
}

impl Sink for MultiPageSink {
    fn write(&self, slices: &[(usize, Pixels)], form: &SliceForm) -> Result<u64> {
        let write = |(index, pixels): &(usize, Pixels)| {
            let result = self.write_page(*index, *pixels, form);
            result.inspect_err(|e| drop(self.failure.set(e.to_string())))
        };
        slices.par_iter().map(write).collect::<Vec<_>>().into_iter().sum()
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>> {
        let MultiPageSink { path, file, places, failure, overwrite, .. } = *self;
        let Some(places) = places.get().filter(|_| failure.get().is_none()) else {
            return Err(Error::output(&path, "failed before it was complete"));
        };
        let header = places.kind.header(places.directory(0));
        file.file().write_all_at(&header, 0).map_err(|e| failed(&path, &e))?;
        finish(file, overwrite)?;
        Ok(vec![path])
    }
}
