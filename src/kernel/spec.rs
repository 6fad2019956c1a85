//! Specification of a back-projection kernel, which determines its text.

use super::files::{COMMON, ClFile};
use super::form::{Bound, KernelForm, Matrix, Shuffle, has_own_compiler};
use super::source::assemble;
use super::{
    Build, Constants, Defines, Interpolation, KernelSource, KernelTarget, Load, Mode, Parameters, Positions, Reads,
    SLICE_MODES, Sampler, Storage, Texel,
};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;

/// A kernel for one interpolation, mode and number of slices, independent of the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub interpolation: Interpolation,
    pub mode: Mode,
    /// Slices per pass.
    pub slices: u32,
    pub parameters: Parameters,
}

impl Offer {
    /// The rule that the kernel violates with these compiler options, if any.
    pub fn check(&self) -> Result<(), String> {
        self.parameters.check(&[self.slices])
    }

    /// The layouts of the sinogram that the kernel can read, best first; the last works everywhere.
    pub fn texels(&self) -> Vec<Texel> {
        self.parameters.family().texels(self.interpolation, self.slices)
    }
}

/// Whether positions that are counted from bin 0 are exact enough for a kernel's mode: in `precise` not between bins, unless
/// the texture unit interpolates there, whose weights of 8 bits are coarser.
fn keeps_margin_from_bin_0(offer: &Offer, texel: Texel) -> bool {
    let by_unit = texel.format().is_some() && offer.parameters.family().reads_between_bins(offer.interpolation);
    offer.mode == Mode::Fast || offer.interpolation == Interpolation::Nearest || by_unit
}

/// Properties of a problem that influence its kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    pub projections: usize,
    /// Whether all projections have the same axis.
    pub same_axis: bool,
    /// Of kernels with interpolation `exact`; what is usual in the kernel's mode if there is none.
    pub bound: Option<Bound>,
    /// Side of slices in pixels, which the cost of an update depends on where it is not the same for all.
    pub size: usize,
    /// Bins that positions and what leads to them span, see `Geometry::span`: kernels count positions from bin 0 only up to
    /// [`Positions::WIDEST_ABSOLUTE`].
    pub span: usize,
}

impl Problem {
    /// A problem whose kernels have the usual bounds, for 2048 bins and slices of 2048 x 2048 pixels.
    pub const fn new(projections: usize, same_axis: bool) -> Self {
        Problem { projections, same_axis, bound: None, size: 2048, span: 2048 }
    }
}

/// Everything that determines the text of a back-projection kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSpec {
    pub interpolation: Interpolation,
    /// Slices per pass.
    pub slices: u32,
    pub parameters: Parameters,
    pub texel: Texel,
    /// Where the constants are stored; depends on the number of projections.
    pub constants: Constants,
    pub shuffle: Shuffle,
    /// Whether the axis is the same for all projections.
    pub same_axis: bool,
    pub bound: Bound,
    /// See [`Problem::size`].
    pub size: usize,
    pub matrix: Matrix,
    /// Items per warp in matrix products.
    pub lanes: u32,
    /// Whether local memory is filled by the copy engine.
    pub bulk_copies: bool,
    /// Whether sums are added to those of other projections in the slices.
    pub accumulate: bool,
    pub build: Build,
    /// Most registers of an item that the compiler is asked for, if it can be asked and the profile does.
    pub registers: Option<u32>,
    /// The compiler's option for that.
    pub register_option: String,
}

/// Size in bytes of constant memory that every device has.
pub const SMALLEST_CONSTANT_BUFFER: u64 = 64 << 10;

/// Bytes of the constants of one projection.
const CONSTANT_BYTES: usize = 16;

