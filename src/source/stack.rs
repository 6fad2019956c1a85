//! A sequence of pages read from many files or one.

use super::SampleType;
use super::binning::{Binning, Means};
use super::decode::{Page, read_pages};
use super::order::{check_names, natural};
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that a run may open besides the stack's.
const OTHER_FILES: u64 = 256;

/// Whether so many files may stay open; else each is opened for every read. Asks the system for more than its usual limit.
fn may_stay_open(files: usize) -> bool {
    let wanted = files as u64 + OTHER_FILES;
    rlimit::increase_nofile_limit(wanted).is_ok_and(|limit| limit >= wanted)
}

/// What tells whether a file has been written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileState {
    bytes: u64,
    /// Seconds and nanoseconds of the last change.
    changed: (i64, i64),
}

impl FileState {
    fn of(file: &File) -> std::io::Result<FileState> {
        let meta = file.metadata()?;
        Ok(FileState { bytes: meta.len(), changed: (meta.mtime(), meta.mtime_nsec()) })
    }
}

/// Pages that are no TIFF: frames of a dataset.
pub(super) trait Frames: std::fmt::Debug + Send + Sync {
    fn len(&self) -> usize;
    /// Name of a page for messages.
    fn name(&self, page: usize) -> String;
    /// What tells these pages from others of the same files.
    fn fingerprint(&self) -> String;
    /// Reads rows of a page as [`Stack::read_rows`] does; `file` is the stack's first.
    fn read_rows(&self, file: &File, page: usize, rows: Range<usize>, out: &mut [f32]) -> Result<(), String>;
}

