//! Scans that are not half a turn about the middle of an upright detector: extended fields of view, tilts, binning, some
//! of the projections.

use crate::support::cli::{Lab, Pages, SMALL, Scan, farthest};
use fbp::compare::images;
use fbp::geometry::{cos_sin_degrees, default_axis, even_angles};
use std::f64::consts::TAU;

/// A smooth sample of Gaussians, `[x, y, z, sigma, value]` in pixels from the middle of the volume, y upwards.
const BLOBS: [[f64; 5]; 7] = [
    [0.0, 0.0, 0.0, 9.0, 1.0],
    [22.0, 8.0, 3.0, 4.0, 0.8],
    [-25.0, 12.0, -4.0, 3.0, 1.2],
    [-38.0, -6.0, 1.0, 2.5, 1.5],
    [3.0, 41.0, -2.0, 3.0, 1.0],
    [12.0, -36.0, 5.0, 2.5, 1.4],
    [-16.0, -20.0, -6.0, 4.0, 0.9],
];

/// Line integral `s` bins from the axis, `z` rows below the middle, at an angle in degrees; blobs are that much higher and
/// lower than they are.
fn line(angle: f64, s: f64, z: f64, spread: f64) -> f64 {
    let (cos, sin) = cos_sin_degrees(angle);
    let blob = |[x, y, z0, sigma, value]: [f64; 5]| {
        let distance2 = (s - x * cos - y * sin).powi(2) + (z - spread * z0).powi(2);
        value * sigma * TAU.sqrt() * (-distance2 / (2.0 * sigma * sigma)).exp()
    };
    BLOBS.into_iter().map(blob).sum()
}

/// Slices of side `size` at so many rows.
fn volume(size: usize, rows: usize) -> Pages {
    let middle = default_axis(size);
    let pixel = |row: usize, i: usize| {
        let (x, y) = ((i % size) as f64 - middle, middle - (i / size) as f64);
        let z = row as f64 - default_axis(rows);
        let blob = |[x0, y0, z0, sigma, value]: [f64; 5]| {
            let distance2 = (x - x0).powi(2) + (y - y0).powi(2) + (z - z0).powi(2);
            value * (-distance2 / (2.0 * sigma * sigma)).exp()
        };
        BLOBS.into_iter().map(blob).sum::<f64>() as f32
    };
    Pages { width: size, pages: (0..rows).map(|row| (0..size * size).map(|i| pixel(row, i)).collect()).collect() }
}

/// Projections, one a page, by a detector that is turned by `tilt` degrees. A higher detector sees blobs over its height.
fn projections(bins: usize, rows: usize, center: f64, angles: &[f64], tilt: f64) -> Pages {
    distorted(bins, rows, center, angles, tilt, |at| at)
}

/// The same by optics that distort: `true_place` is where a pixel of the detector would be in a projection without
/// distortion, as `[bin, row]`.
fn distorted(
    bins: usize,
    rows: usize,
    center: f64,
    angles: &[f64],
    tilt: f64,
    true_place: impl Fn([f64; 2]) -> [f64; 2],
) -> Pages {
    let (sin, cos) = tilt.to_radians().sin_cos();
    let (middle, spread) = ([default_axis(bins), default_axis(rows)], (rows as f64 / ROWS as f64).max(1.0));
    let page = |&angle: &f64| {
        let pixel = |i: usize| {
            let [x, z] = true_place([(i % bins) as f64, (i / bins) as f64]);
            let (dx, dz) = (x - middle[0], z - middle[1]);
            line(angle, middle[0] - center + dx * cos - dz * sin, dx * sin + dz * cos, spread) as f32
        };
        (0..rows * bins).map(pixel).collect()
    };
    Pages { width: bins, pages: angles.iter().map(page).collect() }
}

/// Root mean square error over the standard deviation of the truth, of all slices.
fn error(slices: &Pages, truth: &Pages) -> f64 {
    assert_eq!((slices.width, slices.pages.len()), (truth.width, truth.pages.len()));
    let each = slices
        .pages
        .iter()
        .zip(&truth.pages)
        .map(|(a, b)| images(truth.width, a.len() / truth.width, None, a, b).unwrap().nrmse);
    each.fold(0.0, f64::max)
}

