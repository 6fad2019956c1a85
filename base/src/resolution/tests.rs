use super::rings::Crossing;
use super::*;
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::f64::consts::PI;

/// Values with a normal distribution of standard deviation 1.
fn normal(random: &mut StdRng) -> f64 {
    let (u, v): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * u.ln()).sqrt() * (2.0 * PI * v).cos()
}

fn noise(count: usize, seed: u64) -> Vec<f64> {
    let mut random = StdRng::seed_from_u64(seed);
    (0..count).map(|_| normal(&mut random)).collect()
}

/// Blurs an image with a Gaussian of this standard deviation in pixels, periodically.
fn blurred(image: &[f64], side: usize, sigma: f64) -> Vec<f64> {
    let reach = (6.0 * sigma).ceil() as i64;
    let weight = |d: i64| (-(d * d) as f64 / (2.0 * sigma * sigma)).exp() / (sigma * (2.0 * PI).sqrt());
    let along = |image: &[f64], dx: i64, dy: i64| -> Vec<f64> {
        let at = |i: usize, d: i64| {
            let place = |p: usize, step: i64| (p as i64 + step * d).rem_euclid(side as i64) as usize;
            image[place(i / side, dy) * side + place(i % side, dx)]
        };
        (0..side * side).map(|i| (-reach..=reach).map(|d| weight(d) * at(i, d)).sum()).collect()
    };
    along(&along(image, 1, 0), 0, 1)
}

/// Half scans of a random image blurred by a Gaussian, with noise.
fn halves(side: usize, sigma: f64, gain: f64, seed: u64) -> [Vec<f64>; 2] {
    let image = blurred(&noise(side * side, seed), side, sigma);
    [1, 2].map(|half| {
        let noise = noise(side * side, seed + half);
        image.iter().zip(noise).map(|(value, noise)| gain * value + noise).collect()
    })
}

/// The correlation of every ring from the definition: window, sums of the discrete Fourier transform, sums over rings.
fn by_definition(images: &[Vec<f64>; 2], side: usize) -> Vec<f64> {
    let middle = (side as f64 - 1.0) / 2.0;
    let window = |i: usize| {
        let r = ((i % side) as f64 - middle).hypot((i / side) as f64 - middle) / (side as f64 / 2.0);
        if r <= 0.9 {
            1.0
        } else if r >= 1.0 {
            0.0
        } else {
            0.5 + 0.5 * (PI * (r - 0.9) / 0.1).cos()
        }
    };
    let total: f64 = (0..side * side).map(window).sum();
    let prepared = images.each_ref().map(|image| -> Vec<f64> {
        let mean = image.iter().enumerate().map(|(i, value)| value * window(i)).sum::<f64>() / total;
        image.iter().enumerate().map(|(i, value)| (value - mean) * window(i)).collect()
    });
    let half = side as i64 / 2;
    let mut rings = vec![[0.0; 3]; half as usize + 1];
    for ky in -half..half {
        for kx in -half..half {
            let ring = ((kx * kx + ky * ky) as f64).sqrt().round() as usize;
            if ring >= rings.len() {
                continue;
            }
            let [a, b] = prepared.each_ref().map(|image| {
                let phase =
                    |i: usize| -2.0 * PI * (kx * (i % side) as i64 + ky * (i / side) as i64) as f64 / side as f64;
                image.iter().enumerate().fold([0.0, 0.0], |[re, im], (i, value)| {
                    let (sin, cos) = phase(i).sin_cos();
                    [re + value * cos, im + value * sin]
                })
            });
            let sums = [a[0] * b[0] + a[1] * b[1], a[0] * a[0] + a[1] * a[1], b[0] * b[0] + b[1] * b[1]];
            rings[ring].iter_mut().zip(sums).for_each(|(sum, more)| *sum += more);
        }
    }
    rings.into_iter().map(|[common, first, second]| common / (first * second).sqrt()).collect()
}

#[test]
fn rings_are_those_of_the_definition() {
    for (side, sigma) in [(16, 0.8), (30, 1.5)] {
        let images = halves(side, sigma, 5.0, 7);
        let expected = by_definition(&images, side);
        let found = RingCorrelation::of(images, side);
        assert_eq!(found.correlation.len(), expected.len());
        for (ring, (found, expected)) in found.correlation.iter().zip(&expected).enumerate().skip(1) {
            assert!((found - expected).abs() < 1e-9, "{side}: ring {ring}: {found} {expected}");
        }
    }
}

/// With a flat spectrum of the image before the blur, the correlation is `s / (s + 1)` with the signal-to-noise ratio
/// `s = gain^2 exp(-(2 pi sigma f)^2)`.
#[test]
fn known_blurs_have_their_resolution() {
    let side = 256;
    for (sigma, gain) in [(1.0f64, 4.0f64), (2.0, 8.0), (3.0, 12.0)] {
        let at = |ratio: f64| (gain * gain / ratio).ln().sqrt() / (2.0 * PI * sigma);
        let found = RingCorrelation::of(halves(side, sigma, gain, 3), side);
        let Crossing::At(seventh) = found.falls_below(|_| 1.0 / 7.0) else { panic!("{sigma}") };
        assert!((seventh / at(1.0 / 6.0) - 1.0).abs() < 0.05, "{sigma}: {seventh} {}", at(1.0 / 6.0));
        // the threshold for this number of independent pixels, as a ratio
        let Crossing::At(half_bit) = found.falls_below(|ring| found.half_bit[ring]) else { panic!("{sigma}") };
        let threshold = found.half_bit[(half_bit * side as f64).round() as usize];
        let expected = at(threshold / (1.0 - threshold));
        assert!((half_bit / expected - 1.0).abs() < 0.05, "{sigma}: {half_bit} {expected}");
        for (ring, correlation) in found.correlation.iter().enumerate().skip(4) {
            let ratio = gain * gain * (-(2.0 * PI * sigma * ring as f64 / side as f64).powi(2)).exp();
            assert!((correlation - ratio / (1.0 + ratio)).abs() < 0.2, "{sigma}: ring {ring}: {correlation}");
        }
    }
}

