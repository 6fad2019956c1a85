//! Device profiles: how fast a card goes is data (TOML), never code.
//!
//! A profile says which devices it is for, how programs are built there, and which kernel with which
//! parameters serves every combination of interpolation, mode and slices per pass. Files are strict: an unknown
//! key is an error, and every number names its source.

/// Defines an enum whose names are the same on the command line, in TOML and in messages.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in the order that messages list them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> std::result::Result<Self, Error> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(Error::usage(format!(
                        "unknown {} `{text}`; it is one of {}",
                        $what,
                        [$($word),+].join(", ")
                    ))),
                }
            }
        }
    };
}
pub(crate) use words;

mod matching;
mod store;
mod throughput;

pub use matching::{Choice, choose};
pub use store::{ProfileStore, tuned_directory};
pub use throughput::{Residency, Special, Throughput};

use crate::error::{Error, Result};
use crate::facts::{DeviceFacts, DeviceKind, architecture};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The schema that this version reads.
pub const SCHEMA: u32 = 1;

/// Slices that a kernel can reconstruct at once.
pub const SLICE_MODES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

words! {
    /// How a value between two bins is found.
    Interpolation, "interpolation" {
        Linear = "linear",
        Nearest = "nearest",
    }
}

words! {
    /// The two columns of the paper's Table 25.
    Mode, "mode" {
        /// No loss beyond the rounding of `f32` arithmetic.
        Precise = "precise",
        /// Half storage, texture weights of 8 bits and the like are allowed.
        Fast = "fast",
    }
}

words! {
    /// The families of back-projection kernels.
    Algorithm, "algorithm" {
        /// One pixel a work-item (paper, Algorithm 1).
        Standard = "standard",
        /// Several projections side by side on the texture unit (paper, Algorithms 3 to 5).
        Texture = "texture",
        /// Arithmetic units and local memory (paper, section 6).
        Alu = "alu",
        /// As `alu`, with several samples a bin and the nearest of them (paper, 7.2).
        Oversample = "oversample",
        /// Texture and arithmetic blocks side by side (paper, 7.1).
        Hybrid = "hybrid",
        /// Products of weights and values on matrix units.
        Tensor = "tensor",
        /// Slices as the vector, tiles in a processor's cache.
        Vector = "vector",
    }
}

words! {
    /// How the sinogram is stored for back projection.
    Storage, "storage" {
        Float = "float",
        Half = "half",
    }
}

words! {
    /// Where a kernel reads the sinogram from.
    Sampler, "sampler" {
        /// The texture unit; a plain buffer where the device has no fitting image format.
        Image = "image",
        /// A plain buffer and explicit interpolation.
        Buffer = "buffer",
    }
}

words! {
    /// Address space of the per-projection constants.
    Constants, "constants" {
        /// Constant memory; global memory when there are more projections than it holds.
        Constant = "constant",
        Global = "global",
    }
}

words! {
    /// How items hand values to each other.
    Exchange, "exchange" {
        /// Through local memory.
        Local = "local",
        /// By the warp's shuffle instruction; through local memory where the device offers none.
        Shuffle = "shuffle",
    }
}

words! {
    /// What a cell of the local cache holds (paper, 6.3 and 6.4).
    Cache, "cache" {
        Standard = "standard",
        /// A bin and the difference to the next.
        Advanced = "advanced",
    }
}

words! {
    /// What is cached of the position where a row starts (paper, 6.8).
    Offsets, "offsets" {
        /// Nothing: every item computes it.
        None = "none",
        /// One value a row (h_m).
        Row = "row",
        /// One value a row and column of pixels (h_x).
        Column = "column",
    }
}

words! {
    /// Items to pixels in the arithmetic kernel.
    Mapping, "mapping" {
        /// Along rows (Algorithm 6).
        Rows = "rows",
        /// 4 x 4 squares in Z-order, side by side along rows (Figure 13).
        Squares = "squares",
        /// One square of 16 x 16 pixels (6.8).
        Block = "block",
    }
}

words! {
    /// Which units round (paper, 6.6).
    Rounding, "rounding" {
        /// Conversion instructions.
        Convert = "convert",
        /// Floating-point additions of 2^23.
        Float = "float",
        /// Floating-point, for the index in bytes, too.
        FloatIndex = "float-index",
    }
}

words! {
    /// How blocks are shared between two units (paper, 7.1).
    Balance, "balance" {
        /// By the block's number: the same block always goes the same way.
        Block = "block",
        /// By the multiprocessor: the last bits of a slice then depend on scheduling.
        Multiprocessor = "multiprocessor",
    }
}

