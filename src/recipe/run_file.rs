//! Run files: flags as keys of a TOML table.

use super::conflicts::{give_way, given};
use super::errors::RunFileError;
use crate::cli::ReconstructArgs;
use crate::error::Result;
use crate::files::{excerpt, excerpt_of_lines, read_text_once};
use crate::sink::Target;
use crate::visible::Shown;
use clap::CommandFactory;
use std::fmt::Display;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Table of a run record that describes the completed run, not what to do.
pub const FACTS: &str = "facts";

/// Merges flags with the run file that `--config` names, if any, over which they take precedence; `stop` ends the wait
/// for it.
pub fn merge(flags: ReconstructArgs, stop: &AtomicBool) -> Result<ReconstructArgs> {
    let Some(path) = flags.config.clone() else {
        return Ok(flags);
    };
    let text = read_text_once(&path, "--config", stop)?;
    let malformed = |error: &dyn Display| RunFileError::Malformed {
        path: path.shown().to_string(),
        error: excerpt_of_lines(error.to_string().trim_end()),
    };
    let table: toml::Table = toml::from_str(&text).map_err(|e| malformed(&e))?;
    check_keys(&table, &path)?;
    let file: ReconstructArgs = toml::from_str(&text).map_err(|e| malformed(&e))?;

    let mut merged = toml::Table::try_from(&file).map_err(|e| malformed(&e))?;
    let over = given(&flags)?;
    give_way(&mut merged, &over);
    if let Some(output) = &flags.output {
        // the record of an output of one format may be used for another
        let target = Target::parse(output)?;
        for flag in ["hdf5-parts", "ome-zarr"].into_iter().filter(|flag| !target.has_flag(flag)) {
            merged.remove(flag);
        }
    }
    if flags.dtype.is_some_and(|dtype| !dtype.is_integer()) {
        // the range belongs to the integers that the file requests
        merged.remove("range");
        merged.remove("percentile");
    }
    merged.extend(over);
    let mut args: ReconstructArgs = merged.try_into().map_err(|e: toml::de::Error| malformed(&e))?;
    args.config = flags.config;
    args.save_config = flags.save_config;
    args.dry_run = flags.dry_run;
    args.verbose = flags.verbose;
    args.quiet = flags.quiet;
    Ok(args)
}

/// Puts keys in the place of those of the same name, and of those that contradict them.
pub fn put_over(table: &mut toml::Table, over: toml::Table) {
    give_way(table, &over);
    table.extend(over);
}

/// Returns the keys that a run file may have: the long flags, except those about the run file itself.
pub fn known_keys() -> Vec<String> {
    const NOT_KEYS: [&str; 6] = ["config", "save-config", "dry-run", "verbose", "quiet", "help"];
    crate::cli::Cli::command()
        .find_subcommand("reconstruct")
        .map(|command| {
            command
                .get_arguments()
                .filter_map(|a| a.get_long())
                .filter(|name| !NOT_KEYS.contains(name))
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default()
}

/// Returns the key that is most like an unknown one, if any is.
pub fn nearest_key(key: &str) -> Option<String> {
    let distances = known_keys().into_iter().map(|name| (strsim::damerau_levenshtein(&name, key), name));
    // no flag is nearly as long as that
    let nearest = distances.filter(|_| key.len() < 64).min()?;
    (nearest.0 <= 3).then_some(nearest.1)
}

fn check_keys(table: &toml::Table, path: &Path) -> Result<()> {
    let known = known_keys();
    for key in table.keys() {
        if key != FACTS && !known.contains(key) {
            let (path, excerpt) = (path.shown().to_string(), excerpt(key).into_owned());
            return Err(match nearest_key(key) {
                Some(nearest) => RunFileError::MisspeltKey { path, key: excerpt, nearest }.into(),
                None => RunFileError::UnknownKey { path, key: excerpt }.into(),
            });
        }
    }
    Ok(())
}

/// Returns the merged flags as the text of a run file.
pub fn run_file(args: &ReconstructArgs) -> Result<String> {
    toml::to_string(args).map_err(|e| RunFileError::Unwritable { error: e.into() }.into())
}
