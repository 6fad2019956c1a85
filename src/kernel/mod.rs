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
mod load;
mod parameter;
mod parameters;
mod registry;
mod source;
mod spec;
mod steps;
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
pub use family::{Family, Reads};
pub use file_order::files;
pub use files::ClFile;
pub use filter::{Fft, ImageFilterBackend, Padding, ROW_GROUP, RowFilter, RowFilterBackend, RowFilterMethod, TILE};
pub use filter_source::generate_filter;
pub use form::{Bound, KernelForm, Matrix, SUB_GROUP_SHUFFLES, Shuffle};
pub use load::Load;
pub use parameter::{Declared, LegalValues, Parameter};
pub use source::{KernelSource, LaunchShape, generate_probe};
pub use spec::{KernelSpec, Offer, Problem, SMALLEST_CONSTANT_BUFFER};
pub use steps::{
    AirKind, CORRECTION_GROUP, ColumnSort, ColumnSumGroup, CorrectionForm, EncodedSample, FitGroups, FrequencyGroup,
    IMAGE_LENGTHS, ImageGroups, LogKind, OutlierKernel, OutlierTile, SampleForm, SampleKind, StepBackend, StepBackends,
    StepSizes, StepTarget, counting_group, generate_column_sums, generate_columns, generate_correction,
    generate_encoding, generate_extension, generate_fits, generate_histogram, generate_image_columns,
    generate_image_rows, generate_low_frequencies, generate_minus_log, generate_outliers, generate_polynomials,
    generate_rotation, generate_transposed_medians, generate_wavelet, generate_whole_images, power_of_two_group,
    step_programs, whole_image_group,
};
pub use steps::{BinningKernel, generate_binning};
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
