//! Bits that flip in finished HDF5 outputs.
#![cfg(feature = "hdf5")]

use crate::support::flips::{check, count, storages};
use fbp::sink::{Compression, SliceStorage};
use tempfile::TempDir;

#[test]
fn slices_with_a_flipped_bit_are_not_kept() {
    // the library may crash on a damaged file, so another process reads it first
    fbp::source::hdf5::examine_with(env!("CARGO_BIN_EXE_fbp").into());
    let dir = TempDir::new().unwrap();
    let (flips, seed) = count(12);
    for (number, (encoding, storage)) in storages(&[Compression::None, Compression::Deflate]).enumerate() {
        for hdf5_parts in [None, Some(2)] {
            let storage = SliceStorage { hdf5_parts, ..storage };
            let path = dir.path().join(format!("{number}-{}.h5", hdf5_parts.unwrap_or(1)));
            check(&path, encoding, storage, flips, seed + number as u64);
        }
    }
}
