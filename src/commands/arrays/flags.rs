//! Flags of commands for scans in memory.

use super::errors::ArrayFlagError;
use crate::cli::{self, Command};
use crate::error::Result;
use crate::source::{ARRAY, MemoryScan};
use std::ffi::OsString;

/// Name of a flag without dashes, and its value if it takes one.
pub type ArrayFlag = (String, Option<String>);

/// Flags about files, and about messages on a terminal.
const OF_FILES: &[&str] = &[
    "sinograms",
    "projections",
    "hdf5",
    "raw",
    "hdf5-data",
    "hdf5-flats",
    "hdf5-darks",
    "hdf5-angles",
    "hdf5-keys",
    "flats",
    "flats2",
    "darks",
    "angles",
    "center-shifts",
    "order-by",
    "output",
    "dtype",
    "compression",
    "ome-zarr",
    "hdf5-parts",
    "range",
    "percentile",
    "preview",
    "histogram",
    "sections",
    "resolution",
    "overwrite",
    "resume",
    "config",
    "save-config",
    "dry-run",
    "watch",
    "expect",
    "shard",
    "progress",
    "report",
    "verbose",
    "quiet",
    "help",
    "json",
    "sweep",
    "tile",
];

/// Parses flags of a command for a scan in memory; `more` are words that the command needs.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
pub(super) fn parsed(command: &str, more: &[&str], flags: &[ArrayFlag], scan: &MemoryScan) -> Result<Command> {
    if let Some((flag, _)) = flags.iter().find(|(flag, _)| OF_FILES.contains(&flag.as_str())) {
        return Err(ArrayFlagError::OfFiles { flag: flag.clone() }.into());
    }
    let of_arrays = scan.flags().into_iter().map(|flag| (flag.to_owned(), Some(ARRAY.to_owned())));
    let all: Vec<ArrayFlag> = of_arrays.chain(flags.iter().cloned()).collect();
    parsed_words(command, more, &all)
}

/// Parses flags of a command; `more` are words that the command needs.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
pub(super) fn parsed_words(command: &str, more: &[&str], flags: &[ArrayFlag]) -> Result<Command> {
    let of_flags = flags.iter().map(|(flag, value)| match value {
        Some(value) => format!("--{flag}={value}"),
        None => format!("--{flag}"),
    });
    let words = ["fbp", command].into_iter().chain(more.iter().copied()).map(str::to_owned).chain(of_flags);
    let parsed = cli::parse(words.map(OsString::from)).map_err(|answer| {
        let text = answer.to_string();
        let text = text.split("\n\nUsage:").next().unwrap_or_default();
        let text = text.split("\n\nFor more information").next().unwrap_or_default();
        let error = text.strip_prefix("error: ").unwrap_or(text).trim_end().to_owned();
        ArrayFlagError::Malformed { error }
    })?;
    Ok(parsed.command)
}
