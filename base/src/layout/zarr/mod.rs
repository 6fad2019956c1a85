//! Zarr of versions 2 and 3, and OME-Zarr 0.4 and 0.5: metadata of arrays, groups and images, names of chunks, and the
//! indexes of shards.

mod array;
mod codec;
mod common;
mod errors;
mod fill;
mod group;
mod image;
mod keys;
mod sample;
mod shard;

pub use array::ArrayMetadata;
pub use codec::ChunkCodec;
pub use common::checked;
pub use errors::{ShardIndexError, ZarrMetadataError};
pub use fill::fill_bytes;
pub use group::{ATTRIBUTES, GROUP, METADATA, ZarrVersion, group_files, is_array};
pub use image::{ImageLevel, ImageMetadata, first_level};
pub use keys::ChunkKeys;
pub use shard::{ShardIndex, ShardIndexForm, ShardMetadata};
