//! Phase retrieval by Paganin's filter, before -log.

use super::errors::{PhaseError, StepWarning};
use super::optics::Optics;
use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags, check_projections};
use crate::cli::StepArgs;
use crate::error::Result;
use crate::operations::{ImageFilterForm, RowCorrection};
use crate::remark::{Doubt, DoubtKind, Remark};
use crate::units::{Length, parse_length};
use host_fft::{Complex, ComplexToReal, Fft, Real, RealToComplex};
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Planck's constant times the speed of light, in keV m (CODATA 2018).
const HC_KEV_M: f64 = 1.239_841_984_332_002_6e-9;

/// Largest change of a filtered transmission that rows beyond the halo may cause: by a step of height 1, or by noise of
/// standard deviation [`NOISE`].
const TOLERANCE: f64 = 2.5e-6;

/// Assumed noise, as a share of the beam.
const NOISE: f64 = 0.1;

/// Largest length of a filter in pixels.
const MAX_LENGTH: f64 = 1000.0;

/// Number of rows that are transposed together.
const TOGETHER: usize = 16;

/// The filter of a single distance, on transmissions `I / I0`:
///
/// `1 / (1 + L^2 k^2)`, `L^2 = z lambda (delta / beta) / (4 pi)`
///
/// with `k` in radians per length; -log of the result is the projected attenuation of an object of one material. D. Paganin
/// et al., *Simultaneous phase and amplitude extraction from a single defocused image of a homogeneous object*, Journal of
/// Microscopy 206 (2002) 33-40, equation 10. Optionally times `1 + c - c exp(-sigma^2 k^2 / 2)`: an unsharp mask.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paganin {
    /// `L` in pixels.
    #[serde(rename = "phase-length")]
    pub length: f64,
    pub unsharp: Option<Unsharp>,
}

/// An unsharp mask: the image plus `amount` times its difference from the image smoothed by a Gaussian.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unsharp {
    /// Standard deviation of the Gaussian in pixels.
    #[serde(rename = "unsharp-sigma")]
    pub sigma: f64,
    #[serde(rename = "unsharp-amount")]
    pub amount: f64,
}

impl fmt::Display for Paganin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "paganin, {} pixels", crate::numbers::brief(self.length))?;
        self.unsharp.map_or(Ok(()), |unsharp| write!(f, ", unsharp {},{}", unsharp.sigma, unsharp.amount))
    }
}

impl Unsharp {
    fn parse(text: &str) -> Result<Unsharp> {
        let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        match parts.as_deref() {
            Some(&[sigma, amount]) if sigma > 0.0 && sigma <= 1000.0 && (0.0..=1000.0).contains(&amount) => {
                Ok(Unsharp { sigma, amount })
            }
            _ => Err(PhaseError::MalformedUnsharp { text: text.into() }.into()),
        }
    }
}

/// Returns the value of a required flag, which must be positive.
fn positive(value: Option<f64>, flag: &'static str, what: &'static str) -> Result<f64> {
    match value {
        Some(value) if value.is_finite() && value > 0.0 => Ok(value),
        Some(value) => Err(PhaseError::NotPositive { flag, value, what }.into()),
        None => Err(PhaseError::MissingFlag { flag, what }.into()),
    }
}

/// Rejects flags of a filter that was not requested.
fn check_alone(given: &StepArgs) -> Result<()> {
    for (flag, is_given) in [
        ("--energy-kev", given.energy_kev.is_some()),
        ("--distance", given.distance.is_some()),
        ("--delta-beta", given.delta_beta.is_some()),
        ("--unsharp", given.unsharp.is_some()),
    ] {
        if is_given {
            return Err(PhaseError::WithoutPhase { flag }.into());
        }
    }
    Ok(())
}