impl KernelSpec {
    /// The kernel of an offer, for a problem, reading `texel`. Without `facts` the device is assumed to have everything that
    /// the target's architecture has.
    pub fn new<'a>(
        offer: &Offer,
        target: impl Into<KernelTarget<'a>>,
        texel: Texel,
        problem: Problem,
        facts: Option<&DeviceFacts>,
    ) -> Self {
        let target = target.into();
        let hardware = target.hardware;
        let available = facts.map_or(SMALLEST_CONSTANT_BUFFER, |f| f.constant_buffer);
        let bytes = (problem.projections * CONSTANT_BYTES) as u64;
        let mut parameters = match texel {
            Texel::Buffer => offer.parameters.clone().with_buffer(),
            _ => offer.parameters.clone(),
        };
        if !keeps_margin_from_bin_0(offer, texel) || problem.span > Positions::WIDEST_ABSOLUTE {
            parameters.family_mut().count_from_blocks();
        }
        let common = parameters.common().clone();
        let own_compiler = has_own_compiler(target, facts);
        let by_matrix = parameters.family().uses_matrix_unit();
        let matrix = if by_matrix { Matrix::of(target, facts) } else { Matrix::Plain };
        let shuffle = Shuffle::of(parameters.family().exchange_span(), target, facts);
        parameters.family_mut().adapt(hardware.assembly && own_compiler, &matrix);
        KernelSpec {
            interpolation: offer.interpolation,
            slices: offer.slices,
            parameters,
            texel,
            constants: if bytes <= available { common.constants } else { Constants::Global },
            shuffle,
            same_axis: problem.same_axis,
            bound: problem.bound.unwrap_or(Bound::usual(offer.mode)),
            size: problem.size,
            matrix,
            lanes: hardware.lanes(),
            bulk_copies: by_matrix && hardware.bulk_copies && own_compiler,
            accumulate: false,
            build: target.build.accepted(facts),
            registers: hardware.register_limit(common.occupancy, target.residency).filter(|_| own_compiler),
            register_option: hardware.register_option.clone(),
        }
    }

    /// What the code of its family depends on.
    pub fn form(&self) -> KernelForm<'_> {
        KernelForm {
            interpolation: self.interpolation,
            slices: self.slices,
            texel: self.texel,
            shuffle: self.shuffle,
            same_axis: self.same_axis,
            bound: self.bound,
            size: self.size,
            matrix: &self.matrix,
            lanes: self.lanes,
            bulk_copies: self.bulk_copies,
        }
    }

    /// The same kernel with another bound.
    pub fn bounded(&self, bound: Bound) -> Self {
        KernelSpec { bound, ..self.clone() }
    }

    /// The same kernel, adding its sums to those of other projections in the slices.
    pub fn accumulating(&self) -> Self {
        KernelSpec { accumulate: true, ..self.clone() }
    }

    /// Short name for messages and reports.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.parameters.algorithm(), self.interpolation, self.layout())
    }

    /// Name of the memory layout of the compound sinogram.
    pub fn layout(&self) -> String {
        let texel = match self.texel {
            Texel::Buffer | Texel::GuardedBuffer { .. } => "buffer".to_owned(),
            Texel::Image(format) => format!("image-{}", format.to_string().replace(' ', "-").to_lowercase()),
            Texel::PackedHalves(format) => format!("image-forged-{:?}", format.channels).to_lowercase(),
            Texel::Halves { split: false, .. } => "halves".to_owned(),
            Texel::Halves { split: true, .. } => "halves-split".to_owned(),
            Texel::Spectra { together: true } => "spectra-together".to_owned(),
            Texel::Spectra { together: false } => "spectra".to_owned(),
        };
        format!("{}-x{}-{texel}", self.parameters.storage(), self.slices)
    }

    /// Bytes that one bin of the compound sinogram takes.
    pub fn element_bytes(&self) -> usize {
        self.parameters.storage().bytes() * self.texel.channels(self.slices)
    }

    /// How the kernel interpolates the value at a position on the detector.
    pub fn reads(&self) -> Reads {
        self.parameters.reads(self.interpolation)
    }

    /// Cost of an update.
    pub fn load(&self) -> Load {
        self.parameters.family().load(&self.form())
    }

    /// Bytes of local memory that a work-group has, as the files in `cl/` declare it.
    pub fn local_memory(&self) -> u64 {
        self.parameters.family().local_memory(&self.form())
    }

    /// Options of the compiler that all programs of the kernel have.
    pub(super) fn compiler_options(&self) -> Vec<String> {
        let mut options = self.build.compiler_options();
        if self.parameters.common().relaxed_math {
            options.push("-cl-fast-relaxed-math".into());
        }
        options
    }

    /// Checks the rules that the generator relies on.
    fn check(&self) -> Result<()> {
        let wrong = |message: &str| Err(Error::usage(format!("kernel {}: {message}", self.name())));
        if !SLICE_MODES.contains(&self.slices) {
            return wrong("this number of slices per pass is not supported; choose another --slices-per-pass");
        }
        match self.texel {
            Texel::Buffer | Texel::Halves { .. } | Texel::GuardedBuffer { .. } | Texel::Spectra { .. } => Ok(()),
            Texel::Image(_) if self.texel.channels(self.slices) < self.slices as usize => {
                wrong("the texel has fewer channels than slices; choose a smaller --slices-per-pass")
            }
            Texel::PackedHalves(_) if self.parameters.family().reads_between_bins(self.interpolation) => {
                wrong("packed halves cannot be interpolated by the texture unit; choose a smaller --slices-per-pass")
            }
            _ if self.parameters.sampler() == Sampler::Buffer => {
                wrong("an image needs the sampler `image`; choose another --algorithm")
            }
            _ => Ok(()),
        }
    }

    /// Source, options and launch shape.
    ///
    /// # Errors
    /// A usage error for a kernel that cannot read its layout of the sinogram.
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
        self.texel.define(&mut defines)?;
        self.parameters.family().define(&self.form(), &mut defines)?;
        let shape = self.parameters.family().shape(&self.form());
        defines.number("WORK_X", shape.work_group[0])?;
        defines.number("WORK_Y", shape.work_group[1])?;
        let own = self.parameters.family().files().iter().copied();
        let files: Vec<ClFile> = [COMMON].into_iter().chain(self.texel.reader()).chain(own).collect();
        let mut options = self.compiler_options();
        options.extend(self.registers.map(|registers| format!("{}={registers}", self.register_option)));
        let source = assemble(self.name(), &defines, &files, options, "backproject", shape)
            .keyed_with(self.parameters.family().files_around());
        let clearance = self.parameters.family().clearance();
        Ok(KernelSource { packed: common.packed_constants, clearance, ..source })
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::HALF_ARITHMETIC;
    use super::*;
    use crate::kernel::Hardware;

    #[test]
    fn a_matrix_function_needs_the_compiler_and_halves() {
        let own = "cl_own_compiler";
        let hardware = Hardware {
            compiler_extension: own.into(),
            matrix_function: "multiply_halves".into(),
            ..Hardware::default()
        };
        let build = Build::default();
        let parameters = Parameters::start(crate::kernel::Algorithm::Tensor, Mode::Fast);
        let offer = Offer { interpolation: Interpolation::Linear, mode: Mode::Fast, slices: 16, parameters };
        let spec = |extensions: &[&str]| {
            let extensions = extensions.iter().map(|&e| e.to_owned()).collect();
            let facts = DeviceFacts { extensions, ..DeviceFacts::default() };
            let problem = Problem::new(8, true);
            let target = KernelTarget { hardware: &hardware, build: &build, residency: None };
            KernelSpec::new(&offer, target, offer.texels()[0], problem, Some(&facts))
        };
        assert_eq!(
            spec(&[own, HALF_ARITHMETIC]).matrix,
            Matrix::Function { name: hardware.matrix_function.clone(), warp_attribute: String::new() }
        );
        for extensions in [&[own][..], &[HALF_ARITHMETIC], &[]] {
            let spec = spec(extensions);
            assert_eq!(spec.matrix, Matrix::Plain);
            assert_eq!(spec.generate().unwrap().work_group[0], 64);
        }
    }
}
