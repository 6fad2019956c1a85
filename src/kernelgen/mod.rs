//! The kernel generator: a pure function from a specification to OpenCL C source, build options and launch shape.
//!
//! Kernels are the files in `cl/`; the generator picks and orders them and prepends sorted defines. It needs no
//! device and no clock, so its output is kept in git (`tests/golden/`) and compared.

mod defines;

pub use defines::Defines;

use crate::error::{Error, Result};
use crate::profile::facts::{ChannelType, Channels, DeviceFacts, ImageFormat};
use crate::profile::{Algorithm, Build, Constants, Interpolation, Offer, Parameters, Sampler, Storage};
use std::fmt::Write as _;

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
const STANDARD: ClFile = cl_file!("backproject_standard.cl");
const FILTER: ClFile = cl_file!("filter.cl");
const PROBE_IMAGE: ClFile = cl_file!("probe_image.cl");

/// Every file of `cl/` with the files that must stand before it.
pub const FILES: &[(ClFile, &[ClFile])] = &[
    (COMMON, &[]),
    (SAMPLE_BUFFER, &[COMMON]),
    (SAMPLE_IMAGE, &[COMMON]),
    (STANDARD, &[COMMON, SAMPLE_BUFFER]),
    (FILTER, &[COMMON]),
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
}

/// Zero bins before and after each row of a sinogram in a buffer.
pub const GUARD: usize = 2;

impl Texel {
    /// Zero bins before and after each row.
    pub fn guard(self) -> usize {
        match self {
            Texel::Buffer => GUARD,
            _ => 0,
        }
    }

    /// Values stored per bin, for `slices` slices.
    pub fn channels(self, slices: u32) -> usize {
        match self {
            Texel::Buffer | Texel::Forged(_) => slices as usize,
            Texel::Image(format) => format.channels.count(),
        }
    }

    /// The image's format, if it is one.
    pub fn format(self) -> Option<ImageFormat> {
        match self {
            Texel::Buffer => None,
            Texel::Image(format) | Texel::Forged(format) => Some(format),
        }
    }

    /// Image layouts that can carry `slices` slices, smallest texel first; forged ones before native halves of the
    /// same size, because every device has float formats.
    pub fn candidates(slices: u32, storage: Storage, interpolation: Interpolation) -> Vec<Texel> {
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
            && interpolation == Interpolation::Nearest
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
    /// The layouts of the sinogram that the kernel can read, best first; the last, a plain buffer, works everywhere.
    pub fn texels(&self) -> Vec<Texel> {
        let mut texels = match self.parameters.sampler() {
            Sampler::Image => Texel::candidates(self.slices, self.parameters.storage(), self.interpolation),
            Sampler::Buffer => Vec::new(),
        };
        texels.push(Texel::Buffer);
        texels
    }
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
    pub build: Build,
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
    /// Identifies text and options: 16 hexadecimal digits.
    pub key: String,
}

impl KernelSpec {
    /// The kernel that a profile offers, for a problem of `projections` projections, reading `texel`.
    pub fn new(offer: &Offer, build: &Build, texel: Texel, projections: usize, facts: Option<&DeviceFacts>) -> Self {
        let wanted = match &offer.parameters {
            Parameters::Standard(p) => p.constants,
        };
        // every device has at least this much
        const SMALLEST_CONSTANT_BUFFER: u64 = 64 << 10;
        let room = facts.map_or(SMALLEST_CONSTANT_BUFFER, |f| f.constant_buffer);
        let bytes = (projections * std::mem::size_of::<[f32; 2]>()) as u64;
        let parameters = match texel {
            Texel::Buffer => offer.parameters.clone().with_buffer(),
            _ => offer.parameters.clone(),
        };
        KernelSpec {
            interpolation: offer.interpolation,
            slices: offer.slices,
            parameters,
            texel,
            constants: if bytes <= room { wanted } else { Constants::Global },
            build: build.clone(),
        }
    }

    /// Short name for messages and reports.
    pub fn name(&self) -> String {
        let texel = match self.texel {
            Texel::Buffer => "buffer".to_owned(),
            Texel::Image(format) => format!("image-{}", format.to_string().replace(' ', "-").to_lowercase()),
            Texel::Forged(format) => format!("image-forged-{:?}", format.channels).to_lowercase(),
        };
        format!(
            "{}-{}-{}-x{}-{texel}",
            self.parameters.algorithm(),
            self.interpolation,
            self.parameters.storage(),
            self.slices
        )
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
        let wrong = |message: String| Err(Error::usage(format!("kernel {}: {message}", self.name())));
        if !crate::profile::SLICE_MODES.contains(&self.slices) {
            return wrong(format!("{} slices per pass is not a slice mode", self.slices));
        }
        match self.texel {
            Texel::Buffer => Ok(()),
            Texel::Image(_) if self.texel.channels(self.slices) < self.slices as usize => {
                wrong("the texel has fewer channels than slices".into())
            }
            Texel::Forged(_) if self.interpolation == Interpolation::Linear => {
                wrong("forged halves cannot be interpolated by the texture unit".into())
            }
            _ if self.parameters.sampler() == Sampler::Buffer => wrong("the sampler is a buffer".into()),
            _ => Ok(()),
        }
    }

