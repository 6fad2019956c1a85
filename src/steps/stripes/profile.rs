//! Removal of stripes that form a profile over the bins, constant or slowly varying over the projections of a block.

use crate::device::{BufferLayout, Session};
use crate::error::Result;
use crate::kernel::StepTarget;
use crate::operations::{AddedProfiles, ColumnProducts, SinogramBatch, SinogramShape, SmoothedFits};
use crate::steps::DeviceSinogramStep;
use crate::stripes::columns::{gaussian, gaussian_weights, running_median};
use rayon::prelude::*;

/// Method of smoothing that separates stripes in a profile from the object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smooth {
    /// A Gaussian of this standard deviation in bins.
    Gaussian(f64),
    /// Minimisation of the differences between neighbours, with this penalty on changing the data.
    Regularised(f64),
}

impl Smooth {
    /// Returns the width of the widest stripes that are separated from the object, in bins.
    fn reach(self) -> f64 {
        match self {
            Smooth::Gaussian(sigma) => sigma,
            Smooth::Regularised(alpha) => alpha.sqrt().recip(),
        }
    }

    /// Returns the size of the running median for profiles of `bins`.
    fn median_size(self, bins: usize) -> usize {
        2 * (self.reach().ceil() as usize).min(bins) + 1
    }

    /// Returns the correction to be added to a profile.
    ///
    /// A running median that suppresses stripes is subtracted first. It preserves the edges of the sample, which would
    /// otherwise be smoothed like stripes.
    fn correction(self, profile: &[f64]) -> Vec<f64> {
        let size = self.median_size(profile.len());
        let values: Vec<f32> = profile.iter().map(|value| *value as f32).collect();
        let object = running_median(&values, size);
        let rest: Vec<f64> = profile.iter().zip(&object).map(|(value, object)| value - f64::from(*object)).collect();
        match self {
            Smooth::Gaussian(sigma) => gaussian(&rest, sigma).iter().zip(&rest).map(|(s, r)| s - r).collect(),
            Smooth::Regularised(alpha) => regularised(&rest, alpha),
        }
    }
}

/// Fits polynomials of degree `order` to the columns of `sinogram`, `[projection][bin]`, over the projections of each of
/// `blocks` blocks, and makes them smooth across bins.
pub fn remove(sinogram: &mut [f32], bins: usize, order: usize, blocks: usize, smooth: Smooth) {
    let mut rest = sinogram;
    for block in starts(rest.len() / bins, blocks).windows(2) {
        let count = block[1] - block[0];
        let (rows, after) = rest.split_at_mut(count * bins);
        rest = after;
        let fits: Vec<(Vec<f64>, Vec<f64>)> = polynomials(count, order)
            .into_iter()
            .map(|polynomial| {
                let mut profile = vec![0f64; bins];
                for (row, factor) in rows.chunks(bins).zip(&polynomial) {
                    profile.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * f64::from(*value));
                }
                (polynomial, profile)
            })
            .collect();
        let mut correction = Vec::new();
        let mut fit = vec![0f64; bins];
        for (p, row) in rows.chunks_mut(bins).enumerate() {
            // constants are the same in all rows
            if p == 0 || fits.len() > 1 {
                fit.fill(0.0);
                for (polynomial, profile) in &fits {
                    fit.iter_mut().zip(profile).for_each(|(sum, value)| *sum += polynomial[p] * value);
                }
                correction = smooth.correction(&fit);
            }
            row.iter_mut().zip(&correction).for_each(|(value, change)| *value = (f64::from(*value) + change) as f32);
        }
    }
}

/// Returns the first projection of each of at most `blocks` blocks, and the number of projections.
fn starts(projections: usize, blocks: usize) -> Vec<usize> {
    let blocks = blocks.clamp(1, projections.max(1));
    (0..=blocks).map(|block| block * projections / blocks).collect()
}

/// Returns the block of each projection.
fn block_of(starts: &[usize]) -> Vec<usize> {
    starts.windows(2).enumerate().flat_map(|(block, ends)| std::iter::repeat_n(block, ends[1] - ends[0])).collect()
}

/// [`remove`] with polynomials of degree 0 on a device, which computes the sums; the host finds the corrections.
pub struct MeansOnDevice {
    shape: SinogramShape,
    products: ColumnProducts,
    added: AddedProfiles,
    /// The polynomial of each block.
    constants: Vec<f64>,
    smooth: Smooth,
}

impl MeansOnDevice {
    /// Builds the kernels for the size and number of sinograms of `shape`.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn new(session: &Session, shape: SinogramShape, blocks: usize, smooth: Smooth) -> Result<Self> {
        let starts = starts(shape.projections, blocks);
        let blocks = block_of(&starts);
        let constants: Vec<f64> = starts.windows(2).map(|ends| ((ends[1] - ends[0]) as f64).sqrt().recip()).collect();
        let factors: Vec<f32> = blocks.iter().map(|block| constants[*block] as f32).collect();
        Ok(MeansOnDevice {
            shape,
            products: ColumnProducts::new(session, shape, &starts, &factors)?,
            added: AddedProfiles::new(session, shape, &blocks)?,
            constants,
            smooth,
        })
    }

    /// Returns the buffers for the size and number of sinograms of `shape`.
    pub fn layout(shape: SinogramShape, blocks: usize) -> BufferLayout {
        let blocks = starts(shape.projections, blocks).len() - 1;
        ColumnProducts::layout(shape, blocks, 1).and(AddedProfiles::layout(shape, blocks))
    }
}

