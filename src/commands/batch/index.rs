//! The page of all scans of a batch, from the state files of all of its jobs.

use super::errors::ScanListError;
use super::state::{BatchState, ScanEntry, ScanState, state_files};
use crate::error::{Error, Result};
use crate::files::{InputSet, Lock, OutputFile, OutputKind, SOFTWARE};
use crate::html::{BATCH, IMAGE_BYTES, write_page};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the page.
const PAGE: &str = "index.html";

/// Share of the time of a batch that its page may take: it is made after a scan unless it took more than this share of the
/// time since it was made last.
const SHARE: u32 = 20;

/// Largest size of a thumbnail in bytes.
const LARGEST: u64 = 64 << 10;

/// Largest number of characters of an error in the page.
const LONGEST: usize = 4000;

/// The page of a batch.
pub(super) struct Index {
    file: OutputFile,
    directory: PathBuf,
    /// When the page was made last, and how long that took.
    made: Option<(Instant, Duration)>,
}

/// Data of the page.
#[derive(Serialize)]
struct IndexData {
    software: &'static str,
    directory: String,
    updated: String,
    jobs: usize,
    /// Why the states of other jobs are missing.
    missing: Vec<String>,
    scans: Vec<IndexRow>,
}

/// A row of the page.
#[derive(Serialize)]
struct IndexRow {
    #[serde(flatten)]
    entry: ScanEntry,
    shard: Option<String>,
    /// Thumbnail as a PNG in Base64.
    picture: Option<String>,
}

impl Index {
    /// Returns the page in a directory.
    ///
    /// # Errors
    /// [`Error::Output`] if a file of another program is in its place.
    pub fn new(directory: &Path) -> Result<Index> {
        let file = OutputFile::new("--output", &directory.join(PAGE), OutputKind::Html, &InputSet::default(), None)?;
        Ok(Index { file, directory: directory.to_owned(), made: None })
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Makes the page anew, unless that would take a large share of the time.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written.
    pub fn refresh(&mut self) -> Result<()> {
        match self.made {
            Some((when, took)) if when.elapsed() < took * SHARE => Ok(()),
            _ => self.make(),
        }
    }

    /// Makes the page anew. One job at a time does so, so that the last one sees the states of all.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written.
    pub fn make(&mut self) -> Result<()> {
        let start = Instant::now();
        let _lock = Lock::wait(&self.directory.join(format!(".{PAGE}.fbp-lock")))?;
        let data = gathered(&self.directory);
        let failed = data.scans.iter().filter(|row| row.entry.state == ScanState::Failed).count();
        let title = match failed {
            0 => format!("{} scans", data.scans.len()),
            _ => format!("{} scans, {failed} failed", data.scans.len()),
        };
        write_page(&self.file, &BATCH, &title, &data)?;
        self.made = Some((Instant::now(), start.elapsed()));
        Ok(())
    }
}

/// Makes the page of a batch anew, for `fbp report --index`, and returns its path.
///
/// # Errors
/// [`Error::Input`] if the directory has no state of a batch, [`Error::Output`] when the page cannot be written.
pub fn batch_index(directory: &Path) -> Result<PathBuf> {
    if state_files(directory).is_empty() {
        return Err(Error::input(directory, ScanListError::NoState));
    }
    let mut index = Index::new(directory)?;
    index.make()?;
    Ok(index.path().to_owned())
}

/// Collects the scans of all jobs, by their names; of one that several jobs know, the last attempt counts.
fn gathered(directory: &Path) -> IndexData {
    let files = state_files(directory);
    let mut missing = Vec::new();
    let mut scans: BTreeMap<String, (ScanEntry, Option<String>)> = BTreeMap::new();
    let (mut updated, mut place) = (String::new(), String::new());
    for path in &files {
        let state = match BatchState::read(path) {
            Ok(state) => state,
            Err(error) => {
                missing.push(error.to_string());
                continue;
            }
        };
        if state.updated >= updated {
            (updated, place) = (state.updated.clone(), state.directory.display().to_string());
        }
        for entry in state.scans {
            let is_older = |(known, _): &(ScanEntry, Option<String>)| known.started <= entry.started;
            if scans.get(&entry.name).is_none_or(is_older) {
                scans.insert(entry.name.clone(), (entry, state.shard.clone()));
            }
        }
    }
    let mut left = IMAGE_BYTES;
    let row = |(mut entry, shard): (ScanEntry, Option<String>)| {
        if let Some(error) = &mut entry.error
            && error.message.chars().count() > LONGEST
        {
            error.message = error.message.chars().take(LONGEST).chain(" ...".chars()).collect();
        }
        let picture = entry.thumbnail.as_ref().and_then(|path| png(&directory.join(path)));
        let picture = picture.filter(|png| png.len() <= left);
        left -= picture.as_ref().map_or(0, Vec::len);
        IndexRow { picture: picture.map(|png| BASE64_STANDARD.encode(png)), shard, entry }
    };
    let mut scans: Vec<IndexRow> = scans.into_values().map(row).collect();
    scans.sort_by(|a, b| crate::source::natural(&a.entry.name, &b.entry.name));
    IndexData { software: SOFTWARE, directory: place, updated, jobs: files.len() - missing.len(), missing, scans }
}

/// Reads a thumbnail; `None` if it is not there.
fn png(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|meta| meta.is_file()))?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    (OutputKind::Png.is_marked(&bytes) && bytes.len() as u64 <= LARGEST).then_some(bytes)
}