impl Step for Option<Paganin> {
    fn flag(&self) -> &'static str {
        "phase"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let given = &args.steps;
        let Some(name) = &given.phase else {
            check_alone(given)?;
            return Ok(None);
        };
        check_projections("phase", args)?;
        if name != "paganin" {
            return Err(PhaseError::UnknownFilter { name: name.clone() }.into());
        }
        let paganin = Paganin::parse(given, args.pixel_size)?;
        Ok(Some(Paganin {
            unsharp: given.unsharp.as_ref().map(|text| Unsharp::parse(&text.0)).transpose()?,
            ..paganin
        }))
    }

    fn value(&self) -> Option<String> {
        self.map(|paganin| paganin.to_string())
    }

    fn halo(&self, _: &Optics) -> usize {
        self.map_or(0, |paganin| paganin.halo())
    }

    fn in_blocks(&self) -> bool {
        self.is_some()
    }

    fn ready(&self, data: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        let filter = |paganin: Paganin| PaganinFilter::new(&paganin, data.most_rows, data.stacks.data.width());
        Ok(self.map(|paganin| Ready::Rows(Box::new(filter(paganin)))))
    }
}

/// Usual energies in keV of beams for phase retrieval.
const ENERGIES: RangeInclusive<f64> = 1.0..=1000.0;
/// Smallest plausible ratio delta / beta of a material.
const LEAST_RATIO: f64 = 1.0;

/// Usual lengths of filters in pixels: shorter ones change hardly anything, longer ones leave hardly any details.
const LENGTHS: RangeInclusive<f64> = 0.2..=100.0;

/// Returns doubts about values for `--phase` that cannot be right.
pub fn phase_doubts(given: &StepArgs) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let energy = given.energy_kev.or(given.of_input.energy_kev).filter(|_| given.phase.is_some());
    if let Some(energy) = energy.filter(|energy| !ENERGIES.contains(energy)) {
        doubts.push(Doubt::of(DoubtKind::PhaseValues, &StepWarning::OddEnergy { energy }));
    }
    let ratio = given.delta_beta.filter(|_| given.phase.is_some());
    if let Some(ratio) = ratio.filter(|ratio| *ratio < LEAST_RATIO) {
        doubts.push(Doubt::of(DoubtKind::PhaseValues, &StepWarning::SmallRatio { ratio, inverse: 1.0 / ratio }));
    }
    doubts
}

impl Paganin {
    /// Returns a doubt if the length of the filter is unusual.
    fn doubt(&self) -> Option<Doubt> {
        let warning = match self.length {
            length if LENGTHS.contains(&length) => return None,
            length if length < *LENGTHS.start() => StepWarning::ShortFilter { length },
            length => StepWarning::LongFilter { length },
        };
        Some(Doubt::of(DoubtKind::PhaseLength, &warning))
    }

    /// Returns the filter for photons of `energy_kev`, a detector `distance` behind the sample and pixels of side
    /// `pixel` (metres), and a material with `delta_beta` = decrement of the refractive index over absorption index.
    /// The beam is parallel.
    pub fn new(energy_kev: f64, distance: f64, pixel: f64, delta_beta: f64) -> Self {
        let wavelength = HC_KEV_M / energy_kev;
        Paganin { length: (distance * wavelength * delta_beta / (4.0 * PI)).sqrt() / pixel, unsharp: None }
    }

    /// Reads the filter from its flags, without the unsharp mask.
    fn parse(given: &StepArgs, pixel_size: Option<&Length>) -> Result<Paganin> {
        let energy = given.energy_kev.or(given.of_input.energy_kev);
        // all missing flags are reported together
        let missing: Vec<&str> = [
            ("--energy-kev", energy.is_none()),
            ("--distance", given.distance.is_none() && given.of_input.distance.is_none()),
            ("--delta-beta", given.delta_beta.is_none()),
            ("--pixel-size", pixel_size.is_none()),
        ]
        .into_iter()
        .filter_map(|(flag, is_missing)| is_missing.then_some(flag))
        .collect();
        if missing.len() > 1 {
            return Err(PhaseError::MissingFlags { missing: missing.join(", ") }.into());
        }
        let energy = positive(energy, "--energy-kev", "an energy in keV")?;
        let ratio = positive(given.delta_beta, "--delta-beta", "a ratio")?;
        let length = match (&given.distance, &given.of_input.distance) {
            (Some(text), _) => parse_length(&text.0, "--distance")?,
            (None, Some(length)) => length.clone(),
            (None, None) => return Err(PhaseError::NoDistance.into()),
        };
        let Some(distance) = length.metres() else {
            return Err(PhaseError::NoUnit { length: length.to_string() }.into());
        };
        let Some(pixel) = pixel_size.and_then(Length::metres) else {
            return Err(PhaseError::NoPixelSize.into());
        };
        let paganin = Paganin::new(energy, distance, pixel, ratio);
        if !(0.0..=MAX_LENGTH).contains(&paganin.length) {
            return Err(PhaseError::TooLong { length: paganin.length, most: MAX_LENGTH }.into());
        }
        Ok(paganin)
    }

