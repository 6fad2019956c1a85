//! Tests that cannot run where their means are missing.
//!
//! Each says so on stderr, past the test harness, which keeps quiet about tests that pass; `scripts/test` counts them and
//! fails on one that tests/skips.txt does not allow.

use std::io::Write;
use std::path::{Path, PathBuf};

/// Says that a test was not run, and why. The name is one of tests/skips.txt.
pub fn skipped(name: &str, why: &str) {
    // on a line of its own, whatever the harness has begun
    let line = format!("\nskipped {name}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Real scans, where they are; they are no part of the project. `FBP_TEST_DATA` names their folder, by default
/// `../shared/data` beside the checkout.
pub fn real_scans() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let path = std::env::var_os("FBP_TEST_DATA").map_or_else(beside, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    skipped("real-scans", &format!("there is no {}; FBP_TEST_DATA names the folder of real scans", path.display()));
    None
}
