//! Spectra of reconstruction filters, computed once in `f64`.
//!
//! The ramp is the transform of its band-limited real-space kernel (Kak and Slaney, section 3.3): `1/4` at 0,
//! `-1/(pi k)^2` at odd `k`, 0 at other even `k`. It has no bias at frequency zero, as sampling `|f|` would.
//! The other filters are that ramp times a window of `u = f / (cutoff * f_Nyquist)`; windows end at `u = 1`
//! (the Butterworth window, order 4, falls off smoothly and has `1/2` there).

use host_fft::{Complex, Real};
use serde::{Deserialize, Serialize};
use std::f64::consts::{PI, TAU};
use strum::{Display, EnumIter, EnumString, IntoStaticStr, VariantArray};

/// The extension of a row beyond the detector before the filter, as `--padding` takes it. The kernels get the index in
/// this list.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Padding {
    /// Zeros.
    Zero,
    /// The row's first and last value (default, as in nabu and tofu).
    #[default]
    Edge,
    /// The row mirrored at its ends (end values repeated), alternately at one and the other.
    Mirror,
}

/// The named filters, as in silx, nabu and ASTRA.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Default,
    Display,
    EnumIter,
    EnumString,
    IntoStaticStr,
    VariantArray,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Filter {
    #[default]
    #[strum(to_string = "ramp", serialize = "ramlak", serialize = "ram-lak")]
    #[serde(alias = "ramlak", alias = "ram-lak")]
    Ramp,
    SheppLogan,
    Cosine,
    Hamming,
    Hann,
    Parzen,
    Butterworth,
    /// No filter: plain back projection.
    None,
}

impl Filter {
    /// Returns the window at `u = f / (cutoff * f_Nyquist) >= 0`.
    fn window(self, u: f64) -> f64 {
        if u > 1.0 && self != Filter::Butterworth {
            return 0.0;
        }
        match self {
            Filter::Ramp | Filter::None => 1.0,
            Filter::SheppLogan => {
                let x = PI * u / 2.0;
                if x == 0.0 { 1.0 } else { x.sin() / x }
            }
            Filter::Cosine => (PI * u / 2.0).cos(),
            Filter::Hamming => 0.54 + 0.46 * (PI * u).cos(),
            Filter::Hann => 0.5 + 0.5 * (PI * u).cos(),
            Filter::Parzen if u <= 0.5 => 1.0 - 6.0 * u * u * (1.0 - u),
            Filter::Parzen => 2.0 * (1.0 - u).powi(3),
            Filter::Butterworth => 1.0 / (1.0 + u.powi(8)),
        }
    }
}

/// Returns the real, even spectrum of a filter on `length` points: value `k` multiplies frequency `k / length` cycles
/// per bin.
///
/// `cutoff` is in units of the Nyquist frequency, above 0. Multiplying a forward transform by it and transforming
/// back with a factor `1 / length` filters a row; for `Filter::None` every value is 1.
pub fn spectrum(filter: Filter, cutoff: f64, length: usize) -> Vec<f64> {
    if filter == Filter::None {
        return vec![1.0; length];
    }
    let mut kernel: Vec<Complex<f64>> = (0..length)
        .map(|n| {
            let k = n.min(length - n);
            let value = match k {
                0 => 0.25,
                k if k % 2 == 1 => -1.0 / (PI * k as f64).powi(2),
                _ => 0.0,
            };
            Complex::new(value, 0.0)
        })
        .collect();
    f64::forward(length).process(&mut kernel);
    kernel
        .iter()
        .enumerate()
        .map(|(n, value)| {
            let frequency = n.min(length - n) as f64 / length as f64;
            value.re * filter.window(frequency / (0.5 * cutoff))
        })
        .collect()
}

/// Length of the shortest padded row.
const SHORTEST: usize = 64;

/// Returns the length to which rows of `bins` are padded before they are filtered: the first power of two from `2 *
/// bins` on, at least 64.
///
/// The padding of a row, and so the mean of a slice, depends on this length (docs/geometry.md); therefore it must not
/// depend on device or profile. Every transform handles powers of two well.
pub fn padded_length(bins: usize) -> usize {
    (2 * bins).next_power_of_two().max(SHORTEST)
}

/// Returns the largest magnitude of a value that filter and back projection carry in `f32`, for projections of `bins`
/// bins: if all values are as large, no intermediate sum overflows. Larger ones are not data (3.4e38 stands for "no
/// data" in many files).
///
/// A transform adds up the `L` values of a padded row, which is twice as long in an extended field; a back projection
/// adds up rows, or with interpolation `exact` their frequencies, for every projection. The filter divides by `L`, and
/// the magnitudes of all frequencies of a row then add up to at most `L^0.5` times the value. The remaining margin is a
/// factor of 1024, also for the images of the phase filter.
pub fn largest_value(bins: usize, projections: usize) -> f32 {
    let sums = padded_length(2 * bins) as f64 * projections.max(1) as f64;
    (f64::from(f32::MAX) / (1024.0 * sums)) as f32
}

