//! Operations of the steps around the filter on a device: kernels with their memory.
//!
//! Each operation is one file, or a folder: its files of `cl/`, the generator of its source with the sizes of its
//! work-groups, the forms of its programs that differ most, and the type that builds the program and starts its kernels.
//! What several operations need (rows, samples, sinograms, files) is in files of its own. Steps are composed of operations.

mod batch_images;
mod binning;
mod block_shape;
mod blocks;
mod column_sums;
mod columns;
mod correction;
mod detector_buffers;
mod device_rows;
mod encoding;
mod extension;
mod files;
mod fits;
mod histogram;
mod image_filter;
mod lamino;
mod low_frequencies;
mod median;
mod outliers;
mod polynomials;
mod program_target;
mod rotation;
mod row_blocks;
mod row_correction;
mod row_functions;
mod row_operation;
mod samples;
mod sinograms;
mod split;
mod transposed_medians;
mod wavelet;

pub use binning::SampleBinner;
pub use block_shape::{BlockPlace, BlockShape};
pub use blocks::{BlockCorrector, ImagesTarget};
pub use column_sums::{ColumnSum, ColumnSums, Gap};
pub use columns::{ColumnCorrection, ColumnOrder};
pub use device_rows::{DeviceRows, ImagePart};
pub use encoding::{EncodedSample, EncodedSlices, SliceEncoder};
pub use extension::RowExtender;
pub use fits::SmoothedFits;
pub use histogram::{SliceCounter, SliceCounts};
pub use image_filter::ImageFilter;
pub use lamino::{ChosenGroups, LaminoForm, LaminoProjector, LaminoRows, generate_lamino};
pub use low_frequencies::LowFrequencies;
pub use outliers::{DetectorRows, OutlierForm, OutlierRemover, OutlierRows};
pub use polynomials::{AddedProfiles, ColumnProducts};
pub use program_target::ProgramTarget;
pub use row_blocks::{ImageFilterForm, ImageSteps, RotationForm, RowBlocks};
pub use row_correction::{
    AirCorrection, DetectorBatch, DetectorImages, FieldImages, ProjectionState, RowCorrection, RowCounts,
};
pub use row_functions::{HARDENING_FACTORS, HardeningPolynomial, LineIntegrals};
pub use row_operation::{BatchRows, RowKernel, RowOperation};
pub use samples::{PieceSize, SampleOrder};
pub use sinograms::{DeviceValues, SinogramBatch, SinogramShape};
pub use split::{
    SliceWeights, SplitEnd, SplitGroups, SplitImages, SplitIteration, SplitObjective, SplitProgress, SplitTables,
};
pub use transposed_medians::RunningMedians;
pub use wavelet::WaveletTransform;

use crate::error::Result;
use crate::kernel::{self, ClFile, KernelSource};

/// Lists the operations that have programs.
macro_rules! operations {
    ($($operation:ident,)*) => {
        /// The files of each program, in order.
        const FILES: &[&[&[ClFile]]] = &[$($operation::FILES,)*];

        /// Returns the programs of all operations for a device, each in the forms that differ most: sinograms of 2048 bins,
        /// and of 300.
        ///
        /// # Errors
        /// None: every form is legal.
        pub fn programs(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
            Ok([$($operation::variants(on)?,)*].concat())
        }
    };
}

operations! {
    binning,
    correction,
    row_functions,
    rotation,
    image_filter,
    outliers,
    encoding,
    extension,
    histogram,
    columns,
    column_sums,
    transposed_medians,
    low_frequencies,
    polynomials,
    fits,
    wavelet,
    split,
    lamino,
}

/// Returns every file of `cl/` with the files that must precede it, in an order in which they can be included.
pub fn files() -> Vec<(ClFile, Vec<ClFile>)> {
    let mut files = kernel::files();
    for program in FILES.iter().copied().flatten() {
        for (at, &file) in program.iter().enumerate() {
            if !files.iter().any(|((name, _), _)| *name == file.0) {
                files.push((file, program[..at].to_vec()));
            }
        }
    }
    files
}
