//! What a run must give, whatever way it is cut, ordered, stored or asked for.

use crate::support::cli::{Lab, Pages, SMALL, Scan, difference, farthest, text};
use predicates::prelude::*;
use serde_json::Value;
use std::time::Instant;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Two runs whose files must be the same, byte for byte.
fn same_bytes(lab: &Lab, a: &str, b: &str) {
    let bytes = |args: &str, output: &str| {
        lab.ok(&format!("reconstruct -q --overwrite {args} --output {output}"));
        lab.bytes(output)
    };
    let (left, right) = (bytes(a, "left"), bytes(b, "right"));
    assert!(!left.is_empty());
    assert!(left == right, "unlike: {a} | {b}");
}

/// Two runs on other files or with other flags whose slices must be the same, bit for bit; only what they say of their runs
/// differs.
fn same_slices(lab: &Lab, a: &str, b: &str) {
    let bits = |args: &str, output: &str| -> Vec<Vec<u32>> {
        let slices = lab.slices(&format!("--overwrite {args}"), output);
        slices.pages.iter().map(|page| page.iter().map(|v| v.to_bits()).collect()).collect()
    };
    assert!(bits(a, "left") == bits(b, "right"), "unlike: {a} | {b}");
}

// --- amplitude, orientation, order ---

#[test]
fn slices_have_the_phantom_s_amplitude_and_lie_its_way_up() {
    let lab = Lab::new();
    let scan = Scan { width: 64, projections: 96, slices: 2, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().turned());
    let truth = scan.truth();
    let side = scan.width;
    let kept: Vec<usize> = (0..side * side)
        .filter(|i| {
            let (x, y) = ((i % side) as f64 - 31.5, (i / side) as f64 - 31.5);
            x * x + y * y < 30.0 * 30.0
        })
        .collect();
    // slope of the slice over the truth, and rms of what is left
    let fit = |slice: &[f32], truth: &dyn Fn(usize) -> f32| {
        let (mut st, mut tt) = (0.0, 0.0);
        for &i in &kept {
            st += f64::from(slice[i]) * f64::from(truth(i));
            tt += f64::from(truth(i)).powi(2);
        }
        let left: f64 = kept.iter().map(|&i| f64::from(slice[i] - truth(i)).powi(2)).sum();
        (st / tt, (left / tt).sqrt())
    };
    for (number, args) in [
        "--sinograms sin",
        "--projections proj",
        "--sinograms sin --mode fast",
        "--sinograms sin --interpolation nearest",
        "--sinograms sin --profile default",
    ]
    .into_iter()
    .enumerate()
    {
        let slices = lab.slices(args, &format!("r{number}"));
        for (slice, truth) in slices.pages.iter().zip(&truth.pages) {
            let (slope, left) = fit(slice, &|i| truth[i]);
            assert!((slope - 1.0).abs() < 0.03 && left < 0.3, "{args}: slope {slope}, rest {left}");
            for (flip, name) in [(1, "left-right"), (2, "upside down"), (4, "transposed"), (3, "turned")] {
                let (_, other) = fit(slice, &|i| {
                    let (mut x, mut y) = (i % side, i / side);
                    if flip & 4 > 0 {
                        (x, y) = (y, x);
                    }
                    x = if flip & 1 > 0 { side - 1 - x } else { x };
                    y = if flip & 2 > 0 { side - 1 - y } else { y };
                    truth[y * side + x]
                });
                assert!(other > 1.5 * left, "{args}: {name} fits, too: {other} against {left}");
            }
        }
    }
}

#[test]
fn every_width_count_and_group_gives_the_same_slices() {
    let lab = Lab::new();
    for width in [15, 16, 17, 33] {
        let scan = Scan { width, projections: 12, slices: 7, overall: 180.0 };
        let sin = format!("sin{width}");
        lab.write(&sin, "s", &scan.sinograms());
        // one width slice by slice in runs of their own, the others in one run
        let all = width == 17;
        let singles = if all {
            let single = |k| {
                let args = format!("--sinograms {sin}/s_{k:04}.tif --slices-per-pass 1");
                lab.slices(&args, &format!("{sin}-{k}")).pages.remove(0)
            };
            (0..7).map(single).collect()
        } else {
            lab.slices(&format!("--sinograms {sin} --slices-per-pass 1"), &format!("{sin}-ones")).pages
        };
        for pass in ["1", "2", "4", "8", "16", "auto"] {
            for count in [1, 2, 3, 5, 7] {
                if !(all || (["4", "16"].contains(&pass) && [3, 7].contains(&count))) {
                    continue;
                }
                let args = format!("--sinograms {sin} --rows 0..{count} --slices-per-pass {pass}");
                let slices = lab.slices(&args, &format!("{sin}-{pass}-{count}"));
                assert_eq!(slices.pages.len(), count);
                for (slice, single) in slices.pages.iter().zip(&singles) {
                    assert!(slice.iter().any(|&v| v != 0.0), "{args}");
                    let far = difference(slice, single);
                    assert!(far <= 1e-6, "{args}: {far}");
                }
            }
        }
    }
}

