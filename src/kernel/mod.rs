//! The kernel generator: a pure function from a specification to OpenCL C source, build options and launch shape.
//!
//! Kernels are the files in `cl/`; the generator picks and orders them and prepends sorted defines. It needs no
//! device and no clock, so its output is kept in git (`tests/golden/`) and compared.

mod defines;

pub use defines::Defines;

use crate::error::{Error, Result};
use crate::facts::{ChannelType, Channels, DeviceFacts, ImageFormat};
use crate::hash::fnv1a;
use crate::profile::{
    Alu, Balance, Build, Cache, Constants, Exchange, Fft, Hardware, Hybrid, Interpolation, Mapping, OVERSAMPLE, Offer,
    Offsets, Parameters, Profile, Rounding, Rows, Sampler, Storage, Tensor, Texture, Vector,
};
use crate::spectrum::padded_length;
use std::fmt::{self, Write as _};

/// A file of `cl/`: name and text.
pub type ClFile = (&'static str, &'static str);

macro_rules! cl_file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../cl/", $name)))
    };
}

const COMMON: ClFile = cl_file!("common.cl");
const SAMPLE_BUFFER: ClFile = cl_file!("sample_buffer.cl");
const SAMPLE_IMAGE: ClFile = cl_file!("sample_image.cl");
const SAMPLE: ClFile = cl_file!("sample.cl");
const EXCHANGE: ClFile = cl_file!("exchange.cl");
const ROUND: ClFile = cl_file!("round.cl");
const STANDARD: ClFile = cl_file!("backproject_standard.cl");
const TEXTURE: ClFile = cl_file!("backproject_texture.cl");
const ALU: ClFile = cl_file!("backproject_alu.cl");
const HYBRID: ClFile = cl_file!("backproject_hybrid.cl");
const HALVES: ClFile = cl_file!("halves.cl");
const MATRIX: ClFile = cl_file!("matrix.cl");
const TENSOR: ClFile = cl_file!("backproject_tensor.cl");
const VECTOR: ClFile = cl_file!("backproject_vector.cl");
const FILTER: ClFile = cl_file!("filter.cl");
const FILTER_ROWS: ClFile = cl_file!("filter_rows.cl");
const PROBE_IMAGE: ClFile = cl_file!("probe_image.cl");

/// Every file of `cl/` with the files that must stand before it.
pub const FILES: &[(ClFile, &[ClFile])] = &[
    (COMMON, &[]),
    (SAMPLE_BUFFER, &[COMMON]),
    (SAMPLE_IMAGE, &[COMMON]),
    (SAMPLE, &[COMMON, SAMPLE_BUFFER]),
    (EXCHANGE, &[COMMON]),
    (ROUND, &[COMMON]),
    (STANDARD, &[COMMON, SAMPLE_BUFFER, SAMPLE]),
    (TEXTURE, &[COMMON, SAMPLE_BUFFER, SAMPLE, EXCHANGE]),
    (ALU, &[COMMON, SAMPLE_BUFFER, EXCHANGE, ROUND]),
    (HYBRID, &[COMMON, SAMPLE_BUFFER, SAMPLE, EXCHANGE, ROUND, ALU]),
    (HALVES, &[COMMON]),
    (MATRIX, &[COMMON, HALVES]),
    (TENSOR, &[COMMON, HALVES, MATRIX]),
    (VECTOR, &[COMMON]),
    (FILTER, &[COMMON, HALVES]),
    (FILTER_ROWS, &[COMMON, HALVES, FILTER]),
    (PROBE_IMAGE, &[]),
];

/// How the bins of a compound sinogram lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Texel {
    /// A plain buffer with zero bins before and after every row.
    Buffer,
    /// An image, one channel a slice.
    Image(ImageFormat),
    /// An image of float channels that each carry the bits of two halves; nearest only.
    Forged(ImageFormat),
    /// Rows of halves as matrix units read them (`halves.cl`), two for every value if `split`.
    Halves { split: bool, guard: u32 },
    /// A plain buffer with so many guard bins that no tile reads past them.
    Wide { guard: u32 },
}

