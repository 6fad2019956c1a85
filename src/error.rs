//! Errors, grouped by cause; the exit code tells a batch job the group.
//!
//! A message names the flag, file, page or device, and says what was expected, and what to do about it.

use crate::visible::Shown;
use std::path::Path;

/// Error of the program, by cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid flag, key or value, which the user can correct.
    #[error("{0}")]
    Usage(String),
    /// Profile file that is malformed or illegal.
    #[error("profile {name}: {message}")]
    Profile { name: String, message: String },
    /// Input files that are missing, corrupt or do not fit together.
    #[error("{0}")]
    Input(String),
    /// No device, no driver, or a driver that refused.
    #[error("{0}")]
    Device(String),
    /// Too little memory on a device or host for a chunk; a smaller chunk may fit.
    #[error("{0}")]
    Memory(String),
    /// No kernel that computes correct values with this driver.
    #[error("{0}")]
    NoCorrectKernel(String),
    /// Kernel that the driver's compiler refused.
    #[error(
        "kernel `{name}` does not build on {device} with options `{options}`: {}\n{log}\n\
         Try another kernel with --algorithm, --interpolation or --profile default",
        first_error(log)
    )]
    KernelBuild { name: String, device: String, options: String, log: String },
    /// Output that cannot be written.
    #[error("{0}")]
    Output(String),
    /// Violated invariant, which means a bug in the program.
    #[error("{0}; this is a bug in fbp, please report it with the command")]
    Internal(String),
    /// Run that was stopped cleanly by a signal before its end.
    #[error("{0}")]
    Interrupted(String),
    /// Comparison outside the tolerance, incorrect kernel, or another failed check.
    #[error("{0}")]
    CheckFailed(String),
}

/// Exit code of a run that was stopped by a signal.
pub const INTERRUPTED: u8 = 75;

/// Returns the most informative line of a compiler's log: the first one with an error, otherwise the first one.
pub fn first_error(log: &str) -> &str {
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next().unwrap_or("no reason given");
    lines.find(|line| line.to_lowercase().contains("error")).unwrap_or(first)
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the exit code, as listed in README and `fbp --help`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::CheckFailed(_) => 1,
            Error::Usage(_) | Error::Profile { .. } => 2,
            Error::Input(_) => 3,
            Error::Device(_)
            | Error::Memory(_)
            | Error::NoCorrectKernel(_)
            | Error::KernelBuild { .. }
            | Error::Internal(_) => 4,
            Error::Output(_) => 5,
            Error::Interrupted(_) => INTERRUPTED,
        }
    }

    /// Returns a usage error.
    pub fn usage(message: impl Into<String>) -> Self {
        Error::Usage(message.into())
    }

    /// Returns an input error about one file or directory.
    pub fn input(path: &Path, message: impl std::fmt::Display) -> Self {
        Error::Input(format!("{}: {message}", path.shown()))
    }

    /// Returns an output error about one file or directory.
    pub fn output(path: &Path, message: impl std::fmt::Display) -> Self {
        Error::Output(format!("{}: {message}", path.shown()))
    }

    /// Returns an output error about a file that a flag names and that cannot be written.
    pub fn unwritable(path: &Path, flag: &str, error: impl std::fmt::Display) -> Self {
        let path = path.shown();
        Error::Output(format!(
            "{path}: {flag}: cannot be written: {error}; check space and permissions, or choose another path"
        ))
    }

    /// Returns an error in a profile.
    pub fn profile(name: &str, message: impl Into<String>) -> Self {
        Error::Profile { name: name.to_owned(), message: message.into() }
    }
}