#[test]
fn files_are_taken_in_the_order_of_their_numbers() {
    let lab = Lab::new();
    let (sinogram, numbers) = (SMALL.sinograms().pages.remove(0), [0, 1, 2, 10, 11]);
    for number in numbers {
        let values: Vec<f32> = sinogram.iter().map(|v| v * (1 + number) as f32).collect();
        lab.page(&format!("sin/s_{number}.tif"), 32, &values);
    }
    let (_, err) = lab.ok("reconstruct --sinograms sin --slices-per-pass 1 -o r");
    assert!(err.contains("not consecutive"), "{err}");
    let slices = lab.read("r");
    let expected = numbers.map(|n| slices.pages[0].iter().map(|v| v * (1 + n) as f32).collect());
    let expected = Pages { width: 32, pages: expected.into() };
    assert!(farthest(&slices, &expected) < 1e-6);
    assert_eq!(lab.files("r").last().unwrap(), "slice_00004.tif");
    // projections, too
    lab.text("angles.txt", &numbers.map(|n| format!("{}\n", n as f64 * 15.0)).concat());
    let rows = Pages { width: 32, pages: numbers.map(|n| vec![n as f32; 32 * 3]).into() };
    for (page, number) in rows.pages.iter().zip(numbers) {
        lab.page(&format!("proj/p{number}.tif"), 32, page);
    }
    lab.write_single("proj.tif", &rows);
    same_slices(&lab, "--projections proj --angles angles.txt", "--projections proj.tif --angles angles.txt");
}

// --- one scan, stored or asked for in different ways ---

#[test]
fn the_same_scan_in_other_files() {
    let lab = Lab::small();
    let sinograms = SMALL.sinograms();
    lab.write_single("sin.tif", &sinograms);
    lab.write_single("proj.tif", &sinograms.turned());
    for other in ["--sinograms sin.tif", "--sinograms sin/*.tif", "--projections proj", "--projections proj.tif"] {
        same_slices(&lab, "--sinograms sin", other);
    }
    // what does not belong is ignored aloud
    lab.text("sin/notes.txt", "sample 7");
    let (_, err) = lab.ok("reconstruct --sinograms sin -o r");
    assert!(err.contains("notes.txt"), "{err}");
    // fewer pages of several files
    lab.write_single("two/part_0.tif", &Pages { pages: sinograms.pages[..2].to_vec(), ..sinograms.clone() });
    lab.write_single("two/part_1.tif", &Pages { pages: sinograms.pages[2..].to_vec(), ..sinograms });
    same_slices(&lab, "--sinograms sin", "--sinograms two");
}

#[test]
fn parts_are_cuts_of_the_whole() {
    let lab = Lab::new();
    let scan = Scan { width: 33, slices: 6, ..SMALL };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().turned());
    for pass in [1, 4] {
        for input in ["--sinograms sin", "--projections proj"] {
            let base = format!("{input} --slices-per-pass {pass} --overwrite");
            let whole = lab.slices(&base, "whole");
            for (rows, which) in [("2..5", vec![2, 3, 4]), ("1..=5:2", vec![1, 3, 5]), ("5", vec![5])] {
                let output = format!("rows-{pass}-{}-{}", &input[2..3], rows.len());
                let part = lab.slices(&format!("{base} --rows {rows}"), &output);
                let expected: Vec<_> = which.iter().map(|&k| whole.pages[k].clone()).collect();
                assert!(part.pages == expected, "{base} --rows {rows}");
                let names: Vec<_> = which.iter().map(|k| format!("slice_{k:05}.tif")).collect();
                assert_eq!(lab.files(&output), names);
            }
        }
        let base = format!("--sinograms sin --slices-per-pass {pass} --overwrite");
        let whole = lab.slices(&base, "whole");
        for [x, y, w, h] in [[0, 0, 33, 33], [7, 11, 13, 5], [17, 0, 16, 33], [32, 32, 1, 1]] {
            let part = lab.slices(&format!("{base} --roi {x},{y},{w},{h}"), &format!("roi-{pass}-{x}-{y}"));
            for (part, whole) in part.pages.iter().zip(&whole.pages) {
                let rows = whole.chunks(33).skip(y).take(h);
                let expected: Vec<f32> = rows.flat_map(|row| row[x..x + w].to_vec()).collect();
                assert!(*part == expected, "--roi {x},{y},{w},{h} at {pass} slices per pass");
            }
        }
    }
    // a larger slice has the smaller one in its middle
    let (whole, large) = (lab.slices("--sinograms sin", "n"), lab.slices("--sinograms sin --size 49", "large"));
    let middle = lab.slices("--sinograms sin --size 49 --roi 8,8,33,33", "middle");
    assert_eq!(large.width, 49);
    assert!(farthest(&middle, &whole) < 2e-5);
}

