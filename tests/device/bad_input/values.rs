//! Values that are no numbers, detectors that failed, and results that are doubtful.

use crate::support::cli::write_image;
use crate::support::cli::{F32, Lab, Pages, SMALL, Scan, farthest};
use fbp::sink::{Dtype, Encoding};
use fbp::spectrum::largest_value;
use predicates::prelude::*;
use serde_json::{Value, json};

/// Replaced values, as reported.
fn clamped(lab: &Lab, report: &str) -> (u64, u64, u64) {
    let report: serde_json::Value = serde_json::from_str(&lab.read_text(report)).unwrap();
    let by = &report["clamped_by_reason"];
    let number = |key: &str| by[key].as_u64().unwrap();
    let counts = (number("non_positive"), number("dead"), number("non_finite"));
    assert_eq!(report["clamped"].as_u64(), Some(counts.0 + counts.1 + counts.2));
    counts
}

fn assert_finite(slices: &Pages) {
    assert!(slices.pages.iter().flatten().all(|v| v.is_finite()));
}

#[test]
fn values_that_are_no_numbers() {
    let lab = Lab::new();
    let mut stack = SMALL.sinograms();
    let (clean, at) = (stack.clone(), [5, 70, 300]);
    for (i, bad) in at.into_iter().zip([f32::NAN, f32::INFINITY, f32::NEG_INFINITY]) {
        stack.pages[1][i] = bad;
    }
    lab.write("sin", "s", &stack);
    lab.write("clean", "s", &clean);
    let (_, err) = lab.ok("reconstruct --sinograms sin -o nan --report r.json --preview p.png");
    assert!(predicate::str::contains("warning: 3 values").eval(&err) && err.contains("3 not finite"), "{err}");
    assert_eq!(clamped(&lab, "r.json"), (0, 0, 3));
    let slices = lab.read("nan");
    assert_finite(&slices);
    // the others are untouched
    let clean = lab.slices("--sinograms clean", "clean-out");
    assert_eq!((&slices.pages[0], &slices.pages[2]), (&clean.pages[0], &clean.pages[2]));
    assert!(lab.path("p.png").is_file());
}

/// Values that stand for "no data" are finite in many files, but sums of them are not: they are replaced and counted, whoever
/// corrects rows.
#[test]
fn values_that_the_filter_cannot_carry() {
    let lab = Lab::small();
    lab.profile_with_steps("device.toml", "");
    let plant = |stack: &mut Pages| {
        for (i, bad) in [3.4e38, -3.4e38, f32::MAX, -1e37, 1e36].into_iter().enumerate() {
            stack.pages[1][7 + 17 * i] = bad;
        }
    };
    let mut sinograms = SMALL.sinograms();
    plant(&mut sinograms);
    lab.write("no-data", "s", &sinograms);
    let mut counts = SMALL.sinograms().map(|v| 1000.0 * (-0.02 * v).exp()).transposed();
    let rows = counts.pages[1].len() / counts.width;
    plant(&mut counts);
    lab.write("counts", "p", &counts);
    lab.page("flats/f_0.tif", counts.width, &vec![1000.0; counts.width * rows]);
    for (number, (input, exactly)) in [
        ("--sinograms no-data", true),
        ("--sinograms no-data --minus-log", false),
        ("--sinograms no-data --interpolation exact --padding mirror", true),
        ("--projections counts --flats flats", false),
    ]
    .into_iter()
    .enumerate()
    {
        let run = |profile: &str| {
            let args = format!("{input} --profile {profile} --report r.json");
            let slices = lab.slices(&args, &format!("{profile}-{number}"));
            assert_finite(&slices);
            (slices, clamped(&lab, "r.json"))
        };
        let ((host, by_host), (device, by_device)) = (run("cpu"), run("device.toml"));
        assert_eq!((by_host.2, by_host), (5, by_device), "{input}");
        let range = host.pages.iter().flatten().fold(0f64, |most, value| most.max(f64::from(value.abs())));
        assert!(if exactly { host == device } else { farthest(&host, &device) <= 2e-6 * range }, "{input}");
    }
    // slices of other rows are those of a scan without such values
    let [all, clean] = [lab.read("cpu-0"), lab.slices("--sinograms sin --profile cpu", "clean")];
    assert_eq!((&all.pages[0], &all.pages[2]), (&clean.pages[0], &clean.pages[2]));
}

