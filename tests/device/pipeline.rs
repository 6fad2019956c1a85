//! Devices side by side, devices that fail, memory that is short: the slices stay the same, byte for byte.
//!
//! A processor cut in two is two devices of one kind. `FBP_TEST_FAULT` takes one away, or its memory.

use crate::support::cli::{Lab, SMALL, Scan, assert_no_panic, difference, text};
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const WIDE: Scan = Scan { width: 48, projections: 30, slices: 23, overall: 180.0 };

fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("sin", "s", &WIDE.sinograms());
    lab.write("proj", "p", &WIDE.sinograms().transposed());
    lab
}

/// A run with a fault: bytes of the output, what was said, and the report.
fn run(lab: &Lab, fault: &str, args: &str) -> (Vec<(String, Vec<u8>)>, String, Value) {
    let args = format!("reconstruct {args} --overwrite --report report.json");
    let output = lab.command(&args).env("FBP_TEST_FAULT", fault).output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{fault}: {args}\n{err}");
    assert_no_panic(&err, &args);
    let bytes = match lab.path("r").is_dir() {
        true => lab.bytes("r"),
        false => vec![("r.tif".into(), std::fs::read(lab.path("r.tif")).unwrap())],
    };
    (bytes, err, serde_json::from_str(&lab.read_text("report.json")).unwrap())
}

fn slices_of(report: &Value) -> Vec<u64> {
    report["devices"].as_array().unwrap().iter().map(|d| d["slices"].as_u64().unwrap()).collect()
}

#[test]
fn two_devices_give_the_bytes_of_one() {
    let lab = lab();
    for args in [
        "--sinograms sin --output r --slices-per-pass 2",
        "--projections proj --output r --slices-per-pass 2 --mode fast",
        "--sinograms sin --output r --dtype u8 --percentile 1,99 --slices-per-pass 4 --memory 4M",
    ] {
        let (one, _, report) = run(&lab, "", &format!("{args} --device cpu"));
        assert_eq!(slices_of(&report), [23]);
        let (two, err, report) = run(&lab, "", &format!("{args} --device cpu/2"));
        assert_eq!(slices_of(&report).iter().sum::<u64>(), 23);
        assert_eq!(slices_of(&report).len(), 2);
        assert!(err.contains("(part 1 of 2)") && err.contains("on 2 devices"), "{err}");
        assert!(one == two, "{args}");
    }
}

/// A profile for devices with images: parts of a device have none, which changes no more than rounding.
#[test]
fn parts_of_a_device_do_without_images() {
    let lab = lab();
    let args = "--sinograms sin --slices-per-pass 4 --profile amd-rdna --mode precise";
    let slices = |device: &str, layout: &str, output: &str| {
        let args = format!("{args} --device {device}");
        let plan = lab.ok(&format!("reconstruct {args} --dry-run --output plan")).0;
        assert!(plan.lines().any(|line| line.starts_with("kernel") && line.contains(layout)), "{plan}");
        lab.slices(&args, output)
    };
    let (whole, parts) = (slices("cpu", "-image-", "whole"), slices("cpu/2", "-buffer", "parts"));
    assert_eq!(parts.pages.len(), 23);
    for (part, whole) in parts.pages.iter().zip(&whole.pages) {
        assert!(difference(part, whole) < 1e-5, "{}", difference(part, whole));
    }
}

#[test]
fn one_file_holds_its_slices_in_order_whatever_device_made_them() {
    let lab = lab();
    let args = "--sinograms sin --output r.tif --slices-per-pass 1";
    let (one, ..) = run(&lab, "", &format!("{args} --device cpu"));
    for (fault, more) in [("", ""), ("", "--memory 600K"), ("lost=0:1", ""), ("lost=1:0", "--memory 600K")] {
        let (two, ..) = run(&lab, fault, &format!("{args} --device cpu/2 {more}"));
        assert!(one == two, "{fault} {more}");
    }
}

