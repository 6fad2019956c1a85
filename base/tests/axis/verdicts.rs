//! How reliable verdicts on the rotation axis are: simulated scans of many kinds with a known axis.
//!
//! `FBP_TEST_SCANS` is the number of simulated scans of each kind; scripts/axis-table runs enough of them to judge by, and
//! prints the table of docs/dev/axis.md.

use super::scans::{COLUMNS, Ellipse, Scan};
use fbp_base::center::{AxisVerdict, Method, find};
use fbp_base::geometry::even_angles;
use fbp_base::phantom::add_gaussian;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::Distribution;
use rayon::prelude::*;
use std::path::Path;

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
    /// Photons per bin without a sample, on a logarithmic scale; none: Gaussian noise.
    photons: Option<(f64, f64)>,
    /// Share of values that a stray photon has raised.
    zingers: f64,
    /// Largest distance of an angle from its even place, in steps.
    uneven: f64,
    /// Share of successive projections that are missing inside the scan.
    missing: f64,
    /// Bins from the axis of the first to that of the last row, either way.
    tilt: (f64, f64),
    /// The sample is a disc about a place near the axis.
    disc: bool,
    /// Share of the detector that both halves of a whole turn see.
    overlap: Option<(f64, f64)>,
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
    photons: None,
    zingers: 0.0,
    uneven: 0.0,
    missing: 0.0,
    tilt: (0.0, 0.0),
    disc: false,
    overlap: None,
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

/// Scans that single methods are not made for.
fn hard_kinds() -> Vec<Kind> {
    let whole = Kind { covers: 360.0, declared: 360.0, ..PLAIN };
    let dim = Some((200.0, 1500.0));
    let disc = Kind { disc: true, photons: Some((4e3, 4e4)), ..PLAIN };
    vec![
        Kind { name: "dim", photons: dim, ..PLAIN },
        Kind {
            name: "half as many projections as bins",
            projections: (0.45, 0.55),
            photons: Some((4e3, 4e4)),
            ..PLAIN
        },
        Kind { name: "truncated far", radius: (1.2, 2.5), photons: Some((4e3, 4e4)), ..PLAIN },
        Kind { name: "truncated, dim", radius: (1.2, 2.5), photons: dim, ..PLAIN },
        Kind { name: "half acquisition", overlap: Some((0.1, 0.9)), photons: Some((4e3, 4e4)), ..whole },
        Kind { name: "half acquisition, dim", overlap: Some((0.1, 0.9)), photons: dim, ..whole },
        Kind { name: "uneven angles", uneven: 0.45, ..PLAIN },
        Kind { name: "missing angles", missing: 0.12, ..PLAIN },
        Kind { name: "zingers", zingers: 0.003, photons: Some((4e3, 4e4)), ..PLAIN },
        Kind { name: "moved by half a bin", drift: 0.5, ..PLAIN },
        Kind { name: "tilted", tilt: (1.0, 2.0), ..PLAIN },
        Kind { name: "disc", ..disc },
        Kind { name: "disc, truncated", radius: (1.2, 2.0), ..disc },
        Kind { name: "disc, half acquisition", overlap: Some((0.1, 0.9)), covers: 360.0, declared: 360.0, ..disc },
        Kind { name: "empty", empty: 1.0, photons: Some((4e3, 4e4)), ..PLAIN },
    ]
}

/// Moves angles out of their even places, and leaves some out.
fn uneven(kind: &Kind, mut angles: Vec<f64>, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let (step, count) = (angles[1] - angles[0], angles.len());
    for angle in angles.iter_mut().filter(|_| kind.uneven > 0.0) {
        *angle += kind.uneven * step * rng.random_range(-1.0..1.0);
    }
    if kind.missing > 0.0 {
        let lost = (count as f64 * rng.random_range(0.25..1.0) * kind.missing) as usize;
        let first = rng.random_range(0..count - lost);
        angles.drain(first..first + lost);
    }
    angles
}

