//! The state of a job of a batch while it runs: its file, the page, and what is to do.

use super::errors::BatchOutputError;
use super::failure::write_failure;
use super::index::Index;
use super::runs::{BatchRuns, ScanRun, make_directory};
use super::state::{AxisEntry, BatchState, ScanEntry, ScanError, ScanState, now, state_file};
use crate::cli::ReconstructArgs;
use crate::commands::reconstruct::RecordFile;
use crate::error::{Error, Result};
use crate::files::{Lock, LockMode, OutputFile, write_atomically};
use crate::picture::{Panel, thumbnail};
use crate::sink::{PageContent, Target};
use rustix::system::uname;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf, absolute};
use std::time::SystemTime;

/// Directory of the thumbnails, beside the page.
const THUMBNAILS: &str = ".batch";

/// Longest side of a thumbnail in pixels.
const SIDE: usize = 96;

/// What a job of a batch has done so far.
pub(super) struct Night {
    state: BatchState,
    file: OutputFile,
    index: Index,
    /// Place of each scan in the state.
    places: HashMap<String, usize>,
    /// Time at which the running scan began.
    began: SystemTime,
    _lock: Lock,
}

impl Night {
    /// Takes the lock of the job's state, reads what an earlier job has left, and writes the state and the page.
    ///
    /// # Errors
    /// [`Error::Output`] if another job has the lock, if there is a state and no flag says what to do with it, or if a
    /// file cannot be written.
    pub fn open(batch: &BatchRuns) -> Result<Night> {
        let directory = &batch.directory;
        make_directory(directory)?;
        let file = state_file(directory, batch.shard)?;
        let index = Index::new(directory)?;
        let host = uname().nodename().to_string_lossy().into_owned();
        let owner = format!("process {} on {host}", std::process::id());
        let name = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let lock = Lock::take(&directory.join(format!(".{name}.fbp-lock")), LockMode::Exclusive, &owner)?;
        let full = |path: &Path| absolute(path).map_err(|e| Error::output(path, e));
        let there = file.path().exists();
        if there && !batch.resume && !batch.overwrite {
            return Err(Error::output(file.path(), BatchOutputError::EarlierState));
        }
        let mut scans = if there && batch.resume { BatchState::read(file.path())?.scans } else { Vec::new() };
        for earlier in scans.iter_mut().filter(|scan| scan.state == ScanState::Running) {
            earlier.state = ScanState::Stopped;
        }
        let mut places: HashMap<String, usize> =
            scans.iter().enumerate().map(|(place, scan)| (scan.name.clone(), place)).collect();
        for run in &batch.runs {
            let output = run.target.as_ref().map(Target::to_string).unwrap_or_default();
            let output = full(Path::new(&output))?.to_string_lossy().into_owned();
            let waiting = ScanEntry::waiting(&run.name, full(Path::new(&run.input))?, output, &run.key);
            match places.get(&run.name) {
                Some(&place) if scans[place].key == run.key => {}
                // another input, output or other flags
                Some(&place) => scans[place] = waiting,
                None => {
                    places.insert(run.name.clone(), scans.len());
                    scans.push(waiting);
                }
            }
        }
        let state = BatchState::new(batch.shard, host, full(directory)?, scans);
        let mut night = Night { state, file, index, places, began: SystemTime::now(), _lock: lock };
        night.write()?;
        Ok(night)
    }

    /// Returns the places of the runs that are to do, and the number of others.
    pub fn todo(&self, batch: &BatchRuns) -> (Vec<usize>, usize) {
        let is_left = |run: &ScanRun| match self.entry(run).map(|entry| entry.state) {
            Some(ScanState::Done) => run.target.as_ref().is_none_or(|target| !target.record().exists()),
            Some(ScanState::Failed) => batch.retry_failed,
            _ => true,
        };
        let todo: Vec<usize> = (0..batch.runs.len()).filter(|&place| is_left(&batch.runs[place])).collect();
        let kept = batch.runs.len() - todo.len();
        (todo, kept)
    }

    pub fn entry(&self, run: &ScanRun) -> Option<&ScanEntry> {
        self.places.get(&run.name).and_then(|&place| self.state.scans.get(place))
    }

    /// Returns the path of the page.
    pub fn page(&self) -> &Path {
        self.index.path()
    }

    /// Returns the flags of an attempt. With `--resume`, complete slices are kept; an output of one file, which has none
    /// before it is complete, is removed if fbp wrote it.
    ///
    /// # Errors
    /// [`Error::Output`] if that file cannot be removed.
    pub fn flags(&self, run: &ScanRun, resume: bool) -> Result<ReconstructArgs> {
        let mut flags = ReconstructArgs { resume: false, ..run.flags.clone() };
        let Some(target) = run.target.as_ref().filter(|_| resume) else { return Ok(flags) };
        flags.resume = target.resumable();
        let path = target.path_of(0);
        if !flags.resume && path.is_file() && target.check_replaceable(&[0], PageContent::Slices).is_ok() {
            fs::remove_file(&path).map_err(|error| Error::output(&path, BatchOutputError::NotRemoved { error }))?;
        }
        Ok(flags)
    }

