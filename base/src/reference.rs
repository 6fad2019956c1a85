//! Reference for kernels: known noise, and its back projection in `f64` at some pixels.

use crate::geometry::{Geometry, Roi, cos_sin_degrees, slice_centre};
use crate::spectrum::{Padding, padded_length};
use host_fft::{Complex, Real};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::f64::consts::TAU;

/// The interpolation of the value at a position on the detector by a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Linear interpolation between two bins.
    Linear,
    /// The nearest of this many values per bin, which are interpolated linearly between bins.
    Nearest(u32),
    /// The trigonometric polynomial through the values of the padded row.
    Exact,
}

/// The expected value of a pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Expected {
    value: f64,
    /// Difference that is allowed because positions near the midpoint between two values may be rounded either way.
    slack: f64,
}

/// Number of pixels that are compared; the cost of a check is this number times projections times slices.
const SAMPLES: usize = 256;

/// Largest product of pixels, projections, frequencies and slices that a check may cost.
const MOST_WAVES: usize = 1 << 27;
/// Least number of pixels that are compared, whatever the cost.
const LEAST_SAMPLES: usize = 24;

/// Noise on the detector, and its back projection.
pub struct Reference {
    geometry: Geometry,
    slices: usize,
    sinograms: Vec<f32>,
    /// Pixels of the region that are compared.
    pixels: Vec<[usize; 2]>,
    /// Expected values `[pixel][slice]` for every interpolation rule and half width of the zone around ties that was
    /// requested.
    known: Vec<(Reads, f64, Vec<Expected>)>,
    /// Continuation of rows beyond the detector, where that matters.
    padding: Padding,
}

impl Reference {
    /// Makes noise as the sinograms of `slices` different slices.
    pub fn new(geometry: Geometry, slices: usize) -> Self {
        let each = geometry.projections() * geometry.bins;
        let mut sinograms = vec![0f32; slices * each];
        sinograms
            .par_chunks_mut(geometry.bins)
            .enumerate()
            .for_each(|(row, values)| values.iter_mut().zip(row * geometry.bins..).for_each(|(v, i)| *v = noise(i)));
        let Roi { width, height, .. } = geometry.roi;
        let (right, below) = (width - 1, height - 1);
        let mut pixels = BTreeSet::from([[0, 0], [right, 0], [0, below], [right, below], [width / 2, height / 2]]);
        let place = |i: usize, side: usize| (scramble(!(i as u64)) % side as u64) as usize;
        pixels.extend((0..SAMPLES - pixels.len()).map(|i| [place(2 * i, width), place(2 * i + 1, height)]));
        Reference {
            geometry,
            slices,
            sinograms,
            pixels: pixels.into_iter().collect(),
            known: Vec::new(),
            padding: Padding::Edge,
        }
    }

    /// Sets how rows are continued, which matters where they are read between bins exactly.
    pub fn padded(self, padding: Padding) -> Self {
        Reference { padding, ..self }
    }

    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Number of slices.
    pub fn slices(&self) -> usize {
        self.slices
    }

    /// Returns the sinograms `[slice][projection][bin]`; no filter is applied to them.
    pub fn sinograms(&self) -> &[f32] {
        &self.sinograms
    }

    /// Returns the relative error of the region's `[y][x]` values in a slice: root mean square of the difference over
    /// that of the reference. It is infinite for values that are not finite.
    ///
    /// `tie` is the half width of the zone around a tie, in distances between two values.
    pub fn error(&mut self, slice: usize, got: &[f32], reads: Reads, tie: f64) -> f64 {
        let width = self.geometry.roi.width;
        let total = self.slices;
        let pixels = self.compared(reads);
        let expected = self.expected(reads, tie);
        relative_rms(pixels.iter().zip(expected.chunks(total)).map(|(&[x, y], e)| (got[y * width + x], e[slice])))
    }

    /// Returns the pixels of the region that are compared.
    ///
    /// Where each is a sum over all frequencies of all projections, there are fewer; and as errors are largest near the
    /// corners, they are spread evenly, so that their mean square is that of the slice.
    fn compared(&self, reads: Reads) -> Vec<[usize; 2]> {
        if reads != Reads::Exact {
            return self.pixels.clone();
        }
        // of the sequence R2: multiples of powers of the plastic number, whose fractions are far from each other
        const STEPS: [f64; 2] = [0.754_877_666_246_692_8, 0.569_840_290_998_053_2];
        let Roi { width, height, .. } = self.geometry.roi;
        let each = self.geometry.projections() * padded_length(self.geometry.bins) * self.slices;
        let count = (MOST_WAVES / each).clamp(LEAST_SAMPLES, SAMPLES);
        let place = |i: usize, step: f64, side: usize| ((0.5 + step * i as f64).fract() * side as f64) as usize;
        (0..count).map(|i| [place(i, STEPS[0], width), place(i, STEPS[1], height)]).collect()
    }