#[test]
fn budgets_change_no_byte() {
    let lab = Lab::new();
    let scan = Scan { width: 48, slices: 11, ..SMALL };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().turned());
    for input in ["--sinograms sin", "--projections proj"] {
        let base = format!("{input} --slices-per-pass 2");
        for small in ["--memory 70K", "--memory 130K", "--device-memory 120K", "--memory 200K --device-memory 150K"] {
            same_bytes(&lab, &base, &format!("{base} {small}"));
        }
    }
    let chunks = |args: &str| {
        let (plan, _) = lab.ok(&format!("reconstruct --sinograms sin --slices-per-pass 2 --dry-run {args}"));
        plan.lines().find(|l| l.starts_with("chunks")).unwrap().to_owned()
    };
    assert!(chunks("").contains(" 6 of 2 slices, 2 on the device"));
    assert!(chunks("--memory 50K").contains(" 6 of 2 slices, 1 on the device"));
    assert!(chunks("--device-memory 50K").contains(" 6 of 2 slices, 1 on the device"));
}

#[test]
fn shards_are_cuts_of_the_whole() {
    let lab = Lab::new();
    let scan = Scan { slices: 7, ..SMALL };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().turned());
    // the sampled slices of the percentiles and the kernel are those of the whole run
    for (number, args) in [
        "--sinograms sin",
        "--projections proj --rows 1..",
        "--sinograms sin --dtype u8 --percentile 3,96",
        "--sinograms sin --memory 150K",
    ]
    .into_iter()
    .enumerate()
    {
        let whole = format!("whole{number}");
        lab.ok(&format!("reconstruct -q {args} -o {whole}"));
        let whole = lab.bytes(&whole);
        for count in [1, 2, 5, 9] {
            let output = format!("shards{number}-{count}");
            // in any order: the last one finds what the others left
            for index in (0..count).rev() {
                lab.ok(&format!("reconstruct -q {args} --shard {index}/{count} -o {output}"));
            }
            assert!(lab.bytes(&output) == whole, "{count} shards of {args}");
        }
    }
}

#[test]
fn a_shard_says_what_it_is() {
    let lab = Lab::small();
    let (plan, _) = lab.ok("reconstruct --sinograms sin --shard 1/2 --dry-run");
    let line = |name: &str| plan.lines().find(|l| l.starts_with(name)).unwrap().to_owned();
    assert!(line("shard").ends_with(" 1/2 of 3 slices") && line("slices").contains(" 2 of 32 x 32"), "{plan}");
    let (_, err) = lab.ok("reconstruct -v --sinograms sin --shard 1/2 -o r/s-%03i.tif --report r.json");
    assert!(err.contains("1/2 of 3 slices"), "{err}");
    assert_eq!(lab.files("r"), ["s-001.tif", "s-002.tif"]);
    let report = json(&lab.read_text("r.json"));
    assert_eq!(report["shard"], serde_json::json!({ "index": 1, "count": 2 }));
    lab.ok("reconstruct -q --sinograms sin -o whole --report r.json");
    assert!(json(&lab.read_text("r.json"))["shard"].is_null());
    // more shards than slices: some have none, and that is no failure
    let (_, err) = lab.ok("reconstruct --sinograms sin --shard 0/9 -o none --report none.json");
    assert!(err.contains("nothing to do") && !lab.path("none").exists(), "{err}");
    // in a run file
    lab.text("run.toml", "sinograms = \"sin\"\nshard = \"0/3\"\noutput = \"first\"\n");
    lab.ok("reconstruct -q --config run.toml");
    assert_eq!(lab.files("first"), ["slice_00000.tif"]);
    lab.ok("reconstruct -q --config run.toml --shard 2/3");
    assert_eq!(lab.files("first"), ["slice_00000.tif", "slice_00002.tif"]);
}

