//! What is known of a dataset whose chunks are listed, and what is listed of each.

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

impl ChunkIndex {
    /// Numbers of chunks along the dimensions of the largest shape, and that of all; 1 along one without a limit.
    pub(super) fn grid(&self) -> Option<([u64; 3], u64)> {
        let along = |side: usize| self.limits[side].map_or(1, |limit| limit.div_ceil(self.chunk[side].max(1)));
        let grid = [along(0), along(1), along(2)];
        let all = grid.iter().try_fold(1u64, |all, &count| all.checked_mul(count))?;
        Some((grid, all))
    }

    /// Position of the first value of a chunk, by its number among the chunks of `grid`, of which the dimension `slowest` comes
    /// first.
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
