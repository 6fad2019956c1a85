//! What a plan says of a device's memory, beside what is allocated there, for every kind of run.

use crate::support::cli::Lab;
use clap::Parser;
use fbp::cli::{Cli, Command};
use fbp::engine::{Source, ready_devices};
use fbp::job::Job;
use fbp::report::Reporter;
use std::sync::atomic::AtomicBool;

/// Bytes of a plan and of its engine, and the buffers of both.
fn planned_and_allocated(lab: &Lab, flags: &str) -> (u64, u64, String) {
    let place = |word: &str| {
        let file = lab.path(word);
        if file.exists() { file.to_str().unwrap().to_owned() } else { word.to_owned() }
    };
    let words = format!("fbp reconstruct {flags} --device cpu --output none-such --no-self-test");
    let cli = Cli::try_parse_from(words.split_whitespace().map(place)).unwrap();
    let Command::Reconstruct { args, .. } = cli.command else { panic!("{words}") };
    let (job, reporter) = (Job::new(&args).unwrap(), Reporter::silent());
    let source = Source::open(&job, &reporter, &AtomicBool::new(false)).unwrap();
    let device = ready_devices(&job, &source, &reporter).unwrap().remove(0);
    let planned: u64 = device.plan.device_bytes.iter().map(|bytes| bytes.bytes).sum();
    let mut allocated = device.engine.allocated();
    // rows of noise that a filter is tried with, which are free again
    allocated.remove("noise");
    let buffers: Vec<_> = device.plan.device_bytes.iter().filter(|b| b.bytes > 0).map(|b| (b.what, b.bytes)).collect();
    (planned, allocated.values().sum(), format!("planned {buffers:?}\n    allocated {allocated:?}"))
}

/// Tables of gridding depend on the angles, and plans estimate them; least squares use gridding, too.
fn may_differ(run: &str, allocated: u64) -> u64 {
    if run.contains("exact") || run.contains("--method") { allocated / 100 } else { 0 }
}

#[test]
fn plans_say_what_is_allocated() {
    let lab = Lab::new();
    lab.profile_with_steps("steps.toml", "");
    lab.ok(
        "phantom --size 96 --projections 90 --slices 40 --as projections --photons 20000 --scale 0.02 --flats flats \
            --darks darks --output proj",
    );
    lab.ok("phantom --size 96 --projections 90 --slices 40 --output sin");
    lab.text("lens.txt", "xcenter = 48\nycenter = 20\nfactor0 = 0.97\nfactor1 = -1e-4\n");
    let counts = "--projections proj --flats flats --darks darks";
    let paganin = "--phase paganin --pixel-size 1um --energy-kev 20 --distance 20mm --delta-beta 100";
    let mut runs: Vec<String> = Vec::new();
    for profile in ["", "--profile steps.toml"] {
        for steps in [
            "",
            "--remove-outliers 3,500",
            "--tilt 0.7",
            "--tilt 0.7 --distortion lens.txt",
            paganin,
            "--binning 2",
            "--stripes all",
            "--extended-field --center 80 --overall-angle 360",
            "--lamino-angle 25 --slab 9..17 --overall-angle 360",
            "--dtype u16 --range 0,1",
            "--dtype f16",
            "--mask",
            "--histogram h.json --dtype u16 --range 0,1",
            "--interpolation exact",
            "--method tv",
            "--interpolation nearest",
            "--mode fast",
            "--slices-per-pass 4",
            "--roi 10,20,30,41",
            "--size 80",
            "--rows 3..30:5",
            "--padding mirror",
        ] {
            runs.push(format!("{profile} {counts} {steps}"));
        }
        runs.push(format!("{profile} --sinograms sin"));
    }
    // families, and where positions, rows and tables are
    for profile in ["nvidia-hopper", "nvidia-maxwell", "amd-vliw5", "default"] {
        for kernel in ["", "--mode fast", "--interpolation nearest", "--interpolation exact"] {
            if profile != "amd-vliw5" || !kernel.contains("exact") {
                runs.push(format!("--profile {profile} {counts} {kernel}"));
            }
        }
    }
    for method in
        ["sorting", "filtering", "fitting", "large", "dead", "all", "wavelet", "titarenko", "mean", "fitting:order=3"]
    {
        runs.push(format!("--profile steps.toml --sinograms sin --stripes {method}"));
    }
    for steps in ["", "--tilt 0.7", paganin, "--remove-outliers 3,500 --stripes all"] {
        for memory in ["3M", "1200K", "700K"] {
            runs.push(format!("--profile steps.toml {counts} {steps} --device-memory {memory}"));
        }
    }
    let mut wrong = Vec::new();
    for run in &runs {
        let (planned, allocated, text) = planned_and_allocated(&lab, run);
        if planned.abs_diff(allocated) > may_differ(run, allocated) {
            wrong.push(format!("{run}: {planned} planned, {allocated} allocated\n    {text}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} runs:\n{}", wrong.len(), runs.len(), wrong.join("\n"));
}
