//! Allowed errors of kernels relative to the `f64` reference, each with its reason.

use crate::kernel::{Interpolation, KernelSpec, Storage, Texel};
use crate::reference::Reads;

/// A bound on the relative error: root mean square of the difference over that of the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    pub relative_rms: f64,
    pub reason: &'static str,
}

/// Returns the margin of a kernel.
///
/// For nearest interpolation and for oversampling, positions within [`TIE`] of the midpoint between two values may be
/// rounded either way and are excluded from the comparison.
pub fn margin(spec: &KernelSpec) -> Margin {
    let family = spec.parameters.family();
    if spec.interpolation == Interpolation::Exact {
        return Margin {
            relative_rms: spec.bound.accuracy,
            reason: "what `--accuracy` asks for: the kernel that spreads frequencies is wide enough for it",
        };
    }
    let by_unit = spec.texel.format().is_some() && family.reads_between_bins(spec.interpolation);
    let split = matches!(spec.texel, Texel::Halves { split: true, .. });
    let half = spec.parameters.storage() == Storage::Half && !split || family.rounds_to_half();
    let absolute = family.counts_from_bin_0() && spec.interpolation == Interpolation::Linear;
    match (by_unit, half, absolute) {
        (false, false, false) => {
            Margin { relative_rms: 1e-5, reason: "rounding of f32 arithmetic and of a single-precision transform" }
        }
        (false, false, true) => Margin {
            relative_rms: 2e-4,
            reason: "positions counted from bin 0 in f32 (Algorithm 1), as texture units take them: 1.6e-4 for white noise on 4096 bins",
        },
        (false, true, _) => {
            Margin { relative_rms: 5e-4, reason: "values, and weights for matrix units, have the 11 bits of half" }
        }
        (true, _, _) => Margin {
            relative_rms: 4e-3,
            reason: "texture units interpolate with weights of 8 bits: 3.0e-3 for ramp-filtered white noise, less for scans",
        },
    }
}

/// Half width of the zone around a tie of nearest interpolation, where rounding may decide, as a share of the distance
/// between two values.
pub const TIE: f64 = 1e-4;

/// Returns the [`TIE`] of a kernel and a detector of `bins` bins. It is wider if positions are counted from bin 0 in
/// `f32`, whose last bit grows with the detector; four additions may each lose half of it.
pub fn tie(spec: &KernelSpec, bins: usize) -> f64 {
    let values = match spec.reads() {
        Reads::Nearest(values) => f64::from(values),
        Reads::Linear | Reads::Exact => 1.0,
    };
    match spec.parameters.family().counts_from_bin_0() {
        true => TIE.max(values * 4.0 * bins as f64 * f64::from(f32::EPSILON) / 2.0),
        false => TIE,
    }
}
