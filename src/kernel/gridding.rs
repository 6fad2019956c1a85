//! Frequencies of filtered rows on a regular grid, which is transformed into slices.

use super::family::{Family, rule};
use super::files::{
    BUTTERFLIES, COMMON, ClFile, FILTER_SPECTRA, FILTER_SPECTRA_VECTOR, GRID_LINES, LINES_VECTOR, MEMORY_HINTS,
    PAD_ROWS, PADDING, PHASE, TRANSFORM_LINE, TRANSFORM_ROW, cl_file,
};
use super::grid_stages::GridTask;
use super::parameter::parameters;
use super::source::assemble;
use super::{
    Common, Constants, Defines, Hardware, ImageGroups, Interpolation, KernelSource, KernelSpec, LaunchShape, Load,
    Mode, Padding, ROW_GROUP, Reads, RowFilter, RowFilterMethod, Sampler, StepSizes, StepTarget, Storage, Texel,
};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::spectrum::stored_of;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use strum::VariantNames;

/// The part of the grid that a work-item computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum GridItems {
    /// A cell of a tile that its work-group computes together.
    Cells,
    /// A tile, with slices as the vector.
    Tiles,
}

parameters! {
    /// Parameters of gridding.
    pub struct Gridding {
        table common: Common = Common { constants: Constants::Global, ..Common::default() };
        /// What a work-item computes: `cells`, where a work-group computes a tile and lines of the grid are transformed
        /// in local memory; or `tiles`, with vectors of slices and lines transformed in the cache, for CPUs.
        items: GridItems = GridItems::Cells, Domain::words::<GridItems>().tries::<GridItems>(&[]);
        /// Side in cells of a tile; 32 only with `tiles`.
        tile: u32 = 8, Domain::one_of(&[8, 16, 32]);
        /// Cells in a column of a tile that an item computes with `cells`, which share what is read of a sample.
        rows: u32 = 2, Domain::one_of(&[1, 2, 4]);
        /// Pairs of columns that a work-group transforms with `cells`, if it has enough items; neighbouring columns are
        /// read together.
        columns: u32 = 2, Domain::one_of(&[1, 2, 4, 8]);
    }
}

/// Largest number of samples of a segment that a work-group of `cells` takes at a time.
const SAMPLES: u32 = 16;

/// Largest number of samples of a segment that an item takes.
const MOST_SAMPLES: u32 = 240;

/// Divisor of the width and height in pixels of a band of a slice, where memory does not hold a whole slice.
const BAND: u32 = 64;

impl Gridding {
    /// Returns the largest number of samples of a segment.
    pub fn samples(&self) -> u32 {
        match self.items {
            GridItems::Cells => SAMPLES,
            GridItems::Tiles => MOST_SAMPLES,
        }
    }

    /// Returns the parameters for a device without local memory for lines of this length: as on CPUs.
    pub fn in_cache(&self) -> Gridding {
        Gridding { items: GridItems::Tiles, ..self.clone() }
    }
}

impl Family for Gridding {
    fn meaning(&self) -> &'static str {
        "exact interpolation, by spreading frequencies over a grid that is transformed: O(N^2 log N) (section 2)"
    }

    fn notes(&self) -> &'static str {
        "Only for interpolation `exact`. `common` must have `storage = \"float\"` and `sampler = \"buffer\"`."
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn start(_: Mode) -> Self {
        Gridding::default()
    }

    fn suits(&self, _: &Hardware, _: &DeviceFacts) -> bool {
        true
    }

    fn slices(&self) -> RangeInclusive<u32> {
        1..=16
    }

    fn fixed(&self) -> &'static [&'static str] {
        &["common.sampler", "common.storage", "common.unroll", "common.constants", "common.packed-constants"]
    }

    fn check(&self, slices: &[u32]) -> Result<(), String> {
        rule(self.common.storage == Storage::Float, "a gridding kernel reads floats: storage must be `float`")?;
        rule(self.common.sampler == Sampler::Buffer, "a gridding kernel reads a buffer: sampler must be `buffer`")?;
        let many = slices.iter().any(|&slices| slices > 8);
        rule(!many || self.items == GridItems::Cells, "16 slices need items = \"cells\"")?;
        rule(self.tile <= 16 || self.items == GridItems::Tiles, "tile 32 needs items = \"tiles\"")
    }

    fn files(&self) -> &'static [ClFile] {
        match self.items {
            GridItems::Cells => &[cl_file!("grid_cells.cl")],
            GridItems::Tiles => &[BUTTERFLIES, MEMORY_HINTS, cl_file!("grid_vector.cl")],
        }
    }

    fn files_around(&self) -> &'static [ClFile] {
        match self.items {
            GridItems::Cells => &[PADDING, PAD_ROWS, PHASE, BUTTERFLIES, TRANSFORM_ROW, FILTER_SPECTRA, GRID_LINES],
            GridItems::Tiles => &[PADDING, PHASE, TRANSFORM_LINE, FILTER_SPECTRA_VECTOR, LINES_VECTOR],
        }
    }

    fn define(&self, spec: &KernelSpec, defines: &mut Defines) -> Result<()> {
        defines.number("TILE", self.tile)?;
        defines.number("WIDTH", spec.bound.width)?;
        defines.number("DEGREE", spec.bound.width + 4)?;
        match self.items {
            GridItems::Cells => {
                defines.number("ROWS", self.rows)?;
                defines.number("SAMPLES", SAMPLES)
            }
            GridItems::Tiles => defines.switch("VECTOR", true),
        }
    }

    fn shape(&self, _: &KernelSpec) -> LaunchShape {
        let work_group = match self.items {
            GridItems::Cells => [self.tile, self.tile / self.rows],
            GridItems::Tiles => [1; 2],
        };
        LaunchShape { work_group, block: [BAND; 2] }
    }

    fn texels(&self, _: Interpolation, _: u32) -> Vec<Texel> {
        vec![Texel::Spectra { together: self.items == GridItems::Tiles }]
    }

    fn reads_between_bins(&self, _: Interpolation) -> bool {
        false
    }

    fn serves(&self, interpolation: Interpolation) -> bool {
        interpolation == Interpolation::Exact
    }

    fn reads(&self, _: Interpolation) -> Reads {
        Reads::Exact
    }

    /// Returns the load for slices of N x N pixels from N projections of N bins, with two cells per pixel, or 1.5 with
    /// `tiles`. The stages after the filter count as one.
    fn load(&self, spec: &KernelSpec) -> Load {
        let size = spec.size;
        let cells = match self.items {
            GridItems::Cells => 2 * size,
            GridItems::Tiles => size / 2 * 3,
        };
        let task = GridTask { bins: size, projections: size, region: [size; 2], lengths: [cells.max(2); 2] };
        let [_, spreading, rows, columns] = self.stages(spec, &task);
        (spreading.load + rows.load + columns.load) * (1.0 / (size as f64).powi(3))
    }

    fn local_memory(&self, spec: &KernelSpec) -> u64 {
        if self.items == GridItems::Tiles {
            return 0;
        }
        let room = u64::from((self.tile + 2 * spec.bound.width) | 1);
        let items = u64::from(self.tile * self.tile / self.rows);
        items * (2 * 4 * room + 8 * u64::from(spec.slices)) + 4 * items / u64::from(SAMPLES)
    }

    fn stand_ins(&self) -> &'static [super::Algorithm] {
        &[]
    }
}

