//! Source of the kernels for sums over columns and corrections of single values.

use super::super::files::{COLUMN_SUMS, COMMON, SINOGRAMS};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, power_of_two_group};
use crate::error::Result;
use crate::facts::DeviceFacts;

/// Work-group sizes of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSumGroup {
    /// Number of items in one row.
    pub items: usize,
    /// Number of columns, and of items for each.
    pub tile: [usize; 2],
}

impl ColumnSumGroup {
    /// Returns the sizes for a device.
    pub fn new(facts: &DeviceFacts) -> Self {
        let columns = power_of_two_group(facts, 32);
        let parts = power_of_two_group(facts, 8 * columns) / columns;
        ColumnSumGroup { items: power_of_two_group(facts, 128), tile: [columns, parts] }
    }
}

/// Returns the source of the kernels; `alive` is the number of projections over which changes are measured.
pub fn generate_column_sums(group: ColumnSumGroup, alive: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", group.items as u32)?;
    defines.number("COLUMNS", group.tile[0] as u32)?;
    defines.number("PARTS", group.tile[1] as u32)?;
    defines.number("ALIVE", alive as u32)?;
    let (name, options) = ("column-sums".to_owned(), vec!["-cl-std=CL1.1".to_owned()]);
    let files = [COMMON, SINOGRAMS, COLUMN_SUMS];
    Ok(assemble(name, &defines, &files, options, "sum_columns", LaunchShape::NONE))
}