/// Facts of the architecture that turn a profile's words into options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Hardware {
    /// 32-bit registers of an item when all places for warps are taken; 0 where no option limits registers.
    pub registers_at_full_occupancy: u32,
    /// Most registers that an item can have.
    pub max_registers: u32,
    /// The compiler's option for it, without the number; it needs the extension that follows.
    pub register_option: String,
    /// Extension without which neither the option nor assembly nor the compiler's own function is used.
    pub compiler_extension: String,
    /// Whether inline assembly may stand in for missing shuffle extensions.
    pub assembly: bool,
    /// Whether assembly reaches matrix units that multiply 16 x 16 by 16 x 8 halves.
    pub matrix: bool,
    /// In place of `matrix` the compiler's function that multiplies halves: 16 x 16 by 16 x 16 with warps of 64, 8 x 16 by
    /// 16 x 16 with warps of 16.
    pub matrix_function: String,
    /// Items of a warp of that function: 64, or 16.
    pub matrix_lanes: u32,
    /// The function attribute, with the number of items in brackets after it, that makes a warp have so many; empty where
    /// all have.
    pub warp_attribute: String,
    /// Whether assembly reaches an engine that copies to local memory in bulk.
    pub bulk_copies: bool,
}

impl Hardware {
    /// Items of a warp, as its matrix unit wants them.
    pub fn lanes(&self) -> u32 {
        match (self.matrix_function.is_empty(), self.matrix_lanes) {
            (true, _) => 32,
            (false, 0) => 64,
            (false, lanes) => lanes,
        }
    }
}

/// A device profile, as its TOML file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// Must be [`SCHEMA`].
    pub schema: u32,
    /// Short name, as `--profile` takes it.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Where the numbers come from, unless an entry says otherwise.
    pub source: String,
    /// The devices this profile is for.
    #[serde(default)]
    pub r#match: Match,
    /// The architecture.
    #[serde(default)]
    pub hardware: Hardware,
    /// What the units of one of its devices do in a second, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
    /// How programs are built.
    #[serde(default)]
    pub build: Build,
    /// Who filters rows; how long they are padded is the run's, see `spectrum::padded_length`.
    #[serde(default)]
    pub fft: Fft,
    /// What `--algorithm auto` and `--slices-per-pass auto` mean.
    pub auto: Vec<Auto>,
    /// Kernels and their parameters.
    pub kernel: Vec<KernelEntry>,
    /// Measurements that back the numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
    /// What `fbp tune` made the profile from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuned: Option<Tuned>,
}

/// Conditions on a device; all that are given must hold, none matches everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Match {
    /// Parts of the device's name, any of them, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<String>,
    /// Architecture words, any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architecture: Vec<String>,
    /// Vendor words, any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vendor: Vec<String>,
    /// Device types, any of them.
    #[serde(default, rename = "type", skip_serializing_if = "Vec::is_empty")]
    pub kind: Vec<DeviceKind>,
}

/// Options of the device's compiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Build {
    /// `-cl-mad-enable`: a product and a sum may become one instruction.
    pub mad: bool,
    /// `-cl-fast-relaxed-math`.
    pub relaxed_math: bool,
    /// More options, passed on as they are.
    pub options: Vec<String>,
}

impl Default for Build {
    fn default() -> Self {
        Build { mad: true, relaxed_math: false, options: Vec::new() }
    }
}

words! {
    /// Who filters rows of the sinogram.
    Rows, "way to filter rows" {
        /// clFFT, with kernels around it.
        Transform = "transform",
        /// One kernel of our own for rows up to the device's local memory; beyond, as `transform`.
        Fused = "fused",
        /// The host's processors, for kernels that read floats from a buffer; else as `transform`.
        Host = "host",
    }
}

/// Who filters rows; how long they are padded is the run's, see `spectrum::padded_length`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Fft {
    pub rows: Rows,
}

impl Default for Fft {
    fn default() -> Self {
        Fft { rows: Rows::Transform }
    }
}

/// The automatic choice for one interpolation and mode, for runs of any size or of few slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Auto {
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub algorithm: Algorithm,
    /// Slices per pass when the run has that many.
    pub slices: u32,
    /// Only for runs of at most so many slices; the entry without it is for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Parameters of one kernel for some interpolations, modes and slice modes; exactly one family is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct KernelEntry {
    pub interpolation: Vec<Interpolation>,
    pub mode: Vec<Mode>,
    pub slices: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standard: Option<Standard>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texture: Option<Texture>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alu: Option<Alu>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oversample: Option<Alu>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid: Option<Hybrid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<Tensor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector: Option<Vector>,
}

