//! Flags that cannot be given together: a single list for the command line and for run files.

use crate::error::{Error, Result};
use serde::Serialize;
use toml::Table;

/// Two flags that exclude each other, and advice about them.
struct Conflict(&'static str, &'static str, &'static str);

const ONE: &str = "give one of them";
const FILES: &str = "give one of them, TIFF files or a dataset";
const ANGLES: &str = "the file stands for even steps; give one or the other";

const CONFLICTS: &[Conflict] = &[
    Conflict("sinograms", "projections", ONE),
    Conflict("sinograms", "hdf5", ONE),
    Conflict("projections", "hdf5", ONE),
    Conflict("raw", "sinograms", ONE),
    Conflict("raw", "projections", ONE),
    Conflict("raw", "hdf5", ONE),
    Conflict("flats", "hdf5-flats", FILES),
    Conflict("darks", "hdf5-darks", FILES),
    Conflict("flats2", "hdf5-flats", FILES),
    Conflict("hdf5-angles", "angles", ONE),
    Conflict("hdf5-angles", "overall-angle", ONE),
    Conflict("hdf5-angles", "start-angle", ONE),
    Conflict("angles", "overall-angle", ANGLES),
    Conflict("angles", "start-angle", ANGLES),
    Conflict("minus-log", "no-minus-log", ONE),
    Conflict("self-test", "no-self-test", ONE),
    Conflict("range", "percentile", ONE),
    Conflict("resume", "overwrite", "one keeps slices and the other replaces them; give one of them"),
];

/// Returns the given flags of a group, in the form of a run file.
///
/// # Errors
/// [`Error::Usage`] for a value that TOML cannot represent.
pub fn given(args: &impl Serialize) -> Result<Table> {
    Table::try_from(args)
        .map_err(|e| Error::usage(format!("the flags cannot be read: {e}; write their values as the help says")))
}

/// Refuses flags of any group that contradict each other.
///
/// # Errors
/// [`Error::Usage`] that names both flags.
pub fn check_conflicts(groups: &[Table]) -> Result<()> {
    let is_given = |flag: &str| groups.iter().any(|group| group.contains_key(flag));
    match CONFLICTS.iter().find(|Conflict(a, b, _)| is_given(a) && is_given(b)) {
        Some(Conflict(a, b, what)) => Err(Error::usage(format!("--{a} and --{b}: {what}"))),
        None => Ok(()),
    }
}

/// Removes those keys of a run file that contradict a flag on the command line.
pub(super) fn give_way(file: &mut Table, flags: &Table) {
    for Conflict(a, b, _) in CONFLICTS {
        for (flag, key) in [(a, b), (b, a)] {
            if flags.contains_key(*flag) {
                file.remove(*key);
            }
        }
    }
}
