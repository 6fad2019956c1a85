//! Properties of a scan that are known before its axis: the power of each harmonic of the angle in each band of
//! frequencies along the bins, and the noise.
//!
//! The powers are measured with sine tapers over the angles (K. S. Riedel and A. Sidorenko, IEEE Trans. Signal Process. 43,
//! 1995), which neither the axis nor the ends of the scan affect, whatever the size of the sample.

use super::process::{AngleSteps, Process};
use super::window::Windowed;
use crate::center::zingers::mirrored;
use host_fft::{Complex, Fft, Real};
use rayon::prelude::*;
use std::f64::consts::{PI, TAU};
use std::ops::Range;

/// Number of tapers over the angles.
const TAPERS: usize = 4;
/// Ratio of the highest to the lowest frequency of a band.
const BAND: f64 = 1.2;
/// Smallest width of a band, in units of the resolution of a window.
const NARROWEST: f64 = 2.0;
/// Number of frequencies of a band at which its powers are measured, evenly spaced.
const ENOUGH: usize = 24;
/// Multiple of the noise below which powers are taken for noise.
const ABOVE: f64 = 1.1;
/// Number of harmonics that half a turn shows incompletely.
const INCOMPLETE: usize = 6;
/// Smallest noise as a share of the largest power: rows have errors of their own, and matrices must be factored.
const LEAST_NOISE: f64 = 1e-7;

/// The processes of a band of frequencies along the bins.
pub struct FrequencyBand {
    /// Middle of the band in radians per bin.
    pub middle: f64,
    /// Process of the real part: even harmonics.
    pub even: Process,
    /// Process of the imaginary part: odd harmonics.
    pub odd: Process,
    /// Process of both parts without an axis: all harmonics.
    pub free: Process,
}

impl FrequencyBand {
    /// Returns the amount by which the logarithm of the likelihood with an axis exceeds that without, owing to the
    /// volume of the data that either allows.
    pub fn gain(&self) -> f64 {
        self.free.log_determinant() - (self.even.log_determinant() + self.odd.log_determinant()) / 2.0
    }
}

/// The frequency bands of a scan.
pub struct Model {
    pub bands: Vec<FrequencyBand>,
}

/// Assumptions on the power of the first harmonics and of the constant.
#[derive(Clone, Copy)]
pub struct Prior<'a> {
    /// Factor of the power of harmonics that half a turn shows incompletely.
    pub low: f64,
    /// Variance of the mean over the angles by frequency, where stripes alone cause that mean.
    pub stripes: Option<&'a (dyn Fn(f64) -> f64 + Sync)>,
}

impl Model {
    /// Measures the model of rows in a window with `size` independent bins.
    pub fn new(angles: &AngleSteps, windowed: &Windowed, size: f64, prior: Prior) -> Model {
        let harmonics = Harmonics::new(angles);
        let bands = bands(&windowed.frequencies, size);
        let band = |range: &Range<usize>| {
            let used = range.clone().step_by(range.len().div_ceil(ENOUGH));
            let count = (used.len() * windowed.rows()) as f64;
            let mut mean = vec![0.0; harmonics.highest + 1];
            for row in 0..windowed.rows() {
                for frequency in used.clone() {
                    let of = harmonics.power(windowed.at(row, frequency));
                    mean.iter_mut().zip(of).for_each(|(sum, power)| *sum += power / count);
                }
            }
            let of = &windowed.frequencies[range.clone()];
            let (first, last) = (of[0], of[of.len() - 1]);
            let average = of.iter().sum::<f64>() / of.len() as f64;
            let middle = (first * last).sqrt().max(average / 2.0).max(1e-6);
            harmonics.band(angles, &mean, middle, average, prior)
        };
        Model { bands: bands.par_iter().map(band).collect() }
    }

    /// Returns the index of the band of each frequency.
    pub fn assign(&self, frequencies: &[f64]) -> Vec<usize> {
        let nearest = |frequency: &f64| {
            let distance = |band: &FrequencyBand| ((frequency + 1e-9) / band.middle).ln().abs();
            (0..self.bands.len()).min_by(|&a, &b| distance(&self.bands[a]).total_cmp(&distance(&self.bands[b])))
        };
        frequencies.iter().map(|frequency| nearest(frequency).unwrap_or(0)).collect()
    }
}

/// Divides ascending frequencies into bands.
fn bands(frequencies: &[f64], size: f64) -> Vec<Range<usize>> {
    let mut bands = Vec::new();
    let mut edge = frequencies.first().map_or(0.0, |first| first * 0.999 - 1e-6);
    let mut start = 0;
    while start < frequencies.len() {
        edge = (edge * BAND).max(edge + NARROWEST * TAU / size);
        let end = frequencies.partition_point(|frequency| *frequency <= edge);
        if end > start {
            bands.push(start..end);
            start = end;
        }
    }
    bands
}

/// Measures the powers of harmonics over the angles.
struct Harmonics {
    highest: usize,
    /// Step between angles in radians.
    step: f64,
    /// True if the scan covers about half a turn or less.
    half: bool,
    /// Weights of each taper by projection.
    tapers: Vec<Vec<f64>>,
    waves: Waves,
}

/// The way in which sums over the angles are computed.
enum Waves {
    /// A Fourier transform.
    Transform(std::sync::Arc<dyn Fft<f64>>),
    /// Waves `[harmonic][projection]` as cosine and sine.
    Table(Vec<Vec<Complex<f64>>>),
}