    /// Writes that a scan begins.
    ///
    /// # Errors
    /// [`Error::Output`] when that cannot be written.
    pub fn begin(&mut self, run: &ScanRun) -> Result<()> {
        self.began = SystemTime::now();
        self.change(run, |entry| {
            let ScanEntry { name, input, output, key, .. } = entry.clone();
            *entry = ScanEntry {
                state: ScanState::Running,
                started: Some(now()),
                ..ScanEntry::waiting(&name, input, output, &key)
            };
        });
        self.state.write(&self.file)?;
        self.index.refresh()
    }

    /// Writes how a scan ended.
    ///
    /// # Errors
    /// [`Error::Output`] when that cannot be written.
    pub fn end(&mut self, run: &ScanRun, outcome: &Result<()>, seconds: f64) -> Result<()> {
        let record = run.target.as_ref().and_then(|target| RecordFile::read(&target.record()).ok());
        // of a failed run, the record may be that of an earlier one
        let record = record.filter(|record| outcome.is_ok() || record.facts.is_of_this_process());
        let picture =
            run.target.as_ref().zip(record.as_ref()).and_then(|(target, record)| self.picture(run, target, record));
        self.change(run, |entry| {
            entry.seconds = Some(seconds);
            entry.state = match outcome {
                Ok(()) => ScanState::Done,
                Err(Error::Interrupted(_)) => ScanState::Stopped,
                Err(_) => ScanState::Failed,
            };
            entry.error = outcome
                .as_ref()
                .err()
                .filter(|_| entry.state == ScanState::Failed)
                .map(|error| ScanError { message: error.to_string(), exit_code: error.exit_code() });
            if let Some(record) = &record {
                entry.doubts = record.facts.all_doubts();
                if let Some(scan) = &record.facts.scan {
                    entry.slices = Some(scan.slices().len());
                    entry.axis = Some(AxisEntry {
                        value: scan.axis.value,
                        uncertainty: scan.axis.uncertainty,
                        method: scan.axis.method.clone().unwrap_or_else(|| "given".into()),
                    });
                }
            }
            entry.thumbnail = picture;
        });
        let page = self.page_of(run, outcome);
        self.change(run, |entry| entry.page = page);
        self.state.write(&self.file)?;
        self.index.refresh()
    }

    /// Writes the state and the page.
    ///
    /// # Errors
    /// [`Error::Output`] when they cannot be written.
    pub fn write(&mut self) -> Result<()> {
        self.state.write(&self.file)?;
        self.index.make()
    }

    /// Returns the page of a scan that has ended, from the directory of the state. A failed scan gets one unless it has
    /// left trial slices in its place.
    fn page_of(&self, run: &ScanRun, outcome: &Result<()>) -> Option<PathBuf> {
        let page = run.page.as_deref()?;
        let changed = || fs::metadata(page).and_then(|meta| meta.modified());
        let is_new = || changed().is_ok_and(|changed| changed >= self.began);
        let entry = self.entry(run)?;
        if let (Some(error), ScanState::Failed, false) = (&entry.error, entry.state, is_new()) {
            // nothing depends on it, and the page of all scans has the error, too
            write_failure(run, page, error, &entry.doubts).ok()?;
        }
        if outcome.is_err() && !is_new() {
            return None;
        }
        Some(from(&self.state.directory, &absolute(page).ok()?))
    }

    fn change(&mut self, run: &ScanRun, change: impl FnOnce(&mut ScanEntry)) {
        let entry = self.places.get(&run.name).and_then(|&place| self.state.scans.get_mut(place));
        entry.map(change).unwrap_or_default()
    }

    /// Writes a small picture of the middle slice, and returns its path from the directory of the page; `None` where that
    /// is not possible, as nothing depends on it.
    fn picture(&self, run: &ScanRun, target: &Target, record: &RecordFile) -> Option<PathBuf> {
        let scan = record.facts.scan.as_ref()?;
        let slices = scan.slices();
        let middle = *slices.get(slices.len() / 2)?;
        let (width, height) = (scan.region.width, scan.region.height);
        let mut data = vec![0f32; width * height];
        target.stored(&slices).read(middle, &mut data).ok()?;
        let png = thumbnail(&Panel { title: "", unit: "", width, height, data: &data, pixel: None }, SIDE).ok()?;
        let place = Path::new(THUMBNAILS).join(format!("{}.png", run.name));
        let path = self.index.path().with_file_name(&place);
        fs::create_dir_all(path.parent()?).ok()?;
        write_atomically(&path, png).ok()?;
        Some(place)
    }
}

/// Returns the path that leads from a directory to a file, both absolute.
fn from(directory: &Path, file: &Path) -> PathBuf {
    let common = directory.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let up = directory.components().skip(common).map(|_| Path::new(".."));
    let down = file.components().skip(common);
    up.map(Path::as_os_str).chain(down.map(|part| part.as_os_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_from_the_directory() {
        for (directory, file, path) in [
            ("/a/rec", "/a/rec/p.html", "p.html"),
            ("/a/rec", "/a/pages/p.html", "../pages/p.html"),
            ("/a/b", "/p", "../../p"),
        ] {
            assert_eq!(from(Path::new(directory), Path::new(file)), Path::new(path));
        }
    }
}
