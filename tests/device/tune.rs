//! `fbp tune`: what it finds, how it goes on after an interruption, that wrong kernels never win, and when the profile
//! that it leaves is used.

use crate::support::cli::{Lab, SMALL, assert_no_panic, text};
use assert_cmd::Command as Assert;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// A search of few points: one start, one round.
const FEW: &str = "tune --quick --size 64 --projections 48 --passes 1 --budget 10m --algorithm standard \
                   --slices-per-pass 4 --interpolation linear --mode precise";

/// The only file of a directory.
fn only_file(directory: &Path) -> PathBuf {
    let files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn rows(out: &str) -> Vec<Value> {
    serde_json::from_str(out).unwrap()
}

/// Keys of the kernels of a search, in the order of their visits.
fn visited(rows: &[Value]) -> Vec<String> {
    rows.iter().filter(|r| r["turn"] == 0).map(|r| r["key"].as_str().unwrap().to_owned()).collect()
}

/// Key and turn of every measurement in the log.
fn logged(cache: &Path) -> Vec<(String, u64)> {
    let log = fs::read_to_string(only_file(&cache.join("tune"))).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let points = lines.filter(|line| line["start"].is_null());
    points.map(|line| (line["key"].as_str().unwrap().to_owned(), line["turn"].as_u64().unwrap())).collect()
}

fn in_cache(lab: &Lab, cache: &str, args: &str) -> Assert {
    let mut command = lab.command(args);
    command.env("FBP_CACHE_DIR", lab.path(cache));
    command
}

fn done(output: &Output, args: &str) -> (String, String) {
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "fbp {args}\n{err}");
    assert_no_panic(&err, args);
    (out, err)
}

#[test]
fn what_is_found_is_used_on_this_device_and_driver() {
    let lab = Lab::new();
    lab.write("sin", "s", &SMALL.sinograms());
    let (before, err) = lab.ok("devices");
    assert!(!before.contains("tuned") && !err.contains("tune"), "{before}{err}");
    let (out, err) = lab.ok(FEW);

    // a line for every point, a table, nothing slower than before
    assert!(err.contains("as shipped") && err.contains("best") && err.contains(" left"), "{err}");
    let cells: Vec<&str> = out.lines().last().unwrap().split('|').map(str::trim).collect();
    assert_eq!(cells[1..=3], ["linear", "precise", "standard, 4 slices"], "{out}");
    let number = |cell: usize| cells[cell].parse::<f64>().unwrap_or_else(|_| panic!("{out}"));
    assert!(number(7) >= 1.0 && number(6) >= number(4) && number(4) > 0.0, "{out}");
    assert!(number(8) > 0.0 && number(8) < 1e-5, "{out}");

    // a whole profile with what was measured, that names no directory
    let file = only_file(&lab.path("cache/tuned"));
    let name = file.to_str().unwrap();
    let (checked, _) = lab.ok(&format!("profiles check {name}"));
    assert!(checked.contains("-tuned, ") && checked.contains("valid"), "{checked}");
    let profile = fs::read_to_string(&file).unwrap();
    let log = only_file(&lab.path("cache/tune"));
    let log = log.file_name().unwrap().to_str().unwrap();
    assert!(profile.contains(log) && !profile.contains(lab.path(".").parent().unwrap().to_str().unwrap()), "{profile}");
    for word in ["source = \"tuned by fbp", "[tuned]", "driver = ", "keys = [", "[[measured]]", "gu-per-s = "] {
        assert!(profile.contains(word), "{word}\n{profile}");
    }

    // found without being named
    let (after, err) = lab.ok("devices");
    assert!(after.contains("-tuned (tuned on this device 2"), "{after}");
    assert!(!err.contains("note"), "{err}");
    let run = "reconstruct --sinograms sin --output out";
    let (plan, _) = lab.ok(&format!("{run} --dry-run"));
    assert!(plan.contains("tuned on this device"), "{plan}");
    let (_, err) = lab.ok(&format!("{run} -v"));
    assert!(err.contains("-tuned: tuned on this device"), "{err}");
    let (head, _) = lab.ok("bench --size 32 --passes 1 -q --algorithm standard --slices-per-pass 4 --mode precise");
    assert!(head.contains("tuned on this device"), "{head}");
    // tuning again does not start from what was tuned
    let (_, err) = lab.ok(&format!("{FEW} --resume"));
    assert!(!err.lines().next().unwrap().contains("tuned"), "{err}");

    // after a change of the driver, of the kernels, or of the file
    let driver = profile.lines().rev().find(|line| line.starts_with("driver = ")).unwrap();
    let key = profile.split("keys = [").nth(1).unwrap().split('"').nth(1).unwrap();
    for (changed, words) in [
        (profile.replace(driver, "driver = \"0.1 of yesterday\""), "tuned with driver 0.1 of yesterday"),
        (profile.replace(key, "0123456789abcdef"), "kernels have changed"),
        (profile.replace("schema = 2", "schema = 7"), "schema"),
    ] {
        fs::write(&file, changed).unwrap();
        for args in ["devices", &format!("{run} --dry-run")] {
            let (out, err) = lab.ok(args);
            let notes: Vec<&str> = err.lines().filter(|line| line.contains(words)).collect();
            assert!(notes.len() == 1 && notes[0].contains("fbp tune"), "{args}: {err}");
            assert!(!out.contains("tuned on this device"), "{out}");
        }
    }
    // a driver that comes back, and a file that is asked for by name
    fs::write(&file, &profile).unwrap();
    assert!(lab.ok("devices").0.contains("tuned on this device"));
    lab.ok(&format!("{run} --overwrite -q --profile {name}"));
}

