//! Arithmetic units and local memory (paper, section 6), with one or several samples per bin.

use super::errors::KernelRuleError;
use super::family::{Family, rule};
use super::files::{ClFile, EXCHANGE, ROUND, cl_file};
use super::form::KernelForm;
use super::load::row_start;
use super::parameter::{Declared, parameters};
use super::{
    Common, Defines, Exchange, Interpolation, LaunchShape, Load, Mode, Parameter, Positions, Sampler, Storage, Texel,
};
use crate::error::Result;
use crate::reference::Reads;
use serde::{Deserialize, Serialize};
use strum::VariantNames;

/// Number of samples per bin of the oversampling kernel (paper, 7.2).
pub const OVERSAMPLE: u32 = 4;

pub(super) const SOURCE: ClFile = cl_file!("backproject_alu.cl");

/// The content of a cell of the local cache (paper, 6.3 and 6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Cache {
    /// A bin.
    Standard,
    /// A bin and its difference from the next.
    Advanced,
}

/// Cached values of the position where a row starts (paper, 6.8). The kernel gets the index in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Offsets {
    /// No value: every item computes it.
    None,
    /// One value per row (h_m).
    Row,
    /// One value per row and column of pixels (h_x).
    Column,
}

/// The mapping of items to pixels in the arithmetic kernel. The kernel gets the index in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Mapping {
    /// Along rows (Algorithm 6).
    Rows,
    /// 4 x 4 squares in Z-order, side by side along rows (Figure 13).
    Squares,
    /// One square of 16 x 16 pixels (6.8).
    Block,
}

/// The units that round (paper, 6.6). The kernel gets the index in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, VariantNames)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Rounding {
    /// Conversion instructions.
    Convert,
    /// Floating-point additions of 2^23.
    Float,
    /// Floating-point additions, also for the index in bytes.
    FloatIndex,
}

parameters! {
    /// Parameters of the arithmetic kernel, with one or several samples per bin.
    pub struct Alu {
        table common: Common = Common::default();
        /// Side of a block in pixels.
        block: u32 = 32, Domain::one_of(&[32, 64]).rank(1);
        /// Work-items of a work-group; an item has `block * block / items` pixels.
        items: u32 = 256, Domain::one_of(&[128, 256]).rank(1);
        /// Projections that are copied at a time (s_d).
        cached_projections: u32 = 16, Domain::range(4, 32, 4).tries(&[4, 8, 12, 16, 24, 32]).rank(1);
        /// Items that copy one row (s_t, Table 14).
        row_items: u32 = 16, Domain::one_of(&[8, 16, 32, 64]).rank(1);
        /// What a cell of the local cache contains; `advanced`: a bin and its difference from the next (6.4).
        cache: Cache = Cache::Standard, Domain::words::<Cache>().rank(2);
        /// Number of arrays among which the slices of a cell are divided; must divide the slices.
        arrays: u32 = 1, Domain::one_of(&[1, 2, 4]).rank(1);
        /// Cells are stored as half (6.7).
        half_cache: bool = false, Domain::switch().trades_exactness();
        /// An item copies two bins at once (Algorithm 7).
        write_pairs: bool = false, Domain::switch();
        /// How an item gets its neighbour's first bin for the `advanced` cache.
        exchange: Exchange = Exchange::Local, Domain::words::<Exchange>().rank(2);
        /// What is cached about the start of a row: nothing, one value per `row` (h_m) or one per `column` of pixels
        /// (h_x) (6.8).
        offsets: Offsets = Offsets::Row, Domain::words::<Offsets>();
        /// Origin of positions: the first pixel of a `block`, from tables in global memory, or bin 0, from the
        /// constants alone (`absolute`, Algorithm 6); see [positions](#positions).
        positions: Positions = Positions::Block, Domain::words::<Positions>();
        /// Cosine and sine are also cached (c_s).
        rotation_cache: bool = false, Domain::switch();
        /// Number of projections whose row starts are computed at once in a third stage (s_p), a multiple of
        /// `cached-projections`; 0 for none.
        stage: u32 = 0, Domain::range(0, 1024, 4).tries(&[0, 64, 128, 256, 512]);
        /// Mapping of items to pixels: along `rows`, `squares` of 4 x 4 in Z-order (Figure 13), or a `block` of 16 x 16 (6.8).
        mapping: Mapping = Mapping::Squares, Domain::words::<Mapping>();
        /// `convert` instructions, `float` additions of 2^23, or `float-index` also for the address (6.6); the last two not with
        /// `relaxed-math`.
        rounding: Rounding = Rounding::Convert, Domain::words::<Rounding>();
    }
}

