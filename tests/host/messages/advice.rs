//! What a message tells its reader to do.

/// Words that begin an instruction.
const INSTRUCTIONS: [&str; 49] = [
    "add", "allow", "build", "change", "check", "choose", "close", "compare", "continue", "convert", "copy", "correct",
    "count", "decompress", "exclude", "find", "free", "give", "install", "lay", "leave", "let", "make", "move", "name",
    "narrow", "pad", "put", "raise", "read", "remove", "rename", "report", "rotate", "run", "save", "select", "set",
    "shorten", "start", "take", "try", "tune", "update", "use", "wait", "widen", "write", "please",
];

/// Phrases that state which values are legal: what to do is to give one of them.
const LIMITS: [&str; 22] = [
    "at least", "at most", "belongs to", "cannot be combined", "does not go with", "expected", "is neither", "is not a ",
    "is not from", "is not one of", "is not two", "is not within", "is not above", "is outside", "it is one of",
    "it has ", "must", "needs", "there are ", "there is no", "works on", "works with",
];

/// A message, divided into what is wrong and what to do. `None` where it does not say what to do.
pub fn divide(text: &str) -> Option<(String, String)> {
    let mut from = 0;
    while let Some(at) = text[from..].find(['.', ';', ':', ',', '(']).map(|at| from + at) {
        from = at + 1;
        let rest = text[from..].trim_start_matches([' ', '(']);
        let rest = rest.strip_prefix("or ").or(rest.strip_prefix("and ")).or(rest.strip_prefix("then ")).unwrap_or(rest);
        let first = rest.split(|c: char| !c.is_alphabetic()).next().unwrap_or("").to_lowercase();
        let ends = !text[from..].starts_with(|c: char| c.is_alphanumeric() || c == '/');
        if (ends || text[..from].ends_with('(')) && INSTRUCTIONS.contains(&first.as_str()) {
            return Some((text[..at].trim_end().to_owned(), text[from..].trim_start().to_owned()));
        }
    }
    let limit = LIMITS.iter().any(|phrase| text.contains(phrase));
    limit.then(|| (text.to_owned(), "give a value that the message allows".to_owned()))
}
