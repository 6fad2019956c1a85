//! Source of the kernels that count the values of slices.

use super::super::files::{COMMON, FLOAT_ORDER, HISTOGRAM};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, power_of_two_group};
use crate::error::Result;
use crate::facts::DeviceFacts;

/// Largest work-group of the kernel that counts.
const COUNTING_GROUP: usize = 256;

/// Returns the work-group size of the kernel that counts.
pub fn counting_group(facts: &DeviceFacts) -> usize {
    power_of_two_group(facts, COUNTING_GROUP)
}

/// Returns the source of the kernels that count the values of slices in `bins` bins, and sum rows in `lanes` lanes.
pub fn generate_histogram(facts: &DeviceFacts, bins: usize, lanes: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("BINS", bins as u32)?;
    defines.number("GROUP", counting_group(facts) as u32)?;
    defines.number("LANES", lanes as u32)?;
    // room for the counts, and for the little that the driver takes
    defines.switch("LOCAL_COUNTS", facts.local_memory >= (5 * bins) as u64)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    let files = [COMMON, FLOAT_ORDER, HISTOGRAM];
    Ok(assemble("histogram".to_owned(), &defines, &files, options, "row_moments", LaunchShape::NONE))
}
