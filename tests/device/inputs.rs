//! Files that a run reads: formats other than TIFF, their order, and whether all have come.

use super::formats::TALL;
use crate::support::cli::{Lab, Pages, SMALL, Scan, text};
use fbp::files::NpyHeader;
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

/// `--raw`, EDF, NumPy and Zarr lead to the slices of the same projections as TIFF, with fields, in parts and on all threads.
#[test]
fn other_inputs_lead_to_the_same_slices() {
    let lab = Lab::new();
    let scan = Scan { slices: 6, ..TALL };
    let counts = scan.sinograms().transposed().map(|line| (100.0 + 20_000.0 * (-line / 40.0).exp()).round());
    let flats = Pages { pages: vec![vec![20_100.0; 6 * 32]; 2], ..counts.clone() };
    let darks = Pages { pages: vec![vec![100.0; 6 * 32]], ..counts.clone() };
    for (name, pages) in [("p", &counts), ("f", &flats), ("d", &darks)] {
        lab.write(name, name, pages);
        let samples = |pages: &Pages| pages.pages.iter().flatten().flat_map(|&v| (v as u16).to_be_bytes()).collect();
        let samples: Vec<u8> = samples(pages);
        fs::write(lab.path(format!("{name}.raw")), [vec![7; 3], samples.clone()].concat()).unwrap();
        let header = NpyHeader::new(">u2", &[pages.pages.len(), 6, 32]).bytes();
        fs::write(lab.path(format!("{name}.npy")), [header, samples.clone()].concat()).unwrap();
        lab.directory(&format!("{name}-edf"));
        for (number, frame) in samples.chunks(2 * 6 * 32).enumerate() {
            let lines = "{\nByteOrder = HighByteFirst ;\nDataType = UnsignedShort ;\nDim_1 = 32 ;\nDim_2 = 6 ;\n";
            let header = format!("{lines:510}}}\n");
            fs::write(lab.path(format!("{name}-edf/{number}.edf")), [header.as_bytes(), frame].concat()).unwrap();
        }
    }
    lab.ok("preprocess --projections p --output p.zarr");
    let run = "--flats f --darks d --center 15.2 --device cpu";
    let expected = lab.slices(&format!("--projections p {run}"), "expected");
    let raw = "--flats f.raw,32x6x2,u16be,3 --darks d.raw,32x6x1,u16be,3 --center 15.2 --device cpu";
    assert_eq!(lab.slices(&format!("--raw p.raw,32x6x16,u16be,3 {raw}"), "raw"), expected);
    let edf = "--flats f-edf --darks d-edf --center 15.2 --device cpu";
    assert_eq!(lab.slices(&format!("--projections p-edf {edf}"), "edf"), expected);
    let npy = "--flats f.npy --darks d.npy --center 15.2 --device cpu";
    assert_eq!(lab.slices(&format!("--projections p.npy {npy}"), "npy"), expected);
    assert_eq!(lab.slices(&format!("--projections p.zarr {run}"), "zarr"), expected);
    lab.ok("reconstruct --config raw/fbp-run.toml --output again --device cpu");
    assert_eq!(lab.read("again"), expected);
    // a device that corrects rows takes frames of compressed chunks as a whole
    let take = |input: &str| {
        let run = format!("--projections {input} --center 15.2 --profile default --slices-per-pass 1");
        let plan = lab.ok(&format!("reconstruct {run} --dry-run --output plan")).0;
        let whole = plan.lines().any(|line| line.contains("a block of rows"));
        (lab.slices(&run, &format!("of-{input}")), whole)
    };
    lab.ok(&format!("reconstruct --projections p {run} --output plain.zarr"));
    lab.ok(&format!("reconstruct --projections p {run} --output zstd.zarr --compression zstd"));
    let (plain, false) = take("plain.zarr") else { panic!("frames as a whole without need") };
    assert_eq!(take("zstd.zarr"), (plain, true));
    lab.fails("reconstruct --raw p.raw,32x6,u16be --output out", 2, &["--raw", "FILE,WxHxN,TYPE"]);
    lab.fails("reconstruct --raw p.raw,32x6x99,u16be --output out", 3, &["--raw", "p.raw", "too few", "99 frames"]);
    lab.fails("reconstruct --raw p.raw,32x6x16,u16be --projections p --output out", 2, &["--raw", "--projections"]);
}
