//! Source of the kernel that replaces outliers among the samples of projections.

use super::super::files::{COMMON, FLOAT_ORDER, REMOVE_OUTLIERS, SAMPLES};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, SampleForm, StepTarget};
use crate::error::Result;

/// Bytes of local memory of a work-group above which half of the memory is left to another one.
const LEAST_MEMORY: usize = 16 << 10;
/// Bytes of local memory that some devices need for a kernel's arguments.
const RESERVED: usize = 512;

/// The operation of the kernel on a projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierKernel {
    pub samples: SampleForm,
    /// Number of rows and bins of a neighbourhood, an odd number.
    pub size: usize,
    /// True if dark pixels are replaced as well.
    pub both: bool,
    /// True if saturated samples are counted.
    pub saturation: bool,
    pub tile: OutlierTile,
}

/// The pixels of a work-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierTile {
    /// Number of bins, and of work-items.
    pub group: usize,
    pub rows: usize,
}

impl OutlierTile {
    /// Returns the tile for neighbourhoods of `size` x `size` pixels and up to `piece` rows at once.
    pub fn new(StepTarget { facts, sizes }: StepTarget, size: usize, piece: usize) -> Self {
        let memory = facts.local_memory as usize;
        let room = (memory / 2).max(memory.min(LEAST_MEMORY)).saturating_sub(RESERVED) / 4;
        // pixels with their surroundings, and two counts per row
        let rows_of = |group: usize| {
            let width = group + size - 1;
            room.saturating_sub(width * (size - 1)) / (width + 2)
        };
        let mut group = (sizes.outlier_items as usize).min(facts.max_work_group.max(1));
        while group > 1 && rows_of(group) == 0 {
            group /= 2;
        }
        let most = rows_of(group).clamp(1, sizes.outlier_rows as usize);
        // parts of about the same height
        OutlierTile { group, rows: piece.max(1).div_ceil(piece.max(1).div_ceil(most)) }
    }
}

/// Returns the source of the kernel that replaces outliers.
pub fn generate_outliers(kernel: OutlierKernel) -> Result<KernelSource> {
    let OutlierKernel { samples, size, both, saturation, tile } = kernel;
    let mut defines = Defines::default();
    samples.define(&mut defines)?;
    defines.number("SIZE", size as u32)?;
    defines.switch("BOTH", both)?;
    defines.switch("SATURATION", saturation)?;
    defines.number("GROUP", tile.group as u32)?;
    defines.number("ROWS", tile.rows as u32)?;
    let sides = [tile.group as u32, 1];
    Ok(assemble(
        format!("remove-outliers-{size}"),
        &defines,
        &[COMMON, FLOAT_ORDER, SAMPLES, REMOVE_OUTLIERS],
        vec!["-cl-std=CL1.1".to_owned()],
        "remove_outliers",
        LaunchShape { work_group: sides, block: [sides[0], tile.rows as u32] },
    ))
}

#[cfg(test)]
mod tests {
    use super::super::groups::of;
    use super::*;
    use crate::facts::{DeviceFacts, example};

    #[test]
    fn tiles_fit_the_local_memory() {
        for (local_memory, max_work_group) in [(16 << 10, 64), (16 << 10, 1), (32 << 10, 256), (48 << 10, 1024)] {
            let facts = DeviceFacts { local_memory, max_work_group, ..example() };
            for size in (3..=15).step_by(2) {
                for piece in [0, 1, 7, 33, 2048] {
                    let tile = OutlierTile::new(of(&facts), size, piece);
                    let bytes = 4 * ((tile.group + size - 1) * (tile.rows + size - 1) + 2 * tile.rows);
                    assert!(bytes as u64 <= local_memory, "{tile:?}: {bytes} bytes for {size}");
                    assert!(tile.group <= max_work_group && tile.rows <= piece.max(1), "{tile:?}");
                }
            }
        }
        let tile =
            |size, piece| OutlierTile::new(of(&DeviceFacts { local_memory: 48 << 10, ..example() }), size, piece);
        assert_eq!(tile(3, 64), OutlierTile { group: 128, rows: 32 });
        assert_eq!(tile(3, 33), OutlierTile { group: 128, rows: 17 });
        assert_eq!(tile(15, 2048), OutlierTile { group: 128, rows: 27 });
    }
}