    fn expected(&mut self, reads: Reads, tie: f64) -> &[Expected] {
        let at = match self.known.iter().position(|k| k.0 == reads && k.1 == tie) {
            Some(at) => at,
            None => {
                let Roi { x: left, y: top, .. } = self.geometry.roi;
                let pixels: Vec<[usize; 2]> = self.compared(reads).iter().map(|[x, y]| [left + x, top + y]).collect();
                let values = match reads {
                    Reads::Exact => exact(&self.geometry, &self.sinograms, &pixels, self.padding),
                    _ => back_project(&self.geometry, &self.sinograms, &pixels, reads, tie),
                };
                self.known.push((reads, tie, values));
                self.known.len() - 1
            }
        };
        &self.known[at].2
    }
}

/// Returns the back projection in `f64` of all sinograms at some pixels: `[pixel][slice]`.
fn back_project(
    geometry: &Geometry,
    sinograms: &[f32],
    pixels: &[[usize; 2]],
    reads: Reads,
    tie: f64,
) -> Vec<Expected> {
    let (bins, projections) = (geometry.bins, geometry.projections());
    let slices = sinograms.len() / (bins * projections);
    let centre = slice_centre(geometry.size);
    let rotations: Vec<(f64, f64)> = geometry.angles.iter().map(|&angle| cos_sin_degrees(angle)).collect();
    let mut expected = vec![Expected::default(); pixels.len() * slices];
    expected.par_chunks_mut(slices.max(1)).zip(pixels).for_each(|(sums, &[x, y])| {
        for (p, (cos, sin)) in rotations.iter().enumerate() {
            let h = geometry.axis[p] + (x as f64 - centre) * cos - (y as f64 - centre) * sin;
            for (sum, sinogram) in sums.iter_mut().zip(sinograms.chunks(bins * projections)) {
                let read = read(&sinogram[p * bins..(p + 1) * bins], h, reads, tie);
                sum.value += geometry.weights[p] * read.value;
                sum.slack += geometry.weights[p] * read.slack;
            }
        }
    });
    expected
}

/// Returns the back projection of rows as trigonometric polynomials: those through the values of the padded row, with
/// the highest frequency as a cosine.
fn exact(geometry: &Geometry, sinograms: &[f32], pixels: &[[usize; 2]], padding: Padding) -> Vec<Expected> {
    let (bins, projections) = (geometry.bins, geometry.projections());
    let slices = sinograms.len() / (bins * projections);
    let length = padded_length(bins);
    let transform = f64::forward(length);
    let zeros = || vec![0f64; pixels.len() * slices];
    let add = |mut sums: Vec<f64>, p: usize| {
        let spectra: Vec<Vec<Complex<f64>>> = (0..slices)
            .map(|slice| {
                let from = (slice * projections + p) * bins;
                let mut row = padded_row(&sinograms[from..from + bins], length, padding);
                transform.process(&mut row);
                row.truncate(length / 2 + 1);
                for (k, value) in row.iter_mut().enumerate() {
                    let both = if k == 0 || 2 * k == length { 1.0 } else { 2.0 };
                    *value *= both * geometry.weights[p] / length as f64;
                }
                row
            })
            .collect();
        for (sums, &[x, y]) in sums.chunks_mut(slices.max(1)).zip(pixels) {
            let h = geometry.position(p, x as f64, y as f64);
            let wave = |k: usize| Complex::cis(TAU * ((k as f64 * h) / length as f64).fract());
            let waves: Vec<Complex<f64>> = waves(length / 2 + 1, wave);
            for (sum, spectrum) in sums.iter_mut().zip(&spectra) {
                *sum += spectrum.iter().zip(&waves).map(|(a, b)| a.re * b.re - a.im * b.im).sum::<f64>();
            }
        }
        sums
    };
    let join = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let sums = (0..projections).into_par_iter().fold(zeros, add).reduce(zeros, join);
    sums.into_iter().map(|value| Expected { value, slack: 0.0 }).collect()
}