#[test]
fn exact_interpolation_is_tuned_within_its_bound() {
    let lab = Lab::new();
    let few = "tune --quick --size 64 --projections 48 --passes 1 --budget 10m --slices-per-pass 4 --interpolation exact \
               --mode fast";
    let (out, _) = lab.ok(&format!("{few} --json"));
    let points = rows(&out);
    assert!(points.len() > 2, "{out}");
    for point in &points {
        assert!(point["error"].as_f64().is_some_and(|error| error > 0.0 && error <= 1e-3), "{point}");
        assert!(point["kernel"].as_str().unwrap().starts_with("gridding-exact"), "{point}");
    }
    // the profile that it leaves is used
    lab.write("sin", "s", &SMALL.sinograms());
    let (plan, _) = lab.ok("reconstruct --sinograms sin --interpolation exact --mode fast --output out --dry-run");
    assert!(plan.contains("tuned on this device") && plan.contains("gridding-exact"), "{plan}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let lab = Lab::new();
    let full = rows(&done(&in_cache(&lab, "whole", &format!("{FEW} --json")).output().unwrap(), FEW).0);
    assert!(visited(&full).len() > 4, "{full:?}");

    let cache = lab.path("parts");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fbp"))
        .args(FEW.split_whitespace())
        .current_dir(lab.path("."))
        .env("XDG_CONFIG_HOME", lab.path("no-configuration"))
        .env("FBP_CACHE_DIR", &cache)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("as shipped")), "no progress");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let remaining: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(child.wait().unwrap().code(), Some(75), "{remaining:?}");
    assert!(remaining.iter().any(|l| l.starts_with("fbp: interrupted") && l.contains("--resume")), "{remaining:?}");
    let first = logged(&cache);
    assert!(!first.is_empty() && first.len() < visited(&full).len(), "{first:?}");

    let args = format!("{FEW} --json --resume");
    let (out, err) = done(&in_cache(&lab, "parts", &args).output().unwrap(), &args);
    assert!(err.contains(&format!("{} measurements are in the log", first.len())), "{err}");
    assert_eq!(visited(&rows(&out)), visited(&full));
    // nothing twice, and a run that was complete measures nothing
    let all = logged(&cache);
    assert_eq!(all[..first.len()], first);
    let mut once = all.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), all.len(), "{all:?}");
    let (again, _) = done(&in_cache(&lab, "parts", &args).output().unwrap(), &args);
    assert_eq!((rows(&again), logged(&cache)), (rows(&out), all));
}

#[test]
fn a_fast_wrong_kernel_never_wins() {
    let lab = Lab::new();
    let output = lab.command(&format!("{FEW} --json")).env("FBP_TEST_PLANT", "1").output().unwrap();
    let (out, err) = done(&output, FEW);
    let rows = rows(&out);
    let planted: Vec<&Value> = rows.iter().filter(|r| r["changed"]["planted"] == "true").collect();
    assert_eq!(planted.len(), 1, "{out}");
    assert_eq!((&planted[0]["verdict"], &planted[0]["gu_per_s"]), (&"wrong".into(), &Value::Null));
    assert!(planted[0]["error"].as_f64().unwrap() > 0.1, "{out}");
    assert!(err.contains("planted = true: no GU/s") && err.contains("WRONG"), "{err}");
    assert!(rows.iter().filter(|r| r["verdict"] == "right").all(|r| r["gu_per_s"].as_f64().unwrap() > 0.0));
    let profile = fs::read_to_string(only_file(&lab.path("cache/tuned"))).unwrap();
    assert!(!profile.contains("planted"), "{profile}");
}

