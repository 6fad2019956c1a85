//! Weights of components of a beam with which a projection has the least total variation, or agrees with air.

use super::symmetric::EigenSystem;
use crate::numbers::ln_double as ln;
use multiversion::multiversion;

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

/// A beam and its components in air, with a dark level of 0.
pub struct AirBeam<'a> {
    pub mean: Vec<f64>,
    pub components: &'a [Vec<f64>],
}

impl AirBeam<'_> {
    /// Returns the weights with which the beam, times a factor, is nearest to `counts` of air, by least squares.
    pub fn nearest(&self, counts: &[f64]) -> Vec<f64> {
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
}

/// A beam and its components at several resolutions, the highest first, with a dark level of 0.
pub struct BeamResolutions(Vec<BeamImages>);

/// A beam and its components as images of `width` pixels a row.
struct BeamImages {
    width: usize,
    /// The mean beam before the scan, and after it; not above 0 where there is no light.
    means: [Vec<f64>; 2],
    components: Vec<Vec<f64>>,
}

impl BeamResolutions {
    /// Makes the resolutions of a beam of `width` pixels a row: its means before the scan and after it, and its components.
    pub fn new(width: usize, means: [Vec<f64>; 2], components: Vec<Vec<f64>>) -> Self {
        let mut resolutions = vec![BeamImages { width, means, components }];
        while let Some(next) = resolutions.last().and_then(BeamImages::halved) {
            resolutions.push(next);
        }
        BeamResolutions(resolutions)
    }

    /// Returns the weights with which line integrals of `counts` have the least total variation: the least sum of the sizes of
    /// differences between neighbours, along rows and columns. `progress` is the place of the beam between those before the scan
    /// and after it. A factor on the beam changes no difference, so that weights which make nothing but a factor stay 0.
    pub fn least_variation(&self, counts: Vec<f64>, progress: f64) -> Vec<f64> {
        let mut of_counts = vec![counts];
        for finer in &self.0[..self.0.len() - 1] {
            of_counts.push(halved(&of_counts[of_counts.len() - 1], finer.width));
        }
        let start = vec![0.0; self.0[0].components.len()];
        let resolutions = self.0.iter().zip(&of_counts).rev();
        resolutions.fold(start, |weights, (beam, counts)| LinesByWeights::of(beam, counts, progress).search(weights))
    }
}

impl BeamImages {
    /// Returns the images at half the resolution; `None` if they are small.
    fn halved(&self) -> Option<BeamImages> {
        let BeamImages { width, means, components } = self;
        let height = means[0].len() / (*width).max(1);
        let of = |image: &Vec<f64>| halved(image, *width);
        ((*width).max(height) > COARSEST).then(|| BeamImages {
            width: width.div_ceil(2),
            means: means.each_ref().map(of),
            components: components.iter().map(of).collect(),
        })
    }
}

/// Returns the means of two by two pixels, or of as many as there are at an edge.
fn halved(image: &[f64], width: usize) -> Vec<f64> {
    let mut means = Vec::with_capacity(width.div_ceil(2) * image.len().div_ceil(2 * width));
    for rows in image.chunks(2 * width) {
        let (above, below) = rows.split_at(width);
        for bin in (0..width).step_by(2) {
            let bins = bin..(bin + 2).min(width);
            let below = below.get(bins.clone()).unwrap_or_default();
            let sum = above[bins.clone()].iter().sum::<f64>() + below.iter().sum::<f64>();
            means.push(sum / (bins.len() + below.len()) as f64);
        }
    }
    means
}

/// Returns the mean beam of a pixel at a place between the means before the scan and after it, and 0 if one has no light.
pub fn mean_at(first: f64, second: f64, progress: f64) -> f64 {
    if first > 0.0 && second > 0.0 { first + progress * (second - first) } else { 0.0 }
}

/// The line integrals of a projection as functions of the weights: `base + ln(1 + sum of weights * slopes)`.
struct LinesByWeights {
    width: usize,
    base: Vec<f64>,
    slopes: Vec<Vec<f64>>,
    /// 1 for pixels that count; others have 0, and a base and slopes of 0.
    lit: Vec<f64>,
}

