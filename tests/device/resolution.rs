//! `--resolution`: two half scans, against slices of runs with every other projection, and against the definition.

use crate::support::cli::{Lab, Pages};
use fbp::geometry::{default_axis, even_angles};
use fbp::phantom::{Kind, Phantom};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::Value;
use std::f64::consts::PI;

const WIDTH: usize = 96;
/// An odd number: the halves differ, and neither is spread evenly over half a turn.
const PROJECTIONS: usize = 151;
const RUN: &str = "reconstruct --sinograms sin --device cpu";

fn phantom() -> Phantom {
    Phantom::for_slice(Kind::Asymmetric, WIDTH, 0, 1)
}

/// The phantom blurred by a Gaussian of this standard deviation in pixels, whose projections are blurred alike, with noise.
fn sinogram(sigma: f64, noise: f64) -> Pages {
    let mut random = StdRng::seed_from_u64(4);
    let mut page = Vec::new();
    for angle in even_angles(0.0, 180.0, PROJECTIONS) {
        let mut row = vec![0f32; WIDTH];
        phantom().project_row(angle.to_radians(), default_axis(WIDTH), &mut row);
        for bin in 0..WIDTH as i64 {
            let weight = |d: i64| (-(d * d) as f64 / (2.0 * sigma * sigma)).exp();
            let near = (-20..=20).filter(|d| (0..WIDTH as i64).contains(&(bin + d)));
            let sum: f64 = near.map(|d| weight(d) * f64::from(row[(bin + d) as usize])).sum();
            let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
            let normal = (-2.0 * u.ln()).sqrt() * (2.0 * PI * v).cos();
            page.push((sum / (-20..=20).map(weight).sum::<f64>() + noise * normal) as f32);
        }
    }
    Pages { width: WIDTH, pages: vec![page] }
}

/// Real and imaginary parts of the transform of an image within the window, by sums over rows and then over columns.
fn spectrum(image: &[f32]) -> Vec<[f64; 2]> {
    let middle = default_axis(WIDTH);
    let window = |i: usize| {
        let r = ((i % WIDTH) as f64 - middle).hypot((i / WIDTH) as f64 - middle) / (WIDTH as f64 / 2.0);
        if r <= 0.9 {
            1.0
        } else if r >= 1.0 {
            0.0
        } else {
            (1.0 + (10.0 * PI * (r - 0.9)).cos()) / 2.0
        }
    };
    let weighted = |i: usize| f64::from(image[i]) * window(i);
    let mean = (0..image.len()).map(weighted).sum::<f64>() / (0..image.len()).map(window).sum::<f64>();
    let mut values: Vec<[f64; 2]> = (0..image.len()).map(|i| [weighted(i) - mean * window(i), 0.0]).collect();
    for _ in 0..2 {
        let sum = |i: usize| {
            let (line, k) = (i % WIDTH, i / WIDTH);
            (0..WIDTH).fold([0.0, 0.0], |[re, im], j| {
                let (sin, cos) = (-2.0 * PI * (j * k % WIDTH) as f64 / WIDTH as f64).sin_cos();
                let [a, b] = values[line * WIDTH + j];
                [re + a * cos - b * sin, im + a * sin + b * cos]
            })
        };
        values = (0..image.len()).map(sum).collect();
    }
    values
}

/// Correlation and half-bit threshold of every ring, by their definitions.
fn rings(first: &[f32], second: &[f32]) -> Vec<[f64; 2]> {
    let (a, b) = (spectrum(first), spectrum(second));
    let mut sums = vec![[0.0; 4]; WIDTH / 2 + 1];
    let signed = |k: usize| if k < WIDTH / 2 { k as f64 } else { k as f64 - WIDTH as f64 };
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        let ring = signed(i % WIDTH).hypot(signed(i / WIDTH)).round() as usize;
        if let Some(sums) = sums.get_mut(ring) {
            let dot = |a: &[f64; 2], b: &[f64; 2]| a[0] * b[0] + a[1] * b[1];
            sums.iter_mut().zip([dot(a, b), dot(a, a), dot(b, b), 1.0]).for_each(|(sum, more)| *sum += more);
        }
    }
    // (sum of squares)^2 / sum of fourth powers / pixels of the window, which is the integral over its circle
    let moment = |power: i32| {
        let w = |r: f64| if r < 0.9 { 1.0 } else { (1.0 + (10.0 * PI * (r - 0.9)).cos()) / 2.0 };
        (0..10_000).map(|i| (f64::from(i) + 0.5) / 1e4).map(|r| w(r).powi(power) * PI / 2.0 * r / 1e4).sum::<f64>()
    };
    let share = moment(2).powi(2) / moment(4) / 2.0;
    let one = |[common, a, b, pixels]: [f64; 4]| {
        let root = (pixels * share).sqrt();
        [common / (a * b).sqrt(), (0.2071 + 1.9102 / root) / (1.2071 + 0.9102 / root)]
    };
    sums.into_iter().map(one).collect()
}

/// Detail in pixels at which the correlation falls below a threshold.
fn detail(rings: &[[f64; 2]], threshold: impl Fn([f64; 2]) -> f64) -> f64 {
    let excess = |ring: usize| rings[ring][0] - threshold(rings[ring]);
    let ring = (5..rings.len()).find(|&ring| excess(ring) < 0.0).expect("it falls below the threshold");
    let (before, after) = (excess(ring - 1), excess(ring));
    WIDTH as f64 / (ring as f64 - 1.0 + before / (before - after))
}

fn resolution(lab: &Lab, flags: &str) -> Value {
    lab.ok(&format!("{RUN} {flags} --resolution --report run.json --output res --overwrite"));
    serde_json::from_str::<Value>(&lab.read_text("run.json")).unwrap()["resolution"].clone()
}

