//! `fbp model`, which needs no device.

use crate::support::cli::{Lab, text};
use serde_json::Value;

#[test]
fn json_has_the_keys_that_scripts_rely_on() {
    let lab = Lab::new();
    let rows: Vec<Value> = serde_json::from_str(&text(&lab.run("model --json").stdout)).unwrap();
    let fermi = rows.iter().find(|r| r["profile"] == "nvidia-fermi").unwrap();
    assert_eq!(fermi["limit"], "instructions");
    for unit in ["constant", "local", "memory", "alu", "instructions", "texture"] {
        let rate = fermi["units"][unit].as_f64().unwrap();
        assert!(rate >= fermi["gu_per_s"].as_f64().unwrap(), "{unit}: {rate}");
    }
    assert_eq!(fermi["units"]["sfu"], Value::Null);
    assert_eq!(fermi["spec"], "alu-linear-float-x1-image-r-float");
}

#[test]
fn a_profile_gives_all_its_kernels() {
    let lab = Lab::new();
    let rows: Vec<Value> =
        serde_json::from_str(&text(&lab.run("model --profile nvidia-hopper --json").stdout)).unwrap();
    assert!(rows.iter().any(|r| r["limit"] == "texture") && rows.iter().any(|r| r["units"]["matrix"].is_f64()));
    assert!(rows.iter().all(|r| r["occupancy"]["share"].as_f64().unwrap() > 0.0));
    let table = text(&lab.run("model").stdout);
    assert!(table.contains("SFU 2.03125, Int 1.3125, FP 4.625, Shared 1.125, Constant 0.265625"), "{table}");
    assert!(table.contains("GeForce GTX 980"), "{table}");
    lab.fails("model --profile intel-gpu", 2, &["intel-gpu", "[throughput]"]);
    lab.fails("model --profile nowhere", 2, &["nowhere", "default"]);
}

/// Cells of a table's line.
fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn stages_of_exact_interpolation_are_those_of_the_page() {
    let lab = Lab::new();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/dev/model.md")).unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Stages of exact interpolation")).unwrap();
    for (profile, kernel) in [("nvidia-hopper", "x8-spectra"), ("cpu", "x8-spectra-together")] {
        let table = text(&lab.run(&format!("model --profile {profile}")).stdout);
        let stages = table.split("\nstages of exact interpolation").nth(1).unwrap();
        let mut lines = 0;
        for line in stages.lines().map(cells).filter(|line| line.get(1).is_some_and(|name| name.ends_with(kernel))) {
            // profile, mode, grid, width, stage and numbers
            let wanted: Vec<&str> = line.iter().enumerate().filter(|(i, _)| *i != 1).map(|(_, cell)| *cell).collect();
            assert!(section.lines().any(|line| cells(line) == wanted), "docs/dev/model.md lacks {wanted:?}");
            lines += 1;
        }
        assert_eq!(lines, 10, "{table}");
    }
    let rows: Vec<Value> =
        serde_json::from_str(&text(&lab.run("model --profile nvidia-hopper --json").stdout)).unwrap();
    let stages = rows.iter().find_map(|row| row["stages"].as_array()).unwrap();
    let names: Vec<&str> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(names, ["filter", "spreading", "rows", "columns"]);
    assert!(stages.iter().all(|stage| stage["ms"].as_f64().unwrap() > 0.0));
}
