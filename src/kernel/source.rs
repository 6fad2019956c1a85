//! Generated programs: text, options and launch shape.

use super::Defines;
use super::files::{ClFile, PROBE_IMAGE};
use crate::digest::PartsDigest;
use std::fmt::Write as _;

/// Generated source, with the data for its build and launch.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSource {
    /// Short name for messages and reports, such as `standard-linear-float-x4-buffer`.
    pub name: String,
    pub text: String,
    /// Build options, in one line.
    pub options: String,
    /// Name of the kernel function.
    pub entry: &'static str,
    /// Work-group sizes in x and y.
    pub work_group: [usize; 2],
    /// Pixels that one work-group computes in x and y.
    pub block: [usize; 2],
    /// True if the constants of a projection are one vector instead of four arrays.
    pub packed: bool,
    /// Clearance in bins that the constants keep below the lowest position of a block.
    pub clearance: f64,
    /// Key of text and options, for gridding also of the files of the programs around it: 16 hexadecimal digits.
    pub key: String,
}

/// The launch sizes of a back-projection kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Number of work-items of a work-group in x and y.
    pub work_group: [u32; 2],
    /// Number of pixels that a work-group computes in x and y.
    pub block: [u32; 2],
}

impl LaunchShape {
    /// Shape of programs that are not launched over blocks of pixels.
    pub(crate) const NONE: LaunchShape = LaunchShape { work_group: [1, 1], block: [1, 1] };
}

/// Assembles a program from name, defines and files.
pub(crate) fn assemble(
    name: String,
    defines: &Defines,
    files: &[ClFile],
    options: Vec<String>,
    entry: &'static str,
    shape: LaunchShape,
) -> KernelSource {
    let mut text = format!("/* {name} */\n{}", defines.text());
    for (file, content) in files {
        let _ = write!(text, "\n/* ---- {file} ---- */\n{content}");
    }
    let options = options.join(" ");
    let key = PartsDigest::of([&text, &options]).to_string();
    let sides = |size: [u32; 2]| size.map(|side| side as usize);
    KernelSource {
        name,
        text,
        options,
        entry,
        work_group: sides(shape.work_group),
        block: sides(shape.block),
        packed: true,
        clearance: 0.0,
        key,
    }
}

impl KernelSource {
    /// Makes the key also depend on the files of other programs.
    pub(super) fn keyed_with(self, files: &[ClFile]) -> KernelSource {
        if files.is_empty() {
            return self;
        }
        let parts = std::iter::once(self.key.as_str()).chain(files.iter().map(|(_, text)| *text));
        KernelSource { key: PartsDigest::of(parts).to_string(), ..self }
    }
}

/// Returns the source of the kernel that tries an image format.
pub fn generate_probe() -> KernelSource {
    assemble(
        "probe-image".to_owned(),
        &Defines::default(),
        &[PROBE_IMAGE],
        vec!["-cl-std=CL1.1".to_owned()],
        "probe_image",
        LaunchShape::NONE,
    )
}