/// Parameters that every family has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Common {
    pub sampler: Sampler,
    pub storage: Storage,
    pub constants: Constants,
    /// The constants of a projection as one vector (paper, 5.7) instead of separate arrays.
    pub packed_constants: bool,
    /// Unroll hint of the projection loop; 1 leaves it to the compiler.
    pub unroll: u32,
    /// Occupancy in percent that the registers should allow (paper, 5.7 and 6.9); 0 leaves it to the compiler.
    pub occupancy: u32,
}

impl Default for Common {
    fn default() -> Self {
        Common {
            sampler: Sampler::Buffer,
            storage: Storage::Float,
            constants: Constants::Constant,
            packed_constants: true,
            unroll: 1,
            occupancy: 0,
        }
    }
}

/// Parameters of the standard kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Standard {
    pub common: Common,
    /// Work-items of a work-group, and pixels of its block, in x and y.
    pub work_group: [u32; 2],
    /// Items fill 4 x 4 squares in Z-order (Algorithm 2); the work-group must be 16 x 16.
    pub z_order: bool,
}

impl Default for Standard {
    fn default() -> Self {
        Standard { common: Common::default(), work_group: [16, 16], z_order: false }
    }
}

/// Parameters of the cache-aware texture kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Texture {
    pub common: Common,
    /// Projections side by side: 4 or 16.
    pub projections_at_once: u32,
    /// Constants of so many projections are kept in local memory; 0 for none (Algorithm 5).
    pub cached_constants: u32,
    /// The cached axes of an item lie together (draft).
    pub regroup: bool,
    /// No axis is loaded when all projections have the same (draft).
    pub same_centre: bool,
    /// The projection loop counts in float (draft).
    pub float_index: bool,
    /// Constants and partial sums share one local buffer (draft).
    pub shared_buffer: bool,
    /// Sums are written as they are ready (draft).
    pub direct_writes: bool,
    /// How partial sums are added.
    pub reduction: Exchange,
}

impl Default for Texture {
    fn default() -> Self {
        Texture {
            common: Common::default(),
            projections_at_once: 4,
            cached_constants: 0,
            regroup: false,
            same_centre: false,
            float_index: false,
            shared_buffer: false,
            direct_writes: false,
            reduction: Exchange::Local,
        }
    }
}

/// Parameters of the arithmetic kernel, with one sample a bin or several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Alu {
    pub common: Common,
    /// Side of a block in pixels: 32 or 64.
    pub area: u32,
    /// Work-items: 128 or 256.
    pub items: u32,
    /// Projections copied at a time (s_d).
    pub cached_projections: u32,
    /// Items that copy one row (s_t).
    pub row_items: u32,
    pub cache: Cache,
    /// Arrays that a cell's slices are split over.
    pub arrays: u32,
    /// Cells are kept as half (6.7).
    pub half_cache: bool,
    /// An item copies two bins at once (Algorithm 7).
    pub write_pairs: bool,
    /// How an item gets its neighbour's first bin for the advanced cache.
    pub exchange: Exchange,
    pub offsets: Offsets,
    /// Cosine and sine are cached, too (c_s).
    pub turn_cache: bool,
    /// Projections whose row starts are computed at once (s_p); 0 for none.
    pub stage: u32,
    pub mapping: Mapping,
    pub rounding: Rounding,
}

impl Default for Alu {
    fn default() -> Self {
        Alu {
            common: Common::default(),
            area: 32,
            items: 256,
            cached_projections: 16,
            row_items: 16,
            cache: Cache::Standard,
            arrays: 1,
            half_cache: false,
            write_pairs: false,
            exchange: Exchange::Local,
            offsets: Offsets::Row,
            turn_cache: false,
            stage: 0,
            mapping: Mapping::Squares,
            rounding: Rounding::Convert,
        }
    }
}

impl Alu {
    /// Pixels of an item (n_q).
    pub fn pixels(&self) -> u32 {
        self.area * self.area / self.items.max(1)
    }

    /// Bins of a cached row.
    pub fn row_bins(&self) -> u32 {
        self.area * 3 / 2
    }
}

/// Parameters of the hybrid kernel: the arithmetic one's, and the ratio.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hybrid {
    /// Blocks by the texture unit, and by the arithmetic units, in turn.
    pub texture_blocks: u32,
    pub alu_blocks: u32,
    #[serde(default = "by_block")]
    pub balance: Balance,
    pub alu: Alu,
}

fn by_block() -> Balance {
    Balance::Block
}

/// Parameters of the kernel for matrix units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Tensor {
    /// Storage is `half`, the sampler `buffer`.
    pub common: Common,
    /// Values and weights are sums of two halves, which together carry 22 bits.
    pub split: bool,
    /// Warps of a work-group in x and y, see [`Hardware::lanes`].
    pub warps: [u32; 2],
    /// Squares of 4 x 4 pixels of a warp in x and y.
    pub squares: [u32; 2],
    /// Projections that are copied to local memory together.
    pub stage: u32,
    /// Stages that local memory holds.
    pub buffers: u32,
    /// Stages that are copied ahead of their use.
    pub lead: u32,
    /// Projections after which sums are moved on to f32 registers; 0 never.
    pub flush: u32,
    /// Rows of blocks that are computed together, column by column.
    pub band: u32,
}

