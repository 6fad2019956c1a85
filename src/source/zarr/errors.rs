//! Errors of directories and files of Zarr.

use crate::error::messages;
use crate::layout::codec::DecodeError;
use crate::layout::zarr::ShardIndexError;
use std::io;

messages! {
    /// Why the array of a directory cannot be found.
    pub enum ZarrDirectoryError: Input {
        NoJson { path: String, error: serde_json::Error } => "{path} is no JSON: {error}"; "copy or write it again",
        Unreadable { path: String, error: io::Error } =>
            "{path} cannot be read: {error}"; "check the path and the permissions",
        Outside { level: String } =>
            "names the level {level:?}, which is outside it"; "name the directory of the array",
        NoImage { first: String } =>
            "is a Zarr group without an OME-Zarr image"; "name one of the images or arrays in it, such as {first}",
        Empty =>
            "is a Zarr group with neither an OME-Zarr image nor an array"; "name the directory of one",
    }
}

messages! {
    /// Why a chunk, or the file that contains it, cannot be read.
    pub enum ZarrChunkError: Input {
        Unreadable { path: String, error: io::Error } =>
            "chunk {path} cannot be read: {error}"; "check the path and the permissions",
        Damaged { path: String, error: DecodeError } => "chunk {path} {error}",
        Length { path: String, compared: &'static str, length: u64 } =>
            "chunk {path} is damaged: it has {compared} bytes than its {length}"; "copy or write it again",
        Changed { path: String } => "chunk {path} has changed since this run began"; "run again",
        UnreadableShard { path: String, error: io::Error } =>
            "shard {path} cannot be read: {error}"; "check the path and the permissions",
        ShortShard { path: String } =>
            "shard {path} is damaged: it is too short for its index"; "copy or write it again",
        DamagedShard { path: String, error: ShardIndexError } => "shard {path} {error}",
    }
}
