//! Samples of rows as they are stored: how many a device gets at once, their order in memory, and how kernels read
//! them.

use crate::error::{Error, Result};
use crate::kernel::Defines;
use crate::source::{SampleType, StoredSamples};
use opencl3::event::Event;
use opencl3::memory::Buffer;

/// The form in which samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleForm {
    /// Bytes of a sample: 1, 2 or 4.
    pub bytes: u32,
    pub kind: SampleKind,
    /// True if bytes are not in the device's order.
    pub swapped: bool,
}

impl SampleForm {
    /// Counts of 16 bits in the other order of bytes.
    pub(super) const COUNTS: SampleForm = SampleForm { bytes: 2, kind: SampleKind::Unsigned, swapped: true };

    /// Adds the defines of `samples.cl`.
    pub(super) fn define(self, defines: &mut Defines) -> Result<()> {
        defines.number("SAMPLE_BYTES", self.bytes)?;
        defines.number("SAMPLE_KIND", self.kind as u32)?;
        defines.switch("SWAP", self.swapped)
    }
}

/// The interpretation of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    Unsigned,
    Signed,
    Float,
}

/// Largest size of a piece, which is corrected at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieceSize {
    /// Number of corrected rows, each of `projections` projections.
    pub rows: usize,
    pub projections: usize,
    /// Number of rows in which replaced values are counted until the counts are taken.
    pub counted: usize,
    /// Number of pieces whose samples are on the device together, so that they are copied while kernels wait for the
    /// device.
    pub at_once: usize,
}

/// Samples in a buffer on the device.
pub struct DeviceSamples<'a> {
    pub(super) values: &'a Buffer<u8>,
    /// The copy that brings the samples, in another queue.
    pub(super) copied: Option<&'a Event>,
}

impl<'a> From<&'a Buffer<u8>> for DeviceSamples<'a> {
    fn from(values: &'a Buffer<u8>) -> Self {
        DeviceSamples { values, copied: None }
    }
}

/// Order of the samples of a piece in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOrder {
    /// `[projection][row][bin]`, from projections.
    Projections,
    /// `[row][projection][bin]`, from sinograms.
    Sinograms,
}

/// Returns the form in which kernels read samples.
pub(super) fn sample_form(stored: StoredSamples) -> Result<SampleForm> {
    let kind = match stored.sample {
        SampleType::U8 | SampleType::U16 | SampleType::U32 => SampleKind::Unsigned,
        SampleType::I8 | SampleType::I16 | SampleType::I32 => SampleKind::Signed,
        SampleType::F16 | SampleType::F32 => SampleKind::Float,
        SampleType::U64 | SampleType::I64 | SampleType::F64 => {
            return Err(Error::Internal("64-bit samples are converted before".into()));
        }
    };
    Ok(SampleForm { bytes: stored.sample.bytes() as u32, kind, swapped: stored.swapped })
}
