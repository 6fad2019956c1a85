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
        let allowed = in_room(&path, &["src/device", "src/fft", "src/pipeline"]);
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
            "src/histogram.rs",
            "src/numbers.rs",
            "src/known.rs",
            "src/tune",
            "src/plan.rs",
            "src/profile",
            "src/kernelgen",
            "src/spectrum.rs",
            "src/geometry.rs",
            "src/margins.rs",
            "src/model",
            "src/phantom.rs",
            "src/compare.rs",
        ];
        if in_room(&path, &pure) {
            for room in ["crate::device", "crate::fft", "crate::pipeline"] {
                assert!(!text.contains(room), "{} uses {room}", path.display());
            }
        }
        if path.ends_with("cli.rs") {
            assert!(!text.contains("crate::"), "cli.rs is a declaration only");
        }
    }
}

#[test]
fn unsafe_code_stays_where_the_drivers_are() {
    for (path, text) in files("src", "rs") {
        let has = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        });
        assert!(!has || in_room(&path, &["src/device", "src/fft"]), "{} has unsafe code", path.display());
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