/// Zero bins before and after each row of a sinogram in a buffer.
pub const GUARD: usize = 2;

impl Texel {
    /// Zero bins before and after each row.
    pub fn guard(self) -> usize {
        match self {
            Texel::Buffer => GUARD,
            Texel::Halves { guard, .. } | Texel::Wide { guard } => guard as usize,
            Texel::Image(_) | Texel::Forged(_) => 0,
        }
    }

    /// Values stored per bin, for `slices` slices.
    pub fn channels(self, slices: u32) -> usize {
        match self {
            Texel::Buffer | Texel::Forged(_) | Texel::Wide { .. } => slices as usize,
            Texel::Image(format) => format.channels.count(),
            // eight more, so that rows lie well in the banks of local memory
            Texel::Halves { split, .. } => slices as usize * (1 + usize::from(split)) + 8,
        }
    }

    /// The image's format, if it is one.
    pub fn format(self) -> Option<ImageFormat> {
        match self {
            Texel::Buffer | Texel::Halves { .. } | Texel::Wide { .. } => None,
            Texel::Image(format) | Texel::Forged(format) => Some(format),
        }
    }

    /// Image layouts that can carry `slices` slices, smallest texel first; forged ones before native halves of the
    /// same size, because every device has float formats.
    ///
    /// A kernel that reads between bins needs the texture unit to interpolate, which it cannot do on forged values.
    pub fn candidates(slices: u32, storage: Storage, between_bins: bool) -> Vec<Texel> {
        let forged = match slices {
            2 => Some(Channels::R),
            4 => Some(Channels::RG),
            _ => None,
        };
        let channel_type = match storage {
            Storage::Float => ChannelType::Float,
            Storage::Half => ChannelType::Half,
        };
        let mut texels = Vec::new();
        if storage == Storage::Half
            && !between_bins
            && let Some(channels) = forged
        {
            texels.push(Texel::Forged(ImageFormat::new(channels, ChannelType::Float)));
        }
        for channels in [Channels::R, Channels::RG, Channels::RGBA] {
            if channels.count() >= slices as usize {
                texels.push(Texel::Image(ImageFormat::new(channels, channel_type)));
            }
        }
        texels
    }
}

impl Offer {
    /// The layouts of the sinogram that the kernel can read, best first; the last works everywhere.
    pub fn texels(&self) -> Vec<Texel> {
        match &self.parameters {
            Parameters::Tensor(p) => return vec![Texel::Halves { split: p.split, guard: p.window() }],
            Parameters::Vector(p) => return vec![Texel::Wide { guard: p.window() }],
            _ => {}
        }
        let mut texels = match self.parameters.sampler() {
            Sampler::Image => {
                let between_bins = self.parameters.reads_between_bins(self.interpolation);
                Texel::candidates(self.slices, self.parameters.storage(), between_bins)
            }
            Sampler::Buffer => Vec::new(),
        };
        texels.push(Texel::Buffer);
        texels
    }
}

/// How a warp's items exchange values, as the device offers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Through local memory.
    None,
    /// The sub-group extensions.
    SubGroup,
    /// Inline assembly of the device.
    Assembly,
}

/// What multiplies matrices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// Plain arithmetic.
    Plain,
    /// The matrix unit, by inline assembly.
    Assembly,
    /// The matrix unit, by this function of the compiler, and the attribute that makes warps as it wants them.
    Function { name: String, warp_attribute: String },
}

/// What a problem has to say about its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    pub projections: usize,
    /// Whether all projections have the same axis.
    pub same_axis: bool,
}

/// Everything that decides the text of a back-projection kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSpec {
    pub interpolation: Interpolation,
    /// Slices per pass.
    pub slices: u32,
    pub parameters: Parameters,
    pub texel: Texel,
    /// Where the constants are; decided by how many projections there are.
    pub constants: Constants,
    pub shuffle: Shuffle,
    /// Whether the axis is the same for all projections and the profile makes use of it.
    pub same_centre: bool,
    pub matrix: Matrix,
    /// Items of a warp that multiply together.
    pub lanes: u32,
    /// Local memory is filled by the copy engine.
    pub bulk_copies: bool,
    /// Sums are added to what the slices hold of other projections.
    pub accumulate: bool,
    pub build: Build,
    /// Compiler option that limits registers, if there is one and the profile asks.
    pub register_option: Option<String>,
}

