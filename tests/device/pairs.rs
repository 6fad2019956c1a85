//! Two commands that write to the same place at the same time: the output is that of one of them.

use crate::support::all_bytes;
use crate::support::cli::Lab;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Commands that write slices or pages, without their output.
const COMMANDS: [&str; 4] = [
    "reconstruct -q --sinograms sin --center 15.5 --no-self-test",
    "preprocess --sinograms sin",
    "preprocess --projections proj",
    "phantom --size 24 --projections 12 --slices 3",
];

fn start(lab: &Lab, args: &str) -> Child {
    let command = lab.command(args);
    let mut process = Command::new(command.get_program());
    process.args(command.get_args()).current_dir(lab.path(""));
    process.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    process.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Slices and pages of an output, without the record.
fn content(lab: &Lab, output: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let path = lab.path(output);
    let mut files = match path.is_dir() {
        true => all_bytes(&path),
        false => fs::read(&path).map(|bytes| (path.clone(), bytes)).into_iter().collect(),
    };
    files.retain(|file, _| file.extension().is_none_or(|extension| extension != "toml"));
    files.into_iter().map(|(file, bytes)| (file.strip_prefix(&path).unwrap().to_owned(), bytes)).collect()
}

fn remove(lab: &Lab, output: &str) {
    let path = lab.path(output);
    let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    let _ = fs::remove_file(lab.path(format!("{output}-run.toml")));
}

#[test]
fn the_output_is_that_of_one_command() {
    let lab = Lab::small();
    let rounds = std::env::var("FBP_TEST_RACES").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut outputs = vec!["r", "r.tif", "r.zarr"];
    if cfg!(feature = "hdf5") {
        outputs.push("r.h5");
    }
    let pairs: Vec<(usize, usize)> =
        (0..COMMANDS.len()).flat_map(|a| (a..COMMANDS.len()).map(move |b| (a, b))).collect();
    for round in 0..rounds.max(1) {
        for (number, &(a, b)) in pairs.iter().enumerate() {
            for (kind, output) in outputs.iter().enumerate() {
                // one of the kinds unless more rounds are asked for
                if rounds == 0 && kind != number % outputs.len() {
                    continue;
                }
                // what the phantom writes is a directory
                let places = |command: &str| match command.starts_with("phantom") && *output != "r" {
                    true => format!("{command} --output p --overwrite --truth {output}"),
                    false => format!("{command} --output {output}"),
                };
                if *output != "r"
                    && !output.ends_with("tif")
                    && [a, b].iter().any(|&c| COMMANDS[c].starts_with("phantom"))
                {
                    continue;
                }
                let commands = [a, b].map(|command| places(COMMANDS[command]));
                let alone: Vec<_> = commands
                    .iter()
                    .map(|args| {
                        remove(&lab, output);
                        lab.ok(args);
                        content(&lab, output)
                    })
                    .collect();
                remove(&lab, output);
                let ended = commands.each_ref().map(|args| start(&lab, args)).map(|mut child| child.wait().unwrap());
                let codes = ended.map(|status| status.code());
                let found = content(&lab, output);
                assert!(codes.iter().all(|code| matches!(code, Some(0 | 5))), "{commands:?}: {codes:?}");
                let done = (0..2).filter(|&i| codes[i] == Some(0));
                assert!(done.clone().any(|i| found == alone[i]), "round {round}, {commands:?}: {codes:?} is mixed");
                // the second of two that overwrite may begin when the first has ended
                let overwrites = commands.iter().any(|args| args.contains("--overwrite"));
                assert!(overwrites || done.count() == 1, "{commands:?}: {codes:?}");
            }
        }
    }
}
