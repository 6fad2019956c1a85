//! Input files, and detection of changes since they were opened.

use crate::error::{Error, Result, messages};
use crate::files::open_regular;
use crate::visible::Shown;
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

messages! {
    /// Errors of a file of the input, whatever its format.
    pub(super) enum InputFileError: Input {
        Unreadable { error: io::Error } => "cannot be read: {error}"; "check the path and the permissions",
        BecameShorter => "became shorter while it was read"; "run again when nothing writes to it",
        Changed => "has changed since this run began"; "run again when nothing writes to it",
        Resized { before: u64, now: u64 } =>
            "had {before} bytes and has {now} now"; "run again when nothing writes to it",
    }
}

/// Number of files that a run may open in addition to those of a stack.
const OTHER_FILES: u64 = 256;

/// Reports whether `files` files may stay open; otherwise each is opened for every read. Raises the system's soft
/// limit.
pub(super) fn may_stay_open(files: usize) -> bool {
    let wanted = files as u64 + OTHER_FILES;
    rlimit::increase_nofile_limit(wanted).is_ok_and(|limit| limit >= wanted)
}

/// Returns an error about a file; `flag` is the flag that named it.
pub(super) fn bad(flag: &str, path: &Path, message: impl Display) -> Error {
    Error::Input(format!("{flag}: {}: {message}", path.shown()).into())
}

/// Returns the name of a file without its directories.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Returns the names of files without the directories that contain all of them.
pub(super) fn short_names(files: &[PathBuf]) -> Vec<String> {
    let Some(first) = files.first().and_then(|path| path.parent()) else { return Vec::new() };
    let shared = first.ancestors().find(|folder| files.iter().all(|path| path.starts_with(folder)));
    let short = |path: &PathBuf| {
        let rest = shared.and_then(|shared| path.strip_prefix(shared).ok());
        rest.unwrap_or(path).to_string_lossy().into_owned()
    };
    files.iter().map(short).collect()
}

/// Size of a file and time of its last change, by which writes are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileState {
    pub bytes: u64,
    /// Seconds and nanoseconds of the last change.
    changed: (i64, i64),
}

/// Opens a file and returns its present state.
pub(super) fn open_plain(path: &Path, flag: &str) -> Result<(File, FileState)> {
    let cannot = |error| bad(flag, path, InputFileError::Unreadable { error });
    let file = open_regular(path).map_err(cannot)?;
    let state = FileState::of(&file).map_err(cannot)?;
    Ok((file, state))
}

impl FileState {
    pub fn of(file: &File) -> io::Result<FileState> {
        let meta = file.metadata()?;
        Ok(FileState { bytes: meta.len(), changed: (meta.mtime(), meta.mtime_nsec()) })
    }
}

/// Files in order, each with its state when it was opened, and with its handle if it stays open.
#[derive(Debug)]
pub(super) struct InputFiles {
    flag: String,
    paths: Vec<PathBuf>,
    states: Vec<(FileState, Option<File>)>,
}

impl InputFiles {
    /// Creates the list from `paths` and the state of each file; `flag` is used in messages.
    pub fn new(flag: &str, paths: Vec<PathBuf>, states: Vec<(FileState, Option<File>)>) -> InputFiles {
        InputFiles { flag: flag.to_owned(), paths, states }
    }

    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns a line for every file with its name, size and time of the last change.
    pub fn fingerprint(&self) -> String {
        let line = |(path, (state, _)): (&PathBuf, &(FileState, _))| {
            let (seconds, nanoseconds) = state.changed;
            format!("{:?} {} {seconds}.{nanoseconds:09}\n", file_name(path), state.bytes)
        };
        self.paths.iter().zip(&self.states).map(line).collect()
    }

    /// Calls `read` with the file at `index`.
    ///
    /// # Errors
    /// [`Error::Input`] with the message of `read`, or when the file cannot be opened or has changed since the run
    /// began.
    pub fn read<E: Display>(&self, index: usize, read: impl FnOnce(&File) -> Result<(), E>) -> Result<()> {
        let (path, (before, handle)) = (&self.paths[index], &self.states[index]);
        let opened;
        let file = match handle {
            Some(file) => file,
            None => {
                opened = open_plain(path, &self.flag)?.0;
                &opened
            }
        };
        let done = read(file);
        // after `read`, so that no write can come in between
        let now = FileState::of(file).map_err(|error| bad(&self.flag, path, InputFileError::Unreadable { error }))?;
        if now != *before {
            let wrong = match now.bytes == before.bytes {
                true => InputFileError::Changed,
                false => InputFileError::Resized { before: before.bytes, now: now.bytes },
            };
            return Err(bad(&self.flag, path, wrong));
        }
        done.map_err(|e| bad(&self.flag, path, e))
    }
}
