//! Weights of projections in least squares by their noise.

use super::corrected_rows::corrected_rows;
use super::source::{Source, weighs_by_noise};
use crate::error::Result;
use crate::job::Job;
use crate::least_squares::noise_along;
use crate::numbers::brief;
use crate::report::Reporter;

/// Least noise of a projection relative to the middle one.
const LEAST: f64 = 0.01;

/// Returns the data with weights by the noise of projections in some rows, if a job asks for them: the inverse of its variance. They
/// depend on all rows of the run, not only on those of a shard.
///
/// # Errors
/// Errors of reading, and of the device.
pub fn with_noise_weights(source: Source, job: &Job, reporter: &Reporter) -> Result<Source> {
    match weighs_by_noise(job) {
        true => noise_weights(&source, job, reporter).map(|weights| source.weighted(weights)),
        false => Ok(source),
    }
}

/// Returns the weights of all projections of the stack by their noise in some rows; 1 for those that are not used.
///
/// # Errors
/// As of [`with_noise_weights`].
pub(super) fn noise_weights(source: &Source, job: &Job, reporter: &Reporter) -> Result<Vec<f64>> {
    reporter.stage("measuring the noise of projections");
    let (bins, used) = (source.stack().width(), source.scan.used.clone());
    let sinograms = corrected_rows(source, job, &source.sampled_rows(), reporter)?;
    source.forget_block();
    let of_projection = |p: usize| -> f64 {
        let rows: Vec<f32> =
            sinograms.iter().flat_map(|sinogram| &sinogram[p * bins..(p + 1) * bins]).copied().collect();
        noise_along(&rows, bins)
    };
    let noise: Vec<f64> = (0..used.len()).map(of_projection).collect();
    let mut sorted = noise.clone();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
    reporter.note(&format!(
        "note: noise of projections {} to {}, by which they are weighted",
        brief(least),
        brief(most)
    ));
    let mut weights = vec![1.0; used.iter().max().map_or(0, |last| last + 1)];
    for (p, noise) in used.into_iter().zip(noise) {
        if middle > 0.0 {
            weights[p] = (noise / middle).max(LEAST).powi(-2);
        }
    }
    Ok(weights)
}
