//! Differences between an image or a stack and a reference: the numbers of `fbp compare`.
//!
//! This takes two passes, because SSIM needs the dynamic range of the whole stack: [`Range`] reads every reference
//! slice first, then [`Accumulator`] reads every pair of slices. Images are `height x width` f32, rows downwards; sums
//! are f64.

use rayon::prelude::*;
use serde::Serialize;

use crate::error::{Result, messages};

messages! {
    /// Errors of images that are compared.
    enum ComparedImageError: Input {
        OtherSize { pixels: usize, width: usize, height: usize } =>
            "an image of {pixels} pixels where {width} x {height} were expected"; "compare images of one size",
    }
}

/// Circle of the pixels that count, with centre `((w-1)/2, (h-1)/2)` and a radius of `fraction * min(w, h) / 2` pixels;
/// the whole image without a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mask {
    width: usize,
    height: usize,
    radius: Option<f64>,
}

impl Mask {
    /// Creates the mask of `width x height` images.
    pub fn new(width: usize, height: usize, fraction: Option<f64>) -> Mask {
        Mask { width, height, radius: fraction.map(|fraction| fraction * width.min(height) as f64 / 2.0) }
    }

    /// Reports whether pixel `(x, y)` counts.
    pub fn contains(&self, x: usize, y: usize) -> bool {
        self.radius.is_none_or(|radius| {
            let dx = x as f64 - (self.width as f64 - 1.0) / 2.0;
            let dy = y as f64 - (self.height as f64 - 1.0) / 2.0;
            radius >= 0.0 && dx * dx + dy * dy <= radius * radius
        })
    }

    /// Iterates over the pixels that count as `(index, x, y)`, row by row.
    fn pixels(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let mask = *self;
        (0..mask.width * mask.height)
            .map(move |index| (index, index % mask.width, index / mask.width))
            .filter(move |&(_, x, y)| mask.contains(x, y))
    }

    fn check(&self, image: &[f32]) -> Result<()> {
        let (pixels, Mask { width, height, .. }) = (image.len(), *self);
        match pixels == width * height {
            true => Ok(()),
            false => Err(ComparedImageError::OtherSize { pixels, width, height }.into()),
        }
    }
}

/// First pass: the smallest and largest finite value of the reference within the mask, over all slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    mask: Mask,
    min: f64,
    max: f64,
}

impl Range {
    /// Creates the range of a reference of which no slice was added yet.
    pub fn new(mask: Mask) -> Range {
        Range { mask, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }

    /// Adds one slice of the reference.
    pub fn add(&mut self, reference: &[f32]) -> Result<()> {
        self.mask.check(reference)?;
        for (index, ..) in self.mask.pixels() {
            let value = f64::from(reference[index]);
            if value.is_finite() {
                self.min = self.min.min(value);
                self.max = self.max.max(value);
            }
        }
        Ok(())
    }

    /// Returns the difference between the largest and the smallest value; 0 without values.
    pub fn span(&self) -> f64 {
        (self.max - self.min).max(0.0)
    }
}

/// Position of a pixel: `x` to the right, `y` downwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Position {
    pub slice: usize,
    pub x: usize,
    pub y: usize,
}

/// Result of the comparison of A with the reference B, over the masked pixels of all slices.
///
/// Serialises with these names; JSON has no infinity, so an infinite (or undefined) number becomes `null`: `psnr` and
/// `snr` of equal images, and all numbers mentioned under `non_finite`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// `rms(A - B)`, in the unit of the images.
    pub rmse: f64,
    /// `rms(A - B) / std(B)`. Against a constant reference, 0 when all values are equal, otherwise infinite.
    pub nrmse: f64,
    /// `20 log10(span(B) / rmse)` in dB, where `span(B)` is the difference between the largest and the smallest
    /// reference value; infinite for equal images.
    pub psnr: f64,
    /// `20 log10(rms(B) / rmse)` in dB; infinite for equal images.
    pub snr: f64,
    /// Structural similarity (Wang et al. 2004: Gaussian window of sigma 1.5 and 11 x 11 pixels, K1 = 0.01, K2 = 0.03,
    /// dynamic range `span(B)`, population covariances).
    ///
    /// This is the mean over those masked pixels whose window lies inside the image and touches finite values alone.
    /// Against a constant reference, it is 1 when all values are equal, otherwise 0. NaN when no window fits.
    pub ssim: f64,
    /// Largest `|A - B|`.
    pub max_abs: f64,
    /// First pixel with the largest difference, or the first non-finite pixel when there is one; `None` when all values
    /// are equal.
    pub max_at: Option<Position>,
    /// Number of pixels that are infinite or NaN in A or in B.
    ///
    /// With any of them, or without any pixels, nothing compares equal: `rmse`, `nrmse` and `max_abs` are infinite,
    /// `psnr` and `snr` are minus infinity and `ssim` is 0. The means and the range of B are those of the finite
    /// pixels.
    pub non_finite: u64,
    /// Number of pixels compared, finite or not.
    pub pixels: u64,
    /// Number of slices compared.
    pub slices: u64,
    /// Mean of A.
    pub a_mean: f64,
    /// Mean of B.
    pub b_mean: f64,
    /// Standard deviation of B (population).
    pub b_std: f64,
    /// Smallest value of B.
    pub b_min: f64,
    /// Largest value of B.
    pub b_max: f64,
}

