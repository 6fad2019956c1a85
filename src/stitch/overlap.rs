//! Where two parts of a scan show the same: the shift at which their projections agree best, and how certain it is.
//!
//! What is compared are `-ln` of transmissions, and of these the changes along the shift: derivatives of Gaussians, which do
//! not depend on the level of a part. At a shift `s`, pixel `i` of the first part is compared with `i - s` of the second; over
//! all pixels that both have, and all projections,
//!
//! ```text
//! likeness(s) = 2 sum a b / (sum a^2 + sum b^2)
//! ```
//!
//! is 1 where both are the same, and less where each has its own noise. A parabola gives the maximum between pixels.
//! Resampled projections (a bootstrap) say how far it may be off, and whether another place is as likely.

use crate::recipe::Join;
use host_fft::{Complex, Real};

/// Standard deviation of the Gaussian whose derivative is taken, in pixels.
const SIGMA: f64 = 1.5;
/// Number of pixels on either side that the derivative takes.
pub(super) const REACH: usize = 5;
/// Largest number of lines along the shift that are compared; neighbouring ones are averaged, so that a few bins across do not
/// matter.
const LINES: usize = 128;
/// Smallest and largest transmission whose logarithm is taken.
const TRANSMISSIONS: [f32; 2] = [1e-4, 1e4];
/// Distance of values that tell the noise of pixels, so that these are few.
const NOISE_STEP: usize = 7;
/// Number of bootstrap samples.
const SAMPLES: usize = 200;
/// Share of the samples whose maximum must be near the one that is found.
const AGREE: f64 = 0.99;
/// Smallest likeness, relative to what the noise of pixels leaves.
const ALIKE: f64 = 0.7;
/// Smallest share of the changes that noise must leave: less cannot be told from none.
const LEAST_LEFT: f64 = 0.05;
/// Distance from the maximum, in pixels, from which a shift is another place.
const APART: i64 = 10;
/// Difference, relative to the maximum, up to which the likeness at another place is as good.
const CLOSE: f64 = 0.05;
/// Largest standard deviation of a shift, in pixels.
const CERTAIN: f64 = 0.5;
/// Error of the parabola, which is not quite the shape of the likeness.
const OF_PARABOLA: f64 = 0.02;
/// Error of the maximum times the number of pixels that are compared: at every shift, others are at the ends.
const OF_ENDS: f64 = 0.5;
/// Largest number of places that a message lists.
const NAMED: usize = 3;

/// Changes of an image along lines.
pub(super) struct ChangeLines {
    /// Number of pixels of a line.
    length: usize,
    /// Values `[line][pixel]`; 0 where the derivative would reach beyond the image.
    values: Vec<f64>,
    /// ShiftSums of squares of all lines, over the pixels before each.
    energies: Vec<f64>,
    /// Variance of a value by noise that differs from pixel to pixel.
    noise: f64,
}

impl ChangeLines {
    /// Takes the changes of transmissions `[row][bin]` along rows that follow each other, or along bins.
    pub fn of(image: &[f32], bins: usize, along: Join) -> ChangeLines {
        let logarithms: Vec<f32> =
            image.iter().map(|value| -value.clamp(TRANSMISSIONS[0], TRANSMISSIONS[1]).ln()).collect();
        let rows = image.len() / bins.max(1);
        let (length, across, [step, step_across]) = match along {
            Join::Rows => (rows, bins, [bins, 1]),
            Join::Bins => (bins, rows, [1, bins]),
        };
        let block = across.div_ceil(LINES).max(1);
        let lines = across / block;
        let mut means = vec![0f64; lines * length];
        for line in 0..lines {
            for (pixel, mean) in means[line * length..][..length].iter_mut().enumerate() {
                let first = line * block * step_across + pixel * step;
                let sum: f64 = (0..block).map(|i| f64::from(logarithms[first + i * step_across])).sum();
                *mean = sum / block as f64;
            }
        }
        let weights = derivative();
        let mut values = vec![0f64; means.len()];
        for (mean, value) in means.chunks(length.max(1)).zip(values.chunks_mut(length.max(1))) {
            for (around, value) in mean.windows(weights.len()).zip(value.iter_mut().skip(REACH)) {
                *value = weights.iter().zip(around).map(|(weight, mean)| weight * mean).sum();
            }
        }
        let mut energies = vec![0f64; length + 1];
        for value in values.chunks(length.max(1)) {
            energies[1..].iter_mut().zip(value).for_each(|(energy, value)| *energy += value * value);
        }
        (0..length).for_each(|pixel| energies[pixel + 1] += energies[pixel]);
        let noise = noise_of(&logarithms, length * across, step_across) / block as f64;
        ChangeLines { length, values, energies, noise }
    }

    fn lines(&self) -> usize {
        self.values.len() / self.length.max(1)
    }

    /// Returns the sum of squares of some pixels of all lines.
    fn energy(&self, pixels: std::ops::Range<i64>) -> f64 {
        self.energies[pixels.end as usize] - self.energies[pixels.start as usize]
    }
}

