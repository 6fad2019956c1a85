//! How reliable verdicts on the rotation axis are: simulated scans of many kinds with a known axis, and the real ones.
//!
//! `FBP_TEST_SCANS` is the number of simulated scans of each kind; scripts/axis-table runs enough of them to judge by, and
//! prints the table of docs/center.md.

use super::center::{Ellipse, Scan};
use crate::support::cli::Lab;
use fbp::center::{AxisVerdict, Method, find};
use fbp::geometry::even_angles;
use fbp::phantom::add_gaussian;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// What is scanned and how.
struct Kind {
    name: &'static str,
    /// Degrees that the scan covers.
    covers: f64,
    /// Degrees that it is said to cover.
    declared: f64,
    /// Whether the last projection is at the end of the turn.
    closed: bool,
    /// Projections a bin and half turn.
    projections: (f64, f64),
    /// Largest distance of the axis from the middle, in widths.
    offset: f64,
    /// Radius of the sample, as a share of the distance from the axis to the nearer end of the detector.
    radius: (f64, f64),
    /// Gaussian noise, as a share of the largest value.
    noise: (f64, f64),
    /// Bins that the sample moves in the course of the scan, evenly.
    drift: f64,
    /// Standard deviation in bins of the place of each projection.
    jitter: f64,
    /// Columns with an offset of their own, as a share of all, and its size as one of the largest value.
    rings: (f64, f64),
    /// Share of rows without a sample.
    empty: f64,
    /// Gain of each projection, linear over the scan.
    fading: f64,
}

const PLAIN: Kind = Kind {
    name: "half turn",
    covers: 180.0,
    declared: 180.0,
    closed: false,
    projections: (0.6, 1.8),
    offset: 0.1,
    radius: (0.5, 0.97),
    noise: (0.0, 0.04),
    drift: 0.0,
    jitter: 0.0,
    rings: (0.0, 0.0),
    empty: 0.0,
    fading: 0.0,
};

fn kinds() -> Vec<Kind> {
    vec![
        PLAIN,
        Kind { name: "half turn, both ends", closed: true, ..PLAIN },
        Kind { name: "182 degrees", covers: 182.0, declared: 182.0, ..PLAIN },
        Kind { name: "177 degrees", covers: 177.0, declared: 177.0, ..PLAIN },
        Kind { name: "whole turn", covers: 360.0, declared: 360.0, ..PLAIN },
        Kind { name: "noise", noise: (0.04, 0.12), ..PLAIN },
        Kind { name: "few projections", projections: (0.12, 0.4), ..PLAIN },
        Kind { name: "truncated", radius: (1.15, 2.0), ..PLAIN },
        Kind { name: "truncated, both ends", radius: (1.15, 2.0), closed: true, ..PLAIN },
        Kind { name: "truncated whole turn", covers: 360.0, declared: 360.0, radius: (1.15, 2.0), ..PLAIN },
        Kind { name: "off axis", offset: 0.22, ..PLAIN },
        Kind {
            name: "off-centre whole turn",
            covers: 360.0,
            declared: 360.0,
            offset: 0.42,
            radius: (1.0, 1.6),
            ..PLAIN
        },
        Kind { name: "drift", drift: 3.0, ..PLAIN },
        Kind { name: "jitter", jitter: 0.4, ..PLAIN },
        Kind { name: "empty rows", empty: 0.6, ..PLAIN },
        Kind { name: "rings", rings: (0.08, 0.15), ..PLAIN },
        Kind { name: "fading beam", fading: 0.2, ..PLAIN },
        Kind { name: "whole turn as half", covers: 360.0, ..PLAIN },
        Kind { name: "half turn as whole", declared: 360.0, ..PLAIN },
    ]
}

