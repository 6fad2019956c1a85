//! Separate TIFF files for the slices, in a directory or named by a pattern.

use super::errors::{OutputSpecError, SliceOutputError};
use super::file::create;
use super::form::PageForm;
use super::format::{OutputFormat, Sink};
use super::page::{OutputPage, Pixels};
use super::request::OutputRequest;
use super::spec::{is_tiff, spec_of, split};
use super::target::Target;
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Name of a temporary file that tests whether a directory is writable.
const WRITE_TEST: &str = "fbp-write-test";

/// Files whose names are `prefix`, the slice number with at least `digits` digits, and `suffix`.
#[derive(Debug)]
struct SeparateFiles {
    directory: PathBuf,
    prefix: String,
    /// Smallest number of digits; numbers are padded with zeros.
    digits: usize,
    suffix: String,
    /// True if the output is a directory, false if it is a pattern of files.
    own_directory: bool,
}

/// Parses any specification as a directory for `slice_00000.tif`, ...
pub(super) fn parse_directory(spec: &str) -> Result<Option<Target>> {
    Ok((!spec.is_empty()).then(|| Target::directory_of_slices(spec)))
}

/// Parses a specification with the slice number in its last part: a printf pattern of file names.
pub(super) fn parse_pattern(spec: &str) -> Result<Option<Target>> {
    let wrong = |why: fn(String) -> OutputSpecError| Error::from(why(spec.to_owned()));
    let (directory, name) = split(spec);
    let mut prefix = String::new();
    // smallest number of digits of the slice number, and the text after it
    let mut number: Option<(usize, String)> = None;
    let mut rest = name;
    while let Some((text, after)) = rest.split_once('%') {
        let part = number.as_mut().map_or(&mut prefix, |(_, suffix)| suffix);
        part.push_str(text);
        if let Some(after) = after.strip_prefix('%') {
            part.push('%');
            rest = after;
            continue;
        }
        let (width, after) = after
            .split_once(['i', 'd'])
            .filter(|(width, _)| width.chars().all(|c| c.is_ascii_digit()))
            .ok_or_else(|| wrong(|spec| OutputSpecError::Placeholder { spec }))?;
        let digits = match width {
            "" => 1,
            w if w.starts_with('0') => w
                .parse()
                .ok()
                .filter(|&n| n <= 20)
                .ok_or_else(|| wrong(|spec| OutputSpecError::TooManyDigits { spec }))?,
            _ => return Err(wrong(|spec| OutputSpecError::Blanks { spec })),
        };
        if number.replace((digits, String::new())).is_some() {
            return Err(wrong(|spec| OutputSpecError::SecondNumber { spec }));
        }
        rest = after;
    }
    let Some((digits, suffix)) = number else { return Ok(None) };
    let suffix = suffix + rest;
    if !is_tiff(&suffix) {
        return Err(wrong(|spec| OutputSpecError::NotTiff { spec }));
    }
    let directory = match directory {
        "" => ".".into(),
        "/" => "/".into(),
        directory => directory.trim_end_matches('/').into(),
    };
    Ok(Some(Target::new(SeparateFiles { directory, prefix, digits, suffix, own_directory: false })))
}

impl Target {
    /// Returns the output `slice_00000.tif`, ... in a directory that contains nothing else.
    pub fn directory_of_slices(directory: impl Into<PathBuf>) -> Target {
        Target::directory_of(directory, "slice_")
    }

    /// Returns the output of files named `prefix`, 5 digits and `.tif` in a directory that contains nothing else.
    pub fn directory_of(directory: impl Into<PathBuf>, prefix: &str) -> Target {
        Target::new(SeparateFiles { own_directory: true, ..SeparateFiles::numbered(directory.into(), prefix) })
    }
}

impl SeparateFiles {
    fn numbered(directory: PathBuf, prefix: &str) -> SeparateFiles {
        SeparateFiles { directory, prefix: prefix.to_owned(), digits: 5, suffix: ".tif".into(), own_directory: false }
    }
}

impl OutputFormat for SeparateFiles {
    fn spec(&self) -> String {
        match self.own_directory {
            true => spec_of(&self.directory),
            false => {
                let escaped = |text: &str| text.replace('%', "%%");
                let name = format!("{}%0{}i{}", escaped(&self.prefix), self.digits, escaped(&self.suffix));
                self.directory.join(name).display().to_string()
            }
        }
    }

    fn path_of(&self, index: usize) -> PathBuf {
        let SeparateFiles { directory, prefix, digits, suffix, .. } = self;
        directory.join(format!("{prefix}{index:0digits$}{suffix}"))
    }

    fn directory(&self) -> &Path {
        &self.directory
    }

    fn fills_directory(&self) -> bool {
        self.own_directory
    }

    fn record_prefix(&self) -> String {
        match self.own_directory {
            true => String::new(),
            false => self.prefix.trim_end_matches(['-', '_', '.']).to_owned(),
        }
    }

    fn lock(&self) -> String {
        match self.own_directory {
            true => ".fbp-lock".into(),
            false => format!(".{}{}.fbp-lock", self.prefix, self.suffix),
        }
    }

    fn writes(&self, name: &str) -> bool {
        let number = name.strip_prefix(&self.prefix).and_then(|rest| rest.strip_suffix(&self.suffix));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        number.is_some_and(is_number) || name == WRITE_TEST
    }

    fn one_file(&self) -> bool {
        false
    }

    fn resumable(&self) -> bool {
        true
    }

    fn shareable(&self) -> bool {
        true
    }

    fn create(&self, slices: &[usize], overwrite: bool) -> Result<Box<dyn Sink>> {
        drop(create(&self.directory.join(WRITE_TEST))?);
        let files = slices.iter().map(|&index| (index, self.path_of(index))).collect();
        Ok(Box::new(SeparateSink { files, overwrite }))
    }
}

/// Writer of separate files in parallel.
struct SeparateSink {
    /// Paths of the slices by number, ascending.
    files: Vec<(usize, PathBuf)>,
    overwrite: bool,
}

impl SeparateSink {
    fn write_slice(&self, index: usize, pixels: Pixels, form: &PageForm) -> Result<u64> {
        let Ok(place) = self.files.binary_search_by_key(&index, |(index, _)| *index) else { return Ok(0) };
        let path = &self.files[place].1;
        if !self.overwrite && path.exists() {
            return Err(Error::output(path, SliceOutputError::SliceCreated { slice: index }));
        }
        OutputPage { form, pixels, slice: Some(index), number: None }.write_file(path)
    }
}

impl Sink for SeparateSink {
    fn write(&self, slices: &[(usize, Pixels)], form: &PageForm) -> Result<u64> {
        let clamped =
            slices.par_iter().map(|(index, pixels)| self.write_slice(*index, *pixels, form)).collect::<Vec<_>>();
        clamped.into_iter().sum()
    }

    fn finish(self: Box<Self>, _: &OutputRequest) -> Result<Vec<PathBuf>> {
        Ok(self.files.into_iter().map(|(_, path)| path).collect())
    }
}
