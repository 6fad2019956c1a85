//! Slices as TIFF files: complete under their final name, or not there.

use super::stamp::{Description, Stamp, digits, fraction};
use crate::error::{Error, Result};
use crate::files::{AtomicFile, name_of_temporary};
use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use tiff::encoder::colortype::{ColorType, Gray8, Gray16, Gray32Float};
use tiff::encoder::{TiffEncoder, TiffKind, TiffKindBig, TiffKindStandard, TiffValue};
use tiff::tags::{PhotometricInterpretation, ResolutionUnit, SampleFormat, Tag};
use tiff::{TiffError, TiffResult};

/// A classic TIFF holds less than this; what is larger becomes BigTIFF.
const CLASSIC_LIMIT: u64 = (4 << 30) - (1 << 20);
/// A name that is never given, to see whether a directory can be written to.
const WRITE_TEST: &str = "fbp-write-test";
/// Bytes of one strip, about.
const STRIP: usize = 256 << 10;

/// How a sample is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// 32-bit float
    F32,
    /// 16-bit float
    F16,
    /// 16-bit unsigned over a range
    U16,
    /// 8-bit unsigned over a range
    U8,
}

/// As `--dtype` takes it.
impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::U16 => "u16",
            Dtype::U8 => "u8",
        })
    }
}

impl Dtype {
    /// Bytes of one sample.
    pub fn bytes(self) -> usize {
        match self {
            Dtype::F32 => 4,
            Dtype::F16 | Dtype::U16 => 2,
            Dtype::U8 => 1,
        }
    }
}

/// Sample type, and for the integers the values that become 0 and the largest integer.
///
/// Integers are rounded to the nearest and clamped; floats ignore the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoding {
    /// How a sample is stored.
    pub dtype: Dtype,
    /// `(min, max)`: min becomes 0, max 65535 or 255. Needed for the integers.
    pub range: Option<(f32, f32)>,
}

impl Encoding {
    /// The value that a stored sample stands for; within half a step of what was written, if that was in the range.
    pub fn value_of(&self, sample: f32) -> f32 {
        let top = match self.dtype {
            Dtype::F32 | Dtype::F16 => return sample,
            Dtype::U16 => 65535.0,
            Dtype::U8 => 255.0,
        };
        let (low, high) = self.range.map_or((0.0, top), |(low, high)| (f64::from(low), f64::from(high)));
        (low + f64::from(sample) * ((high - low) / top)) as f32
    }

    /// The checked range; floats get one that is never used.
    fn checked_range(&self) -> Result<(f32, f32)> {
        match (self.dtype, self.range) {
            (Dtype::F32 | Dtype::F16, _) => Ok((0.0, 1.0)),
            (_, Some((min, max))) if min.is_finite() && max.is_finite() && min < max => Ok((min, max)),
            (_, Some((min, max))) => {
                Err(Error::usage(format!("--range {min},{max}: expected two finite numbers, the smaller one first")))
            }
            (_, None) => Err(Error::usage(
                "--dtype u8 and u16 need the values that become 0 and the largest integer: \
                 add --range MIN,MAX or --percentile LO,HI",
            )),
        }
    }
}

/// Where slices go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `slice_00000.tif`, .. in this directory.
    Directory(PathBuf),
    /// `prefix`, the slice number with at least `digits` digits, `suffix`, in `directory`.
    Pattern {
        /// Directory of the files.
        directory: PathBuf,
        /// Name before the number.
        prefix: String,
        /// Smallest number of digits, filled with zeros.
        digits: usize,
        /// Name after the number.
        suffix: String,
    },
    /// One file with a page for each slice.
    Single(PathBuf),
}

