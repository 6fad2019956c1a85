//! Structure of TIFF files, classic and BigTIFF, whose offsets are known before anything is written.

use std::collections::BTreeMap;

/// Kind of TIFF, which determines the width of offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TiffKind {
    /// Offsets of 32 bits.
    Classic,
    /// Offsets of 64 bits.
    Big,
}

/// Value of a tag.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TagValue {
    Shorts(Vec<u16>),
    Long(u32),
    /// Offsets in the file or lengths, as wide as the offsets of the file.
    Offsets(Vec<u64>),
    Rational(u32, u32),
    /// Text, of ASCII characters only.
    Text(String),
}

impl TiffKind {
    /// Returns the number of bytes of an offset.
    fn offset_bytes(self) -> usize {
        match self {
            TiffKind::Classic => 4,
            TiffKind::Big => 8,
        }
    }

    /// Returns the number of bytes of the number of tags.
    fn count_bytes(self) -> usize {
        match self {
            TiffKind::Classic => 2,
            TiffKind::Big => 8,
        }
    }

    /// Returns the number of bytes of a tag in a directory: number, type, count, and value or its offset.
    fn tag_bytes(self) -> usize {
        4 + 2 * self.offset_bytes()
    }

    /// Returns the number of bytes of the header of a file.
    pub fn header_bytes(self) -> usize {
        2 * self.offset_bytes()
    }

    /// Returns the header of a file whose first directory is at the offset `first`.
    pub fn header(self, first: u64) -> Vec<u8> {
        let mut bytes = if cfg!(target_endian = "big") { b"MM".to_vec() } else { b"II".to_vec() };
        match self {
            TiffKind::Classic => bytes.extend(42u16.to_ne_bytes()),
            TiffKind::Big => [43u16, 8, 0].iter().for_each(|word| bytes.extend(word.to_ne_bytes())),
        }
        self.put_offset(&mut bytes, first);
        bytes
    }

    /// Reports whether offsets can represent everything before `end`.
    pub fn reaches(self, end: u64) -> bool {
        self == TiffKind::Big || u32::try_from(end).is_ok()
    }

    fn put_offset(self, bytes: &mut Vec<u8>, offset: u64) {
        match self {
            TiffKind::Classic => bytes.extend((offset as u32).to_ne_bytes()),
            TiffKind::Big => bytes.extend(offset.to_ne_bytes()),
        }
    }
}

impl TagValue {
    /// Returns type, count and bytes.
    fn stored(&self, kind: TiffKind) -> (u16, u64, Vec<u8>) {
        match self {
            TagValue::Text(text) => {
                let bytes: Vec<u8> = text.bytes().chain([0]).collect();
                (2, bytes.len() as u64, bytes)
            }
            TagValue::Shorts(values) => {
                (3, values.len() as u64, values.iter().flat_map(|value| value.to_ne_bytes()).collect())
            }
            TagValue::Long(value) => (4, 1, value.to_ne_bytes().to_vec()),
            TagValue::Rational(above, below) => {
                (5, 1, [above, below].iter().flat_map(|value| value.to_ne_bytes()).collect())
            }
            TagValue::Offsets(values) => {
                let mut bytes = Vec::with_capacity(values.len() * kind.offset_bytes());
                values.iter().for_each(|&value| kind.put_offset(&mut bytes, value));
                let number = if kind == TiffKind::Big { 16 } else { 4 };
                (number, values.len() as u64, bytes)
            }
        }
    }
}

/// Tags of a page, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Directory(BTreeMap<u16, TagValue>);

impl Directory {
    /// Sets a tag.
    pub fn set(&mut self, tag: u16, value: TagValue) {
        self.0.insert(tag, value);
    }

