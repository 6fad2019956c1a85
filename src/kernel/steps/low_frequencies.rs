//! Source of the kernels that find the low frequencies of columns.

use super::super::files::{COMMON, LOW_FREQUENCIES};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, power_of_two_group};
use crate::error::Result;
use crate::facts::DeviceFacts;

/// Largest number of frequencies whose sums an item has in registers.
const MOST_FREQUENCIES: usize = 8;
/// Bytes of local memory that some devices need for a kernel's arguments.
const RESERVED: usize = 512;

/// The values that a work-group computes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrequencyGroup {
    pub columns: usize,
    /// Number of items for each column.
    pub parts: usize,
    pub samples: usize,
    pub frequencies: usize,
}

impl FrequencyGroup {
    /// Returns the group for `count` frequencies on a device. It does not depend on the number of slices, so neither do
    /// the sums.
    pub fn new(facts: &DeviceFacts, count: usize) -> Self {
        let columns = power_of_two_group(facts, 64);
        let parts = power_of_two_group(facts, 4 * columns) / columns;
        let samples = 32;
        // a tile of waves, rows of samples
        let rest = (facts.local_memory as usize).saturating_sub(4 * samples + RESERVED);
        let most = (rest / (8 * samples * parts)).clamp(1, MOST_FREQUENCIES) * parts;
        let frequencies = count.div_ceil(count.div_ceil(most)).next_multiple_of(parts);
        FrequencyGroup { columns, parts, samples, frequencies }
    }
}

/// Returns the source of the kernels for columns.
pub fn generate_low_frequencies(group: FrequencyGroup) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("COLUMNS", group.columns as u32)?;
    defines.number("PARTS", group.parts as u32)?;
    defines.number("SAMPLES", group.samples as u32)?;
    defines.number("FREQUENCIES", group.frequencies as u32)?;
    let (name, options) = (format!("low-frequencies-{}", group.frequencies), vec!["-cl-std=CL1.1".to_owned()]);
    Ok(assemble(name, &defines, &[COMMON, LOW_FREQUENCIES], options, "find_frequencies", LaunchShape::NONE))
}
