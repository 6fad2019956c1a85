//! What may use what: modules of the crate, OpenCL, `unsafe`; and that kernels name no vendor.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

pub fn files(directory: &str, extension: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open = vec![root.join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(!found.is_empty());
    found
}

fn within(path: &Path, directories: &[&str]) -> bool {
    directories.iter().any(|directory| path.starts_with(directory))
}

/// A file of the crate without comments and tests.
fn code(text: &str) -> String {
    let (before, tests) = text.split_once("#[cfg(test)]\nmod tests {").unwrap_or((text, ""));
    let after = tests.split_once("\n}\n").map_or("", |(_, after)| after);
    [before, after].concat().lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// All files of the program and the crate below it, whose modules it names as its own.
fn sources() -> Vec<(PathBuf, String)> {
    let base = files("base/src", "rs").into_iter().filter(|(path, _)| path != Path::new("base/src/lib.rs"));
    files("src", "rs").into_iter().chain(base).collect()
}

/// All of the program's own files that are not tests.
pub fn program_files() -> Vec<(PathBuf, String)> {
    let is_test = |path: &Path| path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
    sources().into_iter().filter(|(path, _)| !is_test(path)).collect()
}

/// The same, without comments and tests.
fn program() -> Vec<(PathBuf, String)> {
    program_files().into_iter().map(|(path, text)| (path, code(&text))).collect()
}

/// The module of the crate that a file belongs to.
fn module(path: &Path) -> String {
    let path = path.strip_prefix("base").unwrap_or(path);
    let name = path.components().nth(1).unwrap().as_os_str().to_string_lossy();
    name.strip_suffix(".rs").unwrap_or(&name).to_owned()
}

/// Modules that `crate::` paths of a file name.
fn imports(text: &str) -> BTreeSet<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    text.split("crate::").skip(1).map(word).collect()
}

/// The picture in docs/dev/architecture.md: rows of modules, each of which uses rows below it alone.
fn rows() -> Vec<Vec<String>> {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dev/architecture.md")).unwrap();
    let picture = page.split("```text layers\n").nth(1).and_then(|rest| rest.split("```").next());
    let row = |line: &str| line.split("  ").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    picture.expect("docs/dev/architecture.md has a picture of the modules").lines().map(row).collect()
}

/// No module of the crate uses one beside it or above it, so there is no cycle.
#[test]
fn modules_use_what_stands_below_them() {
    let rows = rows();
    let row_of = |module: &str| rows.iter().position(|row| row.iter().any(|name| name == module));
    let mut seen = BTreeSet::new();
    for (path, text) in program() {
        let module = module(&path);
        if module == "main" || module == "lib" {
            continue;
        }
        let row = row_of(&module).unwrap_or_else(|| panic!("docs/dev/architecture.md has no {module} in its picture"));
        seen.insert(module.clone());
        for import in imports(&text).into_iter().filter(|import| *import != module) {
            let below = row_of(&import).unwrap_or_else(|| panic!("{}: {import} is not in the picture", path.display()));
            assert!(below > row, "{} uses {import}, which does not stand below {module}", path.display());
        }
    }
    let drawn: BTreeSet<String> = rows.into_iter().flatten().collect();
    assert_eq!(drawn, seen, "docs/dev/architecture.md draws modules that are not there");
}

#[test]
fn opencl_is_spoken_by_few_modules() {
    for (path, text) in sources() {
        let speaks = ["opencl3", "cl3::", "clfft_sys"].iter().any(|word| text.contains(word));
        let modules = ["device", "operations", "fft", "solver", "feed", "engine", "check", "measure"];
        let allowed = modules.iter().any(|module| within(&path, &[&format!("src/{module}")]));
        assert!(!speaks || allowed, "{} speaks OpenCL", path.display());
    }
}

/// A file that is longer says why in its first lines: `Longer than 600 lines: ...`.
#[test]
fn files_are_short() {
    const LONGEST: usize = 600;
    for directory in
        ["src", "base/src", "tests", "fuzz/src", "clfft-sys/src", "host-fft/src", "python/src", "vds-sys/src"]
    {
        for (path, text) in files(directory, "rs") {
            let reason = text.lines().take(10).any(|line| line.contains("Longer than 600 lines: "));
            assert!(text.lines().count() <= LONGEST || reason, "{} is too long", path.display());
        }
    }
}

/// Types of one name would be told apart by their paths alone.
#[test]
fn every_type_has_a_name_of_its_own() {
    let mut known: BTreeMap<String, PathBuf> = BTreeMap::new();
    for (path, text) in program() {
        for line in text.lines() {
            // associated types are indented, and named by their traits
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let declared = words.iter().position(|word| ["struct", "enum", "trait", "type"].contains(word));
            let Some(at) = declared.filter(|&at| {
                !line.starts_with(' ')
                    && words[..at]
                        .iter()
                        .all(|w| w.is_empty() || *w == "pub" || *w == "crate" || *w == "super" || *w == "in")
            }) else {
                continue;
            };
            let name = words[at + 1].to_owned();
            if let Some(other) = known.insert(name.clone(), path.clone()) {
                panic!("{name} is declared in {} and in {}", other.display(), path.display());
            }
        }
    }
    assert!(known.len() > 100);
}

#[test]
fn unsafe_code_stays_where_the_drivers_are() {
    for (path, text) in sources() {
        let has = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            code.contains("unsafe {")
                || code.starts_with("unsafe fn")
                || code.contains(" unsafe fn")
                || code.contains("unsafe impl")
        });
        assert!(!has || within(&path, &["src/device", "src/fft"]), "{} has unsafe code", path.display());
    }
}