impl Default for Tensor {
    fn default() -> Self {
        Tensor {
            common: Common { storage: Storage::Half, ..Common::default() },
            split: false,
            warps: [4, 2],
            squares: [2, 2],
            stage: 8,
            buffers: 2,
            lead: 1,
            flush: 0,
            band: 1,
        }
    }
}

impl Tensor {
    /// Pixels of a block in x and y.
    pub fn block(&self) -> [u32; 2] {
        [0, 1].map(|i| 4 * self.warps[i] * self.squares[i])
    }

    /// Most bins that the squares of a block read, see `window_bins` in the kernel.
    pub fn window(&self) -> u32 {
        let [x, y] = self.block().map(|side| f64::from(side - 4));
        x.hypot(y) as u32 + 10
    }

    fn check(&self, slices: &[u32]) -> Result<(), String> {
        let rule = |holds: bool, message: String| if holds { Ok(()) } else { Err(message) };
        let most = if self.split { 32 } else { 64 };
        rule(
            slices.iter().all(|&s| (16..=most).contains(&s)),
            format!("a tensor kernel has 16 to {most} slices, not {slices:?}"),
        )?;
        rule(self.common.storage == Storage::Half, "matrix units take halves: storage must be `half`".into())?;
        rule(
            self.common.sampler == Sampler::Buffer,
            "a tensor kernel reads a buffer: sampler must be `buffer`".into(),
        )?;
        let [warps, squares] = [self.warps, self.squares].map(|[x, y]| x * y);
        rule((1..=32).contains(&warps), format!("warps {:?} must be 1 to 32 together", self.warps))?;
        rule((1..=16).contains(&squares), format!("squares {:?} must be 1 to 16 together", self.squares))?;
        rule(
            self.stage % 2 == 0 && (2..=32).contains(&self.stage),
            format!("stage {} must be even, from 2 to 32", self.stage),
        )?;
        rule((2..=16).contains(&self.buffers), format!("buffers {} must be 2 to 16", self.buffers))?;
        rule(
            (1..self.buffers).contains(&self.lead),
            format!("lead {} must be 1 to {}, one less than buffers", self.lead, self.buffers - 1),
        )?;
        rule((1..=64).contains(&self.band), format!("band {} must be 1 to 64", self.band))?;
        rule(self.flush % self.stage == 0, format!("flush {} must be a multiple of stage {}", self.flush, self.stage))
    }
}

/// Parameters of the kernel for processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Vector {
    /// Storage is `float`, the sampler `buffer`.
    pub common: Common,
    /// Side of a work-item's tile in pixels.
    pub tile: u32,
    /// Pixels of a row whose sums are in registers together.
    pub columns: u32,
    /// Projections at a time.
    pub together: u32,
}

impl Default for Vector {
    fn default() -> Self {
        let common = Common { constants: Constants::Global, ..Common::default() };
        Vector { common, tile: 16, columns: 4, together: 8 }
    }
}

impl Vector {
    /// Most bins that a tile meets: its diagonal, one to interpolate, one because it starts between two, one for
    /// rounding, and both ends count.
    pub fn window(&self) -> u32 {
        let side = f64::from(self.tile - 1);
        side.hypot(side) as u32 + 4
    }

    fn check(&self, slices: &[u32]) -> Result<(), String> {
        let rule = |holds: bool, message: String| if holds { Ok(()) } else { Err(message) };
        rule(slices.iter().all(|&s| s >= 16), format!("a vector kernel has 16 to 64 slices, not {slices:?}"))?;
        rule(self.common.storage == Storage::Float, "a vector kernel reads floats: storage must be `float`".into())?;
        rule(
            self.common.sampler == Sampler::Buffer,
            "a vector kernel reads a buffer: sampler must be `buffer`".into(),
        )?;
        rule(matches!(self.tile, 16 | 32 | 64), format!("tile {} must be 16, 32 or 64", self.tile))?;
        rule(matches!(self.columns, 4 | 8), format!("columns {} must be 4 or 8", self.columns))?;
        rule((1..=64).contains(&self.together), format!("together {} must be 1 to 64", self.together))
    }
}

/// Where a tuned profile holds: on this device, with this driver, for these kernels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Tuned {
    pub device: String,
    pub driver: String,
    /// Of the program that tuned.
    pub version: String,
    pub date: String,
    /// Keys of the generated sources that `[[auto]]` leads to, see [`crate::kernel::auto_keys`].
    pub keys: Vec<String>,
}

