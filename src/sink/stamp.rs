//! Description of a slice in its TIFF tags, and verification that a file is unchanged.

use crate::error::{Error, Result};
use crate::source::Stack;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tiff::TiffError;
use tiff::decoder::{Decoder, Limits};
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
    /// What is there of slice `index`.
    fn examine(&self, index: usize) -> SliceState;

    /// Reads the samples of a complete slice, `[row][pixel]`; integers are not scaled.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be read, or does not have as many samples as `out` has room for.
    fn read(&self, index: usize, out: &mut [f32]) -> Result<()>;
}

/// Slices in TIFF files of their own, or whatever a path leads to.
pub(super) struct StoredTiffs<F>(pub F);

impl<F: Fn(usize) -> PathBuf + Sync> StoredSlices for StoredTiffs<F> {
    fn examine(&self, index: usize) -> SliceState {
        examine(&self.0(index))
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
    fn examine(&self, _: usize) -> SliceState {
        examine(&self.path)
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

/// The description of a file's first page, if there is one.
pub fn described(path: &Path) -> Option<SliceDescription> {
    description(&mut Decoder::new(BufReader::new(File::open(path).ok()?)).ok()?)
}

fn description(decoder: &mut Decoder<BufReader<File>>) -> Option<SliceDescription> {
    serde_json::from_str(&decoder.get_tag_ascii_string(Tag::ImageDescription).ok()?).ok()
}

/// Reads a slice's file completely and compares it with its checksum.
pub fn examine(path: &Path) -> SliceState {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return SliceState::Missing,
        Err(e) => return SliceState::Unreadable(e.to_string()),
    };
    let read = || -> std::result::Result<SliceState, TiffError> {
        let mut decoder = Decoder::new(BufReader::new(file))?.with_limits(Limits::unlimited());
        let Some(description) = description(&mut decoder) else { return Ok(SliceState::Unknown) };
        let mut crc = crc32fast::Hasher::new();
        for strip in 0..decoder.strip_count()? {
            crc.update(decoder.read_chunk(strip)?.as_buffer(0).as_bytes());
        }
        Ok(if digits(crc.finalize()) == description.crc32 {
            SliceState::Complete(description)
        } else {
            SliceState::Damaged
        })
    };
    match read() {
        Ok(found) => found,
        Err(TiffError::IoError(e)) if e.kind() != ErrorKind::UnexpectedEof => SliceState::Unreadable(e.to_string()),
        Err(_) => SliceState::Damaged,
    }
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