impl Harmonics {
    fn new(angles: &AngleSteps) -> Harmonics {
        let count = angles.len();
        let mut steps: Vec<f64> = (1..count).map(|p| angles.at(p) - angles.at(p - 1)).collect();
        // the angular range that each projection stands for
        let weights: Vec<f64> = (0..count).map(|p| (steps[p.min(count - 2)] + steps[p.max(1) - 1]) / 2.0).collect();
        let whole: f64 = weights.iter().sum();
        let middle = steps.len() / 2;
        let step = *steps.select_nth_unstable_by(middle, f64::total_cmp).1;
        let highest = ((PI / step) as usize).min(count);
        let mut before = 0.0;
        let places: Vec<f64> = weights
            .iter()
            .map(|weight| {
                before += weight;
                (before - weight / 2.0) / whole
            })
            .collect();
        let taper = |k: usize| {
            let value = |(place, weight): (&f64, &f64)| (PI * k as f64 * place).sin() * (2.0 * weight / whole).sqrt();
            places.iter().zip(&weights).map(value).collect()
        };
        let waves = match angles {
            AngleSteps::Even(..) => {
                let length = ((TAU / step).round() as usize).max(count);
                Waves::Transform(f64::forward(length))
            }
            AngleSteps::Uneven(_) => {
                let wave = |m: usize| (0..count).map(|p| Complex::cis(-(m as f64) * angles.at(p))).collect();
                Waves::Table((0..=highest).map(wave).collect())
            }
        };
        let half = count as f64 * step < 4.0;
        Harmonics { highest, step, half, tapers: (1..=TAPERS).map(taper).collect(), waves }
    }

    /// Returns the power of each harmonic of values over the angles, averaged over both signs and all tapers.
    fn power(&self, values: &[Complex<f32>]) -> Vec<f64> {
        let count = values.len() as f64;
        let mean = values.iter().map(|z| Complex::new(f64::from(z.re), f64::from(z.im))).sum::<Complex<f64>>() / count;
        let mut power = vec![0.0; self.highest + 1];
        for taper in &self.tapers {
            let tapered = values
                .iter()
                .zip(taper)
                .map(|(z, taper)| (Complex::new(f64::from(z.re), f64::from(z.im)) - mean) * taper);
            match &self.waves {
                Waves::Transform(plan) => {
                    let length = plan.len();
                    let mut transform: Vec<Complex<f64>> = tapered.collect();
                    transform.resize(length, Complex::default());
                    plan.process(&mut transform);
                    for (m, power) in power.iter_mut().enumerate() {
                        let (plus, minus) = (transform[m % length], transform[(length - m % length) % length]);
                        *power += (plus.norm_sqr() + minus.norm_sqr()) / (2 * TAPERS) as f64;
                    }
                }
                Waves::Table(waves) => {
                    let tapered: Vec<Complex<f64>> = tapered.collect();
                    for (wave, power) in waves.iter().zip(&mut power) {
                        let (mut plus, mut minus) = (Complex::<f64>::default(), Complex::<f64>::default());
                        for (wave, z) in wave.iter().zip(&tapered) {
                            plus += wave * z;
                            minus += wave.conj() * z;
                        }
                        *power += (plus.norm_sqr() + minus.norm_sqr()) / (2 * TAPERS) as f64;
                    }
                }
            }
        }
        power
    }

    /// Returns the processes of a band from the mean powers of its harmonics.
    fn band(&self, angles: &AngleSteps, mean: &[f64], middle: f64, average: f64, prior: Prior) -> FrequencyBand {
        let mut power = smoothed(mean);
        let first = INCOMPLETE.min(power.len());
        let most = power[..first].iter().copied().fold(0.0, f64::max);
        power[..first].fill(most);
        let end = &power[self.highest * 4 / 5..];
        let largest = power.iter().copied().fold(1e-30, f64::max);
        let noise = (end.iter().sum::<f64>() / end.len() as f64).max(LEAST_NOISE * largest);
        let factor = self.step / TAU;
        for (m, power) in power.iter_mut().enumerate() {
            let low = if m < INCOMPLETE && self.half { prior.low } else { 1.0 };
            *power = if *power > ABOVE * noise { (*power - noise) * factor * low } else { 0.0 };
        }
        let of_parity = |parity: usize| -> Vec<f64> {
            power
                .iter()
                .enumerate()
                .map(|(m, power)| if m > 0 && m % 2 == parity { 2.0 * power } else { 0.0 })
                .collect()
        };
        let stripes = prior.stripes.map_or(f64::INFINITY, |variance| variance(average) / 2.0);
        let all: Vec<f64> = power.iter().enumerate().map(|(m, power)| if m > 0 { *power } else { 0.0 }).collect();
        FrequencyBand {
            middle,
            even: angles.process(&of_parity(0), noise / 2.0, f64::INFINITY),
            odd: angles.process(&of_parity(1), noise / 2.0, stripes),
            free: angles.process(&all, noise / 2.0, f64::INFINITY),
        }
    }
}

/// Averages the power over three harmonics at the beginning and over seven after that.
fn smoothed(power: &[f64]) -> Vec<f64> {
    let mean = |m: isize| {
        let reach = if m < 8 { 1 } else { 3 };
        let value = |i| power[mirrored(i, power.len())];
        (m - reach..=m + reach).map(value).sum::<f64>() / (2 * reach + 1) as f64
    };
    (0..power.len() as isize).map(mean).collect()
}
