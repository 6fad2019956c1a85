//! Structures of HDF5 files that this program reads and writes itself: the superblock, and indexes of chunks.
//!
//! Whatever a file contains, time and memory for its indexes are bounded by its length, as no byte of an index is needed
//! twice.

mod arrays;
mod btree;
mod bytes;
mod checksum;
mod chunk_tree;
pub mod index;
mod request;
mod superblock;

pub use bytes::UNDEFINED;
pub use chunk_tree::{ChunkTree, StoredFrame};
pub use request::{ChunkIndex, ListedChunk};
pub use superblock::{SIGNATURE, Superblock};
