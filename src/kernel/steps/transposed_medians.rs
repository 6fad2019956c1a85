//! Source of the kernel for running medians of transposed sinograms.

use super::super::files::{COMMON, FLOAT_ORDER, MEDIAN, SINOGRAMS, TRANSPOSED_MEDIANS};
use super::super::source::{LaunchShape, assemble};
use super::median::define_median;
use super::{Defines, KernelSource, StepTarget};
use crate::error::Result;

/// Returns the source of the kernel for running medians of `size` values, an odd number; the work-group is
/// [`StepTarget::row_group`].
pub fn generate_transposed_medians(size: usize, target: StepTarget) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", target.row_group() as u32)?;
    define_median(&mut defines, size, true)?;
    let (name, options) = (format!("transposed-medians-{size}"), vec!["-cl-std=CL1.1".to_owned()]);
    let files = [COMMON, SINOGRAMS, FLOAT_ORDER, MEDIAN, TRANSPOSED_MEDIANS];
    Ok(assemble(name, &defines, &files, options, "transposed_medians", LaunchShape::NONE))
}
