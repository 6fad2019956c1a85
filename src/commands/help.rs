//! `fbp help` and `fbp man`: help generated from the declaration of the command line, and additional topics.

use super::errors::{CommandFlagError, CommandOutputError};
use crate::cli::{Cli, HelpArgs, ManArgs, Topic};
use crate::error::{Error, Result};
use crate::files::{InputSet, OutputFile, OutputKind};
use crate::visible::Shown;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::path::{Path, PathBuf};
use strum::VariantArray;

/// Returns the help of a command or the text of a topic.
///
/// # Errors
/// [`Error::Usage`] for a name that is neither.
pub fn help(args: &HelpArgs) -> Result<String> {
    let mut command = Cli::command();
    command.build();
    let Some(first) = args.words.first() else {
        let topics: Vec<String> =
            Topic::VARIANTS.iter().map(|topic| format!("  {topic:<13}{}", topic.about())).collect();
        return Ok(format!("{}\nTopics (fbp help TOPIC):\n{}\n", command.render_help(), topics.join("\n")));
    };
    if let (Ok(topic), 1) = (first.parse::<Topic>(), args.words.len()) {
        return Ok(topic.text());
    }
    let mut found = &mut command;
    for (depth, word) in args.words.iter().enumerate() {
        let mut names: Vec<String> = found.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        if depth == 0 {
            names.extend(Topic::VARIANTS.iter().map(|topic| topic.to_string()));
        }
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            let words = args.words.join(" ");
            match names.is_empty() {
                true => CommandFlagError::NoSubcommand { words, word: word.clone() },
                false => CommandFlagError::NoTopic { words, names: names.join(", ") },
            }
        })?;
    }
    Ok(found.render_long_help().to_string())
}

/// Writes the manual pages, one for each command in section 1 and one for each topic in section 7; returns their names.
///
/// # Errors
/// [`Error::Output`] if the directory cannot be written.
pub fn man(args: &ManArgs) -> Result<String> {
    std::fs::create_dir_all(&args.output)
        .map_err(|error| Error::output(&args.output, CommandOutputError::NotCreated { error }))?;
    let mut command = Cli::command();
    command.build();
    let mut written = Vec::new();
    commands(&command, &args.output, &mut written)?;
    for &topic in Topic::VARIANTS {
        let path = args.output.join(format!("fbp-{topic}.7"));
        write_page(&path, &topic_page(topic))?;
        written.push(path);
    }
    Ok(written.iter().map(|path| format!("{}\n", path.shown())).collect())
}

/// Writes the page of a command and those of its subcommands.
fn commands(command: &Command, directory: &Path, written: &mut Vec<PathBuf>) -> Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = directory.join(format!("{name}.1"));
    let mut page = Vec::new();
    let man = Man::new(command.clone()).manual("fbp").source(format!("fbp {}", env!("CARGO_PKG_VERSION")));
    man.render(&mut page).map_err(|error| Error::output(&path, CommandOutputError::ManualPage { error }))?;
    write_page(&path, &String::from_utf8_lossy(&page))?;
    written.push(path);
    command.get_subcommands().try_for_each(|part| commands(part, directory, written))
}

/// Writes a page, replacing an older one.
fn write_page(path: &Path, text: &str) -> Result<()> {
    OutputFile::new("--output", path, OutputKind::Manual, &InputSet::default(), None)?.write(text)
}

/// Returns the page of a topic: its text as `fbp help` prints it.
fn topic_page(topic: Topic) -> String {
    let name = format!("fbp-{topic}");
    let mut page = Roff::new();
    page.control("TH", [name.as_str(), "7", "", concat!("fbp ", env!("CARGO_PKG_VERSION")), "fbp"]);
    page.control("SH", ["NAME"]).text([roman(format!("{name} - {}", topic.about()))]);
    page.control("SH", ["DESCRIPTION"]).control("nf", []);
    for line in topic.text().lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []).control("SH", ["SEE ALSO"]).text([bold("fbp"), roman("(1)")]);
    page.to_roff()
}