#[test]
fn every_size_of_steps_gives_the_same_results_and_the_fastest_are_kept() {
    let lab = Lab::new();
    // columns that are sorted in several parts with the smaller sizes
    let args = "tune --steps --bins 70 --projections 1500 --passes 1";
    let (out, err) = done(&lab.command(&format!("{args} --json")).output().unwrap(), args);
    let trials = rows(&out);
    let sizes: BTreeSet<(&str, u64)> =
        trials.iter().map(|trial| (trial["size"].as_str().unwrap(), trial["value"].as_u64().unwrap())).collect();
    let of = |name: &str| sizes.iter().filter(|(size, _)| *size == name).map(|(_, value)| *value).collect::<Vec<_>>();
    assert_eq!(of("sort-values"), [512, 1024, 2048, 4096, 8192]);
    assert_eq!(of("outlier-rows"), [4, 8, 16, 32, 64]);
    assert_eq!(sizes.iter().map(|(size, _)| size).collect::<BTreeSet<_>>().len(), 7, "{out}");
    for trial in &trials {
        assert!(trial["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{trial}");
        assert!(trial.get("reason").is_none(), "{trial}");
    }
    assert!(err.contains("sort-values 512, sorting columns: ") && err.contains("-tuned is in "), "{err}");
    assert!(lab.ok("devices").0.contains("-tuned (tuned on this device 2"));
    let file = only_file(&lab.path("cache/tuned"));
    let profile = fs::read_to_string(&file).unwrap();
    for word in ["[step-sizes]", "steps = \"fbp ", "1500 projections of 70 bins", "source = \"sizes of steps"] {
        assert!(profile.contains(word), "{word}\n{profile}");
    }

    // kernels that are tuned later leave them as they are, and the other way round
    let chosen = profile.split("[step-sizes]").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
    lab.ok(FEW);
    let both = fs::read_to_string(&file).unwrap();
    assert!(both.contains(&chosen) && both.contains("steps = \"fbp ") && both.contains("[[measured]]"), "{both}");
    let (out, _) = lab.ok(&format!("{args} -q"));
    assert!(out.lines().last().unwrap().starts_with("| image-items "), "{out}");
    let again = fs::read_to_string(&file).unwrap();
    assert!(again.contains("source = \"tuned by fbp") && again.contains("[[measured]]"), "{again}");

    // a value that is none
    lab.text("odd.toml", &again.replace("sort-values = ", "sort-values = 1"));
    let output = lab.run("profiles check odd.toml");
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("[step-sizes]: sort-values ") && message.contains(" must be 512, 1024, "), "{message}");
}

#[test]
fn kernels_that_do_not_build_are_rows_and_no_result() {
    let lab = Lab::new();
    let good = text(&lab.run("profiles show default").stdout);
    // one that a program does not have, and one that no compiler takes
    for option in ["-Dbackproject=elsewhere", "-D__kernel=nonsense"] {
        lab.text("odd.toml", &good.replace("options = []", &format!("options = [\"{option}\"]")));
        let args = format!("{FEW} --profile ./odd.toml --output mine.toml --json");
        let output = lab.run(&args);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{out}{err}");
        assert_no_panic(&err, &args);
        assert!(err.contains("no kernel for linear precise"), "{err}");
        let rows = rows(&out);
        assert!(!rows.is_empty() && rows.iter().all(|r| r["verdict"] == "failed" && r["gu_per_s"].is_null()), "{out}");
        assert!(!rows[0]["reason"].as_str().unwrap().is_empty(), "{out}");
        assert!(!lab.path("mine.toml").exists() && !lab.path("cache/tuned").exists());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let lab = Lab::new();
    for (args, words) in [
        ("--algorithm quantum", &["--algorithm", "quantum", "standard"][..]),
        ("--mode reckless", &["--mode", "reckless"]),
        ("--slices-per-pass 3", &["--slices-per-pass", "3"]),
        ("--size 0", &["--size", "at least 1"]),
        ("--passes 0", &["--passes", "at least 1"]),
        ("--budget soon", &["--budget", "soon", "10m"]),
        ("--budget 0s", &["--budget", "above 0"]),
        ("--profile nowhere", &["--profile", "nowhere", "default"]),
    ] {
        lab.fails(&format!("tune {args}"), 2, words);
    }
    lab.fails("tune --size 8 --output nowhere/mine.toml", 5, &["--output", "nowhere"]);
    lab.fails("tune --size 8 --device 99", 4, &["--device"]);
    lab.text("file", "");
    let output = in_cache(&lab, "file", "tune --size 8").output().unwrap();
    lab.check_failure(&output, "tune", 5, &["log of measurements", "file"]);
    let mut command = lab.command("tune --size 8");
    let output = command.env_remove("FBP_CACHE_DIR").env_remove("XDG_CACHE_HOME").env_remove("HOME").output().unwrap();
    lab.check_failure(&output, "tune", 2, &["FBP_CACHE_DIR"]);
}
