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
