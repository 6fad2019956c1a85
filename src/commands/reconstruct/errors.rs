//! Messages of `fbp reconstruct`.

use crate::axis::FoundTilt;
use crate::error::{BoxedError, messages};
use crate::sink::OUTPUT_FORMS;
use std::io;

messages! {
    /// Errors of the flags of a run.
    pub(super) enum ReconstructFlagError: Usage {
        NoOutput => "--output: missing, expected: {OUTPUT_FORMS}",
        FewForHalves { used: usize, least: usize } =>
            "--resolution: two half scans need {least} projections, here are {used}"; "leave --resolution out",
        SmallForRings { side: f64, least: usize } =>
            "--resolution: all projections together see a circle {side} pixels wide, rings need {least}";
            "leave --resolution out, or check --center and --size",
    }
}

messages! {
    /// Errors of the input or the record of a run.
    pub(super) enum ReconstructInputError: Input {
        NoTilt =>
            "--tilt: auto compares at least three rows with a sample"; "give more --rows, or degrees",
        NotARecord { error: String } =>
            "is not the record of a run: {error}"; "name a directory with fbp-run.toml, or that file",
        NoFacts =>
            "is not the record of a run: it has no table [facts]";
            "name a directory with fbp-run.toml, or that file",
    }
}

messages! {
    /// Errors of a file beside the slices, which a flag names.
    pub(super) enum SideFileError: Output {
        OfOutput { flag: String } => "{flag}: is a file of --output"; "choose another file",
        WrittenTwice { flag: String } => "{flag}: is also written for another flag"; "choose another file",
        InInput { flag: String } => "{flag}: would be read as a page of the input"; "choose another file",
        LikeSlice { flag: String } =>
            "{flag}: would be taken for a slice in the directory of --output"; "choose another file",
    }
}

messages! {
    /// Errors of the record of a run, and of runs that write there at the same time.
    pub(super) enum RunRecordError: Output {
        OtherRunWrites { first: String, key: String } =>
            "--output: run {first} is writing here, but this is run {key}, with different input, flags, device or \
             driver";
            "wait until it has ended, or choose another --output",
        OfOtherRun { run: String, key: String, parts: String } =>
            "belongs to run {run}, but this is run {key}, which differs in {parts}";
            "give all shards the same flags and devices, or --resume to replace the other run's slices",
        OtherFile => "is the place of the record of this run, but was not written by fbp"; "move it away",
        Unwritable { error: BoxedError } =>
            "cannot be written: {error}"; "free some space or choose another --output",
        NotRemoved { error: io::Error } => "cannot be removed: {error}"; "check the permissions",
    }
}

messages! {
    /// Reasons to change the flags of a run.
    pub(super) enum ReconstructWarning: Warning {
        Unfinished { slices: String, iterations: usize } =>
            "{slices} still changed after {iterations} iterations";
            "give more --iterations, or a larger --tolerance if the change is too small to matter",
        Long { time: String, ways: String } =>
            "the run will take about {time}"; "try a faster way: {ways}",
        CoarseSamples { spacing: f64, slice: usize, spread: f64 } =>
            "--dtype f16: neighbouring samples are {spacing:.1e} apart, but the values of slice {slice} only spread by \
             {spread:.1e}, so they are rounded to a few values";
            "give --dtype f32, or a --pixel-size in another unit, such as mm for um",
        TiltedSinograms { tilt: FoundTilt } =>
            "the axis is tilted ({tilt}), so that slices away from the middle have another one";
            "rotate the projections, and make sinograms of them",
        TiltedProjections { tilt: FoundTilt } =>
            "the axis is tilted ({tilt}), so that slices away from the middle have another one"; "give --tilt auto",
    }
}
