//! Existing contents at the place of an output, and verification that files of slices are unchanged.

use super::compression::Compression;
use super::errors::SliceOutputError;
use super::form::PageForm;
use super::page::{OutputPage, Pixels};
use super::request::OutputRequest;
use super::stamp::{PageContent, SliceDescription, described, description};
use crate::error::{Error, Result};
use crate::files::open_regular;
use crate::source::Stack;
use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tiff::TiffError;
use tiff::decoder::Decoder;

/// State of the file of a slice.
#[derive(Clone, Debug, PartialEq)]
pub enum SliceState {
    /// File with all of its samples.
    Complete(SliceDescription),
    /// TIFF without a description by this program.
    Unknown,
    Missing,
    /// File that ends early, is not a TIFF, or does not have exactly the bytes that were written.
    Damaged,
    /// File that cannot be read, with the reason.
    Unreadable(String),
}

/// Slices that an output already contains.
pub trait StoredSlices: Sync {
    /// Returns the state of slice `index`, compared with what would be written for `request`.
    fn examine(&self, index: usize, request: &OutputRequest) -> SliceState;

    /// Reads the samples of a complete slice, `[row][pixel]`; integers are not scaled back to values.
    ///
    /// # Errors
    /// [`Error::Output`] when the slice cannot be read, or does not have as many samples as `out` has room for.
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()>;
}

/// Slices in separate TIFF files, or in whatever else the paths lead to.
pub(super) struct StoredTiffs<F>(pub F);

impl<F: Fn(usize) -> PathBuf + Sync> StoredSlices for StoredTiffs<F> {
    fn examine(&self, index: usize, request: &OutputRequest) -> SliceState {
        examine(&self.0(index), index, &request.page)
    }

    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        let path = self.0(index);
        let stack = Stack::open(&path.to_string_lossy(), "--output").map_err(|e| Error::Output(e.into()))?;
        if stack.len() != 1 || stack.width() * stack.height() != out.len() {
            return Err(Error::output(&path, SliceOutputError::NotOneSlice { pixels: out.len() }));
        }
        stack.read_rows(0, 0..stack.height(), out).map_err(|e| Error::Output(e.into()))
    }
}

/// Slices that are the pages of one file.
pub(super) struct StoredPages {
    path: PathBuf,
    /// Numbers of the slices, ascending.
    run: Vec<usize>,
    stack: OnceLock<std::result::Result<Stack, String>>,
}

impl StoredPages {
    pub fn new(path: &Path, run: &[usize]) -> StoredPages {
        StoredPages { path: path.to_owned(), run: run.to_vec(), stack: OnceLock::new() }
    }
}

impl StoredSlices for StoredPages {
    /// Returns [`SliceState::Unknown`], as a file of all pages is written at once, and never kept.
    fn examine(&self, _: usize, _: &OutputRequest) -> SliceState {
        SliceState::Unknown
    }

    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        let open = || Stack::open(&self.path.to_string_lossy(), "--output").map_err(|e| e.to_string());
        let stack = self.stack.get_or_init(open).as_ref().map_err(|e| Error::Output(e.clone().into()))?;
        let (pages, pixels) = (self.run.len(), out.len());
        let page = self.run.binary_search(&index).ok();
        match page.filter(|_| stack.len() == pages && stack.width() * stack.height() == pixels) {
            Some(page) => stack.read_rows(page, 0..stack.height(), out).map_err(|e| Error::Output(e.into())),
            None => Err(Error::output(&self.path, SliceOutputError::OtherSlices { slices: pages, pixels })),
        }
    }
}

/// Writer of the contents at the place of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No file, or a file without content.
    Nothing,
    /// This program.
    Own(PageContent),
    /// Unknown, as the file is truncated or damaged.
    Torn,
    /// Another program, or a person.
    Foreign,
}

/// Returns the writer of the TIFF at a path, where there may be anything.
pub(super) fn origin(path: &Path) -> Origin {
    match path.symlink_metadata() {
        Err(e) if e.kind() == ErrorKind::NotFound => return Origin::Nothing,
        Ok(meta) if meta.is_file() && meta.len() == 0 => return Origin::Nothing,
        Ok(meta) if meta.is_file() => {}
        // a link, a directory or a device
        _ => return Origin::Foreign,
    }
    let tags = open_regular(path).map_err(TiffError::from).and_then(|file| Decoder::new(BufReader::new(file)));
    match tags.map(|mut decoder| description(&mut decoder)) {
        Ok(Some(description)) => Origin::Own(description.content()),
        Ok(None) => Origin::Foreign,
        Err(_) => Origin::Torn,
    }
}

/// Reads a slice's file completely, encodes its samples again, and compares the two files byte by byte, so that not
/// only the samples but also all metadata are verified.
fn examine(path: &Path, index: usize, form: &PageForm) -> SliceState {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return SliceState::Missing,
        Err(e) => return SliceState::Unreadable(e.to_string()),
    };
    match is_whole(file, path, index, form) {
        Ok(true) => {}
        Err(e) if e.kind() != ErrorKind::UnexpectedEof => return SliceState::Unreadable(e.to_string()),
        Ok(false) | Err(_) => {
            return is_of_another_run(path, form).map_or(SliceState::Damaged, |_| SliceState::Unknown);
        }
    }
    match described(path) {
        Some(description) => SliceState::Complete(description),
        None => SliceState::Damaged,
    }
}

/// Returns the description of a slice if it is of another run than `form`.
fn is_of_another_run(path: &Path, form: &PageForm) -> Option<SliceDescription> {
    described(path).filter(|found| found.stamp.as_ref().map(|s| &s.run) != form.stamp.as_ref().map(|s| &s.run))
}

/// Reports whether a file is exactly what would be written for its own samples, without taking more memory than such a
/// file needs.
fn is_whole(mut file: File, path: &Path, index: usize, form: &PageForm) -> std::io::Result<bool> {
    let bytes = file.metadata()?.len();
    if bytes > form.most_bytes() {
        return Ok(false);
    }
    let mut found = Vec::with_capacity(bytes as usize);
    Read::take(&mut file, bytes).read_to_end(&mut found)?;
    let samples = match form.compression {
        Compression::None => {
            let data = form.tiff(1).header_bytes();
            found.get(data..data + form.sample_bytes() as usize).map(<[u8]>::to_vec)
        }
        _ => decoded(&found, form),
    };
    let Some(samples) = samples else { return Ok(false) };
    let page = OutputPage { form, pixels: Pixels::Samples(&samples, 0), slice: Some(index), number: None };
    Ok(page.bytes(path).is_ok_and(|expected| expected == found))
}

/// Decodes the samples of a compressed TIFF with one page of this form.
fn decoded(file: &[u8], form: &PageForm) -> Option<Vec<u8>> {
    let mut decoder = Decoder::new(Cursor::new(file)).ok()?;
    let sides = decoder.dimensions().ok()?;
    let all = form.sample_bytes() as usize;
    let strips = decoder.strip_count().ok()?;
    if (sides.0 as usize, sides.1 as usize) != (form.width, form.height) || strips as usize > form.height {
        return None;
    }
    let mut samples = Vec::with_capacity(all);
    for strip in 0..strips {
        samples.extend_from_slice(decoder.read_chunk(strip).ok()?.as_buffer(0).as_bytes());
    }
    (samples.len() == all).then_some(samples)
}
