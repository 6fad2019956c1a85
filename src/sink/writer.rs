//! Writing the slices of a run, each once, without overwriting other files.

use super::encoding::Encoding;
use super::errors::SliceOutputError;
use super::existing::SliceState;
use super::format::Sink;
use super::page::Pixels;
use super::request::{OutputRequest, SliceStorage};
use super::stamp::{ScanMetadata, SliceStamp};
use super::target::Target;
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Contents that an output may have before slices are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedContents<'a> {
    /// Nothing; there may be other files next to those of a pattern.
    Nothing,
    /// Slices with these numbers, which other jobs write. The numbers may include those of the writer, whose files must
    /// not exist.
    Slices(&'a [usize]),
    /// Anything: files with the same names are replaced if this program wrote them, other files stay.
    Anything,
}

impl<'a> AllowedContents<'a> {
    /// Allows anything with `--overwrite`, otherwise the slices of a run that several jobs share.
    pub fn new(overwrite: bool, shared: Option<&'a [usize]>) -> Self {
        match (overwrite, shared) {
            (true, _) => AllowedContents::Anything,
            (false, Some(slices)) => AllowedContents::Slices(slices),
            (false, None) => AllowedContents::Nothing,
        }
    }
}

/// Writer of slices one by one. A file that has its final name is complete.
///
/// A writer of one multi-page file that is dropped before [`SliceWriter::finish`] leaves no file.
pub struct SliceWriter {
    target: Target,
    request: OutputRequest,
    indices: Vec<usize>,
    written: Mutex<Vec<bool>>,
    clamped: AtomicU64,
    sink: Box<dyn Sink>,
    /// True if the sink was started, after which everything about the run is fixed.
    started: Mutex<bool>,
}

impl SliceWriter {
    /// Prepares to write the slices numbered `indices` (ascending), each `width` x `height` pixels; creates directories
    /// and checks that they are writable. `software` is written to each page. `storage` is an [`Encoding`], or a
    /// [`SliceStorage`] with more about the files.
    ///
    /// A directory must contain no files except hidden ones and those that `present` allows. The files of a pattern or
    /// the single file must not exist, unless `present` allows anything.
    ///
    /// # Errors
    /// [`Error::Output`] when files exist already or the output is not writable; [`Error::Usage`] for integers without
    /// a range or an unsupported compression; [`Error::Internal`] for indices that do not ascend or empty slices.
    pub fn create(
        target: Target,
        width: usize,
        height: usize,
        storage: impl Into<SliceStorage>,
        indices: &[usize],
        present: AllowedContents,
        software: &str,
    ) -> Result<SliceWriter> {
        let storage = storage.into();
        storage.encoding.checked_range()?;
        target.check_compression(storage.compression)?;
        if indices.windows(2).any(|w| w[0] >= w[1]) {
            return Err(Error::Internal("the numbers of the slices to write do not ascend".into()));
        }
        if width == 0 || height == 0 {
            return Err(Error::Internal(format!("slices of {width}x{height} pixels cannot be written")));
        }
        target.make_directory()?;
        if present == AllowedContents::Anything {
            target.check_replaceable(indices, storage.content)?;
        }
        if let Some((path, what)) = occupied(&target, indices, present)? {
            return Err(Error::output(&path, what));
        }
        let request = OutputRequest::new((width, height), storage, indices.to_vec(), software);
        let sink = target.create(indices, present == AllowedContents::Anything)?;
        let (indices, written) = (indices.to_vec(), Mutex::new(vec![false; indices.len()]));
        let (clamped, started) = (AtomicU64::new(0), Mutex::new(false));
        Ok(SliceWriter { target, request, indices, written, clamped, sink, started })
    }

    /// Sets the values that map to 0 and the largest integer.
    ///
    /// # Errors
    /// [`Error::Usage`] when the range is not two finite numbers, the smaller one first.
    pub fn with_range(mut self, range: (f32, f32)) -> Result<SliceWriter> {
        self.request.page.encoding.range = Some(range);
        self.request.page.encoding.checked_range()?;
        Ok(self)
    }

    /// Adds a description of the run to each slice.
    pub fn stamped(mut self, stamp: SliceStamp) -> SliceWriter {
        self.request.page.stamp = Some(stamp);
        self
    }

    /// Shares the output with jobs that write, or have written, other slices: `run` are the numbers of all slices,
    /// ascending.
    pub fn shared(mut self, run: &[usize]) -> SliceWriter {
        self.request.run = run.to_vec();
        self
    }

    /// Adds the run file that produces the slices, for formats that can store it.
    pub fn with_run_file(mut self, text: String) -> SliceWriter {
        self.request.run_file = text;
        self
    }

    /// Adds a description of the scan, for formats that can store it.
    pub fn of_scan(mut self, scan: ScanMetadata) -> SliceWriter {
        self.request.scan = Some(scan);
        self
    }

