//! What pages and recipes say is compared with the program: commands that they show, counts, versions.

use super::layering::files;
use clap::{CommandFactory, Parser};
use fbp::cli::Cli;
use fbp::remark::DoubtKind;
use std::fs;
use std::path::{Path, PathBuf};
use strum::VariantArray;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Fenced blocks of a page: their language and lines.
fn blocks(page: &str) -> Vec<(String, String)> {
    let parts = page.split("```").collect::<Vec<_>>();
    parts
        .iter()
        .skip(1)
        .step_by(2)
        .filter_map(|part| part.split_once('\n'))
        .map(|(l, t)| (l.into(), t.into()))
        .collect()
}

/// Words of a command line as the shell divides it, up to the end of the command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut open) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => (quote, open) = (Some(c), true),
            (None, ' ') => {
                if open {
                    words.push(std::mem::take(&mut word));
                }
                open = false;
            }
            (None, '|' | ';' | '&' | '#' | '>') if !open => return words,
            (None, ';') => break,
            (_, c) => {
                word.push(c);
                open = true;
            }
        }
    }
    if open {
        words.push(word);
    }
    words
}

/// Every command of fbp that a page shows, as words.
fn commands(page: &str) -> Vec<Vec<String>> {
    let text: Vec<String> = blocks(page)
        .into_iter()
        .map(|(language, text)| if language == "fbp" { text.replace('\n', " ") } else { text })
        .collect();
    let joined = text.join("\n").replace("\\\n", " ");
    let line = |line: &str| {
        let line = line.trim_start_matches("$ ").trim_start();
        if line.starts_with("fbp ") { Some(line.to_owned()) } else { wrapped(line) }
    };
    joined.lines().filter_map(line).map(|line| words(&line)).collect()
}

/// The command of fbp that a loop, GNU parallel or a batch system runs, with one of its values.
fn wrapped(line: &str) -> Option<String> {
    if ["for ", "parallel ", "srun "].iter().any(|program| line.starts_with(program)) {
        let mut command = line[line.find("fbp ")?..].replace(" ::: ", " ; ").replace('\'', "");
        for (variable, value) in [("$(({%} - 1))", "0"), ("{}", "0"), ("$i", "0"), ("$r", "300")] {
            command = command.replace(variable, value);
        }
        return Some(command);
    }
    let (before, arguments) = line.split_once(".sbatch ")?;
    let command = if before.contains("COMMAND=batch") { "batch" } else { "reconstruct" };
    Some(format!("fbp {command} {arguments} --shard auto"))
}

/// Placeholders such as `...` and `COMMAND` are no commands.
fn is_whole(command: &[String]) -> bool {
    !command.iter().any(|word| word.contains("..") && word.trim_matches('.').is_empty() || word.starts_with('<'))
}

#[test]
fn commands_of_all_pages_are_understood() {
    let mut pages: Vec<(PathBuf, String)> = files("docs", "md");
    pages.push(("README.md".into(), read("README.md")));
    let mut count = 0;
    for (path, page) in pages.iter().filter(|(path, _)| !path.ends_with("messages.md")) {
        for command in commands(page).into_iter().filter(|command| is_whole(command)) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&command) {
                let help = matches!(
                    error.kind(),
                    clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
                );
                assert!(help, "{}: {command:?}: {error}", path.display());
            }
        }
    }
    assert!(count >= 120, "only {count} commands were found");
}

/// Flags of programs that pages for users name besides fbp's.
const OTHERS: &[&str] = &[
    "--angle",
    "--array",
    "--axis",
    "--axis-angle-x",
    "--beam-hardening-method",
    "--center-position-x",
    "--constraint",
    "--cores",
    "--end-proj",
    "--features",
    "--flat-scale",
    "--install",
    "--locked",
    "--number",
    "--reconstruction-algorithm",
    "--release",
    "--resume-failed",
    "--rotation-axis",
    "--start",
    "--start-proj",
    "--step",
];

/// The long flags of a command and of those below it.
fn flags(command: &clap::Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_long().map(|long| format!("--{long}")));
    own.chain(command.get_subcommands().flat_map(flags)).collect()
}

