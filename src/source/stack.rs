//! Sequences of frames of one size, binned.

use super::binning::{Binning, Means};
use super::files::short_names;
use super::frames::{Frames, as_f32};
use super::kept::KeptFrames;
use super::{SampleType, StoredRows, StoredSamples};
use crate::error::{Error, Result, messages};
use crate::remark::Remark;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

messages! {
    /// Errors of `--binning`.
    enum BinningError: Usage {
        NothingLeft { by: usize, pages: usize, flag: String, width: usize, height: usize } =>
            "--binning: {by} leaves nothing of the {pages} {flag} pages of {width}x{height}"; "give a smaller number",
    }
}

/// Pages of one size and sample type: those of TIFF files in the order of their names, or frames of another format.
///
/// Opening only reads headers. [`Stack::read_rows`] may be called from several threads at once. Values are as stored,
/// whatever the photometric interpretation.
#[derive(Debug)]
pub struct Stack {
    flag: String,
    /// Value of the flag, or name of a dataset.
    spec: String,
    frames: Box<dyn Frames>,
    binning: Binning,
    remarks: Vec<Remark>,
    /// Rows that stay in memory, if any do.
    kept: OnceLock<KeptFrames>,
}

/// Number of files of a stack, and some of their names, which show their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileNames {
    pub count: usize,
    pub first: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
    /// Name of the last file, if there are two or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
}

impl fmt::Display for FileNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileNames { count, first, second, last } = self;
        write!(f, "{count}: {first}")?;
        match (second, last) {
            (Some(second), Some(last)) if *count > 2 => {
                write!(f, ", {second}{} {last}", if *count > 3 { " ..." } else { "," })
            }
            (Some(second), _) => write!(f, ", {second}"),
            _ => Ok(()),
        }
    }
}

impl Stack {
    /// Creates a stack of frames; `flag` and `spec` are used in messages.
    pub fn of(flag: &str, spec: &str, frames: impl Frames + 'static) -> Stack {
        let remarks = frames.remarks().to_vec();
        Stack {
            flag: flag.to_owned(),
            spec: spec.to_owned(),
            frames: Box::new(frames),
            binning: Binning::NONE,
            remarks,
            kept: OnceLock::new(),
        }
    }

    /// Adds a remark for the user.
    pub(super) fn with_remark(mut self, remark: impl Into<Remark>) -> Stack {
        self.remarks.push(remark.into());
        self
    }

    /// Bins the pixels; incomplete bins at the ends are dropped.
    ///
    /// # Errors
    /// [`Error::Usage`] when no pixels would remain.
    pub fn binned(self, binning: Binning) -> Result<Stack> {
        let stack = Stack { binning, ..self };
        if stack.width() == 0 || stack.height() == 0 || stack.is_empty() {
            let (width, height) = stack.frames.size();
            let (pages, flag) = (stack.frames.count(), stack.flag);
            return Err(BinningError::NothingLeft { by: binning.by, pages, flag, width, height }.into());
        }
        Ok(stack)
    }

    /// Returns the number of bytes that reading takes in addition to the values.
    pub fn held(&self) -> u64 {
        self.frames.held()
    }

    /// Keeps rows of every page in memory once they are read, for readers that come back for them; rows that overlap them
    /// are kept with them, as long as all that is kept has at most `most` bytes. Only the first call counts.
    pub fn keep_rows(&self, rows: &Range<usize>, most: u64) {
        let rows = rows.start * self.binning.rows()..rows.end * self.binning.rows();
        self.kept.get_or_init(|| KeptFrames::new(self.frames.count(), rows, most));
    }

    /// Returns the bytes that are kept, and the number of reads from the files since then; `None` if nothing is kept.
    pub fn kept(&self) -> Option<(u64, usize)> {
        self.kept.get().map(|kept| (kept.bytes(), kept.reads()))
    }

    /// Reports whether reading some rows of a page takes about as long as reading all of it.
    pub fn has_whole_frames(&self) -> bool {
        self.frames.are_whole()
    }

    /// Reports whether rows of a page may be read separately at no cost, as they are stored uncompressed and are not
    /// binned.
    pub fn rows_are_apart(&self) -> bool {
        self.binning.by == 1 && self.frames.rows_are_apart()
    }

    /// Returns the binning of the pixels.
    pub fn binning(&self) -> Binning {
        self.binning
    }

    /// Returns the number of pages in all files.
    pub fn len(&self) -> usize {
        self.frames.count() / self.binning.pages()
    }

    /// Reports whether the stack has no pages; an open stack has at least one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of pixels in a row (detector bins).
    pub fn width(&self) -> usize {
        self.frames.size().0 / self.binning.by
    }

    /// Returns the number of rows of each page.
    pub fn height(&self) -> usize {
        self.frames.size().1 / self.binning.rows()
    }

    /// Returns the type of a sample as the files store it.
    pub fn sample(&self) -> SampleType {
        self.frames.sample()
    }

    /// Returns the flag that named the stack, for messages.
    pub fn flag(&self) -> &str {
        &self.flag
    }

    /// Returns the flag with its value, for messages.
    pub fn title(&self) -> String {
        format!("{} {}", self.flag, self.spec)
    }

    /// Paths of the files, in order.
    pub fn files(&self) -> &[PathBuf] {
        self.frames.files()
    }