fn close(found: &Value, expected: f64, margin: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    assert!((found / expected - 1.0).abs() < margin, "{what}: {found}, expected {expected}");
}

#[test]
fn known_blurs_are_measured_as_defined() {
    let mut before = 0.0;
    for (sigma, noise) in [(0.7, 0.3), (1.5, 0.3), (2.5, 0.3)] {
        let lab = Lab::new();
        lab.write("sin", "s", &sinogram(sigma, noise));
        let found = resolution(&lab, "--pixel-size 2um");
        let half = |first: usize| {
            let range = format!("--projection-range {first}..{PROJECTIONS}:2");
            lab.slices(&format!("--sinograms sin --device cpu --pixel-size 2um {range}"), &format!("half-{first}"))
        };
        let [even, odd] = [0, 1].map(|first| half(first).pages.remove(0));
        let expected = rings(&even, &odd);
        let list = |key: &str| -> Vec<f64> { serde_json::from_value(found[key].clone()).unwrap() };
        let (correlation, threshold) = (list("correlation"), list("threshold"));
        assert_eq!((found["side"].as_u64(), correlation.len()), (Some(WIDTH as u64), expected.len()));
        for (ring, expected) in expected.iter().enumerate().skip(1) {
            let off = [correlation[ring] - expected[0], threshold[ring] - expected[1]];
            assert!(off[0].abs() < 2e-4 && off[1].abs() < 5e-3, "{sigma}: ring {ring}: {off:?}");
        }
        for (key, expected) in [
            ("half_bit", detail(&expected, |[_, half_bit]| half_bit)),
            ("one_seventh", detail(&expected, |_| 1.0 / 7.0)),
        ] {
            assert_eq!(found[key]["verdict"], "ok");
            close(&found[key]["pixels"], expected, 0.05, key);
            close(&found[key]["length"], 2.0 * expected, 0.05, key);
        }
        let pixels = found["half_bit"]["pixels"].as_f64().unwrap();
        assert!(pixels > before, "{sigma}: {pixels} after {before}");
        before = pixels;
        check_air(&lab, &found["air"], sigma);
    }
}

/// The noise in air against the slice of the run, where the phantom and its blur have nothing.
fn check_air(lab: &Lab, air: &Value, sigma: f64) {
    let (slice, truth, middle) = (lab.read("res").pages.remove(0), phantom().rasterise(4), default_axis(WIDTH));
    let far = (3.0 * sigma).ceil() as usize + 3;
    let is_air = |i: &usize| {
        let (x, y) = (i % WIDTH, i / WIDTH);
        let (rows, columns) = (y.saturating_sub(far)..(y + far + 1).min(WIDTH), x.saturating_sub(far)..x + far + 1);
        let empty = |y: usize| columns.clone().take_while(|x| *x < WIDTH).all(|x| truth[y * WIDTH + x] == 0.0);
        (x as f64 - middle).hypot(y as f64 - middle) < 0.95 * WIDTH as f64 / 2.0 && rows.into_iter().all(empty)
    };
    let values: Vec<f64> = (0..slice.len()).filter(is_air).map(|i| slice[i].into()).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
    assert!(values.len() > 200, "{}", values.len());
    close(&air["standard_deviation"], variance.sqrt(), 0.15, "noise in air");
}

#[test]
fn a_run_and_its_key_are_the_same_with_it() {
    let lab = Lab::new();
    lab.write("sin", "s", &sinogram(1.0, 0.05));
    let found = resolution(&lab, "");
    lab.ok(&format!("{RUN} --output plain"));
    assert!(lab.bytes("res") == lab.bytes("plain"));
    let record = |output: &str| lab.read_text(&format!("{output}/fbp-run.toml")).parse::<toml::Table>().unwrap();
    let (with, without) = (record("res"), record("plain"));
    assert_eq!(with["facts"]["run"], without["facts"]["run"]);
    // it decides nothing, and its result is kept
    assert!(!with.contains_key("resolution"));
    let kept = &with["facts"]["jobs"][0]["resolution"];
    assert_eq!(kept["half_bit"]["pixels"].as_float(), found["half_bit"]["pixels"].as_f64());
    assert!(without["facts"]["jobs"][0].get("resolution").is_none());
    let (_, err) = lab.ok(&format!("{RUN} --resolution --report run.html --pixel-size 2um --output page"));
    assert!(err.contains("resolution of slice 0: ") && err.contains(" um) by half-bit, "), "{err}");
    assert!(err.contains("noise in air ") && err.contains(" per um"), "{err}");
    assert!(lab.read_text("run.html").contains("\"one_seventh\""));
}

#[test]
fn whole_slices_are_compared_whatever_is_written() {
    let lab = Lab::new();
    lab.write("sin", "s", &sinogram(1.0, 0.05));
    let plain = resolution(&lab, "");
    for flags in ["--roi 3,4,20,10 --dtype u8", "--mask 0.4 --dtype u16 --range 0,1", "--histogram h.json"] {
        assert_eq!(resolution(&lab, flags), plain, "{flags}");
    }
    // of the detector, some bins are on one side of the axis only
    let narrow = resolution(&lab, "--center 30.25");
    assert_eq!(narrow["side"], 60);
    // a slice wider than the detector has nothing beyond it
    assert_eq!(resolution(&lab, "--size 120")["side"], WIDTH);
}

#[test]
fn what_cannot_be_halved_is_refused() {
    let lab = Lab::new();
    lab.write("sin", "s", &sinogram(1.0, 0.05));
    lab.fails(
        &format!("{RUN} --resolution --projection-range 0..3 --output out"),
        2,
        &["--resolution: ", "here are 3"],
    );
    lab.fails(&format!("{RUN} --resolution --center 5 --output out"), 2, &["--resolution: ", "--center"]);
}
