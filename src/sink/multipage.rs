//! One TIFF, or BigTIFF, with a page for each slice.

use super::file::{create, failed, finish};
use super::page::OutputPage;
use super::target::{OutputFormat, Target, is_tiff};
use super::{Pixels, Sink, SliceForm};
use crate::error::{Error, Result};
use crate::files::AtomicFile;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tiff::TiffError;
use tiff::encoder::{TiffEncoder, TiffKindBig, TiffKindStandard};

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

    fn in_order(&self) -> bool {
        true
    }

    fn resumable(&self) -> bool {
        false
    }

    fn shareable(&self) -> bool {
        false
    }

    fn create(&self, slices: &[usize], form: &SliceForm, overwrite: bool) -> Result<Box<dyn Sink>> {
        let path = &self.0;
        if slices.is_empty() {
            return Err(Error::output(path, "there is no slice to write to this file"));
        }
        if path.is_dir() {
            return Err(Error::output(path, "is a directory; expected the name of a file"));
        }
        let file = create(path)?;
        let cannot = |e| failed(path, &e);
        let own = file.file().try_clone().map_err(|e| cannot(TiffError::IoError(e)))?;
        let encoder = if form.is_big(slices.len()) {
            Encoder::Big(TiffEncoder::new_big(own).map_err(cannot)?)
        } else {
            Encoder::Classic(TiffEncoder::new(own).map_err(cannot)?)
        };
        let pages = Mutex::new(Pages { open: Some((encoder, file)), next: 0, count: slices.len() });
        Ok(Box::new(MultiPageSink { path: path.clone(), pages, overwrite }))
    }
}

enum Encoder {
    Classic(TiffEncoder<File, TiffKindStandard>),
    Big(TiffEncoder<File, TiffKindBig>),
}

/// Writes page after page to the file under its temporary name.
struct MultiPageSink {
    path: PathBuf,
    pages: Mutex<Pages>,
    overwrite: bool,
}

struct Pages {
    /// `None` after an error, which removes the file.
    open: Option<(Encoder, AtomicFile)>,
    /// Number of the next page, and total number.
    next: usize,
    count: usize,
}

impl Pages {
    fn write(&mut self, path: &Path, index: usize, pixels: Pixels, form: &SliceForm) -> Result<u64> {
        let Some((mut encoder, file)) = self.open.take() else {
            return Err(Error::output(path, format!("slice {index} came after this file failed")));
        };
        let page = OutputPage { form, pixels, slice: Some(index), number: Some((self.next, self.count)) };
        let clamped = match &mut encoder {
            Encoder::Classic(encoder) => page.write(encoder, path)?,
            Encoder::Big(encoder) => page.write(encoder, path)?,
        };
        self.next += 1;
        self.open = Some((encoder, file));
        Ok(clamped)
    }
}

impl Sink for MultiPageSink {
    fn write(&self, slices: &[(usize, Pixels)], form: &SliceForm) -> Result<u64> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        slices.iter().map(|(index, pixels)| pages.write(&self.path, *index, *pixels, form)).sum()
    }

    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>> {
        let Some((encoder, file)) = self.pages.into_inner().unwrap_or_else(PoisonError::into_inner).open else {
            return Err(Error::output(&self.path, "failed before it was complete"));
        };
        drop(encoder); // writes go straight to the file, so nothing is left to flush
        finish(file, self.overwrite)?;
        Ok(vec![self.path])
    }
}
