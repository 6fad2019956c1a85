//! From counts of a row to transmissions, and values that later steps can carry.

use multiversion::multiversion;

// The following functions are also compiled for newer processors with wider vectors. Results are the same: rounding does
// not change.

/// Converts counts to transmissions, with the flat field at `progress` between `first` and `second`; returns the number
/// of bins without light in the flat field.
#[multiversion(targets("x86_64+avx2"))]
pub fn transmissions(
    values: &mut [f32],
    first: &[f32],
    second: &[f32],
    progress: f32,
    dark: &[f32],
    largest: f32,
) -> u64 {
    let mut dead = 0u32;
    for (((value, &first), &second), &dark) in values.iter_mut().zip(first).zip(second).zip(dark) {
        let beam = first + progress * (second - first) - dark;
        let transmission = (*value - dark) / beam;
        let lit = (beam > 0.0) & (beam <= largest);
        dead += u32::from(!lit);
        *value = if lit { transmission } else { 1.0 };
    }
    dead.into()
}

/// Computes the mean beam of a row, with the flat field at `progress` between `first` and `second`.
#[multiversion(targets("x86_64+avx2"))]
pub fn mean_beam(beam: &mut [f32], first: &[f32], second: &[f32], progress: f32, dark: &[f32]) {
    for (((beam, &first), &second), &dark) in beam.iter_mut().zip(first).zip(second).zip(dark) {
        *beam = first + progress * (second - first) - dark;
    }
}

/// Adds a component with its weight to the beam of a row.
#[multiversion(targets("x86_64+avx2"))]
pub fn add_component(beam: &mut [f32], component: &[f32], weight: f32) {
    beam.iter_mut().zip(component).for_each(|(beam, value)| *beam += weight * value);
}

/// Converts counts to transmissions by the beam of their row; returns the number of bins without light.
#[multiversion(targets("x86_64+avx2"))]
pub fn divided(values: &mut [f32], beam: &[f32], dark: &[f32], largest: f32) -> u64 {
    let mut dead = 0u32;
    for ((value, &beam), &dark) in values.iter_mut().zip(beam).zip(dark) {
        let transmission = (*value - dark) / beam;
        let lit = (beam > 0.0) & (beam <= largest);
        dead += u32::from(!lit);
        *value = if lit { transmission } else { 1.0 };
    }
    dead.into()
}

/// Reports whether the filter and back-projection carry a value; false for NaN.
#[inline(always)]
pub fn is_carried(value: f32, largest: f32) -> bool {
    value.abs() <= largest
}

/// Replaces values that are not finite or have a magnitude above `largest` by `instead`; returns their number.
#[multiversion(targets("x86_64+avx2"))]
pub fn finite(values: &mut [f32], instead: f32, largest: f32) -> u64 {
    let mut non_finite = 0u32;
    for value in values {
        let finite = is_carried(*value, largest);
        non_finite += u32::from(!finite);
        *value = if finite { *value } else { instead };
    }
    non_finite.into()
}

/// Returns the position of a projection between the flats before and after the scan, 0 to 1.
pub(super) fn progress(projection: usize, projections: usize) -> f32 {
    projection as f32 / projections.saturating_sub(1).max(1) as f32
}
