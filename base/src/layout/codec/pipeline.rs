//! Filters of HDF5 datasets that this program undoes itself, and the two that it applies.

use super::shuffle::bytes_back;
use super::streams::zlib_encoder;
use super::{BitPacking, Bitshuffle, Compressor, DecodeError, blosc2};
use std::io::{self, Write};
use std::ops::Range;

/// Filter that is undone without the HDF5 library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkFilter {
    /// Sorting of bytes by their position in the sample.
    Shuffle,
    /// Fletcher-32 checksum after the bytes.
    Fletcher32,
    Compressed(Compressor),
}

impl ChunkFilter {
    /// Returns the filter with this registered number, unless it or its parameters are unsupported.
    pub fn of(number: i32, parameters: &[u32]) -> Option<ChunkFilter> {
        /// Index of Blosc's codec among the parameters, and the number of Snappy.
        const SNAPPY: (usize, u32) = (6, 3);
        let compressor = match number {
            1 => Compressor::Zlib,
            2 => return Some(ChunkFilter::Shuffle),
            3 => return Some(ChunkFilter::Fletcher32),
            32000 => Compressor::Lzf,
            32001 if parameters.get(SNAPPY.0) != Some(&SNAPPY.1) => Compressor::Blosc,
            32004 => Compressor::Lz4Blocks,
            32008 => Compressor::Bitshuffle(Bitshuffle::of(parameters)?),
            32015 => Compressor::Zstd,
            32026 if blosc2::is_known(parameters) => Compressor::Blosc2,
            _ => return None,
        };
        Some(ChunkFilter::Compressed(compressor))
    }

    /// Reports whether the filter keeps the number of bytes.
    fn keeps_length(self) -> bool {
        match self {
            ChunkFilter::Shuffle => true,
            ChunkFilter::Compressed(Compressor::Bitshuffle(form)) => form.packing == BitPacking::None,
            ChunkFilter::Fletcher32 | ChunkFilter::Compressed(_) => false,
        }
    }
}

/// Memory for decoding, which is reused for the next chunk.
#[derive(Debug, Default)]
pub struct DecodeBuffers {
    /// Bytes of a chunk: as stored before decoding, its values afterwards.
    pub bytes: Vec<u8>,
    other: Vec<u8>,
    spare: Vec<u8>,
}

impl DecodeBuffers {
    /// Decompresses the bytes in place to `length` bytes, of which at least the `wanted` ones are valid.
    ///
    /// # Errors
    /// When the bytes are damaged, or decode to another length.
    pub fn decompress(
        &mut self,
        compressor: Compressor,
        length: usize,
        wanted: &Range<usize>,
    ) -> Result<(), DecodeError> {
        self.other.resize(length, 0);
        compressor.decode(&self.bytes, &mut self.other, wanted, &mut self.spare)?;
        std::mem::swap(&mut self.bytes, &mut self.other);
        Ok(())
    }

    /// Returns the number of bytes of this memory.
    pub fn held(&self) -> usize {
        self.bytes.capacity() + self.other.capacity() + self.spare.capacity()
    }
}

/// Filters of a dataset in the order in which they were applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    filters: Vec<ChunkFilter>,
    /// Bytes of a sample.
    size: usize,
}

impl Pipeline {
    /// Creates a pipeline for samples of `size` bytes. Returns `None` unless the length after each filter is known,
    /// which allows only one that compresses.
    pub fn new(filters: Vec<ChunkFilter>, size: usize) -> Option<Pipeline> {
        let compress = filters.iter().filter(|filter| !filter.keeps_length() && **filter != ChunkFilter::Fletcher32);
        (compress.count() <= 1 && filters.len() <= 32 && size > 0).then_some(Pipeline { filters, size })
    }

    /// Returns the filters shuffle and deflate, which [`shuffled`] applies; `None` for samples of no size.
    pub fn shuffled(size: usize) -> Option<Pipeline> {
        Pipeline::new(vec![ChunkFilter::Shuffle, ChunkFilter::Compressed(Compressor::Zlib)], size)
    }

    /// Reports whether there are no filters.
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }

    /// Decodes the stored bytes in `buffers` in place to `length` bytes, of which at least the `wanted` ones are valid.
    /// The bits of `skipped` mark filters that were not applied to this chunk.
    ///
    /// # Errors
    /// When the bytes are damaged.
    pub fn decode(
        &self,
        skipped: u32,
        buffers: &mut DecodeBuffers,
        length: usize,
        wanted: &Range<usize>,
    ) -> Result<(), DecodeError> {
        let applied: Vec<ChunkFilter> = (0..)
            .zip(&self.filters)
            .filter(|(number, _)| skipped >> number & 1 == 0)
            .map(|(_, filter)| *filter)
            .collect();
        for (place, filter) in applied.iter().enumerate().rev() {
            match filter {
                ChunkFilter::Fletcher32 => check(&mut buffers.bytes)?,
                ChunkFilter::Shuffle => {
                    let DecodeBuffers { bytes, other, .. } = &mut *buffers;
                    other.resize(bytes.len(), 0);
                    bytes_back(self.size, bytes, other);
                    std::mem::swap(bytes, other);
                }
                ChunkFilter::Compressed(compressor) => {
                    let checksums = applied[..place].iter().filter(|&&filter| filter == ChunkFilter::Fletcher32);
                    let length = length + 4 * checksums.count();
                    // filters applied earlier need all bytes
                    let wanted = if place == 0 { wanted } else { &(0..length) };
                    buffers.decompress(*compressor, length, wanted)?;
                }
            }
        }
        if buffers.bytes.len() == length { Ok(()) } else { Err(DecodeError::Length) }
    }
}

/// Compresses samples of `size` bytes with the filters of [`Pipeline::shuffled`]: first the first byte of every sample,
/// then the second, and so on.
///
/// # Errors
/// Errors of the encoder.
pub fn shuffled(samples: &[u8], size: usize) -> io::Result<Vec<u8>> {
    /// Number of samples whose bytes are sorted at once.
    const PIECE: usize = 1 << 16;
    let mut encoder = zlib_encoder();
    let mut sorted = Vec::with_capacity(PIECE);
    for place in 0..size {
        for piece in samples.chunks(PIECE * size) {
            sorted.clear();
            sorted.extend(piece.iter().skip(place).step_by(size));
            encoder.write_all(&sorted)?;
        }
    }
    encoder.finish()
}

/// Verifies the checksum at the end and removes it.
fn check(bytes: &mut Vec<u8>) -> Result<(), DecodeError> {
    let (data, stored) = bytes.split_last_chunk().ok_or(DecodeError::Short)?;
    let (sum, stored) = (fletcher32(data), u32::from_le_bytes(*stored));
    // early versions of the library swapped the bytes of both halves
    let early = (sum & 0x00ff_00ff) << 8 | sum >> 8 & 0x00ff_00ff;
    if stored != sum && stored != early {
        return Err(DecodeError::Checksum);
    }
    bytes.truncate(bytes.len() - 4);
    Ok(())
}

/// Fletcher's checksum of big-endian words of 16 bits, modulo 65535, as HDF5 computes it.
fn fletcher32(data: &[u8]) -> u32 {
    /// Number of words whose sums fit 32 bits.
    const WORDS: usize = 360;
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (mut first, mut second) = (0u32, 0u32);
    let (words, last) = data.split_at(data.len() / 2 * 2);
    for words in words.chunks(2 * WORDS) {
        for word in words.chunks_exact(2) {
            first += u32::from(word[0]) << 8 | u32::from(word[1]);
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    if let [last] = last {
        first += u32::from(*last) << 8;
        second += first;
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
}
