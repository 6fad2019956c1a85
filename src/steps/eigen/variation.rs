//! Weights of components of a beam with which a projection has the least total variation, or agrees with air.

use super::symmetric::EigenSystem;

/// Differences of line integrals below this count as squares, larger ones by their size.
const ROUNDED: f64 = 1e-3;
/// Transmissions below this are left out: their logarithm is mostly noise.
const LEAST_TRANSMISSION: f64 = 0.02;
/// Differences between neighbours of a component relative to the beam that are smaller parts of it are rounding: images are
/// in single precision.
const ROUNDING: f64 = 1e-6;
/// Images are halved until no side has more pixels: there the search begins.
const COARSEST: usize = 32;
/// Largest number of steps of the search at a resolution.
const MOST_STEPS: usize = 60;
/// Number of times a step is halved at most.
const MOST_HALVES: usize = 30;
/// A step ends the search that changes the variation by a smaller part of it.
const SETTLED: f64 = 1e-6;
/// Sums have this number of parts, which processors add at once.
const LANES: usize = 8;

/// A beam and its components, with a dark level of 0.
pub struct ComponentBeam<'a> {
    pub mean: Vec<f64>,
    pub components: &'a [Vec<f64>],
}

impl ComponentBeam<'_> {
    /// Returns the weights with which the beam, times a factor, is nearest to `counts` of air, by least squares.
    pub fn nearest_to_air(&self, counts: &[f64]) -> Vec<f64> {
        let columns: Vec<&Vec<f64>> = [&self.mean].into_iter().chain(self.components).collect();
        // columns of one size, so that none counts as without effect
        let sizes: Vec<f64> = columns.iter().map(|of| product(of, of).sqrt().max(f64::MIN_POSITIVE)).collect();
        let count = columns.len();
        let entry = |at: usize| {
            let (i, j) = (at / count, at % count);
            product(columns[i], columns[j]) / (sizes[i] * sizes[j])
        };
        let matrix = (0..count * count).map(entry).collect();
        let right: Vec<f64> = columns.iter().zip(&sizes).map(|(of, size)| product(of, counts) / size).collect();
        let found = EigenSystem::of(matrix, count).solve(&right);
        let found: Vec<f64> = found.iter().zip(&sizes).map(|(value, size)| value / size).collect();
        match found[0] > 0.0 {
            true => found[1..].iter().map(|value| value / found[0]).collect(),
            // no light
            false => vec![0.0; count - 1],
        }
    }

    /// Returns the weights with which line integrals of `counts` have the least total variation over an image of `width`
    /// pixels a row: the least sum of the sizes of differences between neighbours, along rows and columns. A factor on the beam
    /// changes no difference, so that weights which make nothing but a factor stay 0.
    pub fn least_variation(&self, counts: &[f64], width: usize) -> Vec<f64> {
        let images = [&self.mean, counts].into_iter().chain(self.components.iter().map(Vec::as_slice));
        let mut resolutions = vec![Images { width, images: images.map(<[f64]>::to_vec).collect() }];
        while let Some(halved) = resolutions.last().and_then(Images::halved) {
            resolutions.push(halved);
        }
        let start = vec![0.0; self.components.len()];
        resolutions.iter().rev().fold(start, |weights, images| LinesByWeights::of(images).search(weights))
    }
}

/// Images of one size: the mean beam, the counts of a projection, and the components.
struct Images {
    width: usize,
    images: Vec<Vec<f64>>,
}

impl Images {
    /// Returns the means of two by two pixels, or of as many as there are at an edge; `None` if the images are small.
    fn halved(&self) -> Option<Images> {
        let (width, height) = (self.width, self.images[0].len() / self.width.max(1));
        if width.max(height) <= COARSEST {
            return None;
        }
        let of = |image: &Vec<f64>| -> Vec<f64> {
            let rows: Vec<&[f64]> = image.chunks(width).collect();
            let mean = |rows: &[&[f64]], bin: usize| {
                let bins = bin..(bin + 2).min(width);
                let count = (rows.len() * bins.len()) as f64;
                rows.iter().map(|row| row[bins.clone()].iter().sum::<f64>()).sum::<f64>() / count
            };
            rows.chunks(2).flat_map(|rows| (0..width).step_by(2).map(|bin| mean(rows, bin))).collect()
        };
        Some(Images { width: width.div_ceil(2), images: self.images.iter().map(of).collect() })
    }
}

