//! Examination of a file by a separate process before it is read, as damaged files may make the library crash or never
//! return.
//!
//! The program starts itself with [`EXAMINE`]. That process does the same as the program is about to do: it opens the
//! file, looks up the datasets, goes through the index of their chunks, and reads some rows. The program only reads
//! what that process could read.

use super::Hdf5Input;
use super::file::is_hdf5;
use crate::error::{Error, Result, messages};
use crate::fault;
use crate::memory;
use crate::source::files::{FileState, open_plain};
use crate::visible::Shown;
use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Resource, Rlimit, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

messages! {
    /// How the library failed in a separate process.
    pub(super) enum Hdf5LibraryError: Input {
        Fails { version: String, status: ExitStatus } =>
            "the HDF5 library (version {version}) fails ({status}) on this file, which is damaged, or refers to one \
             that is";
            "copy it again from where it was written, or save what `h5dump` or h5py still reads of it in a new file",
        Endless { version: String, seconds: u64 } =>
            "the HDF5 library (version {version}) does not come to an end in {seconds} s with this file, which is \
             damaged, or refers to one that is";
            "copy it again from where it was written, or save what `h5dump` or h5py still reads of it in a new file",
        Killed { version: String } =>
            "the HDF5 library (version {version}) was killed, as happens when memory runs out, on this file, which is \
             damaged, or refers to one that is";
            "copy it again from where it was written, or save what `h5dump` or h5py still reads of it in a new file",
        Crashes { version: String, signal: String } =>
            "the HDF5 library (version {version}) crashes ({signal}) on this file, which is damaged, or refers to one \
             that is";
            "copy it again from where it was written, or save what `h5dump` or h5py still reads of it in a new file",
    }
}

messages! {
    /// Why the examination of a file has no result, or what it found; the title names the file with its flag.
    enum ExaminationError: Input {
        LibraryFailed { title: String, error: String } => "{title}: {error}",
        NotStarted { title: String, program: String, error: io::Error } =>
            "{title}: {program} cannot be started to examine the file: {error}";
            "check the limits of processes and memory",
    }
}

messages! {
    /// Why an examination ended early.
    enum ExaminationStoppedError: Interrupted {
        Stopped { title: String } => "{title}: stopped by a signal while the file was examined"; "run again",
    }
}

/// Argument that starts the program as the process that examines a file.
pub const EXAMINE: &str = "hdf5-examine";

/// Processor time in seconds that an examination may take; a virtual dataset of ten thousand files takes some.
const SECONDS: u64 = 60;
/// Lower bound in bytes of the memory limit of an examination.
const LEAST_MEMORY: u64 = 4 << 30;

/// Signals that stop a run.
const STOPS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1];

/// Path of the program, if files are examined.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Lets `program` examine every file before it is read. A process that does not call this function, such as the
/// examining process itself, reads files without examination.
pub fn examine_with(program: PathBuf) {
    let _ = PROGRAM.set(program); // there is one
}

/// Returns the path of the program that examines, if files are examined.
pub(super) fn program() -> Option<&'static Path> {
    PROGRAM.get().map(PathBuf::as_path)
}

/// Description of what is about to be read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Hdf5Reading {
    /// Scan, as [`open`](super::open) reads it.
    Scan { input: Hdf5Input, angles: bool, memory: u64 },
    /// Parameters of the acquisition, as [`measures`](super::measures()) reads them.
    Measures { input: Hdf5Input },
    /// Dataset of frames, as [`stack`](super::stack) reads it.
    Frames { file: PathBuf, dataset: Option<String>, flag: String },
    /// Contents of a file, as [`contents`](super::contents) reads them, or the run record in a file of slices.
    Contents { file: PathBuf },
    /// Rows of a dataset, one request after another, with a cache of chunks of this number of slots and bytes.
    Rows { file: PathBuf, dataset: String, slots: u64, bytes: u64 },
}

impl Hdf5Reading {
    fn file(&self) -> &Path {
        match self {
            Hdf5Reading::Scan { input, .. } | Hdf5Reading::Measures { input } => &input.file,
            Hdf5Reading::Frames { file, .. } | Hdf5Reading::Contents { file } | Hdf5Reading::Rows { file, .. } => file,
        }
    }

    /// Returns the file with its flag, for messages.
    fn title(&self) -> String {
        let file = self.file().shown();
        match self {
            Hdf5Reading::Scan { .. } | Hdf5Reading::Measures { .. } => format!("--hdf5 {file}"),
            Hdf5Reading::Frames { flag, .. } => format!("{flag}: {file}"),
            Hdf5Reading::Contents { .. } | Hdf5Reading::Rows { .. } => file.to_string(),
        }
    }
}

/// Result of a reading.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hdf5Verdict {
    /// Message of the error, if there was one.
    pub refused: Option<String>,
}

impl Hdf5Verdict {
    /// Returns the verdict as JSON.
    ///
    /// # Errors
    /// [`Error::Internal`] if it cannot be written as JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|e| Error::Internal(format!("the verdict on an HDF5 file: {e}")))
    }
}

/// Results for a file in one state.
#[derive(Default)]
struct FileVerdicts {
    /// Message about the library, if it failed.
    failed: Option<String>,
    readings: HashMap<Hdf5Reading, Hdf5Verdict>,
}

