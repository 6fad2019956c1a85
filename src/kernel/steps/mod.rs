//! Steps around the filter: the sources of their kernels, one module per group of operations, and the place where they
//! run.

mod binning;
mod column_sums;
mod columns;
mod correction;
mod encoding;
mod extension;
mod fits;
mod groups;
mod histogram;
mod images;
mod low_frequencies;
mod median;
mod outliers;
mod polynomials;
mod transposed_medians;
mod wavelet;

pub use binning::{BinningKernel, generate_binning};
pub use column_sums::{ColumnSumGroup, generate_column_sums};
pub use columns::{ColumnSort, generate_columns};
pub use correction::{
    AirKind, CORRECTION_GROUP, CorrectionForm, LogKind, SampleForm, SampleKind, generate_correction, generate_minus_log,
};
pub use encoding::{EncodedSample, generate_encoding};
pub use extension::generate_extension;
pub use fits::{FitGroups, generate_fits};
pub use groups::{StepSizes, StepTarget, power_of_two_group};
pub use histogram::{counting_group, generate_histogram};
pub use images::{
    IMAGE_LENGTHS, ImageGroups, generate_image_columns, generate_image_rows, generate_rotation, generate_whole_images,
    whole_image_group,
};
pub use low_frequencies::{FrequencyGroup, generate_low_frequencies};
pub use outliers::{OutlierKernel, OutlierTile, generate_outliers};
pub use polynomials::generate_polynomials;
pub use transposed_medians::generate_transposed_medians;
pub use wavelet::generate_wavelet;

use super::{Defines, ImageFilterBackend, KernelSource};
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// The processor that runs a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepBackend {
    /// Kernels on the device.
    #[default]
    Device,
    /// The host's processors.
    Host,
}

/// The processors that run the steps around the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct StepBackends {
    /// Steps on rows of projections: from counts to line integrals.
    pub rows: StepBackend,
    /// Steps on projections as images, among the steps on rows: tilt and phase.
    pub images: StepBackend,
    /// Steps on sinograms: stripes.
    pub sinograms: StepBackend,
    /// Encoding of slices as they are written, and counts of their values.
    pub slices: StepBackend,
}

impl StepBackends {
    /// The host for all steps.
    pub const HOST: StepBackends = StepBackends {
        rows: StepBackend::Host,
        images: StepBackend::Host,
        sinograms: StepBackend::Host,
        slices: StepBackend::Host,
    };
}

/// Returns the programs of all steps for a device, each in the forms that differ most: sinograms of 2048 bins, and of
/// 300. Those for images are omitted where the host runs these steps, or a library transforms images.
///
/// # Errors
/// None: every form is legal.
pub fn step_programs(
    target: StepTarget,
    backends: StepBackends,
    images: ImageFilterBackend,
) -> Result<Vec<KernelSource>> {
    let facts = target.facts;
    let samples = |bytes, kind, swapped| SampleForm { bytes, kind, swapped };
    let counts = samples(2, SampleKind::Unsigned, true);
    let correction = |samples, flats, air, minus_log| {
        generate_correction(CorrectionForm {
            samples,
            flats,
            air,
            minus_log,
            group: power_of_two_group(facts, CORRECTION_GROUP) as u32,
        })
    };
    let bins = |samples, by| generate_binning(target, BinningKernel { samples, by });
    let group = target.row_group();
    let mut programs = vec![
        correction(counts, 2, AirKind::Sides, LogKind::Taken)?,
        correction(samples(1, SampleKind::Signed, false), 0, AirKind::Without, LogKind::Taken)?,
        correction(samples(2, SampleKind::Float, false), 1, AirKind::Levels, LogKind::Later)?,
        correction(samples(4, SampleKind::Float, true), 0, AirKind::Without, LogKind::Without)?,
        bins(counts, 2)?,
        bins(samples(4, SampleKind::Signed, false), 3)?,
        bins(samples(2, SampleKind::Float, false), 4)?,
        generate_minus_log(power_of_two_group(facts, CORRECTION_GROUP))?,
        generate_rotation(target)?,
        generate_encoding(EncodedSample::Float, group)?,
        generate_encoding(EncodedSample::Half, group)?,
        generate_extension(group)?,
        generate_column_sums(ColumnSumGroup::new(facts), 10)?,
    ];
    if facts.has("cl_khr_fp64") {
        programs.push(generate_encoding(EncodedSample::Unsigned16, group)?);
        programs.push(generate_encoding(EncodedSample::Unsigned8, group)?);
        programs.push(generate_histogram(facts, 4096, 64)?);
    }
    for (size, both) in [(3, false), (5, true), (15, true)] {
        let tile = OutlierTile::new(target, size, 16);
        programs.push(generate_outliers(OutlierKernel { samples: counts, size, both, saturation: true, tile })?);
    }
    for (width, height) in [(512, 64), (4096, 256), (4096, 1024)] {
        let own = backends.images == StepBackend::Device && images == ImageFilterBackend::Fused;
        let Some(groups) = ImageGroups::new(target, width, height).filter(|_| own) else { continue };
        programs.push(generate_image_rows(groups)?);
        programs.push(generate_image_columns(groups)?);
    }
    if backends.images == StepBackend::Device {
        programs.push(generate_whole_images(target)?);
    }
    for length in [300, 2048, 70_000] {
        programs.push(generate_columns(ColumnSort::new(target, length))?);
    }
    for size in [5, 21, 1001] {
        programs.push(generate_transposed_medians(size, target)?);
    }
    for frequencies in [13, 90] {
        programs.push(generate_low_frequencies(FrequencyGroup::new(facts, frequencies))?);
    }
    for (degrees, size) in [(1, 31), (3, 11), (11, 2001)] {
        programs.push(generate_polynomials(degrees, target)?);
        programs.push(generate_fits(FitGroups::new(target, 2048, size), degrees, size)?);
    }
    for taps in [2, 10] {
        programs.push(generate_wavelet(taps, target)?);
    }
    Ok(programs)
}