/// Generated source and how to build and launch it.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSource {
    /// Short name for messages and reports, such as `standard-linear-float-x4-buffer`.
    pub name: String,
    pub text: String,
    /// Build options, in one line.
    pub options: String,
    /// Kernel function.
    pub entry: &'static str,
    /// Work-group sizes.
    pub work_group: [usize; 2],
    /// Pixels that one work-group computes.
    pub block: [usize; 2],
    /// The constants of a projection are one vector, not four arrays.
    pub packed: bool,
    /// Identifies text and options: 16 hexadecimal digits.
    pub key: String,
}

/// Bytes of constant memory that every device has.
pub const SMALLEST_CONSTANT_BUFFER: u64 = 64 << 10;

/// The extensions that a sub-group's shuffles need.
pub const SUB_GROUP_SHUFFLES: [&str; 2] = ["cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative"];

/// The extension that the compiler's function for matrices needs: its factors are halves.
const HALF_ARITHMETIC: &str = "cl_khr_fp16";

/// Bytes of the constants of one projection.
const CONSTANT_BYTES: usize = 16;

impl KernelSpec {
    /// The kernel that a profile offers, for a problem, reading `texel`. Without `facts` the device is taken to have
    /// everything that the profile's architecture has.
    pub fn new(offer: &Offer, profile: &Profile, texel: Texel, problem: Problem, facts: Option<&DeviceFacts>) -> Self {
        let hardware = &profile.hardware;
        let room = facts.map_or(SMALLEST_CONSTANT_BUFFER, |f| f.constant_buffer);
        let bytes = (problem.projections * CONSTANT_BYTES) as u64;
        let parameters = match texel {
            Texel::Buffer => offer.parameters.clone().with_buffer(),
            _ => offer.parameters.clone(),
        };
        let common = parameters.common();
        let own_compiler = facts.is_none_or(|f| f.has(&hardware.compiler_extension));
        let tensor = matches!(parameters, Parameters::Tensor(_));
        let matrix = if !tensor || !own_compiler {
            Matrix::Plain
        } else if hardware.matrix {
            Matrix::Assembly
        } else if !hardware.matrix_function.is_empty() && facts.is_none_or(|f| f.has(HALF_ARITHMETIC)) {
            Matrix::Function { name: hardware.matrix_function.clone(), warp_attribute: hardware.warp_attribute.clone() }
        } else {
            Matrix::Plain
        };
        // items side by side that exchange values
        let span = match &parameters {
            Parameters::Texture(p) if p.reduction == Exchange::Shuffle => p.projections_at_once,
            Parameters::Alu(p) | Parameters::Hybrid(Hybrid { alu: p, .. })
                if p.exchange == Exchange::Shuffle && p.cache == Cache::Advanced =>
            {
                p.row_items
            }
            _ => 0,
        };
        // compilers choose a sub-group's size; on devices that have shuffles none is known with less than this
        const SMALLEST_SUB_GROUP: u32 = 8;
        let shuffle = match facts {
            _ if span == 0 => Shuffle::None,
            Some(f) if span <= SMALLEST_SUB_GROUP && SUB_GROUP_SHUFFLES.iter().all(|extension| f.has(extension)) => {
                Shuffle::SubGroup
            }
            _ if hardware.assembly && own_compiler => Shuffle::Assembly,
            _ => Shuffle::None,
        };
        KernelSpec {
            interpolation: offer.interpolation,
            slices: offer.slices,
            texel,
            constants: if bytes <= room { common.constants } else { Constants::Global },
            shuffle,
            same_centre: problem.same_axis && matches!(&parameters, Parameters::Texture(p) if p.same_centre),
            lanes: hardware.lanes(),
            bulk_copies: tensor && hardware.bulk_copies && own_compiler,
            accumulate: false,
            build: profile.build.clone(),
            register_option: hardware.register_option(common.occupancy).filter(|_| own_compiler),
            parameters: parameters.without_assembly(hardware.assembly && own_compiler, &matrix),
            matrix,
        }
    }