/// Parameters of the kernel with several samples per bin, of which it takes the nearest (paper, 7.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Oversample(pub Alu);

impl Alu {
    /// Returns the kernel of section 6.5 and Tables 15 and 16 of the paper, for linear interpolation and one slice: the
    /// advanced cache, 256 items for 32 x 32 pixels, 16 items per row, copied by the texture unit.
    pub fn of_paper() -> Alu {
        let common = Common { sampler: Sampler::Image, ..Common::default() };
        Alu { common, cache: Cache::Advanced, positions: Positions::Absolute, ..Alu::default() }
    }

    /// Returns the number of pixels per item (n_q).
    pub(super) fn pixels(&self) -> u32 {
        self.block * self.block / self.items.max(1)
    }

    /// Returns the number of bins of a cached row.
    fn row_bins(&self) -> u32 {
        self.block * 3 / 2
    }

    fn check_for(&self, samples: u32, slices: &[u32]) -> Result<(), KernelRuleError> {
        rule(self.stage % self.cached_projections == 0, KernelRuleError::Stage { stage: self.stage })?;
        rule(self.stage == 0 || self.offsets != Offsets::None, KernelRuleError::StageWithoutOffsets)?;
        rule(slices.iter().all(|s| s % self.arrays == 0), KernelRuleError::Arrays { arrays: self.arrays })?;
        if self.cache == Cache::Advanced {
            rule(slices.iter().all(|&s| s == self.arrays), KernelRuleError::AdvancedArrays)?;
            rule(samples == 1, KernelRuleError::AdvancedOversampling)?;
            rule(!self.half_cache && !self.write_pairs, KernelRuleError::AdvancedPairs)?;
            rule(
                self.row_bins() % self.row_items == 0,
                KernelRuleError::RowItems { items: self.row_items, bins: self.row_bins() },
            )?;
        }
        if self.write_pairs {
            rule(slices == [1] && !self.half_cache, KernelRuleError::PairSlices)?;
            rule(
                self.row_bins() * samples % (2 * self.row_items) == 0,
                KernelRuleError::PairItems { items: self.row_items },
            )?;
        }
        rule(self.rounding == Rounding::Convert || !self.common.relaxed_math, KernelRuleError::RelaxedRounding)
    }

    fn define_for(&self, samples: u32, form: &KernelForm, defines: &mut Defines) -> Result<()> {
        defines.switch("ABSOLUTE", self.positions == Positions::Absolute)?;
        defines.number("BLOCK", self.block)?;
        defines.number("CACHED", self.cached_projections)?;
        defines.number("ROW_ITEMS", self.row_items)?;
        defines.number("OVERSAMPLE", samples)?;
        defines.switch("ADVANCED", self.cache == Cache::Advanced)?;
        defines.number("ARRAYS", self.arrays)?;
        defines.switch("WRITE_PAIRS", self.write_pairs)?;
        defines.switch("HALF_CACHE", self.half_cache)?;
        defines.number("OFFSETS", self.offsets as u32)?;
        defines.switch("ROTATION_CACHE", self.rotation_cache)?;
        defines.number("STAGE", self.stage)?;
        defines.number("MAPPING", self.mapping as u32)?;
        defines.number("ROUNDING", self.rounding as u32)?;
        form.shuffle.define(defines)
    }

