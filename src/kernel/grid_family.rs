//! The family of gridding.

use super::errors::KernelRuleError;
use super::family::{Family, rule};
use super::files::{
    BUTTERFLIES, ClFile, FILTER_SPECTRA, FILTER_SPECTRA_VECTOR, GRID_LINES, LINES_VECTOR, MEMORY_HINTS, PAD_ROWS,
    PADDING, PHASE, TRANSFORM_LINE, TRANSFORM_ROW, cl_file,
};
use super::form::KernelForm;
use super::grid_stages::GridTask;
use super::gridding::{GridItems, Gridding, SAMPLES};
use super::{Algorithm, Common, Defines, Hardware, Interpolation, LaunchShape, Load, Mode, Sampler, Storage, Texel};
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::reference::Reads;
use std::ops::RangeInclusive;

/// Pixels in x and y that a band of a slice is a multiple of, where memory does not hold a slice.
const BAND: u32 = 64;

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

    fn check(&self, slices: &[u32]) -> Result<(), KernelRuleError> {
        let algorithm = Algorithm::Gridding;
        rule(self.common.storage == Storage::Float, KernelRuleError::NoFloats { algorithm })?;
        rule(self.common.sampler == Sampler::Buffer, KernelRuleError::NoBuffer { algorithm })?;
        let many = slices.iter().any(|&slices| slices > 8);
        rule(!many || self.items == GridItems::Cells, KernelRuleError::ManySlicesByTiles)?;
        rule(self.tile <= 16 || self.items == GridItems::Tiles, KernelRuleError::LargeTileByCells)
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

    fn define(&self, form: &KernelForm, defines: &mut Defines) -> Result<()> {
        defines.number("TILE", self.tile)?;
        defines.number("WIDTH", form.bound.width)?;
        defines.number("DEGREE", form.bound.width + 4)?;
        match self.items {
            GridItems::Cells => {
                defines.number("ROWS", self.rows)?;
                defines.number("SAMPLES", SAMPLES)
            }
            GridItems::Tiles => defines.switch("VECTOR", true),
        }
    }

    fn shape(&self, _: &KernelForm) -> LaunchShape {
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

    /// For slices of N x N pixels from N projections of N bins, with two cells a pixel, or 1.5 with `tiles`: the stages after
    /// the filter as one.
    fn load(&self, form: &KernelForm) -> Load {
        let size = form.size;
        let cells = match self.items {
            GridItems::Cells => 2 * size,
            GridItems::Tiles => size / 2 * 3,
        };
        let task = GridTask { bins: size, projections: size, region: [size; 2], lengths: [cells.max(2); 2] };
        let [_, spreading, rows, columns] = self.stages(form, &task);
        (spreading.load + rows.load + columns.load) * (1.0 / (size as f64).powi(3))
    }

    fn local_memory(&self, form: &KernelForm) -> u64 {
        if self.items == GridItems::Tiles {
            return 0;
        }
        let room = u64::from((self.tile + 2 * form.bound.width) | 1);
        let items = u64::from(self.tile * self.tile / self.rows);
        items * (2 * 4 * room + 8 * u64::from(form.slices)) + 4 * items / u64::from(SAMPLES)
    }

    fn stand_ins(&self) -> &'static [Algorithm] {
        &[]
    }
}
