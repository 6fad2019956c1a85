//! The phantom's own values come back, from the command line on.

use assert_cmd::Command;
use fbp::phantom::{Kind, Phantom};
use fbp::source::Stack;
use std::path::Path;

fn fbp(arguments: &[&str], directory: &Path) {
    Command::cargo_bin("fbp").unwrap().args(arguments).current_dir(directory).assert().success();
}

/// Mean inside each uniform ellipse within 0.5 % of its contrast.
fn check(directory: &Path, slice: &str) {
    let stack = Stack::open(directory.join(slice).to_str().unwrap(), "slice").unwrap();
    let mut values = vec![0f32; 512 * 512];
    stack.read_rows(0, 0..512, &mut values).unwrap();
    let phantom = Phantom::new(Kind::SheppLogan, 512);
    let mut checked = 0;
    for region in phantom.uniform_regions() {
        if let Some(mean) = region.mean(&values, 2.0) {
            let error = (mean - region.value()).abs() / region.contrast().abs();
            println!("value {:.3} contrast {:.3}: off by {:.3} %", region.value(), region.contrast(), 100.0 * error);
            assert!(error <= 0.005, "{slice}: {mean} instead of {}", region.value());
            checked += 1;
        }
    }
    assert_eq!(checked, 10, "every ellipse of the phantom");
}

#[test]
fn values_come_back_over_half_and_full_turns_and_uneven_angles() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let base = ["phantom", "--size", "512", "--projections", "800", "--output"];

    fbp(&[&base[..], &["s"]].concat(), at);
    fbp(&["reconstruct", "--sinograms", "s", "--output", "r"], at);
    check(at, "r/slice_00000.tif");

    fbp(&[&base[..], &["s360", "--overall-angle", "360"]].concat(), at);
    fbp(&["reconstruct", "--sinograms", "s360", "--overall-angle", "360", "--output", "r360"], at);
    check(at, "r360/slice_00000.tif");

    // steps that change along the scan, from a third to five thirds of the mean
    let angles: String = (0..800)
        .map(|p| {
            let t = f64::from(p) / 800.0;
            format!("{}\n", 180.0 * (t + (2.0 / 3.0) * (std::f64::consts::TAU * t).sin() / std::f64::consts::TAU))
        })
        .collect();
    std::fs::write(at.join("angles.txt"), angles).unwrap();
    fbp(&[&base[..], &["su", "--angles", "angles.txt"]].concat(), at);
    fbp(&["reconstruct", "--sinograms", "su", "--angles", "angles.txt", "--output", "ru"], at);
    check(at, "ru/slice_00000.tif");
}
