//! Flat fields that move, and beams that change: the double flat field.

use crate::support::cli::{Lab, Pages, farthest};

const BINS: usize = 64;

/// Relative sensitivity of a pixel in the scan that the flats do not show.
fn pattern(row: usize, bin: usize) -> f32 {
    1.0 + 0.12 * ((row * 7 + bin * 13) as f32 * 1.7).sin() * f32::from(u8::from((row * 5 + bin * 3) % 4 == 0))
}

/// Projections of counts with flats and darks, and `bad`, the same with a pattern that no flat has.
fn scan(lab: &Lab) {
    lab.ok("phantom --size 64 --projections 90 --slices 9 --as projections --photons 50000 --scale 0.03 --flats fl \
         --darks da --output good");
    let mut projections = lab.read("good");
    let dark = lab.read("da").pages[0].clone();
    for page in &mut projections.pages {
        for (at, value) in page.iter_mut().enumerate() {
            *value = dark[at] + (*value - dark[at]) * pattern(at / BINS, at % BINS);
        }
    }
    lab.write("bad", "proj", &projections);
}

/// Root mean square difference of all slices.
fn off(a: &Pages, b: &Pages) -> f64 {
    let pairs = a.pages.iter().flatten().zip(b.pages.iter().flatten());
    let (sum, count) = pairs.fold((0.0, 0), |(sum, count), (a, b)| (sum + f64::from(a - b).powi(2), count + 1));
    (sum / f64::from(count)).sqrt()
}

#[test]
fn a_pattern_that_flats_do_not_show_leaves_no_rings() {
    let lab = Lab::new();
    scan(&lab);
    let fields = "--flats fl --darks da";
    let good = lab.slices(&format!("--projections good {fields}"), "good-slices");
    let rings = off(&lab.slices(&format!("--projections bad {fields}"), "rings"), &good);
    let left = off(&lab.slices(&format!("--projections bad {fields} --double-flat 2"), "left"), &good);
    assert!(left < 0.2 * rings, "{left} of {rings}");
}

/// Results do not depend on shards, rows, memory or chunks.
#[test]
fn a_double_flat_does_not_depend_on_the_share() {
    let lab = Lab::new();
    scan(&lab);
    lab.profile_with_steps("device.toml", "");
    for flags in ["--double-flat", "--double-flat 1.5", "--double-flat 1.5 --tilt 0.8 --remove-outliers 3,500"] {
        for profile in ["cpu", "device.toml"] {
            let args = format!("reconstruct --projections bad --flats fl --darks da {flags} --profile {profile}");
            lab.ok(&format!("{args} --output whole --overwrite"));
            let whole = lab.bytes("whole");
            assert_eq!(whole.len(), 9);
            for shard in 0..3 {
                lab.ok(&format!("{args} --output shards --shard {shard}/3"));
            }
            assert!(lab.bytes("shards") == whole, "{flags}, {profile}: shards");
            std::fs::remove_dir_all(lab.path("shards")).unwrap();
            lab.ok(&format!("{args} --output some --rows 3..6"));
            let some = lab.bytes("some");
            assert!(some.iter().all(|slice| whole.contains(slice)) && some.len() == 3, "{flags}, {profile}: rows");
            std::fs::remove_dir_all(lab.path("some")).unwrap();
        }
    }
}

/// Projections that are left out are not part of the mean: the same slices as from the others alone.
#[test]
fn a_double_flat_is_of_the_projections_that_are_used() {
    let lab = Lab::new();
    scan(&lab);
    let all = lab.read("bad");
    let pages = all.pages.iter().enumerate().filter(|(p, _)| *p >= 30).map(|(_, page)| page.clone()).collect();
    lab.write("later", "proj", &Pages { width: all.width, pages });
    let flags = "--flats fl --darks da --double-flat";
    let range = lab.slices(&format!("--projections bad {flags} --projection-range 30..90"), "range");
    let angles = "--start-angle 60 --overall-angle 120";
    let alone = lab.slices(&format!("--projections later {flags} {angles}"), "alone");
    assert!(farthest(&range, &alone) < 1e-6, "{}", farthest(&range, &alone));
}

