//! The target of a build: properties of an architecture, and options of its compiler.

use crate::facts::DeviceFacts;
use serde::{Deserialize, Serialize};

/// Properties of the architecture that translate a profile's values into compiler options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Hardware {
    /// Number of 32-bit registers per item at full occupancy; 0 if no option limits registers. Where the residency is
    /// known, the limit follows from it instead.
    pub registers_at_full_occupancy: u32,
    /// Largest number of registers that an item can have.
    pub max_registers: u32,
    /// Compiler option that limits registers, without the number; it needs `compiler_extension`.
    pub register_option: String,
    /// Extension without which neither the option nor assembly nor the compiler's matrix function is used.
    pub compiler_extension: String,
    /// True if inline assembly may replace missing shuffle extensions.
    pub assembly: bool,
    /// True if assembly can use matrix units that multiply 16 x 16 by 16 x 8 halves.
    pub matrix: bool,
    /// Compiler function that multiplies halves, instead of `matrix`: 16 x 16 by 16 x 16 with warps of 64, 8 x 16 by 16
    /// x 16 with warps of 16.
    pub matrix_function: String,
    /// Number of items per warp for `matrix_function`: 64 or 16.
    pub matrix_lanes: u32,
    /// Function attribute that sets the warp size, given in brackets after it; empty if all warps have this size.
    pub warp_attribute: String,
    /// True if assembly can use an engine that copies to local memory in bulk.
    pub bulk_copies: bool,
}

impl Hardware {
    /// Returns the number of items per warp that the matrix unit requires.
    pub fn lanes(&self) -> u32 {
        match (self.matrix_function.is_empty(), self.matrix_lanes) {
            (true, _) => 32,
            (false, 0) => 64,
            (false, lanes) => lanes,
        }
    }

    /// Reports whether there is a matrix unit that kernels can use.
    pub fn has_matrix_unit(&self) -> bool {
        self.matrix || !self.matrix_function.is_empty()
    }

    /// Returns the largest number of registers of an item for an occupancy in percent, if the compiler has an option
    /// for it. The more warps are resident, the smaller it is.
    pub(super) fn register_limit(&self, occupancy: u32, residency: Option<&Residency>) -> Option<u32> {
        let by_share = (self.registers_at_full_occupancy * 100).checked_div(occupancy)?;
        let registers = residency.map_or(by_share, |held| held.registers_for(occupancy));
        let limits = by_share > 0 && registers > 0 && !self.register_option.is_empty();
        limits.then_some(registers.min(self.max_registers))
    }
}

/// Resources of a compute unit, which determine the occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Residency {
    /// Number of work-items of a warp.
    pub warp: u32,
    /// Largest number of resident warps.
    pub warps: u32,
    /// Largest number of resident work-groups.
    pub groups: u32,
    /// Number of 32-bit registers.
    pub registers: u32,
    /// Bytes of local memory.
    pub local_memory: u32,
    /// Number of registers of which the allocation for a warp is a multiple.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub register_granule: u32,
    /// Number of warps of which the resident warps are a multiple where registers limit them.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub warp_granule: u32,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
fn is_one(value: &u32) -> bool {
    *value == 1
}

impl Residency {
    /// Returns the largest number of registers of an item with which an occupancy in percent is reached.
    pub fn registers_for(&self, occupancy: u32) -> u32 {
        let warps = (self.warps * occupancy).div_ceil(100).max(1).next_multiple_of(self.warp_granule);
        self.registers / warps / self.register_granule * self.register_granule / self.warp
    }

    /// Returns the number of warps whose items may have this many registers each.
    pub fn warps_for(&self, registers: u32) -> u32 {
        let of_warp = (registers.max(1) * self.warp).next_multiple_of(self.register_granule);
        self.registers / of_warp / self.warp_granule * self.warp_granule
    }
}

/// A version of OpenCL C that kernels are compiled as. They keep to 1.1; another version only changes the driver's
/// behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CVersion {
    #[serde(rename = "1.1")]
    V1,
    /// Version 2.0, or 1.1 where the compiler does not accept 2.0.
    #[serde(rename = "2.0")]
    V2,
}

/// Options of the device's compiler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Build {
    /// Version of OpenCL C.
    pub opencl_c: CVersion,
    /// `-cl-mad-enable`: a product and a sum may become one instruction.
    pub mad: bool,
    /// Further options, passed on unchanged.
    pub options: Vec<String>,
}

impl Default for Build {
    fn default() -> Self {
        Build { opencl_c: CVersion::V1, mad: true, options: Vec::new() }
    }
}

impl Build {
    /// Returns the options without a version that the device's compiler does not accept.
    pub(super) fn accepted(&self, facts: Option<&DeviceFacts>) -> Build {
        let accepts = facts.is_none_or(|f| f.accepts_opencl_c_2);
        Build { opencl_c: if accepts { self.opencl_c } else { CVersion::V1 }, ..self.clone() }
    }

    /// Returns the options for the compiler, in a fixed order.
    pub(super) fn compiler_options(&self) -> Vec<String> {
        let version = match self.opencl_c {
            CVersion::V1 => "-cl-std=CL1.1",
            CVersion::V2 => "-cl-std=CL2.0",
        };
        let mut options = vec![version.to_owned()];
        if self.mad {
            options.push("-cl-mad-enable".into());
        }
        options.extend(self.options.iter().cloned());
        options
    }
}

/// The target that a kernel is built for.
#[derive(Clone, Copy, Debug)]
pub struct KernelTarget<'a> {
    pub hardware: &'a Hardware,
    pub build: &'a Build,
    /// Resources of a compute unit, if known.
    pub residency: Option<&'a Residency>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_the_compiler_refuses_is_not_asked_for() {
        let build = Build { opencl_c: CVersion::V2, ..Build::default() };
        for (accepts_opencl_c_2, wanted) in [(false, "-cl-std=CL1.1"), (true, "-cl-std=CL2.0")] {
            let facts = DeviceFacts { accepts_opencl_c_2, ..DeviceFacts::default() };
            assert_eq!(build.accepted(Some(&facts)).compiler_options()[0], wanted);
        }
        assert_eq!(build.accepted(None), build);
    }
}
