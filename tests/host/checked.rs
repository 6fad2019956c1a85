//! Verdicts on kernels are kept while nothing changes that decides about them: `scripts/checked` has the list.

use crate::circles::reached;
use crate::layering::program_files;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Modules that are used and decide about no slice, and why.
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

#[test]
fn all_that_decides_about_a_kernel_is_in_the_digest() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = fs::read_to_string(root.join("scripts/checked")).unwrap();
    let modules = script.split_once("\nmodules=(").unwrap().1.split_once(')').unwrap().0;
    let modules: BTreeSet<&str> = modules.split_whitespace().collect();
    let module = |file: &str| {
        let (root, rest) = file.split_once("src/").unwrap();
        format!("{root}src/{}", rest.split('/').next().unwrap())
    };

    let mut files: Vec<(String, String)> =
        program_files().into_iter().map(|(path, text)| (path.to_str().unwrap().to_owned(), text)).collect();
    files.retain(|(file, _)| file != "src/main.rs");
    let races = fs::read_to_string(root.join("tests/races.rs")).unwrap();
    files.push(("src/races.rs".to_owned(), races.replace("fbp::", "crate::")));
    let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
    let reached = reached(&files, "src/races.rs");
    assert!(reached.len() > 50, "{} files are too few: most were not found", reached.len());

    let reached: BTreeSet<String> = reached.iter().map(|file| module(file)).collect();
    let decides = |module: &str| !OF_NO_EFFECT.iter().any(|(name, _)| *name == module);
    let missing: Vec<_> = reached.iter().filter(|m| decides(m) && !modules.contains(m.as_str())).collect();
    assert!(missing.is_empty(), "scripts/checked leaves out modules that decide about kernels: {missing:?}");
    let unused: Vec<_> = modules.iter().filter(|module| !reached.contains(**module)).collect();
    assert!(unused.is_empty(), "scripts/checked has modules that decide about no kernel: {unused:?}");
}
