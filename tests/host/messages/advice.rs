//! What a message tells its reader to do.

/// Words that begin an instruction.
const INSTRUCTIONS: &[&str] = &[
    "divide",
    "add",
    "allow",
    "build",
    "change",
    "check",
    "choose",
    "close",
    "compare",
    "continue",
    "convert",
    "copy",
    "correct",
    "count",
    "decompress",
    "exclude",
    "find",
    "free",
    "give",
    "install",
    "lay",
    "leave",
    "let",
    "make",
    "move",
    "name",
    "narrow",
    "pad",
    "put",
    "raise",
    "read",
    "remove",
    "rename",
    "report",
    "rotate",
    "run",
    "save",
    "select",
    "set",
    "shorten",
    "start",
    "take",
    "try",
    "tune",
    "update",
    "use",
    "wait",
    "widen",
    "write",
    "please",
];

/// Phrases that state which values are legal: what to do is to give one of them.
const LIMITS: &[&str] = &[
    "at least",
    "at most",
    "belongs to",
    "cannot be combined",
    "does not go with",
    "expected",
    "is neither",
    "is not a ",
    "is not one of",
    "is not two",
    "is not within",
    "is outside",
    "it is one of",
    "must",
    "needs",
    "works on",
    "works with",
];

/// Whether a text begins with an instruction.
pub fn is_instruction(text: &str) -> bool {
    let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
    let mut letters = first.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
    INSTRUCTIONS.contains(&first.as_str())
}

/// A message, divided into what is wrong and what to do; the latter is empty where the message states what is legal.
/// `None` where it says neither.
pub fn divide(text: &str) -> Option<(String, String)> {
    divide_at(text, &[';', '.']).or_else(|| divide_at(text, &[':', ',', '('])).or_else(|| divide_at_end(text))
}

/// Divides a text at the first of these signs that an instruction follows.
fn divide_at(text: &str, signs: &[char]) -> Option<(String, String)> {
    text.char_indices().filter(|(_, sign)| signs.contains(sign)).find_map(|(at, sign)| {
        let rest = &text[at + 1..];
        let first = rest.trim_start();
        let first = ["or ", "and ", "then "].iter().find_map(|word| first.strip_prefix(word)).unwrap_or(first);
        let ends = sign == '(' || !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/');
        (ends && is_instruction(first)).then(|| (text[..at].trim_end().to_owned(), rest.trim_start().to_owned()))
    })
}

/// Divides a text whose end says what to do in each case, or which says what is legal.
fn divide_at_end(text: &str) -> Option<(String, String)> {
    // one of several texts, each of which says what to do
    if let Some((cause, "WHAT" | "TODO" | "ADVICE" | "HINT")) = text.rsplit_once("; ") {
        return Some((cause.to_owned(), "see the end of the message, which depends on the case".to_owned()));
    }
    if text.starts_with("warning: ") && text.ends_with(": ERROR") {
        return Some((text.to_owned(), "see the error at its end".to_owned()));
    }
    let limit = LIMITS.iter().any(|phrase| text.contains(phrase));
    limit.then(|| (text.to_owned(), String::new()))
}
