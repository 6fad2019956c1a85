//! Commands that need no device start at once, and nothing of a released program is for tests.
//!
//! `FBP_TEST_RELEASE` names a release build, which `scripts/test release` has. Without it, how fast the program starts is
//! tested with the one that was built for the tests, which is no faster.

use crate::support::skip::skipped;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn release() -> Option<PathBuf> {
    std::env::var_os("FBP_TEST_RELEASE").map(PathBuf::from)
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

/// What the dynamic linker takes for the HDF5 library and all that it links.
const HDF5: Duration = Duration::from_millis(if cfg!(feature = "hdf5") { 8 } else { 0 });

#[test]
fn help_and_kernel_text_come_at_once() {
    let program = release().unwrap_or(PathBuf::from(env!("CARGO_BIN_EXE_fbp")));
    let help = quickest(&program, &["--help"]);
    assert!(help < Duration::from_millis(10) + HDF5, "fbp --help: {help:?}");
    let kernel = quickest(&program, &["kernel", "--profile", "default"]);
    assert!(kernel < Duration::from_millis(20) + HDF5, "fbp kernel: {kernel:?}");
}

#[test]
fn no_fault_can_be_asked_of_it() {
    let Some(program) = release() else {
        return skipped("release", "FBP_TEST_RELEASE names no release build");
    };
    let bytes = std::fs::read(program).unwrap();
    for name in ["FBP_TEST_", "FBP_CACHE_DIR"] {
        let there = bytes.windows(name.len()).any(|part| part == name.as_bytes());
        assert_eq!(there, name == "FBP_CACHE_DIR", "{name}");
    }
}