    /// Returns the factor at the frequency whose square is `k2`, in (radians a pixel)^2.
    pub fn response(&self, k2: f64) -> f64 {
        let sharpened = self.unsharp.map_or(1.0, |u| 1.0 + u.amount * (1.0 - (-0.5 * u.sigma * u.sigma * k2).exp()));
        sharpened / (1.0 + self.length * self.length * k2)
    }

    /// Returns the number of rows (and bins) on each side of a pixel that its filtered value depends on: those beyond
    /// change a transmission by less than 1e-5.
    ///
    /// Derived from the kernel of the filter across rows, which falls like `exp(-n / L)` for smooth data and, because the
    /// response has a kink at the Nyquist frequency, like `1 / n^2` with alternating sign for noise.
    pub fn halo(&self) -> usize {
        let reach = self.length + self.unsharp.map_or(0.0, |u| u.sigma);
        let n = ((64.0 * reach) as usize).clamp(1 << 12, 1 << 20).next_power_of_two();
        let inverse = f64::real_inverse(n);
        let step = 2.0 * PI / n as f64;
        let mut spectrum: Vec<_> =
            (0..=n / 2).map(|j| Complex::new(self.response((j as f64 * step).powi(2)) / n as f64, 0.0)).collect();
        let mut kernel = inverse.make_output_vec();
        if inverse.process(&mut spectrum, &mut kernel).is_err() {
            return n / 2;
        }
        let (mut step, mut noise) = (0.0f64, 0.0f64);
        for (distance, value) in kernel[..n / 2].iter().enumerate().rev() {
            step += value;
            noise += 2.0 * value * value;
            if step.abs().max(NOISE * noise.sqrt()) > TOLERANCE {
                return distance + 1;
            }
        }
        0
    }
}

/// [`Paganin`], prepared for rows of a given number of bins.
///
/// It needs about `8 * (rows + 2 halo) * (bins / 2 + halo)` bytes per projection.
pub(super) struct PaganinFilter {
    paganin: Paganin,
    halo: usize,
    bins: usize,
    rows: usize,
    /// Response of the filter, `[frequency along bins][frequency along rows]`, including the scale of the transforms.
    response: Vec<f32>,
    along_row: Arc<dyn RealToComplex<f32>>,
    back_along_row: Arc<dyn ComplexToReal<f32>>,
    across_rows: Arc<dyn Fft<f32>>,
    back_across_rows: Arc<dyn Fft<f32>>,
}

impl RowStep for PaganinFilter {
    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        let Paganin { length, unsharp } = self.paganin;
        let Unsharp { sigma, amount } = unsharp.unwrap_or(Unsharp { sigma: 0.0, amount: 0.0 });
        correction.images.filter = Some(ImageFilterForm { length, sigma, sharpening: amount, halo: self.halo });
        true
    }

    fn remarks(&self) -> Vec<Remark> {
        self.paganin.doubt().into_iter().map(Remark::from).collect()
    }

    fn apply(&self, band: &mut Band, _: &mut Counts) {
        self.filter(band.values, band.read.clone(), band.rows.clone());
    }
}

