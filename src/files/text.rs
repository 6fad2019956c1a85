//! Text files: run files, profiles, angles.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;

/// Largest size of a text file in bytes; enough for some million angles.
const MAX_TEXT: u64 = 64 << 20;

/// The text of a file; a file that is too large, or has no end, is an error.
pub fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TEXT + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TEXT {
        return Err(Error::other(format!(
            "is larger than {} MiB; expected a text file; check the path",
            MAX_TEXT >> 20
        )));
    }
    // editors put a byte-order mark in front
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
