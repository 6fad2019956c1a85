//! B-trees of version 1, in which all but the latest version of the format list chunks.

use super::bytes::{IndexFile, number};
use super::request::{ChunkIndex, ListedChunk};

/// Number of bytes of an address.
pub(super) const ADDRESS: usize = 8;

/// Start of a node; keys and addresses of children follow alternately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeHead {
    /// Level of the node: children of level 0 are chunks.
    pub level: u8,
    /// Number of children.
    pub children: u16,
    /// Addresses of the nodes before and after this one at its level.
    pub siblings: [u64; 2],
}

impl NodeHead {
    /// Number of bytes.
    pub const BYTES: usize = 8 + 2 * ADDRESS;
    /// Signature, and kind of a node whose children are chunks.
    const START: &[u8; 5] = b"TREE\x01";

    /// Reads the start of a node of a tree of chunks.
    fn parse(bytes: &[u8]) -> Option<NodeHead> {
        let level = *bytes.strip_prefix(NodeHead::START)?.first()?;
        let siblings = [number(bytes, 8, ADDRESS)?, number(bytes, 8 + ADDRESS, ADDRESS)?];
        Some(NodeHead { level, children: number(bytes, 6, 2)? as u16, siblings })
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(NodeHead::START);
        out.push(self.level);
        out.extend(self.children.to_le_bytes());
        out.extend(self.siblings.iter().flat_map(|address| address.to_le_bytes()));
    }
}

/// Key of a child: the first chunk below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeKey {
    /// Number of bytes as the chunk is stored.
    pub size: u32,
    /// Bit mask of the filters that were not applied to the chunk.
    pub skipped: u32,
    /// Position of the first value of the chunk; for a dataset of two dimensions, the first number is 0.
    pub first: [u64; 3],
}

impl NodeKey {
    /// Returns the number of bytes of a key in a dataset of `rank` dimensions.
    pub const fn bytes(rank: usize) -> usize {
        // size, skipped filters and positions, the last of which is the one within a value
        8 + 8 * (rank + 1)
    }

    /// Reads the key at the start of these bytes.
    fn parse(bytes: &[u8], rank: usize) -> Option<NodeKey> {
        let mut first = [0; 3];
        for (side, first) in first[3 - rank..].iter_mut().enumerate() {
            *first = number(bytes, 8 + 8 * side, 8)?;
        }
        Some(NodeKey { size: number(bytes, 0, 4)? as u32, skipped: number(bytes, 4, 4)? as u32, first })
    }

    pub fn put(&self, out: &mut Vec<u8>, rank: usize) {
        out.extend(self.size.to_le_bytes());
        out.extend(self.skipped.to_le_bytes());
        out.extend(self.first[3 - rank..].iter().chain(&[0]).flat_map(|position| position.to_le_bytes()));
    }
}

/// Returns the chunks in the tree whose root is at the address `root`.
pub(super) fn chunks(file: &mut IndexFile, of: &ChunkIndex, root: u64) -> Option<Vec<ListedChunk>> {
    let ChunkIndex { rank, count, .. } = *of;
    let mut found = Vec::new();
    let mut open = vec![(root, None)];
    // each node has at least one child
    for _ in 0..count.checked_mul(2)? {
        let Some((at, level)) = open.pop() else { break };
        let head = NodeHead::parse(&file.read(at, NodeHead::BYTES as u64)?.0)?;
        let (own, children) = (u16::from(head.level), usize::from(head.children));
        let kept = level.is_none_or(|level| own + 1 == level);
        if !kept || children == 0 || found.len() + open.len() + children > count {
            return None;
        }
        let key = NodeKey::bytes(rank);
        let node = file.read(at + NodeHead::BYTES as u64, (children * (key + ADDRESS)) as u64)?;
        for entry in node.0.chunks_exact(key + ADDRESS).rev() {
            let child = number(entry, key, ADDRESS)?;
            if own > 0 {
                open.push((child, Some(own)));
                continue;
            }
            let NodeKey { size, skipped, first } = NodeKey::parse(entry, rank)?;
            found.push(ListedChunk { first, offset: child, size: size.into(), skipped });
        }
    }
    open.is_empty().then_some(found)
}