fn make(kind: &Kind, seed: u64) -> Scan {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let between =
        |rng: &mut ChaCha8Rng, (low, high): (f64, f64)| if high > low { rng.random_range(low..high) } else { low };
    let bins = rng.random_range(72..=200usize);
    let count = (bins as f64 * between(rng, kind.projections) * (kind.covers / 180.0).round()) as usize;
    let last = bins as f64 - 1.0;
    let axis = last / 2.0 + bins as f64 * kind.offset * rng.random_range(-1.0..1.0);
    let radius = axis.min(last - axis) * between(rng, kind.radius);
    let radius = if kind.offset > 0.3 { axis.max(last - axis) * 0.95 } else { radius };
    let many = rng.random_range(1..30);
    let sizes = rng.random_range(0.04..0.4);
    let rows = rng.random_range(1..=6);
    let samples: Vec<Vec<Ellipse>> = (0..rows)
        .map(|row| match row > 0 && rng.random_range(0.0..1.0) < kind.empty {
            true => Vec::new(),
            false => (0..many).map(|_| Ellipse::random(rng, radius, sizes)).collect(),
        })
        .collect();
    let start = rng.random_range(-90.0..90.0);
    let even = |covers: f64| {
        let count = if kind.closed { count - 1 } else { count };
        let mut angles = even_angles(start, covers, count);
        if kind.closed {
            angles.push(start + covers)
        }
        angles
    };
    let angles = even(kind.covers);
    let mut places = Vec::new();
    let shaking = rng.random_range(0.1..1.0);
    let drift = kind.drift * rng.random_range(0.2..1.0);
    for p in 0..angles.len() {
        let mut jitter = [0f32];
        add_gaussian(&mut jitter, kind.jitter * shaking, rng);
        places.push(axis + drift * (p as f64 / angles.len() as f64 - 0.5) + f64::from(jitter[0]));
    }
    let noise = between(rng, kind.noise);
    let mut scan = Scan::of(bins, &places, angles, &samples, noise, rng);
    scan.axis = axis;
    scan.angles = even(kind.declared);
    let fading = kind.fading * rng.random_range(-1.0..1.0);
    for row in &mut scan.rows {
        let largest = row.iter().copied().fold(0f32, f32::max);
        let offsets: Vec<f32> = (0..bins)
            .map(|_| {
                if rng.random_range(0.0..1.0) < kind.rings.0 {
                    rng.random_range(-1.0..1f32) * largest * kind.rings.1 as f32
                } else {
                    0.0
                }
            })
            .collect();
        for (p, values) in row.chunks_mut(bins).enumerate() {
            let gain = 1.0 + (fading * p as f64 / count as f64) as f32;
            values.iter_mut().zip(&offsets).for_each(|(value, offset)| *value = *value * gain + offset);
        }
    }
    scan
}

/// Farther from the axis than this many bins is wrong.
const TOLERANCE: f64 = 0.5;

/// What a method said of a scan.
#[derive(Clone, Copy)]
struct Answer {
    ok: bool,
    correct: bool,
}

/// How often a method was ok and correct, ok and wrong, refused and correct, refused and wrong.
#[derive(Clone, Copy, Default)]
struct Tally([usize; 4]);

impl Tally {
    fn add(&mut self, answer: Option<Answer>) {
        if let Some(Answer { ok, correct }) = answer {
            self.0[2 * usize::from(!ok) + usize::from(!correct)] += 1;
        }
    }

    fn sum(tallies: impl Iterator<Item = Tally>) -> Tally {
        tallies.fold(Tally::default(), |sum, tally| Tally([0, 1, 2, 3].map(|i| sum.0[i] + tally.0[i])))
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let [correct, wrong, refused_correct, refused_wrong] = self.0;
        write!(f, "{correct} {wrong} {refused_correct} {refused_wrong}")
    }
}

/// Registration, vo, overlap, sweep and none given, each on the same scan; `None` where a method does not suit it.
type Answers = [Option<Answer>; 5];

const COLUMNS: [Option<Method>; 5] =
    [Some(Method::Registration), Some(Method::Vo), Some(Method::Overlap), Some(Method::Sweep), None];

/// With angles that are not the scan's no answer is correct.
fn answers(kind: &Kind, seed: u64) -> Answers {
    let scan = make(kind, seed);
    let sinograms = scan.sinograms();
    let possible = kind.covers == kind.declared;
    COLUMNS.map(|method| {
        let found = find(&sinograms, method, None).ok()?.found[0];
        let correct = possible && (found.value - scan.axis).abs() <= TOLERANCE;
        let ok = found.verdict == AxisVerdict::Ok;
        if ok != correct && possible && (ok || method.is_none()) {
            println!("{} {seed}: {found}, the axis is at {:.2}", kind.name, scan.axis);
        }
        Some(Answer { ok, correct })
    })
}