const SIDE: usize = 101;
const ROWS: usize = 15;

#[test]
fn extended_fields_reach_as_far_as_the_longer_side() {
    let truth = volume(SIDE, 1);
    for (number, center, start, count) in
        [(0, 18.3, 0.0, 420), (1, 50.6, -75.0, 421), (2, 12.0, 10.0, 400), (3, 24.5, 0.0, 400), (4, 59.75, 0.0, 630)]
    {
        let lab = Lab::new();
        let longer = f64::max(center, 69.0 - center);
        lab.write("p", "p", &projections(70, 1, center, &even_angles(start, 360.0, count), 0.0));
        let scan = format!("--projections p --overall-angle 360 --start-angle {start} --center {center}");
        let slices = lab.slices(&format!("{scan} --extended-field --size {SIDE}"), "r");
        // what no projection sees is left out
        let seen = |pages: &Pages| {
            let middle = default_axis(SIDE);
            let within = |i: usize| (i % SIDE) as f64 - middle;
            let cut = |page: &Vec<f32>| {
                let pixel = |(i, &v): (usize, &f32)| {
                    let (x, y) = (within(i), within(i / SIDE));
                    if x.hypot(y) < longer.min(middle) - 2.0 { v } else { 0.0 }
                };
                page.iter().enumerate().map(pixel).collect()
            };
            Pages { width: SIDE, pages: pages.pages.iter().map(cut).collect() }
        };
        let found = error(&seen(&slices), &seen(&truth));
        // a detector that sees all, half a turn
        let full = Lab::new();
        full.write("p", "p", &projections(SIDE, 1, 50.0, &even_angles(start, 180.0, count / 2), 0.0));
        let complete = full.slices(&format!("--projections p --start-angle {start} --center 50"), "r");
        let best = error(&seen(&complete), &seen(&truth));
        let without = lab.slices(&format!("{scan} --size {SIDE}"), "plain");
        println!("{number}: {found:.4}, complete {best:.4}, not extended {:.4}", error(&seen(&without), &seen(&truth)));
        assert!(found < 1.5 * best + 0.01, "{number}: {found} against {best}");
        assert!(error(&seen(&without), &seen(&truth)) > 5.0 * found);
    }
}

/// A few lost projections leave a gap, which costs little and is named with its size.
#[test]
fn extended_fields_bear_a_gap() {
    let truth = volume(SIDE, 1);
    let lab = Lab::new();
    lab.write("p", "p", &projections(70, 1, 18.3, &even_angles(0.0, 360.0, 360), 0.0));
    let scan = "--projections p --overall-angle 360 --center 18.3 --extended-field --size 101";
    let all = error(&lab.slices(scan, "all"), &truth);
    let (_, err) = lab.ok(&format!("reconstruct {scan} --exclude 100..=104 --output gap"));
    assert!(err.contains("angles cover 355.0 of 360 degrees: the largest gap leaves 5.0 degrees out"), "{err}");
    let gap = error(&lab.read("gap"), &truth);
    assert!(gap < all + 0.05, "{gap} against {all}");
    lab.fails(
        &format!("reconstruct {scan} --exclude 100..160 --output wide"),
        2,
        &["--extended-field", "61.00 degrees"],
    );
}

