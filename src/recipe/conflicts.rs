//! Flags that exclude or need each other: a single list for the command line and for run files.

use super::errors::{RuleError, RunFileError};
use crate::error::Result;
use crate::source::is_xrm_scan;
use serde::Serialize;
use toml::Table;

/// Rule about flags that are given. Each of `flags` has the same relation to `others`.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub kind: RuleKind,
    pub flags: &'static [&'static str],
    pub others: &'static [&'static str],
    /// Why there is the rule.
    pub reason: &'static str,
    /// What to do for those who break it.
    pub advice: &'static str,
}

/// Relation of flags to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// Flags that say the same in another way. On the command line, they take the place of the others in a run file.
    Alternatives,
    /// Flags that exclude the others.
    Excludes,
    /// Flags that need one of the others.
    Needs,
}

/// Names of flags.
type Flags = &'static [&'static str];

const fn alternatives(flags: Flags, others: Flags, reason: &'static str, advice: &'static str) -> Rule {
    Rule { kind: RuleKind::Alternatives, flags, others, reason, advice }
}

const fn excludes(flags: Flags, others: Flags, reason: &'static str, advice: &'static str) -> Rule {
    Rule { kind: RuleKind::Excludes, flags, others, reason, advice }
}

const fn needs(flags: Flags, others: Flags, reason: &'static str, advice: &'static str) -> Rule {
    Rule { kind: RuleKind::Needs, flags, others, reason, advice }
}

const DATA: &str = "both name the data of the scan";
const ANGLES: &str = "both say which angles the projections have";
const STEPS: &str = "the file stands for even steps";
const CONTRADICTION: &str = "they contradict each other";
const ONE: &str = "give one of them";
const ONE_KIND: &str = "give one of them, TIFF files or a dataset";

/// Rules about the presence of flags, for all commands that read scans.
///
/// Not among them is what depends on the value of a flag, such as `--accuracy`, which only `--interpolation exact` uses:
/// this is checked where the value is read. The same applies to `--output`, which a dry run does not need, and to flags
/// of a step, which are a part of the step (`steps/`). Commands that do not call [`check_conflicts`], and flags that only
/// `fbp center` has, declare their rules with clap.
const RULES: &[Rule] = &[
    alternatives(&["sinograms"], &["projections", "hdf5", "raw"], DATA, ONE),
    alternatives(&["projections"], &["hdf5", "raw"], DATA, ONE),
    alternatives(&["raw"], &["hdf5"], DATA, ONE),
    alternatives(&["flats", "flats2"], &["hdf5-flats"], "both name the flat fields", ONE_KIND),
    alternatives(&["darks"], &["hdf5-darks"], "both name the dark fields", ONE_KIND),
    alternatives(&["hdf5-angles"], &["angles", "overall-angle", "start-angle"], ANGLES, ONE),
    alternatives(&["angles"], &["overall-angle", "start-angle"], STEPS, "give one or the other"),
    alternatives(&["minus-log"], &["no-minus-log"], CONTRADICTION, ONE),
    alternatives(
        &["beam-current"],
        &["normalize-air"],
        "both say how bright the beam was in each projection",
        "give one of them: air shows the beam itself, the current is for scans without air",
    ),
    alternatives(&["self-test"], &["no-self-test"], CONTRADICTION, ONE),
    alternatives(&["range"], &["percentile"], "both say which values become the smallest and largest integer", ONE),
    alternatives(&["resume"], &["overwrite"], "one keeps slices and the other replaces them", ONE),
    excludes(
        &["flats", "flats2", "darks"],
        &["sinograms"],
        "sinograms are taken as already corrected",
        "give one of them, or --projections",
    ),
    excludes(
        &["order-by"],
        &["hdf5", "raw"],
        "the order is that of files by the numbers in their names, and this is one file",
        "leave --order-by out",
    ),
    excludes(
        &["watch"],
        &["hdf5", "raw"],
        "only TIFF files can be waited for",
        "leave --watch out, and start when the file is complete",
    ),
    excludes(
        &["watch"],
        &["stack", "side-by-side"],
        "parts are compared before the run",
        "leave --watch out, and start when all parts are complete",
    ),
    alternatives(&["stack"], &["side-by-side"], "both say how parts become one scan", ONE),
    excludes(
        &["sinograms"],
        &["stack", "side-by-side"],
        "parts are compared and corrected as projections",
        "give --projections with {part} in its value, or HDF5 files",
    ),
    excludes(
        &["distortion"],
        &["stack", "side-by-side"],
        "it is that of one detector, and parts are joined first",
        "correct the parts one by one with fbp preprocess --distortion",
    ),
    excludes(
        &["lamino-angle", "slab"],
        &["stack"],
        "what a detector sees at several heights of an inclined axis is not what a taller one sees",
        "reconstruct the parts one by one",
    ),
    needs(&["z-step"], &["stack"], "the flag says how far its parts are from each other", "give both"),
    needs(
        &["overlap"],
        &["side-by-side", "every"],
        "the flag says what parts of a detector, or windows of a scan, have in common",
        "give both",
    ),
    excludes(
        &["every"],
        &["side-by-side"],
        "--overlap says what parts share or what windows share",
        "join the parts first, with fbp preprocess",
    ),
    excludes(&["quiet"], &["verbose"], CONTRADICTION, ONE),
    needs(
        &["hdf5-data", "hdf5-flats", "hdf5-darks", "hdf5-angles", "hdf5-keys"],
        &["hdf5", "stack", "side-by-side"],
        "the flag names a dataset of that file",
        "give both",
    ),
    needs(
        &["flats2"],
        &["flats"],
        "they are the second of two sets, and flats of an HDF5 file are not mixed with others",
        "give both sets",
    ),
    needs(
        &["darks"],
        &["flats", "hdf5", "stack", "side-by-side"],
        "without flats nothing would be corrected",
        "give the flats, too",
    ),
    needs(&["extended-field"], &["center"], "the axis is not in the middle", "give --center X or --center auto"),
    needs(&["expect"], &["watch"], "the flag says how many pages are waited for", "give both"),
    needs(&["turns"], &["every"], "the flag is about windows of a scan of many turns", "give both"),
];

