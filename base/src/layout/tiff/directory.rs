//! Directories: the tags of a page with their values, whose offsets are known before anything is written.

use super::form::{TiffForm, TiffKind};
use super::tag::{FieldType, Tag};
use std::collections::BTreeMap;

/// Value of a tag.
#[derive(Clone, Debug, PartialEq)]
pub enum TagValue {
    Short(u16),
    Shorts(Vec<u16>),
    Long(u32),
    /// Offsets in the file or lengths, as wide as the offsets of the file.
    Offsets(Vec<u64>),
    Rational(u32, u32),
    /// Text, of ASCII characters only.
    Text(String),
    /// Bytes of a form that the tag defines.
    Bytes(Vec<u8>),
}

impl TagValue {
    /// Returns type, count and bytes.
    fn stored(&self, form: TiffForm) -> (FieldType, u64, Vec<u8>) {
        match self {
            TagValue::Text(text) => {
                let bytes: Vec<u8> = text.bytes().chain([0]).collect();
                (FieldType::Ascii, bytes.len() as u64, bytes)
            }
            TagValue::Bytes(bytes) => (FieldType::Undefined, bytes.len() as u64, bytes.clone()),
            TagValue::Short(value) => (FieldType::Short, 1, form.short(*value).to_vec()),
            TagValue::Shorts(values) => {
                let bytes = values.iter().flat_map(|&value| form.short(value)).collect();
                (FieldType::Short, values.len() as u64, bytes)
            }
            TagValue::Long(value) => (FieldType::Long, 1, form.long(*value).to_vec()),
            TagValue::Rational(above, below) => {
                (FieldType::Rational, 1, [form.long(*above), form.long(*below)].concat())
            }
            TagValue::Offsets(values) => {
                let mut bytes = Vec::with_capacity(values.len() * form.offset_bytes());
                values.iter().for_each(|&value| form.put_offset(&mut bytes, value));
                let field = match form.kind {
                    TiffKind::Classic => FieldType::Long,
                    TiffKind::Big => FieldType::Long8,
                };
                (field, values.len() as u64, bytes)
            }
        }
    }
}

/// Entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagEntry {
    /// Number of the tag.
    pub tag: u16,
    /// Number of the type of its values.
    pub field: u16,
    /// Number of values.
    pub count: u64,
    /// Values, if they fit the width of an offset, or the offset of the values in the file.
    pub value: [u8; 8],
}

impl TagEntry {
    /// Returns the number of bytes of an entry: number, type, count, and value or its offset.
    pub fn bytes(form: TiffForm) -> usize {
        4 + 2 * form.offset_bytes()
    }

    /// Reads an entry from its bytes.
    fn parse(bytes: &[u8], form: TiffForm) -> TagEntry {
        let width = form.offset_bytes();
        let mut value = [0; 8];
        value[..width].copy_from_slice(&bytes[4 + width..]);
        TagEntry {
            tag: form.number(&bytes[..2]) as u16,
            field: form.number(&bytes[2..4]) as u16,
            count: form.number(&bytes[4..4 + width]),
            value,
        }
    }

    /// Reads all entries of a directory from the bytes after their number, and the offset of the next directory, which
    /// is 0 after the last page.
    pub fn parse_all(bytes: &[u8], form: TiffForm) -> (Vec<TagEntry>, u64) {
        let (entries, next) = bytes.split_at(bytes.len().saturating_sub(form.offset_bytes()));
        let entries = entries.chunks_exact(TagEntry::bytes(form)).map(|entry| TagEntry::parse(entry, form));
        (entries.collect(), form.number(next))
    }

    fn put(&self, bytes: &mut Vec<u8>, form: TiffForm) {
        bytes.extend(form.short(self.tag));
        bytes.extend(form.short(self.field));
        form.put_offset(bytes, self.count);
        bytes.extend(&self.value[..form.offset_bytes()]);
    }
}

/// Tags of a page, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Directory(BTreeMap<Tag, TagValue>);

impl Directory {
    /// Sets a tag.
    pub fn set(&mut self, tag: Tag, value: TagValue) {
        self.0.insert(tag, value);
    }

