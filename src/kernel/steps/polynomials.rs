//! Source of the kernels that multiply columns of sinograms with polynomials.

use super::super::files::{COMMON, POLYNOMIALS, SINOGRAMS};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource, StepTarget};
use crate::error::Result;

/// Largest number of bins of a work-group, and of items per bin.
const TALL_GROUP: [usize; 2] = [32, 8];

/// Returns the source for `degrees` polynomials on a device; the work-group is that of `column_products`.
pub fn generate_polynomials(degrees: usize, target: StepTarget) -> Result<KernelSource> {
    let width = TALL_GROUP[0].min(target.facts.max_work_group);
    let parts = TALL_GROUP[1].min(target.facts.max_work_group / width).max(1);
    let mut defines = Defines::default();
    defines.number("DEGREES", degrees as u32)?;
    defines.number("WIDTH", width as u32)?;
    defines.number("PARTS", parts as u32)?;
    defines.number("GROUP", target.row_group() as u32)?;
    let work_group = [width as u32, parts as u32];
    Ok(assemble(
        format!("polynomials-{degrees}"),
        &defines,
        &[COMMON, SINOGRAMS, POLYNOMIALS],
        vec!["-cl-std=CL1.1".to_owned()],
        "column_products",
        LaunchShape { work_group, block: [work_group[0], 1] },
    ))
}