/// Second pass: takes pairs of slices and results in a [`Comparison`].
#[derive(Clone, Debug)]
pub struct Accumulator {
    range: Range,
    slices: u64,
    pixels: u64,
    non_finite: u64,
    /// Number of finite pixels.
    finite: u64,
    /// Mean of the finite pixels of A.
    a_mean: f64,
    /// Mean of the finite pixels of B.
    b_mean: f64,
    /// Sum of the squares of the finite pixels of B about their mean.
    b_squares: f64,
    squares: f64,
    max_abs: f64,
    max_at: Option<Position>,
    bad_at: Option<Position>,
    ssim_sum: f64,
    ssim_windows: u64,
}

impl Accumulator {
    /// Creates an accumulator for the images, the mask and the reference of `range`.
    pub fn new(range: Range) -> Accumulator {
        Accumulator {
            range,
            slices: 0,
            pixels: 0,
            non_finite: 0,
            finite: 0,
            a_mean: 0.0,
            b_mean: 0.0,
            b_squares: 0.0,
            squares: 0.0,
            max_abs: 0.0,
            max_at: None,
            bad_at: None,
            ssim_sum: 0.0,
            ssim_windows: 0,
        }
    }

    /// Adds one pair of slices; `slice` is the number to report in [`Comparison::max_at`].
    pub fn add(&mut self, slice: usize, a: &[f32], b: &[f32]) -> Result<()> {
        let mask = self.range.mask;
        mask.check(a)?;
        mask.check(b)?;
        self.slices += 1;
        let (mut count, mut a_sum, mut b_sum) = (0u64, 0.0, 0.0);
        for (index, x, y) in mask.pixels() {
            let (a, b) = (f64::from(a[index]), f64::from(b[index]));
            let here = Position { slice, x, y };
            self.pixels += 1;
            if !a.is_finite() || !b.is_finite() {
                self.non_finite += 1;
                self.bad_at.get_or_insert(here);
                continue;
            }
            count += 1;
            a_sum += a;
            b_sum += b;
            let error = (a - b).abs();
            self.squares += error * error;
            if error > self.max_abs {
                self.max_abs = error;
                self.max_at = Some(here);
            }
        }
        if count > 0 {
            let (own, before) = (count as f64, self.finite as f64);
            let (a_mean, b_mean) = (a_sum / own, b_sum / own);
            let spread: f64 = mask
                .pixels()
                .filter(|&(index, ..)| a[index].is_finite() && b[index].is_finite())
                .map(|(index, ..)| (f64::from(b[index]) - b_mean).powi(2))
                .sum();
            let (a_step, b_step) = (a_mean - self.a_mean, b_mean - self.b_mean);
            let share = own / (own + before);
            self.a_mean += a_step * share;
            self.b_mean += b_step * share;
            self.b_squares += spread + b_step * b_step * before * share;
            self.finite += count;
        }
        if self.range.span() > 0.0 {
            let (sum, windows) = ssim(mask, self.range.span(), a, b);
            self.ssim_sum += sum;
            self.ssim_windows += windows;
        }
        Ok(())
    }