    /// The same kernel, whose sums are added to what the slices hold of other projections.
    pub fn accumulating(&self) -> Self {
        KernelSpec { accumulate: true, ..self.clone() }
    }

    /// Short name for messages and reports.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.parameters.algorithm(), self.interpolation, self.layout())
    }

    /// How the compound sinogram lies in memory, in words.
    pub fn layout(&self) -> String {
        let texel = match self.texel {
            Texel::Buffer | Texel::Wide { .. } => "buffer".to_owned(),
            Texel::Image(format) => format!("image-{}", format.to_string().replace(' ', "-").to_lowercase()),
            Texel::Forged(format) => format!("image-forged-{:?}", format.channels).to_lowercase(),
            Texel::Halves { split: false, .. } => "halves".to_owned(),
            Texel::Halves { split: true, .. } => "halves-split".to_owned(),
        };
        format!("{}-x{}-{texel}", self.parameters.storage(), self.slices)
    }

    /// Bytes that one bin of the compound sinogram takes.
    pub fn element_bytes(&self) -> usize {
        let value = match self.parameters.storage() {
            Storage::Float => 4,
            Storage::Half => 2,
        };
        value * self.texel.channels(self.slices)
    }

    /// Rules that the generator relies on.
    fn check(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::usage(format!("kernel {}: {message}", self.name())));
        if !crate::profile::SLICE_MODES.contains(&self.slices) {
            return wrong("that many slices per pass is not a slice mode");
        }
        match self.texel {
            Texel::Buffer | Texel::Halves { .. } | Texel::Wide { .. } => Ok(()),
            Texel::Image(_) if self.texel.channels(self.slices) < self.slices as usize => {
                wrong("the texel has fewer channels than slices")
            }
            Texel::Forged(_) if self.parameters.reads_between_bins(self.interpolation) => {
                wrong("forged halves cannot be interpolated by the texture unit")
            }
            _ if self.parameters.sampler() == Sampler::Buffer => wrong("the sampler is a buffer"),
            _ => Ok(()),
        }
    }

    /// Source, options and launch shape.
    pub fn generate(&self) -> Result<KernelSource> {
        self.check()?;
        let common = self.parameters.common();
        let mut defines = Defines::default();
        defines.number("SLICES", self.slices)?;
        defines.switch("LINEAR", self.interpolation == Interpolation::Linear)?;
        defines.switch("HALF_STORAGE", common.storage == Storage::Half)?;
        defines.switch("PACKED", common.packed_constants)?;
        defines.number("UNROLL", common.unroll)?;
        defines.word(
            "CONSTANTS",
            match self.constants {
                Constants::Constant => "__constant",
                Constants::Global => "__global const",
            },
        )?;
        if self.accumulate {
            defines.switch("ACCUMULATE", true)?;
        }
        // the file that reads the sinogram
        let reader = match self.texel {
            Texel::Buffer => {
                defines.number("GUARD", GUARD as u32)?;
                Some(SAMPLE_BUFFER)
            }
            Texel::Halves { split, guard } => {
                defines.number("GUARD", guard)?;
                defines.switch("SPLIT", split)?;
                Some(HALVES)
            }
            Texel::Wide { guard } => {
                defines.number("GUARD", guard)?;
                None
            }
            Texel::Image(_) | Texel::Forged(_) => {
                defines.switch("FORGED", matches!(self.texel, Texel::Forged(_)))?;
                Some(SAMPLE_IMAGE)
            }
        };
        let mut files: Vec<ClFile> = [COMMON].into_iter().chain(reader).collect();
        let (work_group, block) = match &self.parameters {
            Parameters::Standard(p) => {
                defines.switch("Z_ORDER", p.z_order)?;
                files.extend([SAMPLE, STANDARD]);
                (p.work_group, p.work_group)
            }
            Parameters::Texture(p) => {
                self.define_texture(p, &mut defines)?;
                files.extend([SAMPLE, EXCHANGE, TEXTURE]);
                ([16, 16], [16, 16])
            }
            Parameters::Alu(p) => {
                self.define_alu(p, 1, &mut defines)?;
                files.extend([EXCHANGE, ROUND, ALU]);
                ([16, p.items / 16], [p.area; 2])
            }
            Parameters::Oversample(p) => {
                self.define_alu(p, OVERSAMPLE, &mut defines)?;
                files.extend([EXCHANGE, ROUND, ALU]);
                ([16, p.items / 16], [p.area; 2])
            }
            Parameters::Hybrid(p) => {
                self.define_alu(&p.alu, 1, &mut defines)?;
                defines.number("TEXTURE_BLOCKS", p.texture_blocks)?;
                defines.number("ALU_BLOCKS", p.alu_blocks)?;
                defines.switch("BALANCE", p.balance == Balance::Multiprocessor)?;
                files.extend([SAMPLE, EXCHANGE, ROUND, ALU, HYBRID]);
                ([16, p.alu.items / 16], [p.alu.area; 2])
            }
            Parameters::Tensor(p) => {
                self.define_tensor(p, &mut defines)?;
                files.extend([MATRIX, TENSOR]);
                ([self.lanes, p.warps[0] * p.warps[1]], p.block())
            }
            Parameters::Vector(p) => {
                self.define_vector(p, &mut defines)?;
                files.push(VECTOR);
                ([1, 1], [p.tile; 2])
            }
        };
        defines.number("WORK_X", work_group[0])?;
        defines.number("WORK_Y", work_group[1])?;
        let mut options = build_options(&self.build);
        options.extend(self.register_option.clone());
        let sides = |size: [u32; 2]| [size[0] as usize, size[1] as usize];
        let shape = Shape { work_group: sides(work_group), block: sides(block), packed: common.packed_constants };
        Ok(KernelSource::assemble(self.name(), &defines, &files, options, "backproject", shape))
    }

    fn define_texture(&self, p: &Texture, defines: &mut Defines) -> Result<()> {
        defines.number("GROUPS", p.projections_at_once)?;
        defines.number("CACHED", p.cached_constants)?;
        defines.switch("REGROUP", p.regroup)?;
        defines.switch("SAME_CENTRE", self.same_centre)?;
        defines.switch("FLOAT_INDEX", p.float_index)?;
        defines.switch("SHARED_BUFFER", p.shared_buffer)?;
        defines.switch("DIRECT_WRITES", p.direct_writes)?;
        self.define_shuffle(defines)
    }

    fn define_alu(&self, p: &Alu, samples: u32, defines: &mut Defines) -> Result<()> {
        defines.number("AREA", p.area)?;
        defines.number("CACHED", p.cached_projections)?;
        defines.number("ROW_ITEMS", p.row_items)?;
        defines.number("OVERSAMPLE", samples)?;
        defines.switch("ADVANCED", p.cache == Cache::Advanced)?;
        defines.number("ARRAYS", p.arrays)?;
        defines.switch("WRITE_PAIRS", p.write_pairs)?;
        defines.switch("HALF_CACHE", p.half_cache)?;
        let offsets = match p.offsets {
            Offsets::None => 0,
            Offsets::Row => 1,
            Offsets::Column => 2,
        };
        defines.number("OFFSETS", offsets)?;
        defines.switch("TURN_CACHE", p.turn_cache)?;
        defines.number("STAGE", p.stage)?;
        let mapping = match p.mapping {
            Mapping::Rows => 0,
            Mapping::Squares => 1,
            Mapping::Block => 2,
        };
        defines.number("MAPPING", mapping)?;
        let rounding = match p.rounding {
            Rounding::Convert => 0,
            Rounding::Float => 1,
            Rounding::FloatIndex => 2,
        };
        defines.number("ROUNDING", rounding)?;
        self.define_shuffle(defines)
    }

    fn define_tensor(&self, p: &Tensor, defines: &mut Defines) -> Result<()> {
        let matrix = match &self.matrix {
            Matrix::Plain => 0,
            Matrix::Assembly => 1,
            Matrix::Function { name, warp_attribute } => {
                defines.word("MATRIX_FUNCTION", name)?;
                if !warp_attribute.is_empty() {
                    defines.word("WARP_ATTRIBUTE", warp_attribute)?;
                }
                if self.lanes == 16 { 3 } else { 2 }
            }
        };
        defines.number("MATRIX", matrix)?;
        defines.number("LANES", self.lanes)?;
        defines.switch("BULK_COPIES", self.bulk_copies)?;
        defines.number("WINDOW", p.window())?;
        for (name, value) in [
            ("WARPS_X", p.warps[0]),
            ("WARPS_Y", p.warps[1]),
            ("SQUARES_X", p.squares[0]),
            ("SQUARES_Y", p.squares[1]),
            ("STAGE", p.stage),
            ("BUFFERS", p.buffers),
            ("LEAD", p.lead),
            ("FLUSH", p.flush),
            ("BAND", p.band),
        ] {
            defines.number(name, value)?;
        }
        Ok(())
    }

    fn define_vector(&self, p: &Vector, defines: &mut Defines) -> Result<()> {
        defines.number("TILE", p.tile)?;
        defines.number("COLUMNS", p.columns)?;
        defines.number("TOGETHER", p.together)?;
        defines.number("WINDOW", p.window())
    }

    fn define_shuffle(&self, defines: &mut Defines) -> Result<()> {
        let shuffle = match self.shuffle {
            Shuffle::None => 0,
            Shuffle::SubGroup => 1,
            Shuffle::Assembly => 2,
        };
        defines.number("SHUFFLE", shuffle)
    }
}

