//! The axis that `--center auto` finds is the one that `fbp center` finds, and the one that slices have.

use crate::support::cli::{Lab, Scan as Whole};

#[test]
fn the_command_and_reconstruct_agree() {
    let lab = Lab::new();
    let scan = Whole { width: 64, projections: 90, slices: 6, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    let (table, _) = lab.ok("center --sinograms sin");
    assert!(table.contains("registration") && table.contains("vo") && table.contains(" ok\n"), "{table}");
    let (out, _) = lab.ok("center --sinograms sin --method vo --search 20,40 --rows 1..5 --json");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["rows"], serde_json::json!([1, 2, 3, 4]));
    assert!((report["center"]["value"].as_f64().unwrap() - 31.5).abs() < 0.1, "{report}");

    let (_, notes) = lab.ok("reco --sinograms sin --center auto --report r.json --output all");
    assert!(notes.contains("bins found by registration"), "{notes}");
    let report: serde_json::Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    let found = &report["center"];
    assert!(found["method"] == "registration" && found["confidence"].as_f64().unwrap() > 0.5, "{report}");
    let value = found["value"].as_f64().unwrap();
    assert!((value - 31.5).abs() < 0.1);
    // found is as good as given, and the same for all shards
    lab.ok(&format!("reco --sinograms sin --center {value} --output given"));
    assert_eq!(lab.read("all"), lab.read("given"));
    for shard in 0..3 {
        lab.ok(&format!("reco --sinograms sin --center auto --shard {shard}/3 --output shards"));
    }
    assert_eq!(lab.read("all"), lab.read("shards"));
    lab.fails("reco --sinograms sin --center auto:guess --output no", 2, &["registration, vo, overlap, sweep"]);
}