    /// Returns the bytes of the directory at the even offset `at` of a file, followed by its values. `next` is the
    /// offset of the directory of the next page, or 0 for the last page.
    pub fn bytes(&self, kind: TiffKind, at: u64, next: u64) -> Vec<u8> {
        let fixed = kind.count_bytes() + self.0.len() * kind.tag_bytes() + kind.offset_bytes();
        let (mut bytes, mut values) = (Vec::with_capacity(fixed), Vec::new());
        match kind {
            TiffKind::Classic => bytes.extend((self.0.len() as u16).to_ne_bytes()),
            TiffKind::Big => bytes.extend((self.0.len() as u64).to_ne_bytes()),
        }
        for (tag, value) in &self.0 {
            let (number, count, mut stored) = value.stored(kind);
            bytes.extend(tag.to_ne_bytes());
            bytes.extend(number.to_ne_bytes());
            kind.put_offset(&mut bytes, count);
            if stored.len() <= kind.offset_bytes() {
                stored.resize(kind.offset_bytes(), 0);
                bytes.extend(stored);
            } else {
                kind.put_offset(&mut bytes, at + (fixed + values.len()) as u64);
                values.extend(stored);
                // values begin at even offsets
                values.resize(values.len().next_multiple_of(2), 0);
            }
        }
        kind.put_offset(&mut bytes, next);
        bytes.extend(values);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tag;

    /// A file is read back by a library: values beside and in the tags, directories before their pages or after.
    #[test]
    fn directories_read_back() {
        use tiff::decoder::Decoder;
        use tiff::tags::Tag;
        for kind in [TiffKind::Classic, TiffKind::Big] {
            let page = |number: u16, at: u64| {
                let mut directory = Directory::default();
                for (tag, value) in [(tag::IMAGE_WIDTH, 1), (tag::IMAGE_LENGTH, 3), (tag::ROWS_PER_STRIP, 1)] {
                    directory.set(tag, TagValue::Long(value));
                }
                for (tag, value) in [
                    (tag::BITS_PER_SAMPLE, 8),
                    (tag::COMPRESSION, 1),
                    (tag::PHOTOMETRIC_INTERPRETATION, 1),
                    (tag::SAMPLES_PER_PIXEL, 1),
                ] {
                    directory.set(tag, TagValue::Shorts(vec![value]));
                }
                directory.set(tag::STRIP_OFFSETS, TagValue::Offsets(vec![at, at + 1, at + 2]));
                directory.set(tag::STRIP_BYTE_COUNTS, TagValue::Offsets(vec![1; 3]));
                directory.set(tag::X_RESOLUTION, TagValue::Rational(7, 3));
                directory.set(tag::PAGE_NUMBER, TagValue::Shorts(vec![number, 2]));
                directory.set(tag::SOFTWARE, TagValue::Text("of odd length".into()));
                directory.set(tag::IMAGE_DESCRIPTION, TagValue::Text(number.to_string()));
                directory
            };
            let data = kind.header_bytes() as u64;
            let first = data + 6;
            let second = first + page(0, data).bytes(kind, 0, 0).len() as u64;
            let mut file = kind.header(first);
            file.extend([10u8, 20, 30, 40, 50, 60]);
            file.extend(page(0, data).bytes(kind, first, second));
            file.extend(page(1, data + 3).bytes(kind, second, 0));
            let mut decoder = Decoder::new(std::io::Cursor::new(file)).unwrap();
            for number in 0..2u16 {
                let image = decoder.read_image().unwrap();
                let samples: Vec<u8> = (1..4).map(|i| 10 * (i + 3 * number as u8)).collect();
                assert!(matches!(image, tiff::decoder::DecodingResult::U8(found) if found == samples));
                assert_eq!(decoder.get_tag_ascii_string(Tag::Software).unwrap(), "of odd length");
                assert_eq!(decoder.get_tag_ascii_string(Tag::ImageDescription).unwrap(), number.to_string());
                assert_eq!(decoder.get_tag_u16_vec(Tag::Unknown(297)).unwrap(), [number, 2]);
                assert_eq!(decoder.get_tag_u32_vec(Tag::XResolution).unwrap(), [7, 3]);
                assert_eq!(decoder.more_images(), number == 0);
                if number == 0 {
                    decoder.next_image().unwrap();
                }
            }
        }
        assert!(TiffKind::Classic.reaches(u32::MAX.into()) && !TiffKind::Classic.reaches(1 << 32));
        assert!(TiffKind::Big.reaches(1 << 40));
    }
}
