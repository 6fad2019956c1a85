//! Values of tags.

use crate::layout::SampleType;
use strum::FromRepr;

/// Value of the tag `Compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum TiffCompression {
    None = 1,
    Lzw = 5,
    /// JPEG of TIFF 6.0, which later specifications replace.
    OldJpeg = 6,
    Jpeg = 7,
    Deflate = 8,
    PackBits = 32773,
    /// Deflate by its first number.
    OldDeflate = 32946,
    Lzma = 34925,
    Zstd = 50000,
    WebP = 50001,
}

/// Value of the tag `PhotometricInterpretation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum Photometric {
    WhiteIsZero = 0,
    BlackIsZero = 1,
    Rgb = 2,
    Palette = 3,
    Mask = 4,
    Cmyk = 5,
    YCbCr = 6,
}

/// Value of the tag `ResolutionUnit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ResolutionUnit {
    None = 1,
    Centimetre = 3,
}

/// Value of the tag `SampleFormat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum SampleFormat {
    Unsigned = 1,
    Signed = 2,
    Float = 3,
    /// In practice unsigned.
    Undefined = 4,
}

impl SampleFormat {
    /// Returns the format of samples of a type.
    pub fn of(sample: SampleType) -> SampleFormat {
        match sample {
            SampleType::U8 | SampleType::U16 | SampleType::U32 | SampleType::U64 => SampleFormat::Unsigned,
            SampleType::I8 | SampleType::I16 | SampleType::I32 | SampleType::I64 => SampleFormat::Signed,
            SampleType::F16 | SampleType::F32 | SampleType::F64 => SampleFormat::Float,
        }
    }

    /// Returns the type of samples of this format with this number of bits.
    pub fn sample(self, bits: u64) -> Option<SampleType> {
        Some(match (self, bits) {
            (SampleFormat::Unsigned | SampleFormat::Undefined, 8) => SampleType::U8,
            (SampleFormat::Unsigned | SampleFormat::Undefined, 16) => SampleType::U16,
            (SampleFormat::Unsigned | SampleFormat::Undefined, 32) => SampleType::U32,
            (SampleFormat::Unsigned | SampleFormat::Undefined, 64) => SampleType::U64,
            (SampleFormat::Signed, 8) => SampleType::I8,
            (SampleFormat::Signed, 16) => SampleType::I16,
            (SampleFormat::Signed, 32) => SampleType::I32,
            (SampleFormat::Signed, 64) => SampleType::I64,
            (SampleFormat::Float, 16) => SampleType::F16,
            (SampleFormat::Float, 32) => SampleType::F32,
            (SampleFormat::Float, 64) => SampleType::F64,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_bits_give_the_type_back() {
        for sample in [
            SampleType::U8,
            SampleType::U16,
            SampleType::U32,
            SampleType::U64,
            SampleType::I8,
            SampleType::I16,
            SampleType::I32,
            SampleType::I64,
            SampleType::F16,
            SampleType::F32,
            SampleType::F64,
        ] {
            assert_eq!(SampleFormat::of(sample).sample(8 * sample.bytes() as u64), Some(sample));
        }
        assert_eq!(SampleFormat::Undefined.sample(16), Some(SampleType::U16));
        assert_eq!(SampleFormat::Float.sample(8), None);
    }
}
