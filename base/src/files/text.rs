//! Text files: run files, profiles, angles.

use super::errors::TextError;
use super::npy;
use super::regular::{open_regular, read_once};
use crate::error::{self, messages};
use crate::visible::Shown;
use std::borrow::Cow;
use std::io::{Error, Read, Result};
use std::path::Path;
use std::sync::atomic::AtomicBool;

messages! {
    /// Why a text that a flag names cannot be read.
    enum FlagTextError: Usage {
        Unreadable { flag: String, path: String, error: Error } => "{flag} {path}: {error}",
    }
}

messages! {
    /// Why numbers that a flag names cannot be read.
    enum FlagNumbersError: Input {
        Unreadable { flag: String, error: Error } => "{flag}: {error}",
    }
}

messages! {
    /// Why reading a text ended early.
    enum TextInterruptedError: Interrupted {
        Stopped { flag: String, path: String } =>
            "{flag} {path}: interrupted while waiting for its end, nothing was written"; "run again",
    }
}

/// Largest size of a text file in bytes; enough for a few million angles.
const MAX_TEXT: usize = 64 << 20;

/// Reads the text of a regular file; a file that is too large is an error.
pub fn read_text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes)?;
    text_of_bytes(bounded(bytes)?)
}

/// Reads the text of a file that is opened once, which may also be a pipe of the shell, or `-` for standard input.
/// `flag` names the file in messages, and `stop` ends the wait for it.
///
/// # Errors
/// [`error::Error::Interrupted`] when the wait was ended; [`error::Error::Usage`] when the text cannot be read.
pub fn read_text_once(path: &Path, flag: &str, stop: &AtomicBool) -> error::Result<String> {
    let text = bytes_once(path, flag, stop)?.and_then(text_of_bytes);
    text.map_err(|error| FlagTextError::Unreadable { flag: flag.to_owned(), path: path.shown(), error }.into())
}

/// Reads the text of a file of numbers that is opened once. The text of a NumPy file (`.npy`) has one number a line.
///
/// # Errors
/// The errors of [`read_text_once`], with [`error::Error::Input`] instead of [`error::Error::Usage`].
pub fn read_numbers(path: &Path, flag: &str, stop: &AtomicBool) -> error::Result<String> {
    let text = bytes_once(path, flag, stop)?.and_then(|bytes| match npy::is_npy(&bytes) {
        true => npy::lines(&bytes).map_err(Error::other),
        false => text_of_bytes(bytes),
    });
    text.map_err(|error| error::Error::input(path, FlagNumbersError::Unreadable { flag: flag.to_owned(), error }))
}

/// Reads the bytes of a file that is opened once, or the reason why they cannot be read.
fn bytes_once(path: &Path, flag: &str, stop: &AtomicBool) -> error::Result<Result<Vec<u8>>> {
    match read_once(path, MAX_TEXT, stop) {
        Ok(Some(bytes)) => Ok(bounded(bytes)),
        Ok(None) => Err(TextInterruptedError::Stopped { flag: flag.to_owned(), path: path.shown() }.into()),
        Err(e) => Ok(Err(e)),
    }
}

fn bounded(bytes: Vec<u8>) -> Result<Vec<u8>> {
    if bytes.len() > MAX_TEXT {
        return Err(Error::other(TextError::TooLarge { mebibytes: MAX_TEXT >> 20 }));
    }
    Ok(bytes)
}

/// Converts bytes to text.
///
/// # Errors
/// When the bytes are not UTF-8; the message names UTF-16 if they look like it.
fn text_of_bytes(bytes: Vec<u8>) -> Result<String> {
    if is_utf16(&bytes) {
        return Err(Error::other(TextError::Utf16));
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| Error::other(TextError::NotUtf8 { from: e.utf8_error().valid_up_to() }))?;
    // some editors write a byte-order mark at the beginning
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Reports whether bytes begin with a byte-order mark of UTF-16, or consist of ASCII characters of two bytes each.
fn is_utf16(bytes: &[u8]) -> bool {
    let marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let some = &bytes[..bytes.len().min(64) & !1];
    let wide = |zero: usize| some.chunks(2).all(|pair| pair[zero] == 0 && pair[1 - zero] != 0);
    marked || some.len() >= 4 && (wide(0) || wide(1))
}

/// Largest number of characters of a quotation from a file in a message.
const QUOTED: usize = 80;

/// Shortens a text that a message quotes if it is long.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()).into(),
        None => text.into(),
    }
}

/// Shortens the long lines of a text.
pub fn excerpt_of_lines(text: &str) -> String {
    text.lines().map(excerpt).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_quoted_in_part() {
        assert_eq!(excerpt("short \u{b5}"), "short \u{b5}");
        let long = "\u{b5}".repeat(2000);
        assert_eq!(excerpt(&long), format!("{}... (2000 characters)", "\u{b5}".repeat(80)));
        assert_eq!(excerpt_of_lines(&format!("a\n{long}\nb")), format!("a\n{}\nb", excerpt(&long)));
    }

    #[test]
    fn text_that_is_not_utf_8_is_named() {
        let wide = |text: &str, swap: bool, mark: bool| -> Vec<u8> {
            let mark = mark.then_some(0xfeff);
            let units = mark.into_iter().chain(text.encode_utf16());
            units.flat_map(|unit| if swap { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
        };
        for (swap, mark) in [(false, false), (false, true), (true, false), (true, true)] {
            let error = text_of_bytes(wide("0.0\r\n1.5\r\n", swap, mark)).unwrap_err().to_string();
            assert!(error.contains("UTF-16"), "{error}");
        }
        let error = text_of_bytes(b"0.5\n1\xb5\n".to_vec()).unwrap_err().to_string();
        assert!(error.contains("UTF-8 from byte 5"), "{error}");
        for text in ["", "1", "\u{b5}\u{3bc}", "0\n1\n"] {
            assert_eq!(text_of_bytes(text.into()).unwrap(), text);
        }
        assert_eq!(text_of_bytes("\u{feff}1".into()).unwrap(), "1");
    }
}
