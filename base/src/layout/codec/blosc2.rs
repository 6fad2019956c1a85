//! Frames of Blosc 2 with one chunk, as the HDF5 filter 32026 writes them.
//!
//! A chunk consists of blocks of samples, each changed by filters, then compressed by one of several codecs. With more
//! than one dimension, blocks are boxes of the chunk.

use super::blosc::{BloscCodec, word};
use super::error::{DecodeError, Decoded};
use super::shuffle::{bits_back, bytes_back};
use super::streams::is_wanted;
use std::ops::Range;

// offsets in the header of a frame, whose numbers are big-endian; of numbers of 8 bytes, those of the lower 4
const MAGIC: (usize, &[u8]) = (2, b"b2frame\0");
const HEADER_SIZE: usize = 11;
const FRAME_SIZE: usize = 20;
const CHUNK_SIZE: usize = 43;
const METALAYERS: usize = 87;

/// Bytes of the header of a chunk, whose numbers are little-endian.
const HEADER: usize = 32;
/// Offsets of the filter codes in the header of a chunk.
const FILTERS: Range<usize> = 16..22;
const PARAMETERS: Range<usize> = 24..30;
const FLAGS: usize = 31;

// bits of the first flags; the two of `EXTENDED` together mark a header of Blosc 2
const EXTENDED: u8 = 1 | 4;
const AS_IS: u8 = 2;
const UNDIVIDED: u8 = 16;

// codes of filters
const SORTED_BYTES: u8 = 1;
const SORTED_BITS: u8 = 2;
const DIFFERENCES: u8 = 3;
const ROUNDED: u8 = 4;

/// Reports whether the parameters of the HDF5 filter select a codec and a filter that this decoder supports.
pub(super) fn is_known(parameters: &[u32]) -> bool {
    const FILTER: usize = 5;
    const CODEC: usize = 6;
    parameters.get(FILTER).is_none_or(|&filter| filter <= ROUNDED.into())
        && parameters.get(CODEC).is_none_or(|codec| [0, 1, 2, 4, 5].contains(codec))
}

/// Decodes a frame to exactly the bytes of `out`; blocks without `wanted` bytes are skipped.
pub(super) fn decode(stored: &[u8], out: &mut [u8], wanted: &Range<usize>, spare: &mut Vec<u8>) -> Decoded {
    if stored.get(MAGIC.0..MAGIC.0 + MAGIC.1.len()) != Some(MAGIC.1) {
        return Err(DecodeError::Form);
    }
    let header = big(stored, HEADER_SIZE)?;
    let (header, body) = stored.split_at_checked(header).ok_or(DecodeError::Short)?;
    let length = big(header, CHUNK_SIZE)?;
    if big(header, FRAME_SIZE)? > stored.len() {
        return Err(DecodeError::Short);
    }
    let boxes = Boxes::of(header)?;
    if length == 0 {
        return special(body, out);
    }
    let chunk = body.get(..length).ok_or(DecodeError::Short)?;
    let Some(boxes) = boxes else { return decode_chunk(chunk, out, wanted, spare) };
    let size = boxes.sample_size(out.len())?;
    let padded = boxes.padded() * size;
    if word(chunk, 4)? != padded {
        return Err(DecodeError::Length);
    }
    let mut decoded = vec![0; padded];
    let all = 0..decoded.len();
    decode_chunk(chunk, &mut decoded, &all, spare)?;
    boxes.put_back(size, &decoded, out);
    Ok(())
}

/// Fills in a chunk that is not stored: its offset in the index, which is itself a chunk of one number, encodes the
/// values.
fn special(index: &[u8], out: &mut [u8]) -> Decoded {
    let mut place = [0; 8];
    decode_chunk(index, &mut place, &(0..8), &mut Vec::new())?;
    match place[7] {
        // zeros, and values that were never written
        0x81 | 0x84 => out.fill(0),
        _ => return Err(DecodeError::Form),
    }
    Ok(())
}

fn big(stored: &[u8], at: usize) -> Result<usize, DecodeError> {
    word(stored, at).map(|value| (value as u32).swap_bytes() as usize)
}

