//! Errors of HDF5 files and their datasets.

use crate::error::{BoxedError, Result, messages};
use std::io;

/// Result with an error about a file, to which the caller adds the name.
pub(super) type Hdf5Result<T> = Result<T, BoxedError>;

messages! {
    /// Why a file to which another one leads cannot be used.
    pub(super) enum Hdf5LinkError: Input {
        SpecialFile { link: String, holder: String, target: String, kind: &'static str } =>
            "the link {link} of {holder} leads to {target}, {kind}, expected a regular file";
            "put the file there, or correct the path in the HDF5 file",
        SpecialValues { file: String, kind: &'static str } =>
            "its values are in {file}, {kind}, expected a regular file";
            "put the file there, or correct the path in the HDF5 file",
        Unopened { error: hdf5_metno::Error } => "cannot be opened: {error}"; "copy or write it again",
    }
}

messages! {
    /// Why the sources of a virtual dataset cannot be used.
    pub(super) enum Hdf5SourceError: Input {
        Unlisted =>
            "is a virtual dataset whose sources cannot be listed";
            "copy the data into one dataset, for example with h5repack",
        /// The verb is that of the number of sources.
        Missing { count: usize, verb: &'static str, sources: String, holder: String } =>
            "is a virtual dataset, and {count} of its sources {verb} missing: {sources}; their values would be fill \
             values";
            "put the files where the dataset expects them or beside {holder}, or set HDF5_VDS_PREFIX to their \
             directory",
        SpecialFile { dataset: String, file: String, error: Hdf5LinkError } =>
            "is made of {dataset} of {file}: {error}",
        Unusable { dataset: String, file: String, error: BoxedError } =>
            "is made of {dataset} of {file}, which {error}",
    }
}

messages! {
    /// Why values of a dataset cannot be read.
    pub(super) enum Hdf5ValuesError: Input {
        Unreadable { error: BoxedError } => "cannot be read: {error}"; "copy or write the file again",
        OtherShape =>
            "cannot be read: the library gives another shape"; "copy or write the file again",
        NoProcess { error: io::Error } =>
            "cannot be read: no process can be started for it: {error}"; "check the limits of processes and memory",
        PastEnd { length: u64 } =>
            "goes past the end of its file, which has {length} bytes"; "copy or write it again",
        ChunkPastEnd { offset: u64, length: u64 } =>
            "has a chunk at byte {offset} of its file, which has {length} bytes"; "copy or write it again",
        ChunkTooLong { stored: u64, bytes: u64 } =>
            "claims {stored} bytes for a chunk of {bytes} bytes of values"; "check whether the file is damaged",
        /// A chunk is named by its number along each dimension.
        Chunk { along: usize, band: usize, column: usize, error: BoxedError } =>
            "chunk {along}, {band}, {column} {error}",
        Frame { dataset: String, frame: usize, error: BoxedError } => "{dataset} frame {frame}: {error}",
    }
}

impl Hdf5ValuesError {
    /// Returns the error about a file that cannot be read.
    pub fn unreadable(error: impl Into<BoxedError>) -> Hdf5ValuesError {
        Hdf5ValuesError::Unreadable { error: error.into() }
    }
}
