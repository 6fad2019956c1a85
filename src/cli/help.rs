//! `fbp help` and `fbp man`.

use clap::Args;
use std::path::PathBuf;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Meaning of the exit codes, shown below the help of commands that have them.
pub(super) const EXIT_CODES: &str = "\
Exit codes:
   0  success
   1  not equal (compare), incorrect kernel (bench, doctor), or some scans failed (batch)
   2  usage: unknown flag or key, bad value, bad profile
   3  input: missing, corrupt or inconsistent files
   4  device or driver failed, or no kernel is correct on the device
   5  output: disk full, permission, not empty
  75  stopped by a signal: every slice written is complete; run again with --resume";

/// A topic that `fbp help` explains besides the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Topic {
    Conventions,
    ExitCodes,
    Units,
}

impl Topic {
    /// One line about the topic.
    pub const fn about(self) -> &'static str {
        match self {
            Topic::Conventions => "coordinates, orientation, angles, and values of slices",
            Topic::ExitCodes => "exit codes, and what a script should do about each",
            Topic::Units => "how to write lengths, sizes, times, angles and ranges",
        }
    }

    /// The text of the topic, plain and wrapped.
    pub fn text(self) -> String {
        match self {
            Topic::Conventions => include_str!("topics/conventions.txt").to_owned(),
            Topic::ExitCodes => format!("{EXIT_CODES}\n\n{}", include_str!("topics/exit-codes.txt")),
            Topic::Units => include_str!("topics/units.txt").to_owned(),
        }
    }
}

#[derive(Args, Debug)]
pub struct HelpArgs {
    /// Command, such as reconstruct or profiles show, or topic: conventions, exit-codes or units
    #[arg(value_name = "COMMAND|TOPIC")]
    pub words: Vec<String>,
}

#[derive(Args, Debug)]
pub struct ManArgs {
    /// Directory for the pages; existing pages are replaced
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
}
