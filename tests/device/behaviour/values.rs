//! Fields, units, masks, and values as they are stored.

use super::{json, same_slices};
use crate::support::cli::{Lab, SMALL, farthest};

#[test]
fn fields_are_used() {
    let lab = Lab::new();
    // dark 20, beam 1000 before and 2000 after the scan
    let turned = SMALL.sinograms().transposed();
    let counts = |beam: f32, dark: f32| turned.map(|v| dark + beam * (-0.02 * v).exp());
    lab.write("raw", "p", &counts(1000.0, 0.0));
    lab.write("dark-raw", "p", &counts(1000.0, 20.0));
    lab.write("plain", "p", &turned.map(|v| 0.02 * v));
    lab.write("transmission", "p", &turned.map(|v| (-0.02 * v).exp()));
    let mut drift = counts(1000.0, 0.0);
    for (number, page) in drift.pages.iter_mut().enumerate() {
        page.iter_mut().for_each(|v| *v *= 1.0 + number as f32 / 15.0);
    }
    lab.write("drift", "p", &drift);
    for (name, values) in [
        ("flats", vec![900.0, 1100.0]),
        ("flats2", vec![2000.0]),
        ("median", vec![1000.0, 65000.0, 1000.0]),
        ("dark-flats", vec![1020.0]),
        ("darks", vec![19.0, 21.0]),
        ("no-darks", vec![0.0]),
    ] {
        for (number, value) in values.into_iter().enumerate() {
            lab.page(&format!("{name}/f_{number}.tif"), 32, &[value; 96]);
        }
    }
    let (_, err) = lab.ok("reconstruct --projections raw --flats flats -o noted");
    assert!(err.contains("no --darks"), "{err}");
    let reference = lab.slices("--projections plain", "plain-out");
    for (number, args) in [
        "raw --flats flats",
        "raw --flats flats --darks no-darks",
        "raw --flats median --field-mode median",
        "dark-raw --flats dark-flats --darks darks",
        "drift --flats flats --flats2 flats2",
        "transmission --minus-log",
        "plain --no-minus-log",
    ]
    .into_iter()
    .enumerate()
    {
        let slices = lab.slices(&format!("--projections {args}"), &format!("r{number}"));
        let far = farthest(&slices, &reference);
        assert!(far < 2e-4, "{args}: {far}");
    }
    same_slices(&lab, "--projections raw --flats flats", "--projections raw --flats flats --darks no-darks");
    // without the logarithm it is another picture
    let linear = lab.slices("--projections raw --flats flats --no-minus-log", "linear");
    assert!(farthest(&linear, &reference) > 0.5);
}

#[test]
fn counted_photons_give_the_phantom_back() {
    let lab = Lab::new();
    lab.ok("phantom --size 64 --projections 100 --slices 4 --kind asymmetric --as projections --photons 5e4 \
         --flats flats --darks darks --output proj --truth truth.tif");
    lab.ok("phantom --size 64 --projections 100 --slices 4 --kind asymmetric --output sin --truth clean.tif");
    let nrmse = |input: &str, truth: &str| {
        lab.ok(&format!("reconstruct -q {input} --filter hamming --overwrite -o r"));
        let (out, _) = lab.ok(&format!("compare r {truth} --mask 0.9 --json"));
        json(&out)["nrmse"].as_f64().unwrap()
    };
    // what is left without noise is sharp edges in few pixels
    let clean = nrmse("--sinograms sin", "clean.tif");
    let counted = |args: &str| nrmse(&format!("--projections proj {args}"), "truth.tif");
    let good = counted("--flats flats --darks darks");
    let median = counted("--flats flats --darks darks --field-mode median");
    assert!(clean < 0.4 && good < 1.1 * clean && median < 1.1 * clean, "{clean} {good} {median}");
    assert!(counted("--flats flats") > good);
    assert!(counted("") > 10.0);
}

