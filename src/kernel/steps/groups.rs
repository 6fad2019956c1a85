//! Work-groups that suit a device.

use super::ROW_GROUP;
use crate::facts::DeviceFacts;

/// Work-group of the kernels that work along a row of a sinogram, on a device.
pub fn row_group(facts: &DeviceFacts) -> usize {
    ROW_GROUP.min(facts.max_work_group)
}

/// Largest work-group of at most `most` items on a device that is a power of two.
pub fn power_of_two_group(facts: &DeviceFacts, most: usize) -> usize {
    power_of_two(most.min(facts.max_work_group))
}

/// The largest power of two that is at most `most`, 1 for 0.
pub(super) fn power_of_two(most: usize) -> usize {
    1 << most.max(1).ilog2()
}
