//! Places of the chunks of a dataset, from the index in its file, and where the header of the dataset has its address.
//!
//! The index is a B-tree of version 1, a fixed or an extensible array, or missing where chunks follow each other. The
//! library takes a time to list them that grows with the square of their number.

use super::bytes::{IndexBytes, IndexFile, UNDEFINED};
use super::request::{ChunkIndex, ListedChunk};
use super::superblock::Superblock;
use super::{arrays, btree};
use std::fs::File;

/// Type of the header message that describes how values are laid out.
const LAYOUT: u16 = 8;
/// Type of the header message that gives the place of further messages.
const CONTINUATION: u16 = 16;
/// Largest number of blocks of a header that are read.
const BLOCKS: usize = 64;
/// Largest number of bytes of a block of a header.
const BLOCK: u64 = 1 << 20;

/// Returns all chunks of a dataset that were written, or `None` if they are listed in an unsupported way.
pub fn chunks(file: &File, of: &ChunkIndex) -> Option<Vec<ListedChunk>> {
    let length = file.metadata().ok()?.len();
    let mut file = IndexFile::new(file, length);
    if !(2..=3).contains(&of.rank) || of.chunk.contains(&0) {
        return None;
    }
    let start = file.read(0, Superblock::BYTES as u64)?;
    if !Superblock::parse(start.0.first_chunk()?).is_wide() {
        return None;
    }
    let (_, layout) = layout(&mut file, of.header)?;
    // version and class of the layout; class 2 is chunked storage
    let found = match (layout.number(0, 1)?, layout.number(1, 1)?) {
        (3, 2) if layout.number(2, 1)? == of.rank as u64 + 1 => btree::chunks(&mut file, of, layout.number(3, 8)?),
        (4, 2) if layout.number(3, 1)? == of.rank as u64 + 1 => {
            // after the sides of chunks: the type of index, its parameters, and its address
            let kind = 5 + (of.rank + 1) * layout.number(4, 1)? as usize;
            match layout.number(kind, 1)? {
                2 => in_a_row(of, layout.number(kind + 1, 8)?, length),
                3 => arrays::fixed(&mut file, of, layout.number(kind + 2, 8)?),
                4 => arrays::extensible(&mut file, of, layout.number(kind + 6, 8)?),
                _ => None,
            }
        }
        _ => None,
    };
    found.filter(|found| found.len() == of.count)
}

/// Returns the position in the file at which the header of a chunked dataset has the address of its B-tree of version
/// 1.
pub fn tree_address(file: &File, header: u64) -> Option<u64> {
    let mut file = IndexFile::new(file, file.metadata().ok()?.len());
    let (at, layout) = layout(&mut file, header)?;
    // after version, class and number of dimensions
    ((layout.number(0, 1)?, layout.number(1, 1)?) == (3, 2)).then_some(at + 3)
}

/// Returns the layout message of a header, and its position in the file.
fn layout(file: &mut IndexFile, header: u64) -> Option<(u64, IndexBytes)> {
    let head = file.read(header, 16)?;
    // place and length of each block of messages
    let (mut blocks, latest, ordered) = if head.0.starts_with(b"OHDR") {
        let flags = head.number(5, 1)?;
        let times = if flags & 32 != 0 { 16 } else { 0 } + if flags & 16 != 0 { 4 } else { 0 };
        let width = 1 << (flags & 3);
        let length = file.read(header + 6 + times, width)?.number(0, width as usize)?;
        (vec![(header + 6 + times + width, length)], true, flags & 4 != 0)
    } else {
        (vec![(header.checked_add(16)?, head.number(8, 4)?)], false, false)
    };
    for _ in 0..BLOCKS {
        let (start, length) = blocks.pop()?;
        let block = file.read(start, Some(length).filter(|&length| length <= BLOCK)?)?;
        let mut at = 0;
        // type, size and flags precede the body of a message
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
                    // blocks of version 2 headers have a signature and a checksum
                    let frame = if latest { 4 } else { 0 };
                    blocks.push((place.checked_add(frame)?, length.checked_sub(2 * frame)?));
                }
                LAYOUT => {
                    let message = block.0.get(body..body + size)?.to_vec();
                    return Some((start + body as u64, IndexBytes(message)));
                }
                _ => {}
            }
            at = body + size;
        }
    }
    None
}

/// Returns the chunks of a dataset without an index, which have one size and follow each other, in a file of `length`
/// bytes.
fn in_a_row(of: &ChunkIndex, start: u64, length: u64) -> Option<Vec<ListedChunk>> {
    let grid = of.grid()?;
    let all = grid.all;
    if all != of.count as u64 || all.checked_mul(of.bytes)? > length || start > UNDEFINED - length {
        return None;
    }
    let chunk = |number| {
        let first = grid.first(number)?;
        Some(ListedChunk { first, offset: start + number * of.bytes, size: of.bytes, skipped: 0 })
    };
    (0..all).map(chunk).collect()
}
