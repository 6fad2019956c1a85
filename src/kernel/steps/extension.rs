//! Source of the kernel that extends rows.

use super::super::files::EXTEND_ROWS;
use super::super::source::{LaunchShape, assemble};
use super::Defines;
use super::KernelSource;
use crate::error::Result;

/// Returns the source of the kernel that extends rows of a whole turn, with work-groups of `group`.
pub fn generate_extension(group: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", group as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("extend-rows".to_owned(), &defines, &[EXTEND_ROWS], options, "extend_rows", LaunchShape::NONE))
}
