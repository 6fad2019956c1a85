//! Flags of `fbp reconstruct` as words of a command line, and as keys of a run file.

use crate::cli::{Cli, Command, parse};
use crate::recipe::given;
use clap::{ArgAction, CommandFactory};
use toml::{Table, Value};

/// Flags that name what is reconstructed, which come first in a command.
const DATA: [&str; 4] = ["sinograms", "projections", "hdf5", "raw"];

/// Returns the flags of `fbp reconstruct` that take no value.
pub(super) fn switches() -> Vec<String> {
    let command = Cli::command();
    let flags = command.find_subcommand("reconstruct").into_iter().flat_map(clap::Command::get_arguments);
    let switches = flags.filter(|flag| matches!(flag.get_action(), ArgAction::SetTrue));
    switches.filter_map(|flag| flag.get_long()).map(str::to_owned).collect()
}

/// Returns whether a word is the value of a flag that is given without one, and which.
pub(super) fn as_switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Reads flags as the command line of `fbp reconstruct` does; the error is the first line of what it says.
pub(super) fn keys_of(flags: impl Iterator<Item = String>) -> Result<Table, String> {
    let words = ["fbp", "reconstruct"].into_iter().map(str::to_owned).chain(flags);
    match parse(words.map(Into::into)) {
        Ok(Cli { command: Command::Reconstruct { args, .. } }) => given(&args).map_err(|error| error.to_string()),
        Ok(_) => Err("these are the flags of another command".to_owned()),
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(first.strip_prefix("error: ").unwrap_or(first).to_owned())
        }
    }
}

/// Returns the command of a run with these keys: the data first, the flags `last` and the output at the end.
pub(super) fn command_of(keys: &Table, last: &[&str]) -> String {
    let at_end = |key: &str| last.contains(&key) || key == "output";
    let begin = DATA.into_iter().filter(|key| !at_end(key));
    let middle = keys.keys().map(String::as_str).filter(|key| !DATA.contains(key) && !at_end(key));
    let end = last.iter().copied().chain(["output"]);
    let mut words = vec!["fbp".to_owned(), "reconstruct".to_owned()];
    for (key, value) in begin.chain(middle).chain(end).filter_map(|key| Some((key, keys.get(key)?))) {
        let values = match value {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            match value {
                Value::Boolean(_) => words.push(format!("--{key}")),
                // what follows would be taken for another flag
                Value::String(text) if text.starts_with('-') => words.push(quoted(&format!("--{key}={text}"))),
                Value::String(text) => words.extend([format!("--{key}"), quoted(text)]),
                other => words.extend([format!("--{key}"), other.to_string()]),
            }
        }
    }
    words.join(" ")
}

/// Returns a word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_flags_that_were_given() {
        let line = "--projections=it's --flats f --overall-angle 360 --tilt -0.5 --stripes dead --stripes large --minus-log \
                    --pixel-size 0.65um --device cpu --center=3.5 -o slices/";
        let keys = keys_of(line.split_whitespace().map(str::to_owned)).unwrap();
        assert_eq!(
            command_of(&keys, &["stripes", "center"]),
            "fbp reconstruct --projections 'it'\\''s' --device cpu --flats f --minus-log --overall-angle 360.0 \
             --pixel-size 0.65um --tilt=-0.5 --stripes dead --stripes large --center 3.5 --output slices/"
        );
        // and are read again
        let command = command_of(&keys, &[]).replace("'it'\\''s'", "it's");
        assert_eq!(keys_of(command.split_whitespace().skip(2).map(str::to_owned)).unwrap(), keys);
        let error = keys_of(["--padding=edges".to_owned()].into_iter()).unwrap_err();
        assert!(error.contains("'edges'") && error.contains("--padding"), "{error}");
    }

    #[test]
    fn switches_have_values_in_tables() {
        let switches = switches();
        assert!(switches.contains(&"interior".to_owned()) && !switches.contains(&"mask".to_owned()));
        assert_eq!(["yes", "FALSE", "1", "maybe"].map(as_switch), [Some(true), Some(false), Some(true), None]);
    }
}
