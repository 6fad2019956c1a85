//! `fbp bench`: what scripts rely on, the picture, and that a wrong kernel does not get a speed.

use crate::support::cli::{Lab, assert_no_panic, text};
use serde_json::Value;

const TINY: &str = "bench --size 64 --projections 48 --bins 60 --passes 1 -q --profile default";

/// Whether the elements of an XML text open and close in order, with quoted attributes and no stray characters.
fn is_well_formed(xml: &str) -> bool {
    let mut open = Vec::new();
    let mut remaining = xml;
    while let Some(at) = remaining.find('<') {
        let (before, after) = remaining.split_at(at);
        let Some(end) = after.find('>') else { return false };
        let tag = &after[1..end];
        let entity = |part: &str| ["amp;", "lt;", "gt;", "quot;"].iter().any(|e| part.starts_with(e));
        if before.contains('>') || !before.split('&').skip(1).all(entity) || tag.matches('"').count() % 2 == 1 {
            return false;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap_or(""));
        }
        remaining = &after[end + 1..];
    }
    open.is_empty() && remaining.trim().is_empty()
}

#[test]
fn json_has_what_scripts_rely_on() {
    let lab = Lab::new();
    let kernels = "--interpolation linear --interpolation nearest --mode precise --slices-per-pass 1,4";
    let (out, err) = lab.ok(&format!("{TINY} {kernels} --json --plot speeds.svg"));
    assert!(!err.contains("GU/s"), "{err}");
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    assert_eq!(rows.len(), 4, "{out}");
    for row in &rows {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
        assert!(!row["device"].as_str().unwrap().is_empty());
        assert_eq!(row["profile"], "default");
        assert_eq!((&row["algorithm"], &row["mode"]), (&"standard".into(), &"precise".into()));
        assert_eq!((number("bins"), number("projections"), number("size")), (60.0, 48.0, 64.0));
        assert!(number("error") > 0.0 && number("error") <= number("margin"), "{row}");
        assert_eq!(row["verdict"], "right");
        // a rate and a time of the same pass
        let updates = number("gu_per_s") * 1e9 * number("seconds_per_slice");
        assert!((updates / (64.0 * 64.0 * 48.0) - 1.0).abs() < 1e-9, "{row}");
        assert!(number("filter_seconds_per_slice") > 0.0);
    }
    let kinds: Vec<_> =
        rows.iter().map(|r| (r["interpolation"].as_str().unwrap(), r["slices"].as_u64().unwrap())).collect();
    assert_eq!(kinds, [("linear", 1), ("linear", 4), ("nearest", 1), ("nearest", 4)]);

    let svg = lab.read_text("speeds.svg");
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && is_well_formed(&svg), "{svg}");
    assert!(svg.contains("linear, precise") && svg.contains("standard, 4 slices"), "{svg}");
    assert!(
        !is_well_formed("<svg><g></svg>") && !is_well_formed("<svg>&</svg>") && !is_well_formed("<svg a=\"></svg>")
    );
}

/// Exact interpolation, as devices and processors compute it.
#[test]
fn exact_interpolation_is_timed_by_its_bound() {
    let lab = Lab::new();
    for profile in ["default", "cpu"] {
        let args =
            "bench --size 64 --projections 48 --bins 60 --passes 1 -q --interpolation exact --slices-per-pass 1,4";
        let (out, _) = lab.ok(&format!("{args} --profile {profile} --json"));
        let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert_eq!(rows.len(), 4, "{out}");
        for row in &rows {
            assert_eq!((&row["algorithm"], &row["verdict"]), (&"gridding".into(), &"right".into()), "{row}");
            let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
            let bound = if row["mode"] == "fast" { 1e-3 } else { 1e-5 };
            assert!(number("error") > 0.0 && number("error") <= bound, "{row}");
            assert!(number("filter_seconds_per_slice") > 0.0 && number("gu_per_s") > 0.0, "{row}");
        }
    }
}

#[test]
fn a_table_for_people() {
    let lab = Lab::new();
    // half storage in an image where one works
    let (out, _) = lab.ok(&format!("{TINY} --interpolation linear --mode fast --slices-per-pass 4"));
    assert!(out.contains("slices of 64 x 64 pixels from 48 projections of 60 bins"), "{out}");
    // a line may follow that says how far the rate moved on a busy machine
    let row = out.lines().rfind(|line| line.starts_with('|')).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!(cells[1..=4], ["standard", "linear", "fast", "4"]);
    assert!(cells[5].parse::<f64>().unwrap() > 0.0, "{out}");
    // no device is known here whose rates say how many warps it has
    assert_eq!((cells[8], cells[13]), ("-", "right"));
    // the model bounds it, and it stays below
    assert!(cells[6].strip_suffix(" %").unwrap().parse::<u32>().unwrap() <= 100, "{out}");
    assert!(["memory", "local", "constant", "alu", "instructions"].contains(&cells[7]), "{out}");
}

#[test]
fn kernels_that_are_wrong_or_do_not_run_have_no_speed() {
    let lab = Lab::new();
    let good = text(&lab.run("profiles show default").stdout);
    for (definition, verdict) in [("-Dbackproject=elsewhere", "failed"), ("-Dget_local_id=get_group_id", "wrong")] {
        assert!(good.contains("options = []"), "{good}");
        lab.text("odd.toml", &good.replace("options = []", &format!("options = [\"{definition}\"]")));
        let args = format!(
            "{} --profile ./odd.toml --interpolation linear --mode precise --slices-per-pass 1 --json",
            TINY.replace(" --profile default", "")
        );
        let output = lab.run(&args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        assert_no_panic(&err, &args);
        assert!(err.contains("1 of 1 kernels"), "{err}");
        let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
        assert_eq!(rows[0]["verdict"], verdict, "{out}");
        assert_eq!(rows[0]["gu_per_s"], Value::Null);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = Lab::new();
    for (args, words) in [
        ("--algorithm quantum", &["--algorithm", "quantum", "standard"][..]),
        ("--interpolation cubic", &["--interpolation", "cubic", "nearest"]),
        ("--mode reckless", &["--mode", "reckless", "precise"]),
        ("--slices-per-pass 3", &["--slices-per-pass", "3", "16"]),
        ("--size 0", &["--size", "at least 1"]),
        ("--size 99999", &["--size", "65536"]),
        ("--bins 0", &["--bins", "at least 1"]),
        ("--projections 0", &["--projections", "at least 1"]),
        ("--passes 0", &["--passes", "at least 1"]),
        ("--size many", &["--size", "many"]),
        ("--device=", &["--device", "empty"]),
        ("--profile nowhere", &["--profile", "nowhere", "default"]),
        ("--profile default --algorithm texture", &["default", "--algorithm", "standard linear precise"]),
    ] {
        lab.fails(&format!("bench {args}"), 2, words);
    }
    lab.fails("bench --size 8 --plot nowhere/speeds.svg", 5, &["--plot", "nowhere"]);
    lab.fails("bench --size 8 --device 99", 4, &["--device"]);
}