    /// Section 6.5, with one or several samples per bin.
    fn load_for(&self, samples: u32, form: &KernelForm) -> Load {
        let slices = f64::from(form.slices);
        let pixels = f64::from(self.pixels());
        let of_block = 1.0 / (f64::from(self.items) * pixels * slices);
        let of_item = 1.0 / (pixels * slices);
        let linear = form.interpolation == Interpolation::Linear && samples == 1;

        // operations of an item for a projection
        let turn = match self.rotation_cache {
            true => Load::local(1.0, 8.0),
            false => Load::constants(&self.common, 1.0, 8.0),
        };
        let offset = match self.offsets {
            // four projections are loaded at once
            Offsets::Row => Load { fp: 2.0, ..Load::local(0.25, 4.0).staged() },
            Offsets::Column => Load { fp: 1.0, ..Load::local(1.0, f64::from(self.block / 16) * 4.0).staged() },
            // and a multiply-add for x
            Offsets::None => Load { fp: 1.0, ..Load::default() } + row_start(self.positions, &self.common),
        };
        let item = turn + offset + Load { shifts: 1.0, ..Load::default() };

        // a pixel's cell (6.6: floating-point instructions replace conversions and the shift); the nearest is 1/2 further,
        // and the one of several samples a product
        let (rounding, half, instead) = if linear { (2.0, 0.0, 3.0) } else { (1.0, 1.0, 1.0) };
        let (conversions, fp, shifts) = match self.rounding {
            Rounding::Convert => (rounding, half, 1.0),
            Rounding::Float => (0.0, instead, 1.0),
            Rounding::FloatIndex => (0.0, instead + 2.0, 0.0),
        };
        let place = if linear || samples > 1 { 2.0 } else { 1.0 };
        let pixel = Load { fp: fp + place, conversions, shifts, ..Load::default() };

        // the updates
        let advanced = self.cache == Cache::Advanced;
        let arrays = f64::from(self.arrays);
        let reads = if linear && !advanced { 2.0 } else { 1.0 };
        let (vectors, bytes) = if advanced { (slices, 8.0) } else { (arrays, self.value_bytes() * slices / arrays) };
        let updates = Load {
            fp: slices * if !linear { 1.0 } else { 2.0 + f64::from(u8::from(!advanced)) },
            half_conversions: if self.half_cache { reads * slices } else { 0.0 },
            ..Load::local(reads * vectors, bytes)
        };
        self.block_load(samples, form) * of_block + item * of_item + (pixel + updates) * (1.0 / slices)
    }

    /// Load of a block for a projection before its items start: finding where rows start, and copying them.
    fn block_load(&self, samples: u32, form: &KernelForm) -> Load {
        let slices = f64::from(form.slices);
        let advanced = self.cache == Cache::Advanced;

        // start of a row: by every item that copies the row, or once with a third stage
        let row_items = f64::from(self.row_items);
        let starts = if self.stage > 0 { 1.0 } else { row_items };
        let start = row_start(self.positions, &self.common);
        let mut block = (start * starts).staged() + Load::local(row_items, 4.0).staged();

        // the copy
        let cells = f64::from(self.row_bins() * samples);
        let fetch = match form.texel.format() {
            Some(_) => {
                let half_conversions = if matches!(form.texel, Texel::PackedHalves(_)) { slices } else { 0.0 };
                // a cell's number becomes a part of a bin after the start, and of a texel
                let (fp, conversions) = if samples > 1 { (3.0, 1.0) } else { (0.0, 0.0) };
                Load { fp, conversions, half_conversions, staging: 1.0, ..Load::texel(form.texel, samples > 1) }
            }
            None => {
                let reads = if samples > 1 { 2.0 } else { 1.0 };
                let mixed = if samples > 1 { 2.0 * slices } else { 0.0 };
                let bytes = self.common.storage.bytes() as f64;
                let half_conversions = if self.common.storage == Storage::Half { reads * slices } else { 0.0 };
                Load { fp: mixed, half_conversions, ..Load::local(reads, slices * bytes).staged() }
            }
        };
        block += fetch * cells;
        // the advanced cache has an array for each slice
        let arrays = f64::from(self.arrays);
        let stores = if advanced { slices } else { arrays / if self.write_pairs { 2.0 } else { 1.0 } };
        let cell_bytes = slices * if advanced { 8.0 } else { self.value_bytes() };
        block += Load::local(cells * stores, cell_bytes / stores).staged();
        let packed = if self.half_cache { cells * slices } else { 0.0 };
        block
            + Load {
                fp: row_items * if advanced { 4.0 } else { 3.0 },
                conversions: row_items,
                half_conversions: packed,
                shifts: 2.0 * row_items,
                ..Load::default()
            }
    }

    /// Returns the bytes of a cached value.
    fn value_bytes(&self) -> f64 {
        if self.half_cache { 2.0 } else { 4.0 }
    }

