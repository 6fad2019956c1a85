//! `--every`: a scan of many turns as one volume for each window.

use crate::support::cli::{Lab, Pages};
use fbp::geometry::{cos_sin_degrees, default_axis, even_angles};
use serde_json::Value;
use std::f64::consts::TAU;

const BINS: usize = 48;
const ROWS: usize = 3;
/// Width of the blob, which is the sample.
const SIGMA: f64 = 3.0;

/// Place of the sample from the axis, y upwards, in each turn of 180 degrees.
const PLACES: [[f64; 2]; 4] = [[0.0, 0.0], [9.0, -4.0], [-8.0, 10.0], [3.0, 12.0]];

/// Projections of a sample that jumps after each turn.
fn moving(angles: &[f64], per_turn: usize) -> Pages {
    let page = |(number, &angle): (usize, &f64)| {
        let [x, y] = PLACES[number / per_turn % PLACES.len()];
        let (cos, sin) = cos_sin_degrees(angle);
        let value = |i: usize| {
            let s = (i % BINS) as f64 - default_axis(BINS) - x * cos - y * sin;
            ((1.0 + (i / BINS) as f64) * SIGMA * TAU.sqrt() * (-s * s / (2.0 * SIGMA * SIGMA)).exp()) as f32
        };
        (0..ROWS * BINS).map(value).collect()
    };
    Pages { width: BINS, pages: angles.iter().enumerate().map(page).collect() }
}

/// Largest difference of a slice from the sample at a place.
fn off(slice: &[f32], row: usize, [x0, y0]: [f64; 2]) -> f64 {
    let middle = default_axis(BINS);
    let pixel = |(i, &found): (usize, &f32)| {
        let (x, y) = ((i % BINS) as f64 - middle - x0, middle - (i / BINS) as f64 - y0);
        let truth = (1.0 + row as f64) * (-(x * x + y * y) / (2.0 * SIGMA * SIGMA)).exp();
        (f64::from(found) - truth).abs()
    };
    slice.iter().enumerate().map(pixel).fold(0.0, f64::max)
}

/// Turns of 60 projections of the moving sample.
fn turns(lab: &Lab) -> &'static str {
    lab.write("p", "p", &moving(&even_angles(0.0, 720.0, 240), 60));
    "--projections p --overall-angle 720 --device cpu"
}

/// Every window has the sample of its time, and is the run of these projections: its files, record and key.
#[test]
fn windows_are_runs_of_their_projections() {
    let lab = Lab::new();
    let scan = turns(&lab);
    let (_, err) = lab.ok(&format!("reconstruct {scan} --every 180 --output rec"));
    assert!(err.contains("4 windows of 180 degrees\n") && err.contains("t_003: "), "{err}");
    for (turn, place) in PLACES.into_iter().enumerate() {
        let name = format!("rec/t_00{turn}");
        for (row, slice) in lab.read(&name).pages.iter().enumerate() {
            let found = off(slice, row, place);
            assert!(found < 0.06 * (1.0 + row as f64), "{turn} {row}: {found}");
            assert!(off(slice, row, PLACES[(turn + 1) % 4]) > 0.5);
        }
        let range = format!("{}..{}", 60 * turn, 60 * (turn + 1));
        lab.ok(&format!("reconstruct -q {scan} --projection-range {range} --output one-{turn}"));
        assert!(lab.bytes(&name) == lab.bytes(&format!("one-{turn}")), "{turn}");
        // the record is that of a run, and repeats it
        assert!(!lab.read_text(&format!("{name}/fbp-run.toml")).contains("every"));
        lab.ok(&format!("reconstruct -q --config {name}/fbp-run.toml --output again-{turn}"));
        assert!(lab.bytes(&name) == lab.bytes(&format!("again-{turn}")), "{turn}");
    }
    // only what is wanted, and with what is left out
    lab.ok(&format!("reconstruct -q {scan} --every 180 --overlap 90 --turns 1..6:2 --exclude 70,75 --output some"));
    assert_eq!(lab.files("some").len(), 3 * ROWS);
    for (window, first) in [(1, 30), (3, 90), (5, 150)] {
        let range = format!("--projection-range {first}..{} --exclude 70,75", first + 60);
        lab.ok(&format!("reconstruct -q {scan} {range} --output part-{window}"));
        assert!(lab.bytes(&format!("some/t_00{window}")) == lab.bytes(&format!("part-{window}")), "{window}");
    }
    // windows of every second projection begin at the first of them
    lab.ok(&format!("reconstruct -q {scan} --every 180 --projection-range 3..:2 --turns 1 --output odd"));
    lab.ok(&format!("reconstruct -q {scan} --projection-range 63..122:2 --output odd-1"));
    assert!(lab.bytes("odd/t_001") == lab.bytes("odd-1"));
}

