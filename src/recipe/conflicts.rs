//! Flags that exclude or need each other: a single list for the command line and for run files.

use crate::error::{Error, Result};
use serde::Serialize;
use toml::Table;

/// Rule about flags that are given, with advice for those who break it. Each flag of the first list has the same
/// relation to the flags of the second.
enum Rule {
    /// Flags that say the same in another way. On the command line, they take the place of the others in a run file.
    Alternatives(&'static [&'static str], &'static [&'static str], &'static str),
    /// Flags that exclude the others.
    Excludes(&'static [&'static str], &'static [&'static str], &'static str),
    /// Flags that need one of the others.
    Needs(&'static [&'static str], &'static [&'static str], &'static str),
}

const ONE: &str = "give one of them";
const FILES: &str = "give one of them, TIFF files or a dataset";
const ANGLES: &str = "the file stands for even steps; give one or the other";

/// Rules about the presence of flags, for all commands that read scans.
///
/// Not among them is what depends on the value of a flag, such as `--accuracy`, which only `--interpolation exact` uses:
/// this is checked where the value is read. The same applies to `--output`, which a dry run does not need, and to flags
/// of a step, which are a part of the step (`steps/`). Commands that do not call [`check_conflicts`], and flags that only
/// `fbp center` has, declare their rules with clap.
const RULES: &[Rule] = &[
    Rule::Alternatives(&["sinograms"], &["projections", "hdf5", "raw"], ONE),
    Rule::Alternatives(&["projections"], &["hdf5", "raw"], ONE),
    Rule::Alternatives(&["raw"], &["hdf5"], ONE),
    Rule::Alternatives(&["flats", "flats2"], &["hdf5-flats"], FILES),
    Rule::Alternatives(&["darks"], &["hdf5-darks"], FILES),
    Rule::Alternatives(&["hdf5-angles"], &["angles", "overall-angle", "start-angle"], ONE),
    Rule::Alternatives(&["angles"], &["overall-angle", "start-angle"], ANGLES),
    Rule::Alternatives(&["minus-log"], &["no-minus-log"], ONE),
    Rule::Alternatives(&["self-test"], &["no-self-test"], ONE),
    Rule::Alternatives(&["range"], &["percentile"], ONE),
    Rule::Alternatives(&["resume"], &["overwrite"], "one keeps slices and the other replaces them; give one of them"),
    Rule::Excludes(
        &["flats", "flats2", "darks"],
        &["sinograms"],
        "sinograms are taken as already corrected; give one of them, or --projections",
    ),
    Rule::Excludes(
        &["order-by"],
        &["hdf5", "raw"],
        "the order is that of files by the numbers in their names, and this is one file; leave --order-by out",
    ),
    Rule::Excludes(
        &["watch"],
        &["hdf5", "raw"],
        "only TIFF files can be waited for; leave --watch out, and start when the file is complete",
    ),
    Rule::Excludes(&["quiet"], &["verbose"], ONE),
    Rule::Needs(
        &["hdf5-data", "hdf5-flats", "hdf5-darks", "hdf5-angles", "hdf5-keys"],
        &["hdf5"],
        "the flag names a dataset of that file; give both",
    ),
    Rule::Needs(
        &["flats2"],
        &["flats"],
        "they are the second of two sets, and flats of an HDF5 file are not mixed with others; give both sets",
    ),
    Rule::Needs(&["darks"], &["flats", "hdf5"], "without flats nothing would be corrected; give the flats, too"),
    Rule::Needs(&["extended-field"], &["center"], "the axis is not in the middle; give --center X or --center auto"),
    Rule::Needs(&["expect"], &["watch"], "the flag says how many pages are waited for; give both"),
];

/// Rules for `fbp preprocess` alone.
const OF_PREPROCESS: &[Rule] = &[Rule::Excludes(
    &["stripes"],
    &["projections", "hdf5", "raw"],
    "stripes are removed from sinograms, but here this command writes projections; leave --stripes out",
)];

/// Command whose flags are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedCommand {
    Reconstruct,
    Center,
    Preprocess,
}

/// Returns the given flags of a group, in the form of a run file.
///
/// # Errors
/// [`Error::Usage`] for a value that TOML cannot represent.
pub fn given(args: &impl Serialize) -> Result<Table> {
    Table::try_from(args)
        .map_err(|e| Error::usage(format!("the flags cannot be read: {e}; write their values as the help says")))
}

