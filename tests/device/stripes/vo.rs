//! Methods that sort columns.

use super::{TINY, compare, small};
use crate::kernels::setup::device;
use fbp::device::Session;
use fbp::operations::{LowFrequencies, RunningMedians, SinogramBatch};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| rng.random_range(-1.0f32..3.0)).collect()
}

/// Low frequencies of a column by sums in `f64`.
fn low_pass(column: &[f64], sigma: f64) -> Vec<f64> {
    let n = column.len();
    let angle = |k: usize, i: usize| TAU * (k * i % n) as f64 / n as f64;
    let mut out = vec![0f64; n];
    for k in 0..n {
        // frequencies from the middle on are the negative ones
        let weight = (-0.5 * (k.min(n - k) as f64 / sigma).powi(2)).exp() / n as f64;
        let re: f64 = column.iter().enumerate().map(|(i, v)| v * angle(k, i).cos()).sum();
        let im: f64 = column.iter().enumerate().map(|(i, v)| v * angle(k, i).sin()).sum();
        let sum = |(i, out): (usize, &mut f64)| *out += weight * (angle(k, i).cos() * re + angle(k, i).sin() * im);
        out.iter_mut().enumerate().for_each(sum);
    }
    out
}

#[test]
fn low_frequencies_of_columns() {
    let session = Session::open(&device()).unwrap();
    for (rows, columns, sigma) in [(1, 1, 3.0), (2, 3, 0.4), (37, 65, 3.0), (100, 20, 1000.0), (130, 64, 5.5)] {
        let (slices, pad, first) = (3, rows / 10, 5);
        let lines: Vec<usize> = (1..=pad).rev().chain(0..rows).chain((0..pad).map(|i| rows - 2 - i)).collect();
        let values = noise(3, first + slices * rows * columns);
        let input = session.constant_buffer(&values, "values").unwrap();
        let out = session.scratch(slices * rows * columns, "low frequencies").unwrap();
        let low = LowFrequencies::new(&session, slices, columns, &lines, pad..pad + rows, sigma).unwrap();
        low.run(&session, &SinogramBatch { values: &input, first, slices, projections: rows, bins: columns }, &out)
            .unwrap();
        let mut found = vec![0f32; slices * rows * columns];
        session.read(&out, &mut found, "low frequencies").unwrap();
        for (image, found) in values[first..].chunks(rows * columns).zip(found.chunks(rows * columns)) {
            for column in 0..columns {
                let samples: Vec<f64> = lines.iter().map(|line| f64::from(image[line * columns + column])).collect();
                let want = low_pass(&samples, sigma);
                for (row, want) in want[pad..pad + rows].iter().enumerate() {
                    let found = f64::from(found[row * columns + column]);
                    assert!((found - want).abs() < 1e-5, "{rows} x {columns}, {sigma}: {found}, not {want}");
                }
            }
        }
    }
}

/// Medians in the order of `total_cmp`, by sorting each window.
fn medians(row: &[f32], size: usize) -> Vec<f32> {
    let count = row.len() as i64;
    let mirrored = |i: i64| {
        let i = i.rem_euclid(2 * count);
        row[i.min(2 * count - 1 - i) as usize]
    };
    let median = |i: i64| {
        let reach = size as i64 / 2;
        let mut window: Vec<f32> = (i - reach..=i + reach).map(mirrored).collect();
        window.sort_by(f32::total_cmp);
        window[size / 2]
    };
    (0..count).map(median).collect()
}

#[test]
fn running_medians() {
    let session = small(u64::MAX, usize::MAX);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let repeated = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE];
    for (size, projections, bins) in
        [(1, 3, 70), (1, 2, 1), (3, 65, 2), (5, 9, 200), (63, 4, 900), (65, 4, 900), (1001, 3, 40), (1001, 2, 1100)]
    {
        let (slices, first) = (2, 3);
        let value =
            |i: usize| if i % 3 == 0 { rng.random_range(-2.0f32..2.0) } else { repeated[rng.random_range(0..8)] };
        let values: Vec<f32> = (0..first + slices * bins * projections).map(value).collect();
        let input = session.constant_buffer(&values, "values").unwrap();
        let out = session.scratch(values.len() - first, "medians").unwrap();
        let medians_of = RunningMedians::new(&session, size).unwrap();
        let columns = SinogramBatch { values: &input, first, slices, projections, bins };
        medians_of.run(&session, &columns, &columns.in_buffer(&out)).unwrap();
        let mut found = vec![0f32; values.len() - first];
        session.read(&out, &mut found, "medians").unwrap();
        for (image, found) in values[first..].chunks(bins * projections).zip(found.chunks(bins * projections)) {
            for p in 0..projections {
                let row = |image: &[f32]| image.iter().skip(p).step_by(projections).copied().collect::<Vec<_>>();
                let bits = |row: Vec<f32>| row.into_iter().map(f32::to_bits).collect::<Vec<_>>();
                assert_eq!(bits(row(found)), bits(medians(&row(image), size)), "{size}, {projections} x {bins}, {p}");
            }
        }
    }
    assert!(RunningMedians::new(&session, 4).is_err());
}

/// Odd sizes, and columns longer than a tile in local memory on some of the devices.
const SIZES: [[usize; 2]; 4] = [[61, 151], [180, 257], [129, 31], [1100, 40]];

#[test]
fn sorting() {
    let session = small(u64::MAX, usize::MAX);
    for text in ["sorting", "sorting:size=3", "sorting:size=63", "sorting:size=65"] {
        compare(&session, text, &[&SIZES[..2], &TINY].concat(), 0.0);
    }
    compare(&session, "sorting:size=11", &[[2048, 33], [4097, 5]], 0.0);
}

#[test]
fn sorting_with_long_windows() {
    compare(&small(u64::MAX, usize::MAX), "sorting:size=1001", &[[7, 50], [20, 1300]], 0.0);
}

/// Work-groups of few items.
#[test]
fn small_groups() {
    for (local_memory, max_work_group) in [(16 << 10, 48), (1 << 10, 1)] {
        let session = small(local_memory, max_work_group);
        compare(&session, "all", &[[33, 67]], 0.0);
        compare(&session, "filtering:size=5", &[[33, 67]], 0.002);
    }
}

/// Columns that are sorted in tiles and merged.
#[test]
fn long_columns() {
    compare(&small(8 << 10, 64), "sorting", &SIZES, 0.0);
    compare(&small(2 << 10, 256), "sorting", &SIZES, 0.0);
    compare(&small(2 << 10, 64), "large", &SIZES, 0.0);
    compare(&small(4 << 10, 128), "all", &SIZES, 0.0);
    compare(&small(u64::MAX, usize::MAX), "sorting:size=3", &[[70000, 3]], 0.0);
}

#[test]
fn filtering() {
    let session = small(u64::MAX, usize::MAX);
    compare(&session, "filtering", &[&SIZES[..3], &TINY].concat(), 0.002);
    compare(&session, "filtering:sigma=1000,size=5", &SIZES[..2], 0.002);
}

#[test]
fn large_and_dead() {
    let session = small(u64::MAX, usize::MAX);
    for text in ["large", "large:snr=0.5,size=11,drop=0.8", "dead", "dead:snr=0.7,size=5"] {
        compare(&session, text, &[&SIZES[..3], &TINY].concat(), 0.0);
    }
}

#[test]
fn all() {
    let session = small(u64::MAX, usize::MAX);
    compare(&session, "all", &[&SIZES[..], &TINY].concat(), 0.0);
    compare(&session, "all:snr=1,large=71,small=9,drop=0", &SIZES[..3], 0.0);
}