impl Hardware {
    /// The compiler option for an occupancy in percent: registers of an item fall as more warps are resident.
    fn register_option(&self, occupancy: u32) -> Option<String> {
        let registers = (self.registers_at_full_occupancy * 100).checked_div(occupancy)?;
        if registers == 0 || self.register_option.is_empty() {
            return None;
        }
        Some(format!("{}={}", self.register_option, registers.min(self.max_registers)))
    }
}

impl Parameters {
    /// Without what needs inline assembly or a matrix unit, unless the device has it: the choice by multiprocessor, and
    /// the local memory that devices with matrix units have.
    fn without_assembly(mut self, assembly: bool, matrix: &Matrix) -> Self {
        match &mut self {
            Parameters::Hybrid(p) if !assembly => p.balance = Balance::Block,
            Parameters::Tensor(p) if *matrix == Matrix::Plain => (p.stage, p.buffers, p.lead) = (2, 2, 1),
            _ => {}
        }
        self
    }
}

/// What continues a row beyond the detector before the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Padding {
    Zero,
    /// The row's first and last value (default, as in nabu and tofu).
    #[default]
    Edge,
    /// The row mirrored at its ends (the end values twice).
    Mirror,
}

/// As `--padding` takes it.
impl fmt::Display for Padding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Padding::Zero => "zero",
            Padding::Edge => "edge",
            Padding::Mirror => "mirror",
        })
    }
}

