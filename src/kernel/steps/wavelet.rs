//! Source of the kernels of the wavelet transform.

use super::super::files::{COMMON, SINOGRAMS, WAVELET};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, StepTarget};
use crate::error::Result;

/// Returns the source for filters with `taps` taps on a device.
pub fn generate_wavelet(taps: usize, target: StepTarget) -> Result<KernelSource> {
    let group = target.row_group() as u32;
    let mut defines = Defines::default();
    defines.number("TAPS", taps as u32)?;
    defines.number("GROUP", group)?;
    Ok(assemble(
        format!("wavelet-{taps}"),
        &defines,
        &[COMMON, SINOGRAMS, WAVELET],
        vec!["-cl-std=CL1.1".to_owned()],
        "down_columns",
        LaunchShape { work_group: [group, 1], block: [group, 1] },
    ))
}
