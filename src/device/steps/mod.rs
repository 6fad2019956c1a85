//! Operations for the steps around the filter, one module per group: kernels with their memory, started after checks.

mod batches;
mod binning;
mod blocks;
mod column_sums;
mod columns;
mod correction;
mod encoding;
mod extension;
mod fits;
mod histogram;
mod image_filter;
mod images;
mod kept_block;
mod low_frequencies;
mod outliers;
mod polynomials;
mod sinograms;
mod transposed_medians;
mod wavelet;

pub use batches::{BatchCorrector, BatchPart, CopiedProjections};
pub use binning::SampleBinner;
pub use blocks::{BlockCorrector, BlockShape};
pub use column_sums::{ColumnSum, ColumnSums, Gap};
pub use columns::{ColumnCorrection, ColumnOrder};
pub use correction::{
    AirCorrection, FieldImages, PieceSize, ProjectionState, RowCorrection, RowCorrector, RowCounts, SampleOrder,
};
pub use encoding::{EncodedSlices, SliceEncoder};
pub use extension::RowExtender;
pub use fits::SmoothedFits;
pub use histogram::{SliceCounter, SliceCounts};
pub use image_filter::ImageFilter;
pub use images::{ImageFilterForm, ImagePart, ImageRows, ImageSteps, RotationForm, RowBlocks};
pub use low_frequencies::LowFrequencies;
pub use outliers::{DetectorRows, OutlierForm, OutlierRemover, OutlierRows};
pub use polynomials::{AddedProfiles, ColumnProducts, SinogramShape};
pub use sinograms::{DeviceValues, SinogramBatch};
pub use transposed_medians::RunningMedians;
pub use wavelet::WaveletTransform;

use super::host_memory::ComingMemory;
use super::session::Queue;
use super::{HostMemory, Session, cl_error, copies};
use crate::fault;
