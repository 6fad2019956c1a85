//! Encoding of values as samples.

use crate::error::{Result, messages};
use crate::layout::SampleType;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

messages! {
    /// Errors of the values that integers stand for.
    enum SampleRangeError: Usage {
        Unordered { low: f32, high: f32 } => "--range {low},{high}: expected two finite numbers, the smaller one first",
        Missing =>
            "--dtype u8 and u16 need the values that map to 0 and the largest integer";
            "add --range MIN,MAX or --percentile LO,HI",
    }
}

/// Type of a stored sample.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Dtype {
    /// 32-bit float
    #[default]
    F32,
    /// 16-bit float
    F16,
    /// 16-bit unsigned over a range
    U16,
    /// 8-bit unsigned over a range
    U8,
}

impl Dtype {
    /// Reports whether values are scaled to integers.
    pub fn is_integer(self) -> bool {
        matches!(self, Dtype::U16 | Dtype::U8)
    }

    /// Returns the type of the samples in a file.
    pub(super) fn sample(self) -> SampleType {
        match self {
            Dtype::F32 => SampleType::F32,
            Dtype::F16 => SampleType::F16,
            Dtype::U16 => SampleType::U16,
            Dtype::U8 => SampleType::U8,
        }
    }

    /// Returns the number of bytes of one sample.
    pub fn bytes(self) -> usize {
        self.sample().bytes()
    }
}

/// Sample type and, for integers, the values that map to 0 and to the largest integer.
///
/// Values are rounded to the nearest integer and clamped; floats ignore the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoding {
    /// Type of a sample.
    pub dtype: Dtype,
    /// Values `(min, max)`: min maps to 0, max to 65535 or 255. Required for integers.
    pub range: Option<(f32, f32)>,
}

impl Encoding {
    /// Returns the value of a stored sample, which is within half a step of the original value if that was in the
    /// range.
    pub fn value_of(&self, sample: f32) -> f32 {
        let top = match self.dtype {
            Dtype::F32 | Dtype::F16 => return sample,
            Dtype::U16 => 65535.0,
            Dtype::U8 => 255.0,
        };
        let (low, high) = self.range.map_or((0.0, top), |(low, high)| (f64::from(low), f64::from(high)));
        (low + f64::from(sample) * ((high - low) / top)) as f32
    }

    /// Returns the range after checking it; for floats, which ignore it, an arbitrary one.
    pub(super) fn checked_range(&self) -> Result<(f32, f32)> {
        match (self.dtype, self.range) {
            (Dtype::F32 | Dtype::F16, _) => Ok((0.0, 1.0)),
            (_, Some((min, max))) if min.is_finite() && max.is_finite() && min < max => Ok((min, max)),
            (_, Some((low, high))) => Err(SampleRangeError::Unordered { low, high }.into()),
            (_, None) => Err(SampleRangeError::Missing.into()),
        }
    }
}

/// Counts the values outside a range, including NaN.
pub(super) fn outside(values: &[f32], (min, max): (f32, f32)) -> u64 {
    values.iter().map(|&v| u64::from(!(v >= min && v <= max))).sum()
}

/// Returns the integer in `0..=top` nearest to a value, where `min` maps to 0 and `max` to `top`; 0 for NaN.
pub(super) fn nearest(value: f32, (min, max): (f32, f32), top: f64) -> u64 {
    let (low, high) = (f64::from(min), f64::from(max));
    let place = (f64::from(value) - low) * (top / (high - low));
    // from 2^52 on a double has no fraction, so the sum is rounded and its last bits are the integer
    (place.max(0.0).min(top) + (1u64 << 52) as f64).to_bits() & 0xffff
}