#[test]
fn shards_know_their_place_in_slurm() {
    let lab = Lab::small();
    let run = |variables: &[(&str, &str)]| {
        let mut command = lab.command("reconstruct -q --sinograms sin --shard auto --overwrite -o r");
        command.envs(variables.iter().copied()).assert().success();
    };
    lab.ok("reconstruct -q --sinograms sin -o whole");
    for id in ["10", "12", "14", "16"] {
        run(&[
            ("SLURM_ARRAY_TASK_ID", id),
            ("SLURM_ARRAY_TASK_MIN", "10"),
            ("SLURM_ARRAY_TASK_MAX", "16"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
            ("SLURM_ARRAY_TASK_STEP", "2"),
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "1"),
        ]);
    }
    assert_eq!(lab.bytes("r"), lab.bytes("whole"));
    run(&[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")]);
    assert_eq!(lab.bytes("r"), lab.bytes("whole"));
    // the slices of the other shard are not touched
    std::fs::remove_dir_all(lab.path("r")).unwrap();
    run(&[("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")]);
    assert_eq!(lab.files("r"), ["slice_00001.tif", "slice_00002.tif"]);
}

#[test]
fn a_pass_larger_than_device_memory_is_cut() {
    let lab = Lab::new();
    let scan = Scan { width: 48, projections: 61, slices: 5, ..SMALL };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().turned());
    let plain = "--profile default --slices-per-pass 2";
    for (kernel, memory, least) in [
        ("--profile cpu", "300K", [2, 1]),
        ("--profile cpu --interpolation nearest", "220K", [4, 1]),
        (plain, "80K", [2, 1]),
        (plain, "60K", [4, 1]),
        (&format!("{plain} --interpolation nearest"), "45K", [4, 2]),
        (&format!("{plain} --mode fast"), "60K", [2, 1]),
        (&format!("{plain} --mode fast --interpolation nearest"), "60K", [2, 1]),
    ] {
        for input in ["--sinograms sin", "--projections proj"] {
            let base = format!("{input} {kernel} --center 22.75 --overwrite");
            let whole = lab.slices(&base, "whole");
            let cut = lab.slices(&format!("{base} --device-memory {memory} --report r.json"), "cut");
            let report = json(&lab.read_text("r.json"));
            for (what, least) in ["projection_parts", "slice_bands"].into_iter().zip(least) {
                assert!(report[what].as_u64() >= Some(least), "{base} --device-memory {memory}: {what}");
            }
            let far = farthest(&cut, &whole);
            assert!(far <= 1e-6, "{base} --device-memory {memory}: {far}");
        }
    }
    let (plan, _) = lab.ok(&format!("reconstruct --sinograms sin {plain} --device-memory 60K --dry-run"));
    assert!(plan.contains("4 parts of 16") && plan.contains("it is cut"), "{plan}");
    lab.fails("reconstruct --sinograms sin --device-memory 5K -o out", 4, &["5.0 KiB", "--roi", "--device"]);
}

#[test]
fn repeated_runs_change_no_byte() {
    let lab = Lab::small();
    same_bytes(&lab, "--sinograms sin", "--sinograms sin");
    same_bytes(&lab, "--sinograms sin --dtype u8 --percentile 1,99", "--sinograms sin --dtype u8 --percentile 1,99");
    same_bytes(&lab, "--sinograms sin", "--sinograms sin --progress json --log log.txt --report r.json");
    assert!(lab.read_text("log.txt").contains("3 slices in"));
}

#[test]
fn run_files_stand_for_flags() {
    let lab = Lab::small();
    let flags = "--sinograms sin --center 15.25 --filter hann --filter-cutoff 0.7 --rows 1.. --roi 3,4,20,10 \
                 --exclude 3,5..7 --pixel-size 0.5um --padding zero --slices-per-pass 2 --mask 0.9 --dtype u16 \
                 --range -1,4 --start-angle -3.5 --overall-angle 180";
    lab.ok(&format!("reconstruct -q {flags} --save-config run.toml -o first"));
    lab.ok("reconstruct -q --config run.toml -o second");
    assert_eq!(lab.bytes("first"), lab.bytes("second"));
    // a saved run of a saved run is the same, and its output is refused as before
    lab.ok("reconstruct -q --config run.toml --save-config again.toml --dry-run");
    assert_eq!(lab.read_text("run.toml"), lab.read_text("again.toml"));
    assert_eq!(lab.run("reconstruct --config run.toml").status.code(), Some(5));
    // a flag wins
    lab.ok("reconstruct -q --config run.toml --rows 0 -o third");
    assert_eq!(lab.files("third"), ["slice_00000.tif"]);

    lab.text("pattern.toml", "# pattern\nsinograms = \"sin\"\noutput = \"p/r-%05i.tif\"\ncenter = 15.5\nrows = 1\n");
    lab.ok("reconstruct -q --config pattern.toml");
    assert_eq!(lab.files("p"), ["r-00001.tif"]);
}

// --- geometry ---

#[test]
fn left_out_projections_might_not_have_been_there() {
    let lab = Lab::small();
    let out = [0, 3, 10, 11, 15];
    let used: Vec<usize> = (0..16).filter(|p| !out.contains(p)).collect();
    let angles: Vec<f64> = used.iter().map(|&p| SMALL.angles()[p]).collect();
    lab.numbers("all.txt", &SMALL.angles());
    lab.numbers("used.txt", &angles);
    lab.numbers("shifts.txt", &(0..16).map(|p| p as f64 / 8.0 - 1.0).collect::<Vec<_>>());
    lab.numbers("used-shifts.txt", &used.iter().map(|&p| p as f64 / 8.0 - 1.0).collect::<Vec<_>>());
    let turned = SMALL.sinograms().turned();
    let fewer = Pages { width: 32, pages: used.iter().map(|&p| turned.pages[p].clone()).collect() };
    lab.write("fewer", "p", &fewer);
    lab.write("fewer-sin", "s", &fewer.turned());
    let exclude = "--exclude 0,3,10..=11,15..";
    for [all, fewer] in [["--projections proj", "--projections fewer"], ["--sinograms sin", "--sinograms fewer-sin"]] {
        let fewer = format!("{fewer} --angles used.txt");
        same_slices(&lab, &format!("{all} {exclude}"), &fewer);
        same_slices(&lab, &format!("{all} {exclude} --angles all.txt"), &fewer);
        same_slices(
            &lab,
            &format!("{all} {exclude} --center-shifts shifts.txt"),
            &format!("{fewer} --center-shifts used-shifts.txt"),
        );
    }
}

#[test]
fn angles_and_axes() {
    let lab = Lab::small();
    lab.numbers("angles.txt", &SMALL.angles());
    lab.numbers("zero.txt", &[0.0; 16]);
    lab.numbers("half.txt", &[0.5; 16]);
    lab.numbers("turned.txt", &SMALL.angles().iter().map(|a| a + 30.0).collect::<Vec<_>>());
    let sin = "--sinograms sin";
    same_slices(&lab, sin, "--sinograms sin --overall-angle 180 --start-angle 0 --center 15.5");
    same_slices(&lab, sin, "--sinograms sin --center-shifts zero.txt");
    same_slices(&lab, "--sinograms sin --center 16", "--sinograms sin --center-shifts half.txt");
    let plain = lab.slices(sin, "plain");
    let listed = lab.slices("--sinograms sin --angles angles.txt", "listed");
    assert!(farthest(&listed, &plain) < 1e-6);
    let turned = lab.slices("--sinograms sin --angles turned.txt", "turned");
    let started = lab.slices("--sinograms sin --start-angle 30", "started");
    assert!(farthest(&turned, &started) < 1e-6 && farthest(&turned, &plain) > 0.05);
    // a whole turn sees everything twice
    let whole = Scan { projections: 32, overall: 360.0, ..SMALL };
    lab.write("whole", "s", &whole.sinograms());
    let turn = lab.slices("--sinograms whole --overall-angle 360", "turn");
    assert!(farthest(&turn, &plain) < 1e-4, "{}", farthest(&turn, &plain));
    // an axis elsewhere, in data and in flag
    lab.ok("phantom --size 32 --bins 48 --projections 48 --slices 1 --center 20.25 --kind asymmetric --output off");
    lab.ok("phantom --size 32 --bins 48 --projections 48 --slices 1 --kind asymmetric --output mid");
    let off = lab.slices("--sinograms off --center 20.25 --size 32", "off-out");
    let mid = lab.slices("--sinograms mid --size 32", "mid-out");
    assert!(farthest(&off, &mid) < 0.15, "{}", farthest(&off, &mid));
    let wrong = lab.slices("--sinograms off --size 32", "wrong-out");
    assert!(farthest(&wrong, &mid) > 0.5);
    // the guess is called one
    let (_, err) = lab.ok("reconstruct --sinograms sin -o guess");
    assert!(err.contains("15.5") && err.contains("--center"), "{err}");
    let (_, err) = lab.ok("reconstruct --sinograms sin --center 15.5 -o said");
    assert!(!err.contains("not searched"), "{err}");
}

// --- values ---

#[test]
fn fields_are_used() {
    let lab = Lab::new();
    // dark 20, beam 1000 before and 2000 after the scan
    let turned = SMALL.sinograms().turned();
    let counts = |beam: f32, dark: f32| turned.map(|v| dark + beam * (-0.02 * v).exp());
    lab.write("raw", "p", &counts(1000.0, 0.0));
    lab.write("dark-raw", "p", &counts(1000.0, 20.0));
    lab.write("plain", "p", &turned.map(|v| 0.02 * v));
    lab.write("transmission", "p", &turned.map(|v| (-0.02 * v).exp()));
    let mut drift = counts(1000.0, 0.0);
    for (number, page) in drift.pages.iter_mut().enumerate() {
        page.iter_mut().for_each(|v| *v *= 1.0 + number as f32 / 15.0);
    }
    lab.write("drift", "p", &drift);
    for (name, values) in [
        ("flats", vec![900.0, 1100.0]),
        ("flats2", vec![2000.0]),
        ("median", vec![1000.0, 65000.0, 1000.0]),
        ("dark-flats", vec![1020.0]),
        ("darks", vec![19.0, 21.0]),
        ("no-darks", vec![0.0]),
    ] {
        for (number, value) in values.into_iter().enumerate() {
            lab.page(&format!("{name}/f_{number}.tif"), 32, &[value; 96]);
        }
    }
    let (_, err) = lab.ok("reconstruct --projections raw --flats flats -o noted");
    assert!(err.contains("no --darks"), "{err}");
    let reference = lab.slices("--projections plain", "plain-out");
    for (number, args) in [
        "raw --flats flats",
        "raw --flats flats --darks no-darks",
        "raw --flats median --field-mode median",
        "dark-raw --flats dark-flats --darks darks",
        "drift --flats flats --flats2 flats2",
        "transmission --minus-log",
        "plain --no-minus-log",
    ]
    .into_iter()
    .enumerate()
    {
        let slices = lab.slices(&format!("--projections {args}"), &format!("r{number}"));
        let far = farthest(&slices, &reference);
        assert!(far < 2e-4, "{args}: {far}");
    }
    same_slices(&lab, "--projections raw --flats flats", "--projections raw --flats flats --darks no-darks");
    // without the logarithm it is another picture
    let linear = lab.slices("--projections raw --flats flats --no-minus-log", "linear");
    assert!(farthest(&linear, &reference) > 0.5);
}

#[test]
fn counted_photons_give_the_phantom_back() {
    let lab = Lab::new();
    lab.ok("phantom --size 64 --projections 100 --slices 4 --kind asymmetric --as projections --photons 5e4 \
         --flats flats --darks darks --output proj --truth truth.tif");
    lab.ok("phantom --size 64 --projections 100 --slices 4 --kind asymmetric --output sin --truth clean.tif");
    let nrmse = |input: &str, truth: &str| {
        lab.ok(&format!("reconstruct -q {input} --filter hamming --overwrite -o r"));
        let (out, _) = lab.ok(&format!("compare r {truth} --mask 0.9 --json"));
        json(&out)["nrmse"].as_f64().unwrap()
    };
    // what is left without noise is sharp edges in few pixels
    let clean = nrmse("--sinograms sin", "clean.tif");
    let counted = |args: &str| nrmse(&format!("--projections proj {args}"), "truth.tif");
    let good = counted("--flats flats --darks darks");
    let median = counted("--flats flats --darks darks --field-mode median");
    assert!(clean < 0.4 && good < 1.1 * clean && median < 1.1 * clean, "{clean} {good} {median}");
    assert!(counted("--flats flats") > good);
    assert!(counted("") > 10.0);
}

#[test]
fn units_and_masks() {
    let lab = Lab::small();
    let plain = lab.slices("--sinograms sin", "plain");
    for (size, factor) in [("0.5um", 2.0), ("4mm", 0.25), ("0.125", 8.0)] {
        let scaled = lab.slices(&format!("--sinograms sin --pixel-size {size}"), &format!("by{factor}"));
        assert!(scaled == plain.map(|v| v * factor), "{size}");
    }
    for (flag, radius) in [("--mask", 16.0), ("--mask 0.5", 8.0)] {
        let masked = lab.slices(&format!("--sinograms sin {flag}"), &format!("mask{radius}"));
        let (mut inside, mut outside) = (0, 0);
        for (masked, plain) in masked.pages.iter().zip(&plain.pages) {
            for (i, (&m, &p)) in masked.iter().zip(plain).enumerate() {
                let (x, y) = ((i % 32) as f64 - 15.5, (i / 32) as f64 - 15.5);
                let is_inside = x * x + y * y <= radius * radius;
                assert_eq!(m, if is_inside { p } else { 0.0 });
                *(if is_inside { &mut inside } else { &mut outside }) += 1;
            }
        }
        assert!(inside > 100 && outside > 100);
    }
    // the mask is the full slice's
    let part = lab.slices("--sinograms sin --mask 0.5 --roi 0,0,8,8", "corner");
    assert!(part.pages.iter().flatten().all(|&v| v == 0.0));
}

#[test]
fn sample_types_hold_the_same_values() {
    let lab = Lab::small();
    let plain = lab.slices("--sinograms sin", "plain");
    let half = lab.slices("--sinograms sin --dtype f16", "f16");
    for (&h, &p) in half.pages.iter().flatten().zip(plain.pages.iter().flatten()) {
        assert!((h - p).abs() <= p.abs() / 2048.0 + 1e-7, "{h} {p}");
    }
    for (dtype, largest) in [("u16", 65535.0f32), ("u8", 255.0)] {
        let stored = lab.slices(&format!("--sinograms sin --dtype {dtype} --range -1.5,2.5"), dtype);
        let step = 4.0 / largest;
        for (&s, &p) in stored.pages.iter().flatten().zip(plain.pages.iter().flatten()) {
            let value = s * step - 1.5;
            assert!(s.fract() == 0.0 && (value - p.clamp(-1.5, 2.5)).abs() <= 0.501 * step + 1e-6, "{value} {p}");
        }
    }
    // integers as input: what is read is what is stored
    let from_integers = lab.slices("--sinograms u8 --filter none", "again");
    assert_eq!(from_integers.pages.len(), 3);
}

#[test]
fn outputs_of_every_shape_hold_the_same_slices() {
    let lab = Lab::small();
    let plain = lab.slices("--sinograms sin", "plain");
    assert_eq!(lab.files("plain"), ["slice_00000.tif", "slice_00001.tif", "slice_00002.tif"]);
    for output in ["all.tif", "deep/er/all.tiff", "pattern/r-%03i.tif"] {
        assert!(lab.slices("--sinograms sin", output) == plain, "{output}");
    }
    assert_eq!(lab.files("pattern"), ["r-000.tif", "r-001.tif", "r-002.tif"]);
    // what goes beside the slices may go into directories that the run makes
    lab.ok("reconstruct -q --sinograms sin -o new/slices --report new/r.json --preview new/slices/p.png");
    assert!(lab.path("new/r.json").is_file() && lab.path("new/slices/p.png").is_file());
    lab.ok("phantom --size 8 --projections 4 -o made/sin --truth made/truth.tif");
    assert!(lab.path("made/truth.tif").is_file());
    // others may lie beside a pattern's files
    lab.ok("reconstruct -q --sinograms sin -o pattern/q%i.tif");
    assert_eq!(lab.files("pattern").len(), 6);
    // overwritten only when asked for, and then in full
    lab.ok("reconstruct -q --sinograms sin --pixel-size 0.5 --overwrite -o all.tif");
    assert!(lab.read("all.tif") == plain.map(|v| 2.0 * v));
}

// --- around a run ---

#[test]
fn a_dry_run_computes_nothing() {
    let lab = Lab::small();
    let start = Instant::now();
    let (plan, _) = lab.ok("reconstruct --sinograms sin --dry-run -o out --report r.json --preview p.png");
    let seconds = start.elapsed().as_secs_f64();
    for word in ["device", "profile", "kernel", "vector-linear", "3 of 32 x 32", "chunks", "slices a pass", "KiB"] {
        assert!(plan.contains(word), "`{word}` is not in\n{plan}");
    }
    assert!(seconds < 5.0, "{seconds}");
    lab.assert_no_output("--dry-run");
    assert!(!lab.path("out").exists() && !lab.path("r.json").exists() && !lab.path("p.png").exists());
}

/// What a reader leaves unread is no error, for any command.
#[test]
fn a_closed_pipe_is_no_error() {
    let lab = Lab::small();
    for args in [
        "reconstruct --sinograms sin --dry-run -o out",
        "--help",
        "reconstruct --help",
        "devices",
        "profiles list",
        "kernel",
        "model",
        "preprocess --sinograms sin --stripes mean --output pre",
        "compare sin sin --json",
        "info sin",
        "completions bash",
    ] {
        // the reader is gone before the first byte
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fbp"));
        command.args(args.split_whitespace()).current_dir(lab.path("."));
        let output = command.env("FBP_CACHE_DIR", lab.path("cache")).stdout(writer).output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "fbp {args}\n{err}");
        crate::support::cli::assert_calm(&err, args);
        assert!(!err.contains("pipe"), "fbp {args}\n{err}");
    }
}

