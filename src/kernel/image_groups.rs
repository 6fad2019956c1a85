//! The division of images, whose lines are transformed, among work-items.

use super::step_sizes::power_of_two;
use super::{StepSizes, StepTarget};
use crate::facts::DeviceFacts;

/// Shortest and longest length of a row or column of an image; lengths are powers of two.
pub const IMAGE_LENGTHS: [usize; 2] = [64, 16384];
/// Number of values of a line that an item holds.
const POINTS: usize = 16;
/// Smallest number of work-items of a work-group, for short lines.
const LEAST_ITEMS: usize = 64;

/// The division of the lines of an image of `width` x `height` among work-items on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageGroups {
    pub width: usize,
    pub height: usize,
    /// Number of rows of a work-group.
    pub rows: usize,
    /// Number of columns of a work-group.
    pub columns: usize,
    /// Number of parts in which values of a row are exchanged: 1, or 2 in half of the memory.
    row_parts: u32,
}

impl ImageGroups {
    /// Reports whether a device has the local memory and the work-items for lines of these lengths.
    pub fn fit(facts: &DeviceFacts, width: usize, height: usize) -> bool {
        ImageGroups::new(StepTarget { facts, sizes: &StepSizes::default() }, width, height).is_some()
    }

    /// Returns the division; `None` for a device without the local memory or the work-items for lines of these lengths.
    pub fn new(StepTarget { facts, sizes }: StepTarget, width: usize, height: usize) -> Option<Self> {
        let [least, most] = IMAGE_LENGTHS;
        let (local, group) = (facts.local_memory as usize, facts.max_work_group);
        let items = |length: usize| length / POINTS;
        // real parts, with a gap after every sixteen values
        let bytes = |length: usize| 4 * (length + length / 16);
        let fits = |&length: &usize| {
            length.is_power_of_two()
                && (least..=most).contains(&length)
                && items(length) <= group
                && bytes(length) <= local
        };
        if ![width, height].iter().all(fits) {
            return None;
        }
        let row_parts = if 2 * bytes(width) <= local { 1 } else { 2 };
        let rows = LEAST_ITEMS.div_ceil(items(width)).min(local / (2 * bytes(width))).max(1);
        let side_by_side = |&columns: &usize| {
            columns * items(height) <= group.min(sizes.image_items as usize) && columns * bytes(height) <= local
        };
        let columns = std::iter::successors(Some(sizes.image_columns as usize), |columns| Some(columns / 2));
        let columns = columns.take_while(|columns| *columns > 0).find(side_by_side).unwrap_or(1);
        let rows = rows.min((group / items(width)).max(1));
        let rows = power_of_two(rows);
        Some(ImageGroups { width, height, rows, columns, row_parts })
    }

    /// Returns the number of parts in which values of a row are exchanged.
    pub fn row_parts(&self) -> u32 {
        self.row_parts
    }

    /// Returns the number of work-items of a line of `length`.
    pub fn items(length: usize) -> usize {
        length / POINTS
    }
}

#[cfg(test)]
mod tests {
    use super::super::step_sizes::of;
    use super::*;
    use crate::facts::example;

    #[test]
    fn groups_fit_the_device() {
        for (local_memory, max_work_group) in [(16 << 10, 256), (32 << 10, 256), (48 << 10, 1024), (64 << 10, 4096)] {
            let facts = DeviceFacts { local_memory, max_work_group, ..example() };
            for width in [64, 256, 2048, 4096, 8192] {
                for height in [64, 128, 512, 1024, 4096] {
                    let Some(groups) = ImageGroups::new(of(&facts), width, height) else {
                        assert!(width.max(height) * 17 / 4 > local_memory as usize, "{width} x {height}");
                        continue;
                    };
                    let rows = groups.rows * width * 17 / 4 * (3 - groups.row_parts as usize);
                    let columns = groups.columns * height * 17 / 4;
                    assert!(rows.max(columns) <= local_memory as usize, "{groups:?}");
                    assert!(groups.rows * width / 16 <= max_work_group, "{groups:?}");
                    assert!(groups.columns * height / 16 <= max_work_group, "{groups:?}");
                }
            }
        }
        assert!(ImageGroups::new(of(&example()), 100, 64).is_none());
        assert!(ImageGroups::new(of(&example()), 64, 32).is_none());
    }
}
