//! Generated programs: text, options and how to launch them.

use super::Defines;
use super::files::{ClFile, PROBE_IMAGE};
use crate::hash::fnv1a;
use std::fmt::Write as _;

/// Generated source and how to build and launch it.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelSource {
    /// Short name for messages and reports, such as `standard-linear-float-x4-buffer`.
    pub name: String,
    pub text: String,
    /// Build options, in one line.
    pub options: String,
    /// Kernel function.
    pub entry: &'static str,
    /// Work-group sizes.
    pub work_group: [usize; 2],
    /// Pixels that one work-group computes.
    pub block: [usize; 2],
    /// The constants of a projection are one vector, not four arrays.
    pub packed: bool,
    /// What the constants keep free below the lowest position of a block, in bins.
    pub clearance: f64,
    /// Identifies text and options, of gridding also the files of the programs around it: 16 hexadecimal digits.
    pub key: String,
}

/// How a back-projection kernel is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchShape {
    /// Work-items of a work-group in x and y.
    pub work_group: [u32; 2],
    /// Pixels that it computes in x and y.
    pub block: [u32; 2],
}

impl LaunchShape {
    /// For programs that are not launched over blocks of pixels.
    pub(super) const NONE: LaunchShape = LaunchShape { work_group: [1, 1], block: [1, 1] };
}

/// Puts a program together: name, defines, files.
pub(super) fn assemble(
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
    let key = format!("{:016x}", fnv1a(&[text.as_bytes(), options.as_bytes()]));
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
    /// The same with a key that also depends on the files of other programs.
    pub(super) fn keyed_with(self, files: &[ClFile]) -> KernelSource {
        if files.is_empty() {
            return self;
        }
        let texts = files.iter().map(|(_, text)| text.as_bytes());
        let parts: Vec<&[u8]> = std::iter::once(self.key.as_bytes()).chain(texts).collect();
        KernelSource { key: format!("{:016x}", fnv1a(&parts)), ..self }
    }
}

/// Source of the kernel that tries an image format.
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