/// Rules for `fbp preprocess` alone.
const OF_PREPROCESS: &[Rule] = &[excludes(
    &["stripes"],
    &["projections", "hdf5", "raw"],
    "stripes are removed from sinograms, but here this command writes projections",
    "leave --stripes out",
)];

/// Returns all rules: those for every command that reads scans, and those for one of them.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    RULES.iter().chain(OF_PREPROCESS)
}

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
/// [`Error::Usage`](crate::error::Error::Usage) for a value that TOML cannot represent.
pub fn given(args: &impl Serialize) -> Result<Table> {
    Table::try_from(args).map_err(|e| RunFileError::UnreadableFlags { error: e.into() }.into())
}

/// Refuses flags of any group that break a rule.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) that names the flags.
pub fn check_conflicts(command: CheckedCommand, groups: &[Table]) -> Result<()> {
    let is_given = |flag: &&&str| groups.iter().any(|group| group.contains_key(**flag));
    let own = if command == CheckedCommand::Preprocess { OF_PREPROCESS } else { &[] };
    // a file with a flat field
    let data = groups.iter().find_map(|group| group.get("projections")?.as_str());
    let has_flats = data.is_some_and(is_xrm_scan);
    for rule in RULES.iter().chain(own) {
        let Some(flag) = rule.flags.iter().find(is_given) else { continue };
        let Rule { reason, advice, .. } = *rule;
        match (rule.kind, rule.others.iter().find(is_given)) {
            (RuleKind::Alternatives | RuleKind::Excludes, Some(other)) => {
                return Err(RuleError::Together { flag, other, reason, advice }.into());
            }
            (RuleKind::Needs, None) if *flag == "darks" && has_flats => {}
            (RuleKind::Needs, None) => {
                return Err(RuleError::Alone { flag, needed: rule.others.join(" or --"), reason, advice }.into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes those keys of a run file for which a flag on the command line stands.
pub(super) fn give_way(file: &mut Table, flags: &Table) {
    for rule in RULES.iter().filter(|rule| rule.kind == RuleKind::Alternatives) {
        for (given, keys) in [(rule.flags, rule.others), (rule.others, rule.flags)] {
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
        for Rule { flags, others, reason, advice, .. } in RULES.iter().filter(|rule| rule.kind != RuleKind::Needs) {
            for (a, b) in flags.iter().flat_map(|a| others.iter().map(move |b| (a, b))) {
                let message = refused(CheckedCommand::Reconstruct, &format!("{b} {a}"));
                assert_eq!(message, format!("--{a} and --{b}: {reason}; {advice}"));
                pairs += 1;
            }
        }
        assert_eq!(pairs, 37);
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
            ("z-step", "stack"),
            ("overlap", "side-by-side"),
            ("turns", "every"),
        ] {
            let message = refused(CheckedCommand::Center, alone);
            let flag = alone.rsplit(' ').next().unwrap();
            assert!(message.starts_with(&format!("--{flag}: needs --")) && message.contains(with), "{message}");
            checked(CheckedCommand::Center, &format!("{alone} {with}")).unwrap();
        }
        assert!(refused(CheckedCommand::Center, "darks").starts_with("--darks: needs --flats or --hdf5 or "));
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