/// With fields, steps and a search of the axis: one axis for all, whichever windows are wanted.
#[test]
fn one_axis_is_found_for_all_windows() {
    let lab = Lab::new();
    lab.ok("phantom --size 64 --projections 270 --slices 9 --as projections --overall-angle 540 --photons 20000 \
            --scale 0.02 --center 29.25 --flats fl --darks da --output pr");
    let scan = "--projections pr --flats fl --darks da --overall-angle 540 --device cpu --stripes sorting:size=5 \
                --remove-outliers 3,500";
    let (_, err) = lab.ok(&format!("reconstruct {scan} --center auto --every 180 --output rec"));
    let axes: Vec<f64> = (0..3)
        .map(|turn| {
            let record: toml::Table = lab.read_text(&format!("rec/t_00{turn}/fbp-run.toml")).parse().unwrap();
            assert!(record["facts"]["scan"]["axis"]["uncertainty"].as_float().is_some());
            record["center"].as_str().map_or_else(|| record["center"].as_float().unwrap(), |c| c.parse().unwrap())
        })
        .collect();
    assert!(axes.iter().all(|axis| *axis == axes[0]) && (axes[0] - 29.25).abs() < 0.3, "{axes:?}");
    assert_eq!(err.matches(", found by ").count(), 1, "{err}");
    for turn in 0..3 {
        let range = format!("{}..{}", 90 * turn, 90 * (turn + 1));
        lab.ok(&format!("reconstruct -q {scan} --center {:?} --projection-range {range} --output one-{turn}", axes[0]));
        assert!(lab.bytes(&format!("rec/t_00{turn}")) == lab.bytes(&format!("one-{turn}")), "{turn}");
    }
    lab.ok(&format!("reconstruct -q {scan} --center auto --every 180 --turns 2 --output last"));
    assert!(lab.bytes("last/t_002") == lab.bytes("one-2"));
}

/// A golden-ratio scan by the number of projections, with angles modulo 180 degrees.
#[test]
fn interleaved_scans_are_divided_by_time() {
    let lab = Lab::new();
    let angles: Vec<f64> = (0..4 * 55).map(|i| f64::from(i) * 111.246_117_975 % 180.0).collect();
    lab.write("p", "p", &moving(&angles, 55));
    lab.numbers("a.txt", &angles);
    let scan = "--projections p --angles a.txt --device cpu";
    lab.ok(&format!("reconstruct -q {scan} --every 55p --output rec"));
    for (turn, place) in PLACES.into_iter().enumerate() {
        let slices = lab.read(&format!("rec/t_00{turn}"));
        assert!(off(&slices.pages[0], 0, place) < 0.06, "{turn}: {}", off(&slices.pages[0], 0, place));
        let range = format!("{}..{}", 55 * turn, 55 * (turn + 1));
        lab.ok(&format!("reconstruct -q {scan} --projection-range {range} --output one-{turn}"));
        assert!(lab.bytes(&format!("rec/t_00{turn}")) == lab.bytes(&format!("one-{turn}")), "{turn}");
    }
    let refused = |flags: &str, words: &[&str]| lab.fails(&format!("reconstruct {scan} {flags} --output no"), 2, words);
    refused("--every 180", &["--every", "turn back at projection", "610p"]);
}

