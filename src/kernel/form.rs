//! Properties that the code of a family depends on besides its parameters.

use super::{Defines, Interpolation, KernelTarget, Mode, Texel};
use crate::error::Result;
use crate::facts::DeviceFacts;

/// The extensions that sub-group shuffles need.
pub const SUB_GROUP_SHUFFLES: [&str; 2] = ["cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative"];

/// The extension that the compiler's matrix function needs: its factors are halves.
pub(super) const HALF_ARITHMETIC: &str = "cl_khr_fp16";

/// A kernel as its family sees it; the rest of its specification matters to no family.
#[derive(Clone, Copy, Debug)]
pub struct KernelForm<'a> {
    pub interpolation: Interpolation,
    /// Slices per pass.
    pub slices: u32,
    pub texel: Texel,
    pub shuffle: Shuffle,
    /// True if the axis is the same for all projections.
    pub same_axis: bool,
    pub bound: Bound,
    /// Side of slices in pixels.
    pub size: usize,
    pub matrix: &'a Matrix,
    /// Items per warp in matrix products.
    pub lanes: u32,
    /// True if the copy engine fills local memory.
    pub bulk_copies: bool,
}

/// How the items of a warp exchange values on a device. Kernels get its index in this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// Through local memory.
    None,
    /// The sub-group extensions.
    SubGroup,
    /// Inline assembly of the device.
    Assembly,
}

impl Shuffle {
    /// The method for `span` neighbouring items.
    pub(super) fn of(span: u32, target: KernelTarget, facts: Option<&DeviceFacts>) -> Shuffle {
        // compilers choose the size of sub-groups; no device with shuffles is known to use less than this
        const SMALLEST_SUB_GROUP: u32 = 8;
        match facts {
            _ if span == 0 => Shuffle::None,
            Some(f) if span <= SMALLEST_SUB_GROUP && SUB_GROUP_SHUFFLES.iter().all(|extension| f.has(extension)) => {
                Shuffle::SubGroup
            }
            _ if target.hardware.assembly && has_own_compiler(target, facts) => Shuffle::Assembly,
            _ => Shuffle::None,
        }
    }

    pub(super) fn define(self, defines: &mut Defines) -> Result<()> {
        defines.number("SHUFFLE", self as u32)
    }
}

/// How matrices are multiplied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// Plain arithmetic.
    Plain,
    /// The matrix unit, by inline assembly.
    Assembly,
    /// The matrix unit, by a built-in function of the compiler, and the attribute that sets the warp size it needs.
    Function { name: String, warp_attribute: String },
}

impl Matrix {
    /// The best method that the device offers.
    pub(super) fn of(target: KernelTarget, facts: Option<&DeviceFacts>) -> Matrix {
        let hardware = target.hardware;
        if !has_own_compiler(target, facts) {
            Matrix::Plain
        } else if hardware.matrix {
            Matrix::Assembly
        } else if !hardware.matrix_function.is_empty() && facts.is_none_or(|f| f.has(HALF_ARITHMETIC)) {
            Matrix::Function { name: hardware.matrix_function.clone(), warp_attribute: hardware.warp_attribute.clone() }
        } else {
            Matrix::Plain
        }
    }
}

/// Reports whether the device's compiler is the one that the options, assembly and functions of the architecture
/// require.
pub(super) fn has_own_compiler(target: KernelTarget, facts: Option<&DeviceFacts>) -> bool {
    facts.is_none_or(|f| f.has(&target.hardware.compiler_extension))
}

/// How far a kernel of interpolation `exact` may be from the exact slice, and what it takes to keep that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Root mean square, relative to that of the slice.
    pub accuracy: f64,
    /// Cells of a side of the kernel that spreads frequencies.
    pub width: u32,
}

impl Bound {
    /// Returns the usual bound of a mode, with the kernel for twice as many cells as pixels.
    pub const fn usual(mode: Mode) -> Bound {
        match mode {
            Mode::Fast => Bound { accuracy: 1e-3, width: 5 },
            Mode::Precise => Bound { accuracy: 1e-5, width: 7 },
        }
    }
}
