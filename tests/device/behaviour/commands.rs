//! Around a run: what commands print and write, and signals.

use super::{json, same_slices};
use crate::support::cli::{Lab, SMALL, Scan, text};
use predicates::prelude::*;
use serde_json::Value;

#[test]
fn a_dry_run_computes_nothing() {
    let lab = Lab::small();
    let (plan, _) = lab.ok("reconstruct --sinograms sin --dry-run -o out --report r.json --preview p.png");
    for word in ["device", "profile", "kernel", "vector-linear", "3 of 32 x 32", "chunks", "slices per pass", "KiB"] {
        assert!(plan.contains(word), "`{word}` is not in\n{plan}");
    }
    assert!(!lab.path("cache/programs").exists(), "kernels were built");
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
        crate::support::cli::assert_no_panic(&err, args);
        assert!(!err.contains("pipe"), "fbp {args}\n{err}");
    }
}

/// The record says what a person would type.
#[test]
fn records_spell_values_as_flags_do() {
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
    let lines: Vec<Value> = err.lines().map(json).collect();
    let last = lines.iter().rfind(|line| line.get("slices_done").is_some()).unwrap();
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
        assert_eq!(err.contains("assumed to be in the middle"), flags != "-q", "{err}");
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
    assert!(result.get("psnr").is_some() && result.get("snr").is_some());
    let code = |args: &str| {
        let output = lab.run(&format!("compare {args}"));
        crate::support::cli::assert_no_panic(&text(&output.stderr), args);
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

/// Runs a command whose device waits after its first chunk, sends it a signal when that is written, and returns what it then
/// wrote to stderr.
fn stopped(lab: &Lab, args: &str, signal: &str) -> Vec<String> {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let mut child = Command::new(env!("CARGO_BIN_EXE_fbp"))
        .args(args.split_whitespace())
        .args(["--progress", "json"])
        .current_dir(lab.path("."))
        .env("FBP_CACHE_DIR", lab.path("cache"))
        .env("FBP_TEST_FAULT", "hold=1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("slices_done")), "no progress");
    let killed = Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let remaining: Vec<String> = lines.map(Result::unwrap).collect();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(75), "{remaining:?}");
    remaining
}

#[test]
fn a_signal_leaves_chunks_that_are_not_being_computed() {
    let lab = Lab::new();
    // chunks of one slice, all of which are read at once
    let scan = Scan { width: 16, projections: 64, slices: 3, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    let run = "reconstruct --sinograms sin --device cpu --size 512 --slices-per-pass 1 --memory 8M --output r";
    stopped(&lab, run, "TERM");
    assert_eq!(lab.files("r"), ["slice_00000.tif"]);
    lab.ok(&format!("{run} --resume"));
    assert_eq!(lab.files("r").len(), 3);
}

#[test]
fn signals_leave_whole_slices() {
    let lab = Lab::new();
    let scan = Scan { width: 16, projections: 64, slices: 64, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    for (signal, output) in [("INT", "dir"), ("TERM", "dir2"), ("INT", "all.tif")] {
        let args = format!("reconstruct --sinograms sin --size 256 --slices-per-pass 1 --memory 2M --output {output}");
        let remaining = stopped(&lab, &args, signal);
        assert!(remaining.iter().any(|l| l.starts_with("{\"error\":\"interrupted: ")), "{remaining:?}");
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
