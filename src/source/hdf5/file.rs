//! HDF5 files: their signature, opening them with the library, and advice about files that it cannot open.

use crate::error::messages;
use crate::files::open_regular;
use crate::layout::hdf5::SIGNATURE;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

messages! {
    /// Why a file cannot be opened.
    pub(super) enum Hdf5FileError: Input {
        Missing => "does not exist"; "check the path",
        NotRegular { error: io::Error } =>
            "is not an HDF5 file: {error}"; "give TIFF files with --projections or --sinograms",
        Unreadable { error: io::Error } => "cannot be read: {error}"; "check the path and the permissions",
        NoSignature => "is not an HDF5 file"; "give TIFF files with --projections or --sinograms",
        Locked { error: String } =>
            "cannot be opened: {error}";
            "wait until no program writes to it, or set HDF5_USE_FILE_LOCKING=FALSE if its file system has no locks",
        NewerVersion { error: String } =>
            "cannot be opened: {error}";
            "use an fbp built with a newer HDF5 library, or write it again for older ones (h5py: libver=\"earliest\")",
        Unopened { error: String } => "cannot be opened: {error}"; "copy or write it again",
    }
}

/// Reports whether a file has the signature of an HDF5 file.
pub fn is_hdf5(path: &Path) -> bool {
    open_regular(path).is_ok_and(|file| has_signature(&file).unwrap_or(false))
}

fn has_signature(file: &File) -> std::io::Result<bool> {
    let length = file.metadata()?.len();
    let mut at = 0;
    let mut found = [0; 8];
    while at + 8 <= length {
        file.read_exact_at(&mut found, at)?;
        if found == SIGNATURE {
            return Ok(true);
        }
        at = if at == 0 { 512 } else { at.saturating_mul(2) };
    }
    Ok(false)
}

/// Size of the library's cache of decompressed chunks; chunks of several frames are needed repeatedly.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkCache {
    pub bytes: u64,
    /// Number of slots of the hash table of chunks.
    pub slots: u64,
}

impl ChunkCache {
    /// Largest cache of a scan in bytes.
    pub const MOST: u64 = 64 << 20;
    /// Divisor of the available memory: the cache of a scan may take this part of it.
    const SHARE: u64 = 8;
    /// Number of slots of the largest cache: a prime, about a hundred for each chunk.
    const SLOTS: u64 = 12_421;
    /// Smallest number of slots: the default of the library.
    const LEAST_SLOTS: u64 = 521;
    /// Preference for evicting chunks that were read completely, the default of the library. At 1, version 1.10.8 never
    /// evicts a chunk that was read in part, whatever the limit.
    pub const PREFERENCE: f64 = 0.75;

    /// Cache of a stack that does not belong to a scan.
    pub const SMALL: ChunkCache = ChunkCache { bytes: 8 << 20, slots: ChunkCache::SLOTS / 8 };

    /// Returns the cache of each of `datasets` datasets that are read with `memory` bytes.
    pub fn of(memory: u64, datasets: u64) -> ChunkCache {
        let bytes = (memory / ChunkCache::SHARE).min(ChunkCache::MOST) / datasets.max(1);
        ChunkCache { bytes, slots: (ChunkCache::SLOTS * bytes / ChunkCache::MOST).max(ChunkCache::LEAST_SLOTS) }
    }
}

/// Opens a file with the library, with this cache of chunks.
pub(super) fn open_file(path: &Path, cache: ChunkCache) -> Result<hdf5_metno::File, Hdf5FileError> {
    let plain = open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Hdf5FileError::Missing,
        io::ErrorKind::InvalidInput => Hdf5FileError::NotRegular { error },
        _ => Hdf5FileError::Unreadable { error },
    })?;
    if !has_signature(&plain).unwrap_or(false) {
        return Err(Hdf5FileError::NoSignature);
    }
    hdf5_metno::silence_errors(true);
    let mut options = hdf5_metno::File::with_options();
    options.with_fapl(|access| access.chunk_cache(cache.slots as usize, cache.bytes as usize, ChunkCache::PREFERENCE));
    options.open(path).map_err(|error| match error.to_string() {
        error if error.contains("lock") => Hdf5FileError::Locked { error },
        error if is_newer(&error) => Hdf5FileError::NewerVersion { error },
        error => Hdf5FileError::Unopened { error },
    })
}

/// Reports whether an error of the library is about something newer than the library.
pub(super) fn is_newer(error: &str) -> bool {
    error.contains("version number")
}
