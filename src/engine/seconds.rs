//! Seconds of a device.

use opencl3::event::Event;
use serde::Serialize;

/// Seconds that a device spent in each stage: filter and back projection by its own clock if that runs, the others by
/// the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct DeviceSeconds {
    pub upload: f64,
    /// Steps on sinograms before the filter, and the examination of their rows for least squares.
    pub steps: f64,
    pub filter: f64,
    pub back_projection: f64,
    /// Least squares.
    pub solver: f64,
    /// Counting and encoding slices.
    pub finish: f64,
    pub download: f64,
}

impl std::ops::Add for DeviceSeconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        DeviceSeconds {
            upload: self.upload + other.upload,
            steps: self.steps + other.steps,
            filter: self.filter + other.filter,
            back_projection: self.back_projection + other.back_projection,
            solver: self.solver + other.solver,
            finish: self.finish + other.finish,
            download: self.download + other.download,
        }
    }
}

/// Returns the sum of the seconds that finished commands took on the device; 0 if the driver does not tell.
pub(super) fn seconds(events: &[Event]) -> f64 {
    events
        .iter()
        .filter_map(|event| {
            let start = event.profiling_command_start().ok()?;
            let end = event.profiling_command_end().ok()?;
            Some(end.saturating_sub(start) as f64 * 1e-9)
        })
        .sum()
}