/// Lets another process read first, once for each reading of an unchanged file.
///
/// # Errors
/// [`Error::Input`] if that process failed or could not read, [`Error::Interrupted`] if it was stopped by a signal.
pub fn examine(reading: &Hdf5Reading) -> Result<()> {
    static KNOWN: Mutex<Option<HashMap<(PathBuf, FileState), FileVerdicts>>> = Mutex::new(None);
    let (Some(program), file) = (program(), reading.file()) else { return Ok(()) };
    // the library refuses paths that are not Unicode
    if file.to_str().is_none() || !is_hdf5(file) {
        return Ok(());
    }
    let Ok((_, state)) = open_plain(file, "") else { return Ok(()) };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let verdicts = known.get_or_insert_default().entry((file.to_owned(), state)).or_default();
    let failed = |error: &String| ExaminationError::LibraryFailed { title: reading.title(), error: error.clone() };
    if let Some(error) = &verdicts.failed {
        return Err(failed(error).into());
    }
    let verdict = match verdicts.readings.get(reading) {
        Some(verdict) => verdict.clone(),
        None => match verdict_of(program, reading)? {
            Ok(verdict) => verdicts.readings.entry(reading.clone()).or_insert(verdict).clone(),
            Err(error) => return Err(failed(verdicts.failed.insert(error.to_string())).into()),
        },
    };
    verdict.refused.map_or(Ok(()), |message| Err(Error::Input(message.into())))
}

/// Returns the result of a reading in a separate process, or the error of the library if it failed there.
fn verdict_of(program: &Path, reading: &Hdf5Reading) -> Result<Result<Hdf5Verdict, Hdf5LibraryError>> {
    let title = reading.title();
    let output = match start(reading).and_then(Child::wait_with_output) {
        Ok(output) => output,
        Err(error) => return Err(ExaminationError::NotStarted { title, program: program.shown(), error }.into()),
    };
    match serde_json::from_slice(&output.stdout) {
        Ok(verdict) if output.status.success() => Ok(Ok(verdict)),
        _ if is_stop(output.status) => Err(ExaminationStoppedError::Stopped { title }.into()),
        _ => Ok(Err(library_failure(output.status))),
    }
}

/// Starts the program as the process that reads.
pub(super) fn start(reading: &Hdf5Reading) -> io::Result<Child> {
    let mut request = serde_json::to_vec(reading)?;
    request.push(b'\n');
    let mut command = Command::new(program().ok_or(io::ErrorKind::NotFound)?);
    // each thread would take memory that counts towards the limit
    command.arg(EXAMINE).env("RAYON_NUM_THREADS", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(input) = &mut child.stdin {
        // a process that does not read has ended, as its status shows
        let _ = input.write_all(&request);
    }
    Ok(child)
}

/// Reports whether a process was ended by a signal that stops a run.
fn is_stop(status: ExitStatus) -> bool {
    STOPS.into_iter().any(|signal| status.signal() == Some(signal as i32))
}

/// Returns the error about a library that failed in a process with this status.
pub(super) fn library_failure(status: ExitStatus) -> Hdf5LibraryError {
    let (major, minor, patch) = hdf5_metno::library_version();
    let version = format!("{major}.{minor}.{patch}");
    match status.signal().map(Signal::try_from) {
        None => Hdf5LibraryError::Fails { version, status },
        Some(Ok(Signal::SIGXCPU)) => Hdf5LibraryError::Endless { version, seconds: seconds() },
        Some(Ok(Signal::SIGKILL)) => Hdf5LibraryError::Killed { version },
        Some(Ok(signal)) => Hdf5LibraryError::Crashes { version, signal: signal.to_string() },
        Some(Err(_)) => Hdf5LibraryError::Crashes { version, signal: status.to_string() },
    }
}

fn seconds() -> u64 {
    fault::hdf5_seconds().unwrap_or(SECONDS)
}

/// Limits the resources of the examining process, which calls this function, and returns the reading that was
/// requested.
///
/// # Errors
/// [`Error::Internal`] if this process was started by another program.
pub fn reading_to_examine() -> Result<Hdf5Reading> {
    let bad = |e: String| Error::Internal(format!("{EXAMINE} cannot begin: {e}"));
    let mut request = String::new();
    io::stdin().read_line(&mut request).map_err(|e| bad(e.to_string()))?;
    let reading = serde_json::from_str(&request).map_err(|e| bad(e.to_string()))?;
    confine(&reading).map_err(|e| bad(e.to_string()))?;
    let part = if matches!(reading, Hdf5Reading::Rows { .. }) { "-rows" } else { "" };
    match fault::hdf5() {
        Some(fault) if fault == format!("crash{part}") => std::process::abort(),
        Some(fault) if fault == format!("loop{part}") => loop {
            std::hint::spin_loop();
        },
        _ => {}
    }
    Ok(reading)
}

/// Sets the limits of this process.
fn confine(reading: &Hdf5Reading) -> io::Result<()> {
    let mut blocked = SigSet::empty();
    match reading {
        // continues until the program, which receives the same signal, has finished what it had begun
        Hdf5Reading::Rows { .. } => STOPS.into_iter().for_each(|signal| blocked.add(signal)),
        // ends with the thread that waits for it
        _ => set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?,
    }
    blocked.thread_set_mask()?;
    limit(Resource::Core, 0)?;
    limit(Resource::Cpu, seconds())?;
    limit(Resource::As, memory::available().max(LEAST_MEMORY))
}

/// Restarts the limit on processor time.
///
/// # Errors
/// [`Error::Internal`] if the limit cannot be set.
pub(super) fn renew_time() -> Result<()> {
    let taken = clock_gettime(ClockId::ProcessCPUTime).tv_sec as u64;
    limit(Resource::Cpu, taken + seconds()).map_err(|e| Error::Internal(format!("{EXAMINE} cannot go on: {e}")))
}

/// Lowers a limit of this process.
fn limit(resource: Resource, most: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}
