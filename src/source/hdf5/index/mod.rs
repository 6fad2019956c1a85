//! Where the chunks of a dataset are, from the index in its file: a B-tree of version 1, a fixed or an extensible array, or
//! none, where chunks follow each other. The library takes a time that grows with the square of their number to list them.
//!
//! Whatever a file says, the time and the memory that this takes are bounded by its length: no byte of an index is needed
//! twice.

mod arrays;
mod btree;
mod checksum;

use std::fs::File;
use std::os::unix::fs::FileExt;

/// A chunk as the file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedChunk {
    /// Position of its first value: frame, row and bin.
    pub first: [u64; 3],
    /// Bytes.
    pub offset: u64,
    pub size: u64,
    /// Filters that the chunk was stored without, as bits.
    pub skipped: u32,
}

/// What is known of a dataset whose chunks are listed. What a dataset of two dimensions lacks in front is 1.
#[derive(Clone, Copy, Debug)]
pub struct ChunkIndex {
    /// Address of its header.
    pub header: u64,
    /// Number of dimensions.
    pub rank: usize,
    pub shape: [u64; 3],
    /// The largest shape that the dataset may get.
    pub limits: [Option<u64>; 3],
    pub chunk: [u64; 3],
    /// Bytes of a chunk before filters.
    pub bytes: u64,
    /// Number of chunks that were written.
    pub count: usize,
}

/// An address that stands for nothing.
const UNDEFINED: u64 = u64::MAX;
/// Kinds of messages in a header: how values are laid out, and where more messages are.
const LAYOUT: u16 = 8;
const CONTINUATION: u16 = 16;
/// Blocks of a header that are read, and most bytes of one.
const BLOCKS: usize = 64;
const BLOCK: u64 = 1 << 20;

/// All chunks of a dataset that were written, or nothing if they are listed in another way.
pub fn chunks(file: &File, of: &ChunkIndex) -> Option<Vec<ListedChunk>> {
    let length = file.metadata().ok()?.len();
    let mut file = IndexFile { file, left: length };
    if !(2..=3).contains(&of.rank) || of.chunk.contains(&0) {
        return None;
    }
    let start = file.read(0, 16)?;
    let sizes = if start.number(8, 1)? < 2 { 13 } else { 9 };
    // bytes of addresses and of lengths
    if start.number(sizes, 1)? != 8 || start.number(sizes + 1, 1)? != 8 {
        return None;
    }
    let (_, layout) = layout(&mut file, of.header)?;
    // version and class 2: chunks
    let found = match (layout.number(0, 1)?, layout.number(1, 1)?) {
        (3, 2) if layout.number(2, 1)? == of.rank as u64 + 1 => btree::chunks(&mut file, of, layout.number(3, 8)?),
        (4, 2) if layout.number(3, 1)? == of.rank as u64 + 1 => {
            // after the sides of chunks: how they are listed, parameters of that, and the address
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

/// Where the header of a chunked dataset has the address of its B-tree of version 1.
pub fn tree_address(file: &File, header: u64) -> Option<u64> {
    let mut file = IndexFile { file, left: file.metadata().ok()?.len() };
    let (at, layout) = layout(&mut file, header)?;
    // after version, class and number of dimensions
    ((layout.number(0, 1)?, layout.number(1, 1)?) == (3, 2)).then_some(at + 3)
}

/// A file that is read as an index, and how many more bytes of it may be read: no valid index has more than its file.
struct IndexFile<'a> {
    file: &'a File,
    left: u64,
}

impl IndexFile<'_> {
    fn read(&mut self, at: u64, length: u64) -> Option<IndexBytes> {
        self.left = self.left.checked_sub(length)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, at).ok()?;
        Some(IndexBytes(bytes))
    }

    /// The same with a checksum at the end, which is verified.
    fn read_checked(&mut self, at: u64, length: u64) -> Option<IndexBytes> {
        let bytes = self.read(at, length)?;
        let (data, sum) = bytes.0.split_last_chunk()?;
        // a fuzzer would not get past it
        (cfg!(fuzzing) || checksum::lookup3(data) == u32::from_le_bytes(*sum)).then_some(bytes)
    }
}

/// Bytes of a file, with numbers of up to 8 bytes, little-endian.
struct IndexBytes(Vec<u8>);

impl IndexBytes {
    fn number(&self, at: usize, length: usize) -> Option<u64> {
        number(&self.0, at, length)
    }
}

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..length)?.copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
    Some(u64::from_le_bytes(number))
}

/// The message of a header that says how values are laid out, and where it is.
fn layout(file: &mut IndexFile, header: u64) -> Option<(u64, IndexBytes)> {
    let head = file.read(header, 16)?;
    // place and length of blocks of messages, and bytes before and after them
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

impl ChunkIndex {
    /// Numbers of chunks along the dimensions of the largest shape, and that of all; 1 along one without a limit.
    fn grid(&self) -> Option<([u64; 3], u64)> {
        let along = |side: usize| self.limits[side].map_or(1, |limit| limit.div_ceil(self.chunk[side].max(1)));
        let grid = [along(0), along(1), along(2)];
        let all = grid.iter().try_fold(1u64, |all, &count| all.checked_mul(count))?;
        Some((grid, all))
    }

    /// Position of the first value of a chunk, by its number among the chunks of `grid`, of which the dimension `slowest` comes
    /// first.
    fn first(&self, mut number: u64, grid: &[u64; 3], slowest: usize) -> Option<[u64; 3]> {
        let mut first = [0; 3];
        for side in (0..3).rev().filter(|&side| side != slowest) {
            first[side] = (number % grid[side]).checked_mul(self.chunk[side])?;
            number /= grid[side];
        }
        first[slowest] = number.checked_mul(self.chunk[slowest])?;
        Some(first)
    }
}

/// Chunks of one size that follow each other, all of them, in a file of `length` bytes.
fn in_a_row(of: &ChunkIndex, start: u64, length: u64) -> Option<Vec<ListedChunk>> {
    let (grid, all) = of.grid()?;
    if all != of.count as u64 || all.checked_mul(of.bytes)? > length || start > UNDEFINED - length {
        return None;
    }
    let chunk = |number| {
        let first = of.first(number, &grid, 0)?;
        Some(ListedChunk { first, offset: start + number * of.bytes, size: of.bytes, skipped: 0 })
    };
    (0..all).map(chunk).collect()
}