/// The largest values that are not replaced cause no overflow, whatever the pattern and the kernel.
#[test]
fn the_largest_values_are_carried() {
    let lab = Lab::new();
    let Scan { width, projections, .. } = SMALL;
    let largest = largest_value(width, projections);
    assert!((1e27..1e33).contains(&largest));
    // all alike, signs of one bin after the other, of halves of a row, and of noise
    let sign = |page: usize, i: usize| match page {
        0 => false,
        1 => i % 2 == 1,
        2 => i % width > width / 2,
        _ => (i * i / 7) % 3 == 1,
    };
    let page = |page| (0..width * projections).map(|i| if sign(page, i) { -largest } else { largest }).collect();
    lab.write("sin", "s", &Pages { width, pages: (0..4).map(page).collect() });
    for (number, flags) in [
        "",
        "--filter none --padding mirror",
        "--interpolation exact",
        "--mode fast",
        "--interpolation exact --filter none",
    ]
    .into_iter()
    .enumerate()
    {
        let args = format!("--sinograms sin {flags} --report r.json");
        let slices = lab.slices(&args, &format!("o-{number}"));
        assert_finite(&slices);
        assert!(slices.pages[3].iter().any(|value| value.abs() > 0.01 * largest), "{flags}");
        assert_eq!(clamped(&lab, "r.json"), (0, 0, 0));
    }
}

#[test]
fn counts_that_have_no_logarithm() {
    let lab = Lab::new();
    let scan = Scan { slices: 2, ..SMALL };
    let mut counts = scan.sinograms().map(|v| 10.0 + 1000.0 * (-0.02 * v).exp()).transposed();
    counts.pages[3][4] = 0.0; // below the dark
    counts.pages[4][5] = 10.0; // at the dark
    counts.pages[5][6] = -7.0;
    lab.write("proj", "p", &counts);
    let mut flat = vec![1010.0; 64];
    lab.page("flats/f_0.tif", 32, &flat);
    lab.page("darks/d_0.tif", 32, &[10.0; 64]);
    (flat[7], flat[8], flat[32 + 7]) = (10.0, 5.0, 0.0); // dead
    lab.page("dead/f_0.tif", 32, &flat);

    let (_, err) =
        lab.ok("reconstruct --projections proj --flats flats --darks darks -o low --report r.json --preview p.png");
    assert!(err.contains("3 values") && err.contains("3 transmissions at or below 0"), "{err}");
    assert_eq!(clamped(&lab, "r.json"), (3, 0, 0));
    assert_finite(&lab.read("low"));

    let (_, err) = lab.ok("reconstruct --projections proj --flats dead --darks darks -o dead-out --report r.json");
    assert!(err.contains("48 where the flat is not above the dark"), "{err}");
    assert_eq!(clamped(&lab, "r.json"), (3, 48, 0));
    let slices = lab.read("dead-out");
    assert_finite(&slices);
    assert!(slices.pages.iter().flatten().all(|v| v.abs() < 10.0));
}