/// The record says what a person would type.
#[test]
fn records_have_no_spelling_of_the_program_s_own() {
    let lab = Lab::small();
    lab.ok("reconstruct -q --sinograms sin --stripes dead,sorting:size=5 --mask 0.9 --pixel-size 2um --roi 1,2,20,18 \
         --minus-log --normalize-air 2,2 --dtype u8 --range=-1,2 --filter hann --padding mirror -o r");
    let record = lab.read_text("r/fbp-run.toml");
    for line in [
        "stripes = \"dead:snr=3,size=51,sorting:size=5\"",
        "normalize-air = \"2,2\"",
        "mask = \"0.9\"",
        "pixel-size = \"2um\"",
        "roi = \"1,2,20,18\"",
        "dtype = \"u8\"",
        "range = \"-1,2\"",
        "filter = \"hann\"",
        "padding = \"mirror\"",
    ] {
        assert!(record.contains(line), "{line} is not in\n{record}");
    }
    for odd in ["Some(", "None", "{ ", "Hann", "Mirror", "U8"] {
        assert!(!record.contains(odd), "{odd} is in\n{record}");
    }
}

#[test]
fn reports_and_progress_are_json() {
    let lab = Lab::small();
    let (out, err) = lab.ok("reconstruct --sinograms sin --progress json --report r.json --preview p.png -o r");
    assert_eq!(out, "");
    let lines: Vec<Value> = err.lines().filter(|l| l.starts_with('{')).map(json).collect();
    let last = lines.last().unwrap();
    assert_eq!((last["slices_done"].as_u64(), last["slices"].as_u64()), (Some(3), Some(3)));
    let report = json(&lab.read_text("r.json"));
    for key in ["run", "device", "driver", "profile", "kernels", "slices", "seconds", "stages", "gu_per_s", "clamped"] {
        assert!(!report[key].is_null(), "{key}");
    }
    assert_eq!((report["slices"].as_u64(), report["clamped"].as_u64()), (Some(3), Some(0)));
    assert_eq!(report["run"]["sinograms"], "sin");
    assert!(report["kernels"][0]["uses"]["local_bytes"].is_u64(), "{report}");
    for key in ["read", "upload", "filter", "back_projection", "download", "write"] {
        assert!(report["stages"][key].as_f64().unwrap() >= 0.0, "{key}");
    }
    assert!(std::fs::read(lab.path("p.png")).unwrap().starts_with(b"\x89PNG"));
    for (flags, said) in [("--progress none", false), ("--progress plain", true), ("-q", false)] {
        let (_, err) = lab.ok(&format!("reconstruct --sinograms sin {flags} --overwrite -o r"));
        assert_eq!(err.contains("3/3 slices"), said, "{err}");
        assert_eq!(err.contains("not searched"), flags != "-q", "{err}");
    }
}

