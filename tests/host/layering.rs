//! Rules of the house: who may speak OpenCL, where `unsafe` may stand, and that kernels know no brand.

use std::fs;
use std::path::{Path, PathBuf};

fn files(directory: &str, extension: &str) -> Vec<(PathBuf, String)> {
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

fn in_room(path: &Path, rooms: &[&str]) -> bool {
    rooms.iter().any(|room| path.starts_with(room))
}

#[test]
fn only_device_rooms_speak_opencl() {
    for (path, text) in files("src", "rs") {
        let speaks = ["opencl3", "cl3::", "clfft_sys"].iter().any(|word| text.contains(word));
        let allowed = in_room(&path, &["src/device", "src/fft", "src/engine"]);
        assert!(!speaks || allowed, "{} speaks OpenCL", path.display());
    }
}

#[test]
fn pure_rooms_know_no_device_room() {
    for (path, text) in files("src", "rs") {
        let pure = [
            "src/bench",
            "src/cache.rs",
            "src/center",
            "src/doctor.rs",
            "src/facts",
            "src/hash.rs",
            "src/histogram.rs",
            "src/numbers.rs",
            "src/known.rs",
            "src/tune",
            "src/plan",
            "src/profile",
            "src/kernel",
            "src/spectrum.rs",
            "src/geometry",
            "src/margins.rs",
            "src/model",
            "src/phantom",
            "src/compare.rs",
        ];
        if in_room(&path, &pure) {
            for room in ["crate::device", "crate::fft", "crate::engine"] {
                assert!(!text.contains(room), "{} uses {room}", path.display());
            }
        }
        if path.starts_with("src/cli") {
            assert!(!text.contains("crate::"), "cli.rs is a declaration only");
        }
    }
}

#[test]
fn unsafe_code_stays_where_the_drivers_are() {
    for (path, text) in files("src", "rs") {
        let has = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            code.contains("unsafe {")
                || code.starts_with("unsafe fn")
                || code.contains(" unsafe fn")
                || code.contains("unsafe impl")
        });
        assert!(!has || in_room(&path, &["src/device", "src/fft"]), "{} has unsafe code", path.display());
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
    for (path, text) in files("src", "rs") {
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

/// What a kernel touches depends on its arguments and work-items, so who starts one has to answer for it.
#[test]
fn starting_a_kernel_is_unsafe() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/device/session.rs")).unwrap();
    assert!(text.contains("pub unsafe fn run(self, global: &[usize]"));
    for (path, text) in files("src", "rs") {
        let starts = text.matches("enqueue_nd_range_kernel").count();
        assert_eq!(starts, usize::from(path.ends_with("device/session.rs")), "{} starts kernels", path.display());
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