    /// Returns the bytes of the directory at the even offset `at` of a file, followed by its values. `next` is the
    /// offset of the directory of the next page, or 0 for the last page.
    pub fn bytes(&self, form: TiffForm, at: u64, next: u64) -> Vec<u8> {
        let width = form.offset_bytes();
        let fixed = form.count_bytes() + self.0.len() * TagEntry::bytes(form) + width;
        let (mut bytes, mut values) = (Vec::with_capacity(fixed), Vec::new());
        match form.kind {
            TiffKind::Classic => bytes.extend(form.short(self.0.len() as u16)),
            TiffKind::Big => form.put_offset(&mut bytes, self.0.len() as u64),
        }
        for (tag, value) in &self.0 {
            let (field, count, mut stored) = value.stored(form);
            if stored.len() > width {
                let mut offset = Vec::with_capacity(width);
                form.put_offset(&mut offset, at + (fixed + values.len()) as u64);
                values.extend(std::mem::replace(&mut stored, offset));
                // values begin at even offsets
                values.resize(values.len().next_multiple_of(2), 0);
            }
            let mut value = [0; 8];
            value[..stored.len()].copy_from_slice(&stored);
            TagEntry { tag: tag.number(), field: field as u16, count, value }.put(&mut bytes, form);
        }
        form.put_offset(&mut bytes, next);
        bytes.extend(values);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file is read back by a library: values beside and in the tags, directories before their pages or after.
    #[test]
    fn directories_read_back() {
        use tiff::decoder::Decoder;
        for form in [TiffKind::Classic, TiffKind::Big].map(TiffForm::native) {
            let page = |number: u16, at: u64| {
                let mut directory = Directory::default();
                for (tag, value) in [(Tag::ImageWidth, 1), (Tag::ImageLength, 3), (Tag::RowsPerStrip, 1)] {
                    directory.set(tag, TagValue::Long(value));
                }
                for (tag, value) in [
                    (Tag::BitsPerSample, 8),
                    (Tag::Compression, 1),
                    (Tag::PhotometricInterpretation, 1),
                    (Tag::SamplesPerPixel, 1),
                ] {
                    directory.set(tag, TagValue::Short(value));
                }
                directory.set(Tag::StripOffsets, TagValue::Offsets(vec![at, at + 1, at + 2]));
                directory.set(Tag::StripByteCounts, TagValue::Offsets(vec![1; 3]));
                directory.set(Tag::XResolution, TagValue::Rational(7, 3));
                directory.set(Tag::PageNumber, TagValue::Shorts(vec![number, 2]));
                directory.set(Tag::Software, TagValue::Text("of odd length".into()));
                directory.set(Tag::ImageDescription, TagValue::Text(number.to_string()));
                directory
            };
            let data = form.header_bytes() as u64;
            let first = data + 6;
            let second = first + page(0, data).bytes(form, 0, 0).len() as u64;
            let mut file = form.header(first);
            file.extend([10u8, 20, 30, 40, 50, 60]);
            file.extend(page(0, data).bytes(form, first, second));
            file.extend(page(1, data + 3).bytes(form, second, 0));
            let mut decoder = Decoder::new(std::io::Cursor::new(file)).unwrap();
            for number in 0..2u16 {
                let image = decoder.read_image().unwrap();
                let samples: Vec<u8> = (1..4).map(|i| 10 * (i + 3 * number as u8)).collect();
                assert!(matches!(image, tiff::decoder::DecodingResult::U8(found) if found == samples));
                assert_eq!(decoder.get_tag_ascii_string(tiff::tags::Tag::Software).unwrap(), "of odd length");
                assert_eq!(
                    decoder.get_tag_ascii_string(tiff::tags::Tag::ImageDescription).unwrap(),
                    number.to_string()
                );
                assert_eq!(decoder.get_tag_u16_vec(tiff::tags::Tag::Unknown(297)).unwrap(), [number, 2]);
                assert_eq!(decoder.get_tag_u32_vec(tiff::tags::Tag::XResolution).unwrap(), [7, 3]);
                assert_eq!(decoder.more_images(), number == 0);
                if number == 0 {
                    decoder.next_image().unwrap();
                }
            }
        }
    }

    /// Entries are read as they were written, in all forms.
    #[test]
    fn entries_read_back() {
        for (kind, inline) in [(TiffKind::Classic, 4), (TiffKind::Big, 8)] {
            for big_endian in [false, true] {
                let form = TiffForm { kind, big_endian };
                let mut directory = Directory::default();
                directory.set(Tag::RowsPerStrip, TagValue::Long(70_000));
                directory.set(Tag::Compression, TagValue::Short(50_000));
                directory.set(Tag::PageNumber, TagValue::Shorts(vec![1, 2]));
                directory.set(Tag::StripOffsets, TagValue::Offsets(vec![9]));
                directory.set(Tag::XResolution, TagValue::Rational(5, 3));
                directory.set(Tag::JpegTables, TagValue::Bytes(vec![1; 9]));
                let bytes = directory.bytes(form, 100, 1234);
                let count = form.count_bytes();
                assert_eq!(form.number(&bytes[..count]), 6);
                let fixed = 6 * TagEntry::bytes(form) + form.offset_bytes();
                let (entries, next) = TagEntry::parse_all(&bytes[count..count + fixed], form);
                assert_eq!(next, 1234);
                let found = entries.iter().map(|entry| {
                    let field = FieldType::from_repr(entry.field).unwrap();
                    let size = if field == FieldType::Rational { 8 } else { field.integer_bytes().unwrap() };
                    let length = entry.count as usize * size;
                    let place = form.number(&entry.value[..inline]) as usize;
                    let value = if length <= inline { &entry.value[..length] } else { &bytes[place - 100..][..length] };
                    (entry.tag, value.chunks(size.min(4)).map(|bytes| form.number(bytes)).collect::<Vec<_>>())
                });
                let offset =
                    if kind == TiffKind::Big { if big_endian { vec![0, 9] } else { vec![9, 0] } } else { vec![9] };
                let expected = [
                    (Tag::Compression, vec![50_000]),
                    (Tag::StripOffsets, offset),
                    (Tag::RowsPerStrip, vec![70_000]),
                    (Tag::XResolution, vec![5, 3]),
                    (Tag::PageNumber, vec![1, 2]),
                    (Tag::JpegTables, vec![1; 9]),
                ];
                assert_eq!(found.collect::<Vec<_>>(), expected.map(|(tag, values)| (tag.number(), values)));
            }
        }
    }
}