#[test]
fn another_device_does_what_a_lost_one_had() {
    let lab = lab();
    let args = "--sinograms sin --output r --slices-per-pass 2";
    let (full, ..) = run(&lab, "", &format!("{args} --device cpu"));
    for fault in ["lost=0:0", "lost=1:0", "lost=0:1"] {
        let (bytes, err, report) = run(&lab, fault, &format!("{args} --device cpu/2"));
        assert!(bytes == full, "{fault}");
        assert_eq!(slices_of(&report).iter().sum::<u64>(), 23, "{fault}");
        assert!(err.contains("failed, other devices take over its slices") && err.contains("lost on purpose"), "{err}");
    }
    // without any device left it is an error, and complete slices stay
    let args = format!("reconstruct {args} --device cpu --overwrite");
    let output = lab.command(&args).env("FBP_TEST_FAULT", "lost=0:2").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("lost on purpose"));
    for (name, bytes) in lab.bytes("r") {
        assert!(full.iter().any(|(other, full)| *other == name && *full == bytes), "{name}");
    }
}

/// Parts of a device all get slices where there are enough, and nothing is called a failure that is none.
#[test]
fn few_slices_are_divided_among_parts() {
    let lab = Lab::small();
    let args = "--sinograms sin --device cpu/2 --slices-per-pass 4 --report r.json";
    let run = |rows: &str, output: &str| {
        let (_, err) = lab.ok(&format!("reconstruct {args} --rows {rows} --output {output}"));
        assert!(!err.contains("failed"), "{err}");
        let report: Value = serde_json::from_str(&lab.read_text("r.json")).unwrap();
        (slices_of(&report), err)
    };
    assert_eq!(run("0..3", "three").0, [2, 1]);
    let (shares, err) = run("0..1", "one");
    assert_eq!(shares, [1, 0]);
    assert!(err.contains("(part 2 of 2): had nothing to do"), "{err}");
    lab.ok("reconstruct --sinograms sin --device cpu --slices-per-pass 4 --output whole");
    assert_eq!(lab.read("three"), lab.read("whole"));
}

#[test]
fn what_cannot_be_allocated_is_done_in_smaller_chunks() {
    let lab = Lab::new();
    // larger than the check before a run
    lab.write("sin", "s", &Scan { width: 96, ..WIDE }.sinograms());
    let args = "--sinograms sin --output r --slices-per-pass 1 --device cpu";
    let (full, _, report) = run(&lab, "", args);
    let chunk = |report: &Value| report["devices"][0]["chunk"].as_u64().unwrap();
    assert_eq!(chunk(&report), 3);
    let slice = 96 * 96 * 4;
    let (bytes, err, report) = run(&lab, &format!("allocation={}", 2 * slice), args);
    assert!(bytes == full);
    assert!(chunk(&report) < 3, "{report}");
    assert!(err.contains("allocating") && err.contains("trying with"), "{err}");
    let output = lab
        .command(&format!("reconstruct {args} --overwrite"))
        .env("FBP_TEST_FAULT", format!("allocation={}", slice / 2))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("--device-memory"), "{}", text(&output.stderr));
}

#[test]
fn devices_that_make_no_sense_together() {
    let lab = lab();
    let args = "reconstruct --sinograms sin --output out --device";
    lab.fails(&format!("{args} cpu,cpu"), 2, &["--device", "twice"]);
    lab.fails(&format!("{args} cpu/0"), 2, &["--device", "0 parts"]);
    lab.fails(&format!("{args} cpu/4000"), 2, &["--device", "compute units"]);
    lab.fails(&format!("{args} cpu,nothing-like-it"), 4, &["--device", "nothing-like-it"]);
}

/// The report has the share of time that each stage was busy, and the stage that limits.
#[test]
fn a_report_names_the_limiting_stage() {
    let lab = lab();
    let (_, err, report) = run(&lab, "", "--sinograms sin --output r -v");
    let busy = report["busy"].as_object().unwrap();
    let limit = report["limit"].as_str().unwrap();
    for stage in ["reading", "uploading", "correcting", "computing", "downloading", "writing"] {
        let share = busy[stage].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share), "{stage}: {share}");
        assert!(share <= busy[limit].as_f64().unwrap(), "{stage} is busier than {limit}");
    }
    assert!(err.contains("busy: reading") && err.contains(&format!("limited by {limit}")), "{err}");
}

