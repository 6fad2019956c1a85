//! Removal of zingers and hot pixels: pixels that differ from the median of their neighbourhood are replaced by it.

use super::errors::StepFlagError;
use super::optics::Optics;
use super::{Band, Counts, Data, Ready, RowStep, RowSteps, Step, StepFlags, check_projections};
use crate::error::{Error, Result};
use crate::numbers::mirrored;
use crate::operations::{OutlierForm, RowCorrection};
use multiversion::multiversion;
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Number of pixels that are sorted in parallel.
const LANES: usize = 16;
/// Largest width of a neighbourhood in pixels.
const LARGEST: usize = 15;

/// A thresholded median filter on detector counts.
///
/// A pixel that is brighter than the median of the `size` x `size` pixels around it by more than `threshold` is
/// replaced by the median; with `both`, also one that is darker by more than `threshold`. Beyond the frame pixels are
/// mirrored.
#[derive(Clone, Debug, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub struct Outliers {
    size: usize,
    threshold: f32,
    both: bool,
}

/// Formats the filter as `--remove-outliers` takes it.
impl fmt::Display for Outliers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}{}", self.size, self.threshold, if self.both { ",both" } else { "" })
    }
}

impl Outliers {
    /// Returns the definition of an outlier for a device.
    pub fn form(&self) -> OutlierForm {
        let Outliers { size, threshold, both } = *self;
        OutlierForm { size, threshold, both }
    }

    /// Returns a filter of `size` pixels, odd and 3 to 15; `threshold` is in counts.
    pub fn new(size: usize, threshold: f32, both: bool) -> Self {
        Outliers { size, threshold, both }
    }
}

/// Reads the filter as `--remove-outliers` takes it.
impl FromStr for Outliers {
    type Err = Error;

    fn from_str(text: &str) -> Result<Outliers> {
        let (numbers, both) = match text.trim().strip_suffix("both").and_then(|rest| rest.trim_end().strip_suffix(','))
        {
            Some(numbers) => (numbers, true),
            None => (text, false),
        };
        let (size, threshold) = numbers.split_once(',').unwrap_or_default();
        match (size.trim().parse(), threshold.trim().parse::<f32>()) {
            (Ok(size), Ok(threshold))
                if (3..=LARGEST).contains(&size) && size % 2 == 1 && threshold.is_finite() && threshold >= 0.0 =>
            {
                Ok(Outliers::new(size, threshold, both))
            }
            _ => Err(StepFlagError::MalformedOutliers { text: text.into(), largest: LARGEST }.into()),
        }
    }
}

impl Step for Option<Outliers> {
    fn flag(&self) -> &'static str {
        "remove-outliers"
    }

    fn parse(args: &StepFlags) -> Result<Self> {
        let Some(text) = &args.steps.remove_outliers else { return Ok(None) };
        check_projections("remove-outliers", args)?;
        text.0.parse().map(Some)
    }

    fn value(&self) -> Option<String> {
        self.as_ref().map(Outliers::to_string)
    }

    fn halo(&self, _: &Optics) -> usize {
        self.as_ref().map_or(0, |outliers| outliers.size / 2)
    }

    fn ready(&self, _: &Data, _: &RowSteps) -> Result<Option<Ready>> {
        Ok(self.as_ref().map(|outliers| Ready::Rows(Box::new(OutlierFilter::new(outliers)))))
    }
}

/// [`Outliers`], prepared.
struct OutlierFilter {
    size: usize,
    threshold: f32,
    both: bool,
    /// Sorting network: pairs of positions to be ordered in turn, until the middle position contains the median.
    network: Vec<(usize, usize)>,
}

impl RowStep for OutlierFilter {
    fn apply(&self, band: &mut Band, counts: &mut Counts) {
        let (keep, counted) = (band.within(&band.rows), band.within(&band.counted));
        counts.outliers += self.replace(band.values, band.bins, keep, &counted);
    }

    fn on_device<'a>(&'a self, correction: &mut RowCorrection<'a>) -> bool {
        let OutlierFilter { size, threshold, both, .. } = *self;
        correction.outliers = Some(OutlierForm { size, threshold, both });
        true
    }
}

impl OutlierFilter {
    fn new(outliers: &Outliers) -> Self {
        let Outliers { size, threshold, both } = *outliers;
        OutlierFilter { size, threshold, both, network: median_network(size * size) }
    }

