//! `fbp doctor`, and the check of a run's kernel before it: what is right is remembered, what is wrong is not used.
//!
//! `FBP_TEST_FAULT` makes kernels wrong whose names have one of its words.

use crate::support::cli::{Lab, Pages, SMALL, assert_no_panic, farthest, text};
use fbp::check::{StepCheck, TestShape, all_step_checks};
use fbp::device::{Session, enumerate};
use fbp::kernel::{StepBackend, StepBackends};
use fbp::operations::RowBlocks;
use serde_json::Value;
use std::fs;
use std::process::Output;
use std::time::Duration;

/// More than this is not rounding.
const WRONG: f64 = 0.05;

/// Runs the program with a fault; compiling everything for the first time may take long.
fn faulty(lab: &Lab, fault: &str, args: &str) -> Output {
    lab.command(args).env("FBP_TEST_FAULT", fault).timeout(Duration::from_secs(600)).output().unwrap()
}

/// Reconstructs with a fault; the slices, and what was said.
fn slices(lab: &Lab, fault: &str, args: &str) -> (Pages, String) {
    let output = faulty(lab, fault, &format!("reconstruct --sinograms sin --overwrite --output r {args}"));
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args}\n{err}");
    assert_no_panic(&err, args);
    (lab.read("r"), err)
}

/// Files of verdicts.
fn verdict_files(lab: &Lab) -> Vec<std::path::PathBuf> {
    let cache = lab.path("cache");
    // which the first verdict makes
    let entries = cache.exists().then(|| fs::read_dir(&cache).unwrap()).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect()
}

