//! The processors that run the steps around the filter.

use serde::{Deserialize, Serialize};

/// The processor that runs a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepBackend {
    /// Kernels on the device.
    #[default]
    Device,
    /// The host's processors.
    Host,
}

/// The processors that run the steps around the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct StepBackends {
    /// Steps on rows of projections: from counts to line integrals.
    pub rows: StepBackend,
    /// Steps on projections as images, among the steps on rows: tilt and phase.
    pub images: StepBackend,
    /// Steps on sinograms: stripes.
    pub sinograms: StepBackend,
    /// Encoding of slices as they are written, and counts of their values.
    pub slices: StepBackend,
    /// Least squares: the search of slices by `tv` and `huber`.
    pub solver: StepBackend,
}

impl StepBackends {
    /// The host for all steps.
    pub const HOST: StepBackends = StepBackends {
        rows: StepBackend::Host,
        images: StepBackend::Host,
        sinograms: StepBackend::Host,
        slices: StepBackend::Host,
        solver: StepBackend::Host,
    };
}