    /// Source, options and launch shape.
    pub fn generate(&self) -> Result<KernelSource> {
        self.check()?;
        let mut defines = Defines::default();
        defines.number("SLICES", self.slices)?;
        defines.switch("LINEAR", self.interpolation == Interpolation::Linear)?;
        defines.switch("HALF_STORAGE", self.parameters.storage() == Storage::Half)?;
        defines.word(
            "CONSTANTS",
            match self.constants {
                Constants::Constant => "__constant",
                Constants::Global => "__global const",
            },
        )?;
        let sampler = match self.texel {
            Texel::Buffer => {
                defines.number("GUARD", GUARD as u32)?;
                SAMPLE_BUFFER
            }
            Texel::Image(_) | Texel::Forged(_) => {
                defines.switch("FORGED", matches!(self.texel, Texel::Forged(_)))?;
                SAMPLE_IMAGE
            }
        };
        let (body, work_group, block, unroll, registers) = match &self.parameters {
            Parameters::Standard(p) => (STANDARD, p.work_group, p.work_group, p.unroll, p.registers),
        };
        defines.number("WORK_X", work_group[0])?;
        defines.number("WORK_Y", work_group[1])?;
        defines.number("UNROLL", unroll)?;
        let mut options = build_options(&self.build);
        if registers > 0 {
            options.push(format!("-cl-nv-maxrregcount={registers}"));
        }
        let sides = |size: [u32; 2]| [size[0] as usize, size[1] as usize];
        Ok(KernelSource::assemble(
            self.name(),
            &defines,
            &[COMMON, sampler, body],
            options,
            "backproject",
            sides(work_group),
            sides(block),
        ))
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

/// Work-group of the kernel that measures peaks.
pub const PEAK_GROUP: usize = 64;

/// Source of the filter's kernels for the layout that `spec` reads.
pub fn generate_filter(spec: &KernelSpec, padding: Padding) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("SLICES", spec.slices)?;
    defines.number("CHANNELS", spec.texel.channels(spec.slices) as u32)?;
    defines.switch("HALF_STORAGE", spec.parameters.storage() == Storage::Half)?;
    defines.number("GUARD", spec.texel.guard() as u32)?;
    defines.number("GROUP", PEAK_GROUP as u32)?;
    let padding = match padding {
        Padding::Zero => 0,
        Padding::Edge => 1,
        Padding::Mirror => 2,
    };
    defines.number("PADDING", padding)?;
    Ok(KernelSource::assemble(
        format!("filter-for-{}", spec.name()),
        &defines,
        &[COMMON, FILTER],
        build_options(&spec.build),
        "pad_rows",
        [1, 1],
        [1, 1],
    ))
}

/// Source of the kernel that tries an image format.
pub fn generate_probe() -> KernelSource {
    KernelSource::assemble(
        "probe-image".to_owned(),
        &Defines::default(),
        &[PROBE_IMAGE],
        vec!["-cl-std=CL1.1".to_owned()],
        "probe_image",
        [1, 1],
        [1, 1],
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

impl KernelSource {
    fn assemble(
        name: String,
        defines: &Defines,
        files: &[ClFile],
        options: Vec<String>,
        entry: &'static str,
        work_group: [usize; 2],
        block: [usize; 2],
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
            work_group,
            block,
            key,
        }
    }
}

/// 64-bit FNV-1a over the parts, each closed by a zero byte: stable over versions and machines.
pub(crate) fn fnv1a(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for part in parts {
        for byte in part.iter().chain(&[0]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

/// The families that this version generates.
pub fn algorithms() -> &'static [Algorithm] {
    Algorithm::ALL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_depend_on_text_and_options() {
        assert_ne!(fnv1a(&[b"ab", b"c"]), fnv1a(&[b"a", b"bc"]));
        assert_eq!(fnv1a(&[]), 0xcbf2_9ce4_8422_2325);
    }

    #[test]
    fn texels_start_with_the_smallest() {
        let layouts = Texel::candidates(4, Storage::Half, Interpolation::Nearest);
        assert_eq!(layouts[0], Texel::Forged(ImageFormat::new(Channels::RG, ChannelType::Float)));
        assert_eq!(layouts[1], Texel::Image(ImageFormat::new(Channels::RGBA, ChannelType::Half)));
        let layouts = Texel::candidates(2, Storage::Float, Interpolation::Linear);
        assert_eq!(layouts.len(), 2);
        assert!(layouts.iter().all(|t| t.channels(2) >= 2));
        assert!(Texel::candidates(8, Storage::Float, Interpolation::Linear).is_empty());
    }
}