/// Bytes of memory that a run had at most.
fn peak(lab: &Lab, args: &str) -> u64 {
    run(lab, "", args).2["peak_memory"].as_u64().unwrap()
}

#[test]
fn memory_does_not_grow_with_the_number_of_slices() {
    let lab = Lab::new();
    let (few, many) = (64usize, 4096);
    let sinogram = Scan { slices: 1, ..SMALL }.sinograms().pages.remove(0);
    // links to one file: what is measured is the program
    lab.page("one.tif", SMALL.width, &sinogram);
    for (name, count) in [("few", few), ("many", many)] {
        lab.directory(name);
        for slice in 0..count {
            let link: PathBuf = lab.path(format!("{name}/s_{slice:05}.tif"));
            std::fs::hard_link(lab.path("one.tif"), link).unwrap();
        }
    }
    let args = "--device cpu --size 128 --projection-range 0..4 --slices-per-pass 1 --output r.tif --sinograms";
    peak(&lab, &format!("{args} few"));
    let few = peak(&lab, &format!("{args} few"));
    let large = peak(&lab, &format!("{args} many"));
    let small = peak(&lab, &format!("{args} many --memory 8M"));
    // 4096 slices are 256 MiB; a chunk of 512 twice in each direction 72 MiB
    assert!(small < few + (16 << 20), "{few} {small}");
    assert!(large < few + (128 << 20), "{few} {large}");
}

#[test]
fn files_that_are_still_arriving_are_awaited() {
    let lab = lab();
    run(&lab, "", "--sinograms sin --output r");
    let full = lab.read("r");
    // in wrong order and in two halves, when the program has begun to wait
    lab.directory("late");
    let (from, to, log) = (lab.path("sin"), lab.path("late"), lab.path("late.log"));
    let arriving = std::thread::spawn(move || {
        let said = |words: &str| std::fs::read_to_string(&log).is_ok_and(|log| log.contains(words));
        let wait_for = |words: &str| {
            let began = Instant::now();
            while !said(words) {
                assert!(began.elapsed() < Duration::from_secs(60), "{words} was not said");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait_for(": 0 of 23 files");
        for slice in (0..23).rev() {
            let name = format!("s_{slice:04}.tif");
            let bytes = std::fs::read(from.join(&name)).unwrap();
            std::fs::write(to.join(&name), &bytes[..bytes.len() / 2]).unwrap();
            if [22, 11, 0].contains(&slice) {
                wait_for(&format!(": {} of 23 files", 23 - slice));
            }
            std::fs::write(to.join(&name), &bytes).unwrap();
        }
    });
    let (_, err, _) = run(&lab, "", "--sinograms late --watch 1000s --expect 23 --output r -v --log late.log");
    arriving.join().unwrap();
    assert!(lab.read("r") == full);
    assert!(err.contains("of 23 files have arrived"), "{err}");
    // without a number, what is there when nothing comes any more
    run(&lab, "", "--sinograms late --watch 0.5 --output r");
    assert!(lab.read("r") == full);
    let args = "reconstruct --sinograms late --output out --watch";
    lab.fails(&format!("{args} 0.5 --expect 24"), 3, &["--sinograms", "23 of 24 pages", "--watch"]);
    lab.text("late.raw", "12");
    let raw = "reconstruct --projections late.raw,2x1x1,u8 --output out --watch 20s --expect 1";
    lab.fails(raw, 2, &["--watch", "TIFF", "late.raw,2x1x1,u8 is a raw volume"]);
    lab.fails("reconstruct --sinograms none --output out --watch 0.3", 3, &["none", "does not exist"]);
    for (time, words) in [("0", "above 0"), ("soon", "10m"), ("8d", "7 days"), ("-1s", "above 0")] {
        lab.fails(&format!("{args}={time}"), 2, &["--watch", words]);
    }
    // as many projections as angles
    let angles: Vec<f64> = (0..31).map(f64::from).collect();
    lab.numbers("angles.txt", &angles);
    let args = "reconstruct --projections proj --angles angles.txt --output out --watch 0.5";
    lab.fails(args, 3, &["--projections", "30 of 31 pages"]);
}
