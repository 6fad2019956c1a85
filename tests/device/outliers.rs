//! Outliers that a device replaces: the same bits and the same counts as by the definition, and as on the host.

use crate::correction::{OFFSET, negative, stored};
use crate::support::cli::Lab;
use fbp::device::{Session, enumerate};
use fbp::operations::{DetectorRows, OutlierForm, OutlierRemover, OutlierRows, PieceSize};
use fbp::source::{SampleType, Stack, Stacks, StoredSamples};
use fbp::steps::{Band, Counts, Data, Outliers, Ready, RowSteps, Step};
use fbp_reference::median_around;
use half::f16;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::Range;

const U16: StoredSamples = StoredSamples { sample: SampleType::U16, swapped: false };
/// What no kernel writes.
const UNTOUCHED: f32 = -77.25;

/// Counts of all projections, `[projection][row][bin]`, and what is saturated.
struct Detector {
    counts: Vec<f64>,
    bins: usize,
    height: usize,
    projections: usize,
    saturation: Option<f32>,
}

/// Noise on a slope, with an edge, and zingers, dark pixels and saturated ones, alone and next to each other.
fn detector(bins: usize, height: usize, projections: usize) -> Detector {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let mut counts = Vec::new();
    for _ in 0..projections {
        for y in 0..height {
            for x in 0..bins {
                let edge = if x + y < bins / 2 { 60 } else { 0 };
                counts.push(f64::from(rng.random_range(60..90) + edge + (y % 40) as i32));
            }
        }
    }
    let at = |p: usize, y: usize, x: usize| (p * height + y.min(height - 1)) * bins + x.min(bins - 1);
    for p in 0..projections {
        for _ in 0..(bins * height).div_ceil(40) {
            let (y, x) = (rng.random_range(0..height), rng.random_range(0..bins));
            let value = f64::from([0, 20, 200, 240, 250][rng.random_range(0..5)]);
            for (dy, dx) in [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().take(rng.random_range(1..5)) {
                counts[at(p, y + dy, x + dx)] = value;
            }
        }
    }
    Detector { counts, bins, height, projections, saturation: Some(250.0) }
}

fn session() -> Session {
    Session::open(&enumerate().unwrap()[0]).unwrap()
}

/// Counts as the device reads them from samples of a type.
fn read_back(counts: &[f64], sample: SampleType) -> Vec<f32> {
    let offset = if negative(sample) { OFFSET } else { 0.0 };
    let value = |&count: &f64| match sample {
        SampleType::F16 => f16::from_f64(count).to_f32(),
        _ => (count - offset) as f32,
    };
    counts.iter().map(value).collect()
}

/// From the definition: values `[projection][row][bin]`, and {outliers, saturated} for every row.
fn by_definition(detector: &Detector, values: &[f32], form: OutlierForm, saturation: f32) -> (Vec<f32>, Vec<[u32; 2]>) {
    let Detector { bins, height, .. } = *detector;
    let (mut clean, mut counts) = (values.to_vec(), vec![[0; 2]; height]);
    for (p, frame) in values.chunks(bins * height).enumerate() {
        for y in 0..height {
            for x in 0..bins {
                let (pixel, median) = (frame[y * bins + x], median_around(frame, bins, [x, y], form.size));
                if pixel - median > form.threshold || form.both && median - pixel > form.threshold {
                    clean[(p * height + y) * bins + x] = median;
                    counts[y][0] += 1;
                }
                counts[y][1] += u32::from(pixel >= saturation);
            }
        }
    }
    (clean, counts)
}

/// All rows of all projections, and the counts of every row, from pieces that end at these rows, with `more` rows read
/// around each than are needed.
fn on_device(
    session: &Session,
    detector: &Detector,
    stored_as: StoredSamples,
    form: OutlierForm,
    ends: &[usize],
    more: usize,
) -> (Vec<f32>, Vec<[u32; 2]>) {
    let Detector { bins, height, projections, saturation, .. } = *detector;
    let starts = [0].into_iter().chain(ends.iter().copied());
    let pieces: Vec<Range<usize>> = starts.zip(ends).map(|(start, &end)| start..end).collect();
    let piece = pieces.iter().map(Range::len).max().unwrap();
    let offset = if negative(stored_as.sample) { OFFSET as f32 } else { 0.0 };
    let saturation = saturation.map(|level| level - offset);
    let size = PieceSize { rows: piece, projections, counted: height + 3, at_once: 2 };
    let rows = DetectorRows { stored: stored_as, saturation, bins, height, piece: size };
    let mut remover = OutlierRemover::new(session, form, rows).unwrap();
    let mut outs = Vec::new();
    // the last piece first: rows need not come in order
    for wanted in pieces.iter().rev() {
        let halo = form.size / 2 + more;
        let read = wanted.start.saturating_sub(halo)..(wanted.end + halo).min(height);
        let rows_of = |frame: &[f64]| frame[read.start * bins..read.end * bins].to_vec();
        let counts: Vec<f64> = detector.counts.chunks(bins * height).flat_map(rows_of).collect();
        let bytes = stored(&counts, stored_as);
        let mut samples: Buffer<u8> = session.buffer(bytes.len(), CL_MEM_READ_WRITE, "samples").unwrap();
        session.write(&mut samples, &bytes, "samples").unwrap();
        let length = projections * wanted.len() * bins;
        let mut out: Buffer<f32> = session.buffer(length + 1, CL_MEM_READ_WRITE, "values").unwrap();
        session.write(&mut out, &vec![UNTOUCHED; length + 1], "values").unwrap();
        let rows =
            OutlierRows { read, wanted: wanted.clone(), counted: wanted.clone(), place: wanted.start + 2, projections };
        remover.run(session, &samples, &out, &rows).unwrap();
        outs.push((wanted, out));
    }
    let counts = remover.take_counts(session, height + 3).unwrap();
    assert_eq!([counts[0], counts[1], counts[height + 2]], [[0, 0]; 3], "beside the rows");
    let again = remover.take_counts(session, height + 3).unwrap();
    assert!(again.iter().flatten().all(|&count| count == 0), "what was handed out is forgotten");
    let mut all = vec![0f32; detector.counts.len()];
    for (wanted, out) in outs {
        let mut values = vec![0f32; projections * wanted.len() * bins + 1];
        session.read(&out, &mut values, "values").unwrap();
        assert_eq!(values.pop(), Some(UNTOUCHED));
        for (frame, piece) in all.chunks_mut(bins * height).zip(values.chunks(wanted.len() * bins)) {
            frame[wanted.start * bins..wanted.end * bins].copy_from_slice(piece);
        }
    }
    (all, counts[2..height + 2].to_vec())
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// Compares with the definition; returns the number of outliers.
fn check(session: &Session, detector: &Detector, stored_as: StoredSamples, form: OutlierForm, ends: &[usize]) -> u32 {
    let values = read_back(&detector.counts, stored_as.sample);
    let offset = if negative(stored_as.sample) { OFFSET as f32 } else { 0.0 };
    let saturation = detector.saturation.map_or(f32::NAN, |level| level - offset);
    let (values, counts) = by_definition(detector, &values, form, saturation);
    let (got, found) = on_device(session, detector, stored_as, form, ends, ends.len() % 2);
    let what = format!("{}x{}, {stored_as:?}, {form:?}, {ends:?}", detector.bins, detector.height);
    let differ = bits(&got).iter().zip(bits(&values)).position(|(a, b)| *a != b);
    assert!(differ.is_none(), "{what}: value {differ:?}");
    assert_eq!(found, counts, "{what}");
    counts.iter().map(|[outliers, _]| outliers).sum()
}

#[test]
fn every_size() {
    let (session, detector) = (session(), detector(150, 47, 2));
    for size in (3..=15).step_by(2) {
        for (threshold, both) in [(45.0, false), (45.0, true), (0.0, true), (1000.0, true)] {
            let form = OutlierForm { size, threshold, both };
            // pieces of more rows than a work-group has, of one row, and whose neighbours are both ends
            for ends in [&[34, 35, 41, 47][..], &[47]] {
                let outliers = check(&session, &detector, U16, form, ends);
                assert_eq!(outliers > 0, threshold < 1000.0);
            }
        }
    }
}

#[test]
fn every_sample_type() {
    let (session, detector) = (session(), detector(37, 12, 3));
    use SampleType::{F16, F32, I8, I16, I32, U8, U16, U32};
    for sample in [U8, U16, U32, I8, I16, I32, F16, F32] {
        for swapped in [false, true] {
            let form = OutlierForm { size: 5, threshold: 45.5, both: true };
            assert!(check(&session, &detector, StoredSamples { sample, swapped }, form, &[4, 12]) > 0);
        }
    }
}

#[test]
fn small_detectors() {
    let session = session();
    for (bins, height) in [(1, 1), (1, 9), (9, 1), (2, 3), (3, 2), (129, 2), (128, 1)] {
        for size in [3, 7, 15] {
            let detector = Detector { saturation: None, ..detector(bins, height, 2) };
            let form = OutlierForm { size, threshold: 30.0, both: true };
            check(&session, &detector, U16, form, &[height]);
            check(&session, &detector, U16, form, &(1..=height).collect::<Vec<_>>());
        }
    }
}

#[test]
fn devices_with_little() {
    let (mut session, detector) = (session(), detector(75, 30, 2));
    for (max_work_group, local_memory) in [(1, 16 << 10), (48, 16 << 10), (4096, 4 << 10), (256, 1 << 20)] {
        session.facts.max_work_group = max_work_group;
        session.facts.local_memory = local_memory;
        for size in [3, 15] {
            check(&session, &detector, U16, OutlierForm { size, threshold: 45.0, both: true }, &[29, 30]);
        }
    }
}

#[test]
fn fractions_and_infinities() {
    const F32: StoredSamples = StoredSamples { sample: SampleType::F32, swapped: false };
    let (session, mut detector) = (session(), detector(60, 40, 2));
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    for count in &mut detector.counts {
        *count = match rng.random_range(0..40) {
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            2 => -1e38,
            3 => 1e-40,
            _ => rng.random_range(-10.0..10.0),
        };
    }
    // more than half of a neighbourhood
    detector.counts[20 * 60..22 * 60].fill(f64::INFINITY);
    detector.counts[30 * 60..33 * 60].fill(f64::NEG_INFINITY);
    for size in (3..=15).step_by(2) {
        assert!(check(&session, &detector, F32, OutlierForm { size, threshold: 6.7, both: true }, &[13, 40]) > 0);
    }
}

#[test]
fn what_is_no_number_changes_nothing_far_away() {
    const F32: StoredSamples = StoredSamples { sample: SampleType::F32, swapped: false };
    let (session, mut detector) = (session(), detector(60, 30, 1));
    let form = OutlierForm { size: 7, threshold: 45.0, both: true };
    let (without, _) = on_device(&session, &detector, F32, form, &[30], 0);
    detector.counts[15 * 60 + 20] = f64::NAN;
    let (with, _) = on_device(&session, &detector, F32, form, &[30], 0);
    assert!(with[15 * 60 + 20].is_nan());
    for (place, (a, b)) in with.iter().zip(&without).enumerate() {
        let near = (place / 60).abs_diff(15) <= 3 && (place % 60).abs_diff(20) <= 3;
        assert!(near || a.to_bits() == b.to_bits(), "{place}");
    }
    detector.counts.fill(f64::NAN);
    let (with, counts) = on_device(&session, &detector, F32, form, &[30], 0);
    assert!(with.iter().all(|value| value.is_nan()) && counts.iter().flatten().all(|&count| count == 0));
}

/// The host's step on whole frames.
#[test]
fn the_host_does_the_same() {
    let (session, lab) = (session(), Lab::new());
    let Detector { bins, height, .. } = Detector { ..detector(101, 40, 2) };
    lab.page("frames/p.tif", bins, &vec![0.0; bins * height]);
    let stack = Stack::open(lab.path("frames").to_str().unwrap(), "projections").unwrap();
    let stacks = Stacks::of(stack);
    let seen = fbp::steps::Optics::of([bins, height]);
    let data = Data {
        stacks: &stacks,
        optics: &seen,
        median: false,
        minus_log: false,
        images: false,
        projections: 4,
        used: &[0, 1, 2, 3],
        air: None,
        rows: 0..height,
        most_rows: height,
        means: None,
    };
    let detector = detector(bins, height, 2);
    for (size, threshold, both) in [(3, 45.0, false), (5, 30.0, true), (15, 45.0, true)] {
        let step = Some(Outliers::new(size, threshold, both)).ready(&data, &RowSteps::default()).unwrap();
        let Some(Ready::Rows(step)) = step else { unreachable!() };
        let (mut values, mut counts) = (read_back(&detector.counts, SampleType::U16), Counts::default());
        for frame in values.chunks_mut(bins * height) {
            step.apply(&mut Band::new(frame, height, 0..height, 0..height), &mut counts);
        }
        let form = OutlierForm { size, threshold, both };
        let (got, found) = on_device(&session, &detector, U16, form, &[7, 40], 0);
        assert!(bits(&got) == bits(&values), "{form:?}");
        assert_eq!(found.iter().map(|[outliers, _]| u64::from(*outliers)).sum::<u64>(), counts.outliers, "{form:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let session = session();
    let form = OutlierForm { size: 5, threshold: 1.0, both: false };
    let piece = PieceSize { rows: 6, projections: 2, counted: 8, at_once: 1 };
    let rows = DetectorRows { stored: U16, saturation: None, bins: 10, height: 20, piece };
    let new = |form, rows| OutlierRemover::new(&session, form, rows);
    let mut remover = new(form, rows).unwrap();
    let samples: Buffer<u8> = session.buffer(2 * 2 * 10 * 10, CL_MEM_READ_WRITE, "samples").unwrap();
    let values: Buffer<f32> = session.buffer(2 * 6 * 10, CL_MEM_READ_WRITE, "values").unwrap();
    let mut run = |read: Range<usize>, wanted: Range<usize>, place: usize| {
        let rows = OutlierRows { read, counted: wanted.clone(), wanted, place, projections: 2 };
        remover.run(&session, &samples, &values, &rows).is_ok()
    };
    assert!(run(3..13, 5..11, 2));
    assert!(run(0..8, 0..6, 0) && run(13..20, 15..20, 0) && run(3..13, 6..6, 0));
    assert!(!run(3..13, 5..11, 3), "past the chunk");
    assert!(!run(4..13, 5..11, 0) && !run(3..12, 5..11, 0), "rows around are missing");
    assert!(!run(2..13, 5..11, 0), "more samples than there are");
    assert!(!run(12..21, 15..20, 0) && !run(12..21, 15..21, 0), "past the detector");
    assert!(!run(3..13, 4..11, 0), "more than a piece");
    let empty = Range { start: 7, end: 6 };
    assert!(!run(3..13, empty, 0), "backwards");
    assert!(new(form, DetectorRows { stored: StoredSamples { sample: SampleType::F64, ..U16 }, ..rows }).is_err());
    assert!(
        new(form, DetectorRows { bins: 0, ..rows }).is_err() && new(form, DetectorRows { height: 0, ..rows }).is_err()
    );
    for size in [0, 1, 4, 17] {
        assert!(new(OutlierForm { size, ..form }, rows).is_err());
    }
}