impl Tuned {
    /// Why the profile is not for the device as it is now, if so; `keys` are those of the profile's kernels now.
    fn stale(&self, facts: &DeviceFacts, keys: &[String]) -> Option<String> {
        if self.driver != facts.driver {
            return Some(format!("it was tuned with driver {}, the device now has {}", self.driver, facts.driver));
        }
        (self.keys != keys)
            .then(|| format!("kernels have changed since it was tuned on {} by fbp {}", self.date, self.version))
    }
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Measured {
    pub device: String,
    pub driver: String,
    pub date: String,
    pub algorithm: Algorithm,
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices: u32,
    /// Key of the generated source, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Bins, projections and side of the slice.
    pub problem: [u32; 3],
    pub gu_per_s: f64,
    /// Relative RMS error against the `f64` reference, measured in the same run.
    pub error: f64,
}

/// Parameters of the kernel that was chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameters {
    Standard(Standard),
    Texture(Texture),
    Alu(Alu),
    Oversample(Alu),
    Hybrid(Hybrid),
    Tensor(Tensor),
    Vector(Vector),
}

impl Parameters {
    /// The family.
    pub fn algorithm(&self) -> Algorithm {
        match self {
            Parameters::Standard(_) => Algorithm::Standard,
            Parameters::Texture(_) => Algorithm::Texture,
            Parameters::Alu(_) => Algorithm::Alu,
            Parameters::Oversample(_) => Algorithm::Oversample,
            Parameters::Hybrid(_) => Algorithm::Hybrid,
            Parameters::Tensor(_) => Algorithm::Tensor,
            Parameters::Vector(_) => Algorithm::Vector,
        }
    }

    /// What every family has.
    pub fn common(&self) -> &Common {
        match self {
            Parameters::Standard(p) => &p.common,
            Parameters::Texture(p) => &p.common,
            Parameters::Alu(p) | Parameters::Oversample(p) => &p.common,
            Parameters::Hybrid(p) => &p.alu.common,
            Parameters::Tensor(p) => &p.common,
            Parameters::Vector(p) => &p.common,
        }
    }

    fn common_mut(&mut self) -> &mut Common {
        match self {
            Parameters::Standard(p) => &mut p.common,
            Parameters::Texture(p) => &mut p.common,
            Parameters::Alu(p) | Parameters::Oversample(p) => &mut p.common,
            Parameters::Hybrid(p) => &mut p.alu.common,
            Parameters::Tensor(p) => &mut p.common,
            Parameters::Vector(p) => &mut p.common,
        }
    }

    /// How the sinogram is stored.
    pub fn storage(&self) -> Storage {
        self.common().storage
    }

    /// Where the sinogram is read from.
    pub fn sampler(&self) -> Sampler {
        self.common().sampler
    }

    /// The same kernel over a plain buffer.
    pub fn with_buffer(mut self) -> Self {
        self.common_mut().sampler = Sampler::Buffer;
        self
    }

    /// Whether the sinogram is read between bins, so that an image must be one that the texture unit interpolates.
    pub fn reads_between_bins(&self, interpolation: Interpolation) -> bool {
        match self {
            Parameters::Alu(_) => false,
            Parameters::Oversample(_) => true,
            _ => interpolation == Interpolation::Linear,
        }
    }
}

impl KernelEntry {
    /// An entry for one combination.
    pub fn of(offer: &Offer, source: Option<String>) -> KernelEntry {
        let mut entry = KernelEntry {
            interpolation: vec![offer.interpolation],
            mode: vec![offer.mode],
            slices: vec![offer.slices],
            source,
            standard: None,
            texture: None,
            alu: None,
            oversample: None,
            hybrid: None,
            tensor: None,
            vector: None,
        };
        match offer.parameters.clone() {
            Parameters::Standard(p) => entry.standard = Some(p),
            Parameters::Texture(p) => entry.texture = Some(p),
            Parameters::Alu(p) => entry.alu = Some(p),
            Parameters::Oversample(p) => entry.oversample = Some(p),
            Parameters::Hybrid(p) => entry.hybrid = Some(p),
            Parameters::Tensor(p) => entry.tensor = Some(p),
            Parameters::Vector(p) => entry.vector = Some(p),
        }
        entry
    }

