//! Every method against a plain version in `f64` that shares no code with it but the table of wavelets, and what it does
//! to planted stripes and to clean data.

mod plain;
mod simulated;

use super::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use std::f64::consts::PI;

type Image = Vec<Vec<f64>>;

/// A sinogram of ellipses, `[projection][bin]`, line integrals up to 2.
fn object(projections: usize, bins: usize) -> Vec<f32> {
    let r = bins as f64 / 2.0;
    // density, semi-axes, centre
    let ellipses = [(1.0, 0.8, 0.6, 0.02, -0.05), (-0.5, 0.2, 0.3, 0.3, 0.1), (0.8, 0.1, 0.15, -0.35, 0.2)];
    let mut out = Vec::new();
    for p in 0..projections {
        let (sin, cos) = (PI * p as f64 / projections as f64).sin_cos();
        for b in 0..bins {
            let t = (b as f64 + 0.5 - r) / r;
            let sum: f64 = ellipses
                .iter()
                .map(|(density, a, c, x, y)| {
                    let s2 = (a * cos).powi(2) + (c * sin).powi(2);
                    let h = t - x * cos - y * sin;
                    if h * h < s2 { 2.0 * density * a * c * (s2 - h * h).sqrt() / s2 } else { 0.0 }
                })
                .sum();
            out.push(sum as f32);
        }
    }
    out
}

const NOISE: f32 = 0.01;

fn noisy(projections: usize, bins: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
    let normal = Normal::new(0.0, NOISE).unwrap();
    object(projections, bins).into_iter().map(|v| v + normal.sample(rng)).collect()
}

fn rms(a: &[f32], b: &[f32]) -> f64 {
    (a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / a.len() as f64).sqrt()
}

/// Stripes in the words of the command line.
fn method(text: &str) -> Stripes {
    text.parse().unwrap()
}

/// Defects that a detector adds to its bins.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Every tenth bin has an offset.
    Narrow,
    /// Offsets that grow along the scan.
    Drift,
    /// Seven bins side by side see a line integral that is a fifth larger.
    Wide,
    /// Three bins say always the same.
    Dead,
    Every,
}

fn planted(clean: &[f32], bins: usize, fault: Fault, rng: &mut ChaCha8Rng) -> Vec<f32> {
    let projections = clean.len() / bins;
    let offsets: Vec<f32> = (0..bins).map(|b| if b % 10 == 4 { rng.random_range(-0.15..0.15) } else { 0.0 }).collect();
    let mut out = clean.to_vec();
    for (p, row) in out.chunks_mut(bins).enumerate() {
        let progress = p as f32 / projections as f32;
        for (b, value) in row.iter_mut().enumerate() {
            let wide = if (bins / 3..bins / 3 + 7).contains(&b) { 1.2 } else { 1.0 };
            let dead = bins / 2..bins / 2 + 3;
            match fault {
                Fault::Narrow => *value += offsets[b],
                Fault::Drift => *value += 2.0 * progress * offsets[b],
                Fault::Wide => *value *= wide,
                Fault::Dead if dead.contains(&b) => *value = 0.5,
                Fault::Dead => {}
                Fault::Every if dead.contains(&b) => *value = 0.5,
                Fault::Every => *value = *value * wide + offsets[b],
            }
        }
    }
    out
}

#[test]
fn methods_equal_their_plain_versions() {
    let (projections, bins) = (61, 150);
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let clean = noisy(projections, bins, &mut rng);
    let every = planted(&clean, bins, Fault::Every, &mut rng);
    // the order of a dead column's low frequencies is that of rounding
    let narrow = planted(&clean, bins, Fault::Narrow, &mut rng);
    type Plain = fn(&Image) -> Image;
    let cases: [(&str, Plain); 13] = [
        ("sorting:size=7", |i| plain::sorting(i, 7)),
        ("sorting:size=99", |i| plain::sorting(i, 99)),
        ("filtering:sigma=3,size=7", |i| plain::filtering(i, 3.0, 7)),
        ("filtering:sigma=40,size=5", |i| plain::filtering(i, 40.0, 5)),
        ("large:snr=3,size=21", |i| plain::large(i, 3.0, 21, 0.1)),
        ("dead:snr=1,size=21", |i| plain::dead(i, 1.0, 21)),
        ("all:snr=1,large=21,small=5", |i| plain::sorting(&plain::large(&plain::dead(i, 1.0, 21), 1.0, 21, 0.1), 5)),
        ("fitting:order=2,sigma=4", |i| plain::fitting(i, 2, 4.0)),
        ("mean:sigma=4", |i| plain::fitting(i, 0, 4.0)),
        ("titarenko:alpha=0.01", |i| plain::titarenko(i, 0.01, 1)),
        ("titarenko:alpha=0.3,blocks=4", |i| plain::titarenko(i, 0.3, 4)),
        ("wavelet:level=1,sigma=2", |i| plain::wavelet(i, 5, 1, 2.0)),
        ("wavelet:wavelet=db3,level=1,sigma=1.5", |i| plain::wavelet(i, 3, 1, 1.5)),
    ];
    for (text, reference) in cases {
        let values = if text.starts_with("filtering") { &narrow } else { &every };
        let image: Image = values.chunks(bins).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect();
        let mut found = values.clone();
        method(text).remove(&mut found, projections, bins);
        let expected: Vec<f32> = reference(&image).concat().iter().map(|v| *v as f32).collect();
        let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 2e-5, "{text}: {worst}");
        assert!(rms(&found, values) > 1e-3, "{text} did something");
    }
}

