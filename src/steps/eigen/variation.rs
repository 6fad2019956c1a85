//! Weights of components of a beam with which a projection has the least total variation, or agrees with air.

use super::symmetric::EigenSystem;

/// Differences of line integrals below this count as squares, larger ones by their size.
const ROUNDED: f64 = 1e-3;
/// Transmissions below this are left out: their logarithm is mostly noise.
const LEAST_TRANSMISSION: f64 = 0.02;
/// Differences between neighbours of a component relative to the beam that are smaller parts of it are rounding: images are
/// in single precision.
const ROUNDING: f64 = 1e-6;
/// Largest number of steps of the search.
const MOST_STEPS: usize = 60;
/// Number of times a step is halved at most.
const MOST_HALVES: usize = 30;
/// A step ends the search that changes the variation by a smaller part of it.
const SETTLED: f64 = 1e-9;

/// A beam and its components, with a dark level of 0.
pub struct ComponentBeam {
    pub mean: Vec<f64>,
    pub components: Vec<Vec<f64>>,
}

impl ComponentBeam {
    /// Returns the beam with these weights of its components.
    fn with(&self, weights: &[f64]) -> Vec<f64> {
        let mut beam = self.mean.clone();
        for (weight, component) in weights.iter().zip(&self.components) {
            beam.iter_mut().zip(component).for_each(|(beam, value)| *beam += weight * value);
        }
        beam
    }

    /// Returns the weights with which line integrals of `counts` have the least total variation over an image of `width`
    /// pixels a row: the least sum of the sizes of differences between neighbours, along rows and columns. A factor on the beam
    /// changes no difference, so that weights which make nothing but a factor stay 0.
    pub fn least_variation(&self, counts: &[f64], width: usize) -> Vec<f64> {
        let lit = |at: usize| self.mean[at] > 0.0 && counts[at] > LEAST_TRANSMISSION * self.mean[at];
        let height = counts.len() / width.max(1);
        let right = (0..counts.len()).filter(|at| at % width + 1 < width).map(|at| (at, at + 1));
        let below = (0..counts.len()).filter(|at| at / width + 1 < height).map(|at| (at, at + width));
        let neighbours: Vec<(usize, usize)> = right.chain(below).filter(|&(a, b)| lit(a) && lit(b)).collect();
        let mut weights = vec![0.0; self.components.len()];
        let mut beam = self.with(&weights);
        let (mut lines, mut variation) = varied(&beam, counts, &neighbours);
        for _ in 0..MOST_STEPS {
            let step = self.step(&beam, &lines, &neighbours);
            let mut size = 1.0;
            let mut better = None;
            for _ in 0..MOST_HALVES {
                let next: Vec<f64> = weights.iter().zip(&step).map(|(weight, step)| weight + size * step).collect();
                let beam = self.with(&next);
                let (lines, found) = varied(&beam, counts, &neighbours);
                if found < variation {
                    better = Some((next, beam, lines, found));
                    break;
                }
                size /= 2.0;
            }
            let Some((next, with_next, lines_of_next, found)) = better else { break };
            let settled = variation - found < SETTLED * variation;
            (weights, beam, lines, variation) = (next, with_next, lines_of_next, found);
            if settled {
                break;
            }
        }
        weights
    }

    /// Returns the change of the weights that is best for squares of differences, each divided by its size now.
    fn step(&self, beam: &[f64], lines: &[f64], neighbours: &[(usize, usize)]) -> Vec<f64> {
        let count = self.components.len();
        let slope = |component: &Vec<f64>| component.iter().zip(beam).map(|(value, beam)| value / beam).collect();
        let slopes: Vec<Vec<f64>> = self.components.iter().map(slope).collect();
        let (mut matrix, mut right) = (vec![0.0; count * count], vec![0.0; count]);
        let mut differences = vec![0.0; count];
        for &(a, b) in neighbours {
            let now = lines[b] - lines[a];
            let share = 1.0 / rounded(now);
            for (difference, slope) in differences.iter_mut().zip(&slopes) {
                let between = slope[b] - slope[a];
                *difference = if between.abs() > ROUNDING * slope[a].abs() { between } else { 0.0 };
            }
            for (i, of_row) in differences.iter().enumerate() {
                right[i] -= share * now * of_row;
                let row = &mut matrix[i * count..(i + 1) * count];
                row.iter_mut().zip(&differences).for_each(|(entry, other)| *entry += share * of_row * other);
            }
        }
        EigenSystem::of(matrix, count).solve(&right)
    }