/// The long flags in the text of a page, as code.
fn named_flags(page: &str) -> Vec<String> {
    let text: String = page.split("```").step_by(2).collect();
    let code =
        text.split('`').skip(1).step_by(2).flat_map(|code| code.split(|c: char| c != '-' && !c.is_alphanumeric()));
    let is_flag = |word: &&str| word.starts_with("--") && word.contains(char::is_lowercase);
    code.filter(is_flag).map(str::to_owned).collect()
}

#[test]
fn flags_that_pages_name_exist() {
    let mut known = flags(&Cli::command());
    known.extend(["--help", "--version"].map(str::to_owned));
    let users =
        files("docs", "md").into_iter().filter(|(path, _)| !path.components().any(|part| part.as_os_str() == "dev"));
    let mut pages: Vec<(PathBuf, String)> = users.collect();
    pages.push(("README.md".into(), read("README.md")));
    let (mut count, mut others) = (0, Vec::new());
    for (path, page) in pages {
        for flag in named_flags(&page) {
            count += 1;
            if !known.contains(&flag) {
                assert!(OTHERS.contains(&flag.as_str()), "{}: there is no {flag}", path.display());
                others.push(flag);
            }
        }
    }
    assert!(count > 500, "only {count} flags were found");
    assert!(OTHERS.iter().all(|flag| others.contains(&(*flag).to_owned())), "OTHERS has more than {others:?}");
}

/// Words and decisions of the commands in a block, by the rule of docs/moving.md.
fn counted(block: &str) -> (usize, usize) {
    let files = [
        "--hdf5",
        "--projections",
        "--sinograms",
        "--flats",
        "--darks",
        "--output",
        "--file-name",
        "--dataset",
        "--config",
        "--wrap",
    ];
    let lines = block.lines().filter(|line| !line.starts_with('['));
    let words: Vec<&str> = lines.clone().flat_map(str::split_whitespace).filter(|word| *word != "=").collect();
    let flags = words.iter().filter(|word| word.starts_with("--") && !files.contains(*word)).count();
    let keys = lines.filter(|line| line.contains(" = ")).count();
    let is_key = |word: &&&str| word.starts_with(char::is_alphabetic) && word.contains('=');
    let named = words.iter().filter(is_key).filter(|word| !word.starts_with("path=") && !word.starts_with("filename="));
    (words.len(), flags + keys + named.count())
}