#[test]
fn extended_fields_do_not_depend_on_how_they_are_computed() {
    let lab = Lab::new();
    let pages = projections(70, ROWS, 20.25, &even_angles(0.0, 360.0, 180), 0.0);
    lab.write("p", "p", &pages);
    lab.write("s", "s", &pages.transposed());
    let scan = "--overall-angle 360 --center 20.25 --extended-field --slices-per-pass 4";
    let slices = lab.slices(&format!("--projections p {scan}"), "r");
    // the longer side is 48.75 bins
    assert_eq!(slices.width, 2 * 49 + 1);
    for (number, other) in [
        "--sinograms s",
        "--projections p --device-memory 3M",
        "--projections p --device cpu/2",
        "--projections p --shard 0/1",
    ]
    .iter()
    .enumerate()
    {
        assert!(lab.slices(&format!("{other} {scan}"), &format!("r{number}")) == slices, "{other}");
    }
    let some = lab.slices(&format!("--projections p {scan} --rows 5..8"), "some");
    assert!(some.pages == slices.pages[5..8]);
    // stripes are taken out of what the detector saw
    lab.slices(&format!("--projections p {scan} --stripes sorting:size=5"), "striped");
    let (out, _) = lab.ok(&format!("reconstruct --projections p {scan} --dry-run"));
    assert!(out.contains("extended from 70 to 99 bins, opposite projections share 40.5"), "{out}");
    // shifts of the axis, which the weights follow
    let shifts: Vec<f64> = (0..180).map(|p| f64::from(p % 3) - 1.0).collect();
    lab.numbers("shifts.txt", &shifts);
    let seen = |(angle, shift)| projections(70, ROWS, 20.25 + shift, &[angle], 0.0).pages.remove(0);
    let jittered = Pages { width: 70, pages: even_angles(0.0, 360.0, 180).into_iter().zip(shifts).map(seen).collect() };
    lab.write("j", "p", &jittered);
    let shifted = lab.slices(&format!("--projections j {scan} --center-shifts shifts.txt"), "shifted");
    let truth = volume(slices.width, ROWS);
    assert!(error(&shifted, &truth) < 1.5 * error(&slices, &truth), "{}", error(&shifted, &truth));
}