#[test]
fn wavelets_of_several_levels_equal_the_plain_version() {
    let (projections, bins) = (83, 120);
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let values = planted(&noisy(projections, bins, &mut rng), bins, Fault::Every, &mut rng);
    let image: Image = values.chunks(bins).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect();
    let mut found = values.clone();
    method("wavelet:sigma=2").remove(&mut found, projections, bins);
    // 83 + 2 * 8 projections: 99 / 16, so two halvings
    let expected: Vec<f32> = plain::wavelet(&image, 5, 2, 2.0).concat().iter().map(|v| *v as f32).collect();
    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst < 2e-5, "{worst}");
}

/// A method, the fault it is for, and what it may do to data without stripes, as a share of the largest line integral.
/// Of the stripes' error at most half may be left.
const BEHAVIOUR: &[(&str, Fault, f64)] = &[
    ("sorting", Fault::Narrow, 0.01),
    ("filtering", Fault::Narrow, 0.01),
    ("fitting:sigma=3", Fault::Drift, 0.01),
    ("large", Fault::Wide, 0.01),
    ("dead", Fault::Dead, 0.01),
    ("all", Fault::Every, 0.01),
    ("wavelet", Fault::Narrow, 0.01),
    ("titarenko:alpha=0.3", Fault::Narrow, 0.01),
    ("mean:sigma=3", Fault::Narrow, 0.01),
];

#[test]
fn stripes_are_halved_at_least_and_clean_data_stay() {
    let (projections, bins) = (180, 256);
    for (text, fault, allowed) in BEHAVIOUR {
        let mut rng = ChaCha8Rng::seed_from_u64(13);
        let clean = noisy(projections, bins, &mut rng);
        let striped = planted(&clean, bins, *fault, &mut rng);
        let before = rms(&striped, &clean);
        let mut after = striped.clone();
        method(text).remove(&mut after, projections, bins);
        let left = rms(&after, &clean) / before;
        let mut untouched = clean.clone();
        method(text).remove(&mut untouched, projections, bins);
        let largest = f64::from(clean.iter().copied().fold(0.0, f32::max));
        let harm = rms(&untouched, &clean) / largest;
        println!("{text}, {fault:?}: {:.0} % left, harm {harm:.5}", 100.0 * left);
        assert!(left < 0.5, "{text}, {fault:?}: {left} of the error is left");
        assert!(harm < *allowed, "{text}: {harm} of harm");
    }
}

#[test]
fn nothing_but_numbers_comes_out() {
    let every = ["sorting", "filtering", "fitting", "large", "dead", "all", "wavelet", "titarenko", "mean"];
    let mut rng = ChaCha8Rng::seed_from_u64(14);
    for text in every {
        for (projections, bins) in [(0, 5), (1, 1), (1, 40), (40, 1), (2, 2), (3, 5), (9, 300), (60, 33)] {
            let count = projections * bins;
            let with_holes = (0..count).map(|i| if i % 7 == 3 { f32::NAN } else { rng.random() }).collect();
            let huge = (0..count).map(|i| if i % 5 == 1 { f32::MAX } else { -f32::MAX }).collect();
            let noise = (0..count).map(|_| rng.random_range(-1.0..1.0)).collect();
            for values in [vec![0.0; count], vec![1.0; count], noise, with_holes, huge] {
                let mut found: Vec<f32> = values.clone();
                method(text).remove(&mut found, projections, bins);
                assert!(found.iter().all(|v| v.is_finite()), "{text}, {projections}x{bins}");
                let mut again: Vec<f32> = values;
                method(text).remove(&mut again, projections, bins);
                assert_eq!(found, again, "{text}");
            }
        }
    }
}

#[test]
fn every_name_is_a_method() {
    for name in NAMES {
        assert!(name.parse::<Stripes>().is_ok(), "{name}");
        assert!(Stripes::parse_list(&format!("{name},dead:snr=2,size=5")).unwrap().len() == 2);
    }
}

#[test]
fn what_is_shown_is_read_back() {
    for text in
        ["sorting", "filtering:sigma=2.5", "fitting:blocks=3", "large", "dead", "all", "wavelet:level=3,wavelet=db4"]
            .into_iter()
            .chain(["wavelet", "titarenko:alpha=0.3", "mean"])
    {
        let method: Stripes = text.parse().unwrap();
        assert_eq!(method.to_string().parse::<Stripes>().unwrap(), method, "{method}");
    }
}
