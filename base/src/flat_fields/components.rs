//! Principal components of flat fields, and how many of them are more than noise.

use super::symmetric::EigenSystem;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

/// Number of times that the frames are shuffled.
const SHUFFLES: u64 = 20;
/// Standard deviations above the mean of shuffled frames at which a component is more than noise.
const ABOVE: f64 = 2.0;

/// How flats differ from their mean, at a reduced resolution, `[frame][block]`.
pub struct Deviations {
    pub frames: Vec<Vec<f64>>,
}

/// The components that were found: what each frame contributes to each of them.
#[derive(Clone, Debug)]
pub struct FoundComponents {
    /// Factors of the frames, `[component][frame]`.
    pub factors: Vec<Vec<f64>>,
    /// Share of the variance of all flats that each component has.
    pub shares: Vec<f64>,
}

impl Deviations {
    /// Returns the principal components, as many as `count`, or those that parallel analysis takes for more than noise, at most
    /// `most`. A component is a sum of frames; its weight in the flats has a standard deviation of 1.
    pub fn components(&self, count: Option<usize>, most: usize) -> FoundComponents {
        let frames = self.frames.len();
        let EigenSystem { values, vectors } = EigenSystem::of(products(&self.frames), frames);
        let all: f64 = values.iter().map(|value| value.max(0.0)).sum();
        let count = count.unwrap_or_else(|| self.above_noise(&values)).min(most).min(frames);
        let scale = 1.0 / (frames as f64).sqrt();
        let factors = |vector: &Vec<f64>| vector.iter().map(|entry| scale * entry).collect();
        FoundComponents {
            factors: vectors[..count].iter().map(factors).collect(),
            shares: values[..count].iter().map(|value| value / all.max(f64::MIN_POSITIVE)).collect(),
        }
    }

    /// Returns how many of the eigenvalues are larger than those of frames whose values were exchanged among the frames, block
    /// by block, so that nothing but noise is left in common.
    fn above_noise(&self, values: &[f64]) -> usize {
        let shuffled: Vec<Vec<f64>> = (0..SHUFFLES).into_par_iter().map(|seed| self.shuffled(seed)).collect();
        let limit = |k: usize| {
            let of: Vec<f64> = shuffled.iter().map(|values| values[k]).collect();
            let mean = of.iter().sum::<f64>() / of.len() as f64;
            let variance = of.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (of.len() - 1) as f64;
            mean + ABOVE * variance.sqrt()
        };
        values.iter().enumerate().take_while(|&(k, value)| *value > limit(k)).count()
    }

    /// Returns the eigenvalues of shuffled frames.
    fn shuffled(&self, seed: u64) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut frames = self.frames.clone();
        let mut column = vec![0.0; frames.len()];
        for block in 0..frames.first().map_or(0, Vec::len) {
            column.iter_mut().zip(&frames).for_each(|(value, frame)| *value = frame[block]);
            column.shuffle(&mut random);
            frames.iter_mut().zip(&column).for_each(|(frame, value)| frame[block] = *value);
        }
        EigenSystem::of(products(&frames), frames.len()).values
    }
}

/// Returns the products of all pairs of frames, `[frame][frame]`.
fn products(frames: &[Vec<f64>]) -> Vec<f64> {
    let count = frames.len();
    let product = |at: usize| {
        let (a, b) = (&frames[at / count], &frames[at % count]);
        a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()
    };
    (0..count * count).into_par_iter().map(product).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    const BINS: usize = 50;
    const ROWS: usize = 40;

    /// Frames of patterns with random weights, and noise.
    fn frames(patterns: &[fn(f64, f64) -> f64], count: usize, noise: f64) -> (Vec<Vec<f32>>, Vec<Vec<f64>>) {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let weights: Vec<Vec<f64>> =
            (0..count).map(|_| patterns.iter().map(|_| random.random_range(-1.7..1.7)).collect()).collect();
        let frame = |weights: &Vec<f64>| -> Vec<f32> {
            let pixel = |i: usize| {
                let (x, z) = ((i % BINS) as f64, (i / BINS) as f64);
                let of_patterns = patterns.iter().zip(weights).map(|(pattern, weight)| weight * pattern(x, z));
                (of_patterns.sum::<f64>() + noise * random.random_range(-1.0..1.0)) as f32
            };
            (0..BINS * ROWS).map(pixel).collect()
        };
        let mut frames: Vec<Vec<f32>> = weights.iter().map(frame).collect();
        for pixel in 0..BINS * ROWS {
            let mean = frames.iter().map(|frame| frame[pixel]).sum::<f32>() / count as f32;
            frames.iter_mut().for_each(|frame| frame[pixel] -= mean);
        }
        (frames, weights)
    }

    const FIRST: fn(f64, f64) -> f64 = |_, z| 30.0 * (0.5 * z).sin();
    const SECOND: fn(f64, f64) -> f64 = |x, z| 10.0 * (0.3 * x - 0.2 * z).cos();

    fn deviations(frames: &[Vec<f32>]) -> Deviations {
        Deviations {
            frames: frames.iter().map(|frame| frame.iter().map(|value| f64::from(*value)).collect()).collect(),
        }
    }

    #[test]
    fn parallel_analysis_counts_the_patterns() {
        for (patterns, count) in [(&[][..], 0), (&[FIRST], 1), (&[FIRST, SECOND], 2)] {
            let (frames, _) = frames(patterns, 24, 4.0);
            let found = deviations(&frames).components(None, 32);
            assert_eq!(found.factors.len(), count, "{:?}", found.shares);
            // bit for bit the same again
            assert_eq!(deviations(&frames).components(None, 32).factors, found.factors);
        }
        let (frames, _) = frames(&[FIRST, SECOND], 24, 4.0);
        assert_eq!(deviations(&frames).components(None, 1).factors.len(), 1);
        assert_eq!(deviations(&frames).components(Some(5), 32).factors.len(), 5);
        assert_eq!(deviations(&frames).components(Some(0), 32).factors.len(), 0);
        // nothing varies
        assert!(deviations(&vec![vec![0.0; BINS * ROWS]; 6]).components(None, 32).factors.is_empty());
    }

    #[test]
    fn components_are_the_patterns() {
        let (frames, weights) = frames(&[FIRST], 24, 0.5);
        let found = deviations(&frames).components(None, 32);
        let component: Vec<f64> = (0..BINS * ROWS)
            .map(|i| frames.iter().zip(&found.factors[0]).map(|(frame, factor)| factor * f64::from(frame[i])).sum())
            .collect();
        let mean = weights.iter().map(|weight| weight[0]).sum::<f64>() / 24.0;
        let spread = (weights.iter().map(|weight| (weight[0] - mean).powi(2)).sum::<f64>() / 24.0).sqrt();
        let sign = component[3 * BINS].signum();
        for (i, value) in component.iter().enumerate() {
            let want = sign * spread * FIRST(0.0, (i / BINS) as f64);
            assert!((value - want).abs() < 1.0, "{value} and {want} at {i}");
        }
        assert!(found.shares[0] > 0.99, "{:?}", found.shares);
    }
}