impl Target {
    /// Reads `--output`: a directory, a printf pattern (`out/r-%05i.tif`), or one file (`out.tif`).
    ///
    /// # Errors
    /// [`Error::Usage`] when the pattern has not exactly one `%i`, `%d` or `%0Ni` in the name.
    pub fn parse(spec: &str) -> Result<Target> {
        let path = Path::new(spec);
        let is_tiff = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.ends_with(".tif") || name.ends_with(".tiff")
        };
        if spec.is_empty() {
            return Err(Error::usage("--output is empty; expected a directory, a pattern or a .tif file"));
        }
        if !spec.contains('%') {
            let single = is_tiff(spec) && !path.is_dir();
            return Ok(if single { Target::Single(path.into()) } else { Target::Directory(path.into()) });
        }
        let wrong = |why: &str| Error::usage(format!("--output {spec}: {why}; write it like 'out/r-%05i.tif'"));
        let (directory, name) = match spec.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((directory, name)) => (directory, name),
            None => (".", spec),
        };
        if directory.contains('%') {
            return Err(wrong("the number of the slice belongs in the file name, not in a directory"));
        }
        let (prefix, rest) = name.split_once('%').unwrap_or((name, ""));
        let (width, suffix) = rest
            .split_once(['i', 'd'])
            .filter(|(width, _)| width.chars().all(|c| c.is_ascii_digit()))
            .ok_or_else(|| wrong("expected %i, %d or %05i for the number of the slice"))?;
        if suffix.contains('%') {
            return Err(wrong("expected exactly one % field"));
        }
        if !is_tiff(suffix) {
            return Err(wrong("the name must end in .tif or .tiff"));
        }
        let digits = match width {
            "" => 1,
            w if w.starts_with('0') => w.parse().ok().filter(|&n| n <= 20).ok_or_else(|| wrong("too many digits"))?,
            _ => return Err(wrong("fill the number with zeros, not with blanks")),
        };
        Ok(Target::Pattern { directory: directory.into(), prefix: prefix.into(), digits, suffix: suffix.into() })
    }

    /// The file that holds slice `index`.
    pub fn path_of(&self, index: usize) -> PathBuf {
        match self {
            Target::Directory(directory) => directory.join(format!("slice_{index:05}.tif")),
            Target::Pattern { directory, prefix, digits, suffix } => {
                directory.join(format!("{prefix}{index:0digits$}{suffix}"))
            }
            Target::Single(path) => path.clone(),
        }
    }

    /// The file beside the slices that says how they were made: `fbp-run.toml` in a directory, else named like the output.
    pub fn record(&self) -> PathBuf {
        let name = match self {
            Target::Directory(_) => "fbp".into(),
            Target::Pattern { prefix, .. } => prefix.trim_end_matches(['-', '_', '.']).to_owned(),
            Target::Single(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let name = if name.is_empty() { "fbp" } else { &name };
        self.directory().join(format!("{name}-run.toml"))
    }

    /// The hidden file whose lock says that a run writes here.
    pub fn lock(&self) -> PathBuf {
        match self {
            Target::Directory(directory) => directory.join(".fbp-lock"),
            _ => self.record().with_file_name(format!(".{}.fbp-lock", self.stem())),
        }
    }

    /// The name of files, less the number.
    fn stem(&self) -> String {
        match self {
            Target::Directory(_) => "slice_.tif".into(),
            Target::Pattern { prefix, suffix, .. } => format!("{prefix}{suffix}"),
            Target::Single(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    /// Makes the directory that the files go to.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be made.
    pub fn make_directory(&self) -> Result<()> {
        let directory = self.directory();
        fs::create_dir_all(directory)
            .map_err(|e| Error::output(directory, format!("cannot make this directory: {e}; choose another --output")))
    }

    /// Removes the temporary files that runs into this output left when they were killed. Only for who knows that no other
    /// run writes here.
    pub fn sweep(&self) {
        for entry in fs::read_dir(self.directory()).into_iter().flatten().flatten() {
            if self.is_temporary(&entry.file_name().to_string_lossy()) {
                let _ = fs::remove_file(entry.path()); // it is hidden, and the next run tries again
            }
        }
    }

    /// Whether a file of this name in the directory is one of this output that has not got its name.
    fn is_temporary(&self, name: &str) -> bool {
        let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let Some(name) = name_of_temporary(name) else { return false };
        let (prefix, suffix) = match self {
            Target::Directory(_) => ("slice_", ".tif"),
            Target::Pattern { prefix, suffix, .. } => (prefix.as_str(), suffix.as_str()),
            Target::Single(_) => ("", ""),
        };
        let slice = || name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix)).is_some_and(number);
        let ours = match self {
            Target::Single(_) => name == self.stem(),
            _ => slice() || name == WRITE_TEST,
        };
        let is_record = || self.record().file_name().is_some_and(|record| record.to_string_lossy() == name);
        ours || is_record()
    }

    /// The directory that the files go to.
    pub fn directory(&self) -> &Path {
        match self {
            Target::Directory(directory) | Target::Pattern { directory, .. } => directory,
            Target::Single(path) => path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")),
        }
    }
}

/// What the place of the slices may hold before they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present<'a> {
    /// Nothing; beside the files of a pattern there may be others.
    Nothing,
    /// Slices with these numbers, which other jobs write; the writer's own ones may be among the numbers, not the files.
    Slices(&'a [usize]),
    /// Anything: files of the same names are replaced, others stay.
    Anything,
}

impl<'a> Present<'a> {
    /// What `--overwrite` allows, and otherwise the slices of a run that several jobs share.
    pub fn new(overwrite: bool, shared: Option<&'a [usize]>) -> Self {
        match (overwrite, shared) {
            (true, _) => Present::Anything,
            (false, Some(slices)) => Present::Slices(slices),
            (false, None) => Present::Nothing,
        }
    }
}

/// Writes slices one by one. A file that has its final name is complete.
///
/// A writer of one multi-page file that is dropped before [`SliceWriter::finish`] leaves nothing.
pub struct SliceWriter {
    target: Target,
    width: usize,
    height: usize,
    encoding: Encoding,
    overwrite: bool,
    software: String,
    stamp: Option<Stamp>,
    indices: Vec<usize>,
    written: Vec<bool>,
    clamped: u64,
    single: Option<Single>,
}

/// The multi-page file under its temporary name. Fields drop in this order: file, then name.
struct Single {
    encoder: Either,
    file: AtomicFile,
}

enum Either {
    Classic(TiffEncoder<File, TiffKindStandard>),
    Big(TiffEncoder<File, TiffKindBig>),
}

impl SliceWriter {
    /// Prepares to write the slices numbered `indices` (ascending), each `width` x `height` pixels;
    /// makes directories and checks that they can be written to. `software` goes into each page.
    ///
    /// A directory must hold no file but hidden ones and those that `present` allows; the files of a
    /// pattern or the single file must not exist, unless it allows anything.
    ///
    /// # Errors
    /// [`Error::Output`] when something is there already or the place cannot be written to;
    /// [`Error::Usage`] for integers without a range, indices that do not ascend or empty slices.
    pub fn create(
        target: Target,
        width: usize,
        height: usize,
        encoding: Encoding,
        indices: &[usize],
        present: Present,
        software: &str,
    ) -> Result<SliceWriter> {
        encoding.checked_range()?;
        if indices.windows(2).any(|w| w[0] >= w[1]) {
            return Err(Error::usage("the numbers of the slices to write must ascend"));
        }
        if width == 0 || height == 0 {
            return Err(Error::usage(format!("slices of {width}x{height} pixels cannot be written")));
        }
        let directory = target.directory().to_owned();
        target.make_directory()?;
        if let Some((path, what)) = occupied(&target, indices, present)? {
            return Err(Error::output(&path, format!("{what}; add --overwrite or choose another --output")));
        }
        let single = match &target {
            Target::Single(path) => {
                if indices.is_empty() {
                    return Err(Error::output(path, "there is no slice to write into this file"));
                }
                if path.is_dir() {
                    return Err(Error::output(path, "is a directory; expected the name of a file"));
                }
                let file = create(path)?;
                let cannot = |e| failed(path, &e);
                let own = file.file().try_clone().map_err(|e| cannot(TiffError::IoError(e)))?;
                let encoder = if is_big(width, height, encoding.dtype, indices.len()) {
                    Either::Big(TiffEncoder::new_big(own).map_err(cannot)?)
                } else {
                    Either::Classic(TiffEncoder::new(own).map_err(cannot)?)
                };
                Some(Single { encoder, file })
            }
            _ => {
                drop(create(&directory.join(WRITE_TEST))?);
                None
            }
        };
        Ok(SliceWriter {
            target,
            width,
            height,
            encoding,
            overwrite: present == Present::Anything,
            software: software.to_owned(),
            stamp: None,
            indices: indices.to_vec(),
            written: vec![false; indices.len()],
            clamped: 0,
            single,
        })
    }

    /// The same output with other values that become 0 and the largest integer.
    ///
    /// # Errors
    /// [`Error::Usage`] when the range is not two finite numbers, the smaller one first.
    pub fn with_range(mut self, range: (f32, f32)) -> Result<SliceWriter> {
        self.encoding.range = Some(range);
        self.encoding.checked_range()?;
        Ok(self)
    }

    /// The same output whose slices say what run they are of.
    pub fn stamped(self, stamp: Stamp) -> SliceWriter {
        SliceWriter { stamp: Some(stamp), ..self }
    }

    /// How samples are stored.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Takes slices that have files already as written; others are not announced.
    pub fn keep(&mut self, kept: &[usize]) {
        for (index, written) in self.indices.iter().zip(&mut self.written) {
            *written |= kept.binary_search(index).is_ok();
        }
    }

    /// Writes slice `index`, row-major, `width * height` values. A directory or pattern takes
    /// slices in any order, a single file in ascending order.
    ///
    /// # Errors
    /// [`Error::Output`] when the file cannot be written (nothing is left under its name), the slice
    /// was written already, is not one of the indices, is out of order or has another size.
    pub fn write(&mut self, index: usize, data: &[f32]) -> Result<()> {
        let place = self.free_place(index)?;
        let path = self.path_of(index);
        let wrong = |why: String| Error::output(&path, format!("slice {index} {why}"));
        if matches!(self.target, Target::Single(_)) {
            if let Some(before) = self.written[..place].iter().position(|done| !done) {
                let before = self.indices[before];
                return Err(wrong(format!("came before slice {before}; one file takes slices in ascending order")));
            }
            let Some(mut single) = self.single.take() else {
                return Err(wrong("came after this file failed".into()));
            };
            let page = self.page(index, data, Some((place, self.indices.len())));
            self.clamped += match &mut single.encoder {
                Either::Classic(encoder) => page.write(encoder, &path)?,
                Either::Big(encoder) => page.write(encoder, &path)?,
            };
            self.single = Some(single); // an error above has dropped and removed it
        } else {
            self.clamped += self.write_slice(index, data)?;
        }
        self.written[place] = true;
        Ok(())
    }

    /// Writes slices, numbers with their values; files of their own on all processors, whatever their order.
    ///
    /// # Errors
    /// As [`write`](Self::write), of the first slice that fails; others may be there, whole.
    pub fn write_all(&mut self, slices: &[(usize, &[f32])]) -> Result<()> {
        if matches!(self.target, Target::Single(_)) {
            return slices.iter().try_for_each(|(index, data)| self.write(*index, data));
        }
        let places = slices.iter().map(|(index, _)| self.free_place(*index)).collect::<Result<Vec<_>>>()?;
        let writer = &*self;
        let clamped = slices.par_iter().map(|(index, data)| writer.write_slice(*index, data)).collect::<Vec<_>>();
        for (place, clamped) in places.into_iter().zip(clamped) {
            self.clamped += clamped?;
            self.written[place] = true;
        }
        Ok(())
    }

    /// Where an announced slice that was not written yet is in the list.
    fn free_place(&self, index: usize) -> Result<usize> {
        let wrong = |why: &str| Error::output(&self.path_of(index), format!("slice {index} {why}"));
        let place = self.indices.binary_search(&index).map_err(|_| wrong("was not announced"))?;
        if self.written[place] { Err(wrong("was written already")) } else { Ok(place) }
    }

    /// A slice into a file of its own; the values that did not fit.
    fn write_slice(&self, index: usize, data: &[f32]) -> Result<u64> {
        let path = self.path_of(index);
        if !self.overwrite && path.exists() {
            let why = format!("slice {index} exists by now; is another run writing to the same --output?");
            return Err(Error::output(&path, why));
        }
        write_file(&path, self.page(index, data, None))
    }

    /// A slice as a page, with its place among all pages of one file.
    fn page<'a>(&'a self, index: usize, data: &'a [f32], number: Option<(usize, usize)>) -> Page<'a> {
        Page {
            width: self.width,
            height: self.height,
            data,
            encoding: self.encoding,
            software: &self.software,
            slice: Some((index, self.stamp.as_ref())),
            number,
        }
    }

    /// The file that holds slice `index`.
    pub fn path_of(&self, index: usize) -> PathBuf {
        self.target.path_of(index)
    }

    /// Values so far that did not fit: outside the range (or NaN) for the integers, finite values
    /// that became infinite for f16.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// Ends the output and names its files in order; a single file gets its name here.
    ///
    /// # Errors
    /// [`Error::Output`] when slices are missing or the file cannot be renamed.
    pub fn finish(self) -> Result<Vec<PathBuf>> {
        let missing = self.written.iter().filter(|done| !**done).count();
        if let Some(first) = self.written.iter().position(|done| !done) {
            return Err(Error::output(
                &self.path_of(self.indices[first]),
                format!("{missing} of {} slices were not written", self.indices.len()),
            ));
        }
        match self.single {
            Some(Single { encoder, file }) => {
                drop(encoder); // writes go straight to the file, so nothing is left to flush
                let path = file.path().to_owned();
                finish(file, self.overwrite)?;
                Ok(vec![path])
            }
            None => Ok(self.indices.iter().map(|&i| self.target.path_of(i)).collect()),
        }
    }
}

/// Writes one image (row-major, `width * height` values) as a TIFF of one page, replacing what is
/// there; the file appears complete or not at all. Makes no directory.
///
/// # Errors
/// [`Error::Output`] when it cannot be written or `data` has another size; [`Error::Usage`] for
/// integers without a range.
pub fn write_image(
    path: &Path,
    width: usize,
    height: usize,
    data: &[f32],
    encoding: Encoding,
    software: &str,
) -> Result<()> {
    write_file(path, Page { width, height, data, encoding, software, slice: None, number: None })?;
    Ok(())
}

/// Writes a text, replacing what is there; the file appears complete or not at all.
///
/// # Errors
/// [`Error::Output`] when it cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let file = create(path)?;
    file.file().write_all(text.as_bytes()).map_err(|e| failed(path, &TiffError::IoError(e)))?;
    finish(file, true)
}

/// What of the output is in the way: its path, and what is wrong with it.
fn occupied(target: &Target, indices: &[usize], present: Present) -> Result<Option<(PathBuf, String)>> {
    let others = match present {
        Present::Anything => return Ok(None),
        Present::Slices(others) => others,
        Present::Nothing => &[],
    };
    if let Target::Directory(directory) = target {
        let others: HashSet<_> = others.iter().map(|&i| target.path_of(i)).collect();
        let cannot = |e| Error::output(directory, format!("cannot be listed: {e}"));
        for entry in fs::read_dir(directory).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with('.') && !others.contains(&path) && path != target.record() {
                let what = match present {
                    Present::Slices(_) => format!("the directory holds {name}, which is no slice of this run"),
                    _ => format!("the directory is not empty (it holds {name})"),
                };
                return Ok(Some((directory.clone(), what)));
            }
        }
    }
    let indices = if matches!(target, Target::Single(_)) { &[0] } else { indices };
    let there = indices.iter().map(|&i| target.path_of(i)).find(|path| path.symlink_metadata().is_ok());
    Ok(there.map(|path| (path, "exists already".to_owned())))
}

