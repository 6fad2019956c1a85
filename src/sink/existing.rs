//! What is at the place of an output already, and verification that files of slices are unchanged.

use super::compression::Compression;
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
    /// A file with all of its samples.
    Complete(SliceDescription),
    /// A TIFF without our description.
    Unknown,
    Missing,
    /// A file that ends early, is no TIFF, or has other samples than were written.
    Damaged,
    /// A file that cannot be read, and why.
    Unreadable(String),
}

/// Slices that an output has already.
pub trait StoredSlices: Sync {
    /// What is there of slice `index`, compared with what is written for this request.
    fn examine(&self, index: usize, request: &OutputRequest) -> SliceState;

    /// Reads the samples of a complete slice, `[row][pixel]`; integers are not scaled.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be read, or does not have as many samples as `out` has room for.
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()>;
}

/// Slices in TIFF files of their own, or whatever a path leads to.
pub(super) struct StoredTiffs<F>(pub F);

impl<F: Fn(usize) -> PathBuf + Sync> StoredSlices for StoredTiffs<F> {
    fn examine(&self, index: usize, request: &OutputRequest) -> SliceState {
        examine(&self.0(index), index, &request.page)
    }

    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        let path = self.0(index);
        let stack = Stack::open(&path.to_string_lossy(), "--output").map_err(|e| Error::Output(e.to_string()))?;
        if stack.len() != 1 || stack.width() * stack.height() != out.len() {
            return Err(Error::output(
                &path,
                format!("--output: is not one slice of {} pixels, as the run wrote it; run it again", out.len()),
            ));
        }
        stack.read_rows(0, 0..stack.height(), out).map_err(|e| Error::Output(e.to_string()))
    }
}

/// Slices that are the pages of one file.
pub(super) struct StoredPages {
    path: PathBuf,
    /// Numbers of its slices, ascending.
    run: Vec<usize>,
    stack: OnceLock<std::result::Result<Stack, String>>,
}

impl StoredPages {
    pub fn new(path: &Path, run: &[usize]) -> StoredPages {
        StoredPages { path: path.to_owned(), run: run.to_vec(), stack: OnceLock::new() }
    }
}

impl StoredSlices for StoredPages {
    /// A file of all pages is written at once, and never kept.
    fn examine(&self, _: usize, _: &OutputRequest) -> SliceState {
        SliceState::Unknown
    }

    fn read(&self, index: usize, out: &mut [f32]) -> Result<()> {
        let open = || Stack::open(&self.path.to_string_lossy(), "--output").map_err(|e| e.to_string());
        let stack = self.stack.get_or_init(open).as_ref().map_err(|e| Error::Output(e.clone()))?;
        let (pages, pixels) = (self.run.len(), out.len());
        let page = self.run.binary_search(&index).ok();
        match page.filter(|_| stack.len() == pages && stack.width() * stack.height() == pixels) {
            Some(page) => stack.read_rows(page, 0..stack.height(), out).map_err(|e| Error::Output(e.to_string())),
            None => Err(Error::output(
                &self.path,
                format!("--output: is not {pages} slices of {pixels} pixels, as the run wrote them; run it again"),
            )),
        }
    }
}

/// Who wrote what is at the place of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing is there, or a file without content.
    Nothing,
    /// This program.
    Own(PageContent),
    /// A file that is cut or damaged, so that it does not say.
    Torn,
    /// Another program, or a person.
    Foreign,
}

/// Who wrote the TIFF at a place, which may be anything.
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

/// Reads a slice's file completely, makes the file of its samples again, and compares the two byte by byte: not only the
/// samples but everything that a reader goes by is as it was written.
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

/// The key of the run of a file that is not as it is written for this one, if that is another run.
fn is_of_another_run(path: &Path, form: &PageForm) -> Option<SliceDescription> {
    described(path).filter(|found| found.stamp.as_ref().map(|s| &s.run) != form.stamp.as_ref().map(|s| &s.run))
}

/// Whether a file is exactly what would be written for its own samples. No more memory is asked for than such a file needs.
fn is_whole(mut file: File, path: &Path, index: usize, form: &PageForm) -> std::io::Result<bool> {
    let bytes = file.metadata()?.len();
    if bytes > form.most_bytes() {
        return Ok(false);
    }
    let mut found = Vec::with_capacity(bytes as usize);
    Read::take(&mut file, bytes).read_to_end(&mut found)?;
    let samples = match form.compression {
        Compression::None => {
            let data = form.kind(1).header_bytes();
            found.get(data..data + form.sample_bytes() as usize).map(<[u8]>::to_vec)
        }
        _ => decoded(&found, form),
    };
    let Some(samples) = samples else { return Ok(false) };
    let page = OutputPage { form, pixels: Pixels::Samples(&samples, 0), slice: Some(index), number: None };
    Ok(page.bytes(path).is_ok_and(|expected| expected == found))
}

/// The samples of a compressed TIFF with one page of this form.
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