/// Returns the weights of a derivative, whose squares sum to 1.
fn derivative() -> [f64; 2 * REACH + 1] {
    let weights = std::array::from_fn(|i| {
        let x = i as f64 - REACH as f64;
        x * (-x * x / (2.0 * SIGMA * SIGMA)).exp()
    });
    let norm = weights.iter().map(|weight: &f64| weight * weight).sum::<f64>().sqrt();
    weights.map(|weight| weight / norm)
}

/// Returns the variance of pixels that their neighbours, `step` values apart, do not explain.
fn noise_of(values: &[f32], count: usize, step: usize) -> f64 {
    let differences = (step..count.saturating_sub(step)).step_by(NOISE_STEP);
    let mut differences: Vec<f32> =
        differences.map(|i| (values[i - step] - 2.0 * values[i] + values[i + step]).abs()).collect();
    if differences.is_empty() {
        return 0.0;
    }
    let middle = differences.len() / 2;
    // of a normal distribution, half of the values are within 0.6745 standard deviations
    let deviation = f64::from(*differences.select_nth_unstable_by(middle, f32::total_cmp).1) / 0.6745;
    deviation * deviation / 6.0
}

/// The sums of one projection for every shift.
pub(super) struct ShiftSums {
    /// ShiftSums of products, doubled.
    products: Vec<f64>,
    /// ShiftSums of squares of both.
    energies: Vec<f64>,
    /// Expected sum of squares of noise.
    noise: Vec<f64>,
    /// Number of pixels of a line that are compared.
    pixels: Vec<f64>,
}

impl ShiftSums {
    /// Compares two images with the same lines at every shift.
    pub fn of(first: &ChangeLines, second: &ChangeLines, shifts: &[i64]) -> ShiftSums {
        let length = (first.length + second.length).next_power_of_two();
        let (forward, inverse) = (<f64 as Real>::real_forward(length), <f64 as Real>::real_inverse(length));
        let mut scratch = forward.make_scratch_vec();
        let spectrum = |values: &[f64], scratch: &mut Vec<Complex<f64>>| {
            let mut padded = vec![0f64; length];
            padded[..values.len()].copy_from_slice(values);
            let mut spectrum = forward.make_output_vec();
            // the lengths are those of the plan
            let _ = forward.process_with_scratch(&mut padded, &mut spectrum, scratch);
            spectrum
        };
        let mut all = forward.make_output_vec();
        for (a, b) in first.values.chunks(first.length.max(1)).zip(second.values.chunks(second.length.max(1))) {
            let (a, b) = (spectrum(a, &mut scratch), spectrum(b, &mut scratch));
            all.iter_mut().zip(a.iter().zip(&b)).for_each(|(all, (a, b))| *all += a * b.conj());
        }
        // the spectrum of real values, but for rounding
        let last = all.len() - 1;
        [0, last].into_iter().for_each(|at| all[at].im = 0.0);
        let mut products = vec![0f64; length];
        let _ = inverse.process(&mut all, &mut products);
        let lines = first.lines().min(second.lines()) as f64;
        let mut sums = ShiftSums { products: Vec::new(), energies: Vec::new(), noise: Vec::new(), pixels: Vec::new() };
        for &shift in shifts {
            let seen = seen(first.length, second.length, shift);
            let of_second = seen.start - shift..seen.end - shift;
            sums.products.push(2.0 * products[shift.rem_euclid(length as i64) as usize] / length as f64);
            sums.energies.push(first.energy(seen.clone()) + second.energy(of_second));
            let pixels = (seen.end - seen.start) as f64;
            sums.noise.push((first.noise + second.noise) * lines * pixels);
            sums.pixels.push(pixels);
        }
        sums
    }
}

/// Returns the pixels of a line of `first` that are compared with some of `second` at a shift.
fn seen(first: usize, second: usize, shift: i64) -> std::ops::Range<i64> {
    let (first, second, reach) = (first as i64, second as i64, REACH as i64);
    let start = reach.max(shift + reach).min(first);
    start..(first - reach).min(second + shift - reach).max(start)
}

/// The shift at which two parts agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FoundShift {
    pub shift: f64,
    /// Standard deviation.
    pub uncertainty: f64,
}

/// Why no shift is found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NoShift {
    /// The parts agree nowhere; their largest likeness, relative to what noise leaves.
    Unlike(f64),
    /// Noise leaves nothing to compare.
    Faint,
    /// Several shifts are as likely.
    Ambiguous(Vec<i64>),
    Uncertain(FoundShift),
}

