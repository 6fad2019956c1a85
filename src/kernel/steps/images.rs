//! Sources of the kernels that work on rows of projections as images: rotation, and filters in two dimensions.

use super::super::files::{BUTTERFLIES, COMMON, FILTER_IMAGES, IMAGE_PLACES, ROTATE_ROWS, TRANSFORM_ROW, WHOLE_IMAGES};
use super::super::source::{LaunchShape, assemble};
use super::groups::power_of_two;
use super::{Defines, KernelSource, StepSizes, StepTarget};
use crate::error::Result;
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

/// Returns the source of the kernels for rows of images, which transform them forward and back.
pub fn generate_image_rows(groups: ImageGroups) -> Result<KernelSource> {
    generate(format!("image-rows-{}", groups.width), groups.width, groups.rows, groups.row_parts, false)
}

/// Returns the source of the kernel for columns of images.
pub fn generate_image_columns(groups: ImageGroups) -> Result<KernelSource> {
    // half of the local memory, so that more neighbouring columns are read together
    generate(format!("image-columns-{}", groups.height), groups.height, groups.columns, 2, true)
}

fn generate(name: String, length: usize, lines: usize, parts: u32, columns: bool) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("LENGTH", length as u32)?;
    defines.number("LINES", lines as u32)?;
    defines.number("PARTS", parts)?;
    defines.switch("COLUMNS", columns)?;
    defines.number("ROOM_STRIDE", if columns { lines as u32 } else { 1 })?;
    let entry = if columns { "filter_image_columns" } else { "transform_image_rows" };
    let files = [COMMON, BUTTERFLIES, TRANSFORM_ROW, IMAGE_PLACES, FILTER_IMAGES];
    Ok(assemble(name, &defines, &files, vec!["-cl-std=CL1.1".to_owned()], entry, LaunchShape::NONE))
}

/// Returns the work-group size of the kernels for images that a library transforms, whose width is a power of two.
pub fn whole_image_group(target: StepTarget) -> usize {
    power_of_two(target.row_group().min(IMAGE_LENGTHS[0]))
}

/// Returns the source of the kernels that make, filter and store images that a library transforms.
pub fn generate_whole_images(target: StepTarget) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", whole_image_group(target) as u32)?;
    let files = [COMMON, IMAGE_PLACES, WHOLE_IMAGES];
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("whole-images".to_owned(), &defines, &files, options, "make_images", LaunchShape::NONE))
}

/// Returns the source of the kernel that rotates rows.
pub fn generate_rotation(target: StepTarget) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", target.row_group() as u32)?;
    let files = [COMMON, ROTATE_ROWS];
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("rotate-rows".to_owned(), &defines, &files, options, "rotate_rows", LaunchShape::NONE))
}

#[cfg(test)]
mod tests {
    use super::super::groups::of;
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
