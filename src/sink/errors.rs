//! Errors of an output of slices.

use super::compression::Compression;
use crate::error::messages;
use std::io;

messages! {
    /// Errors of `--output` or `--compression`.
    pub enum OutputSpecError: Usage {
        Empty { forms: &'static str } => "--output is empty, expected: {forms}",
        Placeholder { spec: String } =>
            "--output {spec}: expected %i, %d or %05i for the number of the slice, or %% for a percent sign";
            "write it like 'out/r-%05i.tif'",
        TooManyDigits { spec: String } => "--output {spec}: too many digits"; "write it like 'out/r-%05i.tif'",
        Blanks { spec: String } =>
            "--output {spec}: pad the number with zeros, not with blanks"; "write it like 'out/r-%05i.tif'",
        SecondNumber { spec: String } =>
            "--output {spec}: expected the number of the slice once"; "write it like 'out/r-%05i.tif'",
        NotTiff { spec: String } =>
            "--output {spec}: the name must end in .tif or .tiff"; "write it like 'out/r-%05i.tif'",
        OtherCompression { output: String, compression: Compression, why: &'static str, known: String } =>
            "--compression: {output} cannot have {compression}{why}"; "give {known}",
    }
}

messages! {
    /// What prevents slices from being written to an output, or read from it.
    pub enum SliceOutputError: Output {
        Directory { error: io::Error } => "cannot create this directory: {error}"; "choose another --output",
        Unlisted { error: io::Error } => "cannot be listed: {error}"; "check its permissions",
        CannotWriteHere { error: io::Error } => "cannot write here: {error}"; "choose another --output",
        NotWritten { error: String } => "cannot be written: {error}"; "free some space or choose another --output",
        NotRenamed { error: io::Error } =>
            "cannot be renamed to its final name: {error}"; "check that the directory exists and is writable",
        Created => "was created in the meantime, perhaps by another run"; "choose another --output",
        SliceCreated { slice: usize } =>
            "slice {slice} was created in the meantime, perhaps by another run"; "choose another --output",
        Exists => "exists already"; "add --overwrite or choose another --output",
        NotEmpty { name: String } =>
            "the directory is not empty (it contains {name})"; "add --overwrite or choose another --output",
        OtherFile { name: String } =>
            "the directory contains {name}, which is not a slice of this run";
            "add --overwrite or choose another --output",
        Unfinished { slices: usize } =>
            "is an unfinished run with {slices} slices";
            "add --resume to go on with it; add --overwrite or choose another --output",
        BesideInput =>
            "--output: has files of the input, and slices beside them would be taken for its pages";
            "choose another --output",
        OverInput =>
            "--output: is a file of the input, or has the input in it"; "choose another --output",
        Torn =>
            "--output: is damaged, and nothing says that fbp wrote it";
            "it is never replaced: choose another --output, or move it away",
        OwnSlices =>
            "--output: has slices that fbp reconstructed, not pages";
            "it is never replaced: choose another --output, or move it away",
        OwnPages =>
            "--output: has pages that fbp wrote, not slices of a run";
            "it is never replaced: choose another --output, or move it away",
        Foreign =>
            "--output: was not written by fbp"; "it is never replaced: choose another --output, or move it away",
        NoSlices => "there is no slice to write to this file"; "widen --rows",
        IsDirectory => "is a directory"; "choose the name of a file",
        TooLarge => "has more bytes than its offsets reach"; "choose a directory as --output",
        ImageSize { values: usize, width: usize, height: usize } =>
            "{values} values do not make an image of {width}x{height}"; "please report this",
        NotAnnounced { slice: usize } => "slice {slice} was not announced"; "please report this bug in fbp",
        WrittenBefore { slice: usize } => "slice {slice} was written already"; "please report this bug in fbp",
        FailedBefore { slice: usize, error: String } =>
            "slice {slice} is not written, since the file failed before: {error}"; "run again",
        Incomplete => "failed before it was complete"; "run again",
        MissingSlices { missing: usize, slices: usize } =>
            "{missing} of {slices} slices were not written"; "run again with --resume",
        NotOneSlice { pixels: usize } =>
            "--output: is not one slice of {pixels} pixels, as the run wrote it"; "run it again",
        OtherSlices { slices: usize, pixels: usize } =>
            "--output: is not {slices} slices of {pixels} pixels, as the run wrote them"; "run it again",
    }
}