fn make(kind: &Kind, seed: u64) -> Scan {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let between =
        |rng: &mut ChaCha8Rng, (low, high): (f64, f64)| if high > low { rng.random_range(low..high) } else { low };
    let bins = rng.random_range(72..=200usize);
    let count = (bins as f64 * between(rng, kind.projections) * (kind.covers / 180.0).round()) as usize;
    let last = bins as f64 - 1.0;
    let mut axis = last / 2.0 + bins as f64 * kind.offset * rng.random_range(-1.0..1.0);
    if let Some(overlap) = kind.overlap {
        axis = between(rng, overlap) * bins as f64 / 2.0;
        axis = if rng.random_range(0.0..1.0) < 0.5 { axis } else { last - axis };
    }
    let radius = axis.min(last - axis) * between(rng, kind.radius);
    let wide = kind.offset > 0.3 || kind.overlap.is_some();
    let radius = if wide { axis.max(last - axis) * 0.95 } else { radius };
    let many = rng.random_range(1..30);
    let sizes = rng.random_range(0.04..0.4);
    let rows = if kind.tilt.1 > 0.0 { rng.random_range(3..=6) } else { rng.random_range(1..=6) };
    let samples: Vec<Vec<Ellipse>> = (0..rows)
        .map(|row| match (row > 0 || kind.empty == 1.0) && rng.random_range(0.0..1.0) < kind.empty {
            true => Vec::new(),
            false if kind.disc => vec![Ellipse::disc(rng, radius)],
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
    let angles = uneven(kind, even(kind.covers), rng);
    let mut places = Vec::new();
    let shaking = rng.random_range(0.1..1.0);
    let drift = kind.drift * rng.random_range(0.2..1.0);
    for p in 0..angles.len() {
        let mut jitter = [0f32];
        add_gaussian(&mut jitter, kind.jitter * shaking, rng);
        places.push(axis + drift * (p as f64 / angles.len() as f64 - 0.5) + f64::from(jitter[0]));
    }
    let noise = if kind.photons.is_some() { 0.0 } else { between(rng, kind.noise) };
    let tilt = if kind.tilt.1 > 0.0 { between(rng, kind.tilt) * [-1.0, 1.0][rng.random_range(0..2)] } else { 0.0 };
    let declared = if kind.covers == kind.declared { angles.clone() } else { even(kind.declared) };
    let mut scan = Scan { bins, axis, angles: declared, rows: Vec::new() };
    for (row, sample) in samples.into_iter().enumerate() {
        let beside = tilt * (row as f64 / (rows - 1).max(1) as f64 - 0.5);
        let places: Vec<f64> = places.iter().map(|place| place + beside).collect();
        scan.rows.extend(Scan::of(bins, &places, angles.clone(), &[sample], noise, rng).rows);
    }
    if let Some((low, high)) = kind.photons {
        let photons = low * (high / low).powf(rng.random_range(0.0..1.0));
        let largest = scan.rows.iter().flatten().copied().fold(1e-6f32, f32::max);
        let attenuation = rng.random_range(0.8..3.0);
        scan.rows.iter_mut().for_each(|row| count_photons(row, photons, attenuation / largest, kind.zingers, rng));
    }
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

/// Replaces line integrals, times a factor, by those of counted photons, some of them raised.
fn count_photons(row: &mut [f32], photons: f64, factor: f32, zingers: f64, rng: &mut ChaCha8Rng) {
    for value in row {
        let mut counted = rand_distr::Poisson::new(photons * f64::from((-*value * factor).exp())).unwrap().sample(rng);
        if rng.random_range(0.0..1.0) < zingers {
            counted += photons * rng.random_range(0.5..5.0);
        }
        *value = -(counted.max(0.5) / photons).ln() as f32;
    }
}

/// Farther from the axis than this many bins is wrong.
const TOLERANCE: f64 = 0.5;

/// What a method said of a scan.
#[derive(Clone, Copy)]
struct Answer {
    ok: bool,
    correct: bool,
    /// Error over the stated one.
    error: f64,
    /// Whether it reports a tilt where there is none; `None` where it does not look for one.
    false_tilt: Option<bool>,
}

/// How often a method was ok and correct, ok and wrong, refused and correct, refused and wrong.
#[derive(Clone, Copy, Default)]
struct Tally([usize; 4]);

impl Tally {
    fn add(&mut self, answer: Option<Answer>) {
        if let Some(Answer { ok, correct, .. }) = answer {
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

/// Likelihood, registration, vo, overlap, sweep and none given, each on the same scan; `None` where a method does not suit it.
type Answers = [Option<Answer>; 6];

/// With angles that are not the scan's no answer is correct.
fn answers(kind: &Kind, seed: u64) -> Answers {
    let scan = make(kind, seed);
    let sinograms = scan.sinograms();
    let possible = kind.covers == kind.declared && kind.empty < 1.0;
    if let Some(directory) = std::env::var_os("FBP_TEST_EXPORT") {
        export(Path::new(&directory), kind, seed, &scan, possible);
    }
    COLUMNS.map(|method| {
        let search = find(&sinograms, method, None).ok()?;
        let found = search.found[0];
        let false_tilt = search.tilt.map(|tilt| tilt.slope != 0.0).filter(|_| kind.tilt.1 == 0.0);
        let correct = possible && (found.value - scan.axis).abs() <= TOLERANCE;
        let ok = found.verdict == AxisVerdict::Ok;
        if ok != correct && possible && (ok || method.is_none()) {
            println!("{} {seed}: {found}, the axis is at {:.2}", kind.name, scan.axis);
        }
        Some(Answer { ok, correct, error: (found.value - scan.axis) / found.uncertainty, false_tilt })
    })
}

/// Writes a scan for other programs: its values, and what is known of it.
fn export(directory: &Path, kind: &Kind, seed: u64, scan: &Scan, possible: bool) {
    let place = directory.join(format!("{}-{seed}", kind.name.replace([' ', ','], "-")));
    let values: Vec<u8> = scan.rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    let about = serde_json::json!({
        "kind": kind.name,
        "axis": scan.axis,
        "declared": kind.declared,
        "off_centre": kind.overlap.is_some() || kind.offset > 0.3,
        "possible": possible,
        "shape": [scan.rows.len(), scan.angles.len(), scan.bins],
    });
    std::fs::write(place.with_extension("f32"), values).unwrap();
    std::fs::write(place.with_extension("json"), about.to_string()).unwrap();
}

fn row(name: &str, tallies: &[Tally; 6], more: &str) {
    println!("| {name} | {} |{more}", tallies.map(|tally| tally.to_string()).join(" | "));
}

/// The tallies of one kind after another.
struct Table {
    each: u64,
    first: u64,
    all: Vec<[Tally; 6]>,
    /// Scans on which every method was right, and those of them that were refused.
    easy: usize,
    needless: usize,
    /// Scans that are ok and have no tilt, and those of them of which one is reported.
    upright: usize,
    false_tilts: usize,
}

impl Table {
    fn add(&mut self, kind: &Kind) {
        let scans: Vec<Answers> =
            (self.first..self.first + self.each).into_par_iter().map(|seed| answers(kind, seed)).collect();
        let mut tallies = [Tally::default(); 6];
        let mut errors = Vec::new();
        for answers in &scans {
            tallies.iter_mut().zip(answers).for_each(|(tally, answer)| tally.add(*answer));
            errors.extend(answers[5].filter(|answer| answer.ok && answer.correct).map(|answer| answer.error.powi(2)));
            if answers.iter().flatten().all(|answer| answer.correct) {
                self.easy += 1;
                self.needless += usize::from(answers[5].is_some_and(|answer| !answer.ok));
            }
            if let Some(false_tilt) = answers[5].filter(|answer| answer.ok).and_then(|answer| answer.false_tilt) {
                self.upright += 1;
                self.false_tilts += usize::from(false_tilt);
            }
        }
        let error = (errors.iter().sum::<f64>() / errors.len().max(1) as f64).sqrt();
        row(kind.name, &tallies, &format!(" {error:.2} |"));
        self.all.push(tallies);
    }

    fn sums(&self) -> [Tally; 6] {
        [0, 1, 2, 3, 4, 5].map(|i| Tally::sum(self.all.iter().map(|tallies| tallies[i])))
    }
}

#[test]
fn verdicts_are_calibrated() {
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |count| count.parse().unwrap());
    let mut table = Table {
        each: number("FBP_TEST_SCANS", 1),
        first: number("FBP_TEST_SEED", 0),
        all: Vec::new(),
        easy: 0,
        needless: 0,
        upright: 0,
        false_tilts: 0,
    };
    println!("| scan | likelihood | registration | vo | overlap | sweep | without --method | error / stated |");
    println!("|---|---|---|---|---|---|---|---|");
    kinds().iter().for_each(|kind| table.add(kind));
    for (tally, method) in table.sums().iter().zip(COLUMNS) {
        let [correct, wrong, ..] = tally.0;
        let name = method.map_or("auto", Method::name);
        assert!(wrong as f64 <= 0.005 * (correct + wrong) as f64, "{name}: {wrong} of {} are wrong", correct + wrong);
    }
    // with angles that are not the scan's, and without a sample, all are to be refused
    let hopeless = 3 * table.each as usize;
    hard_kinds().iter().for_each(|kind| table.add(kind));
    let all = table.sums();
    row("all", &all, "");
    let Tally([correct, wrong, refused_correct, refused_wrong]) = all[5];
    println!("without --method: {wrong} of {} that are ok are wrong", correct + wrong);
    let refused = refused_correct + refused_wrong - hopeless;
    let scans = correct + wrong + refused;
    let Table { easy, needless, upright, false_tilts, .. } = table;
    println!("tilt: {false_tilts} reported of {upright} scans that have none");
    println!(
        "refused: {refused} of {scans} that say something; {needless} of these where all methods were within half a bin, \
         as they were for {easy} scans"
    );
    assert!(600 * wrong <= scans, "{wrong} of {scans} are wrong");
    assert!(table.each < 20 || 12 * refused <= scans, "{refused} of {scans} are refused");
    assert!(needless * 10 <= easy, "{needless} of {easy} are refused");
    assert!(false_tilts * 100 <= upright, "{false_tilts} tilts of {upright} upright scans");
}
