//! Specification of a back-projection kernel, which determines its text.

use super::errors::{KernelRuleError, KernelSpecError};
use super::files::{COMMON, ClFile};
use super::form::{Bound, KernelForm, Matrix, Shuffle, has_own_compiler};
use super::source::assemble;
use super::{
    Build, Constants, Defines, Interpolation, KernelSource, KernelTarget, Load, Mode, Parameters, Positions,
    SLICE_MODES, Sampler, Storage, Texel,
};
use crate::error::Result;
use crate::facts::DeviceFacts;
use crate::reference::Reads;

/// A kernel for one interpolation, mode and number of slices, independent of the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    pub interpolation: Interpolation,
    pub mode: Mode,
    /// Number of slices per pass.
    pub slices: u32,
    pub parameters: Parameters,
}

impl Offer {
    /// Checks the rules that the kernel must obey on any device; the error is the rule that it violates.
    pub fn check(&self) -> Result<(), KernelRuleError> {
        self.parameters.check(&[self.slices])
    }

    /// Returns the layouts of the sinogram that the kernel can read, best first; the last one works everywhere.
    pub fn texels(&self) -> Vec<Texel> {
        self.parameters.family().texels(self.interpolation, self.slices)
    }
}

/// Reports whether positions that are counted from bin 0 are exact enough for the mode of a kernel. In `precise`,
/// positions between bins are not, unless the texture unit interpolates there, whose weights of 8 bits are coarser.
fn keeps_margin_from_bin_0(offer: &Offer, texel: Texel) -> bool {
    let by_unit = texel.format().is_some() && offer.parameters.family().reads_between_bins(offer.interpolation);
    offer.mode == Mode::Fast || offer.interpolation == Interpolation::Nearest || by_unit
}

/// Properties of a problem that influence its kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    pub projections: usize,
    /// True if all projections have the same axis.
    pub same_axis: bool,
    /// Bound of kernels with interpolation `exact`; `None` for the usual one of the kernel's mode.
    pub bound: Option<Bound>,
    /// Side of slices in pixels, on which the cost of an update depends where slices differ in size.
    pub size: usize,
    /// Number of bins that positions and their terms span, see `Geometry::span`: kernels count positions from bin 0
    /// only up to [`Positions::WIDEST_ABSOLUTE`].
    pub span: usize,
}

impl Problem {
    /// Returns a problem whose kernels have the usual bounds, for 2048 bins and slices of 2048 x 2048 pixels.
    pub const fn new(projections: usize, same_axis: bool) -> Self {
        Problem { projections, same_axis, bound: None, size: 2048, span: 2048 }
    }
}

/// Everything that determines the text of a back-projection kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSpec {
    pub interpolation: Interpolation,
    /// Number of slices per pass.
    pub slices: u32,
    pub parameters: Parameters,
    pub texel: Texel,
    /// Memory for the constants; depends on the number of projections.
    pub constants: Constants,
    pub shuffle: Shuffle,
    /// True if all projections have the same axis.
    pub same_axis: bool,
    pub bound: Bound,
    /// Side of slices in pixels, see [`Problem::size`].
    pub size: usize,
    pub matrix: Matrix,
    /// Number of items per warp in matrix products.
    pub lanes: u32,
    /// True if local memory is filled by the copy engine.
    pub bulk_copies: bool,
    /// True if sums are added to those of other projections in the slices.
    pub accumulate: bool,
    pub build: Build,
    /// Largest number of registers of an item that the compiler is asked for, if it supports that and the profile wants
    /// it.
    pub registers: Option<u32>,
    /// Compiler option that limits registers.
    pub register_option: String,
}

/// Size in bytes of constant memory that every device has.
pub const SMALLEST_CONSTANT_BUFFER: u64 = 64 << 10;

/// Bytes of the constants of one projection.
const CONSTANT_BYTES: usize = 16;

impl KernelSpec {
    /// Returns the kernel of an offer, for a problem, reading `texel`. Without `facts` the device is assumed to have
    /// everything that the target's architecture has.
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

    /// Returns the properties that the code of the kernel's family depends on.
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

    /// Returns the same kernel, adding its sums to those of other projections in the slices.
    pub fn accumulating(&self) -> Self {
        KernelSpec { accumulate: true, ..self.clone() }
    }

    /// Returns a short name for messages and reports.
    pub fn name(&self) -> String {
        format!("{}-{}-{}", self.parameters.algorithm(), self.interpolation, self.layout())
    }

    /// Returns the name of the memory layout of the compound sinogram.
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

    /// Returns the bytes of one bin of the compound sinogram.
    pub fn element_bytes(&self) -> usize {
        self.parameters.storage().bytes() * self.texel.channels(self.slices)
    }

    /// Returns the rule by which the kernel interpolates the value at a position on the detector.
    pub fn reads(&self) -> Reads {
        self.parameters.reads(self.interpolation)
    }

    /// Returns the cost of an update.
    pub fn load(&self) -> Load {
        self.parameters.family().load(&self.form())
    }

    /// Returns the bytes of local memory of a work-group, as declared by the files in `cl/`.
    pub fn local_memory(&self) -> u64 {
        self.parameters.family().local_memory(&self.form())
    }

    /// Returns the compiler options that all programs of the kernel have in common.
    pub(super) fn compiler_options(&self) -> Vec<String> {
        let mut options = self.build.compiler_options();
        if self.parameters.common().relaxed_math {
            options.push("-cl-fast-relaxed-math".into());
        }
        options
    }

    /// Checks the rules that the generator relies on.
    fn check(&self) -> Result<(), KernelSpecError> {
        let name = self.name();
        if !SLICE_MODES.contains(&self.slices) {
            return Err(KernelSpecError::SlicesPerPass { name });
        }
        match self.texel {
            Texel::Buffer | Texel::Halves { .. } | Texel::GuardedBuffer { .. } | Texel::Spectra { .. } => Ok(()),
            Texel::Image(_) if self.texel.channels(self.slices) < self.slices as usize => {
                Err(KernelSpecError::FewChannels { name })
            }
            Texel::PackedHalves(_) if self.parameters.family().reads_between_bins(self.interpolation) => {
                Err(KernelSpecError::PackedHalves { name })
            }
            _ if self.parameters.sampler() == Sampler::Buffer => Err(KernelSpecError::NoImageSampler { name }),
            _ => Ok(()),
        }
    }

    /// Generates source, options and launch shape.
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
