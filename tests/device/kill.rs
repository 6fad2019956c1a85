//! Runs that are killed at any moment: no slice is ever torn under its name, and `--resume` ends with the bytes of a run that
//! nothing happened to.
//!
//! `FBP_TEST_KILLS` is how many runs are killed; `scripts/kill` takes more than the usual few. The moments are random, from
//! one seed.

use crate::support::cli::{Lab, Scan, text};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SCAN: Scan = Scan { width: 32, projections: 16, slices: 60, overall: 180.0 };
const KILLS: usize = 16;
const SIGNALS: [&str; 4] = ["-KILL", "-KILL", "-TERM", "-INT"];

#[test]
fn killed_runs_resume_to_the_same_bytes() {
    let kills = match std::env::var("FBP_TEST_KILLS") {
        Ok(text) => text.parse().expect("FBP_TEST_KILLS is a number"),
        Err(_) => KILLS,
    };
    let lab = Lab::new();
    lab.write("sin", "s", &SCAN.sinograms());
    // slices of 256 KiB, so that many moments are within a write
    let run = "reconstruct --sinograms sin --size 256 --device cpu --slices-per-pass 1 --memory 3M --output";
    lab.ok(&format!("{run} whole"));
    let start = Instant::now();
    lab.ok(&format!("{run} again"));
    let longest = start.elapsed();
    let full = lab.bytes("whole");
    assert!(lab.bytes("again") == full);

    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (mut within, mut done, mut left) = (0, 0, 0);
    let mut killed = 0;
    while killed < kills {
        // some are killed once more before they end
        for attempt in 0..random.random_range(1..=3) {
            let signal = SIGNALS[random.random_range(0..SIGNALS.len())];
            let moment = longest.mul_f64(random.random_range(0.0..1.0));
            let more = if attempt == 0 { "" } else { "--resume" };
            let mut child = Command::new(assert_cmd::cargo::cargo_bin("fbp"))
                .args(run.split_whitespace().chain(["r"]).chain(more.split_whitespace()))
                .current_dir(lab.path(""))
                .env("FBP_CACHE_DIR", lab.path("cache"))
                .env("FBP_TEST_FAULT", if killed == 0 { "hold=2" } else { "" })
                .env("XDG_CONFIG_HOME", lab.path("no-configuration"))
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // the first is killed when it has slices and waits, the others at any moment
            let started = Instant::now();
            let due = |start: Instant| match killed {
                0 => lab.path("r/slice_00000.tif").exists(),
                _ => start.elapsed() >= moment,
            };
            while !due(started) {
                assert!(started.elapsed() < Duration::from_secs(120), "no slice came");
                std::thread::sleep(Duration::from_millis(1));
            }
            Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
            child.wait().unwrap();
            let output = child.wait_with_output().unwrap();
            let err = text(&output.stderr);
            // a signal that nobody catches yet ends a program, too
            assert!(matches!(output.status.code(), None | Some(0 | 75)), "{signal} after {moment:?}: {err}");
            killed += 1;
            if !lab.path("r").exists() {
                break;
            }
            let there = lab.bytes("r");
            for (name, bytes) in &there {
                assert!(full.iter().any(|(n, b)| n == name && b == bytes), "{name} is torn by {signal} at {moment:?}");
            }
            match there.len() {
                0 => {}
                n if n == full.len() => done += 1,
                _ => within += 1,
            }
            left += fs::read_dir(lab.path("r")).unwrap().count() - there.len();
        }
        lab.ok(&format!("{run} r --resume"));
        assert!(lab.bytes("r") == full);
        let hidden = fs::read_dir(lab.path("r")).unwrap().count() - full.len();
        assert_eq!(hidden, 1, "more than the record is left");
        fs::remove_dir_all(lab.path("r")).unwrap();
    }
    println!("{killed} runs killed: {within} within their slices, {done} too late; {left} other files were left");
    assert!(within > 0, "no run was killed while it wrote");
}
