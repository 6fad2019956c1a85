//! Specifications of outputs: the meaning of `%` in them, and paths of single files.

use std::path::{Path, PathBuf};

/// Splits a specification into its directory, with the slash, and its last part. `%` only has a meaning in the last
/// part: `%i`, `%d` and `%05i` are the slice number, `%%` is a percent sign.
pub(super) fn split(spec: &str) -> (&str, &str) {
    spec.split_at(spec.rfind('/').map_or(0, |at| at + 1))
}

/// Returns the path that a specification without a slice number means.
pub(super) fn literal(spec: &str) -> String {
    let (directory, name) = split(spec);
    format!("{directory}{}", name.replace("%%", "%"))
}

/// Returns the specification of a path.
pub(super) fn spec_of(path: &Path) -> String {
    let path = path.display().to_string();
    let (directory, name) = split(&path);
    format!("{directory}{}", name.replace('%', "%%"))
}

/// Path of an output that is one file, or a directory that is treated as one.
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

/// Reports whether a file name has the extension of a TIFF.
pub(super) fn is_tiff(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".tif") || name.ends_with(".tiff")
}
