//! Logs of SkyScan scanners beside projections.

use crate::support::cli::{Lab, SMALL, text};
use serde_json::Value;
use std::fs;

/// The log of the small scan in steps of 11.5 degrees, with a source so far away that its rays are parallel.
const LOG: &str = "[System]\nScanner=SkyScan1272\n[Acquisition]\nFilename Prefix=p_\nFilename Index Length=4\n\
    Number Of Files=16\nNumber Of Rows=3\nNumber Of Columns=32\nObject to Source (mm)=400\nCamera to Source (mm)=600\n\
    Image Pixel Size (um)=2.5\nRotation Step (deg)=11.5\nUse 360 Rotation=NO\n";

fn angles() -> Vec<f64> {
    (0..SMALL.projections).map(|projection| 11.5 * projection as f64).collect()
}

fn lab() -> Lab {
    let lab = Lab::small();
    lab.text("proj/p_.log", LOG);
    lab.numbers("a.txt", &angles());
    lab.directory("bare");
    for name in lab.files("proj").iter().filter(|name| name.ends_with(".tif")) {
        fs::copy(lab.path("proj").join(name), lab.path("bare").join(name)).unwrap();
    }
    lab
}

#[test]
fn angles_and_pixels_are_those_of_the_log() {
    let lab = lab();
    let expected = lab.slices("--projections bare --angles a.txt", "by-flags");
    let (_, err) = lab.ok("reconstruct --projections proj --output by-log --report r.json");
    let said = "note: p_.log beside the projections gives 16 angles in steps of 11.5 degrees and a pixel size of 2.5 um (values \
                are per pixel unless --pixel-size is given)";
    assert!(err.lines().any(|line| line == said), "{err}");
    assert_eq!(lab.read("by-log"), expected);
    // a glob and a list find it as well, and flags take its place
    assert_eq!(lab.slices("--projections proj/p_*.tif", "by-glob"), expected);
    for (flags, output) in
        [("--overall-angle 180", "overall"), ("--start-angle 3", "start"), ("--angles a.txt", "angles")]
    {
        let (_, err) = lab.ok(&format!("reconstruct --projections proj {flags} --output {output}-log"));
        assert!(
            err.contains("p_.log beside the projections gives no angles, as flags give them and a pixel size"),
            "{err}"
        );
        let same = lab.slices(&format!("--projections bare {flags}"), output);
        assert_eq!(lab.read(&format!("{output}-log")), same);
    }
    let record: toml::Table = lab.read_text("by-log/fbp-run.toml").parse().unwrap();
    assert!(record["facts"]["scan"]["log"].as_str().unwrap().ends_with("proj/p_.log"));
    assert_eq!(record["facts"]["scan"]["angles"].as_array().unwrap()[1].as_float(), Some(172.5));
    let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    assert_eq!(report["doubts"].as_array().unwrap().len(), 0, "{}", report["doubts"]);
    // another log is another run
    lab.ok("reconstruct --projections proj --output by-log --resume");
    lab.text("proj/p_.log", &LOG.replace("11.5", "11.25"));
    lab.numbers("b.txt", &SMALL.angles());
    let other = lab.slices("--projections proj --resume", "by-log");
    assert_eq!(other, lab.slices("--projections bare --angles b.txt", "other"));
    assert_ne!(other, expected);
    // the search of the axis has the angles, too
    lab.text("proj/p_.log", LOG);
    let center = |flags: &str| {
        let (out, _) = lab.ok(&format!("center --json {flags}"));
        serde_json::from_str::<Value>(&out).unwrap()["center"].clone()
    };
    assert_eq!(center("--projections proj"), center("--projections bare --angles a.txt"));
    let (_, err) = lab.ok("reconstruct --projections proj --dry-run");
    assert!(err.contains("p_.log beside the projections"), "{err}");
    let (info, _) = lab.ok("info proj");
    assert!(info.contains("note: p_.log beside the projections gives 16 angles"), "{info}");
    let (_, err) = lab.ok("preprocess --projections proj --output corrected");
    assert!(!err.contains("p_.log"), "{err}");
    // what is read is not written to
    let output = lab.run("reconstruct --projections proj --output refused --log proj/p_.log");
    assert!(!output.status.success() && lab.read_text("proj/p_.log") == LOG, "{}", text(&output.stderr));
}

#[test]
fn logs_of_other_scans_are_not_used() {
    let lab = lab();
    let expected = lab.slices("--projections bare", "expected");
    let says = |log: &str, name: &str, words: &[&str]| {
        fs::remove_file(lab.path("proj/p_.log")).unwrap();
        lab.text(&format!("proj/{name}"), log);
        let (_, err) = lab.ok("reconstruct --projections proj --output slices --overwrite");
        for word in words {
            assert!(err.contains(word), "no `{word}` in\n{err}");
        }
        assert_eq!(err.contains(".log"), !words.is_empty(), "{err}");
        assert_eq!(lab.read("slices"), expected, "{words:?}");
        fs::rename(lab.path("proj").join(name), lab.path("proj/p_.log")).unwrap();
    };
    says(
        &LOG.replace("Prefix=p_", "Prefix=q"),
        "p_.log",
        &["note: p_.log is of another scan, whose files are named q and a number"],
    );
    says(&LOG.replace("Filename Prefix=p_\n", ""), "other.log", &["other.log is of another scan", "and is not used"]);
    says(
        &LOG.replace("Files=16", "Files=17"),
        "p_.log",
        &["note: p_.log is of 17 files, but there are 16, and is not used"],
    );
    says(
        &LOG.replace("Rows=3", "Rows=4"),
        "p_.log",
        &["projections with 32x4 pixels, but these have 32x3, and is not used"],
    );
    says(&LOG.replace("Length=4", "Length=8"), "p_.log", &["note: p_.log is of another scan"]);
    says(
        &LOG.replace("=11.5", "=x"),
        "p_.log",
        &["note: p_.log has Rotation Step (deg) = x, which cannot be, and is not used"],
    );
    says("12:00 the run began\n", "p_.log", &[]);
    // two that fit, none of which is named like the files
    let lab = self::lab();
    fs::rename(lab.path("proj/p_.log"), lab.path("proj/one.log")).unwrap();
    lab.text("proj/two.log", LOG);
    let (_, err) = lab.ok("reconstruct --projections proj --output none");
    assert!(err.contains("note: one.log, two.log may all be of this scan, and none is used"), "{err}");
    assert_eq!(lab.read("none"), expected);
    // one that is, beside that of a reconstruction
    lab.text("proj/p_.log", LOG);
    let by_log = lab.slices("--projections proj", "named");
    assert_eq!(by_log, lab.slices("--projections bare --angles a.txt", "by-flags"));
}

#[test]
fn cones_are_doubts() {
    let lab = lab();
    lab.text(
        "proj/p_.log",
        &LOG.replace("Pixel Size (um)=2.5", "Pixel Size (um)=250").replace("Source (mm)=400", "Source (mm)=40"),
    );
    let (_, err) = lab.ok("reconstruct --projections proj --output slices --report r.json");
    // 16 bins on either side of the axis: 16 * 8 / (40 mm / 250 um)
    for word in ["warning: p_.log: the beam is a cone", "40 mm", "600 mm", "250 um", "11.42 x ", "0.8 pixels", "NRecon"]
    {
        assert!(err.contains(word), "no `{word}` in\n{err}");
    }
    let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    assert_eq!(report["doubts"][0]["name"], "cone-beam");
    lab.fails("reconstruct --projections proj --strict --output out", 3, &["cone-beam"]);
}