/// True when the pages do not fit a classic TIFF.
fn is_big(width: usize, height: usize, dtype: Dtype, pages: usize) -> bool {
    let row = (width as u64).saturating_mul(dtype.bytes() as u64);
    let header = 1024 + 16 * height as u64; // tags and the table of strips, amply
    row.saturating_mul(height as u64).saturating_add(header).saturating_mul(pages as u64) > CLASSIC_LIMIT
}

fn failed(path: &Path, error: &TiffError) -> Error {
    let cause = match error {
        TiffError::IoError(e) => e.to_string(),
        e => e.to_string(),
    };
    Error::output(path, format!("cannot be written: {cause}; make room or write to another place"))
}

/// The temporary file of an output.
fn create(path: &Path) -> Result<AtomicFile> {
    AtomicFile::create(path).map_err(|e| {
        if e.kind() == std::io::ErrorKind::InvalidInput {
            return Error::output(path, e);
        }
        let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Error::output(directory, format!("cannot write here: {e}; choose another --output"))
    })
}

/// Gives a file its name.
fn finish(file: AtomicFile, overwrite: bool) -> Result<()> {
    let path = file.path().to_owned();
    if !overwrite && path.exists() {
        return Err(Error::output(&path, "exists by now; is another run writing to the same --output?"));
    }
    file.finish().map_err(|e| {
        let why = format!("cannot be given its name: {e}; is the directory there, and may it be written to?");
        Error::output(&path, why)
    })
}