/// Columns that see nothing, a projection without light, a detector at its end: counted, named, and no slice is spoilt.
#[test]
fn detectors_that_failed() {
    let lab = Lab::new();
    let scan = Scan { width: 48, projections: 40, slices: 3, overall: 180.0 };
    let most = scan.sinograms().pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let counts = scan.sinograms().transposed().map(|v| (200.0 + 60000.0 * (-3.0 * v / most).exp()).round());
    let write = |directory: &str, pages: &Pages| {
        std::fs::create_dir(lab.path(directory)).unwrap();
        let range = Some((0.0, 65535.0));
        for (i, page) in pages.pages.iter().enumerate() {
            let path = lab.path(format!("{directory}/p_{i:03}.tif"));
            let encoding = Encoding { dtype: Dtype::U16, range };
            write_image(&path, 48, page.len() / 48, page, encoding).unwrap();
        }
    };
    let mut bad = counts.clone();
    bad.pages[7].fill(0.0);
    bad.pages[9][..48].fill(0.0);
    for page in &mut bad.pages {
        page.iter_mut().skip(11).step_by(48).for_each(|v| *v = 0.0);
    }
    bad.pages[20][48 + 3..48 + 9].fill(65535.0);
    write("good", &counts);
    write("bad", &bad);
    let flat = vec![60200.0; 48 * 3];
    write("flats", &Pages { width: 48, pages: vec![flat.clone()] });
    let mut bright = flat;
    bright[50..54].fill(65535.0);
    write("bright", &Pages { width: 48, pages: vec![bright] });
    write("darks", &Pages { width: 48, pages: vec![vec![200.0; 48 * 3]] });
    let args = "--flats flats --darks darks";
    let (_, err) = lab.ok(&format!("reconstruct --projections bad {args} --output r --report r.json --mask"));
    assert!(
        err.contains("2 projections have no beam, or rows without any light: 7,9; leave them out with --exclude 7,9"),
        "{err}"
    );
    assert!(err.contains("6 counts, and 0 in the flat field, have the largest value"), "{err}");
    let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
    assert_eq!((&report["saturated"], &report["unlit"]), (&json!(6), &json!([7, 9])));
    // two whole projections but for one column in the one of one row, and the column in the others
    assert_eq!(clamped(&lab, "r.json"), (48 * 3 + 48 + 38 * 3 + 2, 0, 0));
    let slices = lab.read("r");
    assert_finite(&slices);

    // what the messages and the manual advise helps
    let clean = lab.slices(&format!("--projections good {args} --mask 0.9"), "clean");
    let far = |slices: &Pages| {
        let pairs = slices.pages.iter().flatten().zip(clean.pages.iter().flatten());
        (pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / 6912.0).sqrt()
    };
    let before = far(&lab.slices(&format!("--projections bad {args} --mask 0.9"), "before"));
    let steps = "--exclude 7,9 --stripes all:large=7,small=5 --mask 0.9";
    let after = far(&lab.slices(&format!("--projections bad {args} {steps}"), "after"));
    assert!(after < 0.2 * before, "{before} became {after}");

    let (_, err) = lab.ok("reconstruct --projections good --flats bright --darks darks --output bright-out");
    assert!(err.contains("0 counts, and 4 in the flat field"), "{err}");
    assert_finite(&lab.read("bright-out"));
}

#[test]
fn integers_need_a_range() {
    let lab = Lab::new();
    lab.write("zero", "s", &SMALL.sinograms().map(|_| 0.0));
    lab.write("sin", "s", &SMALL.sinograms());
    // constant slices have no percentiles to spread
    for dtype in ["u16", "u8"] {
        let slices = lab.slices(&format!("--sinograms zero --dtype {dtype} --percentile 1,99"), dtype);
        assert!(slices.pages.iter().flatten().all(|&v| v == 0.0));
    }
    let (_, err) = lab.ok("reconstruct --sinograms sin --dtype u16 --range 0,0.5 -o clipped");
    assert!(err.contains("outside the range and were clipped"), "{err}");
    let (_, err) = lab.ok("reconstruct --sinograms sin --dtype u16 -o default");
    assert!(err.contains("percentiles 0.1 and 99.9"), "{err}");
    assert!(lab.read("default").pages.iter().flatten().any(|&v| v > 60000.0));
    let (_, err) = lab.ok("reconstruct --sinograms sin --filter none --dtype f16 --pixel-size 1e-6 -o half");
    assert!(err.contains("too large for f16"), "{err}");
    // a large constant: the values at both percentiles are the same
    let large = Pages { width: 32, pages: vec![vec![3e9; 512]] };
    write_image(&lab.path("large.tif"), 32, 16, &large.pages[0], F32).unwrap();
    lab.ok("reconstruct -q --sinograms large.tif --filter none --roi 16,16,1,1 --dtype u16 -o large-out");
}

