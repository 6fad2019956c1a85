//! Messages of complete runs: nobody takes them, or a program reads them.

use crate::support::cli::{Lab, SMALL, text};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// All slices are there, whoever takes the messages.
#[test]
fn a_run_does_not_depend_on_who_takes_its_messages() {
    let lab = Lab::small();
    let whole = lab.slices("--sinograms sin", "whole");
    for (number, kind) in ["auto", "bar", "plain", "json", "none"].into_iter().enumerate() {
        for full in [false, true] {
            let output = format!("r{number}{full}");
            let mut command = Command::new(assert_cmd::cargo::cargo_bin("fbp"));
            command.args(["reconstruct", "--sinograms", "sin", "-v", "--log", "/dev/full", "--progress", kind]);
            command.args(["--output", &output]).current_dir(lab.path(".")).env("FBP_CACHE_DIR", lab.path("cache"));
            match full {
                true => command.stderr(File::options().write(true).open("/dev/full").unwrap()),
                false => command.stderr(std::io::pipe().unwrap().1),
            };
            assert_eq!(command.status().unwrap().code(), Some(0), "--progress {kind}");
            assert_eq!(lab.read(&output), whole, "--progress {kind}");
        }
    }
}

/// Every line of stderr is an object with one of the documented keys; a warning about data has its name.
#[test]
fn every_message_is_json_where_progress_is() {
    let lab = Lab::small();
    lab.write("hurt", "s", &SMALL.sinograms().map(|v| if v == 0.0 { f32::NAN } else { v }));
    let output = lab.run("reconstruct --sinograms hurt -v --progress json --output r");
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let lines: Vec<Value> =
        err.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{err}"))).collect();
    let keys = ["note", "warning", "message", "error", "slices_done"];
    for line in &lines {
        assert_eq!(keys.iter().filter(|key| line.get(key).is_some()).count(), 1, "{line}");
    }
    let of = |key: &str| lines.iter().filter(|line| line.get(key).is_some()).collect::<Vec<_>>();
    assert!(of("note").iter().any(|line| line["note"].as_str().unwrap().starts_with("the axis is assumed")), "{err}");
    let names: Vec<&str> = of("warning").iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"replaced-values"), "{err}");
    assert_eq!(of("slices_done").last().unwrap()["slices"], SMALL.slices, "{err}");
    assert!(of("message").iter().any(|line| line["message"].as_str().unwrap().contains("3 slices from")), "{err}");
}

/// A cache that others may write to, or whose programs are a link to one, is neither read nor written, with one warning.
#[test]
fn a_cache_of_others_is_not_used() {
    let lab = Lab::small();
    for folder in ["open", "private", "private/elsewhere"] {
        lab.directory(folder);
        fs::set_permissions(lab.path(folder), fs::Permissions::from_mode(0o700)).unwrap();
    }
    for (output, (cache, danger)) in [("a", ("open", "open")), ("b", ("private", "private/elsewhere"))] {
        let _ = std::os::unix::fs::symlink("elsewhere", lab.path("private/programs"));
        fs::set_permissions(lab.path(danger), fs::Permissions::from_mode(0o777)).unwrap();
        let args = format!("reconstruct --sinograms sin --output {output}");
        let output = lab.command(&args).env("FBP_CACHE_DIR", lab.path(cache)).output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{err}");
        assert_eq!(err.matches("warning: ").count(), 1, "{err}");
        for words in ["is not used as a cache", "others may write to", "mode 0777", "FBP_CACHE_DIR"] {
            assert!(err.contains(words), "{words}: {err}");
        }
        assert_eq!(fs::read_dir(lab.path(danger)).unwrap().count(), 0);
    }
}

/// The kernels of clFFT have warnings of which the compiler tells the number.
#[test]
fn compilers_do_not_count_warnings_on_stderr() {
    let lab = Lab::small();
    let cpu = include_str!("../../../configs/cpu.toml");
    let profile =
        cpu.replace("[fft]\nrows = \"host\"", "[fft]\nrows = \"transform\"").replace("name = \"cpu\"", "name = \"cl\"");
    assert!(profile.contains("\"transform\""));
    lab.text("cl.toml", &profile);
    let mut command = lab.command("reconstruct --sinograms sin --profile cl.toml --log /dev/null --output r");
    // compiled anew
    let output = command.env("POCL_CACHE_DIR", lab.path("pocl")).output().unwrap();
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(!err.contains("generated") && err.contains("3 slices from"), "{err}");
}