    /// Returns the result of the comparison.
    pub fn finish(self) -> Comparison {
        let count = self.finite as f64;
        let bad = self.non_finite > 0 || self.pixels == 0;
        let span = self.range.span();
        let equal = self.max_abs == 0.0;
        let rmse = (self.squares / count).sqrt();
        let b_std = (self.b_squares / count).sqrt();
        let or = |worst: f64, value: f64| if bad { worst } else { value };
        Comparison {
            rmse: or(f64::INFINITY, rmse),
            nrmse: or(
                f64::INFINITY,
                match (equal, span > 0.0) {
                    (true, _) => 0.0,
                    (false, true) => rmse / b_std,
                    (false, false) => f64::INFINITY,
                },
            ),
            psnr: or(f64::NEG_INFINITY, if equal { f64::INFINITY } else { 20.0 * (span / rmse).log10() }),
            snr: or(
                f64::NEG_INFINITY,
                if equal { f64::INFINITY } else { 20.0 * (self.b_mean.hypot(b_std) / rmse).log10() },
            ),
            ssim: or(
                0.0,
                if span > 0.0 { self.ssim_sum / self.ssim_windows as f64 } else { f64::from(u8::from(equal)) },
            ),
            max_abs: or(f64::INFINITY, self.max_abs),
            max_at: self.bad_at.or(self.max_at),
            non_finite: self.non_finite,
            pixels: self.pixels,
            slices: self.slices,
            a_mean: self.a_mean,
            b_mean: self.b_mean,
            b_std,
            b_min: self.range.min,
            b_max: self.range.max,
        }
    }
}

/// Compares one image with its reference, both `height x width`.
pub fn images(width: usize, height: usize, mask: Option<f64>, a: &[f32], b: &[f32]) -> Result<Comparison> {
    let mut range = Range::new(Mask::new(width, height, mask));
    range.add(b)?;
    let mut accumulator = Accumulator::new(range);
    accumulator.add(0, a, b)?;
    Ok(accumulator.finish())
}

/// Number of taps of the SSIM window along each side.
const TAPS: usize = 11;

