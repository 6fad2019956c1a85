//! Fourier ring correlation.

use host_fft::{Complex, Real};
use rayon::prelude::*;

/// Share of the window's radius over which it falls from 1 to 0, as half a period of a cosine.
const SOFT: f64 = 0.1;
/// Least number of independent pixels of a ring that decides about the resolution.
const FEWEST: f64 = 8.0;
/// Signal-to-noise ratio of a half scan at which a pixel of the slice from all projections has half a bit of information:
/// half of `sqrt(2) - 1`.
const HALF_BIT: f64 = (std::f64::consts::SQRT_2 - 1.0) / 2.0;

/// Correlation of two images over rings of one spatial frequency. Element 0 is the mean value, which is removed before:
/// ring `r` has `r / side` periods per pixel.
pub struct RingCorrelation {
    side: usize,
    /// `sum Re(A conj(B)) / sqrt(sum |A|^2 sum |B|^2)` over every ring; 0 where an image has nothing.
    pub(super) correlation: Vec<f64>,
    /// Half-bit threshold of every ring.
    pub(super) half_bit: Vec<f64>,
    /// The first ring with enough pixels to tell a correlation from chance.
    first: usize,
}

/// Where a correlation falls below a threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Crossing {
    /// At this frequency in periods per pixel.
    At(f64),
    /// Nowhere up to half a period per pixel.
    Beyond,
    /// At the first ring with enough pixels already.
    Before,
}

/// Sums over a ring.
#[derive(Clone, Copy, Default)]
struct RingSums {
    common: f64,
    first: f64,
    second: f64,
    pixels: usize,
}

impl RingCorrelation {
    /// Compares two images `[y][x]` of `side` x `side` pixels, an even number.
    pub(super) fn of(images: [Vec<f64>; 2], side: usize) -> RingCorrelation {
        let window = window(side);
        let spectra = images.map(|image| spectrum(image, &window, side));
        let mut rings = vec![RingSums::default(); side / 2 + 1];
        let signed = |k: usize| if k < side.div_ceil(2) { k as f64 } else { k as f64 - side as f64 };
        for (at, (a, b)) in spectra[0].iter().zip(&spectra[1]).enumerate() {
            let ring = signed(at % side).hypot(signed(at / side)).round() as usize;
            let Some(sums) = rings.get_mut(ring) else { continue };
            sums.common += (a * b.conj()).re;
            sums.first += a.norm_sqr();
            sums.second += b.norm_sqr();
            sums.pixels += 1;
        }
        let share = independent_share(&window);
        let independent = |sums: &RingSums| sums.pixels as f64 * share;
        let correlation = |sums: &RingSums| {
            let power = (sums.first * sums.second).sqrt();
            if power > 0.0 { sums.common / power } else { 0.0 }
        };
        RingCorrelation {
            side,
            correlation: rings.iter().map(correlation).collect(),
            half_bit: rings.iter().map(|sums| half_bit(independent(sums))).collect(),
            first: rings.iter().position(|sums| independent(sums) >= FEWEST).unwrap_or(rings.len()),
        }
    }

    /// Returns where, from the first ring with enough pixels, the correlation first falls below the threshold of its ring, interpolated linearly between rings.
    pub(super) fn falls_below(&self, threshold: impl Fn(usize) -> f64) -> Crossing {
        let excess = |ring: usize| self.correlation[ring] - threshold(ring);
        match (self.first..self.correlation.len()).find(|&ring| excess(ring) < 0.0) {
            None => Crossing::Beyond,
            Some(ring) if ring == self.first => Crossing::Before,
            Some(ring) => {
                let (before, after) = (excess(ring - 1), excess(ring));
                Crossing::At(((ring - 1) as f64 + before / (before - after)) / self.side as f64)
            }
        }
    }
}

/// Returns the threshold of a ring with this number of independent pixels.
///
/// With a signal-to-noise ratio `s` of the half scans, the correlation expected of `n` independent pixels is
/// `(s + 2 sqrt(s / n) + 1 / sqrt(n)) / (1 + s + 2 sqrt(s / n))`; half a bit leads to
/// `(0.2071 + 1.9102 / sqrt(n)) / (1.2071 + 0.9102 / sqrt(n))`.
fn half_bit(independent: f64) -> f64 {
    let root = independent.sqrt();
    let crossed = 2.0 * HALF_BIT.sqrt() / root;
    (HALF_BIT + crossed + 1.0 / root) / (1.0 + HALF_BIT + crossed)
}

/// Returns the share of a ring's pixels that are independent: half of them, as the spectrum of real values is symmetric, and
/// of these the share of the square that the window leaves.
fn independent_share(window: &[f64]) -> f64 {
    let sum = |power: i32| window.iter().map(|w| w.powi(power)).sum::<f64>();
    sum(2).powi(2) / sum(4) / window.len() as f64 / 2.0
}

/// Returns the window of a square, `[y][x]`: 1 within a circle, 0 outside of the one that touches the sides, and half a
/// period of a cosine between them.
fn window(side: usize) -> Vec<f64> {
    let radius = side as f64 / 2.0;
    let middle = radius - 0.5;
    let soft = SOFT * radius;
    let value = |i: usize| {
        let distance = ((i % side) as f64 - middle).hypot((i / side) as f64 - middle);
        let outwards = ((distance - (radius - soft)) / soft).clamp(0.0, 1.0);
        (1.0 + (std::f64::consts::PI * outwards).cos()) / 2.0
    };
    (0..side * side).map(value).collect()
}

/// Subtracts the mean within the window, and multiplies by it. Values that are not finite become the mean.
fn windowed(mut image: Vec<f64>, window: &[f64]) -> Vec<f64> {
    let finite = || image.iter().zip(window).filter(|(value, _)| value.is_finite());
    let weight: f64 = finite().map(|(_, w)| w).sum();
    let mean = finite().map(|(value, w)| value * w).sum::<f64>() / weight.max(f64::MIN_POSITIVE);
    for (value, w) in image.iter_mut().zip(window) {
        *value = if value.is_finite() { (*value - mean) * w } else { 0.0 };
    }
    image
}

/// Returns the spectrum of an image within the window, transposed, which leaves rings as they are.
fn spectrum(image: Vec<f64>, window: &[f64], side: usize) -> Vec<Complex<f64>> {
    let image = windowed(image, window);
    let mut values: Vec<Complex<f64>> = image.into_iter().map(|value| Complex::new(value, 0.0)).collect();
    let plan = f64::forward(side);
    for _ in 0..2 {
        values.par_chunks_mut(side).for_each(|row| plan.process(row));
        values = (0..side * side).into_par_iter().map(|i| values[i % side * side + i / side]).collect();
    }
    values
}