/// A row of line integrals, and how they change with each of the weights.
#[derive(Clone)]
struct LineRow {
    lines: Vec<f64>,
    changes: Vec<Vec<f64>>,
    /// Inverse values of the beam.
    inverse: Vec<f64>,
}

/// The rows that are compared, and memory for what they differ by.
struct ComparedRows {
    row: LineRow,
    above: LineRow,
    differences: LineRow,
    /// Weight of the square of each difference.
    shares: Vec<f64>,
    /// Change of the differences with a component's weight, times these weights.
    shared: Vec<f64>,
}

/// The total variation with some weights; and what the weights are that make the sum of squares of differences, each divided
/// by its size now, least: the solution of a system of linear equations.
struct Variation {
    sum: f64,
    matrix: Vec<f64>,
    right: Vec<f64>,
}

impl LinesByWeights {
    fn of(beam: &BeamImages, counts: &[f64], progress: f64) -> LinesByWeights {
        let BeamImages { width, means: [first, second], components } = beam;
        let mean: Vec<f64> = first.iter().zip(second).map(|(a, b)| mean_at(*a, *b, progress)).collect();
        let is_lit = |(mean, count): (&f64, &f64)| *mean > 0.0 && *count > LEAST_TRANSMISSION * mean;
        let lit: Vec<f64> = mean.iter().zip(counts).map(|both| f64::from(u8::from(is_lit(both)))).collect();
        let mut base = vec![1.0; lit.len()];
        ratios(&mut base, &mean, counts, &lit, 1.0);
        let slopes = |component: &Vec<f64>| {
            let mut slopes = vec![0.0; lit.len()];
            ratios(&mut slopes, component, &mean, &lit, 0.0);
            slopes
        };
        let slopes = components.iter().map(slopes).collect();
        LinesByWeights { width: *width, base: base.into_iter().map(ln).collect(), slopes, lit }
    }