/// Results that are doubtful are named.
#[test]
fn doubtful_input_is_warned_about() {
    let lab = Lab::small();
    let warned = |args: &str, words: &[&str]| {
        let (_, err) = lab.ok(&format!("reconstruct {args} --output r --overwrite"));
        for word in words {
            assert!(err.contains(word), "`{word}` is not said by fbp {args}\n{err}");
        }
        err
    };
    // counts without flats
    let counts: Vec<f32> = (0..32 * 3).map(|i| 20000.0 + i as f32).collect();
    let encoding = Encoding { dtype: Dtype::U16, range: Some((0.0, 65535.0)) };
    lab.directory("counts");
    for page in 0..16 {
        write_image(&lab.path(format!("counts/p_{page:02}.tif")), 32, 3, &counts, encoding).unwrap();
    }
    warned("--projections counts", &["warning: --projections", "around 20048", "--flats"]);
    assert!(!warned("--projections counts --minus-log", &[]).contains("look like"));
    assert!(!warned("--projections proj", &[]).contains("look like"));
    // transmissions without --minus-log, and angles that leave something out
    let most = SMALL.sinograms().pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    lab.write("light", "p", &SMALL.sinograms().map(|v| (-v / most).exp()).transposed());
    warned("--projections light", &["rows end near 1.00 on both sides", "look like transmissions", "--minus-log"]);
    for flags in ["--minus-log", "--no-minus-log"] {
        assert!(!warned(&format!("--projections light {flags}"), &[]).contains("look like"));
    }
    warned("--sinograms sin --overall-angle 3.14159265", &["cover 3.1 of 180 degrees and look like radians"]);
    warned("--sinograms sin --overall-angle 90", &["cover 90.0 of 180 degrees: the largest gap"]);
    // angles in radians, behind a byte-order mark
    let scan = Scan { projections: 40, ..SMALL };
    lab.write("forty", "s", &scan.sinograms());
    let angles = |factor: f64| scan.angles().iter().map(|a| format!("{:.8}\n", a * factor)).collect::<String>();
    lab.text("degrees.txt", &format!("\u{feff}{}", angles(1.0)));
    lab.text("radians.txt", &angles(1f64.to_radians()));
    warned("--sinograms forty --angles radians.txt", &["radians.txt", "taken as radians", "# degrees"]);
    let found = lab.read("r");
    assert!(!warned("--sinograms forty --angles degrees.txt", &[]).contains("radians"));
    assert!(crate::support::cli::farthest(&found, &lab.read("r")) < 1e-4);
    // HDF5 where TIFF is expected
    std::fs::write(lab.path("scan.h5"), b"\x89HDF\r\n\x1a\n and more").unwrap();
    for flag in ["--projections", "--sinograms"] {
        lab.fails(&format!("reconstruct {flag} scan.h5 --output out"), 3, &[flag, "scan.h5", "--hdf5"]);
    }
}

/// Counts of a scan with read noise, in `proj`, and one frame of its flats and its darks.
fn counted(lab: &Lab, change: impl Fn(usize, usize, f32) -> f32) -> (Pages, Pages) {
    let scan = Scan { width: 48, projections: 60, slices: 3, overall: 180.0 };
    let most = scan.sinograms().pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let mut counts = scan.sinograms().transposed().map(|v| 100.0 + 20000.0 * (-2.0 * v / most).exp());
    for (p, page) in counts.pages.iter_mut().enumerate() {
        page.iter_mut().enumerate().for_each(|(i, value)| *value = change(p, i, *value));
    }
    lab.write("proj", "p", &counts);
    let frame = |level: f32| Pages { width: 48, pages: vec![vec![level; 48 * 3]] };
    (frame(20100.0), frame(100.0))
}

/// Without a beam there is noise about the dark level, which is neither counted as light nor called a dead detector.
#[test]
fn projections_without_beam_are_named_as_ranges_whoever_corrects() {
    let lab = Lab::new();
    let noise = |p: usize, i: usize| 0.3 * ((p * 977 + i * 31) as f32).sin();
    let lost = |p: usize| (20..35).contains(&p) || p == 50;
    let (flats, darks) = counted(&lab, |p, i, count| if lost(p) { 100.0 + noise(p, i) } else { count });
    lab.write("flats", "f", &flats);
    lab.write("darks", "d", &darks);
    lab.profile_with_steps("device.toml", "");
    lab.profile_with_steps("host.toml", "rows = \"host\"\n");
    let mut reports = Vec::new();
    for profile in ["device.toml", "host.toml"] {
        let args = format!("--projections proj --flats flats --darks darks --profile {profile} --no-self-test");
        let (_, err) = lab.ok(&format!("reconstruct {args} --output r --overwrite --report r.json --exclude 3"));
        assert!(err.contains("16 projections have no beam") && err.contains("--exclude 3..4,20..=34,50"), "{err}");
        assert!(!err.contains("--stripes dead"), "{err}");
        let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
        reports.push(["unlit", "clamped", "replaced_rows", "replaced_bins"].map(|key| report[key].clone()));
        let (_, err) = lab.ok(&format!("reconstruct {args} --output s --overwrite --exclude 3..4,20..=34,50"));
        assert!(!err.contains("no beam"), "{err}");
    }
    assert_eq!(reports[0], reports[1]);
}

