//! Where the chunks of a dataset are, from its B-tree of version 1, in which all but the latest form of the format keeps
//! them. The library takes a time that grows with the square of their number to list them.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Place of a chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkPlace {
    /// Number of the chunk, in the order of the dataset's dimensions.
    pub number: u64,
    /// Bytes.
    pub offset: u64,
    pub size: u64,
    /// Filters that the chunk was stored without, as bits.
    pub skipped: u32,
}

/// A chunk as the file has it: the position of its first value in every dimension.
pub(super) struct ListedChunk {
    pub first: Vec<u64>,
    pub offset: u64,
    pub size: u64,
    pub skipped: u32,
}

/// Kinds of messages in a header: how values are laid out, and where more messages are.
const LAYOUT: u16 = 8;
const CONTINUATION: u16 = 16;
/// Blocks of a header that are read, and most bytes of one.
const BLOCKS: usize = 64;
const BLOCK: u64 = 1 << 20;
/// Bytes before the entries of a node.
const NODE: u64 = 24;

/// The bytes of a file, with numbers of up to 8 bytes, little-endian.
struct HeaderBytes(Vec<u8>);

impl HeaderBytes {
    fn read(file: &File, at: u64, length: u64) -> Option<HeaderBytes> {
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(HeaderBytes(bytes))
    }

    fn number(&self, at: usize, length: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(self.0.get(at..at + length)?);
        Some(u64::from_le_bytes(bytes))
    }
}

/// All `count` chunks of a dataset of `rank` dimensions whose header is at `header`, or nothing if they are listed in another
/// way.
pub(super) fn chunks(file: &File, header: u64, rank: usize, count: usize) -> Option<Vec<ListedChunk>> {
    let start = HeaderBytes::read(file, 0, 16)?;
    let sizes = if start.number(8, 1)? < 2 { 13 } else { 9 };
    // bytes of addresses and of lengths
    if start.number(sizes, 1)? != 8 || start.number(sizes + 1, 1)? != 8 {
        return None;
    }
    let root = root(file, header, rank)?;
    let mut found = Vec::new();
    let mut open = vec![(root, None)];
    // each node has an entry or more
    for _ in 0..count.checked_mul(2)? {
        let Some((at, level)) = open.pop() else { break };
        let head = HeaderBytes::read(file, at, NODE)?;
        let (own, entries) = (head.number(5, 1)?, head.number(6, 2)?);
        let kept = head.0.starts_with(b"TREE") && head.number(4, 1)? == 1 && level.is_none_or(|level| own + 1 == level);
        if !kept || entries == 0 || found.len() + open.len() + entries as usize > count {
            return None;
        }
        // size, skipped filters, and positions, the last of which is that within a value
        let key = 8 + 8 * (rank + 1);
        let node = HeaderBytes::read(file, at + NODE, entries * (key as u64 + 8))?;
        for entry in (0..entries as usize).rev().map(|entry| entry * (key + 8)) {
            let child = node.number(entry + key, 8)?;
            if own > 0 {
                open.push((child, Some(own)));
                continue;
            }
            found.push(ListedChunk {
                first: (0..rank).map(|side| node.number(entry + 8 + 8 * side, 8)).collect::<Option<_>>()?,
                offset: child,
                size: node.number(entry, 4)?,
                skipped: node.number(entry + 4, 4)? as u32,
            });
        }
    }
    (open.is_empty() && found.len() == count).then_some(found)
}

/// Address of the root of the tree, as the header of a dataset tells it.
fn root(file: &File, header: u64, rank: usize) -> Option<u64> {
    let head = HeaderBytes::read(file, header, 16)?;
    // place and length of blocks of messages, and bytes before and after them
    let (mut blocks, latest, ordered) = if head.0.starts_with(b"OHDR") {
        let flags = head.number(5, 1)?;
        let times = if flags & 32 != 0 { 16 } else { 0 } + if flags & 16 != 0 { 4 } else { 0 };
        let width = 1 << (flags & 3);
        let length = HeaderBytes::read(file, header + 6 + times, width)?.number(0, width as usize)?;
        (vec![(header + 6 + times + width, length)], true, flags & 4 != 0)
    } else {
        (vec![(header + 16, head.number(8, 4)?)], false, false)
    };
    for _ in 0..BLOCKS {
        let (at, length) = blocks.pop()?;
        let block = HeaderBytes::read(file, at, Some(length).filter(|&length| length <= BLOCK)?)?;
        let mut at = 0;
        // kind, size, flags
        let before = if !latest {
            8
        } else if ordered {
            6
        } else {
            4
        };
        while at + before <= block.0.len() {
            let kind_bytes = if latest { 1 } else { 2 };
            let (kind, size) = (block.number(at, kind_bytes)? as u16, block.number(at + kind_bytes, 2)? as usize);
            let body = at + before;
            match kind {
                CONTINUATION => {
                    let (place, length) = (block.number(body, 8)?, block.number(body + 8, 8)?);
                    // blocks of the latest form have a signature and a checksum
                    let frame = if latest { 4 } else { 0 };
                    blocks.push((place.checked_add(frame)?, length.checked_sub(2 * frame)?));
                }
                LAYOUT => {
                    // version, class 2: chunks, dimensions and that of a value, address of the tree
                    let [version, class, sides] = [0, 1, 2].map(|byte| block.number(body + byte, 1));
                    let own = version? == 3 && class? == 2 && sides? as usize == rank + 1;
                    return block.number(body + 3, 8).filter(|_| own);
                }
                _ => {}
            }
            at = body + size;
        }
    }
    None
}
