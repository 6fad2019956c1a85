//! How the lines of a grid are transformed, and the source of these kernels.

use super::files::{
    BUTTERFLIES, COMMON, ClFile, GRID_LINES, LINES_VECTOR, MEMORY_HINTS, TRANSFORM_LINE, TRANSFORM_ROW,
};
use super::source::assemble;
use super::{
    Defines, GridItems, Gridding, ImageGroups, KernelSource, KernelSpec, LaunchShape, Parameters, StepSizes, StepTarget,
};
use crate::error::Result;
use crate::facts::DeviceFacts;

/// Bytes of the real parts of a line, with a gap after every sixteen.
fn line_bytes(length: usize) -> usize {
    4 * (length + length / 16)
}

/// How the lines of a grid are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridLines {
    /// In local memory; so many columns together, of which these share it at a time.
    Local { groups: ImageGroups, columns: usize, at_once: usize },
    /// By single items, in memory of their own.
    Cached { lengths: [usize; 2] },
}

impl GridLines {
    /// Returns how lines of a grid of these lengths are transformed; `None` where lines do not fit the device's local memory, if they are to be there.
    pub fn new(facts: &DeviceFacts, gridding: &Gridding, lengths: [usize; 2]) -> Option<GridLines> {
        if gridding.items == GridItems::Tiles {
            return Some(GridLines::Cached { lengths });
        }
        let [width, height] = lengths;
        let target = StepTarget { facts, sizes: &StepSizes::default() };
        let groups = ImageGroups::new(target, width, height)?;
        let halved = |most: usize| std::iter::successors(Some(most), |n| Some(n / 2)).take_while(|n| *n > 0);
        let items = |columns: &usize| columns * ImageGroups::items(height) <= facts.max_work_group;
        let columns = halved(gridding.columns as usize).find(items).unwrap_or(1);
        let local = facts.local_memory as usize;
        let at_once = halved(columns).find(|at_once| at_once * line_bytes(height) <= local)?;
        Some(GridLines::Local { groups, columns, at_once })
    }

    /// Source of the kernel for rows (`axis` 0) or columns of the grid.
    ///
    /// # Errors
    /// A define that is already set.
    pub fn generate(&self, spec: &KernelSpec, axis: usize) -> Result<KernelSource> {
        let columns = axis == 1;
        let mut defines = Defines::default();
        defines.switch("COLUMNS", columns)?;
        if let Parameters::Gridding(gridding) = &spec.parameters {
            defines.number("CELLS", gridding.tile)?;
        }
        if spec.accumulate && columns {
            defines.switch("ACCUMULATE", true)?;
        }
        let (length, files): (usize, &[ClFile]) = match self {
            GridLines::Local { groups, columns: together, at_once } => {
                defines.number("LINES", if columns { *together } else { groups.rows } as u32)?;
                defines.number("PARTS", if columns { 2 } else { groups.row_parts() })?;
                defines.number("ROOM_STRIDE", if columns { *at_once as u32 } else { 1 })?;
                defines.number("TAKE_TURNS", if columns { together / at_once } else { 1 } as u32)?;
                let length = if columns { groups.height } else { groups.width };
                (length, &[COMMON, BUTTERFLIES, TRANSFORM_ROW, GRID_LINES])
            }
            GridLines::Cached { lengths } => {
                defines.number("SLICES", spec.slices)?;
                defines.switch("VECTOR", true)?;
                defines.number("WORK_X", 1)?;
                defines.number("WORK_Y", 1)?;
                (lengths[axis], &[COMMON, MEMORY_HINTS, BUTTERFLIES, TRANSFORM_LINE, LINES_VECTOR])
            }
        };
        defines.number("LENGTH", length as u32)?;
        let (word, entry) = match columns {
            true => ("columns", "transform_grid_columns"),
            false => ("rows", "transform_grid_rows"),
        };
        let name = format!("grid-{word}-{length}-x{}", spec.slices);
        Ok(assemble(name, &defines, files, spec.compiler_options(), entry, LaunchShape::NONE))
    }
}

/// Lines that only larger work-groups and local memory hold: their length, with the bytes and work-items of devices that
/// have them.
const LONG_LINES: [(usize, u64, usize); 3] = [(4096, 32 << 10, 256), (8192, 48 << 10, 1024), (16384, 227 << 10, 1024)];

/// Programs for lines of grids on a device, each last step of the transform once; and with one slice, as they do not depend
/// on slices, for long lines on devices that hold these in local memory.
///
/// # Errors
/// None: every form is legal.
pub fn line_programs(spec: &KernelSpec, facts: &DeviceFacts) -> Result<Vec<KernelSource>> {
    let Parameters::Gridding(gridding) = &spec.parameters else { return Ok(Vec::new()) };
    let mut grids: Vec<_> =
        [[64, 64], [512, 1024], [2048, 4096], [8192, 8192]].map(|grid| (grid, facts.clone())).into();
    match gridding.items {
        GridItems::Tiles => grids.extend([[96, 192], [384, 768]].map(|grid| (grid, facts.clone()))),
        GridItems::Cells if spec.slices == 1 => {
            grids.extend(LONG_LINES.map(|(length, local_memory, max_work_group)| {
                ([length; 2], DeviceFacts { local_memory, max_work_group, ..facts.clone() })
            }));
        }
        GridItems::Cells => {}
    }
    let mut programs = Vec::new();
    for (lengths, facts) in grids {
        let Some(lines) = GridLines::new(&facts, gridding, lengths) else { continue };
        programs.extend([lines.generate(spec, 0)?, lines.generate(spec, 1)?]);
    }
    Ok(programs)
}
