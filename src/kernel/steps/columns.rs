//! Source of the kernels that sort the columns of sinograms.

use super::super::files::{COLUMNS, COMMON, FLOAT_ORDER, SINOGRAMS};
use super::super::source::{LaunchShape, assemble};
use super::groups::power_of_two;
use super::{Defines, KernelSource, StepTarget, power_of_two_group};
use crate::error::Result;

/// Number of values that an item sorts.
const POINTS_OF_AN_ITEM: usize = 8;

/// The division of columns of some length among work-groups that sort them on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSort {
    /// Number of values that are sorted in local memory: a complete column, or a tile of it.
    pub points: usize,
    /// Number of columns of a work-group.
    pub columns: usize,
    /// Work-group sizes of the kernels that transpose; the first is the side of a tile.
    pub tile: [usize; 2],
    /// Work-group size of the other kernels.
    pub group: usize,
    /// Bytes of the number of a projection.
    pub index_bytes: usize,
}

impl ColumnSort {
    /// Returns the division for columns of `length` values on a device.
    pub fn new(target: StepTarget, length: usize) -> Self {
        let StepTarget { facts, sizes } = target;
        let whole = length.next_power_of_two().clamp(POINTS_OF_AN_ITEM, sizes.sort_values as usize);
        let mut points = POINTS_OF_AN_ITEM * power_of_two_group(facts, whole / POINTS_OF_AN_ITEM);
        while points > POINTS_OF_AN_ITEM && Self::bytes(points) > facts.local_memory as usize {
            points /= 2;
        }
        let least_points = POINTS_OF_AN_ITEM * power_of_two_group(facts, sizes.sort_items as usize);
        let columns = power_of_two((least_points / points).min(facts.local_memory as usize / Self::bytes(points)));
        let side = power_of_two_group(facts, 32);
        ColumnSort {
            points,
            columns,
            tile: [side, power_of_two_group(facts, 8 * side) / side],
            group: target.row_group(),
            index_bytes: Self::index_bytes(length),
        }
    }

    /// Returns the bytes of the number of a projection among `length` ones.
    pub fn index_bytes(length: usize) -> usize {
        if length <= 1 << 16 { 2 } else { 4 }
    }

    /// Returns the number of work-items of a work-group that sorts.
    pub fn items(&self) -> usize {
        self.points / POINTS_OF_AN_ITEM * self.columns
    }

    /// Returns the bytes of local memory for `points` values, with a gap after every sixteen.
    fn bytes(points: usize) -> usize {
        8 * (points + points / 16)
    }
}

/// Returns the source of the kernels that sort columns.
pub fn generate_columns(sort: ColumnSort) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("POINTS", sort.points as u32)?;
    defines.number("COLUMNS", sort.columns as u32)?;
    defines.word("INDEX", if sort.index_bytes == 2 { "ushort" } else { "uint" })?;
    defines.number("TILE", sort.tile[0] as u32)?;
    defines.number("TILE_ROWS", sort.tile[1] as u32)?;
    defines.number("GROUP", sort.group as u32)?;
    let (name, options) = (format!("columns-{}", sort.points), vec!["-cl-std=CL1.1".to_owned()]);
    let files = [COMMON, SINOGRAMS, FLOAT_ORDER, COLUMNS];
    Ok(assemble(name, &defines, &files, options, "sort_columns", LaunchShape::NONE))
}
