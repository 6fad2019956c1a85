//! Conversion of samples to f32.

use super::SampleType;
use half::f16;
use half::slice::HalfFloatSliceExt;

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
