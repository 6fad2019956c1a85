//! Source of the kernel that corrects rows of projections.

use super::super::files::{CORRECT_ROWS, LOGARITHM, MINUS_LOG, SAMPLES};
use super::super::source::{LaunchShape, assemble};
use super::{Defines, KernelSource};
use crate::error::Result;

/// Largest work-group of the kernel: a row has too few bins for larger ones.
pub const CORRECTION_GROUP: usize = 128;

/// The operations of the kernel on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrectionForm {
    pub samples: SampleForm,
    /// Number of flat fields: 0 without correction, 2 before and after the scan.
    pub flats: u32,
    pub air: AirKind,
    pub minus_log: LogKind,
    /// Number of work-items of a work-group.
    pub group: u32,
}

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

/// The division of transmissions by those of air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirKind {
    Without,
    /// Division by the line through the means of the outermost bins.
    Sides,
    /// Division by a level for each projection.
    Levels,
}

/// The place of -log in the correction of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    Without,
    Taken,
    /// -log is taken after steps on images.
    Later,
}

/// Returns the source of the kernel that corrects rows.
pub fn generate_correction(form: CorrectionForm) -> Result<KernelSource> {
    let mut defines = Defines::default();
    form.samples.define(&mut defines)?;
    defines.number("FIELDS", form.flats)?;
    defines.number("AIR", form.air as u32)?;
    defines.number("MINUS_LOG", form.minus_log as u32)?;
    defines.number("GROUP", form.group)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble(
        "correct-rows".to_owned(),
        &defines,
        &[SAMPLES, LOGARITHM, CORRECT_ROWS],
        options,
        "correct_rows",
        LaunchShape::NONE,
    ))
}

/// Returns the source of the kernel that takes -log after steps on images, with work-groups of `group`.
pub fn generate_minus_log(group: usize) -> Result<KernelSource> {
    let mut defines = Defines::default();
    defines.number("GROUP", group as u32)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    let files = [LOGARITHM, MINUS_LOG];
    Ok(assemble("minus-log".to_owned(), &defines, &files, options, "minus_log", LaunchShape::NONE))
}
