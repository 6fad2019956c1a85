//! Bits that flip in finished TIFF and Zarr outputs.

use crate::support::flips::{check, count, storages};
use fbp::sink::{Compression, OmeZarr, SliceStorage};
use strum::VariantArray;
use tempfile::TempDir;

#[test]
fn slices_with_a_flipped_bit_are_not_kept() {
    let dir = TempDir::new().unwrap();
    let (flips, seed) = count(60);
    for (number, (encoding, storage)) in storages(Compression::VARIANTS).enumerate() {
        check(&dir.path().join(format!("tiff-{number}")), encoding, storage, flips, seed + number as u64);
    }
    let of_zarr = [Compression::None, Compression::Deflate, Compression::Zstd];
    for (number, (encoding, storage)) in storages(&of_zarr).enumerate() {
        for &ome_zarr in OmeZarr::VARIANTS {
            let storage = SliceStorage { ome_zarr, ..storage };
            check(
                &dir.path().join(format!("{number}-{ome_zarr}.zarr")),
                encoding,
                storage,
                flips,
                seed + number as u64,
            );
        }
    }
}