/// The file of verdicts, of which there is one.
fn verdicts(lab: &Lab) -> std::path::PathBuf {
    let mut files = verdict_files(lab);
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// The steps of a run are tried with its number of projections and its sizes of images, which decide what programs they need.
#[test]
fn steps_are_right_with_the_sizes_of_a_run() {
    let session = Session::open(&enumerate().unwrap()[0]).unwrap();
    let tried = |check: &StepCheck, shape| {
        let found = check.run(&session, shape).unwrap();
        assert!(found.right(), "{shape:?}: {found:?}");
    };
    let of = |check: &StepCheck, backends| check.backend(backends) == StepBackend::Device;
    for check in all_step_checks() {
        if of(&check, StepBackends { sinograms: StepBackend::Device, ..StepBackends::HOST }) {
            for projections in [1, 2, 361, 2048, 8200] {
                tried(&check, TestShape { projections, ..TestShape::default() });
            }
        }
        if of(&check, StepBackends { images: StepBackend::Device, ..StepBackends::HOST }) {
            let mapped = check.name() == "distortion";
            let around = RowBlocks { rows: 40, rotation_halo: 7, mapped, filter_halo: 30, images: Some([1024, 128]) };
            tried(&check, TestShape { images: Some((600, around)), ..TestShape::default() });
        }
    }
}

#[test]
fn this_device_passes_and_a_run_trusts_that() {
    let lab = Lab::small();
    let output = faulty(&lab, "", "doctor --json -q");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    let found: Value = serde_json::from_str(&out).unwrap();
    for key in ["device", "driver", "profile"] {
        assert!(!found[key].as_str().unwrap().is_empty(), "{key}");
    }
    assert_eq!(found["verdict"], "right");
    let variants = found["variants"].as_array().unwrap();
    assert!(variants.len() >= 4);
    for variant in variants {
        assert!(variant["name"].as_str().unwrap().matches('-').count() >= 3, "{variant}");
        assert!(["right", "skipped"].contains(&variant["verdict"].as_str().unwrap()), "{variant}");
        let error = variant["error"].as_f64().unwrap_or(0.0);
        assert!(error <= variant["margin"].as_f64().unwrap(), "{variant}");
        assert!(variant.get("reason").is_some());
    }
    let exact = variants.iter().filter(|variant| variant["name"].as_str().unwrap().starts_with("gridding-exact"));
    let exact: Vec<&str> = exact.map(|variant| variant["verdict"].as_str().unwrap()).collect();
    assert!(exact.len() >= 2 && exact.contains(&"right"), "{out}");
    assert_eq!(found["formats"].as_array().unwrap().len(), 6);
    assert!(found["lengths"].as_array().unwrap().iter().all(|length| length["verdict"] == "right"), "{out}");
    let steps = found["steps"].as_array().unwrap();
    assert_eq!(
        steps.len(),
        28,
        "binning by 2 and 3, rows, outliers, air twice, a double flat field, components of flats, distortion, tilt, phase, \
         beam hardening, nine methods against stripes, extension, four types of samples, histogram, least squares"
    );
    for step in steps {
        assert_eq!(step["verdict"], "right", "{step}");
        assert!(step["error"].as_f64().unwrap() <= step["margin"].as_f64().unwrap(), "{step}");
    }
    let kept = found["cache"].as_str().unwrap();
    assert_eq!(kept, verdicts(&lab).to_str().unwrap());

    let (_, err) = lab.ok("reconstruct --sinograms sin --output r -v");
    assert!(err.contains("self-test: right") && err.contains("from the cache"), "{err}");
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let lab = Lab::new();
    // the lengths of rows are tried by the test above
    let args = "doctor --quick --profile default";
    let output = faulty(&lab, "image", args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{out}{err}");
    assert_no_panic(&err, args);
    let rows: Vec<Vec<&str>> = out.lines().map(|l| l.split('|').map(str::trim).collect()).collect();
    let kernels: Vec<_> = rows.iter().filter(|row| row.get(1) == Some(&"kernel")).collect();
    assert!(kernels.iter().any(|row| row[2].contains("image")) && kernels.iter().any(|row| row[2].ends_with("buffer")));
    for row in kernels {
        assert_eq!(row[5], if row[2].contains("image") { "WRONG" } else { "right" }, "{out}");
    }
    for what in ["format", "length", "step"] {
        assert!(rows.iter().any(|row| row.get(1) == Some(&what)), "{out}");
    }
    let last = err.lines().last().unwrap();
    assert!(last.starts_with("fbp: ") && last.contains("image") && last.contains("--profile"), "{err}");
    assert!(out.contains(verdicts(&lab).to_str().unwrap()), "{out}");
}

/// Steps are tried whatever the profile says; a wrong one is told, and nothing that a run would use.
#[test]
fn a_wrong_step_is_avoided() {
    let lab = Lab::new();
    for (profile, by_host) in [("cpu", true), ("default", false)] {
        let args = format!("doctor --quick --json --profile {profile}");
        let output = faulty(&lab, "encode", &args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{out}{err}");
        let found: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(found["verdict"], "right");
        let mut wrong = 0;
        for step in found["steps"].as_array().unwrap() {
            let (name, reason) = (step["name"].as_str().unwrap(), step["reason"].as_str().unwrap_or(""));
            // both profiles leave least squares to the host
            let by_host = by_host || name == "least squares";
            if name.starts_with("samples of slices") {
                assert!(step["verdict"] == "wrong" && step["avoided"] == true, "{step}");
                assert!(
                    step["error"].as_f64() > Some(0.0) && reason.contains("a run does its steps on the host"),
                    "{step}"
                );
                assert!(err.contains(&format!("{name}: WRONG, {reason}")), "{err}");
                wrong += 1;
            } else {
                assert!(step["verdict"] == "right" && step["avoided"] == by_host, "{step}");
                assert_eq!(reason, if by_host { "the profile assigns it to the host" } else { "" }, "{step}");
            }
        }
        assert_eq!(wrong, 4, "{out}");
    }
    let (out, err) = lab.ok("doctor --quick --profile default");
    assert!(out.contains("28 of 28 steps right\n") && err.contains("stripes dead:"), "{out}{err}");
    assert!(out.lines().any(|line| line.starts_with("| step") && line.contains("| rows ")), "{out}");
}

#[test]
fn a_wrong_kernel_is_replaced() {
    let lab = Lab::small();
    for (fault, args, from, to) in [
        ("image", "--profile default --mode fast", "image", "standard-linear-half-x4-buffer"),
        ("image", "--profile default --mode fast --algorithm standard", "image", "standard-linear-half-x4-buffer"),
        ("vector", "--profile cpu", "vector-linear-float-x16-buffer", "standard-linear-float-x4-buffer"),
        ("tensor", "--profile nvidia-hopper --mode fast --slices-per-pass 32", "tensor", "texture-linear"),
        ("tensor,texture,alu", "--profile nvidia-hopper --mode fast --slices-per-pass 32", "alu", "standard-linear"),
    ] {
        let (correct, err) = slices(&lab, "", args);
        assert!(!err.contains("wrong"), "{err}");
        let (wrong, err) = slices(&lab, fault, &format!("{args} --no-self-test"));
        assert!(!err.contains("wrong"), "{err}");
        assert!(farthest(&wrong, &correct) > WRONG, "{fault}: the fault is nowhere to be seen");
        let (replaced, err) = slices(&lab, fault, args);
        let line = err.lines().find(|line| line.contains(&format!("-> {to}"))).unwrap_or_else(|| panic!("{err}"));
        let (before, after) = line.split_once(" -> ").unwrap();
        assert!(before.starts_with("note: ") && before.contains(from), "{line}");
        assert!(after.contains("wrong on this device: error") && after.contains("margin"), "{line}");
        let far = farthest(&replaced, &correct);
        assert!(far < 5e-3, "{fault} {args}: {far}");
    }
}

#[test]
fn a_run_without_a_correct_kernel_is_refused() {
    let lab = Lab::small();
    for (fault, args, words) in [
        ("vector", "--profile cpu --algorithm vector", &["--algorithm vector", "vector-linear-float-x16-buffer"][..]),
        ("vector,standard", "--profile cpu", &["vector-linear", "standard-linear", "--profile", "fbp doctor"]),
        ("standard", "--profile default --mode fast", &["image", "x4-buffer", "--device"]),
    ] {
        let args = format!("reconstruct --sinograms sin {args} --output out");
        let err = lab.check_failure(&faulty(&lab, fault, &args), &args, 4, words);
        assert!(err.contains("driver ") && err.contains("error 1") && err.contains("margin "), "{err}");
    }
    // a kernel that does not build, and one that does not run
    let good = text(&lab.run("profiles show default").stdout);
    for (definition, words) in [("-Dif=oops", "does not build"), ("-Dbackproject=elsewhere", "backproject")] {
        assert!(good.contains("options = []"), "{good}");
        lab.text("odd.toml", &good.replace("options = []", &format!("options = [\"{definition}\"]")));
        lab.fails("reconstruct --sinograms sin --profile ./odd.toml --output out", 4, &["standard-linear", words]);
    }
}

#[test]
fn a_correct_kernel_is_checked_once() {
    let lab = Lab::small();
    let run = |args: &str| {
        let (_, err) = lab.ok(&format!("reconstruct --sinograms sin --output r --overwrite -v {args}"));
        let mut lines = err.lines().filter(|line| line.starts_with("self-test: "));
        let line = lines.next().unwrap_or_else(|| panic!("{err}")).to_owned();
        assert_eq!(lines.next(), None);
        line
    };
    let checked = |line: &str| line.contains("right") && line.contains("margin") && line.contains(" ms ");
    let remembered = |line: &str| line.contains("right") && line.contains("from the cache");
    assert!(run("--no-self-test").contains("skipped"));
    assert!(verdict_files(&lab).is_empty());

    assert!(checked(&run("--report first.json")));
    assert!(remembered(&run("--report second.json")));
    // another kernel is another check
    assert!(checked(&run("--interpolation nearest")));
    let report = |file: &str| serde_json::from_str::<Value>(&lab.read_text(file)).unwrap()["self_test"].clone();
    let (first, second) = (report("first.json"), report("second.json"));
    assert_eq!((&first["verdict"], &second["verdict"]), (&"right".into(), &"right".into()));
    assert!(first["seconds"].as_f64().unwrap() > 0.0 && second["seconds"].is_null());
    assert_eq!(first["error"], second["error"]);

    // a bad verdict, a bad file and an error past the margin are not believed
    let file = verdicts(&lab);
    let good = fs::read_to_string(&file).unwrap();
    assert!(good.contains("\"right\""), "{good}");
    for bad in [good.replace("\"right\"", "\"wrong\""), good.replace("error = ", "error = 1"), "odd".to_owned()] {
        fs::write(&file, bad).unwrap();
        assert!(checked(&run("")));
        assert!(remembered(&run("")));
    }

    // in a run file
    lab.text("run.toml", "no-self-test = true\n");
    assert!(run("--config run.toml").contains("skipped"));
    assert!(remembered(&run("--config run.toml --self-test")));
}

#[test]
fn a_cache_that_cannot_be_written_is_only_a_warning() {
    let lab = Lab::small();
    lab.text("file", "in the way");
    let run = |args: &str| {
        let output = lab.command(args).env("FBP_CACHE_DIR", lab.path("file/cache")).output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        err
    };
    let err = run("reconstruct --sinograms sin --output r");
    assert!(err.contains("warning: ") && err.contains("file/cache") && err.contains("FBP_CACHE_DIR"), "{err}");
    assert_eq!(lab.files("r").len(), SMALL.slices);
    let mut command = lab.command("reconstruct --sinograms sin --output q");
    let output = command.env_remove("FBP_CACHE_DIR").env("XDG_CACHE_HOME", lab.path("home")).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(lab.path("home/fbp").is_dir());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = Lab::new();
    lab.fails("doctor --profile nowhere", 2, &["--profile", "nowhere", "default"]);
    lab.fails("doctor --device=", 2, &["--device", "empty"]);
    lab.fails("doctor --device 99", 4, &["--device"]);
}
