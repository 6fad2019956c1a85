//! Back-projection kernels: their families, and the generator, a pure function from a specification to OpenCL C source,
//! build options and launch shape.
//!
//! Kernels are the files in `cl/`; the generator picks and orders them and prepends sorted defines. It needs no
//! device and no clock, so its output is kept in git (`tests/golden/`) and compared. Everything that depends on a family
//! is in the family's module, behind [`Family`]; `families!` below lists them.

mod common;
mod defines;
mod errors;
mod family;
mod file_order;
mod files;
mod filter;
mod filter_source;
mod form;
mod image_groups;
mod load;
mod parameter;
mod parameters;
mod registry;
mod source;
mod spec;
mod step_backends;
mod step_sizes;
mod target;
mod texel;
mod words;

mod alu;
mod grid_family;
mod grid_lines;
mod grid_stages;
mod gridding;
mod hybrid;
mod standard;
mod tensor;
mod texture;
mod vector;

pub use common::Common;
pub use defines::Defines;
pub use errors::KernelRuleError;
pub use family::Family;
pub use file_order::files;
pub use files::ClFile;
pub(crate) use files::{BUTTERFLIES, COMMON, TRANSFORM_ROW, cl_file};
pub use filter::{Fft, ImageFilterBackend, ROW_GROUP, RowFilter, RowFilterBackend, RowFilterMethod, TILE};
pub use filter_source::generate_filter;
pub use form::{Bound, KernelForm, Matrix, SUB_GROUP_SHUFFLES, Shuffle};
pub use image_groups::{IMAGE_LENGTHS, ImageGroups};
pub use load::Load;
pub use parameter::{Declared, LegalValues, Parameter};
pub(crate) use source::assemble;
pub use source::{KernelSource, LaunchShape, generate_probe};
pub use spec::{KernelSpec, Offer, Problem, SMALLEST_CONSTANT_BUFFER};
pub use step_backends::{StepBackend, StepBackends};
#[cfg(test)]
pub(crate) use step_sizes::of;
pub use step_sizes::{StepSizes, StepTarget, power_of_two, power_of_two_group};
pub use target::{Build, CVersion, Hardware, KernelTarget, Residency};
pub use texel::{GUARD, Texel};
pub use words::{Algorithm, Constants, Exchange, Interpolation, Mode, Positions, SLICE_MODES, Sampler, Storage};

pub use alu::{Cache, Mapping, OVERSAMPLE, Offsets, Rounding};
pub use grid_lines::{GridLines, line_programs};
pub use grid_stages::{GridStage, GridTask};
pub use gridding::GridItems;
pub use hybrid::Balance;

registry::families! {
    standard::Standard,
    texture::Texture,
    alu::Alu,
    alu::Oversample,
    hybrid::Hybrid,
    tensor::Tensor,
    vector::Vector,
    gridding::Gridding,
}
