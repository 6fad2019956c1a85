//! Source of the kernel that bins samples.

use super::super::files::{BIN_SAMPLES, COMMON, SAMPLES};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, SampleForm, SampleKind, StepTarget};
use crate::error::Result;

/// The form of the samples and the number that are binned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinningKernel {
    pub samples: SampleForm,
    /// Number of bins, and of rows, that form one.
    pub by: usize,
}

/// Returns the source of the kernel that bins samples.
pub fn generate_binning(target: StepTarget, kernel: BinningKernel) -> Result<KernelSource> {
    let BinningKernel { samples, by } = kernel;
    let mut defines = Defines::default();
    samples.define(&mut defines)?;
    defines.number("BINNING", by as u32)?;
    defines.switch("DOUBLE", samples.kind == SampleKind::Float && target.facts.has("cl_khr_fp64"))?;
    defines.number("GROUP", target.row_group() as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    let files = [COMMON, SAMPLES, BIN_SAMPLES];
    Ok(assemble(format!("bin-samples-{by}"), &defines, &files, options, "bin_samples", LaunchShape::NONE))
}
