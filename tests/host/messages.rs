//! docs/messages.md lists every message of the program, as the types declare them; each says what to do.
//!
//! After a wanted change run `FBP_UPDATE_GOLDEN=1 cargo test --features hdf5 --test host messages` and look at the
//! difference in git.

use fbp::cli::Topic;
use fbp::error::{CATALOGUE, CatalogueEntry, Cause};
use fbp::recipe::{RuleKind, rules};
use std::fmt::Write;

/// Phrases that state which values are legal: what to do is to give one of them.
const LIMITS: &[&str] = &[
    "at least",
    "at most",
    "belongs to",
    "cannot be combined",
    "did you mean",
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

/// The file that declares a message, without the directory of its crate.
fn file(entry: &CatalogueEntry) -> &'static str {
    entry.file.split_once("src/").map_or(entry.file, |(_, file)| file)
}

/// All messages, in the order of the files that declare them, and within a table in that of the declaration.
fn entries() -> Vec<CatalogueEntry> {
    let mut tables: Vec<&[CatalogueEntry]> = CATALOGUE.iter().copied().collect();
    // the linker decides about the order of a file's tables
    tables.sort_by_key(|table| table.first().map(|entry| (file(entry), entry.problem, entry.advice)));
    tables.concat()
}

/// A text as a cell of a table shows it, with the names of its values in capitals.
fn shown(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        shown += &rest[..at];
        rest = &rest[at..];
        if let Some(escaped) = ["{{", "}}"].iter().find_map(|brace| rest.strip_prefix(brace)) {
            shown += &rest[..1];
            rest = escaped;
        } else {
            let (name, after) = rest[1..].split_once('}').unwrap_or((rest, ""));
            shown += &name.split(':').next().unwrap_or_default().to_uppercase();
            rest = after;
        }
    }
    (shown + rest).split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn code(text: &str) -> String {
    let text = shown(text);
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

/// Words that Markdown does not take for markup.
fn plain(text: &str) -> String {
    shown(text).replace('*', "\\*").replace('<', "\\<")
}

fn table(page: &mut String, entries: &[&CatalogueEntry]) {
    page.push_str("| message | what to do | source |\n|---|---|---|\n");
    for entry in entries {
        writeln!(page, "| {} | {} | {} |", code(entry.problem), plain(entry.advice), file(entry)).unwrap();
    }
}

fn page() -> String {
    let mut page = "\
# Messages

This page lists the errors and warnings of fbp, with exit code and what to do. It is made from the program's own list, and a
test compares the two. Words in CAPITALS stand for what a message names: a flag, a file, a device, a number. Errors begin
with `fbp: ` on standard error; messages about a file begin with its name and flag. Where a message itself says which values
are legal, the second column is empty. Not listed are notes, which need no action; the messages of the command line's
parser, which name the legal words (exit code 2); and bugs, which ask for a report (exit code 4).
"
    .to_owned();
    let entries = entries();
    let codes = Topic::ExitCodes.text();
    let meanings = codes.lines().skip(1).take_while(|line| !line.is_empty());
    for (code, meaning) in meanings.filter_map(|line| line.trim().split_once("  ")) {
        let code: u8 = code.parse().unwrap();
        let of_code: Vec<_> = entries.iter().filter(|entry| code > 0 && entry.cause.exit_code() == code).collect();
        if !of_code.is_empty() {
            write!(page, "\n## Exit code {code}\n\n{}.\n\n", meaning.trim()).unwrap();
            table(&mut page, &of_code);
        }
    }
    page.push_str("\n## Flags that exclude or need each other\n\nExit code 2. With a run file, a flag takes the place of another key that says the same.\n\n| flags | | flags | why | what to do |\n|---|---|---|---|---|\n");
    for rule in rules() {
        let list = |flags: &[&str]| flags.iter().map(|flag| format!("`--{flag}`")).collect::<Vec<_>>().join(", ");
        let relation = match rule.kind {
            RuleKind::Needs => "needs one of",
            RuleKind::Alternatives => "instead of",
            RuleKind::Excludes => "not with",
        };
        let (flags, others) = (list(rule.flags), list(rule.others));
        writeln!(page, "| {flags} | {relation} | {others} | {} | {} |", plain(rule.reason), plain(rule.advice))
            .unwrap();
    }
    page.push_str("\n## Warnings\n\nThe run continues; with `--strict` a warning about the result is an error.\n\n");
    table(&mut page, &entries.iter().filter(|entry| entry.cause == Cause::Warning).collect::<Vec<_>>());
    page
}

#[test]
fn every_message_says_what_to_do() {
    let mute: Vec<CatalogueEntry> = entries()
        .into_iter()
        .filter(|entry| entry.advice.is_empty() && !LIMITS.iter().any(|phrase| entry.problem.contains(phrase)))
        // what another message says, with its advice at the end
        .filter(|entry| !entry.problem.ends_with("{error}"))
        .collect();
    assert!(mute.is_empty(), "these messages do not say what to do: {mute:#?}");
}

#[test]
fn texts_are_whole() {
    for entry in entries() {
        for text in [entry.problem, entry.advice] {
            assert!(!text.ends_with([';', ' ']), "{entry:?}");
        }
    }
    assert_eq!(shown("a {b:?} of {{c}} {d}\n| e"), "a B of {c} D \\| e");
}

/// Without HDF5, its messages are not part of the program.
#[test]
#[cfg(feature = "hdf5")]
fn the_page_of_messages_is_that_of_the_program() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/messages.md");
    let page = page();
    if std::env::var_os("FBP_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let first = known.lines().zip(page.lines()).find(|(known, made)| known != made);
    assert!(
        known == page,
        "docs/messages.md is old, from {first:?} on; FBP_UPDATE_GOLDEN=1 cargo test --features hdf5 --test host messages"
    );
}
