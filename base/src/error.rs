//! Errors, grouped by cause; the exit code tells a batch job the group.
//!
//! A message names the flag, file, page or device, and says what was expected, and what to do about it.

use crate::visible::Shown;
use std::path::Path;

/// Declares messages with the same cause: an enum with a variant for each, its fields, what is wrong, and after a
/// semicolon what to do. The texts may name the fields, as in `format!`. The advice may be left out only where the
/// problem itself states what is legal.
///
/// The enum is a [`Message`], has a `Display`, and becomes an [`Error`] of its cause.
#[macro_export]
#[doc(hidden)]
macro_rules! __messages {
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
                $crate::error::Error::$cause(message.into())
            }
        }
    };
}
pub use __messages as messages;

/// Error of the program, by cause. What happened is a message that its place declares with [`messages!`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid flag, key or value, which the user can correct.
    #[error("{0}")]
    Usage(BoxedError),
    /// Profile file that is malformed or illegal.
    #[error("profile {name}: {message}")]
    Profile { name: String, message: BoxedError },
    /// Input files that are missing, corrupt or do not fit together.
    #[error("{0}")]
    Input(BoxedError),
    /// No device, no driver, or a driver that refused.
    #[error("{0}")]
    Device(BoxedError),
    /// Too little memory on a device or host for a chunk; a smaller chunk may fit.
    #[error("{0}")]
    Memory(BoxedError),
    /// No kernel that computes correct values with this driver.
    #[error("{0}")]
    NoCorrectKernel(BoxedError),
    /// Kernel that the driver's compiler refused.
    #[error("{0}")]
    KernelBuild(KernelBuildError),
    /// Output that cannot be written.
    #[error("{0}")]
    Output(BoxedError),
    /// Violated invariant, which means a bug in the program.
    #[error("{0}; this is a bug in fbp, please report it with the command")]
    Internal(String),
    /// Run that was stopped cleanly by a signal before its end.
    #[error("{0}")]
    Interrupted(BoxedError),
    /// Comparison outside the tolerance, incorrect kernel, or another failed check.
    #[error("{0}")]
    CheckFailed(BoxedError),
}

/// A message about a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {message}")]
struct AboutPath {
    path: String,
    message: BoxedError,
}

messages! {
    /// Errors of the driver's compiler.
    pub enum KernelBuildError: KernelBuild {
        /// `reason` is the most informative line of the log.
        Refused { name: String, device: String, options: String, reason: String, log: String } =>
            "kernel `{name}` does not build on {device} with options `{options}`: {reason}";
            "try another kernel with --algorithm, --interpolation or --profile default; the compiler says:\n{log}",
    }
}

messages! {
    /// Errors of files that flags name.
    pub enum FlagFileError: Output {
        Unwritable { path: String, flag: String, error: String } =>
            "{path}: {flag}: cannot be written: {error}"; "check space and permissions, or choose another path",
    }
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
    /// Returns what caused the error; a violated invariant counts as an error of the device.
    fn cause(&self) -> Cause {
        match self {
            Error::Usage(_) | Error::Profile { .. } => Cause::Usage,
            Error::Input(_) => Cause::Input,
            Error::Device(_) | Error::Internal(_) => Cause::Device,
            Error::Memory(_) => Cause::Memory,
            Error::NoCorrectKernel(_) => Cause::NoCorrectKernel,
            Error::KernelBuild(_) => Cause::KernelBuild,
            Error::Output(_) => Cause::Output,
            Error::Interrupted(_) => Cause::Interrupted,
            Error::CheckFailed(_) => Cause::CheckFailed,
        }
    }

    /// Returns the exit code, as listed in README and `fbp --help`.
    pub fn exit_code(&self) -> u8 {
        self.cause().exit_code()
    }

    /// Returns a usage error.
    pub fn usage(message: impl Into<BoxedError>) -> Self {
        Error::Usage(message.into())
    }

    /// Returns an input error about one file or directory.
    pub fn input(path: &Path, message: impl Into<BoxedError>) -> Self {
        Error::Input(AboutPath { path: path.shown().to_string(), message: message.into() }.into())
    }

    /// Returns an output error about one file or directory.
    pub fn output(path: &Path, message: impl Into<BoxedError>) -> Self {
        Error::Output(AboutPath { path: path.shown().to_string(), message: message.into() }.into())
    }

    /// Returns an output error about a file that a flag names and that cannot be written.
    pub fn unwritable(path: &Path, flag: &str, error: impl std::fmt::Display) -> Self {
        FlagFileError::Unwritable { path: path.shown().to_string(), flag: flag.into(), error: error.to_string() }.into()
    }

    /// Returns an error in a profile.
    pub fn profile(name: &str, message: impl Into<BoxedError>) -> Self {
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
    KernelBuild,
    Output,
    Interrupted,
    CheckFailed,
    /// Not an error: the run continues.
    Warning,
}

impl Cause {
    /// Returns the exit code of the program; 0 for warnings.
    pub fn exit_code(self) -> u8 {
        match self {
            Cause::Warning => 0,
            Cause::CheckFailed => 1,
            Cause::Usage => 2,
            Cause::Input => 3,
            Cause::Device | Cause::Memory | Cause::NoCorrectKernel | Cause::KernelBuild => 4,
            Cause::Output => 5,
            Cause::Interrupted => INTERRUPTED,
        }
    }
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
