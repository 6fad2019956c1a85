//! Errors of HDF5 outputs.

use crate::error::{BoxedError, messages};

messages! {
    /// Errors of an HDF5 output.
    pub enum Hdf5OutputError: Output {
        NotContiguous => "has a dataset that is not contiguous"; "choose another --output",
        NulCharacter => "a text contains a NUL character"; "remove it",
        PartPlaces => "does not say where its parts are"; "run again without --resume",
        TooShort => "is shorter than its slices"; "run again without --resume",
        LargeSlices => "cannot hold compressed slices of 4 GiB or more"; "use --compression none",
        StoredLength => "has a slice of an impossible length"; "run again",
        NoSampleSize => "has samples of no size"; "run again without --resume",
        Slice { place: usize, error: BoxedError } => "slice {place} {error}",
        NoChunks => "has no dataset with chunks"; "run again without --resume",
        IndexPlace => "has an index at an impossible place"; "run again without --resume",
        Superblock => "has a superblock that is not of version 0"; "run again without --resume",
    }
}
