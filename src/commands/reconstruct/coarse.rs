//! Check whether samples of 16-bit floats distinguish the values of slices.

use super::errors::ReconstructWarning;
use super::overview::middle;
use crate::engine::Source;
use crate::job::Job;
use crate::kernel::StepBackends;
use crate::remark::{Doubt, DoubtKind};
use crate::sink::{Dtype, Target};
use half::f16;

/// Largest spacing of samples, as a share of the spread of the values.
const MOST: f64 = 0.01;

/// Returns a doubt if the samples of a run may be too coarse, judged by the middle slice as it was written. A slice
/// that cannot be read gives no doubt.
pub(super) fn doubt(job: &Job, source: &Source, target: &Target, computed: bool) -> Option<Doubt> {
    let scan = &source.scan;
    if job.recipe.values.dtype != Dtype::F16 || !computed || scan.slices.is_empty() {
        return None;
    }
    let number = middle(&scan.slices);
    let mut samples = vec![0f32; scan.geometry.roi.pixels()];
    target.stored(&scan.run_slices).read(number, &mut samples).ok()?;
    let spread = spread(&samples);
    if spread == 0.0 {
        // all samples are equal: nothing is left of the sinogram, unless it is constant itself
        let sinogram = source.read(&[number], StepBackends::HOST).ok()?;
        if sinogram.iter().all(|value| *value == sinogram[0]) {
            return None;
        }
    } else if spacing(&samples) <= MOST * spread {
        return None;
    }
    let coarse = ReconstructWarning::CoarseSamples { spacing: spacing(&samples), slice: number, spread };
    Some(Doubt::of(DoubtKind::CoarseF16, &coarse))
}

/// Returns the standard deviation.
fn spread(values: &[f32]) -> f64 {
    let count = values.len().max(1) as f64;
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
    (values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// Returns the root mean square of the distances between samples and the next representable numbers.
fn spacing(samples: &[f32]) -> f64 {
    let of = |&value: &f32| {
        let exponent = i32::from(f16::from_f32(value).to_bits() >> 10 & 0x1f);
        // subnormal numbers are as far apart as the smallest normal ones
        2f64.powi(exponent.max(1) - 25)
    };
    (samples.iter().map(|value| of(value).powi(2)).sum::<f64>() / samples.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ratio of spacing to spread of values with this mean and spread.
    fn ratio(mean: f32, amplitude: f32) -> f64 {
        let samples: Vec<f32> =
            (0..4000).map(|i| f16::from_f32(mean + amplitude * (i as f32 * 0.37).sin()).to_f32()).collect();
        spacing(&samples) / spread(&samples)
    }

    #[test]
    fn values_per_nanometre_and_small_contrasts_are_coarse() {
        for (mean, amplitude) in [(1e-7, 1e-7), (0.0, 1e-8), (2e-6, 1e-6), (1.0, 0.01), (1000.0, 2.0), (0.0, 6e-8)] {
            assert!(ratio(mean, amplitude) > MOST, "{mean} {amplitude}");
        }
        for (mean, amplitude) in [(0.5, 0.5), (0.0, 1.0), (1e-3, 1e-3), (0.02, 0.01), (0.0, 1e4), (3e-5, 3e-5)] {
            assert!(ratio(mean, amplitude) <= MOST, "{mean} {amplitude}");
        }
    }
}
