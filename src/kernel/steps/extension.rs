//! Source of the kernel that extends rows.

use super::super::files::EXTEND_ROWS;
use super::super::source::{LaunchShape, assemble};
use super::Defines;
use super::KernelSource;

/// Source of the kernel that extends rows of a whole turn.
pub fn generate_extension() -> KernelSource {
    let options = vec!["-cl-std=CL1.1".to_owned()];
    assemble("extend-rows".to_owned(), &Defines::default(), &[EXTEND_ROWS], options, "extend_rows", LaunchShape::NONE)
}