    /// Replaces outliers in the rows `keep` of `values`, `[row][pixel]` with rows of `width`; other rows do not change.
    /// Returns how many pixels of the rows `counted` were replaced.
    ///
    /// `values` either has `size / 2` more rows on both sides of `keep`, or ends where the frame ends.
    fn replace(&self, values: &mut [f32], width: usize, keep: Range<usize>, counted: &Range<usize>) -> u64 {
        let (reach, rows) = (self.size / 2, values.len() / width);
        // the required rows, each with mirrored pixels at its ends
        let stride = (width + LANES).next_multiple_of(LANES) + 2 * reach;
        let mut padded = vec![0f32; (keep.len() + 2 * reach) * stride];
        for (y, row) in padded.chunks_mut(stride).enumerate() {
            let from = mirrored((keep.start + y) as isize - reach as isize, rows) * width;
            let from = &values[from..from + width];
            row[reach..reach + width].copy_from_slice(from);
            for x in 1..=reach {
                row[reach - x] = from[mirrored(-(x as isize), width)];
                row[reach + width + x - 1] = from[mirrored((width + x) as isize - 1, width)];
            }
        }
        // offsets of the pixels of a neighbourhood from its first
        let offsets: Vec<usize> = (0..self.size * self.size).map(|i| i / self.size * stride + i % self.size).collect();
        let mut places = vec![[0f32; LANES]; offsets.len()];
        let mut replaced = 0;
        for y in keep.clone() {
            let row = &mut values[y * width..(y + 1) * width];
            let count = replace(self, row, &padded[(y - keep.start) * stride..], &offsets, &mut places);
            replaced += if counted.contains(&y) { count } else { 0 };
        }
        replaced
    }

    /// Reports whether one of the pixels in the middle position may be an outlier.
    ///
    /// Of `2 m + 1` values, `m + 1` are at most the median. A bright outlier is not one of them, so at least one of
    /// them is among the `m` positions before the outlier, which is brighter than the darkest of these positions by
    /// more than the threshold. The same holds for dark outliers.
    #[inline(always)]
    fn suspicious<'a>(&self, at: impl Fn(usize) -> &'a [f32]) -> bool {
        let middle = self.size * self.size / 2;
        let (mut darkest, mut brightest) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
        for place in 0..middle {
            for ((low, high), &value) in darkest.iter_mut().zip(&mut brightest).zip(at(place)) {
                *low = if value < *low { value } else { *low };
                if self.both {
                    *high = if value > *high { value } else { *high };
                }
            }
        }
        let beyond = |(i, value): (usize, &f32)| {
            (value - darkest[i] > self.threshold) | (self.both & (brightest[i] - value > self.threshold))
        };
        at(middle).iter().enumerate().map(beyond).fold(false, |any, one| any | one)
    }

    #[inline(always)]
    fn medians(&self, places: &mut [[f32; LANES]]) -> [f32; LANES] {
        for &(a, b) in &self.network {
            let (low, high) = places.split_at_mut(b);
            for (low, high) in low[a].iter_mut().zip(&mut high[0]) {
                // written so that a NaN is moved and not copied
                let ordered = *low < *high;
                (*low, *high) = if ordered { (*low, *high) } else { (*high, *low) };
            }
        }
        places[places.len() / 2]
    }
}

/// Replaces outliers in a row, which starts in `padded` with its neighbours; the pixels of a neighbourhood are at
/// `offsets`, and `places` is a buffer for one. Returns the number of outliers. Also compiled for newer processors, with
/// the same results.
#[multiversion(targets("x86_64+avx2"))]
fn replace(
    outliers: &OutlierFilter,
    row: &mut [f32],
    padded: &[f32],
    offsets: &[usize],
    places: &mut [[f32; LANES]],
) -> u64 {
    let mut replaced = 0;
    for (block, pixels) in row.chunks_mut(LANES).enumerate() {
        let at = |place: usize| &padded[offsets[place] + block * LANES..][..LANES];
        if !outliers.suspicious(at) {
            continue;
        }
        for (place, lanes) in places.iter_mut().enumerate() {
            lanes.copy_from_slice(at(place));
        }
        let medians = outliers.medians(places);
        for (pixel, median) in pixels.iter_mut().zip(medians) {
            let excess = *pixel - median;
            if excess > outliers.threshold || (outliers.both && -excess > outliers.threshold) {
                *pixel = median;
                replaced += 1;
            }
        }
    }
    replaced
}

