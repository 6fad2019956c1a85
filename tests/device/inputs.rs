//! What a run says of the files that it read: their order, and whether all have come.

use crate::support::cli::{Lab, SMALL, text};
use serde_json::Value;
use std::fs;

/// Slices that are kept are not read again, but what was found in their data is not forgotten.
#[test]
fn doubts_about_kept_slices_are_repeated() {
    let lab = Lab::small();
    let mut counts = SMALL.sinograms().transposed().map(|line| 1e4 * (-0.1 * line).exp());
    counts.pages[7].fill(0.0);
    lab.write("lost", "p", &counts);
    lab.page("flat.tif", SMALL.width, &vec![1e4; SMALL.width * SMALL.slices]);
    let run = "reconstruct --projections lost --flats flat.tif --output slices";
    let strict = |flags: &str| {
        let output = lab.run(&format!("{run} --strict {flags}"));
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{flags}: {err}");
        assert!(err.contains("--strict: the warnings above are errors (replaced-values, "), "{flags}: {err}");
        assert!(err.contains("projection 7 has no beam"), "{flags}: {err}");
    };
    strict("");
    assert_eq!(lab.files("slices").len(), SMALL.slices);
    let recorded = || {
        let record: toml::Table = lab.read_text("slices/fbp-run.toml").parse().unwrap();
        names(&serde_json::to_value(&record["facts"]["jobs"][0]["doubts"]).unwrap()).join(" ")
    };
    let found = recorded();
    assert!(found.contains("unlit"), "{found}");
    // again and again, of all slices and of some
    strict("--resume");
    strict("--resume");
    assert_eq!(recorded(), found);
    fs::remove_file(lab.path("slices/slice_00001.tif")).unwrap();
    strict("--resume");
    let (_, err) = lab.ok(&format!("{run} --resume --report r.json"));
    assert!(err.contains("warning: projection 7 has no beam"), "{err}");
    let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    assert!(names(&report["doubts"]).contains(&"unlit"), "{report}");
    // they are not those of another run
    let (_, err) = lab.ok(&format!("{run} --resume --exclude 7"));
    assert!(!err.contains("no beam"), "{err}");
}

/// The projections of the small scan under names that a function makes of their numbers.
fn renamed(lab: &Lab, folder: &str, name: impl Fn(usize) -> String) {
    lab.directory(folder);
    for number in 0..SMALL.projections {
        let from = lab.path(format!("proj/p_{number:04}.tif"));
        fs::copy(from, lab.path(folder).join(name(number))).unwrap();
    }
}

fn names(doubts: &Value) -> Vec<&str> {
    doubts.as_array().unwrap().iter().filter_map(|doubt| doubt["name"].as_str()).collect()
}

#[test]
fn a_run_shows_the_order_of_its_files() {
    let lab = Lab::small();
    renamed(&lab, "golden", |i| format!("s_{}_{i:03}.tif", i * 111 % 180));
    renamed(&lab, "two", |i| format!("pos{}_t{}.tif", i % 4, i / 4));
    let expected = lab.slices("--projections proj", "slices");
    assert_eq!(lab.slices("--projections golden", "of-golden"), expected);
    assert_eq!(lab.slices("--projections two/*.tif --order-by 2", "of-two"), expected);
    lab.fails(
        "reconstruct --projections two --output out",
        3,
        &["--order-by 1 gives", "--order-by 2 gives", "list FILE"],
    );
    lab.fails("reconstruct --hdf5 x.h5 --order-by 1 --output out", 2, &["--order-by"]);

    let line = "16: s_0_000.tif, s_111_001.tif ... s_45_015.tif";
    let (plan, _) = lab.ok("reconstruct --projections golden --dry-run");
    assert!(plan.lines().any(|l| l == format!("files           {line}")), "{plan}");
    let (_, err) = lab.ok("reconstruct --projections golden -v --report r.json --output told");
    assert!(err.lines().any(|l| l == format!("files           {line}")), "{err}");
    assert!(err.contains("in the order of number 2"), "{err}");
    assert!(err.contains("3 slices from 16 projections in"), "{err}");
    let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    let files = serde_json::json!({
        "count": 16, "first": "s_0_000.tif", "second": "s_111_001.tif", "last": "s_45_015.tif"
    });
    assert_eq!((&report["files"], &report["projections"]), (&files, &16.into()));
    let record: toml::Table = lab.read_text("told/fbp-run.toml").parse().unwrap();
    let scan = &record["facts"]["scan"];
    assert_eq!(scan["projections"].as_integer(), Some(16));
    assert_eq!(serde_json::to_value(&scan["files"]).unwrap(), files);

    // the record of a list, and of a chosen number, leads to the same slices
    lab.text("names.txt", &(0..16).map(|i| format!("two/pos{}_t{}.tif\n", i % 4, i / 4)).collect::<String>());
    let listed = ["reconstruct", "-q", "--projections", "list names.txt", "--output", "of-list"];
    assert!(lab.command("").args(listed).output().unwrap().status.success());
    for output in ["of-list", "of-two"] {
        assert_eq!(lab.read(output), expected);
        lab.ok(&format!("reconstruct -q --config {output}/fbp-run.toml --output {output}-again"));
        assert_eq!(lab.bytes(&format!("{output}-again")), lab.bytes(output));
    }
}

#[test]
fn files_that_are_missing_or_may_not_all_have_come_are_doubts() {
    let lab = Lab::small();
    fs::remove_file(lab.path("proj/p_0005.tif")).unwrap();
    let strict = "reconstruct --projections proj --strict --output out";
    lab.fails(strict, 3, &["missing-files"]);
    let (_, err) = lab.ok("reconstruct --projections proj --report r.json --output slices");
    assert!(err.contains("warning: --projections: no file with number 5 (1 missing)"), "{err}");
    let report = |name: &str| -> Value { serde_json::from_str(&lab.read_text(name)).unwrap() };
    assert_eq!(names(&report("r.json")["doubts"]), ["missing-files"]);

    // the end of a wait by time, and by the number of pages
    let wait = "--sinograms sin --watch 0.3";
    let (_, err) = lab.ok(&format!("reconstruct {wait} --report w.json --output waited"));
    assert!(err.contains("warning: --sinograms sin: waiting ended because nothing has arrived for 0.3 s"), "{err}");
    assert!(err.contains("3 slices from 16 projections in"), "{err}");
    assert_eq!(names(&report("w.json")["doubts"]), ["ended-by-time"]);
    assert_eq!(report("w.json")["projections"], 16);
    let record: toml::Table = lab.read_text("waited/fbp-run.toml").parse().unwrap();
    let doubts = record["facts"]["jobs"][0]["doubts"].as_array().unwrap();
    assert_eq!((doubts.len(), doubts[0]["name"].as_str()), (1, Some("ended-by-time")));
    lab.fails(&format!("reconstruct {wait} --strict --output out"), 3, &["ended-by-time"]);
    lab.ok(&format!("reconstruct {wait} --expect 3 --strict --report e.json --output expected"));
    assert_eq!(report("e.json")["doubts"], serde_json::json!([]));
}