/// Returns `wave(k)` for `count` values of k, most of them as the product of the one before with the first.
fn waves(count: usize, wave: impl Fn(usize) -> Complex<f64>) -> Vec<Complex<f64>> {
    let step = wave(1);
    let mut last = Complex::new(1.0, 0.0);
    let next = |k: usize| {
        last = if k % 64 == 0 { wave(k) } else { last * step };
        last
    };
    (0..count).map(next).collect()
}

/// Returns a padded row: what continues it to the right is in the first half of the rest, what continues it to the left
/// in the other.
fn padded_row(row: &[f32], length: usize, padding: Padding) -> Vec<Complex<f64>> {
    let bins = row.len() as isize;
    let right = (length as isize - bins + 1) / 2;
    let value = |at: isize| {
        let at = if at < bins + right { at } else { at - length as isize };
        let inside = match padding {
            Padding::Zero if !(0..bins).contains(&at) => return 0.0,
            // mirrored at one end after the other, so that it repeats after twice its length
            Padding::Mirror => match at.rem_euclid(2 * bins) {
                place if place < bins => place,
                place => 2 * bins - 1 - place,
            },
            _ => at,
        };
        f64::from(row[inside.clamp(0, bins - 1) as usize])
    };
    (0..length as isize).map(|at| Complex::new(value(at), 0.0)).collect()
}

/// Returns the value of a row at position `h`.
fn read(row: &[f32], h: f64, reads: Reads, tie: f64) -> Expected {
    let bin = |i: f64| if i >= 0.0 && i < row.len() as f64 { f64::from(row[i as usize]) } else { 0.0 };
    let between = |h: f64| {
        let below = h.floor();
        let weight = h - below;
        (1.0 - weight) * bin(below) + weight * bin(below + 1.0)
    };
    match reads {
        Reads::Linear | Reads::Exact => Expected { value: between(h), slack: 0.0 },
        Reads::Nearest(values) => {
            let values = f64::from(values);
            let nearest = (h * values + 0.5).floor();
            // 0 and 1 are the midpoints to the neighbours
            let place = h * values + 0.5 - nearest;
            let value = between(nearest / values);
            let other = match place {
                place if place < tie => Some(nearest - 1.0),
                place if place > 1.0 - tie => Some(nearest + 1.0),
                _ => None,
            };
            Expected { value, slack: other.map_or(0.0, |other| (value - between(other / values)).abs()) }
        }
    }
}

/// Returns the root mean square of the differences beyond the slack, over that of the reference.
fn relative_rms(pairs: impl Iterator<Item = (f32, Expected)>) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    for (got, want) in pairs {
        if !got.is_finite() {
            return f64::INFINITY;
        }
        error += ((f64::from(got) - want.value).abs() - want.slack).max(0.0).powi(2);
        norm += want.value.powi(2);
    }
    (error / norm).sqrt()
}