/// Returns Batcher's odd-even merge sort of `n` positions (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm
/// M), without the comparisons that do not affect the middle position.
fn median_network(n: usize) -> Vec<(usize, usize)> {
    let mut network = Vec::new();
    let mut p = 1;
    while p < n {
        let mut k = p;
        while k > 0 {
            for j in (k % p..n.saturating_sub(k)).step_by(2 * k) {
                for i in j..(j + k).min(n - k) {
                    if i / (2 * p) == (i + k) / (2 * p) {
                        network.push((i, i + k));
                    }
                }
            }
            k /= 2;
        }
        p *= 2;
    }
    let mut matters = vec![false; n];
    matters[n / 2] = true;
    let mut kept: Vec<_> = network
        .into_iter()
        .rev()
        .filter(|&(a, b)| {
            let used = matters[a] || matters[b];
            (matters[a], matters[b]) = (matters[a] || used, matters[b] || used);
            used
        })
        .collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::super::widened;
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn filter(size: usize, threshold: f32, both: bool) -> OutlierFilter {
        OutlierFilter::new(&Outliers::new(size, threshold, both))
    }

    fn reference(frame: &[f32], width: usize, size: usize, threshold: f64, both: bool) -> Vec<f32> {
        let height = frame.len() / width;
        let fold = |i: i64, n: i64| {
            if i < 0 {
                -1 - i
            } else if i >= n {
                2 * n - 1 - i
            } else {
                i
            }
        };
        let mut out = frame.to_vec();
        for y in 0..height as i64 {
            for x in 0..width as i64 {
                let r = size as i64 / 2;
                let mut all: Vec<f64> = Vec::new();
                for dy in -r..=r {
                    for dx in -r..=r {
                        let at = fold(y + dy, height as i64) * width as i64 + fold(x + dx, width as i64);
                        all.push(f64::from(frame[at as usize]));
                    }
                }
                all.sort_by(f64::total_cmp);
                let median = all[all.len() / 2];
                let at = (y * width as i64 + x) as usize;
                let excess = f64::from(frame[at]) - median;
                if excess > threshold || both && -excess > threshold {
                    out[at] = median as f32;
                }
            }
        }
        out
    }

    #[test]
    fn equals_medians_by_sorting() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for (width, height, size, both) in [(37, 21, 3, false), (16, 9, 5, true), (50, 12, 7, false), (9, 8, 7, true)] {
            let frame: Vec<f32> = (0..width * height).map(|_| rng.random_range(0.0..100.0)).collect();
            let expected = reference(&frame, width, size, 20.0, both);
            let mut values = frame.clone();
            let count = filter(size, 20.0, both).replace(&mut values, width, 0..height, &(0..height));
            assert_eq!(values, expected, "{width}x{height}, {size}");
            assert_eq!(count as usize, frame.iter().zip(&expected).filter(|(a, b)| a != b).count());
        }
    }

    #[test]
    fn rows_of_a_frame_are_those_of_the_whole() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let (width, height, outliers) = (33, 20, filter(5, 10.0, true));
        let frame: Vec<f32> = (0..width * height).map(|_| rng.random_range(0.0..100.0)).collect();
        let mut whole = frame.clone();
        outliers.replace(&mut whole, width, 0..height, &(0..0));
        for wanted in [0..4, 7..9, 16..20] {
            let read = widened(&wanted, 2, height);
            let mut part = frame[read.start * width..read.end * width].to_vec();
            let keep = wanted.start - read.start..wanted.end - read.start;
            outliers.replace(&mut part, width, keep.clone(), &keep);
            assert_eq!(part[keep.start * width..keep.end * width], whole[wanted.start * width..wanted.end * width]);
        }
    }

    #[test]
    fn zingers_go_and_noise_stays() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let (width, height) = (128, 64);
        let clean: Vec<f32> = (0..width * height).map(|_| 1000.0 + rng.random_range(-30.0..30.0)).collect();
        let mut frame = clean.clone();
        for _ in 0..60 {
            frame[rng.random_range(0..width * height)] += 5000.0;
        }
        let error = |values: &[f32]| values.iter().zip(&clean).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        let before = error(&frame);
        let outliers = filter(3, 200.0, false);
        outliers.replace(&mut frame, width, 0..height, &(0..0));
        assert!(error(&frame) < 1e-3 * before, "{} of {before}", error(&frame));
        let mut untouched = clean.clone();
        assert_eq!(outliers.replace(&mut untouched, width, 0..height, &(0..height)), 0);
        assert_eq!(untouched, clean);
    }

    #[test]
    fn a_nan_stays_where_it_is() {
        let mut frame = vec![5f32; 7 * 7];
        frame[24] = f32::NAN;
        filter(3, 1.0, true).replace(&mut frame, 7, 0..7, &(0..7));
        assert!(frame.iter().enumerate().all(|(i, v)| if i == 24 { v.is_nan() } else { *v == 5.0 }));
    }
}