/// Work-group of the kernels that go along a row.
pub const ROW_GROUP: usize = 64;

/// Work-group of the kernel that interleaves slices, whose first side are bins.
pub const TILE: [usize; 2] = [32, 8];

/// How rows are padded and filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFilter {
    /// Length of a padded row.
    pub length: usize,
    pub way: RowWay,
}

/// Who filters rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWay {
    /// A transform of padded rows in global memory, with kernels around it.
    Transform,
    /// One kernel, with so many complex rows a work-group, whose values change places in so many parts.
    Fused { rows: usize, parts: u32 },
    /// The processor that the device is, without OpenCL: straight into the compound sinogram.
    Host,
}

impl fmt::Display for RowWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowWay::Transform => "by a transform",
            RowWay::Fused { .. } => "by one kernel",
            RowWay::Host => "on the host",
        })
    }
}

/// Values that an item of the fused kernel keeps.
const FUSED_POINTS: usize = 16;
/// Work-items that a work-group of the fused kernel has at least, if rows are short.
const FUSED_ITEMS: usize = 64;

impl RowFilter {
    /// How rows of `bins` are filtered for a kernel: as the profile says, or by a transform where that is not possible.
    pub fn new(spec: &KernelSpec, fft: &Fft, bins: usize, facts: Option<&DeviceFacts>) -> RowFilter {
        let transformed = RowFilter { length: padded_length(bins), way: RowWay::Transform };
        match fft.rows {
            Rows::Transform => transformed,
            Rows::Fused => RowFilter::fused(bins, facts).unwrap_or(transformed),
            Rows::Host => match (spec.texel, spec.parameters.storage()) {
                (Texel::Buffer | Texel::Wide { .. }, Storage::Float) => RowFilter { way: RowWay::Host, ..transformed },
                _ => transformed,
            },
        }
    }