#[test]
fn comparisons() {
    let lab = Lab::small();
    let good = SMALL.sinograms();
    let mut bad = good.clone();
    bad.pages[1][40] = f32::NAN;
    lab.write("twice", "s", &good.map(|v| 2.0 * v));
    lab.write("nan", "s", &bad);
    let (out, _) = lab.ok("compare sin sin --json --tolerance 0");
    let result = json(&out);
    for (key, value) in [("rmse", 0.0), ("nrmse", 0.0), ("ssim", 1.0), ("max_abs", 0.0)] {
        assert_eq!(result[key].as_f64(), Some(value), "{key}");
    }
    assert!(result.get("psnr").is_some());
    let code = |args: &str| {
        let output = lab.run(&format!("compare {args}"));
        crate::support::cli::assert_calm(&text(&output.stderr), args);
        output.status.code()
    };
    for (args, expected) in [
        ("twice sin", 0),
        ("twice sin --tolerance 100", 0),
        ("twice sin --tolerance 0.1", 1),
        ("nan sin --tolerance 1e30", 1),
        ("sin nan --tolerance 1e30", 1),
        ("nan nan --tolerance 1e30", 1),
        ("sin proj --tolerance 1e30", 3),
    ] {
        assert_eq!(code(args), Some(expected), "{args}");
    }
    // results come even when the verdict is bad
    let output = lab.run("compare twice sin --json --tolerance 0.1");
    assert!(json(&text(&output.stdout))["nrmse"].as_f64().unwrap() > 0.1);
    assert!(predicate::str::contains("tolerance 1e-1").eval(&text(&output.stderr)));
}

