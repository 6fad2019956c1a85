//! Everything that docs/dev/traceability.md names is there.

use super::kernels::flat;
use fbp::kernel::{Algorithm, Mode, Parameters};
use fbp::profile::{Profile, ProfileStore};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use toml::Value;

/// The columns of the tables of what is done otherwise, or not at all.
const REASONS: [&str; 3] = ["place", "content", "reason"];

/// The columns of the tables that point at something.
const COLUMNS: [&str; 6] = ["place", "content", "files", "defines", "profile keys", "tests"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// What stands between backquotes.
fn quoted(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The keys of every family, and of the tables of some profiles that have every other.
fn keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for &family in Algorithm::ALL {
        let name: &'static str = family.into();
        for key in flat(&Parameters::start(family, Mode::Precise)).keys() {
            keys.insert(format!("{name}.{key}"));
            keys.extend(key.starts_with("common.").then(|| key.clone()));
        }
    }
    let mut add = |table: &str, value: &Value| {
        keys.extend(value.as_table().unwrap().keys().map(|key| format!("{table}.{key}")));
    };
    for (profile, _) in ProfileStore::built_in().unwrap().iter() {
        let Profile { hardware, throughput, build, fft, auto, .. } = profile;
        add("hardware", &Value::try_from(hardware).unwrap());
        throughput.iter().for_each(|rates| add("throughput", &Value::try_from(rates).unwrap()));
        add("build", &Value::try_from(build).unwrap());
        add("fft", &Value::try_from(fft).unwrap());
        auto.iter().for_each(|choice| add("auto", &Value::try_from(choice).unwrap()));
    }
    keys
}

/// Why a name is not there.
fn missing_test(name: &str) -> Option<String> {
    let Some((file, function)) = name.split_once("::") else { return Some("not FILE::TEST".into()) };
    let Ok(text) = fs::read_to_string(root().join(file)) else { return Some(format!("no file {file}")) };
    let defined = [format!("fn {function}("), format!("macro_rules! {function} ")];
    let tested = text.contains("#[test]");
    (!tested || !defined.iter().any(|words| text.contains(words))).then(|| format!("no test {function} in {file}"))
}

#[test]
fn everything_named_is_there() {
    let page = fs::read_to_string(root().join("docs/dev/traceability.md")).unwrap();
    let keys = keys();
    // kernels, and what the generator defines for the shipped profiles
    let kernels: Vec<String> = (["cl", "tests/golden"].iter())
        .flat_map(|directory| fs::read_dir(root().join(directory)).unwrap())
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let (mut problems, mut named, mut pointing) = (Vec::new(), 0, false);
    for line in page.lines() {
        let cells = cells(line);
        if !line.starts_with('|') || cells[0] == "place" {
            pointing = cells == COLUMNS;
            continue;
        }
        if !pointing || cells[0].starts_with("---") {
            continue;
        }
        assert_eq!(cells.len(), COLUMNS.len(), "{line}");
        let place = cells[0];
        if quoted(cells[2]).is_empty() || quoted(cells[5]).is_empty() {
            problems.push(format!("{place}: no file or no test"));
        }
        for name in quoted(cells[2]) {
            named += 1;
            problems.extend((!root().join(name).exists()).then(|| format!("{place}: no file {name}")));
        }
        for name in quoted(cells[3]) {
            named += 1;
            let wanted = [format!("#ifndef {name}\n"), format!("#define {name} "), format!(" {name}=")];
            let there = kernels.iter().any(|text| wanted.iter().any(|line| text.contains(line)));
            problems.extend((!there).then(|| format!("{place}: no define {name}")));
        }
        for name in quoted(cells[4]) {
            named += 1;
            problems.extend((!keys.contains(name)).then(|| format!("{place}: no profile key {name}")));
        }
        for name in quoted(cells[5]) {
            named += 1;
            problems.extend(missing_test(name).map(|why| format!("{place}: {why}")));
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(named > 100, "{named}");
}

/// What is done otherwise, or not at all, has a reason.
#[test]
fn everything_that_differs_has_a_reason() {
    let page = fs::read_to_string(root().join("docs/dev/traceability.md")).unwrap();
    let (mut reasons, mut rows) = (false, 0);
    for line in page.lines() {
        let cells = cells(line);
        if !line.starts_with('|') || cells[0] == "place" {
            reasons = cells == REASONS;
        } else if reasons && !cells[0].starts_with("---") {
            assert!(cells.len() == REASONS.len() && cells.iter().all(|cell| !cell.is_empty()), "{line}");
            rows += 1;
        }
    }
    assert!(rows > 20, "{rows}");
}

/// Every algorithm of the paper, every table of its experiments, and every parameter of its kernels has a row.
#[test]
fn nothing_of_the_paper_is_left_out() {
    let page = fs::read_to_string(root().join("docs/dev/traceability.md")).unwrap();
    let places: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).map(|line| cells(line)[0]).collect();
    let numbers = |place: &str, words: [&str; 2]| -> Vec<u32> {
        let mut found = Vec::new();
        for part in place.split(", ") {
            let word = words.iter().find_map(|word| part.strip_prefix(word));
            let rest = word.unwrap_or(if found.is_empty() { "" } else { part });
            found.extend(rest.trim().parse::<u32>());
        }
        found
    };
    let algorithms: BTreeSet<u32> = places.iter().flat_map(|p| numbers(p, ["Algorithm ", "Algorithms "])).collect();
    assert!((1..=9).all(|number| algorithms.contains(&number)), "{algorithms:?}");
    let tables: BTreeSet<u32> = places.iter().flat_map(|p| numbers(p, ["Table ", "Tables "])).collect();
    assert!((10..=25).all(|number| tables.contains(&number)), "{tables:?}");
    let draft = places.iter().filter(|place| place.starts_with("draft, table of ")).count();
    assert_eq!(draft, 3);
    for family in [Algorithm::Standard, Algorithm::Texture, Algorithm::Alu, Algorithm::Hybrid] {
        let name: &'static str = family.into();
        for key in flat(&Parameters::start(family, Mode::Precise)).keys().filter(|key| !key.starts_with("alu.")) {
            let key = if key.starts_with("common.") { key.clone() } else { format!("{name}.{key}") };
            assert!(page.contains(&format!("`{key}`")), "{key} is in no row");
        }
    }
    assert!(Path::new(&root()).join("docs/dev/paper/tables.toml").exists());
}
