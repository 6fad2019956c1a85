//! Messages of the commands that have one file, by topic.

use crate::error::messages;
use std::io;

messages! {
    /// Numbers that a flag does not take.
    pub(super) enum CommandNumberError: Usage {
        Zero { flag: &'static str } => "{flag}: must be at least 1",
        TooLarge { flag: &'static str, value: usize, most: usize } =>
            "{flag}: {value} is more than {most}"; "give a smaller number",
        NotFinite { flag: &'static str, value: f64 } => "{flag}: {value} is not a finite number",
        Negative { flag: &'static str, value: f64 } => "{flag}: {value} is not a number of at least 0",
        Photons { photons: f64, most: f64 } =>
            "--photons: {photons} is not within 1..={most}; more would clip the 16-bit counts",
    }
}

messages! {
    /// Words and flags that a command does not take.
    pub(super) enum CommandFlagError: Usage {
        /// The error is that of the name.
        Method { error: String } => "--method: {error}",
        NoIterations { method: String } =>
            "--method: `{method}` has no iterations on a device"; "give tv or huber",
        NoSolver { device: String, size: usize } =>
            "{device} has no kernels for least squares with slices of {size} pixels";
            "give a --size that is a power of two, 64 to 8192, or a device with more local memory",
        NoKernel { profiles: String, kinds: String } =>
            "profile {profiles} has no kernel that matches --algorithm, --interpolation, --mode and --slices-per-pass";
            "choose from what it has: {kinds}",
        NoTopic { words: String, names: String } =>
            "help: there is no command or topic `{words}`"; "choose one of {names}",
        NoSubcommand { words: String, word: String } =>
            "help: there is no command or topic `{words}`"; "leave `{word}` out",
        PhotonsOfSinograms => "--photons: works with --as projections"; "give both",
        NoRun => "there is nothing to report"; "name the output of a run and --output FILE.html",
        NoSlices => "there is nothing to report"; "name a directory with slices",
    }
}

messages! {
    /// Profiles that a command cannot use.
    pub(super) enum CommandProfileError: Usage {
        NoThroughput =>
            "it has no [throughput], the rates of its device's units, so there is no model";
            "use one of those that `fbp model` without --profile lists",
    }
}

messages! {
    /// Inputs that do not fit together.
    pub(super) enum CommandInputError: Input {
        OtherShape { a: String, b: String } => "A has {a}, B {b}"; "compare stacks of the same shape",
        Angles { angles: usize, projections: usize } =>
            "--angles: {angles} angles for --projections {projections}"; "give one for each",
    }
}

messages! {
    /// Why there is no report about a run, or only a part of it.
    pub(super) enum ReportInputError: Input {
        Unreadable { error: io::Error } => "{error}"; "name a directory of slices",
        NoRecord => "has no record of a run, fbp-run.toml"; "name the --output of fbp reconstruct",
        SeveralRecords { count: usize, first: String } =>
            "has {count} records, {first} and others"; "name one of them",
        EarlierVersion =>
            "was written by an earlier version and does not say which slices there are"; "run it again",
        NoOutput => "names no output"; "name the directory of a run",
        NoSlices => "none of the slices that the record names is here"; "name the directory of the output",
        InputChanged => "the input has changed since the run"; "run again for the complete report",
    }
}

messages! {
    /// Outputs that a command cannot write or must not replace.
    pub(super) enum CommandOutputError: Output {
        Filled => "the directory is not empty"; "add --overwrite or choose another --output",
        NotCreated { error: io::Error } => "the directory cannot be created: {error}"; "choose another --output",
        ManualPage { error: io::Error } => "cannot be written: {error}"; "choose another --output",
        NoDirectoryOfPlot { directory: String } =>
            "--plot: there is no directory {directory}"; "make it, or choose another path",
        TruthExists => "--truth: exists already"; "add --overwrite or choose another file",
        StoppedRun =>
            "is the output of a run that was stopped"; "add --overwrite to replace it, or choose another --output",
    }
}

messages! {
    /// Checks that failed.
    pub(super) enum CommandCheckError: CheckFailed {
        Kernels { failed: usize, count: usize, device: String, kernel: String, profile: String } =>
            "{failed} of {count} kernels are incorrect or do not run on {device}, the first is {kernel} of profile \
             {profile}";
            "give --algorithm, --mode or another --profile to reconstruct without them",
        KernelsWithReason {
            failed: usize, count: usize, device: String, kernel: String, profile: String, reason: String
        } =>
            "{failed} of {count} kernels are incorrect or do not run on {device}, the first is {kernel} of profile \
             {profile} ({reason})";
            "give --algorithm, --mode or another --profile to reconstruct without them",
        Iterations { device: String, error: f64 } =>
            "the iterations of least squares are incorrect on {device}, off by {error:.1e}";
            "set solver = \"host\" in the [steps] of a profile",
        Tolerance { nrmse: f64, tolerance: f64 } =>
            "NRMSE {nrmse:.6e} exceeds the tolerance {tolerance:e}";
            "compare the slices by eye, or allow a larger --tolerance",
    }
}

messages! {
    /// Parts that the page about a run lacks.
    pub(super) enum ReportWarning: Warning {
        MissingSlices { count: usize, first: usize } =>
            "{count} slices are missing, the first is {first}"; "run again with --resume",
    }
}

messages! {
    /// Consequences of replaced values and lost projections for a result.
    pub(super) enum RepairWarning: Warning {
        Replaced { count: u64, values: u64, non_positive: u64, dead: u64, non_finite: u64 } =>
            "{count} values of {values} were replaced: {non_positive} transmissions at or below 0, {dead} where the \
             flat is not above the dark, {non_finite} not finite or too large";
            "check that --flats and --darks are those of this scan",
        Saturated { counts: u64, flats: u64 } =>
            "{counts} counts, and {flats} in the flat field, have the largest value that their files can hold: \
             the detector was saturated, and the true values are unknown";
            "use a shorter exposure for the next scan",
        DefectsOfSinograms { faults: String } =>
            "{faults}: this causes artefacts in slices";
            "try --stripes dead, which interpolates bins that always fail",
        /// The flag may be that of another command.
        DefectsOfProjections { faults: String, flag: &'static str } =>
            "{faults}: this causes artefacts in slices";
            "try {flag}, which interpolates bins that always fail, --remove-outliers SIZE,THRESHOLD,both (such as \
             3,500,both) replaces single dark or bright pixels first",
        UnlitProjection { projection: usize, exclude: String } =>
            "projection {projection} has no beam, or a row without any light"; "leave it out with --exclude {exclude}",
        UnlitProjections { count: usize, list: String, exclude: String } =>
            "{count} projections have no beam, or rows without any light: {list}";
            "leave them out with --exclude {exclude}",
    }
}
