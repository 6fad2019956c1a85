//! A sequence of pages read from many files or one.

use super::SampleType;
use super::decode::{Page, read_pages};
use super::order::{check_names, natural};
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::collections::HashMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Files that a run may open besides the stack's.
const OTHER_FILES: u64 = 256;

/// Whether so many files may stay open; else each is opened for every read. Asks the system for more than its usual limit.
fn may_stay_open(files: usize) -> bool {
    let wanted = files as u64 + OTHER_FILES;
    rlimit::increase_nofile_limit(wanted).is_ok_and(|limit| limit >= wanted)
}

/// Pages of one size and sample type, in natural order of the file names.
///
/// Opening reads headers alone; [`Stack::read_rows`] may be called from many threads at once.
/// Values are as stored: the photometric interpretation inverts nothing.
#[derive(Debug)]
pub struct Stack {
    flag: String,
    files: Vec<PathBuf>,
    /// Size of each file in bytes when its header was read, and its handle when it stays open.
    states: Vec<(u64, Option<File>)>,
    /// Index of the file, number of the page in it, and its layout.
    pages: Vec<(usize, usize, Page)>,
    width: usize,
    height: usize,
    sample: SampleType,
    notes: Vec<String>,
}

impl Stack {
    /// Opens `spec`: a directory (its `*.tif` and `*.tiff`), a glob, or one TIFF of any number of
    /// pages. `flag` is the name that messages use, for example `--sinograms`.
    ///
    /// # Errors
    /// [`Error::Input`] when nothing is there, a file is not a TIFF, is damaged or truncated, when
    /// pages differ in size or sample type, or when a file of the directory is not named like the
    /// others; [`Error::Usage`] for a glob that is malformed.
    pub fn open(spec: &str, flag: &str) -> Result<Stack> {
        let mut notes = Vec::new();
        let files = find(spec, flag, &mut notes)?;
        let keep = may_stay_open(files.len());
        let opened: Vec<Result<_>> = files.par_iter().map(|path| open_file(path, flag, keep)).collect();
        let (mut states, mut pages) = (Vec::new(), Vec::new());
        for (index, result) in opened.into_iter().enumerate() {
            let (length, handle, found) = result?;
            states.push((length, handle));
            pages.extend(found.into_iter().enumerate().map(|(number, page)| (index, number, page)));
        }
        let Some((_, _, first)) = pages.first() else {
            return Err(bad(flag, Path::new(spec), "holds no pages"));
        };
        let (width, height, sample) = (first.width, first.height, first.sample);
        let mut stack = Stack { flag: flag.to_owned(), files, states, pages, width, height, sample, notes };
        stack.agree()?;
        Ok(stack)
    }

    /// Checks that all pages agree in size and sample type; the majority decides who is odd.
    fn agree(&mut self) -> Result<()> {
        let key = |page: &Page| (page.width, page.height, page.sample);
        let mut groups: HashMap<_, usize> = HashMap::new();
        for (_, _, page) in &self.pages {
            *groups.entry(key(page)).or_default() += 1;
        }
        let most = groups.values().copied().max().unwrap_or(0);
        if let Some((_, _, page)) = self.pages.iter().find(|(_, _, p)| groups[&key(p)] == most) {
            (self.width, self.height, self.sample) = key(page);
        }
        let usual = (self.width, self.height, self.sample);
        let Some(odd) = self.pages.iter().position(|(_, _, p)| key(p) != usual) else {
            return Ok(());
        };
        let (_, _, page) = &self.pages[odd];
        let others = if self.pages.len() == 2 { "the other is" } else { "the others are" };
        let difference = if (page.width, page.height) == (self.width, self.height) {
            format!("is {}, {others} {}", page.sample, self.sample)
        } else {
            format!("is {}x{}, {others} {}x{}", page.width, page.height, self.width, self.height)
        };
        let name = self.page_name(odd);
        Err(Error::Input(format!(
            "{}: slice {odd}: {name} {difference}; move it away, or name the files that belong \
             together with a glob",
            self.flag
        )))
    }

    /// Number of pages over all files.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// True when there is no page; a stack that opened has at least one.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Pixels in a row (detector bins).
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows of each page.
    pub fn height(&self) -> usize {
        self.height
    }

    /// How the files store one sample.
    pub fn sample(&self) -> SampleType {
        self.sample
    }

    /// The files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Name of a page for messages: `p_0003.tif`, or `stack.tif page 7` (from 0) in a file of several.
    pub fn page_name(&self, page: usize) -> String {
        let Some((file, number, _)) = self.pages.get(page) else {
            return format!("page {page}");
        };
        let name = file_name(&self.files[*file]);
        let other = |i: usize| self.pages.get(i).is_some_and(|p| p.0 == *file);
        if other(page + 1) || *number > 0 { format!("{name} page {number}") } else { name }
    }

