//! Two half scans of the middle slice, for `--resolution`.

use super::errors::ReconstructFlagError;
use super::overview::middle;
use super::reconstruction::Reconstruction;
use crate::engine::row_slices;
use crate::error::{Error, Result};
use crate::geometry::Geometry;
use crate::report::Reporter;
use crate::resolution::{HalfScans, LEAST_SIDE, Resolution};

/// Least number of projections of two half scans.
const LEAST_PROJECTIONS: usize = 4;

impl Reconstruction<'_> {
    /// Measures the resolution of the middle slice, if that was asked for.
    ///
    /// # Errors
    /// [`Error::Usage`] if there are not enough projections or pixels; errors of a run.
    pub fn resolution(self) -> Result<Option<Resolution>> {
        let Reconstruction { job, source, reporter, .. } = self;
        if !job.execution.resolution {
            return Ok(None);
        }
        let scan = &source.scan;
        let used = scan.used.len();
        if used < LEAST_PROJECTIONS {
            return Err(ReconstructFlagError::FewForHalves { used, least: LEAST_PROJECTIONS }.into());
        }
        let (size, radius) = (scan.geometry.size, seen_radius(&scan.geometry));
        let side = (2.0 * radius).min(size as f64);
        if side < LEAST_SIDE as f64 {
            return Err(ReconstructFlagError::SmallForRings { side, least: LEAST_SIDE }.into());
        }
        reporter.stage("reconstructing half scans");
        let (slice, mut halves) = (middle(&scan.slices), Vec::new());
        row_slices(&job.halves(&scan.used), source, (slice, 0), &Reporter::silent(), |_, half| {
            halves.push(half.values);
            Ok(())
        })?;
        let halves = halves.try_into().map_err(|_| Error::Internal("there are not two half scans".into()))?;
        let scans = HalfScans { slice, size, radius, halves };
        Ok(Resolution::of(&scans, job.recipe.slice.pixel_size.as_ref()))
    }
}

/// Returns the radius in pixels of the circle about the axis that all projections see.
fn seen_radius(geometry: &Geometry) -> f64 {
    let last = geometry.bins as f64 - 1.0;
    geometry.axis.iter().map(|axis| axis.min(last - axis) + 0.5).fold(f64::INFINITY, f64::min)
}