#[test]
fn fields_that_do_not_belong_to_the_others_are_named() {
    let lab = Lab::new();
    let (flats, darks) = counted(&lab, |_, _, count| count);
    let five = |usual: &Pages, odd: &Pages, at: usize| Pages {
        width: 48,
        pages: (0..5).map(|i| if i == at { odd.pages[0].clone() } else { usual.pages[0].clone() }).collect(),
    };
    lab.write("flats", "f", &flats);
    lab.write("darks", "d", &darks);
    lab.write("closed", "f", &five(&flats, &darks, 3));
    lab.write("open", "d", &five(&darks, &flats, 2));
    let run = |flats: &str, darks: &str, more: &str| {
        format!("reconstruct --projections proj --flats {flats} --darks {darks} --output r --overwrite {more}")
    };
    let (_, err) = lab.ok(&run("closed", "darks", ""));
    assert!(err.contains("--flats closed: the mean of frame 3 (f_0003.tif, 100.0)"), "{err}");
    assert!(err.contains("20100.0") && err.contains("--field-mode median"), "{err}");
    let (_, err) = lab.ok(&run("flats", "open", ""));
    assert!(err.contains("--darks open: the mean of frame 2 (d_0002.tif, 20100.0)"), "{err}");
    for args in [run("closed", "open", "--field-mode median"), run("flats", "darks", "")] {
        let (_, err) = lab.ok(&args);
        assert!(!err.contains("the mean of frame"), "{err}");
    }
    lab.fails(&run("darks", "flats", ""), 3, &["--flats darks", "are exchanged"]);
    lab.fails(&run("flats", "flats", ""), 3, &["not brighter"]);
    // dark where the slices are, although not everywhere
    let mut half = flats.clone();
    half.pages[0][..48].fill(90.0);
    lab.write("half", "f", &half);
    lab.fails(&run("half", "darks", "--rows 0"), 3, &["48 of 48 pixels", "--rows"]);
    lab.ok(&run("half", "darks", "--rows 1..3"));
    // known at the end only
    lab.write("black", "p", &Pages { width: 48, pages: vec![vec![50.0; 48 * 3]; 60] });
    let black = run("flats", "darks", "").replace("--projections proj", "--projections black");
    lab.fails(&black, 3, &["8640 of 8640 values were replaced", "more than half"]);
}

#[test]
fn samples_that_are_too_coarse_or_have_a_range_say_so() {
    let lab = Lab::small();
    let said = |flags: &str| lab.ok(&format!("reconstruct --sinograms sin {flags} --output r --overwrite")).1;
    for size in ["10000000nm", "1000000000000nm"] {
        let err = said(&format!("--dtype f16 --pixel-size {size}"));
        assert!(err.contains("warning: --dtype f16: neighbouring samples"), "{size}: {err}");
    }
    assert!(!said("--dtype f16").contains("neighbouring"));
    assert!(!said("--pixel-size 10000000nm").contains("neighbouring"));
    lab.write("zero", "s", &SMALL.sinograms().map(|_| 0.0));
    let (_, err) = lab.ok("reconstruct --sinograms zero --dtype f16 --output z");
    assert!(!err.contains("neighbouring"), "{err}");

    said("--dtype u8 --range -0.25,0.5");
    let (out, _) = lab.ok("info r/slice_00001.tif");
    assert!(out.contains("integers 0 to 255 are values -0.25 to 0.5\n"), "{out}");
    lab.ok("reconstruct --sinograms sin --dtype u16 --range 0,0.5 --output one.tif");
    assert!(lab.ok("info one.tif").0.contains("integers 0 to 65535 are values 0 to 0.5\n"));
    let (out, _) = lab.ok("info one.tif --json");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["range"], json!([0.0, 0.5]));
    said("");
    assert!(!lab.ok("info r/slice_00001.tif").0.contains("integers"));
}
