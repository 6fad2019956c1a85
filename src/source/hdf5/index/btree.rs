//! B-trees of version 1, in which all but the latest version of the format list chunks.

use super::bytes::IndexFile;
use super::request::{ChunkIndex, ListedChunk};

/// Number of bytes before the entries of a node.
const NODE: u64 = 24;

/// Returns the chunks in the tree whose root is at the address `root`.
pub(super) fn chunks(file: &mut IndexFile, of: &ChunkIndex, root: u64) -> Option<Vec<ListedChunk>> {
    let ChunkIndex { rank, count, .. } = *of;
    let mut found = Vec::new();
    let mut open = vec![(root, None)];
    // each node has at least one entry
    for _ in 0..count.checked_mul(2)? {
        let Some((at, level)) = open.pop() else { break };
        let head = file.read(at, NODE)?;
        let (own, entries) = (head.number(5, 1)?, head.number(6, 2)?);
        let kept = head.0.starts_with(b"TREE") && head.number(4, 1)? == 1 && level.is_none_or(|level| own + 1 == level);
        if !kept || entries == 0 || found.len() + open.len() + entries as usize > count {
            return None;
        }
        // a key has size, skipped filters and positions, the last of which is the one within a value
        let key = 8 + 8 * (rank + 1);
        let node = file.read(at + NODE, entries * (key as u64 + 8))?;
        for entry in (0..entries as usize).rev().map(|entry| entry * (key + 8)) {
            let child = node.number(entry + key, 8)?;
            if own > 0 {
                open.push((child, Some(own)));
                continue;
            }
            let mut first = [0; 3];
            for (side, first) in first[3 - rank..].iter_mut().enumerate() {
                *first = node.number(entry + 8 + 8 * side, 8)?;
            }
            let (size, skipped) = (node.number(entry, 4)?, node.number(entry + 4, 4)? as u32);
            found.push(ListedChunk { first, offset: child, size, skipped });
        }
    }
    open.is_empty().then_some(found)
}
