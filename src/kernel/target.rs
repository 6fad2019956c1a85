//! What kernels are built for: properties of an architecture, and options of its compiler.

use serde::{Deserialize, Serialize};

/// Properties of the architecture that translate a profile's values into compiler options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Hardware {
    /// 32-bit registers per item at full occupancy; 0 if no option limits registers.
    pub registers_at_full_occupancy: u32,
    /// Most registers that an item can have.
    pub max_registers: u32,
    /// The compiler's option for it, without the number; it needs the extension that follows.
    pub register_option: String,
    /// Extension without which neither the option nor assembly nor the compiler's matrix function is used.
    pub compiler_extension: String,
    /// Whether inline assembly may replace missing shuffle extensions.
    pub assembly: bool,
    /// Whether assembly can use matrix units that multiply 16 x 16 by 16 x 8 halves.
    pub matrix: bool,
    /// Instead of `matrix`, the compiler's function that multiplies halves: 16 x 16 by 16 x 16 with warps of 64, 8 x 16 by
    /// 16 x 16 with warps of 16.
    pub matrix_function: String,
    /// Items per warp for that function: 64 or 16.
    pub matrix_lanes: u32,
    /// The function attribute that sets the warp size, given in brackets after it; empty if all warps have this size.
    pub warp_attribute: String,
    /// Whether assembly can use an engine that copies to local memory in bulk.
    pub bulk_copies: bool,
}

impl Hardware {
    /// Items per warp, as the matrix unit requires.
    pub fn lanes(&self) -> u32 {
        match (self.matrix_function.is_empty(), self.matrix_lanes) {
            (true, _) => 32,
            (false, 0) => 64,
            (false, lanes) => lanes,
        }
    }

    /// Whether there is a matrix unit that kernels can use.
    pub fn has_matrix_unit(&self) -> bool {
        self.matrix || !self.matrix_function.is_empty()
    }

    /// The compiler option for an occupancy in percent: the more warps are resident, the fewer registers per item.
    pub(super) fn register_limit(&self, occupancy: u32) -> Option<String> {
        let registers = (self.registers_at_full_occupancy * 100).checked_div(occupancy)?;
        if registers == 0 || self.register_option.is_empty() {
            return None;
        }
        Some(format!("{}={}", self.register_option, registers.min(self.max_registers)))
    }
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

impl Build {
    /// Options of the compiler, in a fixed order.
    pub(super) fn compiler_options(&self) -> Vec<String> {
        let mut options = vec!["-cl-std=CL1.1".to_owned()];
        if self.mad {
            options.push("-cl-mad-enable".into());
        }
        if self.relaxed_math {
            options.push("-cl-fast-relaxed-math".into());
        }
        options.extend(self.options.iter().cloned());
        options
    }
}

/// What a kernel is built for.
#[derive(Clone, Copy, Debug)]
pub struct KernelTarget<'a> {
    pub hardware: &'a Hardware,
    pub build: &'a Build,
}