#[test]
fn units_and_masks() {
    let lab = Lab::small();
    let plain = lab.slices("--sinograms sin", "plain");
    for (size, factor) in [("0.5um", 2.0), ("4mm", 0.25), ("0.125", 8.0)] {
        let scaled = lab.slices(&format!("--sinograms sin --pixel-size {size}"), &format!("by{factor}"));
        assert!(scaled == plain.map(|v| v * factor), "{size}");
    }
    for (flag, radius) in [("--mask", 16.0), ("--mask 0.5", 8.0)] {
        let masked = lab.slices(&format!("--sinograms sin {flag}"), &format!("mask{radius}"));
        let (mut inside, mut outside) = (0, 0);
        for (masked, plain) in masked.pages.iter().zip(&plain.pages) {
            for (i, (&m, &p)) in masked.iter().zip(plain).enumerate() {
                let (x, y) = ((i % 32) as f64 - 15.5, (i / 32) as f64 - 15.5);
                let is_inside = x * x + y * y <= radius * radius;
                assert_eq!(m, if is_inside { p } else { 0.0 });
                *(if is_inside { &mut inside } else { &mut outside }) += 1;
            }
        }
        assert!(inside > 100 && outside > 100);
    }
    // the mask is the full slice's
    let part = lab.slices("--sinograms sin --mask 0.5 --roi 0,0,8,8", "corner");
    assert!(part.pages.iter().flatten().all(|&v| v == 0.0));
}

#[test]
fn sample_types_hold_the_same_values() {
    let lab = Lab::small();
    let plain = lab.slices("--sinograms sin", "plain");
    let half = lab.slices("--sinograms sin --dtype f16", "f16");
    for (&h, &p) in half.pages.iter().flatten().zip(plain.pages.iter().flatten()) {
        assert!((h - p).abs() <= p.abs() / 2048.0 + 1e-7, "{h} {p}");
    }
    for (dtype, largest) in [("u16", 65535.0f32), ("u8", 255.0)] {
        let stored = lab.slices(&format!("--sinograms sin --dtype {dtype} --range -1.5,2.5"), dtype);
        let step = 4.0 / largest;
        for (&s, &p) in stored.pages.iter().flatten().zip(plain.pages.iter().flatten()) {
            let value = s * step - 1.5;
            assert!(s.fract() == 0.0 && (value - p.clamp(-1.5, 2.5)).abs() <= 0.501 * step + 1e-6, "{value} {p}");
        }
    }
    // integers as input: what is read is what is stored
    let from_integers = lab.slices("--sinograms u8 --filter none", "again");
    assert_eq!(from_integers.pages.len(), 3);
}

#[test]
fn outputs_of_every_shape_hold_the_same_slices() {
    let lab = Lab::small();
    let plain = lab.slices("--sinograms sin", "plain");
    assert_eq!(lab.files("plain"), ["slice_00000.tif", "slice_00001.tif", "slice_00002.tif"]);
    for output in ["all.tif", "deep/er/all.tiff", "pattern/r-%03i.tif"] {
        assert!(lab.slices("--sinograms sin", output) == plain, "{output}");
    }
    assert_eq!(lab.files("pattern"), ["r-000.tif", "r-001.tif", "r-002.tif"]);
    // what goes beside the slices may go into directories that the run makes
    lab.ok("reconstruct -q --sinograms sin -o new/slices --report new/r.json --preview new/slices/p.png");
    assert!(lab.path("new/r.json").is_file() && lab.path("new/slices/p.png").is_file());
    lab.ok("phantom --size 8 --projections 4 -o made/sin --truth made/truth.tif");
    assert!(lab.path("made/truth.tif").is_file());
    // others may lie beside a pattern's files
    lab.ok("reconstruct -q --sinograms sin -o pattern/q%i.tif");
    assert_eq!(lab.files("pattern").len(), 6);
    // overwritten only when asked for, and then in full
    lab.ok("reconstruct -q --sinograms sin --pixel-size 0.5 --overwrite -o all.tif");
    assert!(lab.read("all.tif") == plain.map(|v| 2.0 * v));
}