#[test]
fn the_axis_of_an_extended_field_is_found() {
    let lab = Lab::new();
    lab.write("p", "p", &projections(70, ROWS, 20.25, &even_angles(0.0, 360.0, 240), 0.0));
    let args = "--projections p --overall-angle 360 --center auto:overlap --extended-field";
    let (_, err) = lab.ok(&format!("reconstruct {args} --output r"));
    let found: f64 = err.split("centre ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((found - 20.25).abs() < 0.1, "{err}");
    assert!(error(&lab.read("r"), &volume(99, ROWS)) < 0.2);
    // a note on a whole turn far off the middle says what the flag would give
    for (output, center) in [("given", "20.25"), ("found", "auto:overlap")] {
        let args = format!("--projections p --overall-angle 360 --center {center} --output {output}");
        let (_, err) = lab.ok(&format!("reconstruct {args}"));
        assert!(err.contains("14.2 bins off the middle") && err.contains("--extended-field"), "{err}");
    }
}

#[test]
fn what_cannot_be_extended_is_refused() {
    let lab = Lab::small();
    for (flags, words) in [
        ("--extended-field", "needs --center"),
        ("--extended-field --center 8", "needs a 360-degree scan"),
        ("--extended-field --center 1.25 --overall-angle 360", "share 2.5 bins"),
        ("--extended-field --center 31 --overall-angle 360", "share 0.0 bins"),
        ("--center 40 --overall-angle 360", "outside the detector"),
    ] {
        lab.fails(&format!("reconstruct --projections proj {flags} --output out"), 2, &[words]);
    }
}

#[test]
fn the_tilt_of_a_detector_is_corrected() {
    let truth = volume(SIDE, ROWS);
    let angles = even_angles(0.0, 180.0, 160);
    // the tilt is about the middle of the frame, the axis passes through it
    let (lab, upright) = (Lab::new(), Lab::new());
    upright.write("p", "p", &projections(SIDE, ROWS, 50.0, &angles, 0.0));
    let best = error(&upright.slices("--projections p --center 50", "r"), &truth);
    for (number, tilt) in [-2.5, 1.0].into_iter().enumerate() {
        lab.write(&format!("p{number}"), "p", &projections(SIDE, ROWS, 50.0, &angles, tilt));
        let scan = format!("--projections p{number} --center 50");
        let inner = |pages: Pages| Pages { pages: pages.pages[3..ROWS - 3].to_vec(), ..pages };
        let slices = lab.slices(&format!("{scan} --tilt {tilt}"), &format!("r{number}"));
        let crooked = lab.slices(&scan, &format!("c{number}"));
        let (found, before) =
            (error(&inner(slices.clone()), &inner(truth.clone())), error(&inner(crooked), &inner(truth.clone())));
        println!("tilt {tilt}: {found:.4}, left {before:.4}, upright {best:.4}");
        assert!(found < 1.05 * best && before > 1.5 * found, "{found} {before} {best}");
        // whatever rows are read at once
        let some = lab.slices(&format!("{scan} --tilt {tilt} --rows 6..8"), &format!("some{number}"));
        assert!(some.pages == slices.pages[6..8]);
    }
    lab.fails("reconstruct --projections p0 --tilt 11 --output out", 2, &["--tilt: 11", "10"]);
    lab.write("s", "s", &SMALL.sinograms());
    lab.fails("reconstruct --sinograms s --tilt 1 --output out", 2, &["--tilt", "--projections"]);
}

/// Radial distortion, alone and with a tilt, as coefficients and as positions.
#[test]
fn the_distortion_of_the_optics_is_corrected() {
    let (truth, angles) = (volume(SIDE, ROWS), even_angles(0.0, 180.0, 160));
    let (middle, factors) = ([46.0, 7.5], [0.99, -2e-4, -1e-5]);
    let factor = |r: f64| factors[0] + factors[1] * r + factors[2] * r * r;
    // a place without distortion is seen at r factor(r)
    let true_place = |[x, z]: [f64; 2]| {
        let (dx, dz) = (x - middle[0], z - middle[1]);
        let r = (0..100).fold(dx.hypot(dz), |r, _| dx.hypot(dz) / factor(r));
        [middle[0] + dx / factor(r), middle[1] + dz / factor(r)]
    };
    let lab = Lab::new();
    lab.text("lens.txt", "xcenter = 46.0\nycenter = 7.5\nfactor0 = 0.99\nfactor1 = -0.0002\nfactor2 = -1e-05\n");
    for (axis, name) in ["x.tif", "z.tif"].into_iter().enumerate() {
        let position = |i: usize| {
            let at = [(i % SIDE) as f64, (i / SIDE) as f64];
            let r = (at[0] - middle[0]).hypot(at[1] - middle[1]);
            (middle[axis] + factor(r) * (at[axis] - middle[axis])) as f32
        };
        lab.page(name, SIDE, &(0..SIDE * ROWS).map(position).collect::<Vec<_>>());
    }
    lab.write("p", "p", &projections(SIDE, ROWS, 50.0, &angles, 0.0));
    let best = error(&lab.slices("--projections p --center 50", "best"), &truth);
    let inner = |pages: &Pages| Pages { width: SIDE, pages: pages.pages[3..ROWS - 3].to_vec() };
    for (number, tilt) in [0.0, 1.0].into_iter().enumerate() {
        lab.write(&format!("p{number}"), "p", &distorted(SIDE, ROWS, 50.0, &angles, tilt, true_place));
        let scan = format!("--projections p{number} --center 50 --tilt {tilt}");
        let slices = lab.slices(&format!("{scan} --distortion lens.txt"), &format!("r{number}"));
        let left = lab.slices(&scan, &format!("left{number}"));
        let of_images = lab.slices(&format!("{scan} --distortion x.tif,z.tif"), &format!("i{number}"));
        let off = |pages: &Pages| error(&inner(pages), &inner(&truth));
        println!("tilt {tilt}: {:.4}, left {:.4}, best {best:.4}", off(&slices), off(&left));
        assert!(off(&slices) < 1.05 * best && off(&left) > 1.5 * off(&slices));
        assert!(farthest(&of_images, &slices) < 1e-3, "{}", farthest(&of_images, &slices));
        let some = lab.slices(&format!("{scan} --distortion lens.txt --rows 6..8"), &format!("some{number}"));
        assert!(some.pages == slices.pages[6..8]);
    }
    // what changes nothing changes no byte
    lab.text("none.txt", "xcenter = 46\nycenter = 7\nfactor0 = 1.0\nfactor1 = 0.0\n");
    let without = lab.slices("--projections p1 --center 50 --tilt 1 --distortion none.txt", "none");
    assert!(without == lab.read("left1"));
    lab.text("wide.txt", "xcenter = 50\nycenter = 7\nfactor0 = 1.02\n");
    lab.write("s", "s", &SMALL.sinograms());
    for (flags, code, words) in [
        ("--projections p --distortion wide.txt", 2, ["--distortion wide.txt: 30 of 1515 pixels", ",repeat"]),
        ("--projections p --distortion lens.txt,x.tif,z.tif", 2, ["--distortion: `lens.txt,x.tif,z.tif`", "X,Y"]),
        ("--projections p --distortion ,repeat", 2, ["--distortion: `,repeat`", "X,Y"]),
        ("--projections p --distortion nowhere.txt", 3, ["nowhere.txt: --distortion", "coefficients"]),
        ("--projections p --distortion x.tif", 3, ["x.tif: --distortion", "X,Y"]),
        ("--projections p --distortion p,p", 3, ["--distortion: there are 160 images", "one direction"]),
        (
            "--projections p --binning 2 --distortion x.tif,z.tif,repeat --sinograms s",
            2,
            ["--projections", "--sinograms"],
        ),
        ("--sinograms s --distortion lens.txt", 2, ["--distortion", "--projections"]),
    ] {
        lab.fails(&format!("reconstruct {flags} --output out"), code, &words);
    }
    let (_, err) = lab.ok("reconstruct --projections p --distortion wide.txt,repeat --output wide");
    assert!(err.contains("note: --distortion: 30 of 1515 pixels"), "{err}");
    lab.ok("reconstruct --projections p --binning 2 --distortion x.tif,z.tif --output binned");
    let (out, _) = lab.ok("reconstruct --projections p --distortion wide.txt,repeat --tilt 1 --dry-run");
    assert!(out.contains("distortion wide.txt,repeat; tilt 1"), "{out}");
}

/// A detector that is tilted is found out, and its tilt with the axis: as if both had been given. A row of such a detector sees
/// several slices, which the tilt between rows alone does not tell.
#[test]
fn the_tilt_of_a_detector_is_found() {
    let (rows, center) = (41, 52.3);
    let angles = even_angles(0.0, 180.0, 160);
    let lab = Lab::new();
    for (number, tilt) in [-1.5, 0.3, 0.0].into_iter().enumerate() {
        let scan = format!("--projections p{number}");
        lab.write(&format!("p{number}"), "p", &projections(SIDE, rows, center, &angles, tilt));
        let (report, _) = lab.ok(&format!("center {scan} --json"));
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let found = |key: &str| report["tilt"][key].as_f64().unwrap();
        let (degrees, uncertainty) = (found("degrees"), found("uncertainty"));
        println!("tilt {tilt}: {degrees} +- {uncertainty:.3}");
        assert!((degrees - tilt).abs() <= (0.1 * tilt.abs()).max(2.0 * uncertainty), "{tilt}: {report:#}");
        if tilt == 0.0 {
            assert!(degrees == 0.0 && report["tilt"]["center"].is_null(), "{report:#}");
            continue;
        }
        assert!(uncertainty < 0.06, "{report:#}");
        // both at once, and as they are printed
        let (_, said) =
            lab.ok(&format!("reconstruct {scan} --center auto --tilt auto --output auto{number} --report a.json"));
        assert!(said.contains(&format!("tilt {degrees:.3} +- ")), "{said}");
        let used: serde_json::Value = serde_json::from_str(&lab.read_text("a.json")).unwrap();
        assert_eq!(used["center"]["tilt"]["degrees"], degrees, "{used:#}");
        let axis = used["center"]["value"].as_f64().unwrap();
        assert!((axis - found("center")).abs() < 1e-9, "{axis} {report:#}");
        lab.ok(&format!("reconstruct {scan} --center {axis:?} --tilt {degrees} --output given{number}"));
        assert!(lab.read(&format!("auto{number}")) == lab.read(&format!("given{number}")), "{tilt}");
        // nothing corrects it: that is a doubt, where it changes the axis by more than a fraction of a bin
        if tilt.abs() < 1.0 {
            continue;
        }
        let alone = format!("reconstruct {scan} --center auto --output alone{number}");
        let (_, said) = lab.ok(&alone);
        assert!(said.contains("the axis is tilted") && said.contains("--tilt auto"), "{said}");
        lab.fails(&format!("{alone} --overwrite --strict"), 3, &["the axis is tilted"]);
    }
}

/// The axis in the first and in the last row is that of rotated projections.
#[test]
fn two_centres_are_a_tilt() {
    let (rows, tilt) = (41, 2.0f64);
    let lab = Lab::new();
    lab.write("p", "p", &projections(SIDE, rows, 53.0, &even_angles(0.0, 180.0, 60), tilt));
    let (sin, cos) = tilt.to_radians().sin_cos();
    let middle = default_axis(SIDE);
    // where the axis crosses these rows of the detector
    let at = |row: f64| middle + (53.0 - middle) / cos + (row - default_axis(rows)) * sin / cos;
    let (first, last) = (at(0.0), at(rows as f64 - 1.0));
    let slices = lab.slices(&format!("--projections p --center {first},{last}"), "ends");
    let given = lab.slices(&format!("--projections p --center 53 --tilt {tilt}"), "given");
    assert!(error(&slices, &given) < 1e-5, "{}", error(&slices, &given));
    let refused: [(&str, &[&str]); 6] = [
        ("--projections p --center 50,51 --tilt 1", &["--center and --tilt"]),
        ("--projections p --center 50,51,52", &["--center: `50,51,52`"]),
        ("--projections p --center 1,90", &["--center", "10 degrees"]),
        ("--projections p --center 50 --tilt auto", &["--tilt: auto", "--center auto"]),
        ("--projections p --tilt some", &["--tilt: `some`", "auto"]),
        ("--projections p --center auto:vo --tilt auto", &["--tilt: auto", "likelihood"]),
    ];
    for (flags, words) in refused {
        lab.fails(&format!("reconstruct {flags} --output out"), 2, words);
    }
    let two = "reconstruct --projections p --rows 3..5 --center auto --tilt auto --output out";
    lab.fails(two, 3, &["--tilt: auto", "three rows"]);
    lab.write("s", "s", &SMALL.sinograms());
    lab.fails("reconstruct --sinograms s --center 20,21 --output out", 2, &["--center", "--projections"]);
    lab.fails("reconstruct --sinograms s --center auto --tilt auto --output out", 2, &["--tilt", "--projections"]);
    lab.fails("center --projections p --tilt auto", 2, &["--tilt: auto", "fbp reconstruct"]);
    lab.fails("preprocess --projections p --tilt auto --output out", 2, &["--tilt: auto", "fbp reconstruct"]);
}

/// Means of `by` x `by` pixels; of sinograms, of `by` bins and pages.
fn means(pages: &Pages, by: usize, of_sinograms: bool) -> Pages {
    let width = pages.width / by;
    let (rows, groups) = if of_sinograms { (1, by) } else { (by, 1) };
    let height = pages.pages[0].len() / pages.width / rows;
    let page = |group: &[Vec<f32>]| {
        let pixel = |i: usize| {
            let (x, z) = (i % width * by, i / width * rows);
            let sum: f64 = group
                .iter()
                .flat_map(|page| (z..z + rows).flat_map(move |z| &page[z * pages.width + x..z * pages.width + x + by]))
                .map(|&v| f64::from(v))
                .sum();
            (sum / (by * by) as f64) as f32
        };
        (0..width * height).map(pixel).collect()
    };
    Pages { width, pages: pages.pages.chunks_exact(groups).map(page).collect() }
}

#[test]
fn binning_is_a_smaller_detector() {
    let lab = Lab::new();
    lab.profile_with_steps("device.toml", "");
    let scan = Scan { width: 67, projections: 30, slices: 11, overall: 180.0 };
    let lines = scan.sinograms();
    let most = lines.pages.iter().flatten().fold(0f32, |a, &b| a.max(b));
    let counts = lines.transposed().map(|line| (100.0 + 5000.0 * (-2.0 * line / most).exp()).round());
    let frame = |level: f32| Pages { width: 67, pages: vec![(0..67 * 11).map(|i| level + (i % 7) as f32).collect()] };
    lab.write("s", "s", &lines);
    lab.write("p", "p", &counts);
    lab.write("f", "f", &frame(5100.0));
    lab.write("d", "d", &frame(100.0));
    // the host bins, and the device
    for (by, profile) in [(2, "cpu"), (3, "cpu"), (2, "device.toml"), (3, "device.toml")] {
        let name = |what: &str| format!("{what}{by}");
        let slices = |args: &str, output: &str| {
            lab.slices(&format!("{args} --profile {profile}"), &format!("{profile}-{output}{by}"))
        };
        lab.write(&name("s"), "s", &means(&lines, by, true));
        lab.write(&name("p"), "p", &means(&counts, by, false));
        lab.write(&name("f"), "f", &means(&frame(5100.0), by, false));
        lab.write(&name("d"), "d", &means(&frame(100.0), by, false));
        // the axis is counted in bins of the detector, so is the size of a pixel
        let center = (31.0 - (by as f64 - 1.0) / 2.0) / by as f64;
        let direct = slices(&format!("--sinograms {} --center {center}", name("s")), "rs");
        assert!(slices(&format!("--sinograms s --center 31 --binning {by}"), "bs") == direct);
        assert_eq!((direct.width, direct.pages.len()), (67 / by, 11 / by));
        let fields = format!("--flats {} --darks {} --remove-outliers 3,4000", name("f"), name("d"));
        let size = format!("--pixel-size {}um", 0.5 * by as f64);
        let direct = slices(&format!("--projections {} {fields} {size} --center {center}", name("p")), "rp");
        let args = "--projections p --flats f --darks d --remove-outliers 3,4000 --pixel-size 0.5um --center 31";
        assert!(slices(&format!("{args} --binning {by}"), "bp") == direct);
        assert!(slices(&format!("{args} --binning {by} --rows 1..3"), "rows").pages == direct.pages[1..3]);
    }
    // found in the detector's bins
    let find = |flags: &str| -> f64 {
        // so few bins may leave it uncertain, but not elsewhere
        let found =
            lab.command(&format!("center --projections p --flats f --darks d {flags} --json")).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
        json["center"]["value"].as_f64().unwrap()
    };
    let (plain, binned) = (find("--method sweep"), find("--method sweep --binning 2"));
    assert!((plain - 33.0).abs() < 0.3 && (binned - 33.0).abs() < 0.6, "{plain} {binned}");
    lab.ok("preprocess --sinograms s --binning 2 --output pre");
    assert!(lab.read("pre") == lab.read("s2"));
    for (flags, words) in
        [("--binning 0", "1 to 64"), ("--binning 65", "1 to 64"), ("--binning 12", "leaves nothing of the 11")]
    {
        lab.fails(&format!("reconstruct --sinograms s {flags} --output out"), 2, &["--binning", words]);
    }
}

#[test]
fn some_projections() {
    let lab = Lab::new();
    let scan = Scan { projections: 24, ..SMALL };
    let all = scan.sinograms().transposed();
    lab.write("p", "p", &all);
    let kept = |keep: &dyn Fn(usize) -> bool| {
        let numbers: Vec<usize> = (0..24).filter(|&p| keep(p)).collect();
        lab.numbers("angles.txt", &numbers.iter().map(|&p| scan.angles()[p]).collect::<Vec<_>>());
        Pages { width: 32, pages: numbers.iter().map(|&p| all.pages[p].clone()).collect() }
    };
    for (number, (flags, keep)) in [
        ("--projection-range 0..24:2", &(|p: usize| p % 2 == 0) as &dyn Fn(usize) -> bool),
        ("--projection-range 3..", &|p: usize| p >= 3),
        ("--projection-range 1..20:3 --exclude 7", &|p: usize| p % 3 == 1 && p < 20 && p != 7),
    ]
    .into_iter()
    .enumerate()
    {
        lab.write(&format!("k{number}"), "p", &kept(keep));
        let direct = lab.slices(&format!("--projections k{number} --angles angles.txt"), &format!("d{number}"));
        assert!(lab.slices(&format!("--projections p {flags}"), &format!("r{number}")) == direct, "{flags}");
    }
    for (flags, words) in [
        ("--projection-range 5..30", "24 projections"),
        ("--projection-range 9..4", "--projection-range"),
        ("--projection-range 3..4 --exclude 3", "no projection"),
    ] {
        lab.fails(&format!("reconstruct --projections p {flags} --output out"), 2, &[words]);
    }
}
