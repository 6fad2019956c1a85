//! Where files are kept between runs.

use std::path::PathBuf;

/// The cache directory: `FBP_CACHE_DIR`, else `fbp` in `XDG_CACHE_HOME`, else in `~/.cache`.
pub fn cache_directory() -> Option<PathBuf> {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("FBP_CACHE_DIR")
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("fbp")))
        .or_else(|| Some(path("HOME")?.join(".cache/fbp")))
}
