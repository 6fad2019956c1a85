//! Description of a slice in its TIFF tags, and verification that a file is unchanged.

use super::page::OutputPage;
use super::{Compression, PageContent, Pixels, SliceForm};
use crate::error::{Error, Result};
use crate::files::open_regular;
use crate::source::Stack;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tiff::TiffError;
use tiff::decoder::Decoder;
use tiff::tags::Tag;

/// Description of a run, the same in all of its slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceStamp {
    /// Key of the run; equal keys mean equal bytes.
    pub run: String,
    /// Rotation axis in bins, without the shifts of projections.
    pub center: f64,
    /// Side of a pixel, with its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixel_size: Option<String>,
    /// Pixels per centimetre, if the unit is known.
    #[serde(skip)]
    pub per_centimetre: Option<f64>,
}

/// The tag `ImageDescription` of a slice, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceDescription {
    /// Number of the slice.
    pub slice: usize,
    /// CRC-32 of the samples, in hexadecimal digits.
    pub crc32: String,
    /// Values of the smallest and the largest integer, if samples are integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f32, f32)>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<SliceStamp>,
}

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

/// A checksum in the form used by [`SliceDescription`].
pub(super) fn digits(crc: u32) -> String {
    format!("{crc:08x}")
}

/// Slices that an output has already.
pub trait StoredSlices: Sync {
    /// What is there of slice `index`, compared with what a writer of this form would write.
    fn examine(&self, index: usize, form: &SliceForm) -> SliceState;

    /// Reads the samples of a complete slice, `[row][pixel]`; integers are not scaled.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be read, or does not have as many samples as `out` has room for.
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()>;
}

/// Slices in TIFF files of their own, or whatever a path leads to.
pub(super) struct StoredTiffs<F>(pub F);

impl<F: Fn(usize) -> PathBuf + Sync> StoredSlices for StoredTiffs<F> {
    fn examine(&self, index: usize, form: &SliceForm) -> SliceState {
        examine(&self.0(index), index, form)
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
    fn examine(&self, _: usize, _: &SliceForm) -> SliceState {
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

impl SliceDescription {
    /// Slices belong to a run, other pages do not.
    pub(super) fn content(&self) -> PageContent {
        if self.stamp.is_some() { PageContent::Slices } else { PageContent::Pages }
    }
}

/// The description of a file's first page, if there is one.
pub fn described(path: &Path) -> Option<SliceDescription> {
    description(&mut Decoder::new(BufReader::new(open_regular(path).ok()?)).ok()?)
}

fn description(decoder: &mut Decoder<BufReader<File>>) -> Option<SliceDescription> {
    serde_json::from_str(&decoder.get_tag_ascii_string(Tag::ImageDescription).ok()?).ok()
}

/// Reads a slice's file completely, makes the file of its samples again, and compares the two byte by byte: not only the
/// samples but everything that a reader goes by is as it was written.
fn examine(path: &Path, index: usize, form: &SliceForm) -> SliceState {
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
fn is_of_another_run(path: &Path, form: &SliceForm) -> Option<SliceDescription> {
    described(path).filter(|found| found.stamp.as_ref().map(|s| &s.run) != form.stamp.as_ref().map(|s| &s.run))
}

/// Whether a file is exactly what would be written for its own samples. No more memory is asked for than such a file needs.
fn is_whole(mut file: File, path: &Path, index: usize, form: &SliceForm) -> std::io::Result<bool> {
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
fn decoded(file: &[u8], form: &SliceForm) -> Option<Vec<u8>> {
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

/// A positive number as a fraction of two 32-bit integers.
pub(super) fn fraction(value: f64) -> Option<(u32, u32)> {
    let d = [1_000_000, 10_000, 100, 1].into_iter().find(|&d| value * f64::from(d) < f64::from(u32::MAX))?;
    let n = (value * f64::from(d)).round() as u32;
    (n > 0).then_some((n, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions() {
        assert_eq!(fraction(1e4 / 0.65), Some((153846154, 10_000)));
        assert_eq!(fraction(2.0), Some((2_000_000, 1_000_000)));
        assert_eq!(fraction(1e9), Some((1_000_000_000, 1)));
        assert_eq!(fraction(1e12), None);
        assert_eq!(fraction(1e-9), None);
    }
}