    /// Returns a function that determines the state of slices of the output, compared with what this writer would
    /// write.
    pub fn stored(&self) -> impl Fn(usize) -> SliceState + Sync + '_ {
        let stored = self.target.stored(&self.request.run);
        move |index| stored.examine(index, &self.request)
    }

    /// Returns the encoding of the samples.
    pub fn encoding(&self) -> Encoding {
        self.request.page.encoding
    }

    /// Marks slices that already have files as written; they are not passed to the sink.
    pub fn keep(&mut self, kept: &[usize]) {
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (index, written) in self.indices.iter().zip(written) {
            *written |= kept.binary_search(index).is_ok();
        }
    }

    /// Writes slice `index`, row-major, `width * height` values. Slices come in any order.
    ///
    /// # Errors
    /// The errors of [`write_all`](Self::write_all).
    pub fn write(&self, index: usize, data: &[f32]) -> Result<()> {
        self.write_all(&[(index, Pixels::Values(data))])
    }

    /// Writes slices, given as numbers with pixels, in parallel. Several threads may call this with different slices.
    ///
    /// # Errors
    /// [`Error::Output`] when a file cannot be written (then it does not exist), or when a slice was written already,
    /// is not one of the indices or has another size. Other slices may be complete.
    pub fn write_all(&self, slices: &[(usize, Pixels)]) -> Result<()> {
        self.start()?;
        let places = slices.iter().map(|(index, _)| self.free_place(*index)).collect::<Result<Vec<_>>>()?;
        self.clamped.fetch_add(self.sink.write(slices, &self.request.page)?, Relaxed);
        let mut written = self.written();
        places.into_iter().for_each(|place| written[place] = true);
        Ok(())
    }

    /// Starts the sink, once.
    fn start(&self) -> Result<()> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            let kept: Vec<_> =
                self.indices.iter().zip(&*self.written()).filter(|(_, kept)| **kept).map(|(&i, _)| i).collect();
            self.sink.start(&self.request, &kept)?;
            *started = true;
        }
        Ok(())
    }

    fn written(&self) -> MutexGuard<'_, Vec<bool>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the position in the list of a slice that may be written now: announced, and not written yet.
    fn free_place(&self, index: usize) -> Result<usize> {
        let wrong = |why: SliceOutputError| Error::output(&self.path_of(index), why);
        let place = self.indices.binary_search(&index);
        let place = place.map_err(|_| wrong(SliceOutputError::NotAnnounced { slice: index }))?;
        match self.written()[place] {
            true => Err(wrong(SliceOutputError::WrittenBefore { slice: index })),
            false => Ok(place),
        }
    }

    /// Returns the file that contains slice `index`.
    pub fn path_of(&self, index: usize) -> PathBuf {
        self.target.path_of(index)
    }

    /// Returns the number of values clamped so far: outside the range (or NaN) for integers, finite values that became
    /// infinite for f16.
    pub fn clamped(&self) -> u64 {
        self.clamped.load(Relaxed)
    }

    /// Completes the output and returns its files in order; a single file gets its final name here.
    ///
    /// # Errors
    /// [`Error::Output`] when slices are missing or the file cannot be renamed.
    pub fn finish(self) -> Result<Vec<PathBuf>> {
        self.start()?;
        let written = self.written();
        let missing = written.iter().filter(|done| !**done).count();
        if let Some(first) = written.iter().position(|done| !done) {
            let path = self.path_of(self.indices[first]);
            let slices = self.indices.len();
            return Err(Error::output(&path, SliceOutputError::MissingSlices { missing, slices }));
        }
        drop(written);
        self.sink.finish(&self.request)
    }
}

/// Returns the path of an existing file that prevents writing, and what is wrong with it.
fn occupied(
    target: &Target,
    indices: &[usize],
    present: AllowedContents,
) -> Result<Option<(PathBuf, SliceOutputError)>> {
    let others = match present {
        AllowedContents::Anything => return Ok(None),
        AllowedContents::Slices(others) => others,
        AllowedContents::Nothing => &[],
    };
    if target.fills_directory() {
        let directory = target.directory();
        let others: HashSet<_> = others.iter().map(|&i| target.path_of(i)).collect();
        let cannot = |error| Error::output(directory, SliceOutputError::Unlisted { error });
        for entry in fs::read_dir(directory).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with('.') && !others.contains(&path) && path != target.record() {
                let name = name.into_owned();
                let what = match present {
                    AllowedContents::Slices(_) => SliceOutputError::OtherFile { name },
                    _ => SliceOutputError::NotEmpty { name },
                };
                return Ok(Some((directory.to_owned(), what)));
            }
        }
    }
    let unfinished = target.unfinished_slices()?;
    if unfinished > 0 && present == AllowedContents::Nothing {
        return Ok(Some((target.path_of(0), SliceOutputError::Unfinished { slices: unfinished })));
    }
    // a single file prevents writing, whatever its slices are
    let indices = if target.one_file() { &[0] } else { indices };
    let there = indices.iter().map(|&i| target.path_of(i)).find(|path| path.symlink_metadata().is_ok());
    Ok(there.map(|path| (path, SliceOutputError::Exists)))
}