fn row(name: &str, tallies: &[Tally; 5]) {
    println!("| {name} | {} |", tallies.map(|tally| tally.to_string()).join(" | "));
}

#[test]
fn verdicts_are_calibrated() {
    let each: u64 = std::env::var("FBP_TEST_SCANS").map_or(1, |count| count.parse().unwrap());
    println!("| scan | registration | vo | overlap | sweep | without --method |");
    println!("|---|---|---|---|---|---|");
    let mut all = Vec::new();
    let (mut needless, mut easy) = (0, 0);
    for kind in kinds() {
        let scans: Vec<Answers> = (0..each).into_par_iter().map(|seed| answers(&kind, seed)).collect();
        let mut tallies = [Tally::default(); 5];
        for answers in &scans {
            tallies.iter_mut().zip(answers).for_each(|(tally, answer)| tally.add(*answer));
            if answers.iter().flatten().all(|answer| answer.correct) {
                easy += 1;
                needless += usize::from(answers[4].is_some_and(|answer| !answer.ok));
            }
        }
        row(kind.name, &tallies);
        all.push(tallies);
    }
    let all = [0, 1, 2, 3, 4].map(|i| Tally::sum(all.iter().map(|tallies| tallies[i])));
    row("all", &all);
    let Tally([correct, wrong, refused_correct, refused_wrong]) = all[4];
    println!("without --method: {wrong} of {} that are ok are wrong", correct + wrong);
    println!(
        "refused: {}, of these {needless} where all methods were within half a bin, as they were for {easy} scans",
        refused_correct + refused_wrong
    );
    for (tally, method) in all.iter().zip(COLUMNS) {
        let [correct, wrong, ..] = tally.0;
        let name = method.map_or("auto", Method::name);
        assert!(wrong as f64 <= 0.005 * (correct + wrong) as f64, "{name}: {wrong} of {} are wrong", correct + wrong);
    }
    assert!(needless * 10 <= easy, "{needless} of {easy} are refused");
    // of a few refusals one is more than a tenth
    assert!(each < 20 || needless * 10 <= refused_correct + refused_wrong, "{needless} of the refusals are needless");
}

/// The real scans as they are and with less of what helps. Prints rows of the table, with one scan each.
#[test]
fn verdicts_on_real_scans() {
    let Some(data) = crate::support::skip::real_scans() else { return };
    let lab = Lab::new();
    let ways = [
        ("", true),
        (" --projection-range ..:4", true),
        (" --binning 2", true),
        (" --rows 0..2", true),
        (" --normalize-air 5,5", true),
        ("360 degrees", false),
    ];
    for (name, axis) in [("tooth", 295.5), ("tomo77", 39.0)] {
        let part = |part: &str| data.join(name).join(part).to_str().unwrap().to_owned();
        let scan = format!("--projections {} --flats {} --darks {}", part("proj"), part("flat"), part("dark"));
        for (way, possible) in ways {
            let angles = match possible {
                true => format!("--angles {}{way}", part("angles_deg.txt")),
                false => "--overall-angle 360".to_owned(),
            };
            let mut tallies = [Tally::default(); 5];
            for (tally, method) in tallies.iter_mut().zip(COLUMNS) {
                let method = method.map_or(String::new(), |method| format!("--method {method}"));
                let output = lab.command(&format!("center {scan} {angles} {method} --json")).output().unwrap();
                let Ok(report) = serde_json::from_slice::<serde_json::Value>(&output.stdout) else { continue };
                let value = report["center"]["value"].as_f64().unwrap();
                let correct = possible && (value - axis).abs() <= TOLERANCE;
                let ok = report["center"]["verdict"] == "ok";
                assert!(correct || !ok, "{name} {angles} {method}: {report}");
                tally.add(Some(Answer { ok, correct }));
            }
            row(&format!("{name}, {way}"), &tallies);
            assert_eq!(tallies[4].0, if possible { [1, 0, 0, 0] } else { [0, 0, 0, 1] }, "{name} {way}");
        }
    }
}