#[test]
fn a_double_flat_is_told() {
    let lab = Lab::new();
    scan(&lab);
    let args = "--projections good --flats fl --darks da --double-flat 12.5";
    let (said, _) = lab.ok(&format!("reconstruct {args} --dry-run"));
    assert!(said.contains("double-flat 12.5"), "{said}");
    lab.ok(&format!("reconstruct {args} --output first --save-config run.toml"));
    assert!(lab.read_text("run.toml").contains("double-flat = \"12.5\""), "{}", lab.read_text("run.toml"));
    lab.ok("reconstruct --config run.toml --output again");
    assert!(lab.bytes("again") == lab.bytes("first"));
    // who adds up the projections
    lab.profile_with_steps("device.toml", "");
    for (profile, by_device) in [("cpu", false), ("device.toml", true)] {
        let (_, err) = lab.ok(&format!("reconstruct {args} --profile {profile} --output {profile}-slices -v"));
        assert_eq!(err.contains(" adds up the projections"), by_device, "{profile}: {err}");
    }
    lab.fails("reconstruct --projections good --flats fl --double-flat=-1 --output out", 2, &["--double-flat: `-1`"]);
    lab.fails(
        "reconstruct --double-flat good --projections good --flats fl --output out",
        2,
        &["--double-flat", "SIGMA"],
    );
    lab.fails("reconstruct --projections good --double-flat --output out", 2, &["--flats or --minus-log"]);
}

/// The beam of a frame: stripes that move, and a slope that changes.
fn beam(frame: usize, at: usize) -> f64 {
    let (x, z) = ((at % BINS) as f64, (at / BINS) as f64);
    let phase = (frame as f64 * 2.399).sin() * 1.3;
    let slope = 0.05 * (frame as f64 * 1.7).cos();
    20_000.0
        * (1.0 + 0.1 * (1.1 * z + 0.7 * x + phase).sin() + 0.06 * (0.8 * x - 0.9 * z).cos() + slope * (x / 32.0 - 1.0))
}

/// Noise of a count, as of photons.
fn noise(frame: usize, at: usize) -> f64 {
    let uniform = |seed: f64| (((frame * 31 + at) as f64 + seed) * 12.9898).sin() * 43758.5453 % 1.0;
    uniform(0.1) + uniform(0.7) + uniform(3.3)
}

const FLATS: usize = 24;

/// A beam that changes from frame to frame: `lines`, and their counts in `counts` with `flats` and `darks`.
fn changing(lab: &Lab) {
    lab.ok("phantom --size 64 --projections 60 --slices 9 --as projections --scale 0.03 --output lines");
    let lines = lab.read("lines");
    let count = |frame: usize, at: usize, line: f32| {
        (100.0 + beam(frame, at) * f64::from(-line).exp() + 20.0 * noise(frame, at)) as f32
    };
    let pages = lines.pages.iter().enumerate();
    let counts = pages.map(|(p, page)| page.iter().enumerate().map(|(at, line)| count(p, at, *line)).collect());
    lab.write("counts", "proj", &Pages { width: BINS, pages: counts.collect() });
    let flat = |frame: usize| (0..9 * BINS).map(|at| count(1000 + frame, at, 0.0)).collect();
    lab.write("flats", "flat", &Pages { width: BINS, pages: (0..FLATS).map(flat).collect() });
    lab.write("flats2", "flat", &Pages { width: BINS, pages: (FLATS..2 * FLATS).map(flat).collect() });
    lab.write("darks", "dark", &Pages { width: BINS, pages: vec![vec![100.0; 9 * BINS]; 2] });
}

const CHANGING: &str = "--projections counts --flats flats --darks darks";