#[test]
fn what_the_other_commands_say() {
    let lab = Lab::small();
    lab.directory("no-drivers");
    let (out, _) = lab.ok("info sin");
    assert!(out.contains("3 page(s) in 3 file(s), 32 x 16"), "{out}");
    let (out, _) = lab.ok("info proj --json");
    let info = json(&out);
    assert_eq!(
        (info["pages"].as_u64(), info["width"].as_u64(), info["height"].as_u64()),
        (Some(16), Some(32), Some(3))
    );

    let (list, _) = lab.ok("profiles list");
    assert!(list.contains("default") && list.contains("cpu"), "{list}");
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let (profile, _) = lab.ok(&format!("profiles show {name}"));
        lab.text("mine.toml", &profile);
        let (out, _) = lab.ok("profiles check mine.toml");
        assert!(out.contains("mine.toml") && out.contains(name), "{out}");
    }
    // what is shown of a profile is all of it
    let (profile, _) = lab.ok("profiles show default");
    lab.text("mine.toml", &profile);
    for kernel in ["--mode fast", "--interpolation nearest --slices-per-pass 2"] {
        let args = format!("--sinograms sin {kernel} --profile");
        same_slices(&lab, &format!("{args} default"), &format!("{args} ./mine.toml"));
    }

    let (out, _) = lab.ok("devices --json");
    let devices = json(&out);
    assert!(!devices[0]["facts"]["name"].as_str().unwrap().is_empty());
    assert!(devices[0]["profile"].is_string());
    let (out, _) = lab.ok("devices");
    assert!(out.contains("profile") && out.contains("images"), "{out}");

    for args in ["kernel", "kernel --profile cpu --slices-per-pass 4 --interpolation nearest", "kernel --mode fast"] {
        let output = lab.command(args).env("OCL_ICD_VENDORS", lab.path("no-drivers")).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let source = text(&output.stdout);
        assert!(source.contains("__kernel") && source.contains("options:"), "{source}");
    }
    let (files, _) = lab.ok("kernel --profile nvidia-turing --every kernels");
    let one = "nvidia-turing-fast-texture-linear-half-x1-buffer";
    for name in [one, &format!("{one}-bare"), &format!("{one}-sub-groups")] {
        assert!(files.contains(&format!("{name}.cl\n")), "{name}\n{files}");
    }
    assert!(files.contains("filter-half-x4-image-forged-rg.cl") && files.contains("probe-image.cl"), "{files}");
    for shell in ["bash", "zsh", "fish"] {
        let (out, _) = lab.ok(&format!("completions {shell}"));
        assert!(out.contains("fbp") && out.contains("slices-per-pass"), "{shell}");
    }
    let (help, _) = lab.ok("reconstruct --help");
    assert!(help.contains("--slices-per-pass") && help.contains("[default: edge]"), "{help}");
    assert_eq!(lab.ok("reco --help").0, help);
    lab.ok("--version");
}

