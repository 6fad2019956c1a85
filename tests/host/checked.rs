//! Verdicts are kept while nothing changes that decides about them: `scripts/checked` has the lists.

use crate::circles::reached;
use crate::layering::program_files;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Modules that kernels use and that decide about no slice, and why.
const OF_NO_EFFECT: &[(&str, &str)] = &[
    ("src/digest.rs", "names programs in the cache"),
    ("base/src/error.rs", "words messages"),
    ("base/src/files", "keeps programs in the cache"),
    ("src/operations", "adds methods to launches that only steps call"),
    ("src/races.rs", "is in the digest as tests/races.rs"),
    ("src/remark.rs", "words messages"),
    ("src/report.rs", "shows messages"),
    ("base/src/visible.rs", "shows messages"),
];

/// The module that a file of a crate belongs to.
fn module(file: &str) -> String {
    let (root, rest) = file.split_once("src/").unwrap();
    format!("{root}src/{}", rest.split('/').next().unwrap())
}

/// The modules that a file outside the crate uses, over any number of steps. The file counts as `src/NAME`.
fn modules_reached(path: &str) -> BTreeSet<String> {
    let mut files: Vec<(String, String)> =
        program_files().into_iter().map(|(path, text)| (path.to_str().unwrap().to_owned(), text)).collect();
    files.retain(|(file, _)| file != "src/main.rs");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let name = format!("src/{}", path.rsplit('/').next().unwrap());
    files.push((name.clone(), text.replace("fbp::", "crate::")));
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let reached = reached(&files, &name);
    assert!(reached.len() > 50, "{path}: {} files are too few: most were not found", reached.len());
    reached.iter().map(|file| module(file)).collect()
}

/// A list of `scripts/checked`.
fn listed(name: &str) -> BTreeSet<String> {
    let script = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/checked")).unwrap();
    let list = script.split_once(&format!("\n{name}=(")).unwrap().1.split_once(')').unwrap().0;
    list.split_whitespace().map(str::to_owned).collect()
}

/// Compares a list with the modules that decide.
fn compare(name: &str, reached: &BTreeSet<String>) {
    let listed = listed(name);
    let covers = |module: &String| listed.contains(module) || listed.contains(module.split('/').next().unwrap());
    let missing: Vec<_> = reached.iter().filter(|module| !covers(module)).collect();
    assert!(missing.is_empty(), "scripts/checked: {name} leaves out modules that decide: {missing:?}");
    let used =
        |entry: &String| reached.iter().any(|module| module == entry || module.starts_with(&format!("{entry}/")));
    let unused: Vec<_> = listed.iter().filter(|entry| !used(entry)).collect();
    assert!(unused.is_empty(), "scripts/checked: {name} has modules that decide nothing: {unused:?}");
}

#[test]
fn all_that_decides_about_a_kernel_is_in_the_digest() {
    let mut reached = modules_reached("tests/races.rs");
    reached.retain(|module| !OF_NO_EFFECT.iter().any(|(name, _)| name == module));
    compare("kernels", &reached);
}

#[test]
fn all_that_the_fuzzer_feeds_is_in_the_digest() {
    let mut reached = modules_reached("fuzz/src/entries.rs");
    reached.remove("src/entries.rs");
    compare("fuzz", &reached);
}

/// Other drivers are asked again where anything changes that speaks OpenCL.
#[test]
fn all_that_speaks_to_drivers_is_in_the_digest() {
    let listed = listed("devices");
    for (path, text) in program_files() {
        let speaks = ["opencl3", "cl3::", "clfft_sys"].iter().any(|word| text.contains(word));
        let module = module(path.to_str().unwrap());
        assert!(!speaks || listed.contains(&module), "scripts/checked: devices leaves out {module}");
    }
}
