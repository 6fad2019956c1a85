//! Sources of the kernels that find slices with a small total variation.

use crate::error::Result;
use crate::kernel::{
    BUTTERFLIES, COMMON, ClFile, Defines, ImageGroups, KernelSource, LaunchShape, StepTarget, TRANSFORM_ROW, assemble,
    cl_file, power_of_two_group,
};

const SPLIT_STATE: ClFile = cl_file!("split_state.cl");
const SPLIT_LINES: ClFile = cl_file!("split_lines.cl");
const SPLIT_IMAGES: ClFile = cl_file!("split_images.cl");
/// The files of the programs, in order: lines of images, and images pixel by pixel.
pub(crate) const FILES: &[&[ClFile]] =
    &[&[COMMON, BUTTERFLIES, TRANSFORM_ROW, SPLIT_STATE, SPLIT_LINES], &[COMMON, SPLIT_STATE, SPLIT_IMAGES]];

/// Largest number of work-items of a work-group of the kernels that compute pixel by pixel.
const PIXELS: usize = 128;

/// The division of images of `side x side` pixels among work-items on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitGroups {
    pub side: usize,
    /// Of lines of the image, and of lines of twice the length.
    pub lines: [ImageGroups; 2],
    /// Number of work-items of a work-group that computes pixel by pixel; it divides the side.
    pub pixels: usize,
}

impl SplitGroups {
    /// Returns the division; `None` for a device without the local memory or the work-items for lines of twice the side,
    /// and for a side that is not a power of two.
    pub fn new(target: StepTarget, side: usize) -> Option<Self> {
        let lines = [side, 2 * side].map(|length| ImageGroups::new(target, length, length));
        let [Some(once), Some(twice)] = lines else { return None };
        let pixels = power_of_two_group(target.facts, PIXELS.min(side));
        // a pair of rows has two values of every item in local memory, columns have so many, too
        let fits = |groups: &ImageGroups| groups.rows <= side / 2;
        [once, twice].iter().all(fits).then_some(SplitGroups { side, lines: [once, twice], pixels })
    }

    /// Returns the number of work-groups that transform the columns of an image; with `padded`, of one with twice the side.
    pub fn column_groups(&self, padded: bool) -> usize {
        let lines = self.lines[usize::from(padded)];
        (lines.width / 2 + 1).div_ceil(lines.columns)
    }
}

/// Returns the source of the kernels for rows, or of the one for columns. With `padded`, they are of twice the side.
pub fn generate_split_lines(groups: SplitGroups, padded: bool, columns: bool) -> Result<KernelSource> {
    let lines = groups.lines[usize::from(padded)];
    let mut defines = Defines::default();
    defines.number("LENGTH", lines.width as u32)?;
    defines.number("SIDE", groups.side as u32)?;
    defines.switch("COLUMNS", columns)?;
    // columns exchange real parts in half of the local memory, so that more neighbours are read together
    let (together, parts, stride) = match columns {
        true => (lines.columns, 2, lines.columns),
        false => (lines.rows, lines.row_parts(), 1),
    };
    defines.number("LINES", together as u32)?;
    defines.number("PARTS", parts)?;
    defines.number("ROOM_STRIDE", stride as u32)?;
    let (word, entry) = match columns {
        true => ("columns", "transform_split_columns"),
        false => ("rows", "transform_split_rows"),
    };
    Ok(assemble(
        format!("split-{word}-{}-{}", groups.side, lines.width),
        &defines,
        FILES[0],
        vec!["-cl-std=CL1.1".to_owned()],
        entry,
        LaunchShape::NONE,
    ))
}

/// Returns the source of the kernels that compute pixel by pixel.
pub fn generate_split_images(groups: SplitGroups) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("SIDE", groups.side as u32)?;
    defines.number("GROUP", groups.pixels as u32)?;
    Ok(assemble(
        format!("split-images-{}", groups.side),
        &defines,
        FILES[1],
        vec!["-cl-std=CL1.1".to_owned()],
        "move_split",
        LaunchShape::NONE,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{DeviceFacts, example};
    use crate::kernel::StepSizes;

    #[test]
    fn lines_of_twice_the_side_fit_the_device() {
        let facts = DeviceFacts { local_memory: 48 << 10, max_work_group: 1024, ..example() };
        let groups = SplitGroups::new(StepTarget { facts: &facts, sizes: &StepSizes::default() }, 2048).unwrap();
        assert_eq!((groups.lines[0].width, groups.lines[1].width, groups.pixels), (2048, 4096, 128));
        assert_eq!([groups.column_groups(false), groups.column_groups(true)], [1025usize.div_ceil(4), 1025]);
        assert!(SplitGroups::new(StepTarget { facts: &facts, sizes: &StepSizes::default() }, 3072).is_none());
        let small = DeviceFacts { local_memory: 16 << 10, max_work_group: 256, ..example() };
        assert!(SplitGroups::new(StepTarget { facts: &small, sizes: &StepSizes::default() }, 2048).is_none());
        assert!(SplitGroups::new(StepTarget { facts: &small, sizes: &StepSizes::default() }, 512).is_some());
    }
}
