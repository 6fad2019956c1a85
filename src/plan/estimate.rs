//! How long a run should take, from what was measured on its device.

use super::{Plan, Scan};
use crate::facts::DeviceFacts;
use crate::kernel::Interpolation;
use crate::profile::MeasuredSpeed;
use crate::recipe::Recipe;

impl Plan {
    /// Returns the seconds of back projection, from the profile's measurements of this kernel on this device, if there
    /// are any and the kernel finds the slices.
    pub fn estimate(&self, scan: &Scan, facts: &DeviceFacts, recipe: &Recipe) -> Option<f64> {
        if recipe.solver.is_some() || self.lamino.is_some() {
            return None;
        }
        let measured = self
            .measured(facts, recipe, self.spec.interpolation)
            .find(|m| m.algorithm == self.spec.parameters.algorithm() && m.slices == self.spec.slices)?;
        Some(seconds(measured, scan))
    }

    /// Returns the measurements of this device in the recipe's mode and with an interpolation.
    fn measured(
        &self,
        facts: &DeviceFacts,
        recipe: &Recipe,
        interpolation: Interpolation,
    ) -> impl Iterator<Item = &MeasuredSpeed> {
        let mode = recipe.kernel.mode;
        let of_device = move |m: &&MeasuredSpeed| facts.name.contains(&m.device) && m.mode == mode;
        self.profile.measured.iter().filter(of_device).filter(move |m| m.interpolation == interpolation)
    }

    /// Returns a note if exact interpolation would be much faster.
    pub(super) fn exact_is_faster(&self, scan: &Scan, facts: &DeviceFacts, recipe: &Recipe) -> Option<String> {
        if self.spec.interpolation != Interpolation::Linear {
            return None;
        }
        let linear = self.estimate(scan, facts, recipe).filter(|seconds| *seconds > LONG)?;
        let of_exact = self.measured(facts, recipe, Interpolation::Exact).map(|m| seconds(m, scan));
        let exact = of_exact.min_by(f64::total_cmp).filter(|exact| *exact < linear / 2.0)?;
        Some(format!(
            "back projection will take about {linear:.0} s; --interpolation exact takes about {exact:.0} s, and is sharper, \
             with the noise of all frequencies"
        ))
    }
}

/// Returns the seconds that back projection should take by a measurement.
///
/// The work of gridding for a slice of side N from P projections grows as N (N + P), not as N N P.
fn seconds(measured: &MeasuredSpeed, scan: &Scan) -> f64 {
    let plain = scan.updates() / (measured.gu_per_s * 1e9);
    if measured.interpolation != Interpolation::Exact {
        return plain;
    }
    let share = |size: f64, projections: f64| 1.0 / size + 1.0 / projections;
    let [_, projections, size] = measured.problem.map(f64::from);
    plain * share(scan.geometry.size as f64, scan.geometry.projections() as f64) / share(size, projections)
}

/// Seconds above which a run is long.
const LONG: f64 = 60.0;