#[test]
fn the_threshold_is_that_of_the_publication() {
    let found = RingCorrelation::of(halves(64, 1.0, 3.0, 1), 64);
    // pixels of ring 20 of 64, the symmetric half of them, and the share of the window's squares
    let pixels = (-32..32i64).flat_map(|y| (-32..32i64).map(move |x| ((x * x + y * y) as f64).sqrt().round()));
    let pixels = pixels.filter(|ring| *ring == 20.0).count() as f64;
    let radial = |power: i32| {
        let steps = 100_000;
        let w = |r: f64| if r < 0.9 { 1.0 } else { 0.5 + 0.5 * (PI * (r - 0.9) / 0.1).cos() };
        let at = |i: i32| (f64::from(i) + 0.5) / f64::from(steps);
        (0..steps).map(|i| w(at(i)).powi(power) * 2.0 * PI * at(i) / f64::from(steps)).sum::<f64>() / 4.0
    };
    let root = (pixels / 2.0 * radial(2).powi(2) / radial(4)).sqrt();
    let expected = (0.2071 + 1.9102 / root) / (1.2071 + 0.9102 / root);
    assert!((found.half_bit[20] / expected - 1.0).abs() < 2e-3, "{} {expected}", found.half_bit[20]);
}

#[test]
fn equal_images_and_unlike_ones_are_told_apart() {
    let image = noise(32 * 32, 5);
    let same = RingCorrelation::of([image.clone(), image.clone()], 32);
    assert!(same.falls_below(|ring| same.half_bit[ring]) == Crossing::Beyond);
    assert!(same.correlation[1..].iter().all(|c| (c - 1.0).abs() < 1e-12));
    let opposite = RingCorrelation::of([image.clone(), image.iter().map(|v| -v).collect()], 32);
    assert!(opposite.falls_below(|_| 1.0 / 7.0) == Crossing::Before);
    let empty = RingCorrelation::of([image, vec![0.0; 32 * 32]], 32);
    assert!(empty.falls_below(|_| 1.0 / 7.0) == Crossing::Before && empty.correlation.iter().all(|c| *c == 0.0));
}

/// Half scans of a disc with a pore, as slices.
fn disc(size: usize, radius: f64, noise_of_half: f64) -> [Vec<f32>; 2] {
    let middle = (size as f64 - 1.0) / 2.0;
    let value = |i: usize| {
        let (x, y) = ((i % size) as f64 - middle, (i / size) as f64 - middle);
        if x.hypot(y) < radius && (x - radius / 3.0).hypot(y) > radius / 5.0 { 1.0 } else { 0.02 }
    };
    [11, 12].map(|seed| {
        let noise = noise(size * size, seed);
        noise.iter().enumerate().map(|(i, noise)| (value(i) + noise_of_half * noise) as f32).collect()
    })
}

#[test]
fn noise_in_air_leaves_the_sample_out() {
    for (radius, noise) in [(30.0, 0.3), (50.0, 0.1), (50.0, 0.6)] {
        let [first, second] = disc(128, radius, noise);
        let air = AirNoise::of(&first, &second, 128, 64.0).unwrap();
        // of the mean of two
        let expected = noise / 2f64.sqrt();
        assert!((air.standard_deviation / expected - 1.0).abs() < 0.05, "{radius} {noise}: {air:?}");
        assert!((air.mean - 0.02).abs() < 0.02 && air.share > 0.1, "{radius} {noise}: {air:?}");
    }
    // a sample that fills the field of view, and none
    for radius in [90.0, 0.0] {
        let [first, second] = disc(128, radius, 0.1);
        assert_eq!(AirNoise::of(&first, &second, 128, 64.0), None, "{radius}");
    }
}

#[test]
fn results_have_the_unit_of_the_pixel_size_and_can_be_kept() {
    let size = 64;
    let blurred = halves(size, 1.5, 6.0, 2).map(|half| half.into_iter().map(|v| v as f32).collect());
    let scans = HalfScans { slice: 3, size, radius: 31.0, halves: blurred };
    let length = Length { value: 0.5, unit: "um".into() };
    let found = Resolution::of(&scans, Some(&length)).unwrap();
    assert_eq!((found.side, found.correlation.len(), found.threshold.len()), (62, 32, 32));
    let detail = found.half_bit;
    assert_eq!(detail.length, detail.pixels.map(|pixels| pixels / 2.0));
    let text = found.in_words("per um");
    assert!(text.starts_with("resolution of slice 3: ") && text.contains(" um) by half-bit, "), "{text}");
    let again: Resolution = toml::from_str(&toml::to_string(&found).unwrap()).unwrap();
    assert_eq!(again, found);
    assert_eq!(Resolution::of(&HalfScans { radius: 7.9, ..scans }, None), None);
}
