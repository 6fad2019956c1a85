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

/// Error of any type, to which context is added further up.
pub type BoxedError = Box<dyn std::error::Error + Send + Sync>;

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

/// What a message leads to: an error and its exit code, or only a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    Usage,
    Input,
    Device,
    Memory,
    NoCorrectKernel,
    Output,
    Interrupted,
    CheckFailed,
    /// Not an error: the run continues.
    Warning,
}

/// A message as docs/messages.md lists it. Names in braces stand for the values of its fields.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    pub cause: Cause,
    /// What is wrong.
    pub problem: &'static str,
    /// What to do; empty where the problem states what is legal.
    pub advice: &'static str,
    /// Source file that declares it.
    pub file: &'static str,
}

/// All messages that [`messages!`] declares, an element for each use of it, in no particular order.
#[linkme::distributed_slice]
pub static CATALOGUE: [&'static [CatalogueEntry]];

/// A message whose text is declared by [`messages!`].
pub trait Message: std::error::Error {
    /// Returns what is wrong.
    fn problem(&self) -> String;

    /// Returns what to do; nothing where the problem states what is legal.
    fn advice(&self) -> String;
}

/// Declares messages with the same cause: an enum with a variant for each, its fields, what is wrong, and after a
/// semicolon what to do. The texts may name the fields, as in `format!`. The advice may be left out only where the
/// problem itself states what is legal.
///
/// The enum is a [`Message`], has a `Display`, and becomes an [`Error`] of its cause.
macro_rules! messages {
    (
        $(#[$doc:meta])*
        $visibility:vis enum $name:ident: $cause:ident {
            $(
                $(#[$about:meta])*
                $variant:ident $({ $($field:ident: $type:ty),+ $(,)? })? => $problem:literal $(; $advice:literal)?
            ),+ $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        $visibility enum $name {
            $($(#[$about])* $variant $({ $($field: $type),+ })?),+
        }

        impl $crate::error::Message for $name {
            fn problem(&self) -> String {
                match self {
                    $(Self::$variant $({ $($field),+ })? => {
                        $($(let _ = $field;)+)?
                        format!($problem)
                    })+
                }
            }

            fn advice(&self) -> String {
                match self {
                    $(Self::$variant $({ $($field),+ })? => {
                        $($(let _ = $field;)+)?
                        String::new() $(+ &format!($advice))?
                    })+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter) -> ::std::fmt::Result {
                let (problem, advice) = ($crate::error::Message::problem(self), $crate::error::Message::advice(self));
                f.write_str(&problem)?;
                match advice.is_empty() {
                    true => Ok(()),
                    false => write!(f, "; {advice}"),
                }
            }
        }

        impl ::std::error::Error for $name {}

        $crate::error::messages!(@error $cause $name);

        const _: () = {
            use $crate::error::{CATALOGUE, CatalogueEntry, Cause};

            #[linkme::distributed_slice(CATALOGUE)]
            static ENTRIES: &[CatalogueEntry] = &[$(CatalogueEntry {
                cause: Cause::$cause,
                problem: $problem,
                advice: concat!($($advice)?),
                file: file!(),
            }),+];
        };
    };
    (@error Warning $name:ident) => {};
    (@error $cause:ident $name:ident) => {
        impl From<$name> for $crate::error::Error {
            fn from(message: $name) -> Self {
                $crate::error::Error::$cause(message.to_string())
            }
        }
    };
}
pub(crate) use messages;
