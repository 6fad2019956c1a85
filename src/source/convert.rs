//! Sample types and their conversion to f32.

use half::f16;
use half::slice::HalfFloatSliceExt;
use std::fmt;

/// Type of a sample as a page stores it.
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

    /// Returns the type for the values of the TIFF tags SampleFormat and BitsPerSample.
    pub(super) fn from_tags(format: u64, bits: u64) -> Option<SampleType> {
        Some(match (format, bits) {
            (1 | 4, 8) => SampleType::U8, // 4 is "undefined", in practice unsigned
            (1 | 4, 16) => SampleType::U16,
            (1 | 4, 32) => SampleType::U32,
            (1 | 4, 64) => SampleType::U64,
            (2, 8) => SampleType::I8,
            (2, 16) => SampleType::I16,
            (2, 32) => SampleType::I32,
            (2, 64) => SampleType::I64,
            (3, 16) => SampleType::F16,
            (3, 32) => SampleType::F32,
            (3, 64) => SampleType::F64,
            _ => return None,
        })
    }

    /// Returns the value of the TIFF tag SampleFormat.
    pub(super) fn format_tag(self) -> u16 {
        match self {
            SampleType::U8 | SampleType::U16 | SampleType::U32 | SampleType::U64 => 1,
            SampleType::I8 | SampleType::I16 | SampleType::I32 | SampleType::I64 => 2,
            SampleType::F16 | SampleType::F32 | SampleType::F64 => 3,
        }
    }
}

/// Type and byte order of samples in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredSamples {
    pub sample: SampleType,
    /// True if the bytes of a sample are in the opposite order of this machine's.
    pub swapped: bool,
}

impl StoredSamples {
    /// Samples of type f32 in the byte order of this machine, to which other samples are converted.
    pub const F32: StoredSamples = StoredSamples { sample: SampleType::F32, swapped: false };
}

impl fmt::Display for SampleType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.format_tag() {
            1 => "unsigned",
            2 => "signed",
            _ => "float",
        };
        write!(f, "{}-bit {kind}", 8 * self.bytes())
    }
}

/// Converts samples to f32; `bytes` holds `out.len()` samples in the given byte order.
pub fn to_f32(bytes: &[u8], sample: SampleType, big_endian: bool, out: &mut [f32]) {
    debug_assert_eq!(bytes.len(), out.len() * sample.bytes());
    macro_rules! convert {
        ($type:ty) => {{
            let words = words::<{ size_of::<$type>() }>(bytes);
            if big_endian {
                for (o, w) in out.iter_mut().zip(words) {
                    *o = <$type>::from_be_bytes(w) as f32;
                }
            } else {
                for (o, w) in out.iter_mut().zip(words) {
                    *o = <$type>::from_le_bytes(w) as f32;
                }
            }
        }};
    }
    match sample {
        SampleType::U8 => convert!(u8),
        SampleType::U16 => convert!(u16),
        SampleType::U32 => convert!(u32),
        SampleType::I8 => convert!(i8),
        SampleType::I16 => convert!(i16),
        SampleType::I32 => convert!(i32),
        SampleType::U64 => convert!(u64),
        SampleType::I64 => convert!(i64),
        SampleType::F32 => convert!(f32),
        SampleType::F64 => convert!(f64),
        SampleType::F16 => {
            // by blocks, because slices convert with the CPU's own instructions
            let mut block = [f16::ZERO; 512];
            for (o, b) in out.chunks_mut(block.len()).zip(bytes.chunks(2 * block.len())) {
                for (h, w) in block.iter_mut().zip(words(b)) {
                    *h = if big_endian { f16::from_be_bytes(w) } else { f16::from_le_bytes(w) };
                }
                let n = o.len();
                block[..n].convert_to_f32_slice(o);
            }
        }
    }
}

/// Splits `bytes` into samples of `N` bytes.
fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    bytes.chunks_exact(N).map(|w| w.try_into().unwrap_or([0; N])) // a chunk always has N bytes
}
