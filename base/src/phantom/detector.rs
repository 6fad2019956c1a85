//! Noise, and a photon-counting detector.

use super::centre;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal, Poisson};

/// Returns the random number generator of one row: a separate ChaCha8 stream for each (seed, projection, row), so that
/// no result depends on the order of work.
///
/// Frames other than projections use numbers that no projection has, such as `u32::MAX - frame`.
pub fn row_rng(seed: u64, projection: u32, row: u32) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream((u64::from(projection) << 32) | u64::from(row));
    rng
}

/// Adds Gaussian noise of standard deviation `sigma` (in the unit of the row) to a row; a `sigma` that is not positive
/// and finite adds nothing.
pub fn add_gaussian(row: &mut [f32], sigma: f64, rng: &mut impl Rng) {
    if sigma > 0.0
        && let Ok(normal) = Normal::new(0.0, sigma)
    {
        for value in row {
            *value += normal.sample(rng) as f32;
        }
    }
}

/// A detector with 16-bit counts and the imperfections of a real one, the same in every frame.
///
/// The beam is brightest in the middle of the frame and has faint horizontal stripes; every pixel has a
/// gain within 4 % of its column's, every column within 2 % of 1, one column in about 97 only half; the
/// dark signal is 90 to 110 counts with 2 counts of read noise. Light gives Poisson counts, one count
/// per photon, and the sensor clips at 65535.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detector {
    /// Number of bins of a row.
    pub bins: usize,
    /// Number of rows of a frame.
    pub rows: usize,
    /// Number of photons that reach a pixel of gain 1 in the middle of the beam without a sample. Above about 55000
    /// flats clip.
    pub photons: f64,
}

impl Detector {
    /// Standard deviation of the read noise in counts.
    pub const READ_NOISE: f64 = 2.0;

    /// Returns the mean counts of light in an open pixel, without the dark signal.
    pub fn open_beam(&self, row: usize, bin: usize) -> f64 {
        let across = (bin as f64 - centre(self.bins)) / self.bins as f64;
        let along = (row as f64 - centre(self.rows)) / self.rows as f64;
        let stripes = 1.0 + 0.03 * (40.0 * along + 0.7).sin();
        let beam = (-1.5 * across * across - 2.0 * along * along).exp() * stripes;
        let column = if hash(bin, usize::MAX) < 1.0 / 97.0 { 0.5 } else { 0.98 + 0.04 * hash(bin, usize::MAX - 1) };
        let gain = column * (0.96 + 0.08 * hash(bin, row));
        self.photons * beam * gain
    }

    /// Returns the mean dark signal of a pixel in counts.
    pub fn dark_level(&self, row: usize, bin: usize) -> f64 {
        90.0 + 20.0 * hash(bin, row ^ 0x5555_0000)
    }

    /// Returns one row of a projection from its line integrals (no unit). A line integral that is not a number lets
    /// nothing through.
    pub fn counts(&self, row: usize, line_integrals: &[f32], rng: &mut impl Rng) -> Vec<u16> {
        line_integrals
            .iter()
            .enumerate()
            .map(|(bin, &p)| {
                let light = self.open_beam(row, bin) * (-f64::from(p)).exp();
                self.count(row, bin, light, rng)
            })
            .collect()
    }

    /// Returns one row of a flat field: the beam without a sample.
    pub fn flat_row(&self, row: usize, rng: &mut impl Rng) -> Vec<u16> {
        (0..self.bins).map(|bin| self.count(row, bin, self.open_beam(row, bin), rng)).collect()
    }

    /// Returns one row of a dark field: no beam.
    pub fn dark_row(&self, row: usize, rng: &mut impl Rng) -> Vec<u16> {
        (0..self.bins).map(|bin| self.count(row, bin, 0.0, rng)).collect()
    }

    fn count(&self, row: usize, bin: usize, light: f64, rng: &mut impl Rng) -> u16 {
        // Far above the clipping level, the noise no longer matters.
        let photons = Poisson::new(light.clamp(0.0, 1e6)).map_or(0.0, |poisson| poisson.sample(rng));
        let read = Normal::new(0.0, Self::READ_NOISE).map_or(0.0, |normal| normal.sample(rng));
        // The cast clips at both ends.
        (photons + self.dark_level(row, bin) + read).round() as u16
    }
}

/// Returns a fixed number in 0..1 for a pixel (the mixing of SplitMix64).
fn hash(a: usize, b: usize) -> f64 {
    let mut z = (a as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((b as u64).wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64
}
