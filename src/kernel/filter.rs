//! How rows of the sinogram are padded and filtered.

use super::{KernelSpec, Storage, Texel};
use crate::facts::DeviceFacts;
use crate::spectrum::padded_length;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The means by which rows of the sinogram are filtered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowFilterBackend {
    /// clFFT, with kernels around it.
    #[default]
    Transform,
    /// One kernel for rows that fit the device's local memory; as `transform` for longer rows.
    Fused,
    /// The host's processors, for kernels that read floats from a buffer; as `transform` for others.
    Host,
}

/// The means by which projections are transformed as images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ImageFilterBackend {
    /// Kernels that keep lines in registers and local memory; as `transform` for lines that do not fit.
    #[default]
    Fused,
    /// clFFT, with kernels around it.
    Transform,
}

/// The means by which rows and images are filtered; the padded length does not depend on the profile, see
/// `spectrum::padded_length`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Fft {
    pub rows: RowFilterBackend,
    pub images: ImageFilterBackend,
}

/// Work-group size of the kernels that work along a row.
pub const ROW_GROUP: usize = 64;

/// Work-group sizes of the kernel that interleaves slices; the first side is along bins.
pub const TILE: [usize; 2] = [32, 8];

/// Padded length of rows, and the method by which they are filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowFilter {
    /// Length of a padded row.
    pub length: usize,
    pub method: RowFilterMethod,
}

/// The method by which rows are filtered on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFilterMethod {
    /// A transform of padded rows in global memory, with kernels around it.
    Transform,
    /// One kernel with `rows` complex rows per work-group, which exchanges values in `parts` parts.
    Fused { rows: usize, parts: u32 },
    /// Slices as vectors of single work-items, for kernels that read frequencies of all slices together.
    Vector,
    /// The host, without OpenCL, if it is the device: directly into the compound sinogram.
    Host,
}

impl fmt::Display for RowFilterMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowFilterMethod::Transform => "by a transform",
            RowFilterMethod::Fused { .. } => "by one kernel",
            RowFilterMethod::Vector => "as vectors of slices",
            RowFilterMethod::Host => "on the host",
        })
    }
}

/// Number of values per item of the fused kernel.
const FUSED_POINTS: usize = 16;
/// Smallest number of work-items in a work-group of the fused kernel, for short rows.
const FUSED_ITEMS: usize = 64;

impl RowFilter {
    /// Returns the filter of rows of `bins` for a kernel: as the profile says, or by a transform if that is not
    /// possible.
    pub fn new(spec: &KernelSpec, fft: &Fft, bins: usize, facts: Option<&DeviceFacts>) -> RowFilter {
        let transformed = RowFilter { length: padded_length(bins), method: RowFilterMethod::Transform };
        match (fft.rows, spec.texel, spec.parameters.storage()) {
            (_, Texel::Spectra { together: true }, _) => RowFilter { method: RowFilterMethod::Vector, ..transformed },
            (RowFilterBackend::Fused, ..) => RowFilter::fused(bins, facts).unwrap_or(transformed),
            (RowFilterBackend::Host, Texel::Buffer | Texel::GuardedBuffer { .. }, Storage::Float) => {
                RowFilter { method: RowFilterMethod::Host, ..transformed }
            }
            _ => transformed,
        }
    }

    /// Returns the filter by one kernel, if the device has the local memory and the work-items for rows of this length.
    fn fused(bins: usize, facts: Option<&DeviceFacts>) -> Option<RowFilter> {
        let length = padded_length(bins);
        let items = RowFilter::items(length);
        // with a gap after every sixteen values
        let bytes = (length + length / 16) * 4;
        let (local, group) = facts.map_or((48 << 10, 1024), |f| (f.local_memory as usize, f.max_work_group));
        let parts = match local {
            local if 2 * bytes <= local => 1,
            local if bytes <= local => 2,
            _ => return None,
        };
        let rows = FUSED_ITEMS.div_ceil(items).min(local / (2 * bytes).max(1)).max(1);
        (length <= 16384 && items * rows <= group)
            .then_some(RowFilter { length, method: RowFilterMethod::Fused { rows, parts } })
    }

    /// Returns the filter for rows of another number of bins, with the same programs if they support it.
    pub fn for_bins(self, bins: usize) -> RowFilter {
        let length = padded_length(bins);
        match self.method {
            RowFilterMethod::Fused { .. } if length <= self.length => self,
            RowFilterMethod::Host | RowFilterMethod::Vector => RowFilter { length, ..self },
            _ => RowFilter { length, method: RowFilterMethod::Transform },
        }
    }

    /// Returns the filter for spectra of rows of another number of bins: a program serves one length.
    pub fn for_spectra(self, bins: usize, facts: &DeviceFacts) -> RowFilter {
        let length = padded_length(bins);
        match self.method {
            RowFilterMethod::Fused { .. } if length != self.length => {
                RowFilter::fused(bins, Some(facts)).unwrap_or(RowFilter { length, method: RowFilterMethod::Transform })
            }
            _ => RowFilter { length, ..self },
        }
    }

    /// Returns the complex values of scratch memory per slice that items of the vector form need, on a device with this
    /// number of compute units.
    pub fn scratch(&self, compute_units: u32) -> usize {
        match self.method {
            RowFilterMethod::Vector => 2 * self.length * compute_units.max(1) as usize,
            _ => 0,
        }
    }

    /// Returns the number of work-items of the fused kernel for a row of `length`.
    pub fn items(length: usize) -> usize {
        length / FUSED_POINTS
    }

    /// Reports whether filtered rows have the layout of the rows before, which they may then replace; otherwise pairs
    /// of rows are complex.
    pub fn is_planar(&self) -> bool {
        matches!(self.method, RowFilterMethod::Fused { .. })
    }

    /// Returns the number of values from one filtered row to the next in memory.
    pub fn stride(&self, bins: usize) -> usize {
        match self.method {
            RowFilterMethod::Transform => self.length,
            RowFilterMethod::Fused { .. } | RowFilterMethod::Vector | RowFilterMethod::Host => bins,
        }
    }
}