impl DeviceSinogramStep for MeansOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.products.run(session, sinograms)?;
        let mut profiles = self.products.download(session, sinograms.slices)?;
        profiles.par_chunks_mut(self.shape.bins).enumerate().for_each(|(i, profile)| {
            let constant = self.constants[i % self.constants.len()];
            let fit: Vec<f64> = profile.iter().map(|product| constant * f64::from(*product)).collect();
            profile.iter_mut().zip(self.smooth.correction(&fit)).for_each(|(value, change)| *value = change as f32);
        });
        self.added.run(session, sinograms, &profiles)
    }
}

/// [`remove`] with polynomials of a higher degree and a Gaussian on a device.
pub struct FitsOnDevice {
    products: ColumnProducts,
    smoothed: SmoothedFits,
}

impl FitsOnDevice {
    /// Builds the kernels for the size and number of sinograms of `shape`.
    ///
    /// # Errors
    /// Errors of the device in building programs and allocating memory.
    pub fn new(session: &Session, shape: SinogramShape, order: usize, blocks: usize, sigma: f64) -> Result<Self> {
        let starts = starts(shape.projections, blocks);
        let mut factors = vec![0f32; (order + 1) * shape.projections];
        for block in starts.windows(2) {
            let of_block = &mut factors[(order + 1) * block[0]..(order + 1) * block[1]];
            for (degree, polynomial) in polynomials(block[1] - block[0], order).iter().enumerate() {
                let places = of_block.iter_mut().skip(degree).step_by(order + 1);
                places.zip(polynomial).for_each(|(factor, value)| *factor = *value as f32);
            }
        }
        let weights = gaussian_weights(sigma);
        let total: f64 = weights.iter().sum();
        let weights: Vec<f32> = weights.iter().map(|weight| (weight / total) as f32).collect();
        let size = Smooth::Gaussian(sigma).median_size(shape.bins);
        Ok(FitsOnDevice {
            products: ColumnProducts::new(session, shape, &starts, &factors)?,
            smoothed: SmoothedFits::new(session, shape, order + 1, &block_of(&starts), size, &weights)?,
        })
    }

    /// Returns the buffers for the size and number of sinograms of `shape`.
    pub fn layout(target: StepTarget, shape: SinogramShape, order: usize, blocks: usize, sigma: f64) -> BufferLayout {
        let blocks = starts(shape.projections, blocks).len() - 1;
        let size = Smooth::Gaussian(sigma).median_size(shape.bins);
        ColumnProducts::layout(shape, blocks, order + 1).and(SmoothedFits::layout(
            target,
            shape,
            size,
            gaussian_weights(sigma).len(),
        ))
    }
}

impl DeviceSinogramStep for FitsOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.products.run(session, sinograms)?;
        self.smoothed.run(session, sinograms, &self.products)
    }
}

/// Returns the orthonormal polynomials of degrees 0 to `order`, at most `count - 1`, on `count` points.
fn polynomials(count: usize, order: usize) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for degree in 0..=order.min(count.saturating_sub(1)) {
        let x = |i: usize| (2 * i) as f64 / (count - 1).max(1) as f64 - 1.0;
        // the last one times x, orthogonalised to the others; twice, against rounding
        let mut next: Vec<f64> = match basis.last() {
            Some(last) => last.iter().enumerate().map(|(i, value)| x(i) * value).collect(),
            None => vec![1.0; count],
        };
        for other in basis.iter().chain(&basis) {
            let share: f64 = other.iter().zip(&next).map(|(a, b)| a * b).sum();
            next.iter_mut().zip(other).for_each(|(value, other)| *value -= share * other);
        }
        let norm = next.iter().map(|v| v * v).sum::<f64>().sqrt();
        debug_assert!(norm > 0.0, "degree {degree} of {count} points");
        next.iter_mut().for_each(|value| *value /= norm);
        basis.push(next);
    }
    basis
}

/// Returns the stripes `q` that minimise `|D (m + q)|^2 + alpha |q|^2` for a profile `m` and the differences `D` of
/// neighbours: `(D^T D + alpha) q = -D^T D m`, three diagonals.
///
/// S. Titarenko, P. J. Withers, A. Yagola, *An analytical formula for ring artefact suppression in X-ray tomography*,
/// Applied Mathematics Letters 23 (2010) 1489, who write the inverse in closed form.
fn regularised(profile: &[f64], alpha: f64) -> Vec<f64> {
    let n = profile.len();
    let neighbours = |i: usize| f64::from(u8::from(i > 0) + u8::from(i + 1 < n));
    let mut q = vec![0f64; n];
    // forward elimination
    let mut above = vec![0f64; n];
    for i in 0..n {
        let left = if i > 0 { profile[i - 1] - profile[i] } else { 0.0 };
        let right = if i + 1 < n { profile[i + 1] - profile[i] } else { 0.0 };
        let (before, carried) = if i > 0 { (q[i - 1], above[i - 1]) } else { (0.0, 0.0) };
        let diagonal = neighbours(i) + alpha - carried;
        above[i] = 1.0 / diagonal;
        q[i] = (left + right + before) / diagonal;
    }
    for i in (0..n.saturating_sub(1)).rev() {
        q[i] += above[i] * q[i + 1];
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polynomials_are_orthonormal() {
        for (count, order) in [(1, 3), (2, 5), (40, 4), (900, 8)] {
            let basis = polynomials(count, order);
            assert_eq!(basis.len(), (order + 1).min(count));
            for (i, a) in basis.iter().enumerate() {
                for (j, b) in basis.iter().enumerate() {
                    let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
                    assert!((product - f64::from(u8::from(i == j))).abs() < 1e-12, "{count}: {i}, {j}");
                }
            }
        }
    }
}