/// The line integrals of a projection as functions of the weights: `base + ln(1 + sum of weights * slopes)`.
struct LinesByWeights {
    width: usize,
    base: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    /// 1 for pixels that count; others have 0, and a base and slopes of 0.
    lit: Vec<f64>,
}

/// A row of line integrals, and how they change with the weights.
struct LineRow<'a> {
    lines: Vec<f64>,
    changes: Vec<Vec<f64>>,
    lit: &'a [f64],
}

/// The total variation with some weights; and what the weights are that make the sum of squares of differences, each divided
/// by its size now, least: the solution of a system of linear equations.
struct Variation {
    sum: f64,
    matrix: Vec<f64>,
    right: Vec<f64>,
}

impl LinesByWeights {
    fn of(Images { width, images }: &Images) -> LinesByWeights {
        let (mean, counts) = (&images[0], &images[1]);
        let is_lit = |(mean, count): (&f64, &f64)| *mean > 0.0 && *count > LEAST_TRANSMISSION * mean;
        let lit: Vec<bool> = mean.iter().zip(counts).map(is_lit).collect();
        let ratio = |of: &[f64], by: &[f64]| -> Vec<f64> {
            of.iter().zip(by).zip(&lit).map(|((of, by), lit)| if *lit { of / by } else { 0.0 }).collect()
        };
        let line = |(ratio, lit): (f64, &bool)| if *lit { ratio.ln() } else { 0.0 };
        LinesByWeights {
            width: *width,
            base: ratio(mean, counts).into_iter().zip(&lit).map(line).collect(),
            slopes: images[2..].iter().map(|component| ratio(component, mean)).collect(),
            lit: lit.iter().map(|lit| f64::from(u8::from(*lit))).collect(),
        }
    }

    /// Returns the weights with the least variation, from those of a start.
    fn search(&self, start: Vec<f64>) -> Vec<f64> {
        let mut weights = start;
        let now = self.varied(&weights).or_else(|| {
            // those of a lower resolution leave no light at some pixel
            weights.fill(0.0);
            self.varied(&weights)
        });
        let Some(mut now) = now else { return weights };
        for _ in 0..MOST_STEPS {
            let step = EigenSystem::of(now.matrix, weights.len()).solve(&now.right);
            let shorter = |halves: usize| {
                let size = 0.5f64.powi(halves as i32);
                let next: Vec<f64> = weights.iter().zip(&step).map(|(weight, step)| weight + size * step).collect();
                self.varied(&next).filter(|varied| varied.sum < now.sum).map(|varied| (next, varied))
            };
            let Some((next, varied)) = (0..MOST_HALVES).find_map(shorter) else { break };
            let settled = now.sum - varied.sum < SETTLED * now.sum;
            (weights, now) = (next, varied);
            if settled {
                break;
            }
        }
        weights
    }

    /// Returns the variation with these weights; `None` if a part of the beam is not above 0.
    fn varied(&self, weights: &[f64]) -> Option<Variation> {
        let count = weights.len();
        let mut variation = Variation { sum: 0.0, matrix: vec![0.0; count * count], right: vec![0.0; count] };
        let mut above: Option<LineRow> = None;
        for first in (0..self.base.len()).step_by(self.width) {
            let row = self.row(first, weights)?;
            variation.add(&row, 0, &row, 1);
            if let Some(above) = &above {
                variation.add(above, 0, &row, 0);
            }
            above = Some(row);
        }
        // both halves are the same
        for i in 0..count {
            (0..i).for_each(|j| variation.matrix[i * count + j] = variation.matrix[j * count + i]);
        }
        Some(variation)
    }

