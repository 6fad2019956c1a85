//! What is made of all slices of a run: `--histogram` and `--sections`.

use crate::support::cli::{Lab, Pages, Scan, assert_no_panic, text};
use serde_json::Value;
use std::fs;

const TALL: Scan = Scan { width: 32, projections: 16, slices: 21, overall: 180.0 };
const RUN: &str = "reconstruct --sinograms sin --device cpu --slices-per-pass 1";
const FILES: [&str; 5] = ["h.json", "h.png", "s-xy.tif", "s-xz.tif", "s-yz.tif"];

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("sin", "s", &TALL.sinograms());
    lab
}

/// A run with both flags into `output`; the slices as stored, and the histogram.
fn run(lab: &Lab, args: &str, output: &str) -> (Pages, Value) {
    lab.ok(&format!("{RUN} {args} --histogram h.json --sections s.png --output {output}"));
    (lab.read(output), histogram(lab, "h.json"))
}

fn histogram(lab: &Lab, file: &str) -> Value {
    serde_json::from_str(&lab.read_text(file)).unwrap()
}

/// The bytes of all files, without the picture of the sections, which follows from them.
fn files(lab: &Lab) -> Vec<Vec<u8>> {
    FILES.iter().map(|name| fs::read(lab.path(name)).unwrap()).collect()
}

fn number(result: &Value, key: &str) -> f64 {
    result[key].as_f64().unwrap_or_else(|| panic!("{key}: {result}"))
}

