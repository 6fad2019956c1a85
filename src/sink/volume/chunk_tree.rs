//! Index of a chunked dataset of HDF5: a B-tree of version 1, which all versions of the library read.
//!
//! The library makes the dataset without chunks. Once the chunks are in the file, the index is written after them, and
//! its address is written to the header of the dataset. Neither has checksums in files of this version.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Number of children of a node, as in every file with a superblock of version 0.
const CHILDREN: usize = 64;
/// Number of bytes of a key: size, skipped filters, and positions along three dimensions and in a value.
const KEY: usize = 8 + 4 * 8;
/// Number of bytes of a node: signature, kind, level, number of children, and siblings; then keys and children
/// alternately.
const NODE: usize = 24 + CHILDREN * 8 + (CHILDREN + 1) * KEY;
/// Undefined address, which stands for an object that does not exist.
pub(super) const UNDEFINED: u64 = u64::MAX;
/// Offset of the version in the superblock.
const VERSION: u64 = 8;
/// Offset of the address of the end of the file in the superblock.
const END: u64 = 40;

/// Chunk of one frame in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredFrame {
    pub offset: u64,
    pub bytes: u32,
}

/// Child of a node, with its key.
#[derive(Clone, Copy)]
struct Branch {
    /// First frame below the child.
    frame: u64,
    /// Number of bytes of the chunk of that frame.
    bytes: u32,
    address: u64,
}

impl Branch {
    fn put_key(self, out: &mut Vec<u8>) {
        out.extend(self.bytes.to_le_bytes());
        out.extend(0u32.to_le_bytes()); // no filter is skipped
        out.extend([self.frame, 0, 0, 0].into_iter().flat_map(u64::to_le_bytes));
    }
}

/// Nodes of the tree of all frames of a dataset.
#[derive(Debug, Default)]
pub(super) struct ChunkTree {
    nodes: Vec<u8>,
    root: u64,
}

impl ChunkTree {
    /// Returns the number of bytes of the tree of this number of frames.
    pub fn bytes(frames: usize) -> u64 {
        let mut nodes = frames.div_ceil(CHILDREN);
        let mut all = nodes;
        while nodes > 1 {
            nodes = nodes.div_ceil(CHILDREN);
            all += nodes;
        }
        (all * NODE) as u64
    }

    /// Builds the tree of all frames in order; its first node is at the offset `start` of the file.
    pub fn new(frames: &[StoredFrame], start: u64) -> ChunkTree {
        let branch = |(frame, chunk): (usize, &StoredFrame)| Branch {
            frame: frame as u64,
            bytes: chunk.bytes,
            address: chunk.offset,
        };
        let mut level: Vec<Branch> = frames.iter().enumerate().map(branch).collect();
        let (mut tree, mut depth) = (ChunkTree::default(), 0);
        while depth == 0 || level.len() > 1 {
            level = tree.put_level(&level, depth, start, frames.len() as u64);
            depth += 1;
        }
        tree.root = level.first().map_or(UNDEFINED, |root| root.address);
        tree
    }

    /// Adds the nodes of a level, and returns them as children of the next level.
    fn put_level(&mut self, level: &[Branch], depth: u8, start: u64, end: u64) -> Vec<Branch> {
        let first = start + self.nodes.len() as u64;
        let count = level.len().div_ceil(CHILDREN);
        let address = |node: usize| if node < count { first + (node * NODE) as u64 } else { UNDEFINED };
        let nodes = level.chunks(CHILDREN).enumerate().map(|(number, children)| {
            let mut node = b"TREE".to_vec();
            node.extend([1, depth]);
            node.extend((children.len() as u16).to_le_bytes());
            node.extend(address(number.wrapping_sub(1)).to_le_bytes());
            node.extend(address(number + 1).to_le_bytes());
            for child in children {
                child.put_key(&mut node);
                node.extend(child.address.to_le_bytes());
            }
            let after = level.get((number + 1) * CHILDREN).copied();
            after.unwrap_or(Branch { frame: end, bytes: 0, address: UNDEFINED }).put_key(&mut node);
            node.resize(NODE, 0);
            self.nodes.extend(node);
            Branch { address: address(number), ..children[0] }
        });
        nodes.collect()
    }

    /// Writes the tree at `start`, and its address at `place` in the header of the dataset; the file ends with the
    /// tree.
    pub fn write(&self, file: &File, start: u64, place: u64) -> io::Result<()> {
        let mut version = [0];
        file.read_exact_at(&mut version, VERSION)?;
        if version != [0] {
            return Err(io::Error::other("has a superblock that is not of version 0; run again without --resume"));
        }
        file.write_all_at(&self.nodes, start)?;
        file.write_all_at(&(start + self.nodes.len() as u64).to_le_bytes(), END)?;
        file.write_all_at(&self.root.to_le_bytes(), place)
    }
}
