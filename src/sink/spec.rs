//! The names of outputs: what a `%` means in them, and paths of single files.

use std::path::{Path, PathBuf};

/// The directory of a spec, with the slash, and its last part. Only there a `%` has a meaning: `%i`, `%d` and `%05i` are the
/// number of the slice, `%%` is a percent sign.
pub(super) fn split(spec: &str) -> (&str, &str) {
    spec.split_at(spec.rfind('/').map_or(0, |at| at + 1))
}

/// The path that a spec without a number of the slice is.
pub(super) fn literal(spec: &str) -> String {
    let (directory, name) = split(spec);
    format!("{directory}{}", name.replace("%%", "%"))
}

/// The spec of a path.
pub(super) fn spec_of(path: &Path) -> String {
    let path = path.display().to_string();
    let (directory, name) = split(&path);
    format!("{directory}{}", name.replace('%', "%%"))
}

/// The path of an output that is one file, or one directory that looks like one.
#[derive(Clone, Debug)]
pub(super) struct OneFile(pub PathBuf);

impl OneFile {
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub fn directory(&self) -> &Path {
        self.0.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    pub fn lock(&self) -> String {
        format!(".{}.fbp-lock", self.name())
    }
}

/// Whether a file has the extension of a TIFF.
pub(super) fn is_tiff(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".tif") || name.ends_with(".tiff")
}
