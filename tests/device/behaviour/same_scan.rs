//! One scan, stored, divided or asked for in different ways.

use super::{json, same_bytes, same_slices};
use crate::support::cli::{Lab, Pages, SMALL, Scan, farthest};

#[test]
fn the_same_scan_in_other_files() {
    let lab = Lab::small();
    let sinograms = SMALL.sinograms();
    lab.write_single("sin.tif", &sinograms);
    lab.write_single("proj.tif", &sinograms.transposed());
    for other in ["--sinograms sin.tif", "--sinograms sin/*.tif", "--projections proj", "--projections proj.tif"] {
        same_slices(&lab, "--sinograms sin", other);
    }
    // other files are ignored with a note
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
    lab.write("proj", "p", &scan.sinograms().transposed());
    for pass in [1, 4] {
        for input in ["--sinograms sin", "--projections proj"] {
            let base = format!("{input} --slices-per-pass {pass} --overwrite");
            let full = lab.slices(&base, "whole");
            for (rows, which) in [("2..5", vec![2, 3, 4]), ("1..=5:2", vec![1, 3, 5]), ("5", vec![5])] {
                let output = format!("rows-{pass}-{}-{}", &input[2..3], rows.len());
                let part = lab.slices(&format!("{base} --rows {rows}"), &output);
                let expected: Vec<_> = which.iter().map(|&k| full.pages[k].clone()).collect();
                assert!(part.pages == expected, "{base} --rows {rows}");
                let names: Vec<_> = which.iter().map(|k| format!("slice_{k:05}.tif")).collect();
                assert_eq!(lab.files(&output), names);
            }
        }
        let base = format!("--sinograms sin --slices-per-pass {pass} --overwrite");
        let full = lab.slices(&base, "whole");
        for [x, y, w, h] in [[0, 0, 33, 33], [7, 11, 13, 5], [17, 0, 16, 33], [32, 32, 1, 1]] {
            let part = lab.slices(&format!("{base} --roi {x},{y},{w},{h}"), &format!("roi-{pass}-{x}-{y}"));
            for (part, full) in part.pages.iter().zip(&full.pages) {
                let rows = full.chunks(33).skip(y).take(h);
                let expected: Vec<f32> = rows.flat_map(|row| row[x..x + w].to_vec()).collect();
                assert!(*part == expected, "--roi {x},{y},{w},{h} at {pass} slices per pass");
            }
        }
    }
    // a larger slice has the smaller one in its middle
    let (full, large) = (lab.slices("--sinograms sin", "n"), lab.slices("--sinograms sin --size 49", "large"));
    let middle = lab.slices("--sinograms sin --size 49 --roi 8,8,33,33", "middle");
    assert_eq!(large.width, 49);
    assert!(farthest(&middle, &full) < 2e-5);
}

#[test]
fn budgets_change_no_byte() {
    let lab = Lab::new();
    let scan = Scan { width: 48, slices: 11, ..SMALL };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().transposed());
    for input in ["--sinograms sin", "--projections proj"] {
        let base = format!("{input} --slices-per-pass 2");
        for small in ["--memory 70K", "--memory 130K", "--device-memory 120K", "--memory 200K --device-memory 150K"] {
            same_bytes(&lab, &base, &format!("{base} {small}"));
        }
    }
    let chunks = |args: &str| {
        let (plan, _) = lab.ok(&format!("reconstruct --sinograms sin --slices-per-pass {args} --dry-run"));
        plan.lines().find(|l| l.starts_with("chunks")).unwrap().to_owned()
    };
    assert!(chunks("2").contains(" 6 of 2 slices, 2 on the device"));
    assert!(chunks("4 --memory 70K").contains(" 3 of 4 slices, 1 on the device"));
    assert!(chunks("2 --device-memory 50K").contains(" 6 of 2 slices, 1 on the device"));
}

#[test]
fn shards_are_cuts_of_the_whole() {
    let lab = Lab::new();
    let scan = Scan { slices: 7, ..SMALL };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().transposed());
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
        lab.ok(&format!("reconstruct -q {args} -o whole{number}"));
        let full = lab.bytes(&format!("whole{number}"));
        for count in [1, 2, 5, 9] {
            let output = format!("shards{number}-{count}");
            // in any order: the last one finds what the others left
            for index in (0..count).rev() {
                lab.ok(&format!("reconstruct -q {args} --shard {index}/{count} -o {output}"));
            }
            assert!(lab.bytes(&output) == full, "{count} shards of {args}");
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
    lab.write("proj", "p", &scan.sinograms().transposed());
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
            let full = lab.slices(&base, "whole");
            let cut = lab.slices(&format!("{base} --device-memory {memory} --report r.json"), "cut");
            let report = json(&lab.read_text("r.json"));
            for (what, least) in ["projection_parts", "slice_bands"].into_iter().zip(least) {
                assert!(report[what].as_u64() >= Some(least), "{base} --device-memory {memory}: {what}");
            }
            let far = farthest(&cut, &full);
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
    assert!(lab.read_text("log.txt").contains("3 slices from"));
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
    // floats need no range, whatever the file says
    lab.ok("reconstruct -q --config run.toml --dtype f16 -o floats");
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
