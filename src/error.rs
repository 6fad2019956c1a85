//! Errors, grouped by cause; the exit code tells a batch job the group.
//!
//! A message names the flag, file, page or device, says what was expected, and what to do about it.

use crate::visible::Shown;
use std::path::Path;

/// Everything that can go wrong, by cause.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid flag, key or value, which the user can correct.
    #[error("{0}")]
    Usage(String),
    /// A profile file that is malformed or illegal.
    #[error("profile {name}: {message}")]
    Profile { name: String, message: String },
    /// Input files that are missing, corrupt or do not fit together.
    #[error("{0}")]
    Input(String),
    /// No device, no driver, or a driver that refused.
    #[error("{0}")]
    Device(String),
    /// Too little memory on a device or host for a chunk; a smaller one may fit.
    #[error("{0}")]
    Memory(String),
    /// None of the kernels computes correct values with this driver.
    #[error("{0}")]
    NoCorrectKernel(String),
    /// The driver's compiler refused a kernel.
    #[error(
        "kernel `{name}` does not build on {device} with options `{options}`: {}\n{log}\n\
         Try another kernel with --algorithm, --interpolation or --profile default",
        first_error(log)
    )]
    KernelBuild { name: String, device: String, options: String, log: String },
    /// Output that cannot be written.
    #[error("{0}")]
    Output(String),
    /// What cannot happen, unless the program itself is wrong.
    #[error("{0}; this is a bug in fbp, please report it with the command")]
    Internal(String),
    /// Stopped cleanly by a signal before the end.
    #[error("{0}")]
    Interrupted(String),
    /// A comparison outside the tolerance, an incorrect kernel, or another failed check.
    #[error("{0}")]
    CheckFailed(String),
}

/// Exit code of a run that was stopped by a signal.
pub const INTERRUPTED: u8 = 75;

/// The most informative line of a compiler's log: the first with an error, else the first.
pub fn first_error(log: &str) -> &str {
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().next().unwrap_or("no reason given");
    lines.find(|line| line.to_lowercase().contains("error")).unwrap_or(first)
}

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The exit code a script sees; README and `fbp --help` list them.
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

    /// A usage error.
    pub fn usage(message: impl Into<String>) -> Self {
        Error::Usage(message.into())
    }

    /// An input error about one file or directory.
    pub fn input(path: &Path, message: impl std::fmt::Display) -> Self {
        Error::Input(format!("{}: {message}", path.shown()))
    }

    /// An output error about one file or directory.
    pub fn output(path: &Path, message: impl std::fmt::Display) -> Self {
        Error::Output(format!("{}: {message}", path.shown()))
    }

    /// An output error: what a flag names cannot be written.
    pub fn unwritable(path: &Path, flag: &str, error: impl std::fmt::Display) -> Self {
        let path = path.shown();
        Error::Output(format!(
            "{path}: {flag}: cannot be written: {error}; check space and permissions, or choose another path"
        ))
    }

    /// An error in a profile.
    pub fn profile(name: &str, message: impl Into<String>) -> Self {
        Error::Profile { name: name.to_owned(), message: message.into() }
    }
}