/// Decodes a chunk to exactly the bytes of `out`; blocks without `wanted` bytes are skipped.
fn decode_chunk(chunk: &[u8], out: &mut [u8], wanted: &Range<usize>, spare: &mut Vec<u8>) -> Decoded {
    let header = chunk.first_chunk::<HEADER>().ok_or(DecodeError::Short)?;
    let &[_, _, flags, size, ..] = header;
    if flags & EXTENDED != EXTENDED {
        return Err(DecodeError::Form);
    }
    if word(chunk, 4)? != out.len() {
        return Err(DecodeError::Length);
    }
    let (size, block) = (usize::from(size), word(chunk, 8)?);
    if size == 0 {
        return Err(DecodeError::Invalid);
    }
    match header[FLAGS] {
        0 => {}
        // zeros, and values that were never written
        0x10 | 0x40 => {
            out.fill(0);
            return Ok(());
        }
        // one value, repeated
        0x30 => {
            let value = chunk.get(HEADER..HEADER + size).ok_or(DecodeError::Short)?;
            out.chunks_mut(size).for_each(|out| out.copy_from_slice(&value[..out.len()]));
            return Ok(());
        }
        // dictionaries, and forms that do not occur in files
        _ => return Err(DecodeError::Form),
    }
    if flags & AS_IS != 0 {
        out.copy_from_slice(chunk.get(HEADER..HEADER + out.len()).ok_or(DecodeError::Short)?);
        return Ok(());
    }
    if block == 0 || block > out.len() {
        return Err(DecodeError::Invalid);
    }
    let filters = BlockFilters::of(header, size)?;
    let mut codec = BloscCodec::of(flags >> 5)?;
    let mut reference = Vec::new();
    for (number, out) in out.chunks_mut(block).enumerate() {
        // other blocks are stored as differences from the first one
        let needed = number == 0 && filters.differences();
        if !needed && !is_wanted(wanted, number * block, out) {
            continue;
        }
        let parts = if flags & UNDIVIDED == 0 && out.len() == block { size } else { 1 };
        let at = word(chunk, HEADER + 4 * number)?;
        read_block(chunk, at, parts, &mut codec, out)?;
        filters.undo(out, (number > 0).then_some(&reference[..]), spare);
        if needed {
            reference = out.to_vec();
        }
    }
    Ok(())
}

/// Reads the parts of a block, each of which follows its length.
fn read_block(chunk: &[u8], at: usize, parts: usize, codec: &mut BloscCodec, out: &mut [u8]) -> Decoded {
    if out.len() % parts != 0 {
        return Err(DecodeError::Invalid);
    }
    let mut at = at;
    for out in out.chunks_mut((out.len() / parts).max(1)) {
        let length = word(chunk, at)? as u32 as i32;
        at += 4;
        match usize::try_from(length) {
            Ok(0) => out.fill(0),
            Ok(length) => {
                let bytes = chunk.get(at..).and_then(|rest| rest.get(..length)).ok_or(DecodeError::Short)?;
                at += length;
                codec.decode(bytes, out)?;
            }
            // one byte, repeated, if the token after it says so
            Err(_) => {
                let value = u8::try_from(-i64::from(length)).map_err(|_| DecodeError::Invalid)?;
                let token = chunk.get(at).ok_or(DecodeError::Short)?;
                if token & 1 == 0 {
                    return Err(DecodeError::Form);
                }
                at += 1;
                out.fill(value);
            }
        }
    }
    Ok(())
}

/// Filters of the blocks of a chunk, in the order in which they were applied.
struct BlockFilters {
    codes: Vec<u8>,
    /// Bytes of a sample.
    size: usize,
}

impl BlockFilters {
    fn of(header: &[u8; HEADER], size: usize) -> Result<BlockFilters, DecodeError> {
        let given = header[FILTERS].iter().zip(&header[PARAMETERS]);
        let given: Vec<(u8, u8)> = given.map(|(code, parameter)| (*code, *parameter)).filter(|of| of.0 != 0).collect();
        // bits removed by rounding cannot be restored, so its parameter does not matter
        let known = |&(code, parameter): &(u8, u8)| match code {
            SORTED_BYTES | SORTED_BITS | DIFFERENCES => parameter == 0,
            code => code == ROUNDED,
        };
        match given.iter().all(known) {
            true => Ok(BlockFilters { codes: given.iter().map(|of| of.0).collect(), size }),
            false => Err(DecodeError::Form),
        }
    }

    fn differences(&self) -> bool {
        self.codes.contains(&DIFFERENCES)
    }

    /// Undoes the filters of a block; `reference` is the first block, or `None` if `block` is the first one.
    fn undo(&self, block: &mut [u8], reference: Option<&[u8]>, spare: &mut Vec<u8>) {
        let size = self.size;
        for &code in self.codes.iter().rev() {
            match code {
                SORTED_BYTES if size > 1 => {
                    let sorted = block.to_vec();
                    bytes_back(size, &sorted, block);
                }
                SORTED_BITS => {
                    // bits are only sorted where they form whole bytes
                    let whole = block.len() / size / 8 * 8 * size;
                    let sorted = block[..whole].to_vec();
                    bits_back(size, &sorted, &mut block[..whole], spare);
                }
                DIFFERENCES => undo_differences(block, reference, size),
                _ => {}
            }
        }
    }
}

/// Replaces differences (exclusive or) by values: in the first block between successive samples, in other blocks from
/// the first.
fn undo_differences(block: &mut [u8], reference: Option<&[u8]>, size: usize) {
    match reference {
        Some(reference) => block.iter_mut().zip(reference).for_each(|(byte, reference)| *byte ^= reference),
        None => {
            let step = match size {
                1 | 2 | 4 => size,
                size if size % 8 == 0 => 8,
                _ => 1,
            };
            for i in step..block.len() / step * step {
                block[i] ^= block[i - step];
            }
        }
    }
}

