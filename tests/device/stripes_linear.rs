//! Removal of stripes on the device: methods that subtract what is linear in the sinogram, or nearly, as on the host.

use crate::kernels::setup::device;
use fbp::device::{Session, SinogramBatch};
use fbp::steps::Stripes;
use opencl3::memory::CL_MEM_READ_WRITE;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::PI;

/// Largest difference to the host's result, as a share of the sinogram's range.
const MARGIN: f32 = 2e-6;

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
pub fn batch(projections: usize, bins: usize) -> Vec<f32> {
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

/// What the device makes of sinograms, of which it has at most `at_a_time` in one call; they start at value `first` of
/// the buffer.
pub fn on_device(
    session: &Session,
    method: &Stripes,
    all: &[f32],
    [projections, bins]: [usize; 2],
    at_a_time: usize,
    first: usize,
) -> Vec<f32> {
    let len = projections * bins;
    let mut step = method.on_device(session, at_a_time, projections, bins).unwrap();
    let mut values = session.buffer::<f32>(first + at_a_time * len, CL_MEM_READ_WRITE, "sinograms").unwrap();
    let mut out = all.to_vec();
    for part in out.chunks_mut(at_a_time * len) {
        session.upload(&mut values, first, part, "sinograms").unwrap();
        let slices = part.len() / len;
        step.apply(session, &SinogramBatch { values: &values, first, slices, projections, bins }).unwrap();
        session.finish().unwrap();
        session.download(&values, first, part, "sinograms").unwrap();
    }
    out
}

fn compare(text: &str, sizes: &[[usize; 2]]) {
    compare_on(&Session::open(&device()).unwrap(), text, sizes);
}

fn compare_on(session: &Session, text: &str, sizes: &[[usize; 2]]) {
    let method: Stripes = text.parse().unwrap();
    let mut changed = false;
    for &[projections, bins] in sizes {
        let all = batch(projections, bins);
        let found = on_device(session, &method, &all, [projections, bins], 4, 0);
        for (i, (found, before)) in found.chunks(projections * bins).zip(all.chunks(projections * bins)).enumerate() {
            let mut expected = before.to_vec();
            method.remove(&mut expected, projections, bins);
            let finite = || before.iter().copied().filter(|v| v.is_finite());
            let range = finite().fold(0.0, f32::max) - finite().fold(0.0, f32::min);
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let right = found.iter().all(|v| v.is_finite()) && worst <= MARGIN * range;
            println!("{text}, {projections} x {bins}, sinogram {i}: {:.1e}", worst / range);
            assert!(right, "{text}, {projections} x {bins}, sinogram {i}: {worst} of {range}");
            changed |= found.iter().zip(before).any(|(a, b)| (a - b).abs() > 0.01 * range);
        }
        for (at_a_time, first) in [(1, 3), (3, 0)] {
            let again = on_device(session, &method, &all, [projections, bins], at_a_time, first);
            let same = found.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{text}, {projections} x {bins}: {at_a_time} at a time give other values");
        }
    }
    assert!(changed, "{text} did nothing");
}

pub const TINY: [[usize; 2]; 6] = [[1, 1], [1, 40], [40, 1], [2, 2], [3, 5], [9, 300]];

#[test]
fn means_and_titarenko() {
    for text in ["mean", "mean:sigma=2.5,blocks=7", "titarenko", "titarenko:alpha=0.3,blocks=1000", "fitting:order=0"] {
        compare(text, &TINY);
        compare(text, &[[61, 151], [180, 257]]);
    }
    compare("titarenko:blocks=3", &[[700, 1500]]);
}

#[test]
fn wavelets() {
    compare("wavelet", &[TINY.as_slice(), &[[61, 151], [180, 257], [33, 500], [300, 47]]].concat());
    compare("wavelet:wavelet=db1,level=1,sigma=0.5", &[[61, 151]]);
    compare("wavelet:wavelet=db2,sigma=20", &[[64, 96]]);
    compare("wavelet:wavelet=db10,sigma=1000", &[[99, 130]]);
    compare("wavelet:level=4", &[[700, 1500]]);
}

#[test]
fn fits() {
    compare("fitting", &[TINY.as_slice(), &[[61, 151], [180, 257]]].concat());
    compare("fitting:order=10,sigma=0.1,blocks=1000", &[[61, 151]]);
    compare("fitting:order=10,sigma=2.5,blocks=4", &[[61, 151]]);
    compare("fitting:order=1,sigma=31", &[[20, 700]]);
    // windows that are searched, larger than the row, too
    compare("fitting:order=1,sigma=40,blocks=2", &[[9, 300], [40, 1500]]);
    compare("fitting:order=3,sigma=1000", &[[6, 41], [5, 3000]]);
}

#[test]
fn devices_with_little_memory_and_small_groups() {
    let mut session = Session::open(&device()).unwrap();
    session.facts.local_memory = 16 << 10;
    for max_work_group in [48, 1] {
        session.facts.max_work_group = max_work_group;
        for text in ["mean", "fitting", "fitting:order=1,sigma=1000", "wavelet"] {
            compare_on(&session, text, &[[33, 151]]);
        }
    }
}

/// Sums of such values overflow, which they do not in the host's double precision.
#[test]
fn huge_values_leave_nothing_but_numbers() {
    let session = Session::open(&device()).unwrap();
    let values: Vec<f32> = (0..60 * 83).map(|i| if i % 5 == 1 { f32::MAX } else { -f32::MAX }).collect();
    for text in ["mean", "titarenko", "fitting", "fitting:sigma=40", "wavelet"] {
        let found = on_device(&session, &text.parse().unwrap(), &values, [60, 83], 1, 0);
        assert!(found.iter().all(|v| v.is_finite()), "{text}");
    }
}
