//! Removal of stripes that form a profile over the bins, constant or slowly varying over the projections of a block.

use super::columns::{gaussian, running_median};

/// How stripes in a profile are separated from the object: by smoothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Smooth {
    /// With a Gaussian of this standard deviation in bins.
    Gaussian(f64),
    /// By minimising differences between neighbours, with this penalty on changing the data.
    Regularised(f64),
}

impl Smooth {
    /// Width of the widest stripes that are separated from the object, in bins.
    fn reach(self) -> f64 {
        match self {
            Smooth::Gaussian(sigma) => sigma,
            Smooth::Regularised(alpha) => alpha.sqrt().recip(),
        }
    }

    /// The correction to be added to a profile.
    ///
    /// A running median that suppresses stripes is subtracted first. It preserves the edges of the sample, which would
    /// otherwise be smoothed like stripes.
    fn correction(self, profile: &[f64]) -> Vec<f64> {
        let size = 2 * (self.reach().ceil() as usize).min(profile.len()) + 1;
        let values: Vec<f32> = profile.iter().map(|value| *value as f32).collect();
        let mut object = vec![0f32; values.len()];
        running_median(&values, size, &mut Vec::new(), &mut object);
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
    let projections = sinogram.len() / bins;
    let blocks = blocks.clamp(1, projections.max(1));
    let mut rest = sinogram;
    for block in 0..blocks {
        let count = (block + 1) * projections / blocks - block * projections / blocks;
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

/// Orthonormal polynomials of degrees 0 to `order`, at most `count - 1`, on `count` points.
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

/// The stripes `q` that minimise `|D (m + q)|^2 + alpha |q|^2` for a profile `m` and the differences `D` of neighbours:
/// `(D^T D + alpha) q = -D^T D m`, three diagonals.
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