    /// Returns the number of files, and the names of the first, the second and the last one.
    pub fn file_names(&self) -> FileNames {
        let files = self.files();
        let places = [0, 1, files.len().saturating_sub(1)];
        let few: Vec<PathBuf> = places.iter().filter_map(|&place| files.get(place).cloned()).collect();
        let mut names = short_names(&few).into_iter();
        let first = names.next().unwrap_or_default();
        let several = files.len() > 1;
        let (second, last) = (names.next().filter(|_| several), names.next().filter(|_| several));
        FileNames { count: files.len(), first, second, last }
    }

    /// Returns the name of a page for messages: `p_0003.tif`, or `stack.tif page 7` (from 0) for a file of several
    /// pages.
    pub fn page_name(&self, page: usize) -> String {
        let frame = page * self.binning.pages();
        if frame < self.frames.count() { self.frames.name(frame) } else { format!("page {frame}") }
    }

    /// Returns text that identifies the stack without reading its values: a line with the shape, and a line for every
    /// file with its name, size and time of the last change.
    pub fn fingerprint(&self) -> String {
        let (Binning { by, .. }, (width, height)) = (self.binning, self.frames.size());
        let shape = format!("{} pages of {width}x{height}, {}, binned by {by}\n", self.frames.count(), self.sample());
        shape + &self.frames.fingerprint()
    }

    /// Remarks for the user about the files, such as ignored files and missing numbers.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Reads rows of one page as f32, row-major: `rows.len() * width` values into `out`.
    ///
    /// # Errors
    /// [`Error::Input`] when the file cannot be read or is damaged, and [`Error::Internal`] when `page`, `rows` or
    /// `out` do not fit the stack. After an error the contents of `out` are undefined.
    pub fn read_rows(&self, page: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        let Binning { by, .. } = self.binning;
        if by == 1 {
            return self.read_unbinned(page, rows, out);
        }
        self.check_size(&rows, out.len(), self.width(), self.height())?;
        let mut means = Means::new(self.binning, self.width(), rows.len());
        let within = rows.start * self.binning.rows()..rows.end * self.binning.rows();
        let (width, _) = self.frames.size();
        let mut values = vec![0f32; within.len() * width];
        for page in (0..self.binning.pages()).map(|i| page * self.binning.pages() + i) {
            self.read_unbinned(page, within.clone(), &mut values)?;
            means.add(&values, width);
        }
        means.write(out);
        Ok(())
    }

    /// Returns the layout of the rows that [`read_stored`](Self::read_stored) returns: as stored, before binning; or as
    /// f32 and binned, where frames are converted anyway.
    pub fn stored(&self) -> StoredRows {
        match self.converts() {
            true => StoredRows::unbinned(StoredSamples::F32, self.width()),
            false => StoredRows { samples: self.frames.stored(), by: self.binning.by, width: self.frames.size().0 },
        }
    }

    /// Reports whether samples cannot be returned as they are stored, because they have 64 bits or two byte orders.
    fn converts(&self) -> bool {
        let StoredSamples { sample, .. } = self.frames.stored();
        sample.is_long() || sample != self.sample()
    }

    /// Reads ranges of rows of one page, one after another, in the layout of [`stored`](Self::stored). If rows are not
    /// binned yet, every frame that forms the page contributes all of its rows that form the given ones, in order.
    ///
    /// # Errors
    /// The errors of [`read_rows`](Self::read_rows).
    pub fn read_stored(&self, page: usize, runs: &[Range<usize>], out: &mut [u8]) -> Result<()> {
        let (stored, rows) = (self.stored(), self.binning.rows());
        let count: usize = runs.iter().map(Range::len).sum();
        if out.len() != count * stored.row_bytes() {
            let (flag, bytes) = (&self.flag, out.len());
            return Err(Error::Internal(format!("{flag}: {count} rows do not fit {bytes} bytes")));
        }
        let mut rest = out;
        let mut next = |bytes: usize| {
            let (now, after) = std::mem::take(&mut rest).split_at_mut(bytes);
            rest = after;
            now
        };
        if self.converts() {
            return runs.iter().try_for_each(|run| {
                as_f32(next(run.len() * stored.row_bytes()), |out| self.read_rows(page, run.clone(), out))
            });
        }
        for frame in (0..self.binning.pages()).map(|i| page * self.binning.pages() + i) {
            for run in runs {
                let within = run.start * rows..run.end * rows;
                let values = within.len() * stored.width;
                self.check_unbinned(frame, &within, values)?;
                let out = next(values * stored.samples.sample.bytes());
                match self.kept.get() {
                    Some(kept) => kept.samples(&*self.frames, frame, within, out)?,
                    None => self.frames.read_stored(frame, within, out)?,
                }
            }
        }
        Ok(())
    }

    fn check_size(&self, rows: &Range<usize>, count: usize, width: usize, height: usize) -> Result<()> {
        if rows.start > rows.end || rows.end > height || count != rows.len() * width {
            return Err(Error::Internal(format!(
                "{}: rows {}..{} into {count} values do not fit pages of {width}x{height}",
                self.flag, rows.start, rows.end
            )));
        }
        Ok(())
    }

    fn read_unbinned(&self, page: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()> {
        self.check_unbinned(page, &rows, out.len())?;
        match self.kept.get() {
            Some(kept) => kept.values(&*self.frames, page, rows, out),
            None => self.frames.read_rows(page, rows, out),
        }
    }

    fn check_unbinned(&self, page: usize, rows: &Range<usize>, values: usize) -> Result<()> {
        let (count, (width, height)) = (self.frames.count(), self.frames.size());
        if page >= count {
            return Err(Error::Internal(format!("{}: no page {page}, there are {count}", self.flag)));
        }
        self.check_size(rows, values, width, height)
    }
}