/// Returns the sum of the SSIM over the masked pixels with a complete and finite window, and their number.
fn ssim(mask: Mask, span: f64, a: &[f32], b: &[f32]) -> (f64, u64) {
    let Mask { width, height, .. } = mask;
    if width < TAPS || height < TAPS {
        return (0.0, 0);
    }
    let half = TAPS / 2;
    let mut taps: [f64; TAPS] = std::array::from_fn(|k| (-0.5 * ((k as f64 - half as f64) / 1.5).powi(2)).exp());
    let total: f64 = taps.iter().sum();
    taps.iter_mut().for_each(|tap| *tap /= total);
    let (c1, c2) = ((0.01 * span).powi(2), (0.03 * span).powi(2));

    let rows: Vec<(f64, u64)> = (half..height - half)
        .into_par_iter()
        .map(|y| {
            // a, b, a a, b b and a b, weighted along the columns, then along the row
            let mut columns = vec![[0.0f64; 5]; width];
            for (k, tap) in taps.iter().enumerate() {
                let start = (y + k - half) * width;
                let pairs = a[start..start + width].iter().zip(&b[start..start + width]);
                for (sums, (&a, &b)) in columns.iter_mut().zip(pairs) {
                    let (a, b) = (f64::from(a), f64::from(b));
                    for (sum, moment) in sums.iter_mut().zip([a, b, a * a, b * b, a * b]) {
                        *sum += tap * moment;
                    }
                }
            }
            let (mut sum, mut windows) = (0.0, 0);
            for x in (half..width - half).filter(|&x| mask.contains(x, y)) {
                let mut moments = [0.0f64; 5];
                for (tap, sums) in taps.iter().zip(&columns[x - half..=x + half]) {
                    for (moment, sum) in moments.iter_mut().zip(sums) {
                        *moment += tap * sum;
                    }
                }
                let [a, b, aa, bb, ab] = moments;
                let value = (2.0 * a * b + c1) * (2.0 * (ab - a * b) + c2)
                    / ((a * a + b * b + c1) * (aa - a * a + bb - b * b + c2));
                if value.is_finite() {
                    sum += value;
                    windows += 1;
                }
            }
            (sum, windows)
        })
        .collect();
    rows.into_iter().fold((0.0, 0), |(sum, windows), (s, w)| (sum + s, windows + w))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12 * (1.0 + b.abs())
    }

    /// Returns images of smooth waves, the first one with noise and an offset.
    fn pair(width: usize, height: usize, seed: u64) -> (Vec<f32>, Vec<f32>) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let b: Vec<f32> =
            (0..width * height).map(|i| ((i % width) as f32 * 0.3).sin() + (i / width) as f32 * 0.1).collect();
        let a = b.iter().map(|v| v + rng.random_range(-0.1..0.15)).collect();
        (a, b)
    }

    /// Compares all slices directly by the definitions, with two-dimensional windows.
    fn direct(width: usize, height: usize, mask: Option<f64>, pairs: &[(Vec<f32>, Vec<f32>)]) -> [f64; 5] {
        let (cx, cy) = ((width as f64 - 1.0) / 2.0, (height as f64 - 1.0) / 2.0);
        let inside = |i: usize| match mask {
            None => true,
            Some(f) => {
                let (x, y) = ((i % width) as f64 - cx, (i / width) as f64 - cy);
                x.hypot(y) <= f * width.min(height) as f64 / 2.0
            }
        };
        let (mut a, mut b) = (vec![], vec![]);
        for (pa, pb) in pairs {
            for i in (0..width * height).filter(|&i| inside(i)) {
                a.push(f64::from(pa[i]));
                b.push(f64::from(pb[i]));
            }
        }
        let n = a.len() as f64;
        let mean = b.iter().sum::<f64>() / n;
        let std = (b.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        let rmse = (a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / n).sqrt();
        let worst = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let span = b.iter().copied().fold(f64::MIN, f64::max) - b.iter().copied().fold(f64::MAX, f64::min);
        let mut values = vec![];
        for (pa, pb) in pairs {
            for i in (0..width * height).filter(|&i| inside(i)) {
                let (x, y) = (i % width, i / width);
                if x < 5 || y < 5 || x + 5 >= width || y + 5 >= height {
                    continue;
                }
                let mut window = vec![];
                for dy in 0..11 {
                    for dx in 0..11 {
                        let r2 = (dx as f64 - 5.0).powi(2) + (dy as f64 - 5.0).powi(2);
                        let j = (y + dy - 5) * width + x + dx - 5;
                        window.push(((-r2 / 4.5).exp(), f64::from(pa[j]), f64::from(pb[j])));
                    }
                }
                let total: f64 = window.iter().map(|w| w.0).sum();
                let mean =
                    |f: &dyn Fn(f64, f64) -> f64| window.iter().map(|&(w, a, b)| w * f(a, b)).sum::<f64>() / total;
                let (ma, mb) = (mean(&|a, _| a), mean(&|_, b| b));
                let va = mean(&|a, _| (a - ma).powi(2));
                let vb = mean(&|_, b| (b - mb).powi(2));
                let vab = mean(&|a, b| (a - ma) * (b - mb));
                let (c1, c2) = ((0.01 * span).powi(2), (0.03 * span).powi(2));
                values.push((2.0 * ma * mb + c1) / (ma * ma + mb * mb + c1) * (2.0 * vab + c2) / (va + vb + c2));
            }
        }
        let ssim = values.iter().sum::<f64>() / values.len() as f64;
        [rmse, rmse / std, 10.0 * (span * span / (rmse * rmse)).log10(), ssim, worst]
    }

    #[test]
    fn by_hand() {
        // Differences 0, 0, 0, 2: rmse 1. Reference 0, 0, 4, 4: std 2, span 4.
        let c = images(2, 2, None, &[0.0, 0.0, 4.0, 6.0], &[0.0, 0.0, 4.0, 4.0]).unwrap();
        assert!(close(c.rmse, 1.0) && close(c.nrmse, 0.5) && close(c.psnr, 20.0 * 4f64.log10()));
        // the root of the mean of 0, 0, 16, 16
        assert!(close(c.snr, 10.0 * 8f64.log10()));
        assert!(close(c.max_abs, 2.0) && close(c.a_mean, 2.5) && close(c.b_mean, 2.0));
        assert_eq!(c.max_at, Some(Position { slice: 0, x: 1, y: 1 }));
        assert_eq!((c.b_min, c.b_max, c.b_std), (0.0, 4.0, 2.0));
        assert_eq!((c.pixels, c.slices, c.non_finite), (4, 1, 0));
        assert!(c.ssim.is_nan(), "no window fits");
    }

    #[test]
    fn as_the_definitions_say_over_a_stack() {
        let (width, height) = (40, 31);
        let mut pairs = vec![pair(width, height, 1), pair(width, height, 2)];
        // Another level and range in the second slice: what is pooled and what is not must differ.
        let (a, b) = &mut pairs[1];
        for v in a.iter_mut().chain(b) {
            *v = 3.0 * *v + 20.0;
        }
        for mask in [None, Some(0.8), Some(1.0)] {
            let mut range = Range::new(Mask::new(width, height, mask));
            for (_, b) in &pairs {
                range.add(b).unwrap();
            }
            let mut sums = Accumulator::new(range);
            for (slice, (a, b)) in pairs.iter().enumerate() {
                sums.add(slice + 7, a, b).unwrap();
            }
            let c = sums.finish();
            let expected = direct(width, height, mask, &pairs);
            for (got, expected) in [c.rmse, c.nrmse, c.psnr, c.ssim, c.max_abs].into_iter().zip(expected) {
                assert!((got - expected).abs() < 1e-10 * expected.abs(), "{got} {expected}");
            }
            let at = c.max_at.unwrap();
            let (a, b) = &pairs[at.slice - 7];
            let i = at.y * width + at.x;
            assert_eq!((f64::from(a[i]) - f64::from(b[i])).abs(), c.max_abs);
            assert!(c.ssim > 0.3 && c.ssim < 0.999);
        }
    }

    #[test]
    fn the_mask_is_a_centred_circle() {
        // 5 x 4: centre (2, 1.5), radius 2 for fraction 1.
        let mask = Mask::new(5, 4, Some(1.0));
        let rows: Vec<String> =
            (0..4).map(|y| (0..5).map(|x| if mask.contains(x, y) { '#' } else { '.' }).collect()).collect();
        assert_eq!(rows, [".###.", ".###.", ".###.", ".###."]);
        assert!(Mask::new(5, 5, Some(0.8)).contains(0, 2));
        assert!(!Mask::new(5, 5, Some(0.79)).contains(0, 2));
        // What lies outside does not matter, not even NaN.
        let (mut a, b) = pair(64, 64, 3);
        let clean = images(64, 64, Some(0.5), &a, &b).unwrap();
        a[0] = f32::NAN;
        a[63] = 1e9;
        assert_eq!(images(64, 64, Some(0.5), &a, &b).unwrap(), clean);
    }

    #[test]
    fn equal_images() {
        let (a, _) = pair(16, 16, 4);
        let c = images(16, 16, None, &a, &a).unwrap();
        assert_eq!((c.rmse, c.nrmse, c.max_abs, c.max_at), (0.0, 0.0, 0.0, None));
        assert!(c.psnr == f64::INFINITY && c.snr == f64::INFINITY && close(c.ssim, 1.0));
    }

    #[test]
    fn a_constant_reference() {
        let flat = [2.0f32; 144];
        let same = images(12, 12, None, &flat, &flat).unwrap();
        assert_eq!((same.nrmse, same.ssim, same.psnr), (0.0, 1.0, f64::INFINITY));
        let off = images(12, 12, None, &[2.5; 144], &flat).unwrap();
        assert_eq!((off.rmse, off.nrmse, off.ssim), (0.5, f64::INFINITY, 0.0));
        assert_eq!(off.psnr, f64::NEG_INFINITY);
        assert!(close(off.snr, 20.0 * 4f64.log10()));
    }

    #[test]
    fn what_is_not_finite_never_compares_equal() {
        let (good, reference) = pair(16, 16, 5);
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut bad = good.clone();
            bad[16 * 3 + 2] = value;
            bad[16 * 9] = value;
            let all = vec![value; 256];
            for (a, b, count) in [(&bad, &reference, 2), (&reference, &bad, 2), (&bad, &bad, 2), (&all, &all, 256)] {
                let c = images(16, 16, None, a, b).unwrap();
                assert_eq!((c.rmse, c.nrmse, c.max_abs), (f64::INFINITY, f64::INFINITY, f64::INFINITY));
                assert_eq!((c.psnr, c.snr), (f64::NEG_INFINITY, f64::NEG_INFINITY));
                assert_eq!((c.ssim, c.non_finite), (0.0, count));
                if count == 2 {
                    assert_eq!(c.max_at, Some(Position { slice: 0, x: 2, y: 3 }));
                }
                let json = serde_json::to_value(&c).unwrap();
                assert!(json["nrmse"].is_null() && json["rmse"].is_null());
                assert_eq!(json["non_finite"], count);
            }
        }
        // An empty mask compares nothing.
        let none = images(16, 16, Some(-1.0), &good, &good).unwrap();
        assert_eq!((none.pixels, none.nrmse), (0, f64::INFINITY));
        assert!(images(16, 16, None, &good[1..], &good).is_err());
    }

    #[test]
    fn a_small_spread_on_a_large_level_keeps_its_digits() {
        let b: Vec<f32> = (0..400).map(|i| 1e6 + (i % 2) as f32).collect();
        let a: Vec<f32> = b.iter().map(|v| v + 1.0).collect();
        let mut range = Range::new(Mask::new(20, 20, None));
        range.add(&b).unwrap();
        let mut sums = Accumulator::new(range);
        for slice in 0..5 {
            sums.add(slice, &a, &b).unwrap();
        }
        let c = sums.finish();
        assert!(close(c.b_std, 0.5) && close(c.nrmse, 2.0) && close(c.b_mean, 1e6 + 0.5));
    }
}