impl PaganinFilter {
    /// Prepares the filter for bands of at most `rows` wanted rows.
    pub fn new(paganin: &Paganin, rows: usize, bins: usize) -> Self {
        let halo = paganin.halo();
        let (width, height) = (smooth_length(bins + 2 * halo), smooth_length(rows + 2 * halo));
        let frequency = |i: usize, n: usize| 2.0 * PI * i.min(n - i) as f64 / n as f64;
        let scale = 1.0 / (width * height) as f64;
        let response = (0..=width / 2)
            .flat_map(|i| (0..height).map(move |j| (i, j)))
            .map(|(i, j)| scale * paganin.response(frequency(i, width).powi(2) + frequency(j, height).powi(2)))
            .map(|value| value as f32)
            .collect();
        PaganinFilter {
            paganin: *paganin,
            halo,
            bins,
            rows,
            response,
            along_row: f32::real_forward(width),
            back_along_row: f32::real_inverse(width),
            across_rows: f32::forward(height),
            back_across_rows: f32::inverse(height),
        }
    }

    /// Filters rows `wanted` of a projection in place; `values` are the rows `read` of the projection, `[row][bin]`,
    /// finite. Beyond the projection its outermost pixels are repeated.
    fn filter(&self, values: &mut [f32], read: Range<usize>, wanted: Range<usize>) {
        debug_assert!(wanted.len() <= self.rows && values.len() == read.len() * self.bins);
        let (width, height) = (self.along_row.len(), self.across_rows.len());
        let columns = width / 2 + 1;
        let zero = Complex::new(0.0, 0.0);
        // [frequency along bins][row]
        let mut spectrum = vec![zero; columns * height];
        let mut band = vec![zero; TOGETHER * columns];
        let mut row = vec![0f32; width];
        let scratch = self.along_row.get_scratch_len().max(self.back_along_row.get_scratch_len());
        let mut scratch = vec![zero; scratch];
        // the wanted rows, half of the padding after and half before them; beyond the projection its outermost rows
        let after = wanted.len() + (height - wanted.len()) / 2;
        let source = |place: usize| {
            let row = if place < after { wanted.start + place } else { (wanted.start + place).saturating_sub(height) };
            row.clamp(read.start, read.end - 1) - read.start
        };
        let pad_right = self.bins + (width - self.bins) / 2;
        for start in (0..height).step_by(TOGETHER) {
            let count = TOGETHER.min(height - start);
            for place in 0..count {
                let (before, now) = band.split_at_mut(place * columns);
                if place > 0 && source(start + place) == source(start + place - 1) {
                    now[..columns].copy_from_slice(&before[(place - 1) * columns..]);
                    continue;
                }
                let from = &values[source(start + place) * self.bins..][..self.bins];
                row[..self.bins].copy_from_slice(from);
                row[self.bins..pad_right].fill(from[self.bins - 1]);
                row[pad_right..].fill(from[0]);
                // only fails for buffers of other lengths
                let done = self.along_row.process_with_scratch(&mut row, &mut now[..columns], &mut scratch);
                debug_assert!(done.is_ok());
            }
            for (frequency, line) in spectrum.chunks_mut(height).enumerate() {
                for (place, value) in line[start..start + count].iter_mut().enumerate() {
                    *value = band[place * columns + frequency];
                }
            }
        }
        let length = self.across_rows.get_inplace_scratch_len().max(self.back_across_rows.get_inplace_scratch_len());
        scratch.resize(scratch.len().max(length), zero);
        for (line, response) in spectrum.chunks_mut(height).zip(self.response.chunks(height)) {
            self.across_rows.process_with_scratch(line, &mut scratch);
            line.iter_mut().zip(response).for_each(|(value, factor)| *value *= *factor);
            self.back_across_rows.process_with_scratch(line, &mut scratch);
        }
        for start in (0..wanted.len()).step_by(TOGETHER) {
            let count = TOGETHER.min(wanted.len() - start);
            for (frequency, line) in spectrum.chunks(height).enumerate() {
                for (place, value) in line[start..start + count].iter().enumerate() {
                    band[place * columns + frequency] = *value;
                }
            }
            for (place, line) in band.chunks_mut(columns).take(count).enumerate() {
                // real by symmetry, but not after rounding
                line[0].im = 0.0;
                if width % 2 == 0 {
                    line[columns - 1].im = 0.0;
                }
                let done = self.back_along_row.process_with_scratch(line, &mut row, &mut scratch);
                debug_assert!(done.is_ok());
                let to = (wanted.start - read.start + start + place) * self.bins;
                values[to..to + self.bins].copy_from_slice(&row[..self.bins]);
            }
        }
    }
}