/// A histogram against one that is counted value by value.
fn check(result: &Value, values: impl Iterator<Item = f32>) {
    let all: Vec<f32> = values.collect();
    let mut finite: Vec<f64> = all.iter().filter(|v| v.is_finite()).map(|&v| f64::from(v)).collect();
    finite.sort_unstable_by(f64::total_cmp);
    let count = finite.len();
    assert_eq!(
        (result["count"].as_u64(), result["non_finite"].as_u64()),
        (Some(count as u64), Some((all.len() - count) as u64))
    );
    let (first, width) = (number(result, "first_edge"), number(result, "bin_width"));
    let counts: Vec<u64> = result["counts"].as_array().unwrap().iter().map(|c| c.as_u64().unwrap()).collect();
    let mut expected = vec![0u64; counts.len()];
    finite.iter().for_each(|v| expected[((v - first) / width).floor() as usize] += 1);
    assert_eq!(counts, expected);
    assert!(counts.len() > 2048 && counts.len() <= 4096 && width.log2().fract() == 0.0);
    assert_eq!(
        (number(result, "minimum") as f32, number(result, "maximum") as f32),
        (finite[0] as f32, finite[count - 1] as f32)
    );
    let mean = finite.iter().sum::<f64>() / count as f64;
    let deviation = (finite.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
    assert!((number(result, "mean") / mean - 1.0).abs() < 1e-9, "{mean}");
    assert!((number(result, "standard_deviation") / deviation - 1.0).abs() < 1e-9, "{deviation}");
    for (share, value) in result["percentiles"].as_object().unwrap() {
        let rank = (share.parse::<f64>().unwrap() / 100.0 * count as f64).ceil() as usize;
        assert!((value.as_f64().unwrap() - finite[rank.max(1) - 1]).abs() <= width, "{share}");
    }
}

/// Sections against slices of `width x height`, bit for bit.
fn check_sections(lab: &Lab, stem: &str, slices: &Pages) {
    let (width, height) = (slices.width, slices.pages[0].len() / slices.width);
    let section = |plane: &str| {
        let mut pages = lab.read(&format!("{stem}-{plane}.tif"));
        assert_eq!(pages.pages.len(), 1);
        (pages.width, pages.pages.remove(0))
    };
    assert!(section("xy") == (width, slices.pages[slices.pages.len() / 2].clone()));
    let rows = slices.pages.iter().flat_map(|page| page[height / 2 * width..][..width].to_vec());
    assert!(section("xz") == (width, rows.collect()));
    let columns =
        slices.pages.iter().flat_map(|page| (0..height).map(|y| page[y * width + width / 2]).collect::<Vec<_>>());
    assert!(section("yz") == (height, columns.collect()));
    assert!(fs::read(lab.path(format!("{stem}.png"))).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn they_are_of_the_slices_as_written() {
    let lab = lab();
    for (args, output) in [
        ("", "plain"),
        ("--roi 3,5,17,8 --rows 2..20:3 --pixel-size 0.65um", "part"),
        ("--rows 7", "one"),
        ("", "all.tif"),
        // from slice 3 on values are too large for f32
        ("--pixel-size 1e-38", "huge"),
    ] {
        let (slices, result) = run(&lab, args, output);
        check(&result, slices.pages.iter().flatten().copied());
        check_sections(&lab, "s", &slices);
        let unit = if output == "part" {
            "per um"
        } else if output == "huge" {
            "per length unit"
        } else {
            "per pixel"
        };
        assert_eq!(result["unit"], unit);
        assert_eq!(result["non_finite"].as_u64() > Some(0), output == "huge");
        let record = match output {
            "all.tif" => "all.tif-run.toml".into(),
            output => format!("{output}/fbp-run.toml"),
        };
        let record = lab.read_text(&record);
        let table: toml::Table = record.parse().unwrap();
        assert_eq!(result["run"].as_str(), table["facts"]["run"].as_str());
        // they are about the job, and decide nothing
        assert!(!table.contains_key("histogram") && !table.contains_key("sections"), "{record}");
        assert!(fs::read(lab.path("h.png")).unwrap().starts_with(b"\x89PNG"));
    }
    lab.ok(&format!("{RUN} -o without"));
    assert!(lab.bytes("without") == lab.bytes("plain"));
}

#[test]
fn what_the_mask_hides_does_not_count() {
    let lab = lab();
    let (slices, result) = run(&lab, "--mask 0.8 --roi 2,0,20,32", "r");
    let inside = |at: usize| {
        let (x, y) = (2.0 + (at % 20) as f64 - 15.5, (at / 20) as f64 - 15.5);
        x * x + y * y <= (0.8f64 * 16.0).powi(2)
    };
    let values = |page: &Vec<f32>| {
        page.iter().copied().enumerate().filter(|&(at, _)| inside(at)).map(|(_, v)| v).collect::<Vec<_>>()
    };
    check(&result, slices.pages.iter().flat_map(values));
    check_sections(&lab, "s", &slices);
    // a region beyond the circle has no value
    let (_, result) = run(&lab, "--mask 0.5 --roi 0,0,4,4", "corner");
    assert_eq!((result["count"].as_u64(), result["non_finite"].as_u64()), (Some(0), Some(0)));
    assert!(result["minimum"].is_null() && result["counts"].as_array().unwrap().is_empty());
}

#[test]
fn integers_are_counted_as_the_values_that_they_stand_for() {
    let lab = lab();
    run(&lab, "", "plain");
    let mut plain = histogram(&lab, "h.json");
    let sections = files(&lab).split_off(2);
    for args in ["--dtype u8", "--dtype u16 --range -1,5", "--dtype f16"] {
        let (_, mut result) = run(&lab, &format!("{args} --overwrite"), "small");
        assert!(files(&lab)[2..] == sections, "{args}");
        // another run of the same values
        for result in [&mut result, &mut plain] {
            result["run"].take();
        }
        assert!(result == plain, "{args}");
    }
}

#[test]
fn chunks_and_devices_change_nothing() {
    let lab = Lab::new();
    lab.write("sin", "s", &Scan { slices: 56, ..TALL }.sinograms());
    let flags = "--slices-per-pass 1 --algorithm standard --overwrite --histogram h.json --sections s.png";
    let args = |more: &str| format!("reconstruct --sinograms sin {flags} {more}");
    lab.ok(&args("--device cpu -o whole"));
    let full = files(&lab);
    for (chunk, more) in [
        (1, "--device cpu --device-memory 15K"),
        (3, "--device cpu --device-memory 45K"),
        (7, "--device cpu"),
        (7, "--device cpu/2"),
    ] {
        lab.ok(&args(&format!("{more} --report r.json -o r")));
        assert!(files(&lab) == full, "{more}");
        assert_eq!(histogram(&lab, "r.json")["devices"][0]["chunk"], chunk, "{more}");
    }
    // one file is written in order, whatever comes first
    lab.ok(&args("--device cpu/2 -o all.tif"));
    assert!(files(&lab) == full);
    // what a lost device had in hand counts once
    let output = lab.command(&args("--device cpu/2 -o lost")).env("FBP_TEST_FAULT", "lost=0:1").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(files(&lab) == full);
}

#[test]
fn slices_that_are_kept_count() {
    let lab = lab();
    for (dtype, exact) in [("f32", true), ("f16", false), ("u16", false), ("u8", false)] {
        let range = if dtype.starts_with('u') { "--range -20,60" } else { "" };
        let args = format!("--dtype {dtype} {range} --mask");
        let (slices, result) = run(&lab, &args, dtype);
        let full = files(&lab);
        let gone = [0, 3, 4, 10, 20];
        for slice in gone {
            fs::remove_file(lab.path(format!("{dtype}/slice_{slice:05}.tif"))).unwrap();
        }
        for name in FILES {
            fs::remove_file(lab.path(name)).unwrap();
        }
        let (again, resumed) = run(&lab, &format!("{args} --resume"), dtype);
        assert!(again == slices);
        if exact {
            assert!(files(&lab) == full);
            // nothing is left to do
            run(&lab, &format!("{args} --resume"), dtype);
            assert!(files(&lab) == full);
        }
        assert_eq!(resumed["count"], result["count"]);
        assert_eq!(resumed["run"], result["run"]);
        assert!(number(&result, "minimum") > -20.0 && number(&result, "maximum") < 60.0);
        // what is stored is as near as its type lets it be
        let step = match dtype {
            "f32" | "f16" => number(&result, "maximum") / 2048.0,
            "u16" => 80.0 / 65535.0,
            _ => 80.0 / 255.0,
        };
        for key in ["mean", "standard_deviation"] {
            assert!((number(&resumed, key) - number(&result, key)).abs() <= step, "{dtype} {key}");
        }
    }
}

#[test]
fn kept_integers_are_values_again() {
    let lab = lab();
    let range = (-1.0f64, 6.0f64);
    let args = "--dtype u8 --range -1,6";
    let (slices, _) = run(&lab, args, "r");
    let (_, result) = run(&lab, &format!("{args} --resume"), "r");
    let value = |v: f32| (range.0 + f64::from(v) * ((range.1 - range.0) / 255.0)) as f32;
    let values = slices.map(value);
    let xy = lab.read("s-xy.tif");
    assert!(xy.pages[0] == values.pages[10]);
    let sum: f64 = values.pages.iter().flatten().map(|&v| f64::from(v)).sum();
    let count = values.pages.iter().map(Vec::len).sum::<usize>();
    assert!((number(&result, "mean") - sum / count as f64).abs() < 1e-9);
    let used = result["counts"].as_array().unwrap().iter().filter(|c| c.as_u64() > Some(0)).count();
    assert!(used <= 256, "{used}");
}

#[test]
fn shards_write_their_own() {
    let lab = lab();
    let mut counts = 0;
    for shard in 0..3 {
        lab.ok(&format!("{RUN} --shard {shard}/3 --histogram h.json --sections s.png -o r"));
        let result = histogram(&lab, &format!("h-{shard}of3.json"));
        counts += result["count"].as_u64().unwrap();
        let slices = lab.read("r");
        let own = Pages { width: 32, pages: slices.pages[shard * 7..].to_vec() };
        check(&result, own.pages.iter().flatten().copied());
        check_sections(&lab, &format!("s-{shard}of3"), &own);
    }
    assert_eq!(counts, 21 * 32 * 32);
    assert!(!lab.path("h.json").exists() && !lab.path("s.png").exists());
    // and all of it once all are there
    let (slices, result) = run(&lab, "--resume", "r");
    check(&result, slices.pages.iter().flatten().copied());
    check_sections(&lab, "s", &slices);
}

#[test]
fn a_run_that_fails_writes_neither() {
    let lab = lab();
    let args = format!("{RUN} --memory 1M --histogram h.json --sections s.png -o r");
    let output = lab.command(&args).env("FBP_TEST_FAULT", "lost=0:0").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert_no_panic(&text(&output.stderr), &args);
    for name in FILES.iter().chain(&["s.png"]) {
        assert!(!lab.path(name).exists(), "{name}");
    }
}

#[test]
fn files_in_the_way() {
    let lab = lab();
    lab.write_single("in.tif", &TALL.sinograms());
    lab.directory("full.json");
    fs::copy(lab.path("in.tif"), lab.path("a-xz.tif")).unwrap();
    let before = lab.bytes("sin");
    for (args, code, words) in [
        ("--histogram h.txt -o out", 2, &["--histogram", "h.txt", ".json"][..]),
        ("--sections s.tif -o out", 2, &["--sections", "s.tif", ".png"]),
        ("--histogram .json -o out", 2, &["--histogram", ".json"]),
        ("--histogram nowhere/h.json -o out", 5, &["--histogram", "nowhere/h.json"]),
        ("--sections nowhere/s.png -o out", 5, &["--sections", "nowhere/s.png"]),
        ("--histogram full.json -o out", 5, &["--histogram", "full.json", "directory"]),
        ("--histogram h.json --preview h.png -o out", 5, &["--histogram", "h.png", "another flag"]),
        ("--histogram h.json --sections ./h.png -o out", 5, &["--sections", "h.png", "another flag"]),
        ("--histogram h.json --report sin/../h.json -o out", 5, &["--histogram", "h.json", "another flag"]),
        ("--sections out.png -o out-xz.tif", 5, &["--sections", "out-xz.tif", "--output"]),
        ("--sections out/s.png -o out", 5, &["--sections", "out/s-xy.tif", "slice"]),
        ("--sections sin/s.png -o out", 5, &["--sections", "sin/s-xy.tif", "input"]),
    ] {
        lab.fails(&format!("{RUN} {args}"), code, words);
    }
    lab.fails("reconstruct --sinograms a-xz.tif --sections a.png -o out", 5, &["--sections", "a-xz.tif", "input"]);
    lab.text("a.json", "0\n");
    lab.fails(&format!("{RUN} --center-shifts a.json --histogram a.json -o out"), 3, &["--center-shifts"]);
    assert!(lab.bytes("sin") == before);
    // a directory that the run makes, beside the files of a pattern
    lab.ok(&format!("{RUN} --histogram new/h.json --sections new/s.png -o new/r-%03i.tif"));
    assert!(lab.path("new/s-yz.tif").is_file() && lab.path("new/h.png").is_file());
    assert_eq!(lab.read_text("new/h.json"), {
        lab.ok(&format!("{RUN} --histogram new/h.json --overwrite -o new/r-%03i.tif"));
        lab.read_text("new/h.json")
    });
    // keys of run files, too
    lab.text("run.toml", "sinograms = \"sin\"\noutput = \"again\"\nhistogram = \"k.json\"\nsections = \"l.png\"\n");
    lab.ok("reconstruct --config run.toml");
    assert!(lab.path("k.json").is_file() && lab.path("l-xy.tif").is_file());
}