// --- signals ---

#[cfg(unix)]
#[test]
fn signals_leave_whole_slices() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let lab = Lab::new();
    // long rows of work: many projections, little data
    let scan = Scan { width: 16, projections: 1024, slices: 64, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    for (signal, output) in [("INT", "dir"), ("TERM", "dir2"), ("INT", "all.tif")] {
        let args = format!(
            "reconstruct --sinograms sin --size 256 --slices-per-pass 1 --memory 1500K --progress json --output {output}"
        );
        let mut child = Command::new(env!("CARGO_BIN_EXE_fbp"))
            .args(args.split_whitespace())
            .current_dir(lab.path("."))
            .env("FBP_CACHE_DIR", lab.path("cache"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // after the first slice
        assert!(lines.by_ref().any(|line| line.unwrap().starts_with('{')), "no progress");
        let killed = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        let rest: Vec<String> = lines.map(Result::unwrap).collect();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(75), "{rest:?}");
        assert!(rest.iter().any(|l| l.starts_with("fbp: interrupted")), "{rest:?}");
        if output.ends_with(".tif") {
            assert!(!lab.path(output).exists());
            continue;
        }
        let files = lab.files(output);
        assert!(!files.is_empty() && files.len() < 64, "{files:?}");
        let slices = lab.read(output);
        assert_eq!(slices.pages.len(), files.len());
        assert!(slices.pages.iter().all(|s| s.len() == 256 * 256 && s.iter().any(|&v| v != 0.0)));
        assert_eq!(std::fs::read_dir(lab.path(output)).unwrap().count(), files.len() + 1, "unfinished files are left");
    }
    // input, two outputs, the cache
    assert_eq!(std::fs::read_dir(lab.path(".")).unwrap().count(), 4, "unfinished files are left");
}