/// Shards, resuming, single files, and what is written beside slices.
#[test]
fn windows_are_resumed_shared_and_planned() {
    let lab = Lab::new();
    let scan = turns(&lab);
    let flags = format!("{scan} --every 360 --center 23.5");
    lab.ok(&format!("reconstruct -q {flags} --output whole --report run.json --report run.html --sections s.png"));
    for shard in ["0/2", "1/2"] {
        lab.ok(&format!("reconstruct -q {flags} --output shared --shard {shard} --histogram h.json"));
    }
    let same = |lab: &Lab| {
        for window in ["t_000", "t_001"] {
            assert!(lab.bytes(&format!("shared/{window}")) == lab.bytes(&format!("whole/{window}")), "{window}");
        }
    };
    same(&lab);
    for window in ["t_000", "t_001"] {
        assert_eq!(lab.files(&format!("shared/{window}")).len(), ROWS);
        let report: Value = serde_json::from_str(&lab.read_text(&format!("run-{window}.json"))).unwrap();
        assert_eq!((&report["projections"], &report["slices"]), (&120.into(), &ROWS.into()));
        for file in [format!("run-{window}.html"), format!("s-{window}.png"), format!("h-{window}-1of2.json")] {
            assert!(lab.path(&file).is_file(), "{file}");
        }
    }
    // what is missing is done again
    std::fs::remove_file(lab.path("shared/t_001/slice_00001.tif")).unwrap();
    let (_, err) = lab.ok(&format!("reconstruct {flags} --output shared --resume"));
    assert!(err.contains("t_000: --resume: 3 of 3 slices are kept"), "{err}");
    assert!(err.contains("t_001: --resume: 2 of 3 slices are kept; done now: 1 missing"), "{err}");
    same(&lab);
    let output = lab.run(&format!("reconstruct {flags} --output shared"));
    assert_eq!(output.status.code(), Some(5));
    // one file for each window
    lab.ok(&format!("reconstruct -q {flags} --output one.npy"));
    for window in ["t_000", "t_001"] {
        assert!(lab.read(&format!("one-{window}.npy")) == lab.read(&format!("whole/{window}")));
    }
    let (out, _) = lab.ok(&format!("reconstruct {flags} --output plan --dry-run"));
    let lines: Vec<&str> = out.lines().take(3).collect();
    assert_eq!(
        lines,
        [
            "windows         2 windows of 360 degrees",
            "t_000           projections 0..120, 0.00 to 357.00 degrees, plan/t_000/",
            "t_001           projections 120..240, 360.00 to 717.00 degrees, plan/t_001/",
        ]
    );
    assert!(out.contains("120 projections") && !lab.path("plan").exists(), "{out}");
    // a run file may ask for windows
    lab.ok(&format!("reconstruct -q {flags} --turns 1 --output saved --save-config run.toml"));
    lab.ok("reconstruct -q --config run.toml --output by-file");
    assert!(lab.bytes("by-file/t_001") == lab.bytes("whole/t_001"));
}

#[test]
fn windows_that_there_are_not_are_refused() {
    let lab = Lab::new();
    let scan = turns(&lab);
    for (flags, words) in [
        ("--every 1000", &["--every: 1000 degrees are more than the scan has, 720.0 degrees"][..]),
        ("--every 15", &["--every: 15 degrees have 5 projections", "a window needs 8"]),
        ("--every 180 --overlap 179", &["--overlap"]),
        ("--every 180 --overlap 200", &["--overlap: 200 degrees are not less than --every, 180 degrees"]),
        ("--every 180 --overlap 20p", &["--overlap", "both in degrees"]),
        ("--every x", &["--every: `x` is neither"]),
        ("--every 180 --turns 3..5", &["--turns", "4 windows"]),
        ("--overlap 20", &["--overlap: needs --side-by-side or --every"]),
        ("--turns 2", &["--turns: needs --every"]),
        ("--every 180 --exclude 60..120", &["window t_001", "--exclude: no projections are left"]),
        ("--every 180 --size 0", &["--size"]),
    ] {
        lab.fails(&format!("reconstruct {scan} {flags} --output no"), 2, words);
    }
    // a gap in a window is a doubt, which is named with it
    let (_, err) = lab.ok(&format!("reconstruct {scan} --every 180 --exclude 70..80 --output gap"));
    assert!(err.contains("t_001: warning: angles cover 150.0 of 180 degrees"), "{err}");
    assert_eq!(err.matches("warning: ").count(), 1, "{err}");
    lab.fails(
        &format!("reconstruct {scan} --every 180 --turns 1 --exclude 70..80 --strict --output strict"),
        3,
        &["missing-angles"],
    );
    // others do not divide scans
    for command in ["batch p", "trials --vary center=22,23"] {
        let flags = if command.starts_with("batch") { "--overall-angle 720" } else { scan };
        lab.fails(&format!("{command} {flags} --every 180 --output no"), 2, &["--every: divides one scan"]);
    }
}