    /// What a person should know about the files: ignored ones, numbers left out.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads rows of one page as f32, row-major: `rows.len() * width` values into `out`.
    ///
    /// # Errors
    /// [`Error::Input`] when the file cannot be read or is damaged, and when `page`, `rows` or
    /// `out` do not fit the stack. After an error `out` holds nothing of use.
    pub fn read_rows(&self, page: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let Some((file, number, layout)) = self.pages.get(page) else {
            return Err(Error::Input(format!("{}: no page {page}, there are {}", self.flag, self.len())));
        };
        if rows.start > rows.end || rows.end > self.height || out.len() != rows.len() * self.width {
            return Err(Error::Input(format!(
                "{}: rows {}..{} into {} values do not fit pages of {}x{}",
                self.flag,
                rows.start,
                rows.end,
                out.len(),
                self.width,
                self.height
            )));
        }
        let path = &self.files[*file];
        let (length, handle) = &self.states[*file];
        let opened;
        let file = match handle {
            Some(file) => file,
            None => {
                opened = open_plain(path, &self.flag)?.0;
                &opened
            }
        };
        let now = file.metadata().map_err(|e| bad(&self.flag, path, format!("cannot be read: {e}")))?.len();
        if now > *length {
            let message = format!("had {length} bytes and has {now} now; is something writing to it?");
            return Err(bad(&self.flag, path, message));
        }
        let done = layout.read_rows(file, rows, out);
        done.map_err(|e| bad(&self.flag, path, format!("page {number}: {e}")))
    }
}

fn bad(flag: &str, path: &Path, message: impl std::fmt::Display) -> Error {
    Error::Input(format!("{flag}: {}: {message}", path.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Opens a file and tells its size in bytes.
fn open_plain(path: &Path, flag: &str) -> Result<(File, u64)> {
    let cannot = |e| bad(flag, path, format!("cannot be read: {e}"));
    let file = File::open(path).map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    Ok((file, length))
}

type Opened = (u64, Option<File>, Vec<Page>);

fn open_file(path: &Path, flag: &str, keep: bool) -> Result<Opened> {
    let (file, length) = open_plain(path, flag)?;
    let pages = read_pages(&file, length).map_err(|e| bad(flag, path, e))?;
    Ok((length, keep.then_some(file), pages))
}

/// The files that `spec` means, in natural order.
pub(super) fn find(spec: &str, flag: &str, notes: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let path = Path::new(spec);
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => find_in_directory(path, flag, notes),
        Ok(meta) if meta.is_file() => Ok(vec![path.to_owned()]),
        Ok(_) => Err(bad(flag, path, "is neither a file nor a directory; expected a TIFF or a directory of TIFFs")),
        Err(_) if spec.contains(['*', '?', '[']) => find_by_glob(spec, flag),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(bad(flag, path, "does not exist; expected a directory, a glob or a TIFF file"))
        }
        Err(e) => Err(bad(flag, path, format!("cannot be read: {e}"))),
    }
}

fn find_by_glob(spec: &str, flag: &str) -> Result<Vec<PathBuf>> {
    let options =
        glob::MatchOptions { require_literal_leading_dot: true, require_literal_separator: true, ..Default::default() };
    let matches = glob::glob_with(spec, options)
        .map_err(|e| Error::usage(format!("{flag} {spec}: not a glob: {e}; write for example 'scan/p_*.tif'")))?;
    let mut files = Vec::new();
    for entry in matches {
        let path = entry.map_err(|e| bad(flag, e.path(), format!("cannot be read: {}", e.error())))?;
        if !path.is_dir() {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(bad(flag, Path::new(spec), "no file matches this glob"));
    }
    files.sort_by(|a, b| natural(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(files)
}

fn find_in_directory(directory: &Path, flag: &str, notes: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let cannot = |e| bad(flag, directory, format!("cannot be listed: {e}"));
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        let name = file_name(&path);
        if name.starts_with('.') || path.is_dir() {
            continue; // hidden files are unfinished ones or the system's
        }
        let extension = path.extension().map(|e| e.to_ascii_lowercase());
        if extension.is_some_and(|e| e == "tif" || e == "tiff") {
            files.push((name, path));
        } else {
            others.push(name);
        }
    }
    others.sort_by(|a, b| natural(a, b));
    let dots = if others.len() > 3 { ", .." } else { "" };
    let list = others[..others.len().min(3)].join(", ") + dots;
    if files.is_empty() {
        let found = if others.is_empty() { String::new() } else { format!(" (found {list})") };
        return Err(bad(flag, directory, format!("holds no TIFF, expected files named *.tif or *.tiff{found}")));
    }
    if !others.is_empty() {
        let noun = if others.len() == 1 { "file that is" } else { "files that are" };
        notes.push(format!("ignored {} {noun} not TIFF: {list}", others.len()));
    }
    files.sort_by(|a, b| natural(&a.0, &b.0));
    let (names, files): (Vec<_>, Vec<_>) = files.into_iter().unzip();
    notes.extend(check_names(&names).map_err(|e| bad(flag, directory, e))?);
    Ok(files)
}