    /// One kernel, if the device has the local memory and the work-items for rows of this length.
    fn fused(bins: usize, facts: Option<&DeviceFacts>) -> Option<RowFilter> {
        let length = padded_length(bins);
        let items = RowFilter::items(length);
        // with a gap after sixteen values
        let room = (length + length / 16) * 4;
        let (local, group) = facts.map_or((48 << 10, 1024), |f| (f.local_memory as usize, f.max_work_group));
        let parts = match local {
            local if 2 * room <= local => 1,
            local if room <= local => 2,
            _ => return None,
        };
        let rows = FUSED_ITEMS.div_ceil(items).min(local / (2 * room).max(1)).max(1);
        (length <= 16384 && items * rows <= group).then_some(RowFilter { length, way: RowWay::Fused { rows, parts } })
    }

    /// For rows of other bins with the same programs, if they serve these, too.
    pub fn for_bins(self, bins: usize) -> RowFilter {
        let length = padded_length(bins);
        match self.way {
            RowWay::Fused { .. } if length <= self.length => self,
            RowWay::Host => RowFilter { length, ..self },
            _ => RowFilter { length, way: RowWay::Transform },
        }
    }

    /// Bytes of a pair of filtered rows on the device.
    pub fn pair_bytes(&self, bins: usize) -> usize {
        match self.way {
            RowWay::Host => 0,
            _ => 8 * self.stride(bins),
        }
    }

    /// Work-items of the fused kernel for a row of `length`.
    pub fn items(length: usize) -> usize {
        length / FUSED_POINTS
    }

    /// Values from one filtered row to the next in memory.
    pub fn stride(&self, bins: usize) -> usize {
        match self.way {
            RowWay::Transform => self.length,
            RowWay::Fused { .. } | RowWay::Host => bins,
        }
    }
}

/// Source of the filter's kernels for the layout that `spec` reads.
pub fn generate_filter(spec: &KernelSpec, padding: Padding, filter: RowFilter) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("SLICES", spec.slices)?;
    defines.number("CHANNELS", spec.texel.channels(spec.slices) as u32)?;
    defines.switch("HALF_STORAGE", spec.parameters.storage() == Storage::Half)?;
    defines.number("GUARD", spec.texel.guard() as u32)?;
    defines.number("GROUP", ROW_GROUP as u32)?;
    defines.number("TILE", TILE[0] as u32)?;
    defines.number("TILE_ROWS", TILE[1] as u32)?;
    defines.switch("SPLIT", matches!(spec.texel, Texel::Halves { split: true, .. }))?;
    let padding = match padding {
        Padding::Zero => 0,
        Padding::Edge => 1,
        Padding::Mirror => 2,
    };
    defines.number("PADDING", padding)?;
    let mut files = vec![COMMON, HALVES, FILTER];
    // not the kernel's name: kernels that read one layout share the program
    let mut name = format!("filter-{}", spec.layout());
    if let RowWay::Fused { rows, parts } = filter.way {
        defines.number("LENGTH", filter.length as u32)?;
        defines.number("ROWS", rows as u32)?;
        defines.number("PARTS", parts)?;
        files.push(FILTER_ROWS);
        name = format!("fused-{}-{name}", filter.length);
    }
    Ok(KernelSource::assemble(name, &defines, &files, build_options(&spec.build), "interleave", Shape::NONE))
}

/// Source of the kernel that tries an image format.
pub fn generate_probe() -> KernelSource {
    KernelSource::assemble(
        "probe-image".to_owned(),
        &Defines::default(),
        &[PROBE_IMAGE],
        vec!["-cl-std=CL1.1".to_owned()],
        "probe_image",
        Shape::NONE,
    )
}