/// `#[test]`s of what only a person reads would go stale: what is declared in one place is compared with the others.
#[test]
fn help_and_readme_say_what_the_program_does() {
    let mut command = <fbp::cli::Cli as clap::CommandFactory>::command();
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    // exit codes read alike
    let help = command.render_help().to_string();
    let codes = help.split("Exit codes:").nth(1).unwrap();
    let mut count = 0;
    for (code, meaning) in codes.lines().filter_map(|line| line.trim().split_once("  ")) {
        let row = format!("| {code} | {} |", meaning.trim());
        assert!(readme.replace('`', "").contains(&row), "README.md has no row {row}");
        count += 1;
    }
    assert_eq!(count, 7);
    // every slice mode is named wherever the flag is
    let modes = fbp::kernel::SLICE_MODES.map(|n| n.to_string());
    let modes = format!("{} or {}", modes[..modes.len() - 1].join(", "), modes[modes.len() - 1]);
    for name in ["reconstruct", "kernel", "bench", "tune"] {
        let flags = command.find_subcommand_mut(name).unwrap();
        let flag = flags.get_arguments().find(|flag| flag.get_long() == Some("slices-per-pass")).unwrap();
        let help = flag.get_help().unwrap().to_string();
        assert!(help.contains(&modes), "fbp {name} --slices-per-pass: {help}");
    }
}

/// Results have one way out, which knows about closed pipes.
#[test]
fn only_report_prints() {
    for (path, text) in sources() {
        let prints = text.lines().any(|line| {
            let code = line.trim_start();
            !code.starts_with("//")
                && ["print!(", "println!("]
                    .iter()
                    .any(|call| code.match_indices(call).any(|(at, _)| !code[..at].ends_with('e')))
        });
        let is_test = path.ends_with("tests.rs") || path.iter().any(|part| part == "tests");
        assert!(!prints || is_test, "{} prints on stdout; report::results does", path.display());
    }
}

/// What a kernel touches is within the extents that its host side declares: nothing starts a kernel but `Launch`, which
/// compares them with the buffers, and nothing outside `device/` passes it memory without an extent.
#[test]
fn kernels_are_started_with_extents() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device/session.rs")).unwrap();
    assert!(text.contains("self.session.expect_length(buffer, count, what)?;"));
    assert!(text.contains("    pub(super) fn handle(self, memory: &impl ClMem)"));
    for (path, text) in sources() {
        let starts = text.matches("enqueue_nd_range_kernel").count();
        assert_eq!(starts, usize::from(path.ends_with("device/session.rs")), "{} starts kernels", path.display());
        let sets = text.matches(".set_arg(").count();
        assert_eq!(sets, usize::from(path.ends_with("device/session.rs")), "{} sets arguments", path.display());
    }
}

#[test]
fn kernels_name_no_vendor_and_no_device() {
    let words = [
        "nvidia", "amd", "intel", "pocl", "geforce", "radeon", "tesla", "hopper", "kepler", "fermi", "maxwell",
        "pascal", "cypress", "tahiti", "hawaii", "gcn", "vliw", "cuda",
    ];
    for (path, text) in files("cl", "cl") {
        let lower = text.to_lowercase();
        let tokens: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        for word in words {
            assert!(!tokens.contains(&word), "{} names {word}", path.display());
        }
    }
}