    /// Returns the weights with which the beam, times a factor, is nearest to `counts` of air, by least squares.
    pub fn nearest_to_air(&self, counts: &[f64]) -> Vec<f64> {
        let columns: Vec<&Vec<f64>> = [&self.mean].into_iter().chain(&self.components).collect();
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
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

/// Returns the line integrals of all pixels, and their total variation; infinite if a part of the beam is not above 0.
fn varied(beam: &[f64], counts: &[f64], neighbours: &[(usize, usize)]) -> (Vec<f64>, f64) {
    let lines: Vec<f64> = beam.iter().zip(counts).map(|(beam, count)| (beam / count).ln()).collect();
    let size = |&(a, b): &(usize, usize)| match beam[a] > 0.0 && beam[b] > 0.0 {
        true => rounded(lines[b] - lines[a]),
        false => f64::INFINITY,
    };
    let variation = neighbours.iter().map(size).sum();
    (lines, variation)
}

/// Returns the size of a difference, rounded near 0.
fn rounded(difference: f64) -> f64 {
    difference.hypot(ROUNDED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 40;
    const HEIGHT: usize = 30;

    fn image(value: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        (0..WIDTH * HEIGHT).map(|i| value((i % WIDTH) as f64, (i / WIDTH) as f64)).collect()
    }

    fn beam() -> ComponentBeam {
        ComponentBeam {
            mean: image(|x, z| 1000.0 - 0.4 * (x - 20.0).powi(2) + 30.0 * (0.9 * z).sin()),
            components: vec![image(|_, z| 25.0 * (0.9 * z).cos()), image(|x, z| 12.0 * (0.7 * x + 0.3 * z).sin())],
        }
    }

    /// A sample with sharp edges in the beam with these weights.
    fn counts(beam: &ComponentBeam, weights: &[f64]) -> Vec<f64> {
        let sample = image(|x, z| if (x - 18.0).abs() < 9.0 && (z - 15.0).abs() < 11.0 { 0.35 } else { 1.0 });
        beam.with(weights).iter().zip(sample).map(|(beam, sample)| beam * sample).collect()
    }

    #[test]
    fn weights_of_a_projection_are_found() {
        let beam = beam();
        for weights in [[0.0, 0.0], [1.3, -0.4], [-2.5, 2.0], [0.2, 3.5]] {
            let found = beam.least_variation(&counts(&beam, &weights), WIDTH);
            let off = found.iter().zip(weights).map(|(found, weight)| (found - weight).abs()).fold(0.0, f64::max);
            assert!(off < 0.03, "{found:?} in place of {weights:?}");
        }
    }

    #[test]
    fn no_weights_near_those_found_have_less_variation() {
        let beam = beam();
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
        let beam = beam();
        for weights in [[0.0, 0.0], [1.3, -0.4], [-4.0, 6.0]] {
            let air: Vec<f64> = beam.with(&weights).iter().map(|count| 0.83 * count).collect();
            let found = beam.nearest_to_air(&air);
            let off = found.iter().zip(weights).map(|(found, weight)| (found - weight).abs()).fold(0.0, f64::max);
            assert!(off < 1e-9, "{found:?} in place of {weights:?}");
        }
        assert_eq!(beam.nearest_to_air(&vec![0.0; WIDTH * HEIGHT]), [0.0, 0.0]);
    }

    #[test]
    fn a_factor_on_the_beam_is_no_variation() {
        let single = |value: f64| f64::from(value as f32);
        let mean: Vec<f64> = beam().mean.into_iter().map(single).collect();
        let beam = ComponentBeam { components: vec![mean.iter().map(|mean| single(0.1 * mean)).collect()], mean };
        let found = beam.least_variation(&counts(&beam, &[2.0]), WIDTH);
        assert!(found[0].abs() < 1e-6, "{found:?}");
        // no light anywhere
        assert_eq!(beam.least_variation(&vec![0.0; WIDTH * HEIGHT], WIDTH), [0.0]);
    }
}
