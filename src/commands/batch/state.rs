//! The state of a batch in a file that other programs can read: `batch.json`, or `batch-I-of-N.json` of a shard.

use super::errors::BatchOutputError;
use crate::error::{Error, Result};
use crate::files::{InputSet, OutputFile, OutputKind, SOFTWARE, read_text};
use crate::remark::Doubt;
use crate::shard::Shard;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use strum::{Display, EnumString};

/// Version of the keys.
const FORMAT: u32 = 1;

/// The state of one job of a batch. docs/batch.md describes the keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct BatchState {
    pub software: String,
    pub format: u32,
    /// Share of the scans, as `--shard` takes it.
    pub shard: Option<String>,
    pub host: String,
    pub process: u32,
    /// Time of the last change.
    pub updated: String,
    /// Directory of this file, to which pages and thumbnails are relative.
    pub directory: PathBuf,
    /// Number of scans in each state.
    pub counts: BTreeMap<String, usize>,
    pub scans: Vec<ScanEntry>,
}

/// State of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display, EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(super) enum ScanState {
    Waiting,
    /// It runs, or the job was killed while it ran.
    Running,
    Done,
    Failed,
    /// Stopped by a signal.
    Stopped,
}

/// What is known of a scan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ScanEntry {
    pub name: String,
    pub input: PathBuf,
    pub output: String,
    pub state: ScanState,
    /// Digest of the flags that decide the slices.
    pub key: String,
    /// Begin of the last attempt.
    pub started: Option<String>,
    pub seconds: Option<f64>,
    pub slices: Option<usize>,
    pub axis: Option<AxisEntry>,
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    pub error: Option<ScanError>,
    /// Page of `--report`, if it was written.
    pub page: Option<PathBuf>,
    /// Small picture of the middle slice.
    pub thumbnail: Option<PathBuf>,
}

/// The rotation axis of a scan, in bins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct AxisEntry {
    pub value: f64,
    /// Standard deviation; null if the axis was given.
    pub uncertainty: Option<f64>,
    /// How the axis was found, or `given`.
    pub method: String,
}

/// The error with which a scan ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ScanError {
    pub message: String,
    pub exit_code: u8,
}

impl ScanEntry {
    pub fn waiting(name: &str, input: PathBuf, output: String, key: &str) -> ScanEntry {
        ScanEntry {
            name: name.to_owned(),
            input,
            output,
            state: ScanState::Waiting,
            key: key.to_owned(),
            started: None,
            seconds: None,
            slices: None,
            axis: None,
            doubts: Vec::new(),
            error: None,
            page: None,
            thumbnail: None,
        }
    }
}

impl BatchState {
    pub fn new(shard: Option<Shard>, host: String, directory: PathBuf, scans: Vec<ScanEntry>) -> BatchState {
        BatchState {
            software: SOFTWARE.to_owned(),
            format: FORMAT,
            shard: shard.map(|shard| shard.to_string()),
            host,
            process: std::process::id(),
            updated: now(),
            directory,
            counts: BTreeMap::new(),
            scans,
        }
    }

    /// Reads a state file.
    ///
    /// # Errors
    /// [`Error::Output`] if it is not the state of a batch.
    pub fn read(path: &Path) -> Result<BatchState> {
        let text =
            read_text(path).map_err(|e| Error::output(path, BatchOutputError::UnreadableState { error: e.into() }))?;
        let state: BatchState =
            serde_json::from_str(&text).map_err(|error| Error::output(path, BatchOutputError::NotAState { error }))?;
        match state.format {
            FORMAT => Ok(state),
            format => Err(Error::output(path, BatchOutputError::OtherFormat { format, known: FORMAT })),
        }
    }

    /// Writes the state; the file appears complete or not at all.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written.
    pub fn write(&mut self, file: &OutputFile) -> Result<()> {
        self.updated = now();
        self.counts.clear();
        for scan in &self.scans {
            *self.counts.entry(scan.state.to_string()).or_default() += 1;
        }
        let text = serde_json::to_string_pretty(self).map_err(|e| Error::output(file.path(), e))?;
        file.write(format!("{text}\n"))
    }
}

/// Returns the file of a job's state.
///
/// # Errors
/// [`Error::Output`] if a file of another program is in its place.
pub(super) fn state_file(directory: &Path, shard: Option<Shard>) -> Result<OutputFile> {
    let name = match shard {
        None => "batch.json".to_owned(),
        Some(Shard { index, count }) => format!("batch-{index}-of-{count}.json"),
    };
    OutputFile::new("--output", &directory.join(name), OutputKind::Json, &InputSet::default(), None)
}

/// Returns the state files in a directory, sorted by their names.
pub(super) fn state_files(directory: &Path) -> Vec<PathBuf> {
    let is_state = |name: &str| {
        let inner = name.strip_prefix("batch-").and_then(|rest| rest.strip_suffix(".json"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let shard = inner.and_then(|inner| inner.split_once("-of-"));
        name == "batch.json" || shard.is_some_and(|(index, count)| digits(index) && digits(count))
    };
    let entries = directory.read_dir().into_iter().flatten().flatten();
    let paths = entries.filter(|entry| is_state(&entry.file_name().to_string_lossy())).map(|entry| entry.path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    paths
}

pub(super) fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let shard = Shard { index: 1, count: 12 };
        let mut entry = ScanEntry::waiting("a", "/in/a.h5".into(), "/rec/a".into(), "1f");
        entry.state = ScanState::Failed;
        entry.error = Some(ScanError { message: "no".into(), exit_code: 3 });
        let waiting = ScanEntry::waiting("b", "/in/b.h5".into(), "/rec/b".into(), "2f");
        let mut state = BatchState::new(Some(shard), "host".into(), folder.path().to_owned(), vec![entry, waiting]);
        let file = state_file(folder.path(), Some(shard)).unwrap();
        state.write(&file).unwrap();
        std::fs::write(folder.path().join("batch-a-of-2.json"), "").unwrap();
        assert_eq!(state_files(folder.path()), [folder.path().join("batch-1-of-12.json")]);
        let read = BatchState::read(file.path()).unwrap();
        assert_eq!((read.scans, read.shard), (state.scans.clone(), Some("1/12".into())));
        assert_eq!(read.counts, BTreeMap::from([("failed".into(), 1), ("waiting".into(), 1)]));
        // other files are named, and kept
        for text in ["{}", "{\"software\": \"fbp 1\", \"format\": 7}", "]"] {
            std::fs::write(file.path(), text).unwrap();
            let error = BatchState::read(file.path()).unwrap_err();
            assert!(error.exit_code() == 5 && error.to_string().contains("batch-1-of-12.json"), "{error}");
        }
        assert_eq!(state_file(folder.path(), Some(shard)).unwrap_err().exit_code(), 5);
    }
}
