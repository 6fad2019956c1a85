//! Commands that need no device are done at once, and nothing of a released program is for tests.
//!
//! `FBP_TEST_RELEASE` names a release build, which `scripts/test release` has.

use crate::support::skip::skipped;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn release() -> Option<PathBuf> {
    let path = std::env::var_os("FBP_TEST_RELEASE").map(PathBuf::from);
    if path.is_none() {
        skipped("release", "FBP_TEST_RELEASE names no release build");
    }
    path
}

/// The quickest of several runs: what the program itself costs, whatever else the machine does.
fn quickest(program: &PathBuf, arguments: &[&str]) -> Duration {
    (0..15)
        .map(|_| {
            let start = Instant::now();
            let status = Command::new(program).args(arguments).stdout(Stdio::null()).status().unwrap();
            assert!(status.success());
            start.elapsed()
        })
        .min()
        .unwrap()
}

/// With the program that was built for the tests, which takes some milliseconds to start, as it is linked with libraries and
/// not optimised. Looking for devices takes a tenth of a second and more.
#[test]
fn help_and_kernel_text_come_at_once() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_fbp"));
    let start = quickest(&program, &["--version"]);
    assert!(start < Duration::from_millis(80), "fbp --version: {start:?}");
    for arguments in [&["--help"] as &[&str], &["reconstruct", "--help"], &["kernel", "--profile", "default"]] {
        let time = quickest(&program, arguments);
        assert!(time < start + Duration::from_millis(50), "fbp {arguments:?}: {time:?}, fbp --version: {start:?}");
    }
}

#[test]
fn no_fault_can_be_asked_of_it() {
    let Some(program) = release() else { return };
    let bytes = std::fs::read(program).unwrap();
    for name in ["FBP_TEST_", "FBP_CACHE_DIR"] {
        let there = bytes.windows(name.len()).any(|part| part == name.as_bytes());
        assert_eq!(there, name == "FBP_CACHE_DIR", "{name}");
    }
}
