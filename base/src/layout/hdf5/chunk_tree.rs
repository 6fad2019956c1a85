//! Index of a dataset whose chunks are frames: a B-tree of version 1, which all versions of the library read.
//!
//! Neither the tree nor headers have checksums in files of this version.

use super::btree::{ADDRESS, NodeHead, NodeKey};
use super::bytes::UNDEFINED;

/// Number of children of a node, as in every file with a superblock of version 0.
const CHILDREN: usize = 64;
/// Number of dimensions of the dataset.
const RANK: usize = 3;
/// Number of bytes of a node: head, then keys and children alternately.
const NODE: usize = NodeHead::BYTES + CHILDREN * ADDRESS + (CHILDREN + 1) * NodeKey::bytes(RANK);

/// Chunk of one frame in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredFrame {
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
        NodeKey { size: self.bytes, skipped: 0, first: [self.frame, 0, 0] }.put(out, RANK);
    }
}

/// Nodes of the tree of all frames of a dataset.
#[derive(Debug, Default)]
pub struct ChunkTree {
    /// Bytes of all nodes, in the order in which they are in the file.
    pub nodes: Vec<u8>,
    /// Address of the root, which the header of the dataset has.
    pub root: u64,
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
            let siblings = [address(number.wrapping_sub(1)), address(number + 1)];
            let mut node = Vec::with_capacity(NODE);
            NodeHead { level: depth, children: children.len() as u16, siblings }.put(&mut node);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::hdf5::btree;
    use crate::layout::hdf5::bytes::IndexFile;
    use crate::layout::hdf5::request::{ChunkIndex, ListedChunk};
    use std::os::unix::fs::FileExt;

    /// Trees of one to three levels list the frames that they were built from.
    #[test]
    fn trees_read_back() {
        for frames in [1, 2, CHILDREN, CHILDREN + 1, CHILDREN * CHILDREN, CHILDREN * CHILDREN + 1] {
            let frame = |number: u64| StoredFrame { offset: 8 * (number * 7919 % 100_003), bytes: 100 + number as u32 };
            let stored: Vec<_> = (0..frames as u64).map(frame).collect();
            let start = 4096;
            let tree = ChunkTree::new(&stored, start);
            assert_eq!(tree.nodes.len() as u64, ChunkTree::bytes(frames));
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&tree.nodes, start).unwrap();
            let side = frames as u64;
            let of = ChunkIndex {
                header: 0,
                rank: RANK,
                shape: [side, 3, 5],
                limits: [Some(side), Some(3), Some(5)],
                chunk: [1, 3, 5],
                bytes: 30,
                count: frames,
            };
            let mut found = btree::chunks(&mut IndexFile::new(&file, tree.nodes.len() as u64), &of, tree.root).unwrap();
            found.sort_unstable_by_key(|chunk| chunk.first);
            let expected = stored.iter().zip(0..).map(|(&StoredFrame { offset, bytes }, number)| ListedChunk {
                first: [number, 0, 0],
                offset,
                size: bytes.into(),
                skipped: 0,
            });
            assert!(found.into_iter().eq(expected), "{frames}");
        }
        assert_eq!(ChunkTree::new(&[], 0).root, UNDEFINED);
    }
}