/// Writes a file of one page; returns the number of clamped values.
fn write_file(path: &Path, page: Page) -> Result<u64> {
    let complete = create(path)?;
    let mut file = BufWriter::with_capacity(STRIP, complete.file());
    let clamped = if is_big(page.width, page.height, page.encoding.dtype, 1) {
        page.write(&mut TiffEncoder::new_big(&mut file).map_err(|e| failed(path, &e))?, path)
    } else {
        page.write(&mut TiffEncoder::new(&mut file).map_err(|e| failed(path, &e))?, path)
    }?;
    file.flush().map_err(|e| failed(path, &TiffError::IoError(e)))?;
    drop(file);
    finish(complete, true)?;
    Ok(clamped)
}

/// One page to write.
struct Page<'a> {
    width: usize,
    height: usize,
    data: &'a [f32],
    encoding: Encoding,
    software: &'a str,
    /// Number of the slice, and what its run says.
    slice: Option<(usize, Option<&'a Stamp>)>,
    /// Number of the page and of all pages.
    number: Option<(usize, usize)>,
}

impl Page<'_> {
    fn write<W: Write + Seek, K: TiffKind>(&self, encoder: &mut TiffEncoder<W, K>, path: &Path) -> Result<u64> {
        if self.width == 0 || self.width.checked_mul(self.height) != Some(self.data.len()) {
            let (n, w, h) = (self.data.len(), self.width, self.height);
            return Err(Error::output(path, format!("{n} values do not make an image of {w}x{h}")));
        }
        let range = self.encoding.checked_range()?;
        let mut clamped = 0;
        match self.encoding.dtype {
            Dtype::F32 => self.put::<Gray32Float, W, K>(encoder, |v| Cow::Borrowed(v)),
            Dtype::F16 => self.put::<Gray16Float, W, K>(encoder, |v| {
                let mut half = vec![f16::ZERO; v.len()];
                half.convert_from_f32_slice(v);
                clamped += half.iter().zip(v).map(|(h, v)| u64::from(h.is_infinite() && v.is_finite())).sum::<u64>();
                Cow::Owned(half.reinterpret_into())
            }),
            Dtype::U16 => self.put::<Gray16, W, K>(encoder, |v| {
                clamped += outside(v, range);
                Cow::Owned(v.iter().map(|&v| nearest(v, range, 65535.0) as u16).collect())
            }),
            Dtype::U8 => self.put::<Gray8, W, K>(encoder, |v| {
                clamped += outside(v, range);
                Cow::Owned(v.iter().map(|&v| nearest(v, range, 255.0) as u8).collect())
            }),
        }
        .map_err(|e| failed(path, &e))?;
        Ok(clamped)
    }

    /// Writes the strips, then the tags, so that the data follows itself without a gap.
    fn put<C: ColorType, W: Write + Seek, K: TiffKind>(
        &self,
        encoder: &mut TiffEncoder<W, K>,
        mut convert: impl FnMut(&[f32]) -> Cow<[C::Inner]>,
    ) -> TiffResult<()>
    where
        C::Inner: Clone,
        [C::Inner]: TiffValue,
    {
        let mut image = encoder.new_image::<C>(u32::try_from(self.width)?, u32::try_from(self.height)?)?;
        let rows = (STRIP / (self.width * self.encoding.dtype.bytes())).clamp(1, self.height);
        image.rows_per_strip(u32::try_from(rows)?)?;
        let mut crc = crc32fast::Hasher::new();
        for strip in self.data.chunks(rows * self.width) {
            let samples = convert(strip);
            crc.update(&samples.data());
            image.write_strip(&samples)?;
        }
        let ascii: String = self.software.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
        image.encoder().write_tag(Tag::Software, ascii.as_str())?;
        if let Some((slice, stamp)) = self.slice {
            let description = Description { slice, crc32: digits(crc), stamp: stamp.cloned() };
            let text = serde_json::to_string(&description).map_err(std::io::Error::from)?;
            image.encoder().write_tag(Tag::ImageDescription, text.as_str())?;
            if let Some(resolution) = stamp.and_then(|stamp| fraction(stamp.per_centimetre?)) {
                image.resolution(ResolutionUnit::Centimeter, resolution);
            }
        }
        if let Some((page, pages)) = self.number {
            // PageNumber has 16 bits a value
            if let (Ok(page), Ok(pages)) = (u16::try_from(page), u16::try_from(pages)) {
                image.encoder().write_tag(Tag::Unknown(297), &[page, pages][..])?;
            }
        }
        image.finish()
    }
}

