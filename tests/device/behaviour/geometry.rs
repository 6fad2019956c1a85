//! Amplitude, orientation and order of slices; angles and axes.

use super::same_slices;
use crate::support::cli::{Lab, Pages, SMALL, Scan, difference, farthest};

#[test]
fn slices_have_the_amplitude_and_orientation_of_the_phantom() {
    let lab = Lab::new();
    let scan = Scan { width: 64, projections: 96, slices: 2, overall: 180.0 };
    lab.write("sin", "s", &scan.sinograms());
    lab.write("proj", "p", &scan.sinograms().transposed());
    let truth = scan.truth();
    let side = scan.width;
    let kept: Vec<usize> = (0..side * side)
        .filter(|i| {
            let (x, y) = ((i % side) as f64 - 31.5, (i / side) as f64 - 31.5);
            x * x + y * y < 30.0 * 30.0
        })
        .collect();
    // slope of the slice over the truth, and rms of what is left
    let fit = |slice: &[f32], truth: &dyn Fn(usize) -> f32| {
        let (mut st, mut tt) = (0.0, 0.0);
        for &i in &kept {
            st += f64::from(slice[i]) * f64::from(truth(i));
            tt += f64::from(truth(i)).powi(2);
        }
        let left: f64 = kept.iter().map(|&i| f64::from(slice[i] - truth(i)).powi(2)).sum();
        (st / tt, (left / tt).sqrt())
    };
    for (number, args) in [
        "--sinograms sin",
        "--projections proj",
        "--sinograms sin --mode fast",
        "--sinograms sin --interpolation nearest",
        "--sinograms sin --profile default",
    ]
    .into_iter()
    .enumerate()
    {
        let slices = lab.slices(args, &format!("r{number}"));
        for (slice, truth) in slices.pages.iter().zip(&truth.pages) {
            let (slope, left) = fit(slice, &|i| truth[i]);
            assert!((slope - 1.0).abs() < 0.03 && left < 0.3, "{args}: slope {slope}, rest {left}");
            for (flip, name) in [(1, "left-right"), (2, "upside down"), (4, "transposed"), (3, "turned")] {
                let (_, other) = fit(slice, &|i| {
                    let (mut x, mut y) = (i % side, i / side);
                    if flip & 4 > 0 {
                        (x, y) = (y, x);
                    }
                    x = if flip & 1 > 0 { side - 1 - x } else { x };
                    y = if flip & 2 > 0 { side - 1 - y } else { y };
                    truth[y * side + x]
                });
                assert!(other > 1.5 * left, "{args}: {name} fits, too: {other} against {left}");
            }
        }
    }
}

#[test]
fn every_width_count_and_group_gives_the_same_slices() {
    let lab = Lab::new();
    for width in [15, 16, 17, 33] {
        let scan = Scan { width, projections: 12, slices: 7, overall: 180.0 };
        let sin = format!("sin{width}");
        lab.write(&sin, "s", &scan.sinograms());
        // one width slice by slice in runs of their own, the others in one run
        let all = width == 17;
        let singles = if all {
            let single = |k| {
                let args = format!("--sinograms {sin}/s_{k:04}.tif --slices-per-pass 1");
                lab.slices(&args, &format!("{sin}-{k}")).pages.remove(0)
            };
            (0..7).map(single).collect()
        } else {
            lab.slices(&format!("--sinograms {sin} --slices-per-pass 1"), &format!("{sin}-ones")).pages
        };
        for pass in ["1", "2", "4", "8", "16", "auto"] {
            for count in [1, 2, 3, 5, 7] {
                if !(all || (["4", "16"].contains(&pass) && [3, 7].contains(&count))) {
                    continue;
                }
                let args = format!("--sinograms {sin} --rows 0..{count} --slices-per-pass {pass}");
                let slices = lab.slices(&args, &format!("{sin}-{pass}-{count}"));
                assert_eq!(slices.pages.len(), count);
                for (slice, single) in slices.pages.iter().zip(&singles) {
                    assert!(slice.iter().any(|&v| v != 0.0), "{args}");
                    let far = difference(slice, single);
                    assert!(far <= 1e-6, "{args}: {far}");
                }
            }
        }
    }
}

#[test]
fn files_are_taken_in_the_order_of_their_numbers() {
    let lab = Lab::new();
    let (sinogram, numbers) = (SMALL.sinograms().pages.remove(0), [0, 1, 2, 10, 11]);
    for number in numbers {
        let values: Vec<f32> = sinogram.iter().map(|v| v * (1 + number) as f32).collect();
        lab.page(&format!("sin/s_{number}.tif"), 32, &values);
    }
    let (_, err) = lab.ok("reconstruct --sinograms sin --slices-per-pass 1 -o r");
    assert!(err.contains("not consecutive"), "{err}");
    let slices = lab.read("r");
    let expected = numbers.map(|n| slices.pages[0].iter().map(|v| v * (1 + n) as f32).collect());
    let expected = Pages { width: 32, pages: expected.into() };
    assert!(farthest(&slices, &expected) < 1e-6);
    assert_eq!(lab.files("r").last().unwrap(), "slice_00004.tif");
    // projections, too
    lab.text("angles.txt", &numbers.map(|n| format!("{}\n", n as f64 * 15.0)).concat());
    let rows = Pages { width: 32, pages: numbers.map(|n| vec![n as f32; 32 * 3]).into() };
    for (page, number) in rows.pages.iter().zip(numbers) {
        lab.page(&format!("proj/p{number}.tif"), 32, page);
    }
    lab.write_single("proj.tif", &rows);
    same_slices(&lab, "--projections proj --angles angles.txt", "--projections proj.tif --angles angles.txt");
}

