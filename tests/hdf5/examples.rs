//! The examples that `--help` of every command shows run as they are shown.

use super::{alone, file, list, unit, volume};
use crate::support::cli::Lab;
use clap::CommandFactory;
use fbp::cli::Cli;
use hdf5_metno::File;

/// Commands that look at a device for minutes; tests of their own run them, so here the examples are only parsed.
const SLOW: &[&str] = &["doctor", "bench", "tune"];

/// The examples at the end of a command's help, with continued lines joined.
fn examples(command: &str) -> Vec<String> {
    let mut cli = Cli::command();
    let help = cli.find_subcommand_mut(command).unwrap().get_after_help().unwrap().to_string();
    let (_, text) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{command} has no examples"));
    let text = text.split("\n\n").next().unwrap();
    // wider lines would be broken on a terminal
    assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
    let text = text.replace("\\\n", " ");
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Runs an example as a shell does.
fn run(lab: &Lab, example: &str) {
    let arguments: Vec<String> =
        example.strip_prefix("fbp ").unwrap().split(' ').map(|word| word.trim_matches('\'').to_owned()).collect();
    let output = lab.command("").args(&arguments).output().unwrap();
    assert!(output.status.success(), "{example}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Angles over half a turn.
fn even_angles(scan: &File, count: usize) {
    let angles = fbp::geometry::even_angles(0.0, 180.0, count);
    unit(&list(scan, "/exchange/theta", &angles), "degrees");
}

#[test]
fn examples_of_all_commands_run() {
    let _alone = alone();
    let lab = Lab::new();
    let mut shown = 0;
    for command in ["phantom", "reconstruct", "batch", "center", "trials", "preprocess", "report", "compare", "info"] {
        if command == "reconstruct" {
            let scan = file(&lab, "scan.h5");
            even_angles(&scan, 96);
            for (stack, name) in [("proj", "data"), ("flats", "data_white"), ("darks", "data_dark")] {
                volume(&scan, &format!("/exchange/{name}"), &lab.read(stack), |v| v as u16);
            }
            lab.ok("reconstruct --sinograms sinos --output reference");
        }
        if command == "batch" {
            lab.text("scans.csv", "name,rows\nscan,1..3\n");
        }
        if command == "compare" {
            // the first example of reconstruct has noise and another scale
            lab.ok("reconstruct --sinograms sinos --filter hann --output slices --overwrite");
        }
        for example in examples(command) {
            run(&lab, &example);
            shown += 1;
        }
    }
    lab.text("my-device.toml", &lab.ok("profiles show cpu").0);
    for command in ["devices", "profiles", "kernel", "model"] {
        for example in examples(command) {
            run(&lab, &example);
            shown += 1;
        }
    }
    for example in SLOW.iter().flat_map(|command| examples(command)) {
        fbp::cli::parse(example.split(' ').map(Into::into)).unwrap_or_else(|error| panic!("{example}: {error}"));
        shown += 1;
    }
    assert!(shown >= 40, "{shown}");
}

#[test]
fn a_scan_needs_no_flag() {
    let _alone = alone();
    let lab = Lab::new();
    lab.ok("phantom --size 32 --projections 40 --slices 2 --as projections --output proj");
    {
        let scan = file(&lab, "scan.h5");
        even_angles(&scan, 40);
        volume(&scan, "/exchange/data", &lab.read("proj"), |v| v);
    }
    let flags = "--center 15.5 --hdf5-data /exchange/data";
    lab.ok(&format!("reconstruct scan.h5 {flags} --output named --save-config run.toml"));
    lab.ok(&format!("reconstruct --hdf5 scan.h5 {flags} --output flagged"));
    assert_eq!(lab.bytes("named"), lab.bytes("flagged"));
    // a run file says it by the flag, and the command line wins over it
    assert!(lab.read_text("run.toml").contains("hdf5 = \"scan.h5\""));
    lab.text("other.toml", "sinograms = \"elsewhere\"\ncenter = 15.5\n");
    lab.ok("reconstruct scan.h5 --config other.toml --output merged");
    lab.ok("preprocess scan.h5 --output rows");
    assert_eq!(lab.read("rows").pages.len(), 40);
    // what may be sinograms as well as projections is not guessed, and a scan is given once
    lab.fails("reconstruct proj --output x", 2, &["sinograms or projections", "--projections 'proj'"]);
    lab.fails("center proj/p_00000.tif", 2, &["sinograms or projections"]);
    lab.fails("reconstruct scan.h5 --hdf5 scan.h5 --output x", 2, &["SCAN", "--hdf5", "once"]);
    lab.fails("center scan.h5 other.h5", 2, &["other.h5"]);
    lab.fails("reconstruct missing.h5 --output x", 3, &["missing.h5"]);
}
