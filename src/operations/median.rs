//! Defines of a running median.

use crate::error::Result;
use crate::kernel::Defines;

/// Largest window that an item keeps in registers.
const MOST_SORTED: usize = 63;

/// Adds the defines for windows of `size` values, an odd number, along rows of `transposed` images or lines in local
/// memory.
pub(super) fn define_median(defines: &mut Defines, size: usize, transposed: bool) -> Result<()> {
    defines.number("SIZE", size as u32)?;
    defines.switch("SORTED", size <= MOST_SORTED)?;
    defines.switch("TRANSPOSED", transposed)
}
