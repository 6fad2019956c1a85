//! Removal of stripes on a device, as on the host.

mod linear;
mod vo;

use crate::kernels::setup::device;
use fbp::device::Session;
use fbp::operations::{SinogramBatch, SinogramShape};
use fbp::steps::Stripes;
use opencl3::memory::CL_MEM_READ_WRITE;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;

/// A sample of two ellipses with stripes of several kinds and noise.
fn striped(projections: usize, bins: usize, rng: &mut ChaCha8Rng) -> Vec<f32> {
    let offsets: Vec<f32> =
        (0..bins).map(|_| if rng.random_range(0..7) == 0 { rng.random_range(-0.2..0.2) } else { 0.0 }).collect();
    let r = bins as f64 / 2.0;
    let mut out = Vec::new();
    for p in 0..projections {
        let (sin, cos) = (PI * p as f64 / projections as f64).sin_cos();
        for (b, offset) in offsets.iter().enumerate() {
            let t = (b as f64 + 0.5 - r) / r;
            let chord = |(density, a, c, x, y): (f64, f64, f64, f64, f64)| {
                let s2 = (a * cos).powi(2) + (c * sin).powi(2);
                let h = t - x * cos - y * sin;
                2.0 * density * a * c * (s2 - h * h).max(0.0).sqrt() / s2
            };
            let exact = chord((1.0, 0.8, 0.6, 0.02, -0.05)) + chord((-0.5, 0.2, 0.3, 0.3, 0.1));
            let drift = 0.5 + p as f32 / projections as f32;
            out.push(exact as f32 + offset * drift + rng.random_range(-0.02f32..0.02));
        }
    }
    out
}

/// Sinograms of different kinds, one after the other.
fn batch(projections: usize, bins: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64((1000 * projections + bins) as u64);
    let count = projections * bins;
    let mut all = striped(projections, bins, &mut rng);
    all.extend((0..count).map(|_| rng.random_range(-3.0f32..3.0)));
    let mut broken = striped(projections, bins, &mut rng);
    let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    broken.iter_mut().step_by(7).enumerate().for_each(|(i, value)| *value = values[i % 3]);
    all.extend(broken);
    all.extend(vec![0.25; count]);
    all
}

/// What the device makes of sinograms, at most `at_a_time` together; they start at value `first` of the buffer.
fn on_device(
    session: &Session,
    method: &Stripes,
    all: &[f32],
    [projections, bins]: [usize; 2],
    at_a_time: usize,
    first: usize,
) -> Vec<f32> {
    let shape = SinogramShape { slices: at_a_time, projections, bins };
    let mut step = method.on_device(session, shape).unwrap();
    let mut values = session.buffer::<f32>(first + all.len(), CL_MEM_READ_WRITE, "sinograms").unwrap();
    session.upload(&mut values, first, all, "sinograms").unwrap();
    let slices = all.len() / (projections * bins);
    let sinograms = SinogramBatch { values: &values, first, slices, projections, bins };
    step.apply_in_parts(session, &sinograms, at_a_time).unwrap();
    session.finish().unwrap();
    let mut out = vec![0.0; all.len()];
    session.download(&values, first, &mut out, "sinograms").unwrap();
    out
}

/// Largest difference to the host's result, as a share of the sinogram's range.
const MARGIN: f32 = 2e-6;

/// Compares a method on the device with the host's results for the same sinograms, one by one, and the results for
/// other numbers of sinograms at a time, and another place in the buffer, bit by bit.
///
/// A share of values, `traded`, may differ by 1 % of the range: sorting puts values that are equal within rounding
/// in either order, and neighbouring columns decide by how much the smoothed values differ.
fn compare(session: &Session, text: &str, sizes: &[[usize; 2]], traded: f32) {
    let method: Stripes = text.parse().unwrap();
    let mut changed = false;
    for &[projections, bins] in sizes {
        let len = projections * bins;
        let all = batch(projections, bins);
        let found = on_device(session, &method, &all, [projections, bins], 4, 0);
        for (i, (found, before)) in found.chunks(len).zip(all.chunks(len)).enumerate() {
            let mut expected = before.to_vec();
            method.remove(&mut expected, projections, bins);
            let finite = || before.iter().copied().filter(|v| v.is_finite());
            let range = finite().fold(0.0, f32::max) - finite().fold(0.0, f32::min);
            let differences: Vec<f32> = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).collect();
            let worst = differences.iter().copied().fold(0.0, f32::max);
            let many = differences.iter().filter(|difference| **difference > MARGIN * range).count();
            let what = format!("{text}, {projections} x {bins}, sinogram {i}: {worst} of {range}, {many} values");
            assert!(found.iter().all(|v| v.is_finite()), "{what}");
            assert!(many as f32 <= traded * len as f32 && worst <= 0.01 * range, "{what}");
            changed |= found.iter().zip(before).any(|(a, b)| (a - b).abs() > 0.01 * range);
        }
        for (at_a_time, first) in [(1, 3), (3, 0)] {
            let again = on_device(session, &method, &all, [projections, bins], at_a_time, first);
            let other = found.iter().zip(&again).enumerate().filter(|(_, (a, b))| a.to_bits() != b.to_bits());
            let other: Vec<(usize, (&f32, &f32))> = other.collect();
            let what = format!("{text}, {projections} x {bins}: {at_a_time} at a time");
            assert!(other.is_empty(), "{what} give {} other values: {:?}", other.len(), &other[..other.len().min(4)]);
        }
    }
    assert!(changed, "{text} did nothing");
}

/// A session that keeps to this much local memory and to work-groups of this size, as on a smaller device.
fn small(local_memory: u64, max_work_group: usize) -> Session {
    let mut session = Session::open(&device()).unwrap();
    session.facts.local_memory = session.facts.local_memory.min(local_memory);
    session.facts.max_work_group = session.facts.max_work_group.min(max_work_group);
    session
}

const TINY: [[usize; 2]; 6] = [[1, 1], [1, 40], [40, 1], [2, 2], [3, 5], [9, 300]];

/// Sums of such values overflow, which they do not in the host's double precision.
#[test]
fn huge_values_leave_nothing_but_numbers() {
    let session = small(u64::MAX, usize::MAX);
    let values: Vec<f32> = (0..60 * 83).map(|i| if i % 5 == 1 { f32::MAX } else { -f32::MAX }).collect();
    for text in
        ["sorting", "filtering", "large", "dead", "all", "mean", "titarenko", "fitting", "fitting:sigma=40", "wavelet"]
    {
        let found = on_device(&session, &text.parse().unwrap(), &values, [60, 83], 1, 0);
        assert!(found.iter().all(|v| v.is_finite()), "{text}");
    }
}