/// Shape of a chunk of several dimensions and of its blocks, which are boxes; boxes that extend beyond the chunk are
/// padded.
struct Boxes {
    chunk: Vec<usize>,
    block: Vec<usize>,
}

impl Boxes {
    /// Reads the shapes from the header of a frame; returns `None` without metadata of several dimensions.
    fn of(header: &[u8]) -> Result<Option<Boxes>, DecodeError> {
        // an array of three: size of a map, map from names to offsets, contents
        let mut list = header.get(METALAYERS..).ok_or(DecodeError::Short)?;
        let mut take = |count: usize| -> Result<&[u8], DecodeError> {
            let (bytes, rest) = list.split_at_checked(count).ok_or(DecodeError::Short)?;
            list = rest;
            Ok(bytes)
        };
        let start = take(7)?;
        let count = usize::from(start[5]) << 8 | usize::from(start[6]);
        for _ in 0..count {
            let length = take(1)?[0] & 0x1f;
            let is_wanted = take(length.into())? == b"b2nd";
            let place = take(5)?;
            if is_wanted {
                // after the marker and the length of the contents
                let at = big(place, 1)?.checked_add(5).ok_or(DecodeError::Short)?;
                return Boxes::read(header.get(at..).ok_or(DecodeError::Short)?).map(Some);
            }
        }
        Ok(None)
    }

    /// Reads an array: version, number of dimensions, shape of the array, of a chunk and of a block.
    fn read(contents: &[u8]) -> Result<Boxes, DecodeError> {
        const MOST: usize = 8;
        let dimensions = usize::from(*contents.get(2).ok_or(DecodeError::Short)?);
        if !(1..=MOST).contains(&dimensions) {
            return Err(DecodeError::Form);
        }
        // each number follows its marker; all follow the marker of their array
        let numbers = |at: usize, bytes: usize| -> Result<Vec<usize>, DecodeError> {
            (0..dimensions).map(|i| big(contents, at + (i + 1) * (bytes + 1) + 1 - 4)).collect()
        };
        let shape = numbers(3, 8)?;
        let chunk = numbers(3 + 1 + 9 * dimensions, 4)?;
        let block = numbers(3 + 2 + 14 * dimensions, 4)?;
        let fits = chunk.iter().zip(&block).all(|(chunk, block)| (1..=*chunk).contains(block));
        match shape == chunk && fits {
            true => Ok(Boxes { chunk, block }),
            false => Err(DecodeError::Form),
        }
    }

    /// Returns the bytes of a sample of a chunk of `bytes` bytes, if they are a whole number.
    fn sample_size(&self, bytes: usize) -> Result<usize, DecodeError> {
        let samples = self.chunk.iter().try_fold(1usize, |all, side| all.checked_mul(*side));
        samples
            .filter(|&samples| bytes % samples == 0 && bytes >= samples)
            .map(|samples| bytes / samples)
            .ok_or(DecodeError::Length)
    }

    /// Returns the number of samples of the padded chunk, which has less than twice the length along every side.
    fn padded(&self) -> usize {
        self.chunk.iter().zip(&self.block).map(|(chunk, block)| chunk.next_multiple_of(*block)).product()
    }

    /// Copies blocks of samples of `size` bytes to their places in the chunk.
    fn put_back(&self, size: usize, blocks: &[u8], out: &mut [u8]) {
        let last = self.chunk.len() - 1;
        let grid: Vec<usize> =
            self.chunk.iter().zip(&self.block).map(|(chunk, block)| chunk.div_ceil(*block)).collect();
        let run = self.block[last];
        let of_block: usize = self.block.iter().product();
        for (number, block) in blocks.chunks_exact(of_block * size).enumerate() {
            let corner = place_of(number, &grid);
            for (line, samples) in block.chunks_exact(run * size).enumerate() {
                let within = place_of(line * run, &self.block);
                let place: Vec<usize> = (0..=last).map(|side| corner[side] * self.block[side] + within[side]).collect();
                if place.iter().zip(&self.chunk).any(|(at, side)| at >= side) {
                    continue;
                }
                let first = place.iter().zip(&self.chunk).fold(0, |first, (at, side)| first * side + at);
                let count = run.min(self.chunk[last] - place[last]);
                out[first * size..(first + count) * size].copy_from_slice(&samples[..count * size]);
            }
        }
    }
}

/// Returns the indices of element `number` of an array with these sides.
fn place_of(number: usize, sides: &[usize]) -> Vec<usize> {
    let mut rest = number;
    let mut place: Vec<usize> = sides
        .iter()
        .rev()
        .map(|side| {
            let at = rest % side;
            rest /= side;
            at
        })
        .collect();
    place.reverse();
    place
}
