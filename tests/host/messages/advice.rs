//! What a message tells its reader to do.

/// Words that begin an instruction.
const INSTRUCTIONS: [&str; 49] = [
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
const LIMITS: [&str; 18] = [
    "at least",
    "at most",
    "belongs to",
    "cannot be combined",
    "does not go with",
    "expected",
    "is neither",
    "is not a ",
    "is not from",
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
    let mut from = 0;
    while let Some(at) = text[from..].find(['.', ';', ':', ',', '(']).map(|at| from + at) {
        from = at + 1;
        let rest = text[from..].trim_start_matches([' ', '(']);
        let rest =
            rest.strip_prefix("or ").or(rest.strip_prefix("and ")).or(rest.strip_prefix("then ")).unwrap_or(rest);
        let ends = !text[from..].starts_with(|c: char| c.is_alphanumeric() || c == '/');
        if (ends || text[..from].ends_with('(')) && is_instruction(rest) {
            return Some((text[..at].trim_end().to_owned(), text[from..].trim_start().to_owned()));
        }
    }
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
