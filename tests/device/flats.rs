//! Flat fields that move, and beams that change: the double flat field.

use crate::support::cli::{Lab, Pages, farthest};

const BINS: usize = 64;

/// Relative sensitivity of a pixel in the scan that the flats do not show.
fn pattern(row: usize, bin: usize) -> f32 {
    1.0 + 0.12 * ((row * 7 + bin * 13) as f32 * 1.7).sin() * f32::from(u8::from((row * 5 + bin * 3) % 4 == 0))
}

/// Projections of counts with flats and darks, and `bad`, the same with a pattern that no flat has.
fn scan(lab: &Lab) {
    lab.ok(
        "phantom --size 64 --projections 90 --slices 9 --as projections --photons 100000 --scale 0.03 --flats fl \
         --darks da --output good",
    );
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
    assert!(left < 0.5 * rings, "{left} of {rings}");
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
    let flags = "--flats fl --darks da --double-flat --start-angle 60 --overall-angle 120";
    let range = lab.slices(&format!("--projections bad {flags} --projection-range 30..90"), "range");
    let alone = lab.slices(&format!("--projections later {flags}"), "alone");
    assert!(farthest(&range, &alone) < 1e-5, "{}", farthest(&range, &alone));
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
    lab.fails("reconstruct --projections good --flats fl --double-flat=-1 --output out", 2, &["--double-flat: `-1`"]);
    lab.fails("reconstruct --double-flat good --projections good --output out", 2, &["--double-flat", "SIGMA"]);
    lab.fails("reconstruct --projections good --double-flat --output out", 2, &["--flats or --minus-log"]);
}
