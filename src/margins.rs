//! How far a kernel's result may be from the `f64` reference, in one table, each value with its reason.

use crate::kernelgen::Texel;
use crate::profile::{Interpolation, Storage};

/// A bound on the relative error: root mean square of the difference over that of the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    pub relative_rms: f64,
    pub reason: &'static str,
}

/// The margin of a kernel that reads `texel` with this storage and interpolation.
///
/// For nearest interpolation, positions within [`TIE`] of the middle between two bins may go either way and are
/// taken out of the comparison.
pub fn margin(texel: Texel, storage: Storage, interpolation: Interpolation) -> Margin {
    let explicit = matches!(texel, Texel::Buffer) || interpolation == Interpolation::Nearest;
    match (explicit, storage) {
        (true, Storage::Float) => Margin {
            relative_rms: 1e-5,
            reason: "rounding of f32 arithmetic and of a single-precision transform",
        },
        (true, Storage::Half) => Margin {
            relative_rms: 5e-4,
            reason: "filtered values are stored with the 11 bits of half",
        },
        (false, Storage::Float) => Margin {
            relative_rms: 3e-3,
            reason: "texture units interpolate with weights of 8 bits",
        },
        (false, Storage::Half) => Margin {
            relative_rms: 3e-3,
            reason: "values of 11 bits, interpolated by the texture unit with weights of 8 bits",
        },
    }
}

/// Half width, in bins, of the zone around a tie of nearest interpolation that rounding may decide.
pub const TIE: f64 = 1e-4;