/// Pages of one size and sample type, in natural order of the file names.
///
/// Opening reads headers alone; [`Stack::read_rows`] may be called from many threads at once.
/// Values are as stored: the photometric interpretation inverts nothing.
#[derive(Debug)]
pub struct Stack {
    flag: String,
    /// What the flag was given, or the name of a dataset.
    spec: String,
    files: Vec<PathBuf>,
    /// What each file was when its header was read, and its handle when it stays open.
    states: Vec<(FileState, Option<File>)>,
    /// Index of the file, number of the page in it, and its layout.
    pages: Vec<(usize, usize, Page)>,
    /// What the pages are instead.
    frames: Option<Box<dyn Frames>>,
    width: usize,
    height: usize,
    sample: SampleType,
    notes: Vec<String>,
    binning: Binning,
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
            let (state, handle, found) = result?;
            states.push((state, handle));
            pages.extend(found.into_iter().enumerate().map(|(number, page)| (index, number, page)));
        }
        let Some((_, _, first)) = pages.first() else {
            return Err(bad(flag, Path::new(spec), "holds no pages"));
        };
        let (width, height, sample) = (first.width, first.height, first.sample);
        let mut stack = Stack {
            flag: flag.into(),
            spec: spec.into(),
            files,
            states,
            pages,
            frames: None,
            width,
            height,
            sample,
            notes,
            binning: Binning::NONE,
        };
        stack.agree()?;
        Ok(stack)
    }

    /// A stack of frames of width x height pixels. They are in the first of the files; the others lead to it.
    ///
    /// # Errors
    /// What is wrong with one of the files.
    #[cfg(feature = "hdf5")]
    pub(super) fn of_frames(
        (flag, name): (&str, &str),
        files: Vec<PathBuf>,
        frames: Box<dyn Frames>,
        (width, height, sample): (usize, usize, SampleType),
    ) -> Result<Stack, String> {
        let state = |(index, path): (usize, &PathBuf)| -> std::io::Result<_> {
            let file = File::open(path)?;
            Ok((FileState::of(&file)?, (index == 0).then_some(file)))
        };
        let states = files.iter().enumerate().map(|at| state(at).map_err(|e| format!("{}: {e}", at.1.display())));
        let states = states.collect::<Result<Vec<_>, _>>()?;
        let (pages, frames, notes) = (Vec::new(), Some(frames), Vec::new());
        let (flag, spec, binning) = (flag.into(), name.into(), Binning::NONE);
        Ok(Stack { flag, spec, files, states, pages, frames, width, height, sample, notes, binning })
    }

    /// The same with more for a person to know.
    #[cfg(feature = "hdf5")]
    pub(super) fn with_notes(mut self, notes: Vec<String>) -> Stack {
        self.notes.extend(notes);
        self
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

    /// The same with means of neighbouring pixels as pixels; what is left over at the ends is left out.
    ///
    /// # Errors
    /// [`Error::Usage`] when nothing would be left.
    pub fn binned(self, binning: Binning) -> Result<Stack> {
        let stack = Stack { binning, ..self };
        if stack.width() == 0 || stack.height() == 0 || stack.is_empty() {
            return Err(Error::usage(format!(
                "--binning: {} leaves nothing of the {} {} pages of {}x{}; give a smaller number",
                binning.by,
                stack.unbinned_len(),
                stack.flag,
                stack.width,
                stack.height
            )));
        }
        Ok(stack)
    }

    /// How pixels are put together.
    pub fn binning(&self) -> Binning {
        self.binning
    }

    fn unbinned_len(&self) -> usize {
        self.frames.as_ref().map_or(self.pages.len(), |frames| frames.len())
    }

    /// Number of pages over all files.
    pub fn len(&self) -> usize {
        self.unbinned_len() / self.binning.pages()
    }

    /// True when there is no page; a stack that opened has at least one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pixels in a row (detector bins).
    pub fn width(&self) -> usize {
        self.width / self.binning.by
    }

    /// Rows of each page.
    pub fn height(&self) -> usize {
        self.height / self.binning.rows()
    }

    /// How the files store one sample.
    pub fn sample(&self) -> SampleType {
        self.sample
    }

    /// The flag that messages name.
    pub fn flag(&self) -> &str {
        &self.flag
    }

    /// The flag with what it was given, for messages.
    pub fn title(&self) -> String {
        format!("{} {}", self.flag, self.spec)
    }

    /// The files, in order.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Name of a page for messages: `p_0003.tif`, or `stack.tif page 7` (from 0) in a file of several.
    pub fn page_name(&self, page: usize) -> String {
        let page = page * self.binning.pages();
        if let Some(frames) = self.frames.as_ref().filter(|frames| page < frames.len()) {
            return frames.name(page);
        }
        let Some((file, number, _)) = self.pages.get(page) else {
            return format!("page {page}");
        };
        let name = file_name(&self.files[*file]);
        let next = self.pages.get(page + 1);
        if next.is_some_and(|p| p.0 == *file) || *number > 0 { format!("{name} page {number}") } else { name }
    }

    /// What tells this stack from another without reading it: a line for every file with its name, size and time of the
    /// last change, and one with the shape.
    pub fn fingerprint(&self) -> String {
        let (Binning { by, .. }, pages) = (self.binning, self.unbinned_len());
        let mut shape = format!("{pages} pages of {}x{}, {}, binned by {by}\n", self.width, self.height, self.sample);
        shape += &self.frames.as_ref().map(|frames| frames.fingerprint()).unwrap_or_default();
        let file = |(path, (state, _)): (&PathBuf, &(FileState, _))| {
            let (seconds, nanoseconds) = state.changed;
            format!("{:?} {} {seconds}.{nanoseconds:09}\n", file_name(path), state.bytes)
        };
        shape + &self.files.iter().zip(&self.states).map(file).collect::<String>()
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
        let Binning { by, .. } = self.binning;
        if by == 1 {
            return self.read_unbinned(page, rows, out);
        }
        self.check_room(&rows, out.len(), self.width(), self.height())?;
        let mut means = Means::new(self.binning, self.width(), rows.len());
        let within = rows.start * self.binning.rows()..rows.end * self.binning.rows();
        let mut values = vec![0f32; within.len() * self.width];
        for page in (0..self.binning.pages()).map(|i| page * self.binning.pages() + i) {
            self.read_unbinned(page, within.clone(), &mut values)?;
            means.add(&values, self.width);
        }
        means.write(out);
        Ok(())
    }

    fn check_room(&self, rows: &Range<usize>, room: usize, width: usize, height: usize) -> Result<()> {
        if rows.start > rows.end || rows.end > height || room != rows.len() * width {
            return Err(Error::Input(format!(
                "{}: rows {}..{} into {room} values do not fit pages of {width}x{height}",
                self.flag, rows.start, rows.end
            )));
        }
        Ok(())
    }

    fn read_unbinned(&self, page: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        if page >= self.unbinned_len() {
            return Err(Error::Input(format!("{}: no page {page}, there are {}", self.flag, self.unbinned_len())));
        }
        self.check_room(&rows, out.len(), self.width, self.height)?;
        let index = self.pages.get(page).map_or(0, |(file, _, _)| *file);
        let path = &self.files[index];
        let (before, handle) = &self.states[index];
        let opened;
        let file = match handle {
            Some(file) => file,
            None => {
                opened = open_plain(path, &self.flag)?.0;
                &opened
            }
        };
        let done = match (&self.frames, self.pages.get(page)) {
            (Some(frames), _) => frames.read_rows(file, page, rows, out),
            (None, Some((_, number, layout))) => {
                layout.read_rows(file, rows, out).map_err(|e| format!("page {number}: {e}"))
            }
            (None, None) => Err(format!("page {page}: is not there")),
        };
        // behind the read, so that nothing can come between
        let now = FileState::of(file).map_err(|e| bad(&self.flag, path, format!("cannot be read: {e}")))?;
        if now != *before {
            let message = match now.bytes == before.bytes {
                true => "was written to since this run began".to_owned(),
                false => format!("had {} bytes and has {} now", before.bytes, now.bytes),
            };
            let message = format!("{message}; is something writing to it? Run again when it is complete");
            return Err(bad(&self.flag, path, message));
        }
        done.map_err(|e| bad(&self.flag, path, e))
    }
}