#[test]
fn components_follow_a_beam_that_changes() {
    let lab = Lab::new();
    changing(&lab);
    let truth = lab.slices("--projections lines", "truth");
    let mean = off(&lab.slices(CHANGING, "mean"), &truth);
    for (number, (flags, part)) in [
        ("--eigen-flats", 0.2),
        ("--eigen-flats 3", 0.2),
        ("--eigen-flats --normalize-air 2,2", 0.2),
        ("--eigen-flats --normalize-air 0,0,2,9", 0.2),
        ("--eigen-flats --flats2 flats2", 0.2),
    ]
    .into_iter()
    .enumerate()
    {
        let left = off(&lab.slices(&format!("{CHANGING} {flags}"), &format!("eigen{number}")), &truth);
        assert!(left < part * mean, "{flags}: {left} of {mean}");
    }
    let (_, err) = lab.ok(&format!("reconstruct {CHANGING} --eigen-flats --output said"));
    assert!(err.contains("note: --eigen-flats: components of the flats by parallel analysis: "), "{err}");
    assert!(err.contains("weights by least total variation"), "{err}");
}

/// Without components, no bit differs from the mean.
#[test]
fn no_components_are_the_mean() {
    let lab = Lab::new();
    changing(&lab);
    lab.profile_with_steps("device.toml", "");
    for (number, flags) in ["", "--flats2 flats2 --remove-outliers 3,9000", "--normalize-air 2,2"].iter().enumerate() {
        for profile in ["cpu", "device.toml"] {
            let args = format!("reconstruct {CHANGING} {flags} --profile {profile}");
            lab.ok(&format!("{args} --output mean{number}{profile}"));
            lab.ok(&format!("{args} --eigen-flats 0 --output none{number}{profile}"));
            // the run key in the files is another one
            let [mean, none] = ["mean", "none"].map(|name| lab.read(&format!("{name}{number}{profile}/*.tif")).pages);
            assert!(mean == none, "{flags}, {profile}");
        }
    }
}

#[test]
fn components_do_not_depend_on_the_share() {
    let lab = Lab::new();
    changing(&lab);
    lab.profile_with_steps("device.toml", "");
    for flags in [
        "--eigen-flats",
        "--eigen-flats 2 --normalize-air 2,2 --tilt 0.8",
        "--eigen-flats 2 --flats2 flats2 --double-flat 2",
    ] {
        let mut both = Vec::new();
        for profile in ["cpu", "device.toml"] {
            let args = format!("reconstruct {CHANGING} {flags} --profile {profile}");
            both.push(lab.slices(&format!("{CHANGING} {flags} --profile {profile} --overwrite"), "whole"));
            let whole = lab.bytes("whole");
            for shard in 0..2 {
                lab.ok(&format!("{args} --output shards --shard {shard}/2"));
            }
            assert!(lab.bytes("shards") == whole, "{flags}, {profile}: shards");
            std::fs::remove_dir_all(lab.path("shards")).unwrap();
            lab.ok(&format!("{args} --output some --rows 3..6"));
            assert!(lab.bytes("some").iter().all(|slice| whole.contains(slice)), "{flags}, {profile}: rows");
            std::fs::remove_dir_all(lab.path("some")).unwrap();
        }
        assert!(farthest(&both[1], &both[0]) < 2e-5, "{flags}: {}", farthest(&both[1], &both[0]));
    }
}

#[test]
fn components_that_cannot_be_are_refused() {
    let lab = Lab::new();
    changing(&lab);
    for (flags, code, words) in [
        ("--eigen-flats 17", 2, &["--eigen-flats: `17`", "0 to 16"][..]),
        ("--eigen-flats x", 2, &["`x` is not a number of components"]),
        ("--eigen-flats --field-mode median", 2, &["--field-mode median"]),
        ("--eigen-flats --normalize-air 60,5", 2, &["--normalize-air"]),
        ("--eigen-flats --normalize-air 0,0,5,10", 2, &["--normalize-air"]),
    ] {
        lab.fails(&format!("reconstruct {CHANGING} {flags} --output out"), code, words);
    }
    lab.fails("reconstruct --projections counts --eigen-flats --minus-log --output out", 2, &["there are no flats"]);
    let few = "--projections counts --flats darks --eigen-flats 2 --output out";
    lab.fails(&format!("reconstruct {few}"), 3, &["2 flats vary in at most 1 components", "asks for 2"]);
}
