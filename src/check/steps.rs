//! Tests, before a run, of the steps that a device does: results for small data are compared with the host's and with
//! definitions in `f64`.

use super::step_check::{StepCheck, StepError, TestShape};
use crate::device::Session;
use crate::digest::PartsDigest;
use crate::error::Result;
use crate::geometry::Roi;
use crate::kernel::{ImageFilterBackend, StepBackend, StepBackends, StepSizes};
use crate::operations::{EncodedSample, files};
use crate::steps::stripes::Stripes;
use crate::steps::{Air, Outliers, Paganin, Steps, Tilt, Unsharp};

/// The steps that a device is to do.
pub struct DeviceSteps<'a> {
    pub steps: &'a Steps,
    pub backends: StepBackends,
    /// Number of bins and rows that the device makes one of.
    pub binning: usize,
    /// True if rows are extended.
    pub extended: bool,
    /// The sample type that slices are written as.
    pub sample: EncodedSample,
    /// True if the device counts the values of slices.
    pub counts_values: bool,
    pub shape: TestShape,
}

impl DeviceSteps<'_> {
    /// Returns a key that identifies the steps, the backend that transforms images, the sizes of work-groups and the
    /// text of all kernels; `None` if the device does no step.
    pub fn key(&self, sizes: &StepSizes, images: ImageFilterBackend) -> Option<String> {
        let names: Vec<String> = self.checks().iter().map(|check| check.name().to_owned()).collect();
        let texts = files().iter().map(|((_, text), _)| *text).collect::<Vec<_>>().concat();
        let (names, sizes) = (names.join(" "), format!("{sizes:?} {images:?} {:?}", self.shape));
        (!names.is_empty()).then(|| format!("steps-{}", PartsDigest::of([names, sizes, texts])))
    }

    /// Returns the checks that are done before the run.
    fn checks(&self) -> Vec<StepCheck> {
        let Steps { outliers, fields, air, double_flat, tilt, phase, hardening, stripes, .. } = self.steps;
        // the tilt is part of the table
        let mapped = self.shape.images.is_some_and(|(_, blocks)| blocks.mapped);
        let mut all =
            vec![StepCheck::rows(outliers.clone()), StepCheck::samples(self.sample), StepCheck::least_squares()];
        all.extend((self.binning > 1).then(|| StepCheck::binning(self.binning)));
        all.extend(air.map(StepCheck::air));
        all.extend(fields.eigen.map(|_| StepCheck::eigen_flats()));
        all.extend(double_flat.map(|_| StepCheck::double_flat()));
        all.extend(if mapped { Some(StepCheck::distortion()) } else { tilt.map(StepCheck::tilt) });
        all.extend(phase.map(StepCheck::phase));
        all.extend(hardening.clone().map(StepCheck::hardening));
        all.extend(stripes.iter().copied().map(StepCheck::stripes));
        all.extend(self.extended.then(StepCheck::extension));
        all.retain(|check| check.backend(self.backends) == StepBackend::Device);
        // also of slices that the host finishes
        all.extend(self.counts_values.then(StepCheck::histogram));
        all
    }

    /// Runs the checks of all steps.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn check(&self, session: &Session) -> Result<Vec<StepError>> {
        self.checks().iter().map(|check| check.run(session, self.shape)).collect()
    }
}

/// Returns the checks of all steps that a device can do, with usual parameters.
pub fn all_step_checks() -> Vec<StepCheck> {
    let sharp = Paganin { length: 2.0, unsharp: Some(Unsharp { sigma: 1.5, amount: 2.0 }) };
    let region = Roi { x: 0, y: 0, width: 9, height: 5 };
    let samples = [EncodedSample::Float, EncodedSample::Half, EncodedSample::Unsigned16, EncodedSample::Unsigned8];
    let mut all = vec![
        StepCheck::binning(2),
        StepCheck::binning(3),
        StepCheck::rows(None),
        StepCheck::rows(Some(Outliers::new(3, 400.0, true))),
        StepCheck::air(Air::Sides(9, 5)),
        StepCheck::air(Air::Region(region)),
        StepCheck::eigen_flats(),
        StepCheck::double_flat(),
        StepCheck::distortion(),
        StepCheck::tilt(Tilt { degrees: 0.7 }),
        StepCheck::phase(sharp),
    ];
    all.extend("0.1,-0.02".parse().ok().map(StepCheck::hardening));
    all.extend(Stripes::all_methods().into_iter().map(StepCheck::stripes));
    all.push(StepCheck::extension());
    all.extend(samples.map(StepCheck::samples));
    all.extend([StepCheck::histogram(), StepCheck::least_squares()]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_margin() {
        let page = include_str!("../../docs/dev/steps.md");
        let row = |check: &StepCheck| {
            let (error, reason) = check.margin();
            format!("| `{}` | {error:.0e} | {reason} |\n", check.name())
        };
        let table: String = all_step_checks().iter().map(row).collect();
        assert!(page.contains(&table), "docs/dev/steps.md lacks\n{table}");
    }
}
