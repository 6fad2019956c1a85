//! Device operations of the steps around the filter, one module per group: kernels with their memory, started after
//! checks.

mod batch_images;
mod binning;
mod block_shape;
mod blocks;
mod column_sums;
mod columns;
mod copied_projections;
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
mod row_correction;
mod samples;
mod sinograms;
mod transposed_medians;
mod wavelet;

pub use binning::SampleBinner;
pub use block_shape::{BlockPlace, BlockShape};
pub use blocks::{BlockCorrector, ImagesTarget};
pub use column_sums::{ColumnSum, ColumnSums, Gap};
pub use columns::{ColumnCorrection, ColumnOrder};
pub use copied_projections::CopiedProjections;
pub use encoding::{EncodedSlices, SliceEncoder};
pub use extension::RowExtender;
pub use fits::SmoothedFits;
pub use histogram::{SliceCounter, SliceCounts};
pub use image_filter::ImageFilter;
pub use images::{DeviceRows, ImageFilterForm, ImagePart, ImageSteps, RotationForm, RowBlocks};
pub use low_frequencies::LowFrequencies;
pub use outliers::{DetectorRows, OutlierForm, OutlierRemover, OutlierRows};
pub use polynomials::{AddedProfiles, ColumnProducts, SinogramShape};
pub use row_correction::{AirCorrection, DetectorBatch, FieldImages, ProjectionState, RowCorrection, RowCounts};
pub use samples::{PieceSize, SampleOrder};
pub use sinograms::{DeviceValues, SinogramBatch};
pub use transposed_medians::RunningMedians;
pub use wavelet::WaveletTransform;

use super::host_memory::ComingMemory;
use super::session::Queue;
use super::{BufferLayout, HostCopy, HostMemory, Launch, Session, cl_error, copies};
use crate::fault;
