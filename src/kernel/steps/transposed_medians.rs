//! The source of the kernels for running medians of transposed sinograms.

use super::super::files::{COMMON, FLOAT_ORDER, SINOGRAMS, TRANSPOSED_MEDIANS};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, row_group};
use crate::error::Result;
use crate::facts::DeviceFacts;

/// Source of the kernels for running medians; `window` is that of the kernel that has it in registers, the
/// work-group [`row_group`].
pub fn generate_transposed_medians(window: usize, facts: &DeviceFacts) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("WINDOW", window as u32)?;
    defines.number("GROUP", row_group(facts) as u32)?;
    let (name, options) = (format!("transposed-medians-{window}"), vec!["-cl-std=CL1.1".to_owned()]);
    let files = [COMMON, SINOGRAMS, FLOAT_ORDER, TRANSPOSED_MEDIANS];
    Ok(assemble(name, &defines, &files, options, "slide_medians", LaunchShape::NONE))
}
