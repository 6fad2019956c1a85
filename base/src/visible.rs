//! Display of foreign text on a terminal: names and contents of files may contain characters that control a terminal,
//! or that change the order in which text is shown.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Reports whether a character changes what is shown instead of being shown itself: control characters, and those that
/// change the direction of text.
fn controls(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, kept: fn(char) -> bool) -> Cow<'_, str> {
    let replaced = |c: char| controls(c) && !kept(c);
    if !text.contains(replaced) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // writing to a string cannot fail; characters that JSON allows unescaped in a string become JSON escapes such
        // as `\u202e`
        let _ = match c {
            '\n' | '\r' | '\t' if replaced(c) => write!(shown, "{}", c.escape_default()),
            '\0'..'\x20' if replaced(c) => write!(shown, "\\x{:02x}", u32::from(c)),
            _ if replaced(c) => write!(shown, "\\u{:04x}", u32::from(c)),
            _ => write!(shown, "{c}"),
        };
    }
    Cow::Owned(shown)
}

/// Escapes foreign text within a line: control characters and line breaks become escapes such as `\x1b` and `\n`.
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// Escapes all control characters except line breaks and tabs in lines of the program, which may quote foreign text. A
/// JSON document keeps its meaning.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c == '\n' || c == '\t')
}

/// Conversion of a path for messages.
pub trait Shown {
    fn shown(&self) -> String;
}

impl Shown for Path {
    fn shown(&self) -> String {
        visible(&self.to_string_lossy()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_controls_a_terminal_is_left() {
        let foreign = "a\x1b[31mred\x07\u{9b}2J\x7f\u{202e}gnp\u{2066}x\r\n\tfbp: done";
        assert_eq!(visible(foreign), r"a\x1b[31mred\x07\u009b2J\u007f\u202egnp\u2066x\r\n\tfbp: done");
        assert_eq!(visible_lines(foreign), "a\\x1b[31mred\\x07\\u009b2J\\u007f\\u202egnp\\u2066x\\r\n\tfbp: done");
        for plain in ["", "slices 0 to 3\n", "größe 3 µm, 角度, 😀"] {
            assert!(matches!(visible_lines(plain), Cow::Borrowed(text) if text == plain));
        }
        let every = (0..0x3000).filter_map(char::from_u32).collect::<String>();
        assert!(!visible(&every).contains(controls));
    }

    #[test]
    fn json_keeps_its_meaning() {
        let every: String = (0..0x3000).filter_map(char::from_u32).collect();
        let text = format!("{:#}", serde_json::json!({ &every: [&every] }));
        let shown = visible_lines(&text);
        assert!(!shown.contains(|c| controls(c) && c != '\n'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), serde_json::json!({ &every: [every] }));
    }
}
