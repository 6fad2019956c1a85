//! Properties of a dataset whose chunks are listed, and of each listed chunk.

/// Chunk as it is stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedChunk {
    /// Position of its first value: frame, row and bin.
    pub first: [u64; 3],
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Number of bytes as the chunk is stored.
    pub size: u64,
    /// Bit mask of the filters that were not applied to the chunk.
    pub skipped: u32,
}

/// Properties of a dataset whose chunks are listed. For a dataset of two dimensions, the first side is 1.
#[derive(Clone, Copy, Debug)]
pub struct ChunkIndex {
    /// Address of the header of the dataset.
    pub header: u64,
    /// Number of dimensions.
    pub rank: usize,
    pub shape: [u64; 3],
    /// Largest shape that the dataset may get; `None` for a side without a limit.
    pub limits: [Option<u64>; 3],
    pub chunk: [u64; 3],
    /// Number of bytes of a chunk before filters.
    pub bytes: u64,
    /// Number of chunks that were written.
    pub count: usize,
}

/// Numbering of the chunks of a dataset.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkGrid {
    /// Number of chunks along each dimension.
    counts: [u64; 3],
    /// Dimension along which the number of a chunk grows slowest.
    slowest: usize,
    /// Number of all chunks.
    pub all: u64,
    /// Sides of a chunk.
    chunk: [u64; 3],
}

impl ChunkIndex {
    /// Returns the numbering of the chunks of the largest shape: numbers grow slowest along the first dimension without
    /// a limit, of which the present side counts.
    pub(super) fn grid(&self) -> Option<ChunkGrid> {
        let along = |side: usize| self.limits[side].unwrap_or(self.shape[side]).div_ceil(self.chunk[side].max(1));
        let counts = [along(0), along(1), along(2)];
        let all = counts.iter().try_fold(1u64, |all, &count| all.checked_mul(count))?;
        let slowest = self.limits.iter().position(Option::is_none).unwrap_or(0);
        Some(ChunkGrid { counts, slowest, all, chunk: self.chunk })
    }
}

impl ChunkGrid {
    /// Returns the position of the first value of the chunk with this number.
    pub fn first(&self, mut number: u64) -> Option<[u64; 3]> {
        let mut first = [0; 3];
        for side in (0..3).rev().filter(|&side| side != self.slowest) {
            first[side] = (number % self.counts[side]).checked_mul(self.chunk[side])?;
            number /= self.counts[side];
        }
        first[self.slowest] = number.checked_mul(self.chunk[self.slowest])?;
        Some(first)
    }
}
