//! Tags of a page and types of their values, by the names of TIFF 6.0 (1992) and BigTIFF.

use strum::{FromRepr, IntoStaticStr};

/// Tag of a page that this program reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[repr(u16)]
pub enum Tag {
    ImageWidth = 256,
    ImageLength = 257,
    BitsPerSample = 258,
    Compression = 259,
    PhotometricInterpretation = 262,
    FillOrder = 266,
    ImageDescription = 270,
    StripOffsets = 273,
    Orientation = 274,
    SamplesPerPixel = 277,
    RowsPerStrip = 278,
    StripByteCounts = 279,
    XResolution = 282,
    YResolution = 283,
    ResolutionUnit = 296,
    PageNumber = 297,
    Software = 305,
    Predictor = 317,
    TileWidth = 322,
    TileLength = 323,
    TileOffsets = 324,
    TileByteCounts = 325,
    SampleFormat = 339,
    JpegTables = 347,
}

impl Tag {
    /// Returns the number of the tag.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// Returns the name of the tag.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Type of the values of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr)]
#[repr(u16)]
pub enum FieldType {
    Byte = 1,
    Ascii = 2,
    Short = 3,
    Long = 4,
    Rational = 5,
    SignedByte = 6,
    Undefined = 7,
    SignedShort = 8,
    SignedLong = 9,
    Ifd = 13,
    Long8 = 16,
    SignedLong8 = 17,
    Ifd8 = 18,
}

impl FieldType {
    /// Returns the number of bytes of a value that is an integer or a character.
    pub fn integer_bytes(self) -> Option<usize> {
        match self {
            FieldType::Byte | FieldType::Ascii | FieldType::SignedByte | FieldType::Undefined => Some(1),
            FieldType::Short | FieldType::SignedShort => Some(2),
            FieldType::Long | FieldType::SignedLong | FieldType::Ifd => Some(4),
            FieldType::Long8 | FieldType::SignedLong8 | FieldType::Ifd8 => Some(8),
            FieldType::Rational => None,
        }
    }
}
