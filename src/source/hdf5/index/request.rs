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

impl ChunkIndex {
    /// Returns the number of chunks along each dimension of the largest shape, and their product; unlimited dimensions
    /// count as 1.
    pub(super) fn grid(&self) -> Option<([u64; 3], u64)> {
        let along = |side: usize| self.limits[side].map_or(1, |limit| limit.div_ceil(self.chunk[side].max(1)));
        let grid = [along(0), along(1), along(2)];
        let all = grid.iter().try_fold(1u64, |all, &count| all.checked_mul(count))?;
        Some((grid, all))
    }

    /// Returns the position of the first value of the chunk `number` of a grid, whose numbers grow slowest along the
    /// dimension `slowest`.
    pub(super) fn first(&self, mut number: u64, grid: &[u64; 3], slowest: usize) -> Option<[u64; 3]> {
        let mut first = [0; 3];
        for side in (0..3).rev().filter(|&side| side != slowest) {
            first[side] = (number % grid[side]).checked_mul(self.chunk[side])?;
            number /= grid[side];
        }
        first[slowest] = number.checked_mul(self.chunk[slowest])?;
        Some(first)
    }
}