    /// Returns the row whose first pixel is given.
    fn row(&self, first: usize, weights: &[f64]) -> Option<LineRow<'_>> {
        let pixels = first..first + self.width;
        let mut relative = vec![1.0; self.width];
        for (weight, slopes) in weights.iter().zip(&self.slopes) {
            relative.iter_mut().zip(&slopes[pixels.clone()]).for_each(|(sum, slope)| *sum += weight * slope);
        }
        if relative.iter().any(|relative| *relative <= 0.0) {
            return None;
        }
        let lines =
            relative.iter().zip(&self.base[pixels.clone()]).map(|(relative, base)| base + relative.ln()).collect();
        relative.iter_mut().for_each(|relative| *relative = 1.0 / *relative);
        let change = |slopes: &Vec<f64>| {
            slopes[pixels.clone()].iter().zip(&relative).map(|(slope, relative)| slope * relative).collect()
        };
        Some(LineRow { lines, changes: self.slopes.iter().map(change).collect(), lit: &self.lit[pixels.clone()] })
    }
}

impl Variation {
    /// Adds the differences between two rows, or between neighbours of one: of pixels of `a` from `from` on to those of `b` from
    /// `to` on.
    fn add(&mut self, a: &LineRow, from: usize, b: &LineRow, to: usize) {
        let differences = between(&a.lines[from..], &b.lines[to..]);
        let lit = a.lit[from..].iter().zip(&b.lit[to..]);
        let mut shares: Vec<f64> = lit.map(|(a, b)| a * b).collect();
        let mut sizes: Vec<f64> = differences.iter().map(|of| (of * of + ROUNDED * ROUNDED).sqrt()).collect();
        self.sum += product(&shares, &sizes);
        shares.iter_mut().zip(&sizes).for_each(|(share, size)| *share /= size);
        let changes: Vec<Vec<f64>> =
            a.changes.iter().zip(&b.changes).map(|(a, b)| changed(&a[from..], &b[to..])).collect();
        let count = changes.len();
        let shared = &mut sizes;
        for (i, of_row) in changes.iter().enumerate() {
            shared.iter_mut().zip(of_row).zip(&shares).for_each(|((to, change), share)| *to = change * share);
            self.right[i] -= product(shared, &differences);
            for (j, other) in changes.iter().enumerate().skip(i) {
                self.matrix[i * count + j] += product(shared, other);
            }
        }
    }
}

fn between(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| b - a).collect()
}

/// Returns the differences, and 0 for those that are rounding.
fn changed(a: &[f64], b: &[f64]) -> Vec<f64> {
    let change = |(a, b): (&f64, &f64)| if (b - a).abs() > ROUNDING * a.abs() { b - a } else { 0.0 };
    a.iter().zip(b).map(change).collect()
}