    /// The families that the entry gives; legal entries give one.
    fn families(&self) -> Vec<Parameters> {
        [
            self.standard.clone().map(Parameters::Standard),
            self.texture.clone().map(Parameters::Texture),
            self.alu.clone().map(Parameters::Alu),
            self.oversample.clone().map(Parameters::Oversample),
            self.hybrid.clone().map(Parameters::Hybrid),
            self.tensor.clone().map(Parameters::Tensor),
            self.vector.clone().map(Parameters::Vector),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The one family of a legal entry.
    pub fn parameters(&self) -> Option<Parameters> {
        self.families().pop()
    }

    fn serves(&self, interpolation: Interpolation, mode: Mode, slices: u32) -> bool {
        self.interpolation.contains(&interpolation) && self.mode.contains(&mode) && self.slices.contains(&slices)
    }
}

/// A kernel that a profile offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices: u32,
    pub parameters: Parameters,
}

impl Offer {
    /// What rule of the schema the kernel breaks in a profile with these options of the compiler, if any.
    pub fn check(&self, build: &Build) -> Result<(), String> {
        self.parameters.check(&[self.slices], build)
    }

    /// Whether an `[[auto]]` leads to this kernel.
    pub fn is_of(&self, auto: &Auto) -> bool {
        (auto.interpolation, auto.mode, auto.slices) == (self.interpolation, self.mode, self.slices)
            && auto.algorithm == self.parameters.algorithm()
    }
}

impl Profile {
    /// Reads and checks a profile; `name` is used in messages.
    pub fn parse(text: &str, name: &str) -> Result<Profile> {
        let profile: Profile = toml::from_str(text).map_err(|e| Error::profile(name, e.to_string().trim_end()))?;
        profile.check().map_err(|message| Error::profile(name, message))?;
        Ok(profile)
    }

    /// Every kernel of the profile, one for each combination.
    pub fn offers(&self) -> Vec<Offer> {
        let mut offers = Vec::new();
        for entry in &self.kernel {
            let Some(parameters) = entry.parameters() else { continue };
            for &interpolation in &entry.interpolation {
                for &mode in &entry.mode {
                    for &slices in &entry.slices {
                        offers.push(Offer { interpolation, mode, slices, parameters: parameters.clone() });
                    }
                }
            }
        }
        offers
    }

    /// The kernel for a run.
    ///
    /// `algorithm` and `slices` of `None` are what the profile's `auto` says, with no more slices per pass than
    /// `run_slices` needs. Where the automatic algorithm does not have the wanted `slices`, the profile's first kernel
    /// that has them is taken.
    ///
    /// # Errors
    /// A usage error that lists what the profile has, when it has no such kernel.
    pub fn select(
        &self,
        algorithm: Option<Algorithm>,
        interpolation: Interpolation,
        mode: Mode,
        slices: Option<u32>,
        run_slices: usize,
    ) -> Result<Offer> {
        let auto = self
            .auto
            .iter()
            .filter(|a| a.interpolation == interpolation && a.mode == mode)
            .filter(|a| a.up_to.is_none_or(|most| run_slices <= most as usize))
            .min_by_key(|a| a.up_to.unwrap_or(u32::MAX));
        let offers = self.offers();
        let serves = |o: &&Offer| o.interpolation == interpolation && o.mode == mode;
        let chosen = auto.map(|a| a.algorithm).unwrap_or(Algorithm::Standard);
        // a number of slices that the automatic choice does not have leads to the first kernel that has it
        let algorithm = algorithm.unwrap_or_else(|| {
            // oversampling is another rule, which is only taken when asked for
            let mut having = offers
                .iter()
                .filter(serves)
                .filter(|o| slices.is_none_or(|n| o.slices == n) && o.parameters.algorithm() != Algorithm::Oversample);
            let first = having.clone().next().map(|o| o.parameters.algorithm());
            match having.any(|o| o.parameters.algorithm() == chosen) {
                true => chosen,
                false => first.unwrap_or(chosen),
            }
        });
        let mut available: Vec<Offer> =
            offers.iter().filter(serves).filter(|o| o.parameters.algorithm() == algorithm).cloned().collect();
        available.sort_by_key(|o| o.slices);
        let modes: Vec<u32> = available.iter().map(|o| o.slices).collect();
        let wanted = match slices {
            Some(slices) => slices,
            None => {
                let most =
                    auto.filter(|a| a.algorithm == algorithm).map(|a| a.slices).or(modes.last().copied()).unwrap_or(1);
                let enough = modes.iter().copied().find(|&m| m as usize >= run_slices);
                enough.map_or(most, |m| m.min(most))
            }
        };
        available.into_iter().find(|o| o.slices == wanted).ok_or_else(|| {
            Error::usage(format!(
                "profile {} has no {algorithm} kernel for {interpolation} {mode} with {wanted} slices per pass; \
                     it has {}; choose another --slices-per-pass, --algorithm or --profile",
                self.name,
                if modes.is_empty() {
                    "none for that algorithm, interpolation and mode".to_owned()
                } else {
                    format!("{modes:?}")
                }
            ))
        })
    }

