//! Source of the kernel that encodes slices.

use super::super::files::ENCODE_SLICES;
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource};
use crate::error::Result;

/// The type of encoded samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedSample {
    /// Values, which stay as and where they are.
    Float,
    Half,
    Unsigned16,
    Unsigned8,
}

/// Returns the source of the kernel that encodes slices, with work-groups of `group`.
pub fn generate_encoding(sample: EncodedSample, group: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("DTYPE", sample as u32)?;
    defines.number("GROUP", group as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("encode-slices".to_owned(), &defines, &[ENCODE_SLICES], options, "encode_slices", LaunchShape::NONE))
}
