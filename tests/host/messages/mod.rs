//! docs/messages.md lists every message of the program, collected from the source; each says what to do.
//!
//! After a wanted change run `FBP_UPDATE_GOLDEN=1 cargo test --test host messages` and look at the difference in git.

mod advice;
mod collect;

use super::layering::files;
use collect::Message;
use fbp::cli::Topic;
use fbp::error::{CATALOGUE, Cause, Error};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Texts that become an error further up: the exit code of that, by the beginning of the file's path.
const RAISED: &[(&str, u8)] = &[
    ("src/cli/", 2),
    ("src/commands/", 3),
    ("src/kernel/", 2),
    ("src/layout/", 3),
    ("src/profile/", 2),
    ("src/source/", 3),
    ("src/files/", 5),
    ("src/sink/", 5),
];

const HEAD: &str = "\
# Messages

This page lists every error, warning and note of fbp, with its exit code and what to do. It is generated from the source,
and a test compares the two. Words in CAPITALS stand for what a message names: a flag, a file, a device, a number. Errors
begin with `fbp: ` on standard error; messages about a file begin with its name and flag, which are not listed here. The
command-line parser reports unknown flags and invalid words, lists the valid ones, and ends with exit code 2.
";

fn messages() -> Vec<Message> {
    let is_test = |path: &Path| path.ends_with("tests.rs") || path.iter().any(|part| part == "tests");
    let mut sources: Vec<(String, String)> = files("src", "rs")
        .into_iter()
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| (path.display().to_string(), text))
        .collect();
    sources.sort();
    let mut messages = collect::messages(&sources);
    messages.extend(declared());
    messages.sort_by(|a, b| a.file.cmp(&b.file));
    messages
}

/// Messages that the source declares as types.
fn declared() -> impl Iterator<Item = Message> {
    CATALOGUE.iter().copied().flatten().map(|entry| {
        let advice = if entry.advice.is_empty() { String::new() } else { format!("; {}", entry.advice) };
        let kind = match entry.cause {
            Cause::Warning => "note".to_owned(),
            cause => format!("{cause:?}"),
        };
        let prefix = if entry.cause == Cause::Warning { "warning: " } else { "" };
        let text = capitals(&format!("{prefix}{}{advice}", entry.problem));
        Message { kind, text, file: entry.file.to_owned() }
    })
}

/// A text with the names of its values in capitals.
fn capitals(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once('}') {
        Some((name, rest)) => text + &name.split(':').next().unwrap_or_default().to_uppercase() + rest,
        None => text + part,
    })
}

/// The exit code of a message; 0 for notes and warnings.
fn exit_code(message: &Message) -> u8 {
    let text = String::new;
    let error = match message.kind.as_str() {
        "note" => return 0,
        "Usage" => Error::Usage(text()),
        "Profile" => Error::profile("", ""),
        "Input" => Error::Input(text()),
        "Device" => Error::Device(text()),
        "Memory" => Error::Memory(text()),
        "NoCorrectKernel" => Error::NoCorrectKernel(text()),
        "KernelBuild" => {
            let [name, device, options, log] = [text(), text(), text(), text()];
            Error::KernelBuild { name, device, options, log }
        }
        "Output" | "Unwritable" => Error::Output(text()),
        "Internal" => Error::Internal(text()),
        "Interrupted" => Error::Interrupted(text()),
        "CheckFailed" => Error::CheckFailed(text()),
        _ => {
            let raised = RAISED.iter().find(|(path, _)| message.file.starts_with(path));
            return raised.unwrap_or_else(|| panic!("{message:?}: which exit code?")).1;
        }
    };
    error.exit_code()
}

fn cell(text: &str) -> String {
    match text.contains('`') {
        true => format!("`` {} ``", text.replace('|', "\\|")),
        false => format!("`{}`", text.replace('|', "\\|")),
    }
}

fn row(message: &Message, code: u8) -> String {
    let (cause, remedy) = advice::divide(&message.text).unwrap_or_else(|| (message.text.clone(), String::new()));
    let remedy = match (remedy.as_str(), code) {
        ("", 2) => "give a value that the message allows".to_owned(),
        ("", 0) => String::new(),
        ("", _) => "provide what the message expects".to_owned(),
        _ => remedy.replace(" of; ", " of ").replace('|', "\\|").replace('*', "\\*").replace('<', "\\<"),
    };
    let source = message.file.trim_start_matches("src/");
    format!("| {} | {remedy} | {source} |\n", cell(&cause))
}