    /// What is wrong with the profile, as far as that can be said without a device.
    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("schema is {}, this version reads schema {SCHEMA}", self.schema));
        }
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(word) {
            return Err(format!("name `{}` must be lower-case letters, digits and dashes", self.name));
        }
        if self.source.trim().is_empty() {
            return Err("source must say where the numbers come from".into());
        }
        if let Some(throughput) = &self.throughput {
            throughput.check()?;
        }
        let known = architecture::words();
        for architecture in &self.r#match.architecture {
            if !known.contains(&architecture.as_str()) && architecture != "unknown" {
                return Err(format!(
                    "match.architecture `{architecture}` is not known; it is one of {}",
                    known.join(", ")
                ));
            }
        }
        let function = &self.hardware.matrix_function;
        for (key, name) in [("matrix-function", function), ("warp-attribute", &self.hardware.warp_attribute)] {
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("hardware.{key} `{name}` must be a plain name"));
            }
        }
        let lanes = self.hardware.matrix_lanes;
        if !matches!(lanes, 0 | 16 | 64) || (lanes > 0 && function.is_empty()) {
            return Err(format!("hardware.matrix-lanes {lanes} must be 16 or 64, with a matrix-function"));
        }
        if self.hardware.matrix && !function.is_empty() {
            return Err("hardware: matrix and matrix-function are for different matrix units".into());
        }
        let offers = self.check_kernels()?;
        for &interpolation in Interpolation::ALL {
            for &mode in Mode::ALL {
                let what = format!("{interpolation} {mode}");
                let choices: Vec<&Auto> =
                    self.auto.iter().filter(|a| a.interpolation == interpolation && a.mode == mode).collect();
                let mut limits: Vec<Option<u32>> = choices.iter().map(|a| a.up_to).collect();
                limits.sort_unstable();
                if limits.iter().filter(|limit| limit.is_none()).count() != 1
                    || limits.windows(2).any(|pair| pair[0] == pair[1])
                {
                    return Err(format!(
                        "{what} needs exactly one [[auto]] entry without up-to, and others with different up-to"
                    ));
                }
                for auto in choices {
                    if auto.algorithm == Algorithm::Oversample {
                        return Err(format!(
                            "[[auto]] for {what} chooses oversample, whose rule is another than linear; \
                             it is for those who ask with --algorithm oversample"
                        ));
                    }
                    if !offers.iter().any(|offer| offer.is_of(auto)) {
                        return Err(format!(
                            "[[auto]] for {what} chooses {}, but no [[kernel]] of it serves {} slices",
                            auto.algorithm, auto.slices
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks of the kernel entries; the combinations that they serve.
    fn check_kernels(&self) -> Result<Vec<Offer>, String> {
        for (number, entry) in self.kernel.iter().enumerate() {
            let at = format!("[[kernel]] number {}", number + 1);
            let Some(parameters) = entry.parameters() else {
                return Err(format!(
                    "{at} names no family; add [kernel.standard], texture, alu, oversample, hybrid, tensor or vector"
                ));
            };
            if entry.families().len() > 1 {
                return Err(format!("{at} names more than one family"));
            }
            if entry.interpolation.is_empty() || entry.mode.is_empty() || entry.slices.is_empty() {
                return Err(format!("{at}: interpolation, mode and slices need at least one value each"));
            }
            if let Some(bad) = entry.slices.iter().find(|s| !SLICE_MODES.contains(s)) {
                return Err(format!("{at}: slices {bad} is not one of {SLICE_MODES:?}"));
            }
            parameters.check(&entry.slices, &self.build).map_err(|e| format!("{at}: {e}"))?;
        }
        for (number, entry) in self.kernel.iter().enumerate() {
            for other in &self.kernel[number + 1..] {
                for &interpolation in &entry.interpolation {
                    for &mode in &entry.mode {
                        for &slices in &entry.slices {
                            if other.serves(interpolation, mode, slices)
                                && entry.parameters().map(|p| p.algorithm())
                                    == other.parameters().map(|p| p.algorithm())
                            {
                                return Err(format!(
                                    "two [[kernel]] entries serve {interpolation} {mode} with {slices} slices"
                                ));
                            }
                        }
                    }
                }
            }
        }
        Ok(self.offers())
    }
}

impl Parameters {
    /// Rules that hold on any device.
    fn check(&self, slices: &[u32], build: &Build) -> Result<(), String> {
        let common = self.common();
        let most = slices.iter().max().copied().unwrap_or(1);
        let rule = |holds: bool, message: String| if holds { Ok(()) } else { Err(message) };
        rule(
            common.sampler == Sampler::Buffer || most <= 4,
            format!("sampler `image` serves at most 4 slices, not {most}"),
        )?;
        rule(
            most <= 16 || matches!(self, Parameters::Tensor(_) | Parameters::Vector(_)),
            format!("{most} slices at once are only for tensor and vector kernels"),
        )?;
        rule((1..=64).contains(&common.unroll), format!("unroll {} must be 1 to 64", common.unroll))?;
        rule(common.occupancy <= 100, format!("occupancy {} must be 0 to 100 percent", common.occupancy))?;
        match self {
            Parameters::Standard(p) => {
                let [x, y] = p.work_group;
                rule(
                    x > 0 && y > 0 && x <= 64 && y <= 64 && x * y <= 1024,
                    format!("work-group {:?} must have sides of 1 to 64 and at most 1024 work-items", p.work_group),
                )?;
                rule(!p.z_order || p.work_group == [16, 16], "z-order needs a work-group of 16 x 16".into())
            }
            Parameters::Texture(p) => {
                let at_once = p.projections_at_once;
                rule(matches!(at_once, 4 | 16), format!("projections-at-once {at_once} must be 4 or 16"))?;
                rule(
                    p.cached_constants % at_once == 0 && p.cached_constants <= 1024,
                    format!("cached-constants {} must be a multiple of {at_once} up to 1024", p.cached_constants),
                )?;
                rule(
                    p.cached_constants > 0 || !(p.regroup || p.shared_buffer),
                    "regroup and shared-buffer need cached-constants".into(),
                )?;
                rule(!(p.regroup && p.same_centre), "same-centre leaves nothing to regroup".into())
            }
            Parameters::Alu(p) | Parameters::Oversample(p) => p.check(slices, build, self.algorithm()),
            Parameters::Hybrid(p) => {
                rule(
                    p.texture_blocks > 0 && p.alu_blocks > 0,
                    "texture-blocks and alu-blocks must be at least 1".into(),
                )?;
                p.alu.check(slices, build, Algorithm::Alu)
            }
            Parameters::Tensor(p) => p.check(slices),
            Parameters::Vector(p) => p.check(slices),
        }
    }
}

impl Alu {
    fn check(&self, slices: &[u32], build: &Build, algorithm: Algorithm) -> Result<(), String> {
        let rule = |holds: bool, message: String| if holds { Ok(()) } else { Err(message) };
        let samples = if algorithm == Algorithm::Oversample { OVERSAMPLE } else { 1 };
        rule(matches!(self.area, 32 | 64), format!("area {} must be 32 or 64", self.area))?;
        rule(matches!(self.items, 128 | 256), format!("items {} must be 128 or 256", self.items))?;
        rule(
            matches!(self.row_items, 8 | 16 | 32 | 64),
            format!("row-items {} must be 8, 16, 32 or 64", self.row_items),
        )?;
        rule(
            self.cached_projections % 4 == 0 && (4..=32).contains(&self.cached_projections),
            format!("cached-projections {} must be a multiple of 4 from 4 to 32", self.cached_projections),
        )?;
        rule(
            self.stage == 0 || (self.stage % self.cached_projections == 0 && self.stage <= 1024),
            format!("stage {} must be a multiple of cached-projections", self.stage),
        )?;
        rule(
            self.stage == 0 || self.offsets != Offsets::None,
            "stage caches offsets: it needs offsets `row` or `column`".into(),
        )?;
        rule(
            slices.iter().all(|s| s % self.arrays.max(1) == 0) && matches!(self.arrays, 1 | 2 | 4),
            format!("arrays {} must be 1, 2 or 4 and divide the slices", self.arrays),
        )?;
        if self.cache == Cache::Advanced {
            rule(slices.iter().all(|&s| s == self.arrays), "the advanced cache needs an array for every slice".into())?;
            rule(samples == 1, "oversampling has no differences: cache must be `standard`".into())?;
            rule(!self.half_cache && !self.write_pairs, "the advanced cache is float and written as it is".into())?;
            rule(
                self.row_bins() % self.row_items == 0,
                format!("row-items {} must divide the {} bins of a row", self.row_items, self.row_bins()),
            )?;
        }
        if self.write_pairs {
            rule(slices == [1] && !self.half_cache, "write-pairs is for one slice of float values".into())?;
            rule(
                self.row_bins() * samples % (2 * self.row_items) == 0,
                format!("row-items {} must divide the pairs of bins of a row", self.row_items),
            )?;
        }
        rule(
            self.rounding == Rounding::Convert || !build.relaxed_math,
            "rounding by floating-point additions goes wrong under build.relaxed-math".into(),
        )
    }
}

/// Samples a bin of the oversampling kernel (paper, 7.2).
pub const OVERSAMPLE: u32 = 4;

#[cfg(test)]
mod tests;