/// Returns value `index` of a fixed noise in [-1, 1), so that every bin matters.
fn noise(index: usize) -> f32 {
    (scramble(index as u64) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// Returns 64 pseudo-random bits for an index (splitmix64).
fn scramble(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIE: f64 = 1e-4;

    fn value(h: f64, reads: Reads) -> f64 {
        read(&[1.0, 3.0, -1.0], h, reads, TIE).value
    }

    #[test]
    fn a_row_is_read_by_every_rule() {
        for (h, linear, nearest, quarters) in [
            (0.0, 1.0, 1.0, 1.0),
            (0.3, 1.6, 1.0, 1.5),
            (0.9, 2.8, 3.0, 3.0),
            (1.6, 0.6, -1.0, 1.0),
            (2.25, -0.75, -1.0, -0.75),
            (-0.25, 0.75, 1.0, 0.75),
            (-0.9, 0.1, 0.0, 0.0),
            (3.0, 0.0, 0.0, 0.0),
            (-7.0, 0.0, 0.0, 0.0),
        ] {
            assert!((value(h, Reads::Linear) - linear).abs() < 1e-12, "{h}");
            assert_eq!(value(h, Reads::Nearest(1)), nearest, "{h}");
            assert_eq!(value(h, Reads::Nearest(4)), quarters, "{h}");
        }
    }

    #[test]
    fn ties_may_go_either_way() {
        let slack = |h: f64, reads| read(&[1.0, 3.0, -1.0], h, reads, 1e-3).slack;
        assert_eq!(slack(0.5, Reads::Nearest(1)), 2.0);
        assert_eq!(slack(0.4995, Reads::Nearest(1)), 2.0);
        assert_eq!(slack(0.498, Reads::Nearest(1)), 0.0);
        assert_eq!(slack(1.125, Reads::Nearest(4)), 1.0);
        assert_eq!(slack(0.5, Reads::Linear), 0.0);
    }

    #[test]
    fn one_lit_bin_is_found_by_the_rays_through_it() {
        let geometry = Geometry::half_turn(5, 2, 5);
        // projections at 0 and 90 degrees: columns, and rows from the bottom
        let mut sinogram = vec![0f32; 10];
        sinogram[1] = 1.0;
        sinogram[5 + 3] = 10.0;
        let pixels: Vec<[usize; 2]> = (0..25).map(|i| [i % 5, i / 5]).collect();
        let got = back_project(&geometry, &sinogram, &pixels, Reads::Linear, TIE);
        let half = std::f64::consts::FRAC_PI_2;
        for (&[x, y], got) in pixels.iter().zip(got) {
            let want = half * (f64::from(u8::from(x == 1)) + 10.0 * f64::from(u8::from(y == 1)));
            assert!((got.value - want).abs() < 1e-12, "{x} {y}: {got:?}");
        }
    }

    #[test]
    fn errors_are_those_of_a_slice() {
        let geometry = Geometry::half_turn(9, 7, 8);
        let mut reference = Reference::new(geometry.clone(), 2);
        let every: Vec<[usize; 2]> = (0..64).map(|i| [i % 8, i / 8]).collect();
        let right = back_project(&geometry, reference.sinograms(), &every, Reads::Linear, TIE);
        let of = |s: usize| right.iter().skip(s).step_by(2).map(|e| e.value as f32).collect::<Vec<f32>>();
        let mut error = |slice: usize, got: &[f32]| reference.error(slice, got, Reads::Linear, TIE);
        let (first, mut second) = (of(0), of(1));
        assert!(error(0, &first) < 1e-6 && error(1, &second) < 1e-6);
        // the slices differ
        assert!(error(0, &second) > 0.5);
        second.iter_mut().for_each(|v| *v *= 1.01);
        let larger = error(1, &second);
        assert!((larger - 0.01).abs() < 1e-4, "{larger}");
        second[0] = f32::NAN;
        assert_eq!(error(1, &second), f64::INFINITY);
    }

    #[test]
    fn short_rows_are_mirrored_again_and_again() {
        // the ends of the ranges of lengths that more than two thirds of a padded row are beyond
        for bins in
            [1, 2, 3, 7, 20, 21, 22, 31, 32, 33, 42, 43, 64, 65, 85, 86, 129, 170, 171, 1024, 1025, 1280, 1365, 1366]
        {
            let length = padded_length(bins);
            let row: Vec<f32> = (0..bins).map(|bin| bin as f32).collect();
            // one reflection after the other
            let reflected = |mut at: isize| -> f64 {
                let bins = bins as isize;
                while !(0..bins).contains(&at) {
                    at = if at < 0 { -1 - at } else { 2 * bins - 1 - at };
                }
                at as f64
            };
            let right = bins + (length - bins).div_ceil(2);
            let place = |x: usize| if x < right { x as isize } else { x as isize - length as isize };
            let want: Vec<f64> = (0..length).map(|x| reflected(place(x))).collect();
            let got: Vec<f64> = padded_row(&row, length, Padding::Mirror).iter().map(|value| value.re).collect();
            assert_eq!(got, want, "{bins}");
        }
    }

    #[test]
    fn a_region_is_compared_with_its_pixels() {
        let full = Geometry::half_turn(9, 7, 8);
        let roi = Roi { x: 3, y: 1, width: 4, height: 6 };
        for reads in [Reads::Linear, Reads::Exact] {
            let mut reference = Reference::new(Geometry { roi, ..full.clone() }, 1);
            let places: Vec<[usize; 2]> = (0..24).map(|i| [3 + i % 4, 1 + i / 4]).collect();
            let right = match reads {
                Reads::Exact => exact(&full, reference.sinograms(), &places, Padding::Edge),
                _ => back_project(&full, reference.sinograms(), &places, reads, TIE),
            };
            let mut got: Vec<f32> = right.iter().map(|e| e.value as f32).collect();
            assert!(reference.error(0, &got, reads, TIE) < 1e-6);
            got.swap(0, 1);
            assert!(reference.error(0, &got, reads, TIE) > 0.01);
        }
    }
}