#[test]
fn words_and_decisions_are_counted() {
    let page = read("docs/moving.md");
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with("| [")).collect();
    let sections: Vec<&str> = page.split("\n## ").skip(1).take(10).collect();
    assert_eq!((table.len(), sections.len()), (10, 10));
    let mut wrong = Vec::new();
    for (row, section) in table.iter().zip(sections) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert!(cells[1].starts_with(&format!("[{}.", section.split('.').next().unwrap())), "{row}");
        for (column, program) in ["fbp", "tofu", "nabu", "tomocupy"].into_iter().enumerate() {
            let block = blocks(section).into_iter().find(|(language, _)| language == program);
            let expected = block.map_or(String::new(), |(_, text)| {
                let (words, decisions) = counted(&text);
                format!("{words} / {decisions}")
            });
            if cells[column + 2] != expected {
                wrong.push(format!("{}: {program} is `{}`, counted `{expected}`", cells[1], cells[column + 2]));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/moving.md: {wrong:#?}");
}

/// The recipes in packaging/ name the version, files, features and commands that are there.
#[test]
fn recipes_are_of_this_version() {
    let manifest: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let version = manifest["workspace"]["package"]["version"].as_str().unwrap();
    let conda = read("packaging/conda/meta.yaml");
    assert!(
        conda.contains(&format!("{{% set version = \"{version}\" %}}")),
        "packaging/conda/meta.yaml: not {version}"
    );
    assert!(read("CHANGELOG.md").contains(version), "CHANGELOG.md says nothing of {version}");
    let container = read("packaging/Containerfile");
    let features = manifest["features"].as_table().unwrap();
    for recipe in [&conda, &container] {
        let builds: Vec<&str> = recipe.lines().filter(|line| line.contains("cargo build")).collect();
        assert!(!builds.is_empty());
        for build in builds {
            assert!(build.contains("--release --locked"), "{build}");
            let named = build.split("--features ").nth(1).unwrap().split_whitespace().next().unwrap();
            assert!(features.contains_key(named), "{build}: there is no feature {named}");
        }
        for path in recipe.split_whitespace().filter(|word| word.starts_with("scripts/")) {
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(path).exists(), "there is no {path}");
        }
    }
    let tests = conda.split("test:").nth(1).unwrap().split("about:").next().unwrap();
    let commands: Vec<Vec<String>> = tests
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- "))
        .filter(|l| l.starts_with("fbp "))
        .map(words)
        .collect();
    assert!(commands.len() >= 4);
    for command in commands {
        let parsed = Cli::try_parse_from(&command);
        assert!(parsed.is_ok() || command.contains(&"--version".to_owned()), "packaging/conda/meta.yaml: {command:?}");
    }
    // the packages that the container installs are those of the Debian package and of scripts/setup
    let known = read("scripts/package/deb") + &read("scripts/setup") + "python3 dpkg-dev";
    let installs = container.replace("\\\n", " ");
    let mut count = 0;
    for line in installs.lines().filter(|line| line.contains("apt-get install")) {
        let rest = line.split("apt-get install").nth(1).unwrap().split("&&").next().unwrap();
        for package in rest.split_whitespace().filter(|word| !word.starts_with('-') && !word.starts_with('/')) {
            assert!(known.contains(package), "packaging/Containerfile: {package} is known nowhere else");
            count += 1;
        }
    }
    assert!(count >= 5);
}

/// Tasks of a user, each with words of its row in the README's table, its page, and what the beginning of that page gives.
const TASKS: &[(&str, &str, &str, &str)] = &[
    ("my HDF5 scan", "read my HDF5 scan", "docs/hdf5.md", "fbp reconstruct scan.h5"),
    ("rings", "remove rings", "docs/preprocessing.md", "--stripes dead,titarenko"),
    ("half acquisition", "half acquisition", "docs/scans.md", "--center auto --extended-field"),
    ("choose the axis by eye", "choose it by eye", "docs/center.md", "--sweep 1020..1028:0.5"),
    ("phase", "retrieve the phase", "docs/preprocessing.md", "--phase paganin"),
    ("u16 for a viewer", "16-bit slices for a viewer", "docs/formats.md", "--dtype u16"),
    ("100 scans at night", "100 scans at night", "docs/batch.md", "`fbp batch`"),
    ("a batch system", "Slurm", "docs/batch.md", "sbatch --array"),
    ("make it faster", "make it faster", "docs/performance.md", "--interpolation exact"),
];

/// A user who begins with the README needs at most one more page for each of ten tasks, and only the beginning of it.
#[test]
fn two_pages_are_enough_for_ten_tasks() {
    let readme = read("README.md");
    let (before, _) = readme.split_once("\n## ").unwrap();
    // the first picture needs no other page
    assert!(before.contains("fbp phantom ") && before.contains("--preview "), "README.md has no first picture");
    let (_, table) = readme.split_once("\n## Where to look\n").unwrap();
    for (task, words, page, given) in TASKS {
        let row = table.lines().find(|line| line.starts_with('|') && line.contains(words));
        let row = row.unwrap_or_else(|| panic!("{task}: no row of README.md has `{words}`"));
        assert!(row.contains(&format!("]({page})")), "{task}: {row} does not lead to {page}");
        let text = read(page);
        let beginning = text.split("\n## ").next().unwrap();
        assert!(beginning.contains(given), "{task}: the beginning of {page} has no `{given}`");
    }
}

#[test]
fn every_doubt_stands_in_the_table_of_doubts() {
    let page = read("docs/outputs.md");
    let (_, section) = page.split_once("\n## Doubts\n").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let named: Vec<&str> = rows.map(|(name, _)| name).collect();
    let mut kinds: Vec<String> = DoubtKind::VARIANTS.iter().map(DoubtKind::to_string).collect();
    kinds.sort();
    assert_eq!(named, kinds, "the table has every doubt once, in alphabetical order");
}
