//! Messages of trial slices.

use crate::error::{BoxedError, messages};

messages! {
    /// Errors of the trial slices of a sweep.
    pub(super) enum TrialSweepError: Usage {
        Malformed { text: String } =>
            "--sweep: `{text}` does not have this form"; "write A..B:S in bins, such as 1020..1028:0.5",
        NotANumber { text: String } =>
            "--sweep: `{text}` contains something that is not a number";
            "write A..B:S in bins, such as 1020..1028:0.5",
        StepTooSmall { text: String, finest: f64 } =>
            "--sweep: `{text}` has a step below {finest}"; "write A..B:S in bins, such as 1020..1028:0.5",
        Positions { text: String, most: usize } =>
            "--sweep: `{text}` covers no position, or more than {most}";
            "write A..B:S in bins, such as 1020..1028:0.5",
    }
}

messages! {
    /// Errors of flags that trial slices vary.
    pub(super) enum VaryError: Usage {
        Malformed { text: String } =>
            "--vary: `{text}` does not name a flag and its values";
            "write it like --vary center=1020..=1028:0.5 or --vary stripes=none,dead+titarenko",
        OtherFlag { flag: String, known: String } =>
            "--vary: `{flag}` is not a flag of fbp reconstruct that changes a slice of these data"; "choose from {known}",
        Range { flag: String, text: String } =>
            "--vary {flag}: `{text}` is not a range of numbers with a step";
            "write A..=B:STEP with a STEP above 0, such as 1020..=1028:0.5",
        NoValue { flag: String, text: String } =>
            "--vary {flag}: `{text}` has an empty value"; "write none for a slice without the flag",
        TwoValues { flag: String, value: String } =>
            "--vary {flag}: {value} is there twice"; "give each value once",
        NotANumber { flag: String, value: String } =>
            "--vary {flag}: `{value}` is not a number"; "give numbers, which `fbp center` finds",
        NotASwitch { flag: String, value: String } =>
            "--vary {flag}: `{value}` is neither true nor false"; "write --vary {flag}=true,false",
        WrongValue { flag: String, error: String } => "--vary {flag}: {error}",
        /// The error is that of a run with these values.
        OfTrial { values: String, error: BoxedError } => "with {values}: {error}",
        SameFlag { flag: String } => "--vary: {flag} is varied twice"; "give all of its values in one --vary",
        Flags { count: usize } => "--vary: {count} flags are varied at once"; "vary one or two",
        Count { count: usize, most: usize } => "--vary: {count} slices are more than {most}"; "give fewer values",
    }
}

messages! {
    /// What trial slices cannot be.
    pub(super) enum TrialFlagError: Usage {
        NoOutput => "--output: missing"; "name FILE.html for a page, or a directory for the slices",
        OfRuns { flag: String } => "--{flag}: is for the slices of a run, not for trial slices"; "leave it out",
        TileTooLarge { count: usize, side: usize, most: usize } =>
            "--tile: {count} trial slices of {side} x {side} pixels are too much for a page of 10 MB";
            "give at most {most}, or fewer slices",
        RegionTooLarge { count: usize, width: usize, height: usize, most: usize } =>
            "--roi: {count} trial slices of {width} x {height} pixels are too much for a page of 10 MB";
            "give at most {most} pixels, or fewer slices",
        TileOfRegion => "--tile: --roi says which part of the slices is shown"; "give one of them",
    }
}

messages! {
    /// Outputs that trial slices must not replace.
    pub(super) enum TrialOutputError: Output {
        IsInput => "--output: is the input"; "choose another directory or file",
        Exists => "--output: exists"; "add --overwrite or choose another file",
        NotEmpty => "--output: is not empty"; "add --overwrite or choose another directory",
    }
}
