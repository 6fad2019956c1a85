//! Resolution and noise of a slice, from two half scans: slices from every other projection.
//!
//! Fourier ring correlation: both slices are multiplied by a round window with a soft edge, and their spectra are compared
//! over rings of one spatial frequency. What both have in common is signal, what differs is noise; where the correlation
//! falls below a threshold, the slice has no more detail. The thresholds are those of van Heel and Schatz, *Fourier shell
//! correlation threshold criteria*, Journal of Structural Biology 151, 250 (2005): half a bit of information per pixel of
//! the slice from all projections, which depends on the number of independent pixels of the ring, and 1/7.

mod air;
mod rings;

pub use air::AirNoise;
pub use rings::RingCorrelation;

use crate::units::Length;
use rings::Crossing;
use serde::{Deserialize, Serialize};

/// Largest side in pixels of the square that is compared; of a larger slice, the middle.
const MOST_SIDE: usize = 4096;
/// Smallest side in pixels of the square that is compared.
pub const LEAST_SIDE: usize = 16;

/// Two half scans of a slice.
pub struct HalfScans {
    /// Number of the slice.
    pub slice: usize,
    /// Side of a slice in pixels.
    pub size: usize,
    /// Radius in pixels of the circle about the middle that all projections see.
    pub radius: f64,
    /// Slices `[y][x]` from the even and the odd projections.
    pub halves: [Vec<f32>; 2],
}

/// Resolution and noise of a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resolution {
    /// Number of the slice.
    pub slice: usize,
    /// Side in pixels of the square that was compared; ring `r` has `r / side` periods per pixel.
    pub side: usize,
    /// Where the correlation falls below the half-bit threshold.
    pub half_bit: ResolvedDetail,
    /// Where the correlation falls below 1/7.
    pub one_seventh: ResolvedDetail,
    /// Noise outside of the sample; `None` where no air was found.
    pub air: Option<AirNoise>,
    /// Unit of `length`; `None` without a pixel size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Element `r` is the correlation of ring `r`; ring 0, the mean, has none.
    pub correlation: Vec<f64>,
    /// Half-bit threshold of every ring.
    pub threshold: Vec<f64>,
}

/// Size of the finest detail that is resolved: one period of the spatial frequency at which the correlation falls below a
/// threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolvedDetail {
    pub verdict: ResolutionVerdict,
    /// Pixels; 2 where the verdict is `pixels`, `None` where nothing is resolved.
    pub pixels: Option<f64>,
    /// The same in the unit of the pixel size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<f64>,
}

/// Limits of the resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResolutionVerdict {
    /// The correlation falls below the threshold.
    Ok,
    /// It stays above it up to the finest detail that pixels can show.
    Pixels,
    /// It is below it from the start: the half scans have nothing in common.
    Nothing,
}

impl Resolution {
    /// Compares half scans; `None` where the circle that all projections see is too small.
    pub fn of(scans: &HalfScans, pixel_size: Option<&Length>) -> Option<Resolution> {
        let HalfScans { slice, size, radius, halves } = scans;
        let side = (2.0 * radius).min(*size as f64).min(MOST_SIDE as f64) as usize / 2 * 2;
        if side < LEAST_SIDE {
            return None;
        }
        let rings = RingCorrelation::of([&halves[0], &halves[1]].map(|half| square(half, *size, side)), side);
        let detail = |crossing| ResolvedDetail::at(crossing, pixel_size);
        let rounded = |values: &[f64]| values.iter().map(|value| (value * 1e4).round() / 1e4).collect();
        Some(Resolution {
            slice: *slice,
            side,
            half_bit: detail(rings.falls_below(|ring| rings.half_bit[ring])),
            one_seventh: detail(rings.falls_below(|_| 1.0 / 7.0)),
            air: AirNoise::of(&halves[0], &halves[1], *size, *radius),
            unit: pixel_size.map(|size| size.unit.clone()),
            correlation: rounded(&rings.correlation),
            threshold: rounded(&rings.half_bit),
        })
    }

    /// Returns the line of the summary; `unit` is that of the values.
    pub fn in_words(&self, unit: &str) -> String {
        let [half_bit, seventh] = [&self.half_bit, &self.one_seventh].map(|detail| self.said(detail));
        let air = match &self.air {
            Some(air) => format!("noise in air {} {unit}", digits(air.standard_deviation)),
            None => "no air was found".to_owned(),
        };
        format!("resolution of slice {}: {half_bit} by half-bit, {seventh} by 1/7; {air}", self.slice)
    }

    fn said(&self, detail: &ResolvedDetail) -> String {
        let length = match (detail.length, &self.unit) {
            (Some(length), Some(unit)) => format!(" ({} {unit})", digits(length)),
            _ => String::new(),
        };
        match (detail.verdict, detail.pixels) {
            (ResolutionVerdict::Ok, Some(pixels)) => format!("{pixels:.2} pixels{length}"),
            (ResolutionVerdict::Pixels, _) => format!("2 pixels{length}, their limit,"),
            _ => "nothing".to_owned(),
        }
    }
}

impl ResolvedDetail {
    /// Returns the detail at a spatial frequency in periods per pixel.
    fn at(crossing: Crossing, pixel_size: Option<&Length>) -> ResolvedDetail {
        let (verdict, pixels) = match crossing {
            Crossing::At(frequency) => (ResolutionVerdict::Ok, Some(1.0 / frequency)),
            Crossing::Beyond => (ResolutionVerdict::Pixels, Some(2.0)),
            Crossing::Before => (ResolutionVerdict::Nothing, None),
        };
        let length = pixels.zip(pixel_size).map(|(pixels, size)| pixels * size.value);
        ResolvedDetail { verdict, pixels, length }
    }
}

/// Formats a positive value with three digits.
fn digits(value: f64) -> String {
    match value {
        1e-4..1e6 => format!("{value:.*}", (2.0 - value.log10().floor()).max(0.0) as usize),
        _ => format!("{value:.2e}"),
    }
}

/// Returns the square of a side in the middle of a slice.
fn square(slice: &[f32], size: usize, side: usize) -> Vec<f64> {
    let first = (size - side) / 2;
    let rows = slice.chunks(size).skip(first).take(side);
    rows.flat_map(|row| row[first..first + side].iter().map(|&value| value.into())).collect()
}

#[cfg(test)]
mod tests;