/// How many values are outside a range; those that are not numbers, too.
fn outside(values: &[f32], (min, max): (f32, f32)) -> u64 {
    values.iter().map(|&v| u64::from(!(v >= min && v <= max))).sum()
}

/// The whole number in `0..=top` that is nearest to a value, where `min` is 0 and `max` is `top`; 0 for what is no number.
fn nearest(value: f32, (min, max): (f32, f32), top: f64) -> u64 {
    let (low, high) = (f64::from(min), f64::from(max));
    let place = (f64::from(value) - low) * (top / (high - low));
    // from 2^52 on a double has no fraction, so the sum is rounded and its last bits are the number
    (place.max(0.0).min(top) + (1u64 << 52) as f64).to_bits() & 0xffff
}

/// 16-bit float, as its bits.
struct Gray16Float;

impl ColorType for Gray16Float {
    type Inner = u16;
    const TIFF_VALUE: PhotometricInterpretation = PhotometricInterpretation::BlackIsZero;
    const BITS_PER_SAMPLE: &'static [u16] = &[16];
    const SAMPLE_FORMAT: &'static [SampleFormat] = &[SampleFormat::IEEEFP];

    fn horizontal_predict(row: &[u16], result: &mut Vec<u16>) {
        result.extend_from_slice(row); // no predictor is ever asked for
    }
}
