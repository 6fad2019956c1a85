//! Types of samples.

use std::fmt;

/// Type of a sample in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleType {
    /// 8-bit unsigned
    U8,
    /// 16-bit unsigned (also 12-bit data in 16-bit words)
    U16,
    /// 32-bit unsigned
    U32,
    /// 8-bit signed
    I8,
    /// 16-bit signed
    I16,
    /// 32-bit signed
    I32,
    /// 64-bit unsigned
    U64,
    /// 64-bit signed
    I64,
    /// 16-bit float
    F16,
    /// 32-bit float
    F32,
    /// 64-bit float
    F64,
}

impl SampleType {
    /// Returns the number of bytes of a stored sample.
    pub fn bytes(self) -> usize {
        match self {
            SampleType::U8 | SampleType::I8 => 1,
            SampleType::U16 | SampleType::I16 | SampleType::F16 => 2,
            SampleType::U32 | SampleType::I32 | SampleType::F32 => 4,
            SampleType::U64 | SampleType::I64 | SampleType::F64 => 8,
        }
    }

    /// Returns the largest value of an integer type.
    pub fn largest(self) -> Option<f32> {
        Some(match self {
            SampleType::U8 => u8::MAX.into(),
            SampleType::U16 => u16::MAX.into(),
            SampleType::U32 => u32::MAX as f32,
            SampleType::I8 => i8::MAX.into(),
            SampleType::I16 => i16::MAX.into(),
            SampleType::I32 => i32::MAX as f32,
            SampleType::U64 => u64::MAX as f32,
            SampleType::I64 => i64::MAX as f32,
            SampleType::F16 | SampleType::F32 | SampleType::F64 => return None,
        })
    }

    /// Reports whether samples have 64 bits; these are converted to f32 before they reach a device.
    pub fn is_long(self) -> bool {
        self.bytes() == 8
    }

    /// Reports whether the type is floating-point.
    pub fn is_float(self) -> bool {
        matches!(self, SampleType::F16 | SampleType::F32 | SampleType::F64)
    }
}

impl fmt::Display for SampleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            SampleType::U8 | SampleType::U16 | SampleType::U32 | SampleType::U64 => "unsigned",
            SampleType::I8 | SampleType::I16 | SampleType::I32 | SampleType::I64 => "signed",
            SampleType::F16 | SampleType::F32 | SampleType::F64 => "float",
        };
        write!(f, "{}-bit {kind}", 8 * self.bytes())
    }
}