/// Finds the shift at which all projections agree, among those that their sums are of, ascending.
pub(super) fn find(shifts: &[i64], projections: &[ShiftSums]) -> Result<FoundShift, NoShift> {
    let likeness = Likeness { shifts, projections };
    let curve = likeness.curve(&vec![1.0; projections.len()]);
    let best = likeness.highest_inside(&curve).or(highest(&curve)).ok_or(NoShift::Faint)?;
    let left = 1.0 - likeness.noise(best);
    if left < LEAST_LEFT {
        return Err(NoShift::Faint);
    }
    let relative = curve[best] / left;
    let vertex = likeness.vertex(&curve, best).filter(|_| relative >= ALIKE).ok_or(NoShift::Unlike(relative))?;
    let (mut near, mut others) = (Vec::new(), vec![0usize; shifts.len()]);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..SAMPLES {
        let mut times = vec![0.0; projections.len()];
        (0..times.len()).for_each(|_| times[random.below(projections.len())] += 1.0);
        let curve = likeness.curve(&times);
        let Some(highest) = highest(&curve) else { continue };
        match likeness.vertex(&curve, highest) {
            Some(vertex) if (shifts[highest] - shifts[best]).abs() <= APART => near.push(vertex),
            _ => others[highest] += 1,
        }
    }
    let mut alike: Vec<usize> = (0..shifts.len())
        .filter(|&i| (shifts[i] - shifts[best]).abs() > APART && likeness.is_maximum(&curve, i))
        .filter(|&i| curve[i] >= (1.0 - CLOSE) * curve[best])
        .collect();
    if (near.len() as f64) < AGREE * SAMPLES as f64 {
        alike.extend((0..shifts.len()).filter(|&i| others[i] > 0 && (shifts[i] - shifts[best]).abs() > APART));
    }
    if !alike.is_empty() {
        alike.sort_by(|&a, &b| curve[b].total_cmp(&curve[a]));
        alike.dedup();
        let places = [best].into_iter().chain(alike).take(NAMED).map(|i| shifts[i]);
        return Err(NoShift::Ambiguous(places.collect()));
    }
    let spread = (near.iter().map(|at| (at - vertex).powi(2)).sum::<f64>() / near.len().max(1) as f64).sqrt();
    let pixels = projections.first().map_or(1.0, |sums| sums.pixels[best].max(1.0));
    let uncertainty = spread.hypot(OF_PARABOLA).hypot(OF_ENDS / pixels);
    // digits that are printed
    let found = FoundShift { shift: (100.0 * vertex).round() / 100.0, uncertainty };
    if found.uncertainty <= CERTAIN { Ok(found) } else { Err(NoShift::Uncertain(found)) }
}

/// Likeness of two parts at every shift.
struct Likeness<'a> {
    shifts: &'a [i64],
    projections: &'a [ShiftSums],
}

impl Likeness<'_> {
    /// Returns the likeness at every shift, with every projection so many times.
    fn curve(&self, times: &[f64]) -> Vec<f64> {
        let mut sums = vec![[0f64; 2]; self.shifts.len()];
        for (ShiftSums { products, energies, .. }, times) in
            self.projections.iter().zip(times).filter(|(_, t)| **t > 0.0)
        {
            for ([product, energy], (more, of_both)) in sums.iter_mut().zip(products.iter().zip(energies)) {
                *product += times * more;
                *energy += times * of_both;
            }
        }
        // without rounding of what does not change
        sums.into_iter().map(|[product, energy]| if energy > 1e-12 { product / energy } else { 0.0 }).collect()
    }

    /// Returns the share of noise at a shift.
    fn noise(&self, at: usize) -> f64 {
        let sum = |of: fn(&ShiftSums) -> &Vec<f64>| self.projections.iter().map(|sums| of(sums)[at]).sum::<f64>();
        let energy = sum(|sums| &sums.energies);
        if energy > 0.0 { (sum(|sums| &sums.noise) / energy).min(1.0) } else { 1.0 }
    }

    /// Returns the highest maximum between two other shifts, if there is one above 0: one at an end may go on beyond it.
    fn highest_inside(&self, curve: &[f64]) -> Option<usize> {
        let inside = (0..curve.len())
            .filter(|&i| curve[i] > 0.0 && self.is_maximum(curve, i) && self.vertex(curve, i).is_some());
        inside.reduce(|best, i| if curve[i] > curve[best] { i } else { best })
    }

    /// Returns the values at the shifts before and after one, if there are any.
    fn beside(&self, curve: &[f64], at: usize) -> [Option<f64>; 2] {
        let [before, after] = [at.wrapping_sub(1), at + 1];
        let value = |other: usize| {
            let shift = self.shifts.get(other)?;
            ((shift - self.shifts[at]).abs() == 1).then(|| curve[other])
        };
        [value(before), value(after)]
    }

    /// Reports whether neither neighbour of a shift is higher.
    fn is_maximum(&self, curve: &[f64], at: usize) -> bool {
        self.beside(curve, at).into_iter().flatten().all(|value| value <= curve[at])
    }

    /// Returns the position of the maximum near a shift that is higher than both of its neighbours.
    fn vertex(&self, curve: &[f64], at: usize) -> Option<f64> {
        let [Some(before), Some(after)] = self.beside(curve, at) else { return None };
        let bend = before - 2.0 * curve[at] + after;
        (bend < 0.0).then(|| self.shifts[at] as f64 + 0.5 * (before - after) / bend)
    }
}

/// Returns the place of the highest value above 0; the first of several.
fn highest(curve: &[f64]) -> Option<usize> {
    let higher = |best: usize, i: usize| if curve[i] > curve[best] { i } else { best };
    (0..curve.len()).reduce(higher).filter(|&best| curve[best] > 0.0)
}

/// Numbers that are the same in every run (xorshift64*, S. Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize) % count.max(1)
    }
}