    fn local_memory_for(&self, samples: u32, form: &KernelForm) -> u64 {
        let slices = u64::from(form.slices);
        let advanced = self.cache == Cache::Advanced;
        let cells = u64::from(self.row_bins() * samples + u32::from(advanced));
        let cell_bytes = if advanced { 8 * slices } else { slices * if self.half_cache { 2 } else { 4 } };
        let starts = u64::from(self.stage.max(1));
        let cached = u64::from(self.cached_projections);
        let offsets = cached * if self.offsets == Offsets::Column { u64::from(self.block) } else { 1 };
        cached * cells * cell_bytes + 8 * starts + 4 * offsets + 8 * if self.rotation_cache { cached } else { 1 }
    }
}

impl Family for Alu {
    fn meaning(&self) -> &'static str {
        "arithmetic units, with rows of the sinogram in local memory (section 6)"
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn start(_: Mode) -> Self {
        Alu::default()
    }

    fn check(&self, slices: &[u32]) -> Result<(), KernelRuleError> {
        self.check_for(1, slices)
    }

    fn files(&self) -> &'static [ClFile] {
        &[EXCHANGE, ROUND, SOURCE]
    }

    fn define(&self, form: &KernelForm, defines: &mut Defines) -> Result<()> {
        self.define_for(1, form, defines)
    }

    fn shape(&self, _: &KernelForm) -> LaunchShape {
        LaunchShape { work_group: [16, self.items / 16], block: [self.block; 2] }
    }

    fn reads_between_bins(&self, _: Interpolation) -> bool {
        false
    }

    fn counts_from_bin_0(&self) -> bool {
        self.positions == Positions::Absolute
    }

    fn count_from_blocks(&mut self) {
        self.positions = Positions::Block;
    }

    fn clearance(&self) -> f64 {
        // more than what rounding takes from positions; 1/2 more where 1/2 is taken off and 2^23 added, because just below
        // 2^23 a float has halves
        let roundings = 2f64.powi(-10);
        if self.rounding == Rounding::Convert { roundings } else { roundings + 0.5 }
    }

    fn rounds_to_half(&self) -> bool {
        self.half_cache
    }

    fn exchange_span(&self) -> u32 {
        match (self.exchange, self.cache) {
            (Exchange::Shuffle, Cache::Advanced) => self.row_items,
            _ => 0,
        }
    }

    fn load(&self, form: &KernelForm) -> Load {
        self.load_for(1, form)
    }

    fn local_memory(&self, form: &KernelForm) -> u64 {
        self.local_memory_for(1, form)
    }
}

impl Declared for Oversample {
    fn parameters() -> Vec<Parameter> {
        Alu::parameters()
    }
}

impl Family for Oversample {
    fn meaning(&self) -> &'static str {
        "as `alu`, with the nearest of four samples per bin (7.2)"
    }

    fn common(&self) -> &Common {
        &self.0.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.0.common
    }

    fn start(_: Mode) -> Self {
        Oversample::default()
    }

    fn check(&self, slices: &[u32]) -> Result<(), KernelRuleError> {
        self.0.check_for(OVERSAMPLE, slices)
    }

    fn files(&self) -> &'static [ClFile] {
        self.0.files()
    }

    fn define(&self, form: &KernelForm, defines: &mut Defines) -> Result<()> {
        self.0.define_for(OVERSAMPLE, form, defines)
    }

    fn shape(&self, form: &KernelForm) -> LaunchShape {
        self.0.shape(form)
    }

    fn reads_between_bins(&self, _: Interpolation) -> bool {
        true
    }

    fn reads(&self, _: Interpolation) -> Reads {
        Reads::Nearest(OVERSAMPLE)
    }

    fn counts_from_bin_0(&self) -> bool {
        self.0.counts_from_bin_0()
    }

    fn count_from_blocks(&mut self) {
        self.0.count_from_blocks();
    }

    fn clearance(&self) -> f64 {
        self.0.clearance()
    }

    fn rounds_to_half(&self) -> bool {
        self.0.half_cache
    }

    fn load(&self, form: &KernelForm) -> Load {
        self.0.load_for(OVERSAMPLE, form)
    }

    fn local_memory(&self, form: &KernelForm) -> u64 {
        self.0.local_memory_for(OVERSAMPLE, form)
    }
}