/// Returns cosine and sine of `2 pi k / length` for every `k`: the factors of a transform's values.
pub fn turns(length: usize) -> Vec<[f32; 2]> {
    let turn = |k: usize| {
        let (sin, cos) = (TAU * k as f64 / length as f64).sin_cos();
        [cos as f32, sin as f32]
    };
    (0..length).map(turn).collect()
}

/// Returns the number of frequencies of a row that are stored where frequencies are back-projected: from 0 to 1/2
/// period per bin, and room up to a multiple of 8.
pub fn stored_frequencies(bins: usize) -> usize {
    stored_of(padded_length(bins))
}

/// Returns the number of stored frequencies of rows that are padded to `length`.
pub fn stored_of(length: usize) -> usize {
    length / 2 + 8
}

/// Returns a filter's spectrum on `length` points with the `1 / length` of the backward transform.
pub fn scaled_spectrum(filter: Filter, cutoff: f64, length: usize) -> Vec<f32> {
    let scale = 1.0 / length as f64;
    spectrum(filter, cutoff, length).iter().map(|v| (v * scale) as f32).collect()
}

/// Value of a Gaussian at which it is truncated.
const NEGLIGIBLE: f64 = 1e-8;

/// A Gaussian low-pass filter by direct sums, which cost less than transforms because few frequencies remain.
///
/// Frequency `k`, in periods over all samples, is multiplied by `exp(-k^2 / (2 sigma^2))`.
#[derive(Clone, Debug, PartialEq)]
pub struct LowPass {
    /// Cosine and sine at every sample of the wave with one period.
    pub waves: Vec<[f32; 2]>,
    /// Factors of frequencies 0, 1, ..., with the transform's `1 / samples`; each includes the negative frequency.
    pub weights: Vec<f32>,
}

impl LowPass {
    /// Builds the filter for `samples` samples; `sigma` is in periods over all of them.
    pub fn new(samples: usize, sigma: f64) -> LowPass {
        let last = LowPass::frequencies(samples, sigma) - 1;
        let wave = |i: usize| {
            let (sin, cos) = (2.0 * PI * i as f64 / samples as f64).sin_cos();
            [cos as f32, sin as f32]
        };
        let weight = |k: usize| {
            let both = if k == 0 || 2 * k == samples { 1.0 } else { 2.0 };
            (both * (-0.5 * (k as f64 / sigma).powi(2)).exp() / samples as f64) as f32
        };
        LowPass { waves: (0..samples).map(wave).collect(), weights: (0..=last).map(weight).collect() }
    }

    /// Returns the number of frequencies that are not negligible, including frequency 0.
    pub fn frequencies(samples: usize, sigma: f64) -> usize {
        ((sigma * (-2.0 * NEGLIGIBLE.ln()).sqrt()) as usize).min(samples / 2) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::IntoEnumIterator;

    #[test]
    fn names_and_aliases() {
        for filter in Filter::iter() {
            assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
        }
        assert_eq!("ram-lak".parse::<Filter>().unwrap(), Filter::Ramp);
        assert_eq!("ramlak".parse::<Filter>().unwrap(), Filter::Ramp);
        assert!("boxcar".parse::<Filter>().is_err());
    }

    #[test]
    fn ramp_has_the_right_slope_and_no_offset() {
        let length = 1024;
        let ramp = spectrum(Filter::Ramp, 1.0, length);
        // |f| away from the ends; at 0 the small positive value of a kernel cut at length / 2
        for k in [64, 128, 256, 400] {
            assert!((ramp[k] - k as f64 / length as f64).abs() < 1e-3);
        }
        assert!(ramp[0] > 0.0 && ramp[0] < 1e-3);
        for k in 1..length {
            assert!((ramp[k] - ramp[length - k]).abs() < 1e-15);
        }
    }

    #[test]
    fn windows_start_at_one_and_end_where_they_should() {
        let at_nyquist = [1.0, 2.0 / PI, 0.0, 0.08, 0.0, 0.0, 0.5, 1.0];
        for (filter, end) in Filter::iter().zip(at_nyquist) {
            assert!((filter.window(0.0) - 1.0).abs() < 1e-15, "{filter}");
            assert!((filter.window(1.0) - end).abs() < 1e-12, "{filter}");
        }
        let half = spectrum(Filter::Hann, 0.5, 256);
        assert!(half[64..=192].iter().all(|v| v.abs() < 1e-15) && half[40] > 0.0);
    }

    #[test]
    fn rows_are_at_least_doubled() {
        for (bins, length) in [(1, 64), (32, 64), (33, 128), (67, 256), (2048, 4096), (2049, 8192)] {
            assert_eq!(padded_length(bins), length, "{bins}");
        }
    }
}
