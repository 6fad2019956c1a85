//! The interface of a family of back-projection kernels: everything that depends on the family.

use super::errors::KernelRuleError;
use super::files::ClFile;
use super::form::{KernelForm, Matrix};
use super::{Algorithm, Common, Defines, Hardware, Interpolation, LaunchShape, Load, Mode, Sampler, Texel};
use crate::error::Result;
use crate::facts::{DeviceFacts, DeviceKind};
use crate::reference::Reads;
use std::fmt::Debug;
use std::ops::RangeInclusive;

/// A family of back-projection kernels, implemented by its parameters.
pub trait Family: Debug {
    /// Returns a line about the family for docs/profiles.md.
    fn meaning(&self) -> &'static str;

    /// Returns further text about the family for docs/profiles.md.
    fn notes(&self) -> &'static str {
        ""
    }

    /// Returns the parameters that every family has.
    fn common(&self) -> &Common;

    /// Returns the parameters that every family has, mutable.
    fn common_mut(&mut self) -> &mut Common;

    /// Returns the parameters from which tuning starts if a profile does not offer the family.
    fn start(mode: Mode) -> Self
    where
        Self: Sized;

    /// Reports whether the family is worth trying on a device whose profile does not offer it.
    fn suits(&self, _hardware: &Hardware, facts: &DeviceFacts) -> bool {
        facts.kind != DeviceKind::Cpu
    }

    /// Returns the numbers of slices per pass that the kernel supports.
    fn slices(&self) -> RangeInclusive<u32> {
        1..=16
    }

    /// Returns the keys of parameters that the family's rules fix or that its kernel ignores: tuning does not change
    /// them.
    fn fixed(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks rules across parameters, and with slices per pass. Each value by itself is legal.
    ///
    /// # Errors
    /// The rule that is violated.
    fn check(&self, slices: &[u32]) -> Result<(), KernelRuleError>;

    /// Returns the files of `cl/` that follow `common.cl` and the one that reads the sinogram, in order.
    fn files(&self) -> &'static [ClFile];

    /// Returns the files of `cl/` for programs that run before and after the kernel, on which its key also depends.
    fn files_around(&self) -> &'static [ClFile] {
        &[]
    }

    /// Adds the family's own defines.
    ///
    /// # Errors
    /// A define that is already set.
    fn define(&self, form: &KernelForm, defines: &mut Defines) -> Result<()>;

    /// Work-group and block.
    fn shape(&self, form: &KernelForm) -> LaunchShape;

    /// Returns the layouts of the sinogram that the kernel can read, best first; the last one works everywhere.
    fn texels(&self, interpolation: Interpolation, slices: u32) -> Vec<Texel> {
        let common = self.common();
        let mut texels = match common.sampler {
            Sampler::Image => Texel::candidates(slices, common.storage, self.reads_between_bins(interpolation)),
            Sampler::Buffer => Vec::new(),
        };
        texels.push(Texel::Buffer);
        texels
    }

    /// Reports whether the sinogram is read between bins, so that an image needs a format that the texture unit can
    /// interpolate.
    fn reads_between_bins(&self, interpolation: Interpolation) -> bool {
        interpolation == Interpolation::Linear
    }

    /// Reports whether the family's kernel supports this interpolation.
    fn serves(&self, interpolation: Interpolation) -> bool {
        interpolation != Interpolation::Exact
    }

    /// Returns the rule by which values are interpolated. A family whose rule differs from that of the interpolation is
    /// only used on request.
    fn reads(&self, interpolation: Interpolation) -> Reads {
        interpolation.reads()
    }

    /// Reports whether positions are counted from bin 0 in `f32`, which loses precision on wide detectors.
    fn counts_from_bin_0(&self) -> bool {
        false
    }

    /// Counts positions from blocks, if the family can count from bin 0 as well.
    fn count_from_blocks(&mut self) {}

    /// Returns the clearance in bins that constants keep below the lowest position of a block.
    fn clearance(&self) -> f64 {
        0.0
    }

    /// Reports whether intermediate values are rounded to half precision, however values are stored.
    fn rounds_to_half(&self) -> bool {
        false
    }

    /// Returns the number of neighbouring items that exchange values by shuffles; 0 for none.
    fn exchange_span(&self) -> u32 {
        0
    }

    /// Reports whether the kernel multiplies on the matrix unit if there is one.
    fn uses_matrix_unit(&self) -> bool {
        false
    }

    /// Turns off features that need inline assembly or a matrix unit if the device does not support them.
    fn adapt(&mut self, _assembly: bool, _matrix: &Matrix) {}

    /// Returns the cost of an update.
    fn load(&self, form: &KernelForm) -> Load;

    /// Returns the bytes of local memory that a work-group has, as the files in `cl/` declare it.
    fn local_memory(&self, _form: &KernelForm) -> u64 {
        0
    }

    /// Returns the families that replace this one where it must be avoided, best first.
    fn stand_ins(&self) -> &'static [Algorithm] {
        &[Algorithm::Standard]
    }
}

/// Returns the error, unless the rule holds.
pub(super) fn rule(holds: bool, error: KernelRuleError) -> Result<(), KernelRuleError> {
    if holds { Ok(()) } else { Err(error) }
}