    /// Returns the weights with the least variation, from those of a start.
    fn search(&self, start: Vec<f64>) -> Vec<f64> {
        let mut weights = start;
        let mut rows = ComparedRows::new(self.width, weights.len());
        let now = self.varied(&weights, &mut rows).or_else(|| {
            // those of a lower resolution leave no light at some pixel
            weights.fill(0.0);
            self.varied(&weights, &mut rows)
        });
        let Some(mut now) = now else { return weights };
        for _ in 0..MOST_STEPS {
            let step = EigenSystem::of(now.matrix, weights.len()).solve(&now.right);
            let shorter = |halves: usize| {
                let size = 0.5f64.powi(halves as i32);
                let next: Vec<f64> = weights.iter().zip(&step).map(|(weight, step)| weight + size * step).collect();
                let varied = self.varied(&next, &mut rows).filter(|varied| varied.sum < now.sum)?;
                Some((next, varied))
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
    fn varied(&self, weights: &[f64], rows: &mut ComparedRows) -> Option<Variation> {
        let (count, width) = (weights.len(), self.width);
        let mut variation = Variation { sum: 0.0, matrix: vec![0.0; count * count], right: vec![0.0; count] };
        for first in (0..self.base.len()).step_by(width) {
            let pixels = first..first + width;
            std::mem::swap(&mut rows.row, &mut rows.above);
            let slopes: Vec<&[f64]> = self.slopes.iter().map(|of| &of[pixels.clone()]).collect();
            if !rows.row.fill(&self.base[pixels.clone()], &slopes, weights) {
                return None;
            }
            let lit = &self.lit[pixels];
            let ComparedRows { row, above, differences, shares, shared } = rows;
            // neighbours along the row
            differences.between(row, row, 1, width - 1);
            shares.iter_mut().zip(lit).zip(&lit[1..]).for_each(|((share, a), b)| *share = a * b);
            variation.add(differences, (shares, shared), width - 1);
            if first > 0 {
                differences.between(above, row, 0, width);
                let before = &self.lit[first - width..first];
                shares.iter_mut().zip(before).zip(lit).for_each(|((share, a), b)| *share = a * b);
                variation.add(differences, (shares, shared), width);
            }
        }
        // both halves are the same
        for i in 0..count {
            (0..i).for_each(|j| variation.matrix[i * count + j] = variation.matrix[j * count + i]);
        }
        Some(variation)
    }
}

impl ComparedRows {
    fn new(width: usize, weights: usize) -> ComparedRows {
        let empty = vec![0.0; width];
        let row = LineRow { lines: empty.clone(), changes: vec![empty.clone(); weights], inverse: empty.clone() };
        ComparedRows { above: row.clone(), differences: row.clone(), row, shares: empty.clone(), shared: empty }
    }
}

impl LineRow {
    /// Computes the row with some weights. Returns false if a part of the beam is not above 0.
    fn fill(&mut self, base: &[f64], slopes: &[&[f64]], weights: &[f64]) -> bool {
        let relative = &mut self.lines;
        relative.fill(1.0);
        for (weight, slopes) in weights.iter().zip(slopes) {
            relative.iter_mut().zip(*slopes).for_each(|(sum, slope)| *sum += weight * slope);
        }
        if relative.iter().any(|relative| *relative <= 0.0) {
            return false;
        }
        line_integrals(relative, &mut self.inverse, base);
        for (changes, slopes) in self.changes.iter_mut().zip(slopes) {
            changes.iter_mut().zip(*slopes).zip(&self.inverse).for_each(|((to, slope), by)| *to = slope * by);
        }
        true
    }

    /// Computes what the first `count` pixels of `a` differ by from those of `b`, of which `to` is the first.
    fn between(&mut self, a: &LineRow, b: &LineRow, to: usize, count: usize) {
        between(&mut self.lines[..count], &a.lines, &b.lines[to..]);
        for (differences, (a, b)) in self.changes.iter_mut().zip(a.changes.iter().zip(&b.changes)) {
            changed(&mut differences[..count], a, &b[to..]);
        }
    }
}

impl Variation {
    /// Adds the differences of `count` pixels, which count with their `shares`; `shared` is memory for a row.
    fn add(&mut self, differences: &LineRow, (shares, shared): (&mut [f64], &mut [f64]), count: usize) {
        let lines = &differences.lines[..count];
        let (shares, shared) = (&mut shares[..count], &mut shared[..count]);
        self.sum += sizes(lines, shares);
        let weights = self.right.len();
        for (i, changes) in differences.changes.iter().enumerate() {
            shared.iter_mut().zip(changes).zip(&*shares).for_each(|((to, change), share)| *to = change * share);
            self.right[i] -= product(shared, lines);
            for (j, others) in differences.changes.iter().enumerate().skip(i) {
                self.matrix[i * weights + j] += product(shared, &others[..count]);
            }
        }
    }
}

// The following functions are also compiled for newer processors with wider vectors. Results are the same: rounding does
// not change.

/// Divides images, and takes `otherwise` in pixels that do not count.
#[multiversion(targets("x86_64+avx2"))]
fn ratios(ratios: &mut [f64], of: &[f64], by: &[f64], lit: &[f64], otherwise: f64) {
    for (((ratio, of), by), lit) in ratios.iter_mut().zip(of).zip(by).zip(lit) {
        let quotient = of / by;
        *ratio = if *lit > 0.0 { quotient } else { otherwise };
    }
}

/// Replaces beams by line integrals, and returns the inverse beams.
#[multiversion(targets("x86_64+avx2"))]
fn line_integrals(beams: &mut [f64], inverse: &mut [f64], base: &[f64]) {
    for ((beam, inverse), base) in beams.iter_mut().zip(inverse).zip(base) {
        *inverse = 1.0 / *beam;
        *beam = base + ln(*beam);
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn between(differences: &mut [f64], a: &[f64], b: &[f64]) {
    differences.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = b - a);
}

/// Computes the differences, and 0 for those that are rounding.
#[multiversion(targets("x86_64+avx2"))]
fn changed(differences: &mut [f64], a: &[f64], b: &[f64]) {
    for ((to, a), b) in differences.iter_mut().zip(a).zip(b) {
        *to = if (b - a).abs() > ROUNDING * a.abs() { b - a } else { 0.0 };
    }
}

/// Returns the sum of the sizes of differences, and divides their shares by them.
#[multiversion(targets("x86_64+avx2"))]
fn sizes(differences: &[f64], shares: &mut [f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let add = |((lane, difference), share): ((&mut f64, &f64), &mut f64)| {
        let size = (difference * difference + ROUNDED * ROUNDED).sqrt();
        *lane += *share * size;
        *share /= size;
    };
    // of exactly as many values, so that the sums stay in registers
    let (mut whole, mut shares) = (differences.chunks_exact(LANES), shares.chunks_exact_mut(LANES));
    for (differences, shares) in whole.by_ref().zip(shares.by_ref()) {
        lanes.iter_mut().zip(differences).zip(shares).for_each(add);
    }
    lanes.iter_mut().zip(whole.remainder()).zip(shares.into_remainder()).for_each(add);
    lanes.iter().sum()
}

/// Returns the sum of the products of two images.
#[multiversion(targets("x86_64+avx2"))]
fn product(a: &[f64], b: &[f64]) -> f64 {
    let mut lanes = [0.0; LANES];
    let add = |((lane, a), b): ((&mut f64, &f64), &f64)| *lane += a * b;
    let (mut a, mut b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    for (a, b) in a.by_ref().zip(b.by_ref()) {
        lanes.iter_mut().zip(a).zip(b).for_each(add);
    }
    lanes.iter_mut().zip(a.remainder()).zip(b.remainder()).for_each(add);
    lanes.iter().sum()
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

    fn beam(components: &[Vec<f64>]) -> AirBeam<'_> {
        let mean = image(|x, z| 1000.0 - 0.4 * (x - 20.0).powi(2) + 30.0 * (0.9 * z).sin());
        AirBeam { mean, components }
    }

    fn least_variation(beam: &AirBeam, counts: Vec<f64>) -> Vec<f64> {
        let resolutions = BeamResolutions::new(WIDTH, [(); 2].map(|()| beam.mean.clone()), beam.components.to_vec());
        resolutions.least_variation(counts, 0.3)
    }

    /// The beam with these weights of its components.
    fn weighted(beam: &AirBeam, weights: &[f64]) -> Vec<f64> {
        let of = |at: usize| weights.iter().zip(beam.components).map(|(weight, of)| weight * of[at]).sum::<f64>();
        beam.mean.iter().enumerate().map(|(at, mean)| mean + of(at)).collect()
    }

    /// A sample with sharp edges in the beam with these weights.
    fn counts(beam: &AirBeam, weights: &[f64]) -> Vec<f64> {
        let sample = image(|x, z| if (x - 18.0).abs() < 9.0 && (z - 15.0).abs() < 11.0 { 0.35 } else { 1.0 });
        weighted(beam, weights).iter().zip(sample).map(|(beam, sample)| beam * sample).collect()
    }

    #[test]
    fn weights_of_a_projection_are_found() {
        let components = components();
        let beam = beam(&components);
        for weights in [[0.0, 0.0], [1.3, -0.4], [-2.5, 2.0], [0.2, 3.5]] {
            let found = least_variation(&beam, counts(&beam, &weights));
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
        let found = least_variation(&beam, counts.clone());
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
            let found = beam.nearest(&air);
            let off = found.iter().zip(weights).map(|(found, weight)| (found - weight).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9, "{found:?} in place of {weights:?}");
        }
        assert_eq!(beam.nearest(&vec![0.0; WIDTH * HEIGHT]), [0.0, 0.0]);
    }

    #[test]
    fn a_factor_on_the_beam_is_no_variation() {
        let single = |value: f64| f64::from(value as f32);
        let mean: Vec<f64> = beam(&[]).mean.into_iter().map(single).collect();
        let components = vec![mean.iter().map(|mean| single(0.1 * mean)).collect()];
        let beam = AirBeam { mean, components: &components };
        let found = least_variation(&beam, counts(&beam, &[2.0]));
        assert!(found[0].abs() < 1e-6, "{found:?}");
        // no light anywhere
        assert_eq!(least_variation(&beam, vec![0.0; WIDTH * HEIGHT]), [0.0]);
    }
}