fn bad(flag: &str, path: &Path, message: impl std::fmt::Display) -> Error {
    Error::Input(format!("{flag}: {}: {message}", path.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Opens a file and tells what it is now.
fn open_plain(path: &Path, flag: &str) -> Result<(File, FileState)> {
    let cannot = |e| bad(flag, path, format!("cannot be read: {e}"));
    let file = File::open(path).map_err(cannot)?;
    let state = FileState::of(&file).map_err(cannot)?;
    Ok((file, state))
}

type Opened = (FileState, Option<File>, Vec<Page>);

fn open_file(path: &Path, flag: &str, keep: bool) -> Result<Opened> {
    let (file, state) = open_plain(path, flag)?;
    let pages = read_pages(&file, state.bytes).map_err(|e| bad(flag, path, e))?;
    Ok((state, keep.then_some(file), pages))
}

/// The files that `spec` means, in natural order.
pub(super) fn find(spec: &str, flag: &str, notes: &mut Vec<String>) -> Result<Vec<PathBuf>> {
    let path = Path::new(spec);
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => find_in_directory(path, flag, notes),
        Ok(meta) if meta.is_file() && starts_as_hdf5(path) => {
            Err(bad(flag, path, "is an HDF5 file; --hdf5 reads projections, fields and angles from one"))
        }
        Ok(meta) if meta.is_file() => Ok(vec![path.to_owned()]),
        Ok(_) => Err(bad(flag, path, "is neither a file nor a directory; expected a TIFF or a directory of TIFFs")),
        Err(_) if spec.contains(['*', '?', '[']) => find_by_glob(spec, flag),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            Err(bad(flag, path, "does not exist; expected a directory, a glob or a TIFF file"))
        }
        Err(e) => Err(bad(flag, path, format!("cannot be read: {e}"))),
    }
}

/// Whether a file begins as HDF5 files do.
fn starts_as_hdf5(path: &Path) -> bool {
    let mut start = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"\x89HDF\r\n\x1a\n"
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