/// Options of the compiler, in a fixed order.
fn build_options(build: &Build) -> Vec<String> {
    let mut options = vec!["-cl-std=CL1.1".to_owned()];
    if build.mad {
        options.push("-cl-mad-enable".into());
    }
    if build.relaxed_math {
        options.push("-cl-fast-relaxed-math".into());
    }
    options.extend(build.options.iter().cloned());
    options
}

/// Keys of the kernels that a profile's `[[auto]]` leads to on a device, each once: they change with the files of `cl/`,
/// with the generator, with the profile's parameters and with what the device offers.
pub fn auto_keys(profile: &Profile, facts: &DeviceFacts) -> Result<Vec<String>> {
    let problem = Problem { projections: 1, same_axis: true };
    let offers = profile.offers();
    let mut keys = Vec::new();
    for offer in profile.auto.iter().filter_map(|auto| offers.iter().find(|offer| offer.is_of(auto))) {
        let texel = offer.texels().first().copied().unwrap_or(Texel::Buffer);
        let key = KernelSpec::new(offer, profile, texel, problem, Some(facts)).generate()?.key;
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    Ok(keys)
}

/// How a back-projection kernel is launched.
struct Shape {
    work_group: [usize; 2],
    block: [usize; 2],
    packed: bool,
}

impl Shape {
    /// For programs that are not launched over blocks of pixels.
    const NONE: Shape = Shape { work_group: [1, 1], block: [1, 1], packed: true };
}

impl KernelSource {
    fn assemble(
        name: String,
        defines: &Defines,
        files: &[ClFile],
        options: Vec<String>,
        entry: &'static str,
        shape: Shape,
    ) -> Self {
        let mut text = format!("/* {name} */\n{}", defines.text());
        for (file, content) in files {
            let _ = write!(text, "\n/* ---- {file} ---- */\n{content}");
        }
        let options = options.join(" ");
        let key = format!("{:016x}", fnv1a(&[text.as_bytes(), options.as_bytes()]));
        KernelSource {
            name,
            text,
            options,
            entry,
            work_group: shape.work_group,
            block: shape.block,
            packed: shape.packed,
            key,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_function_needs_the_compiler_and_halves() {
        let store = crate::profile::ProfileStore::built_in().unwrap();
        let profile = store.named("amd-cdna").unwrap();
        let offer = profile.offers().into_iter().find(|o| matches!(o.parameters, Parameters::Tensor(_))).unwrap();
        let spec = |extensions: &[&str]| {
            let extensions = extensions.iter().map(|&e| e.to_owned()).collect();
            let facts = DeviceFacts { extensions, ..DeviceFacts::default() };
            let problem = Problem { projections: 8, same_axis: true };
            KernelSpec::new(&offer, &profile, offer.texels()[0], problem, Some(&facts))
        };
        let own = profile.hardware.compiler_extension.as_str();
        assert_eq!(
            spec(&[own, HALF_ARITHMETIC]).matrix,
            Matrix::Function { name: profile.hardware.matrix_function.clone(), warp_attribute: String::new() }
        );
        for extensions in [&[own][..], &[HALF_ARITHMETIC], &[]] {
            let spec = spec(extensions);
            assert_eq!(spec.matrix, Matrix::Plain);
            assert_eq!(spec.generate().unwrap().work_group[0], 64);
        }
    }

    #[test]
    fn texels_start_with_the_smallest() {
        let layouts = Texel::candidates(4, Storage::Half, false);
        assert_eq!(layouts[0], Texel::Forged(ImageFormat::new(Channels::RG, ChannelType::Float)));
        assert_eq!(layouts[1], Texel::Image(ImageFormat::new(Channels::RGBA, ChannelType::Half)));
        let layouts = Texel::candidates(2, Storage::Float, true);
        assert_eq!(layouts.len(), 2);
        assert!(layouts.iter().all(|t| t.channels(2) >= 2));
        assert!(Texel::candidates(8, Storage::Float, true).is_empty());
    }
}
