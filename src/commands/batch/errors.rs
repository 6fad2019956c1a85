//! Messages of `fbp batch`.

use crate::error::{BoxedError, Error, messages};
use crate::sink::OUTPUT_FORMS;
use std::io;

messages! {
    /// Errors of the flags or the scans of a batch.
    pub(super) enum BatchFlagError: Usage {
        NameIsPath { place: String, name: String } =>
            "{place}: `{name}` cannot be the name of a scan, as it becomes a part of --output";
            "write a name without slashes",
        NotAGlob { argument: String, error: glob::PatternError } =>
            "{argument}: not a glob: {error}"; "write for example 'night/*.h5'",
        NotUtf8 { path: String } => "{path}: the name is not UTF-8"; "rename the scan, or make a link to it",
        TwoWildcards { argument: String } =>
            "{argument}: {{name}} has another wildcard in the same part of the path, or ** after it";
            "write it like 'night/{{name}}/scan.h5'",
        NoScan => "there is no scan"; "name files, or a table (--scans) with a row for each",
        NamesOneScan { flag: &'static str, value: String } =>
            "--{flag}: names one scan";
            "give scans without a flag, as in fbp batch {value}, or in a table with the column {flag}",
        Parts { flag: &'static str } =>
            "--{flag}: joins the parts of one scan, and here every scan is one";
            "give each joined scan to fbp reconstruct",
        SaveConfig =>
            "--save-config: does not go with several scans";
            "leave it out, as the record beside every output, such as fbp-run.toml, is a run file",
        NoOutput => "--output: missing, expected the output of each scan, such as 'rec/{{name}}': {OUTPUT_FORMS}",
        SameName { first: String, second: String, name: String } =>
            "{first} and {second}: both scans have the name {name}, which becomes a part of --output";
            "rename one, or give names in a table (--scans) with the inputs in a column such as hdf5",
        /// The ending is that of the path, with its dot.
        WrittenTwice { flag: &'static str, path: String, first: String, second: String, ending: String } =>
            "--{flag}: {path} would be written for {first} and for {second}";
            "write {{name}} where the name of the scan belongs, as in --{flag} 'rec/{{name}}{ending}'",
        Unreadable { error: String } =>
            "the flags cannot be read: {error}"; "write their values as the help says",
        /// An error in the flags of one scan.
        OfScan { place: String, error: BoxedError } => "{place}: {error}",
    }
}

messages! {
    /// Errors of the table of `--scans`.
    pub(super) enum ScanTableError: Usage {
        OtherEnding { path: String } => "--scans: {path} must end in .csv or .toml"; "choose such a name",
        Repeated { place: String, name: String, first: String } =>
            "{place}: {name} is in {first}, too"; "write one row for each scan",
        AlsoGiven { place: String, name: String } =>
            "{place}: {name} is also among the scans of the command line"; "remove one of them, or rename the row",
        NoInput { place: String, name: String } =>
            "{place}: no scan has the name {name}"; "correct it, or add a column with its input, such as hdf5",
        ForWholeBatch { place: String, key: String } =>
            "{place}: --{key} is for the whole batch"; "remove it here, and give it on the command line",
        MisspeltKey { place: String, key: String, nearest: String } =>
            "{place}: unknown column or key `{key}`"; "did you mean `{nearest}`?",
        UnknownKey { place: String, key: String } =>
            "{place}: unknown column or key `{key}`";
            "write `name`, or a flag of fbp reconstruct without dashes in front",
        NotCsv { place: String, error: csv::Error } => "{place}: {error}"; "write as many fields as the head has",
        NoNameColumn { place: String } =>
            "{place}: there is no column `name`";
            "write the flags' names in the first line, as in name,center,rows",
        NotASwitch { place: String, flag: String, value: String } =>
            "{place}: {flag}: `{value}` is neither true nor false"; "write one of them, or nothing",
        WrongField { place: String, error: String } => "{place}: {error}"; "write the value as the flag takes it",
        NotToml { path: String, error: String } =>
            "--scans {path}: {error}"; "write it like a run file, with [[scan]] before each scan",
        KeyOutsideScan { place: String, key: String } =>
            "{place}: `{key}` is not in a table [[scan]]"; "write [[scan]] before the keys of each scan",
        NoKeys { place: String } => "{place}: expected keys of a scan"; "write [[scan]] before them",
        NoName { place: String } => "{place}: there is no name"; "write name = \"...\" in every [[scan]]",
        WrongValue { place: String, error: String } => "{place}: {error}"; "write the value as in a run file",
    }
}

messages! {
    /// Why the scans or the state of a batch are not found.
    pub(super) enum ScanListError: Input {
        NoSuchScan { argument: String } =>
            "{argument}: there is no such scan"; "check the path, or give a glob in quotes, as in 'night/*.h5'",
        NoMatch { argument: String } =>
            "{argument}: no file or directory matches"; "check the path, and that the glob is in quotes",
        Unreadable { error: BoxedError } => "cannot be read: {error}"; "check the path and the permissions",
        MissingScan { path: String } => "names {path}, which is not there"; "correct the list",
        EmptyList => "names no scan"; "write one path a line",
        NoState =>
            "--index: has no state of a batch, batch.json";
            "name the directory that the outputs of fbp batch share",
    }
}

messages! {
    /// Errors of the directory or the state of a batch.
    pub(super) enum BatchOutputError: Output {
        NoDirectory { error: io::Error } =>
            "--output: cannot make this directory: {error}"; "choose another --output",
        EarlierState =>
            "has the state of an earlier batch";
            "add --resume to go on with it, --retry-failed to repeat failed scans, too, or --overwrite to do all scans \
             again",
        UnreadableState { error: BoxedError } => "cannot be read: {error}"; "check the path",
        NotAState { error: serde_json::Error } =>
            "is not the state of a batch of this version of fbp: {error}"; "move it away, or choose another --output",
        OtherFormat { format: u32, known: u32 } =>
            "has format {format}, but this version of fbp reads format {known}"; "use the other version",
        NotRemoved { error: io::Error } => "--output: cannot be removed: {error}"; "check the permissions",
    }
}

messages! {
    /// A batch that was stopped by a signal.
    pub(super) enum StoppedBatchError: Interrupted {
        ScansLeft { done: usize, count: usize } =>
            "interrupted: {done} of {count} scans are done"; "run again with --resume to do the others",
    }
}

messages! {
    /// Scans that failed; `page` is the page of all scans.
    pub(super) enum FailedScansError: CheckFailed {
        SomeFailed { failed: usize, count: usize, first: String, page: String } =>
            "{failed} of {count} scans failed, the first is {first}";
            "correct what {page} says of each, and run again with --retry-failed",
        AllFailed { failed: usize, first: String, page: String } =>
            "all {failed} scans failed, the first is {first}";
            "correct what {page} says of each, and run again with --retry-failed",
    }
}

messages! {
    /// Errors beside those of the scans.
    pub(super) enum BatchWarning: Warning {
        /// The state or the page of the batch, which are written again after the next scan.
        NotWritten { error: Error } => "{error}"; "free some space: the other scans go on",
    }
}