fn page(messages: &[Message]) -> String {
    let mut page = HEAD.to_owned();
    let codes = Topic::ExitCodes.text();
    let meanings = codes.lines().skip(1).take_while(|line| !line.is_empty());
    for (code, meaning) in meanings.filter_map(|line| line.trim().split_once("  ")) {
        let code: u8 = code.parse().unwrap();
        let of_code: Vec<&Message> =
            messages.iter().filter(|m| m.kind != "Internal" && code > 0 && exit_code(m) == code).collect();
        if !of_code.is_empty() {
            write!(
                page,
                "\n## Exit code {code}\n\n{}.\n\n| message | what to do | source |\n|---|---|---|\n",
                meaning.trim()
            )
            .unwrap();
            page.extend(of_code.iter().map(|message| row(message, code)));
        }
    }
    let (warnings, notes): (Vec<&Message>, Vec<&Message>) = messages
        .iter()
        .filter(|message| message.kind == "note")
        .partition(|message| message.text.starts_with("warning: "));
    page += "\n## Warnings\n\nThe run continues.\n\n| message | what to do | source |\n|---|---|---|\n";
    page.extend(warnings.iter().map(|message| row(message, 0)));
    page += "\n## Notes\n\nNotes say what was done or assumed; there is nothing to do.\n\n| message | source |\n|---|---|\n";
    for note in notes {
        writeln!(page, "| {} | {} |", cell(&note.text), note.file.trim_start_matches("src/")).unwrap();
    }
    page += "\n## Bugs\n\nThese can only be caused by a bug in fbp; the exit code is 4. Please report the command and the message.\n\n| message | source |\n|---|---|\n";
    for defect in messages.iter().filter(|message| message.kind == "Internal") {
        writeln!(page, "| {} | {} |", cell(&defect.text), defect.file.trim_start_matches("src/")).unwrap();
    }
    page
}

#[test]
fn every_message_says_what_to_do() {
    let mute: Vec<Message> = messages()
        .into_iter()
        .filter(|message| message.kind != "Internal")
        .filter(|message| message.kind != "note" || message.text.starts_with("warning: "))
        .filter(|message| advice::divide(&message.text).is_none())
        .collect();
    assert!(mute.is_empty(), "these messages do not say what to do (see tests/host/messages/advice.rs): {mute:#?}");
}

#[test]
fn the_page_of_messages_is_that_of_the_source() {
    let messages = messages();
    for kind in ["Usage", "Input", "Device", "Memory", "Output", "Profile", "Interrupted", "CheckFailed", "note", ""] {
        assert!(messages.iter().any(|message| message.kind == kind), "no message of kind `{kind}` was found");
    }
    assert!(messages.len() > 350, "only {} messages were found", messages.len());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/messages.md");
    let page = page(&messages);
    if std::env::var_os("FBP_UPDATE_GOLDEN").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    assert!(known == page, "docs/messages.md is old; FBP_UPDATE_GOLDEN=1 cargo test --test host messages");
}

/// What the collector finds in a source that has one of each.
#[test]
fn messages_are_found_in_source() {
    let source = r#"
        const ADVICE: &str = "try again";
        pub fn bad(path: &Path, message: String) -> Error { Error::Input(format!("{}: {message}", path.display())) }
        fn one() -> Result<()> { Err(Error::usage(format!("--size: {size} is too large; give less"))) }
        fn two() -> Result<(), String> { Err("is empty".into()) }
        fn three(path: &Path) -> Result<()> { Err(bad(path, format!("has {} pages", pages.len()))) }
        fn four() { let wrong = |why: &str| Error::output(&target, format!("cannot {why}; free some space"));
            return Err(wrong("write")); }
        fn five() { reporter.note(&format!("warning: {label} failed; {ADVICE}")); }
        const RULES: &[Rule] = &[Rule::Excludes(&["a", "b"], &["c"], "give one"), Rule::Needs(&["d"], &["e", "f"], ADVICE)];
        #[cfg(test)] mod tests { fn six() { Err(Error::usage("never seen")) } }
    "#;
    let found = collect::messages(&[("a.rs".to_owned(), source.to_owned())]);
    let found: Vec<(&str, &str)> = found.iter().map(|m| (m.kind.as_str(), m.text.as_str())).collect();
    let expected = [
        ("", "is empty"),
        ("Input", "PATH: has COUNT pages"),
        ("Output", "TARGET: cannot write; free some space"),
        ("Usage", "--a and --c: give one"),
        ("Usage", "--b and --c: give one"),
        ("Usage", "--d: needs --e or --f; try again"),
        ("Usage", "--size: SIZE is too large; give less"),
        ("note", "warning: LABEL failed; try again"),
    ];
    for message in expected {
        assert!(found.contains(&message), "{message:?} is not in {found:#?}");
    }
    assert!(found.iter().all(|(_, text)| *text != "never seen"));
    assert_eq!(advice::divide("PATH: cannot be read"), None);
    assert_eq!(advice::divide("it is full; free some space"), Some(("it is full".into(), "free some space".into())));
}
