//! The `f64` reference: filtered back projection written down once more from the conventions, slowly and plainly.
//! It shares no code with the program. It is a crate of its own, as it is slow enough already without the compiler's help.

use std::f64::consts::PI;

/// A scan as the reference sees it.
#[derive(Clone)]
pub struct Scan {
    pub bins: usize,
    pub size: usize,
    /// Degrees.
    pub angles: Vec<f64>,
    /// Axis of every projection, in bins.
    pub axis: Vec<f64>,
    /// Weight of every projection.
    pub weights: Vec<f64>,
}

impl Scan {
    pub fn even(bins: usize, projections: usize, size: usize) -> Scan {
        Scan {
            bins,
            size,
            angles: (0..projections).map(|p| 180.0 * p as f64 / projections as f64).collect(),
            axis: vec![(bins as f64 - 1.0) / 2.0; projections],
            weights: vec![PI / projections as f64; projections],
        }
    }

    pub fn projections(&self) -> usize {
        self.angles.len()
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pad {
    Zero,
    Edge,
    Mirror,
}

/// How a value between two bins is found. Positions nearer than `tie` to the middle between two places may go to either.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Read {
    Linear,
    Nearest {
        tie: f64,
    },
    /// Linear at so many places a bin, then the nearest of them.
    Oversampled {
        places: u32,
        tie: f64,
    },
    /// The trigonometric polynomial through the padded row.
    Exact,
}

/// How long a row is padded: doubled from 64 on until it holds the row twice (docs/geometry.md).
pub fn padded(bins: usize) -> usize {
    let mut length = 64;
    while length < 2 * bins {
        length *= 2;
    }
    length
}

/// A factor on the ramp at a multiple of the Nyquist frequency.
pub type Window<'a> = &'a dyn Fn(f64) -> f64;

/// Rows filtered by direct circular convolution in `f64`, on `length` points. `window(u)` is the factor on the ramp
/// at `u` times the Nyquist frequency; `None` does not filter at all.
pub fn filter(sinogram: &[f32], bins: usize, length: usize, pad: Pad, window: Option<Window>) -> Vec<f64> {
    match window {
        Some(window) => filter_places(sinogram, bins, length, pad, window, bins),
        None => sinogram.iter().map(|v| f64::from(*v)).collect(),
    }
}

/// The first `places` values of the padded rows, filtered.
fn filter_places(sinogram: &[f32], bins: usize, length: usize, pad: Pad, window: Window, places: usize) -> Vec<f64> {
    let distance = |n: usize| n.min(length - n);
    let ramp = |n: usize| match distance(n) {
        0 => 0.25,
        k if k % 2 == 1 => -1.0 / (PI * k as f64).powi(2),
        _ => 0.0,
    };
    let kernel: Vec<f64> = if (0..=length / 2).all(|k| window(k as f64 / (length as f64 / 2.0)) == 1.0) {
        // nothing is taken away from the ramp
        (0..length).map(ramp).collect()
    } else {
        // the windowed kernel: two plain cosine transforms
        let cosines: Vec<f64> = (0..length).map(|n| (2.0 * PI * n as f64 / length as f64).cos()).collect();
        let turn = |n: usize, k: usize| cosines[(n * k) % length];
        let spectrum: Vec<f64> = (0..length)
            .map(|k| {
                let sum: f64 = (0..length).map(|n| ramp(n) * turn(n, k)).sum();
                sum * window(distance(k) as f64 / (length as f64 / 2.0))
            })
            .collect();
        (0..length).map(|n| (0..length).map(|k| spectrum[k] * turn(n, k)).sum::<f64>() / length as f64).collect()
    };
    let right = (length - bins).div_ceil(2);
    let mut filtered = Vec::with_capacity(sinogram.len() / bins * places);
    for row in sinogram.chunks(bins) {
        let padded: Vec<f64> = (0..length)
            .map(|x| {
                let i = if x < bins + right { x as i64 } else { x as i64 - length as i64 };
                let inside = (0..bins as i64).contains(&i);
                let mut at = i;
                // rows that are padded to three times their bins and more come back from the other end, too
                while pad == Pad::Mirror && !(0..bins as i64).contains(&at) {
                    at = if at < 0 { -1 - at } else { 2 * bins as i64 - 1 - at };
                }
                match pad {
                    Pad::Zero if !inside => 0.0,
                    _ => f64::from(row[at.clamp(0, bins as i64 - 1) as usize]),
                }
            })
            .collect();
        // the kernel is even: its value at b - j is that at j - b
        for b in 0..places {
            let (before, after) = padded.split_at(b);
            let sum =
                |values: &[f64], first: usize| -> f64 { values.iter().zip(&kernel[first..]).map(|(v, k)| v * k).sum() };
            filtered.push(sum(after, 0) + sum(before, length - b));
        }
    }
    filtered
}

/// A slice of a sinogram as it is defined: values, and how much each may be off because of ties.
pub fn slice_of(sinogram: &[f32], scan: &Scan, pad: Pad, window: Window, read: Read) -> (Vec<f64>, Vec<f64>) {
    let (bins, length) = (scan.bins, padded(scan.bins));
    if read == Read::Exact {
        let pixels: Vec<[usize; 2]> = (0..scan.size * scan.size).map(|i| [i % scan.size, i / scan.size]).collect();
        return (exact_pixels(sinogram, scan, pad, window, &pixels), vec![0.0; pixels.len()]);
    }
    back_project(&filter(sinogram, bins, length, pad, Some(window)), scan, read)
}

/// Pixels `[x, y]` of the band-limited slice: the sum over projections of the trigonometric polynomial through the filtered
/// padded row, its highest frequency as a cosine (docs/geometry.md).
pub fn exact_pixels(sinogram: &[f32], scan: &Scan, pad: Pad, window: Window, pixels: &[[usize; 2]]) -> Vec<f64> {
    let length = padded(scan.bins);
    let rows = filter_places(sinogram, scan.bins, length, pad, window, length);
    let turn = 2.0 * PI / length as f64;
    let waves: Vec<(f64, f64)> = (0..length).map(|n| (turn * n as f64).sin_cos()).collect();
    let centre = (scan.size as f64 - 1.0) / 2.0;
    let mut values = vec![0.0; pixels.len()];
    for (p, row) in rows.chunks(length).enumerate() {
        // c_k cos(2 pi k h / L) + s_k sin(2 pi k h / L)
        let of_frequency = |k: usize| {
            let both = if k == 0 || 2 * k == length { 1.0 } else { 2.0 } / length as f64;
            let sums = row.iter().enumerate().fold((0.0, 0.0), |(c, s), (j, value)| {
                let (sin, cos) = waves[j * k % length];
                (c + value * cos, s + value * sin)
            });
            // at whole places the sine of the highest frequency is 0, so it is none of the row's
            (both * sums.0, if 2 * k == length { 0.0 } else { both * sums.1 })
        };
        let frequencies: Vec<(f64, f64)> = (0..=length / 2).map(of_frequency).collect();
        let (sin, cos) = scan.angles[p].to_radians().sin_cos();
        for (value, &[x, y]) in values.iter_mut().zip(pixels) {
            let h = scan.axis[p] + (x as f64 - centre) * cos - (y as f64 - centre) * sin;
            let (step_sin, step_cos) = (turn * h).sin_cos();
            let (mut sin, mut cos) = (0.0, 1.0);
            let mut sum = 0.0;
            for (c, s) in &frequencies {
                sum += c * cos + s * sin;
                (sin, cos) = (sin * step_cos + cos * step_sin, cos * step_cos - sin * step_sin);
            }
            *value += scan.weights[p] * sum;
        }
    }
    values
}

/// Back projection of filtered rows: values, and how much each may be off because of ties of nearest interpolation.
pub fn back_project(filtered: &[f64], scan: &Scan, read: Read) -> (Vec<f64>, Vec<f64>) {
    let (n, bins) = (scan.size, scan.bins as i64);
    let centre = (n as f64 - 1.0) / 2.0;
    let mut values = vec![0.0; n * n];
    let mut slack = vec![0.0; n * n];
    for p in 0..scan.projections() {
        let (sin, cos) = scan.angles[p].to_radians().sin_cos();
        let row = &filtered[p * scan.bins..(p + 1) * scan.bins];
        let at = |i: i64| if (0..bins).contains(&i) { row[i as usize] } else { 0.0 };
        for y in 0..n {
            for x in 0..n {
                let pixel = y * n + x;
                let h = scan.axis[p] + (x as f64 - centre) * cos - (y as f64 - centre) * sin;
                let between = |h: f64| {
                    let i = h.floor();
                    let w = h - i;
                    (1.0 - w) * at(i as i64) + w * at(i as i64 + 1)
                };
                // the steps of a staircase in a bin
                let (steps, tie) = match read {
                    Read::Linear => {
                        values[pixel] += scan.weights[p] * between(h);
                        continue;
                    }
                    Read::Exact => panic!("the filtered rows end with the detector"),
                    Read::Nearest { tie } => (1.0, tie),
                    Read::Oversampled { places, tie } => (f64::from(places), tie),
                };
                let value = |step: f64| between(step / steps);
                let nearest = (h * steps + 0.5).floor();
                values[pixel] += scan.weights[p] * value(nearest);
                let over = h * steps + 0.5 - nearest;
                if !(tie..=1.0 - tie).contains(&over) {
                    let other = nearest + if over < tie { -1.0 } else { 1.0 };
                    slack[pixel] += scan.weights[p] * (value(nearest) - value(other)).abs();
                }
            }
        }
    }
    (values, slack)
}

/// Root mean square of the difference beyond the slack, over that of the reference.
pub fn relative_rms(got: &[f32], want: &[f64], slack: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let mut error = 0.0;
    let mut norm = 0.0;
    for ((g, w), s) in got.iter().zip(want).zip(slack) {
        assert!(g.is_finite());
        error += ((f64::from(*g) - w).abs() - s).max(0.0).powi(2);
        norm += w * w;
    }
    (error / norm).sqrt()
}

/// Discrete Fourier transform of a line of complex values, as a sum for each frequency; with `sign` 1 it is the inverse, without
/// the division by their number.
pub fn fourier(line: &[(f64, f64)], sign: f64) -> Vec<(f64, f64)> {
    let n = line.len();
    let turns: Vec<(f64, f64)> = (0..n).map(|i| (sign * 2.0 * PI * i as f64 / n as f64).sin_cos()).collect();
    let sum = |k: usize| {
        line.iter().enumerate().fold((0.0, 0.0), |(re, im), (i, v)| {
            let (sin, cos) = turns[i * k % n];
            (re + v.0 * cos - v.1 * sin, im + v.0 * sin + v.1 * cos)
        })
    };
    (0..n).map(sum).collect()
}

/// Place of a pixel of an image that is continued by its mirror images, with the outermost pixels twice.
fn mirrored(mut place: i64, length: usize) -> usize {
    let length = length as i64;
    while !(0..length).contains(&place) {
        place = if place < 0 { -1 - place } else { 2 * length - 1 - place };
    }
    place as usize
}

/// An image with rows of `bins`, smoothed by a Gaussian in two dimensions that ends at four times its `sigma` in pixels, over the
/// image and its mirror images.
pub fn smoothed(image: &[f64], bins: usize, sigma: f64) -> Vec<f64> {
    let rows = image.len() / bins;
    let reach = (4.0 * sigma + 0.5).floor() as i64;
    let gaussian = |i: i64, j: i64| (-((i * i + j * j) as f64) / (2.0 * sigma * sigma)).exp();
    let around: Vec<(i64, i64, f64)> =
        (-reach..=reach).flat_map(|i| (-reach..=reach).map(move |j| (i, j, gaussian(i, j)))).collect();
    let weights: f64 = around.iter().map(|(_, _, weight)| weight).sum();
    let pixel = |at: usize| {
        let (row, bin) = ((at / bins) as i64, (at % bins) as i64);
        let value =
            |(i, j, weight): &(i64, i64, f64)| weight * image[mirrored(row + i, rows) * bins + mirrored(bin + j, bins)];
        around.iter().map(value).sum::<f64>() / weights
    };
    (0..image.len()).map(pixel).collect()
}

/// Median of the `size` x `size` pixels around one of an image with rows of `bins`, over the image and its mirror images.
pub fn median_around(image: &[f32], bins: usize, [x, y]: [usize; 2], size: usize) -> f32 {
    let (reach, height) = (size as i64 / 2, image.len() / bins);
    let rows = (-reach..=reach).map(|dy| mirrored(y as i64 + dy, height));
    let bin = |dx: i64| mirrored(x as i64 + dx, bins);
    let mut around: Vec<f32> =
        rows.flat_map(|row| (-reach..=reach).map(move |dx| image[row * bins + bin(dx)])).collect();
    around.sort_by(f32::total_cmp);
    around[around.len() / 2]
}

/// Noise in [-1, 1), the same on every machine: nothing hides in it, every bin counts.
pub fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}
