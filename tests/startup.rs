//! Commands that need no device start at once.

use assert_cmd::cargo::cargo_bin;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The quickest of several runs: what the program itself costs, whatever else the machine does.
fn quickest(arguments: &[&str]) -> Duration {
    (0..15)
        .map(|_| {
            let start = Instant::now();
            let status = Command::new(cargo_bin("fbp")).args(arguments).stdout(Stdio::null()).status().unwrap();
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
    let help = quickest(&["--help"]);
    assert!(help < Duration::from_millis(10) + HDF5, "fbp --help: {help:?}");
    let kernel = quickest(&["kernel", "--profile", "default"]);
    assert!(kernel < Duration::from_millis(20) + HDF5, "fbp kernel: {kernel:?}");
}