/// Returns the bytes of the real parts of a line, with a gap after every sixteen.
fn line_bytes(length: usize) -> usize {
    4 * (length + length / 16)
}

/// The method by which the lines of a grid are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridLines {
    /// In local memory: `columns` columns per work-group, of which `at_once` share local memory at a time.
    Local { groups: ImageGroups, columns: usize, at_once: usize },
    /// By single items, in memory of their own.
    Cached { lengths: [usize; 2] },
}

impl GridLines {
    /// Returns the method for a grid of these lengths; `None` where lines that belong into local memory do not fit it.
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

    /// Returns the source of the kernel for rows (`axis` 0) or columns of the grid.
    ///
    /// # Errors
    /// A define that is already set.
    pub fn generate(&self, spec: &KernelSpec, axis: usize) -> Result<KernelSource> {
        let columns = axis == 1;
        let mut defines = Defines::default();
        defines.switch("COLUMNS", columns)?;
        if let super::Parameters::Gridding(gridding) = &spec.parameters {
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

/// Lengths of lines that need larger work-groups and more local memory, with the bytes and work-items of devices that
/// have them.
const LONG_LINES: [(usize, u64, usize); 3] = [(4096, 32 << 10, 256), (8192, 48 << 10, 1024), (16384, 227 << 10, 1024)];

/// Returns programs for lines of grids on a device, with each last step of the transform once. With one slice, as they
/// do not depend on slices, it also returns those for long lines on devices that hold them in local memory.
///
/// # Errors
/// None: every form is legal.
pub fn line_programs(spec: &KernelSpec, facts: &DeviceFacts) -> Result<Vec<KernelSource>> {
    let super::Parameters::Gridding(gridding) = &spec.parameters else { return Ok(Vec::new()) };
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

/// Returns the source of the kernels that compute spectra of rows in the layout that `spec` reads.
pub(super) fn generate_spectra(spec: &KernelSpec, padding: Padding, filter: RowFilter) -> Result<KernelSource> {
    let of_other_rows = || Error::Internal(format!("spectra for {} are not made {}", spec.name(), filter.method));
    let together = spec.texel == Texel::Spectra { together: true };
    if together != (filter.method == RowFilterMethod::Vector) {
        return Err(of_other_rows());
    }
    let mut defines = Defines::default();
    defines.number("SLICES", spec.slices)?;
    defines.number("PADDING", padding as u32)?;
    defines.number("STRIDE", stored_of(filter.length) as u32)?;
    let (of, files): (String, &[ClFile]) = match filter.method {
        RowFilterMethod::Vector => {
            defines.number("LENGTH", filter.length as u32)?;
            defines.switch("VECTOR", true)?;
            defines.number("WORK_X", 1)?;
            defines.number("WORK_Y", 1)?;
            (
                format!("vector-{}", filter.length),
                &[COMMON, PADDING, PHASE, BUTTERFLIES, TRANSFORM_LINE, FILTER_SPECTRA_VECTOR],
            )
        }
        RowFilterMethod::Fused { rows, parts } => {
            defines.number("GROUP", ROW_GROUP as u32)?;
            defines.switch("FUSED", true)?;
            defines.number("LENGTH", filter.length as u32)?;
            defines.number("ROWS", rows as u32)?;
            defines.number("PARTS", parts)?;
            (
                format!("fused-{}", filter.length),
                &[COMMON, PADDING, PAD_ROWS, PHASE, BUTTERFLIES, TRANSFORM_ROW, FILTER_SPECTRA],
            )
        }
        RowFilterMethod::Transform => {
            defines.number("GROUP", ROW_GROUP as u32)?;
            ("transform".to_owned(), &[COMMON, PADDING, PAD_ROWS, PHASE, FILTER_SPECTRA])
        }
        RowFilterMethod::Host => return Err(of_other_rows()),
    };
    let name = format!("{of}-spectra-{}", spec.layout());
    Ok(assemble(name, &defines, files, spec.compiler_options(), "filter_spectra", LaunchShape::NONE))
}