/// Returns the sum of the products of two images.
fn product(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        lanes.iter_mut().zip(a.iter().zip(b)).for_each(|(lane, (a, b))| *lane += a * b);
    }
    lanes.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 40;
    const HEIGHT: usize = 30;

    fn image(value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        (0..WIDTH * HEIGHT).map(|i| value((i % WIDTH) as f64, (i / WIDTH) as f64)).collect()
    }

    fn components() -> Vec<Vec<f64>> {
        vec![image(|_, z| 25.0 * (0.9 * z).cos()), image(|x, z| 12.0 * (0.7 * x + 0.3 * z).sin())]
    }

    fn beam(components: &[Vec<f64>]) -> ComponentBeam<'_> {
        let mean = image(|x, z| 1000.0 - 0.4 * (x - 20.0).powi(2) + 30.0 * (0.9 * z).sin());
        ComponentBeam { mean, components }
    }

    /// The beam with these weights of its components.
    fn weighted(beam: &ComponentBeam, weights: &[f64]) -> Vec<f64> {
        let of = |at: usize| weights.iter().zip(beam.components).map(|(weight, of)| weight * of[at]).sum::<f64>();
        beam.mean.iter().enumerate().map(|(at, mean)| mean + of(at)).collect()
    }

    /// A sample with sharp edges in the beam with these weights.
    fn counts(beam: &ComponentBeam, weights: &[f64]) -> Vec<f64> {
        let sample = image(|x, z| if (x - 18.0).abs() < 9.0 && (z - 15.0).abs() < 11.0 { 0.35 } else { 1.0 });
        weighted(beam, weights).iter().zip(sample).map(|(beam, sample)| beam * sample).collect()
    }

    #[test]
    fn weights_of_a_projection_are_found() {
        let components = components();
        let beam = beam(&components);
        for weights in [[0.0, 0.0], [1.3, -0.4], [-2.5, 2.0], [0.2, 3.5]] {
            let found = beam.least_variation(&counts(&beam, &weights), WIDTH);
            let off = found.iter().zip(weights).map(|(found, weight)| (found - weight).abs()).fold(0.0, f64::max);
            assert!(off < 0.03, "{found:?} in place of {weights:?}");
        }
    }

    #[test]
    fn no_weights_near_those_found_have_less_variation() {
        let components = components();
        let beam = beam(&components);
        let noise = |i: usize| 1.0 + 0.01 * ((i as f64 * 12.9898).sin() * 43758.5453).fract();
        let counts: Vec<f64> =
            counts(&beam, &[0.8, -1.1]).iter().enumerate().map(|(i, count)| count * noise(i)).collect();
        let found = beam.least_variation(&counts, WIDTH);
        // from the definition
        let variation = |weights: [f64; 2]| {
            let line = |i: usize| {
                let of = |k: usize| weights[k] * beam.components[k][i];
                ((beam.mean[i] + of(0) + of(1)) / counts[i]).ln()
            };
            let size = |a: usize, b: usize| (line(a) - line(b)).hypot(1e-3);
            let rows = (0..HEIGHT).flat_map(|z| (1..WIDTH).map(move |x| (z * WIDTH + x - 1, z * WIDTH + x)));
            let columns = (1..HEIGHT).flat_map(|z| (0..WIDTH).map(move |x| ((z - 1) * WIDTH + x, z * WIDTH + x)));
            rows.chain(columns).map(|(a, b)| size(a, b)).sum::<f64>()
        };
        let least = variation([found[0], found[1]]);
        for (k, step) in [(0, 0.01), (0, -0.01), (1, 0.01), (1, -0.01), (0, 0.3), (1, -0.3)] {
            let mut near = [found[0], found[1]];
            near[k] += step;
            assert!(variation(near) >= least, "{found:?}: {near:?}");
        }
    }

    #[test]
    fn air_gives_weights_whatever_its_level_is() {
        let components = components();
        let beam = beam(&components);
        for weights in [[0.0, 0.0], [1.3, -0.4], [-4.0, 6.0]] {
            let air: Vec<f64> = weighted(&beam, &weights).iter().map(|count| 0.83 * count).collect();
            let found = beam.nearest_to_air(&air);
            let off = found.iter().zip(weights).map(|(found, weight)| (found - weight).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9, "{found:?} in place of {weights:?}");
        }
        assert_eq!(beam.nearest_to_air(&vec![0.0; WIDTH * HEIGHT]), [0.0, 0.0]);
    }

    #[test]
    fn a_factor_on_the_beam_is_no_variation() {
        let single = |value: f64| f64::from(value as f32);
        let mean: Vec<f64> = beam(&[]).mean.into_iter().map(single).collect();
        let components = vec![mean.iter().map(|mean| single(0.1 * mean)).collect()];
        let beam = ComponentBeam { mean, components: &components };
        let found = beam.least_variation(&counts(&beam, &[2.0]), WIDTH);
        assert!(found[0].abs() < 1e-6, "{found:?}");
        // no light anywhere
        assert_eq!(beam.least_variation(&vec![0.0; WIDTH * HEIGHT], WIDTH), [0.0]);
    }
}