/// Returns the first length from `least` on that is a product of 2, 3 and 5.
fn smooth_length(least: usize) -> usize {
    (least.max(1)..)
        .find(|&length| {
            [2, 3, 5].iter().fold(length, |mut rest, radix| {
                while rest % radix == 0 {
                    rest /= radix;
                }
                rest
            }) == 1
        })
        .unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Filters by sums over frequencies, on the projection with its outermost pixels repeated `pad` times.
    fn reference(values: &[f32], bins: usize, length: f64, unsharp: Option<(f64, f64)>, pad: usize) -> Vec<f64> {
        let rows = values.len() / bins;
        let (w, h) = (bins + 2 * pad, rows + 2 * pad);
        let clamp = |i: usize, n: usize| i.saturating_sub(pad).min(n - 1);
        let image: Vec<f64> =
            (0..h * w).map(|i| f64::from(values[clamp(i / w, rows) * bins + clamp(i % w, bins)])).collect();
        let transform = |lines: &[(f64, f64)], n: usize, sign: f64| -> Vec<(f64, f64)> {
            let turn: Vec<_> = (0..n).map(|i| (sign * 2.0 * PI * i as f64 / n as f64).sin_cos()).collect();
            lines
                .chunks(n)
                .flat_map(|line| {
                    let turn = &turn;
                    (0..n).map(move |k| {
                        line.iter().enumerate().fold((0.0, 0.0), |(re, im), (i, v)| {
                            let (sin, cos) = turn[i * k % n];
                            (re + v.0 * cos - v.1 * sin, im + v.0 * sin + v.1 * cos)
                        })
                    })
                })
                .collect()
        };
        let turn_over =
            |v: &[(f64, f64)], w: usize| (0..v.len()).map(|i| v[i % (v.len() / w) * w + i / (v.len() / w)]).collect();
        let along = transform(&image.iter().map(|v| (*v, 0.0)).collect::<Vec<_>>(), w, -1.0);
        let turned: Vec<_> = turn_over(&along, w);
        let mut spectrum = transform(&turned, h, -1.0);
        for (i, value) in spectrum.iter_mut().enumerate() {
            let f = |i: usize, n: usize| 2.0 * PI * i.min(n - i) as f64 / n as f64;
            let k2 = f(i / h, w).powi(2) + f(i % h, h).powi(2);
            let mask = unsharp.map_or(1.0, |(sigma, amount)| 1.0 + amount - amount * (-sigma * sigma * k2 / 2.0).exp());
            let factor = mask / (1.0 + length * length * k2) / (w * h) as f64;
            *value = (value.0 * factor, value.1 * factor);
        }
        let turned: Vec<_> = turn_over(&transform(&spectrum, h, 1.0), h);
        let back = transform(&turned, w, 1.0);
        (0..rows * bins).map(|i| back[(i / bins + pad) * w + i % bins + pad].0).collect()
    }

    fn projection(rows: usize, bins: usize) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        (0..rows * bins)
            .map(|i| {
                let (y, x) = ((i / bins) as f64 / rows as f64 - 0.4, (i % bins) as f64 / bins as f64 - 0.55);
                let inside = if x * x / 0.1 + y * y / 0.3 < 1.0 { 0.2 } else { 0.95 };
                (inside + rng.random_range(-0.05..0.05)) as f32
            })
            .collect()
    }

    #[test]
    fn equals_the_sum_over_frequencies() {
        let (rows, bins) = (13, 22);
        let values = projection(rows, bins);
        for (length, mask) in [(2.0, None), (1.5, Some((1.2, 2.0)))] {
            let unsharp = mask.map(|(sigma, amount)| Unsharp { sigma, amount });
            let paganin = Paganin { length, unsharp };
            let expected = reference(&values, bins, length, mask, 60);
            let mut filtered = values.clone();
            PaganinFilter::new(&paganin, rows, bins).filter(&mut filtered, 0..rows, 0..rows);
            let worst = filtered.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-5, "L = {length}: {worst}");
        }
    }

    #[test]
    fn bands_equal_the_whole_projection() {
        let (rows, bins) = (400, 40);
        let values = projection(rows, bins);
        for length in [0.3, 1.0, 3.0, 10.0] {
            let paganin = Paganin { length, unsharp: None };
            let mut whole = values.clone();
            PaganinFilter::new(&paganin, rows, bins).filter(&mut whole, 0..rows, 0..rows);
            let filter = PaganinFilter::new(&paganin, 16, bins);
            for wanted in [0..16, 190..206, 391..400] {
                let read = super::super::widened(&wanted, paganin.halo(), rows);
                let mut part = values[read.start * bins..read.end * bins].to_vec();
                filter.filter(&mut part, read.clone(), wanted.clone());
                let mut worst = 0f32;
                for row in wanted {
                    for (a, b) in part[(row - read.start) * bins..].iter().zip(&whole[row * bins..(row + 1) * bins]) {
                        worst = worst.max((a - b).abs());
                    }
                }
                assert!(worst < 1e-5, "L = {length}, halo {}: {worst}", paganin.halo());
            }
        }
    }

    #[test]
    fn the_halo_grows_with_the_length() {
        let halo = |length| Paganin { length, unsharp: None }.halo();
        let halos: Vec<_> = [0.0, 1.0, 10.0, 100.0].into_iter().map(halo).collect();
        assert!(halos.windows(2).all(|w| w[0] < w[1]) && halos[0] <= 1, "{halos:?}");
        assert!((900..1400).contains(&halos[3]), "{halos:?}");
    }

    #[test]
    fn lengths_have_units() {
        // 20 keV: 0.61992 Angstrom; z lambda R / (4 pi) = 4.93e-10 m^2
        let paganin = Paganin::new(20.0, 0.1, 1e-6, 1000.0);
        assert!((paganin.length - 22.211).abs() < 1e-3, "{}", paganin.length);
    }

    #[test]
    fn propagated_edges_become_thickness() {
        // what the filter undoes: I = (1 - L^2 laplace) T, for a smooth one-material object
        let (n, length, sigma) = (96usize, 3.0f64, 12.0f64);
        let thickness = |x: f64, y: f64| (-0.5 * ((x - 47.5).powi(2) + (y - 47.5).powi(2)) / (sigma * sigma)).exp();
        let truth: Vec<f64> = (0..n * n).map(|i| (-thickness((i % n) as f64, (i / n) as f64)).exp()).collect();
        let mut image: Vec<f32> = (0..n * n)
            .map(|i| {
                let (x, y) = ((i % n) as f64, (i / n) as f64);
                let (g, r2) = (thickness(x, y), (x - 47.5).powi(2) + (y - 47.5).powi(2));
                let slope2 = g * g * r2 / sigma.powi(4);
                let laplace = (-g).exp() * (slope2 - g * (r2 / sigma.powi(4) - 2.0 / sigma.powi(2)));
                ((-g).exp() - length * length * laplace) as f32
            })
            .collect();
        let error = |image: &[f32]| image.iter().zip(&truth).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum::<f64>();
        let before = error(&image);
        PaganinFilter::new(&Paganin { length, unsharp: None }, n, n).filter(&mut image, 0..n, 0..n);
        assert!(error(&image) < 1e-4 * before, "{} of {before}", error(&image));
    }
}