/// Refuses flags of any group that break a rule.
///
/// # Errors
/// [`Error::Usage`] that names the flags.
pub fn check_conflicts(command: CheckedCommand, groups: &[Table]) -> Result<()> {
    let is_given = |flag: &&&str| groups.iter().any(|group| group.contains_key(**flag));
    let own = if command == CheckedCommand::Preprocess { OF_PREPROCESS } else { &[] };
    for rule in RULES.iter().chain(own) {
        match rule {
            Rule::Alternatives(flags, others, what) | Rule::Excludes(flags, others, what) => {
                if let (Some(a), Some(b)) = (flags.iter().find(is_given), others.iter().find(is_given)) {
                    return Err(Error::usage(format!("--{a} and --{b}: {what}")));
                }
            }
            Rule::Needs(flags, others, what) => {
                if let (Some(flag), None) = (flags.iter().find(is_given), others.iter().find(is_given)) {
                    let others = others.join(" or --");
                    return Err(Error::usage(format!("--{flag}: needs --{others}; {what}")));
                }
            }
        }
    }
    Ok(())
}

/// Removes those keys of a run file for which a flag on the command line stands.
pub(super) fn give_way(file: &mut Table, flags: &Table) {
    for rule in RULES {
        let Rule::Alternatives(some, others, _) = rule else { continue };
        for (given, keys) in [(some, others), (others, some)] {
            if given.iter().any(|flag| flags.contains_key(*flag)) {
                keys.iter().for_each(|key| drop(file.remove(*key)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks flags that are given without values.
    fn checked(command: CheckedCommand, flags: &str) -> Result<()> {
        let table = |flag: &str| Table::from_iter([(flag.to_owned(), true.into())]);
        // each flag may be of another group
        check_conflicts(command, &flags.split(' ').map(table).collect::<Vec<_>>())
    }

    fn refused(command: CheckedCommand, flags: &str) -> String {
        checked(command, flags).unwrap_err().to_string()
    }

    #[test]
    fn every_pair_of_flags_that_exclude_each_other_is_refused() {
        let mut pairs = 0;
        for rule in RULES {
            let (Rule::Alternatives(flags, others, what) | Rule::Excludes(flags, others, what)) = rule else {
                continue;
            };
            for (a, b) in flags.iter().flat_map(|a| others.iter().map(move |b| (a, b))) {
                let message = refused(CheckedCommand::Reconstruct, &format!("{b} {a}"));
                assert_eq!(message, format!("--{a} and --{b}: {what}"));
                pairs += 1;
            }
        }
        assert_eq!(pairs, 26);
    }

    #[test]
    fn a_flag_that_needs_another_is_refused_alone() {
        for (alone, with) in [
            ("hdf5-data", "hdf5"),
            ("hdf5-keys", "hdf5"),
            ("flats2", "flats"),
            ("hdf5 flats2", "flats"),
            ("darks", "flats"),
            ("darks", "hdf5"),
            ("extended-field", "center"),
            ("expect", "watch"),
        ] {
            let message = refused(CheckedCommand::Center, alone);
            let flag = alone.rsplit(' ').next().unwrap();
            assert!(message.starts_with(&format!("--{flag}: needs --")) && message.contains(with), "{message}");
            checked(CheckedCommand::Center, &format!("{alone} {with}")).unwrap();
        }
        assert!(refused(CheckedCommand::Center, "darks").starts_with("--darks: needs --flats or --hdf5; "));
    }

    #[test]
    fn stripes_of_projections_are_refused_where_projections_are_written() {
        for input in ["projections", "hdf5", "raw"] {
            let flags = format!("stripes {input}");
            assert!(refused(CheckedCommand::Preprocess, &flags).starts_with(&format!("--stripes and --{input}: ")));
            checked(CheckedCommand::Reconstruct, &flags).unwrap();
        }
        checked(CheckedCommand::Preprocess, "stripes sinograms").unwrap();
    }

    /// Fields do not give way to sinograms, nor are they used for them.
    #[test]
    fn keys_give_way_to_other_words_for_the_same_alone() {
        let table = |text: &str| text.parse::<Table>().unwrap();
        let mut file = table("projections = 'p'\nflats = 'f'\nangles = 'a'\nwatch = '1m'");
        give_way(&mut file, &table("sinograms = 's'\nstart-angle = 3"));
        assert_eq!(file.keys().collect::<Vec<_>>(), ["flats", "watch"]);
        let mut file = table("hdf5 = 'h'\nhdf5-flats = 'f'\noverall-angle = 1\nresume = true");
        give_way(&mut file, &table("flats2 = 'f'\nangles = 'a'\noverwrite = true"));
        assert_eq!(file.keys().collect::<Vec<_>>(), ["hdf5"]);
    }
}
