//! Sizes of the work-groups of steps, which a profile may choose within the limits of a device.

use super::parameter::parameters;
use crate::facts::DeviceFacts;

parameters! {
    /// Sizes of the work-groups of steps, and with them their local memory. They affect speed only, but for
    /// `lamino-slices`, which affects rounding, too; a device's own limits are kept.
    pub struct StepSizes {
        /// Values of a column that a work-group sorts in local memory, 8 by each work-item; longer columns are merged from
        /// such parts.
        sort_values: u32 = 8192, Domain::one_of(&[512, 1024, 2048, 4096, 8192]);
        /// Fewest work-items of a work-group that sorts; it sorts several short columns.
        sort_items: u32 = 128, Domain::one_of(&[32, 64, 128, 256]);
        /// Work-items of a work-group along a row: running medians, fits, wavelets, rotation, binning.
        row_items: u32 = 64, Domain::one_of(&[32, 64, 128, 256]);
        /// Pixels along a row in which a work-group looks for outliers, one by each work-item.
        outlier_items: u32 = 128, Domain::one_of(&[32, 64, 128, 256]);
        /// Most rows in which a work-group looks for outliers.
        outlier_rows: u32 = 32, Domain::one_of(&[4, 8, 16, 32, 64]);
        /// Most columns of an image that a work-group transforms.
        image_columns: u32 = 16, Domain::one_of(&[2, 4, 8, 16, 32]);
        /// Most work-items of a work-group that transforms columns of an image.
        image_items: u32 = 512, Domain::one_of(&[128, 256, 512, 1024]);
        /// Most slices about an inclined axis that a work-item sums. Their rounding depends on it.
        lamino_slices: u32 = 16, Domain::one_of(&[8, 16, 32]);
    }
}

/// The device and the sizes that the work-groups of steps are made for.
#[derive(Clone, Copy, Debug)]
pub struct StepTarget<'a> {
    pub facts: &'a DeviceFacts,
    pub sizes: &'a StepSizes,
}

impl StepTarget<'_> {
    /// Returns the work-group size of the kernels that work along a row of a sinogram.
    pub fn row_group(&self) -> usize {
        (self.sizes.row_items as usize).min(self.facts.max_work_group)
    }
}

/// Returns the largest work-group of at most `most` items on a device that is a power of two.
pub fn power_of_two_group(facts: &DeviceFacts, most: usize) -> usize {
    power_of_two(most.min(facts.max_work_group))
}

/// Returns the largest power of two that is at most `most`; 1 for 0.
pub fn power_of_two(most: usize) -> usize {
    1 << most.max(1).ilog2()
}

/// Returns a target with the default sizes.
#[cfg(test)]
pub fn of(facts: &DeviceFacts) -> StepTarget<'_> {
    static SIZES: std::sync::LazyLock<StepSizes> = std::sync::LazyLock::new(StepSizes::default);
    StepTarget { facts, sizes: &SIZES }
}
