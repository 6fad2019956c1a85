//! Errors of outputs of one volume.

use crate::error::{BoxedError, messages};
use std::io;

messages! {
    /// Errors of an output of one volume.
    pub enum VolumeError: Output {
        Unreadable { error: String } =>
            "this unfinished output is kept, but cannot be read: {error}";
            "correct this and run again, or remove it to start from scratch",
        SliceExists { slice: usize } =>
            "slice {slice} is there already"; "add --resume to keep it, or --overwrite",
        Removed { unfinished: String, error: io::Error } =>
            "is not written, since {unfinished} was removed during the run ({error})"; "run again",
        RemovedForAnotherRun { unfinished: String } =>
            "is not written, since {unfinished} was removed during the run (this output is of another run)";
            "run again",
        Replaced => "is not written, since another command has replaced it during the run"; "run again",
        NotZarr => "is a directory but not a Zarr"; "remove it or choose another --output",
        NoVolume { slice: usize } =>
            "--resume: slice {slice} cannot be read: it is gone"; "run again without --resume",
        NoSlice { slice: usize } =>
            "--resume: slice {slice} cannot be read: it is not in the file"; "run again without --resume",
        SliceUnreadable { slice: usize, error: io::Error } =>
            "--resume: slice {slice} cannot be read: {error}"; "run again without --resume",
        SliceLength { slice: usize, bytes: usize } =>
            "--resume: slice {slice} cannot be read: it has {bytes} bytes"; "run again without --resume",
        SliceSize => "has slices of an impossible size"; "run again without --resume",
        NotOwnNpy => "is not a NumPy file of fbp, or is damaged"; "run again without --resume",
        OtherLength => "has another length than its description says"; "run again without --resume",
        OtherLevels => "has levels with other shapes than its description says"; "run again without --resume",
    }
}

/// Returns an error about invalid contents of a file.
pub fn invalid(why: impl Into<BoxedError>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