#[test]
fn excluded_projections_have_no_influence() {
    let lab = Lab::small();
    let out = [0, 3, 10, 11, 15];
    let used: Vec<usize> = (0..16).filter(|p| !out.contains(p)).collect();
    let angles: Vec<f64> = used.iter().map(|&p| SMALL.angles()[p]).collect();
    lab.numbers("all.txt", &SMALL.angles());
    lab.numbers("used.txt", &angles);
    lab.numbers("shifts.txt", &(0..16).map(|p| p as f64 / 8.0 - 1.0).collect::<Vec<_>>());
    lab.numbers("used-shifts.txt", &used.iter().map(|&p| p as f64 / 8.0 - 1.0).collect::<Vec<_>>());
    let turned = SMALL.sinograms().transposed();
    let fewer = Pages { width: 32, pages: used.iter().map(|&p| turned.pages[p].clone()).collect() };
    lab.write("fewer", "p", &fewer);
    lab.write("fewer-sin", "s", &fewer.transposed());
    let exclude = "--exclude 0,3,10..=11,15..";
    for [all, fewer] in [["--projections proj", "--projections fewer"], ["--sinograms sin", "--sinograms fewer-sin"]] {
        let fewer = format!("{fewer} --angles used.txt");
        same_slices(&lab, &format!("{all} {exclude}"), &fewer);
        same_slices(&lab, &format!("{all} {exclude} --angles all.txt"), &fewer);
        same_slices(
            &lab,
            &format!("{all} {exclude} --center-shifts shifts.txt"),
            &format!("{fewer} --center-shifts used-shifts.txt"),
        );
    }
}

#[test]
fn angles_and_axes() {
    let lab = Lab::small();
    lab.numbers("angles.txt", &SMALL.angles());
    lab.numbers("zero.txt", &[0.0; 16]);
    lab.numbers("half.txt", &[0.5; 16]);
    lab.numbers("turned.txt", &SMALL.angles().iter().map(|a| a + 30.0).collect::<Vec<_>>());
    let sin = "--sinograms sin";
    same_slices(&lab, sin, "--sinograms sin --overall-angle 180 --start-angle 0 --center 15.5");
    same_slices(&lab, sin, "--sinograms sin --center-shifts zero.txt");
    same_slices(&lab, "--sinograms sin --center 16", "--sinograms sin --center-shifts half.txt");
    let plain = lab.slices(sin, "plain");
    let listed = lab.slices("--sinograms sin --angles angles.txt", "listed");
    assert!(farthest(&listed, &plain) < 1e-6);
    let turned = lab.slices("--sinograms sin --angles turned.txt", "turned");
    let started = lab.slices("--sinograms sin --start-angle 30", "started");
    assert!(farthest(&turned, &started) < 1e-6 && farthest(&turned, &plain) > 0.05);
    // a whole turn sees everything twice
    let full = Scan { projections: 32, overall: 360.0, ..SMALL };
    lab.write("whole", "s", &full.sinograms());
    let turn = lab.slices("--sinograms whole --overall-angle 360", "turn");
    assert!(farthest(&turn, &plain) < 1e-4, "{}", farthest(&turn, &plain));
    // an axis elsewhere, in data and in flag
    lab.ok("phantom --size 32 --bins 48 --projections 48 --slices 1 --center 20.25 --kind asymmetric --output off");
    lab.ok("phantom --size 32 --bins 48 --projections 48 --slices 1 --kind asymmetric --output mid");
    let off = lab.slices("--sinograms off --center 20.25 --size 32", "off-out");
    let mid = lab.slices("--sinograms mid --size 32", "mid-out");
    assert!(farthest(&off, &mid) < 0.15, "{}", farthest(&off, &mid));
    let wrong = lab.slices("--sinograms off --size 32", "wrong-out");
    assert!(farthest(&wrong, &mid) > 0.5);
    // the guess is called one
    let (_, err) = lab.ok("reconstruct --sinograms sin -o guess");
    assert!(err.contains("15.5") && err.contains("--center"), "{err}");
    let (_, err) = lab.ok("reconstruct --sinograms sin --center 15.5 -o said");
    assert!(!err.contains("assumed to be in the middle"), "{err}");
}
