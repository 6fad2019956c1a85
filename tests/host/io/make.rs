//! TIFF files made by hand, so that every layout and every damage is at hand.

use fbp::source::SampleType;
use half::f16;
use std::io::Cursor;
use tiff::encoder::{Compression, TiffEncoder, colortype::Gray8};
use tiff::tags::Tag;

/// What a hand-made TIFF looks like.
#[derive(Clone, Debug)]
pub struct Make {
    pub big_endian: bool,
    pub big_tiff: bool,
    pub sample: SampleType,
    pub width: usize,
    pub height: usize,
    /// Width and height of tiles, or strips of the width 0.
    pub tile: (usize, usize),
    pub compression: u16,
    pub predictor: u16,
    pub photometric: u16,
    pub samples: u16,
    pub header_first: bool,
    pub description: &'static str,
    /// The value of the tag; 0 leaves it out.
    pub orientation: u16,
}

/// A tag with its type, the number of values, and the values or where they are.
type Entry = (u16, u16, usize, Vec<u8>);

/// Where the parts of a page lie in the file, in bytes.
struct Layout {
    directory_at: usize,
    directory_size: usize,
    /// The tables that do not fit into their entries, then the description.
    extra_at: usize,
    /// Of one table; 0 where it fits into its entry.
    table_size: usize,
    offsets: Vec<u8>,
    counts: Vec<u8>,
}

impl Default for Make {
    fn default() -> Self {
        Make {
            big_endian: false,
            big_tiff: false,
            sample: SampleType::U16,
            width: 7,
            height: 5,
            tile: (0, 2),
            compression: 1,
            predictor: 1,
            photometric: 1,
            samples: 1,
            header_first: false,
            description: "",
            orientation: 0,
        }
    }
}

/// A JPEG stream of 8x8 grey pixels of the value 100.
const JPEG: &str = "ffd8ffdb0043000201010101010201010102020202020403020202020504040304060506060605060606070908060709070606080b08090a0a0a0a0a06080b0c0b0a0c090a0a0affc0000b080008000801011100ffc40014000100000000000000000000000000000007ffc40014100100000000000000000000000000000000ffda0008010100003f000f7fffd9";

/// The stream of a compression method for some bytes.
fn compress(bytes: &[u8], compression: u16) -> Vec<u8> {
    let method = match compression {
        1 => return bytes.to_vec(),
        5 => Compression::Lzw,
        8 | 32946 => Compression::Deflate(Default::default()),
        32773 => Compression::Packbits,
        7 if bytes.len() == 64 => {
            return (0..JPEG.len()).step_by(2).map(|i| u8::from_str_radix(&JPEG[i..i + 2], 16).unwrap()).collect();
        }
        _ => return vec![1, 2, 3, 4],
    };
    let mut file = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut file).unwrap().with_compression(method);
    encoder.write_image::<Gray8>(bytes.len() as u32, 1, bytes).unwrap();
    let mut decoder = tiff::decoder::Decoder::new(Cursor::new(file.get_ref())).unwrap();
    let at = decoder.get_tag_u64_vec(Tag::StripOffsets).unwrap()[0] as usize;
    let count = decoder.get_tag_u64_vec(Tag::StripByteCounts).unwrap()[0] as usize;
    file.get_ref()[at..at + count].to_vec()
}

impl Make {
    fn order(&self, mut little: Vec<u8>) -> Vec<u8> {
        if self.big_endian {
            little.reverse();
        }
        little
    }

    fn encode(&self, v: f64) -> Vec<u8> {
        self.order(match self.sample {
            SampleType::U8 => (v as u8).to_le_bytes().to_vec(),
            SampleType::U16 => (v as u16).to_le_bytes().to_vec(),
            SampleType::U32 => (v as u32).to_le_bytes().to_vec(),
            SampleType::I8 => (v as i8).to_le_bytes().to_vec(),
            SampleType::I16 => (v as i16).to_le_bytes().to_vec(),
            SampleType::I32 => (v as i32).to_le_bytes().to_vec(),
            SampleType::U64 => (v as u64).to_le_bytes().to_vec(),
            SampleType::I64 => (v as i64).to_le_bytes().to_vec(),
            SampleType::F16 => f16::from_f64(v).to_le_bytes().to_vec(),
            SampleType::F32 => (v as f32).to_le_bytes().to_vec(),
            SampleType::F64 => v.to_le_bytes().to_vec(),
        })
    }

    /// The bytes of one row of a tile, before compression.
    pub fn predict(&self, row: &[f64]) -> Vec<u8> {
        let n = self.sample.bytes();
        let words: Vec<Vec<u8>> = row.iter().map(|&v| self.encode(v)).collect();
        match self.predictor {
            2 => {
                let number = |w: &[u8]| {
                    let mut little = w.to_vec();
                    if self.big_endian {
                        little.reverse();
                    }
                    little.resize(8, 0);
                    u64::from_le_bytes(little.try_into().unwrap())
                };
                let mut before = 0;
                let mut out = Vec::new();
                for w in &words {
                    let difference = number(w).wrapping_sub(before).to_le_bytes()[..n].to_vec();
                    before = number(w);
                    out.extend(self.order(difference));
                }
                out
            }
            3 => {
                let mut planes = Vec::new();
                for byte in 0..n {
                    // most significant bytes first
                    let at = if self.big_endian { byte } else { n - 1 - byte };
                    planes.extend(words.iter().map(|w| w[at]));
                }
                let mut out = planes.clone();
                for i in 1..planes.len() {
                    out[i] = planes[i].wrapping_sub(planes[i - 1]);
                }
                out
            }
            _ => words.concat(),
        }
    }

    /// The bytes of a file with these pages.
    pub fn file(&self, pages: &[Vec<f64>]) -> Vec<u8> {
        let mut out = self.start();
        let word = self.word();
        let mut link = out.len() - word;
        for values in pages {
            let blobs = self.blobs(values);
            let layout = self.layout(out.len(), &blobs);
            let header = self.directory(&layout);
            assert_eq!(header.len(), layout.directory_size);
            out[link..link + word].copy_from_slice(&self.number(layout.directory_at as u64, word));
            link = layout.directory_at + header.len() - word;
            let mut extra = Vec::new();
            if layout.table_size > 0 {
                extra.extend_from_slice(&layout.offsets);
                extra.extend_from_slice(&layout.counts);
            }
            extra.extend(self.text());
            let data = blobs.concat();
            out.extend(if self.header_first { [header, extra, data] } else { [data, extra, header] }.concat());
        }
        out
    }

    /// Bytes of an offset or a count.
    fn word(&self) -> usize {
        if self.big_tiff { 8 } else { 4 }
    }

    fn number(&self, value: u64, bytes: usize) -> Vec<u8> {
        self.order(value.to_le_bytes()[..bytes].to_vec())
    }

    /// The magic numbers, with an empty link to the first page.
    fn start(&self) -> Vec<u8> {
        let mut out = if self.big_endian { b"MM" } else { b"II" }.to_vec();
        if self.big_tiff {
            out.extend(self.number(43, 2));
            out.extend(self.number(8, 2));
            out.extend(self.number(0, 2));
        } else {
            out.extend(self.number(42, 2));
        }
        out.extend(self.number(0, self.word()));
        out
    }

    fn is_in_strips(&self) -> bool {
        self.tile.0 == 0
    }

    fn tile_width(&self) -> usize {
        if self.is_in_strips() { self.width } else { self.tile.0 }
    }

    /// The compressed tiles or strips of a page; tiles are filled up at the right and below.
    fn blobs(&self, values: &[f64]) -> Vec<Vec<u8>> {
        let (width, height) = (self.tile_width(), self.tile.1);
        let mut blobs = Vec::new();
        for top in (0..self.height).step_by(height) {
            for left in (0..self.width).step_by(width) {
                let mut bytes = Vec::new();
                let bottom = if self.is_in_strips() { self.height.min(top + height) } else { top + height };
                for y in top..bottom {
                    let row: Vec<f64> = (left..left + width)
                        .map(|x| if x < self.width && y < self.height { values[y * self.width + x] } else { 77.0 })
                        .collect();
                    bytes.extend(self.predict(&row));
                }
                blobs.push(compress(&bytes, self.compression));
            }
        }
        blobs
    }

    /// The description with its final zero; empty without one.
    fn text(&self) -> Vec<u8> {
        if self.description.is_empty() { Vec::new() } else { [self.description.as_bytes(), b"\0"].concat() }
    }

    /// Where the parts of a page lie that begins at `base`: header, tables and text, data, or the other way round.
    fn layout(&self, base: usize, blobs: &[Vec<u8>]) -> Layout {
        let word = self.word();
        let text = self.text().len();
        let tags =
            10 + if self.is_in_strips() { 1 } else { 2 } + usize::from(text > 0) + usize::from(self.orientation > 0);
        let directory_size = if self.big_tiff { 8 + tags * 20 + 8 } else { 2 + tags * 12 + 4 };
        // a single offset stands in its entry
        let table_size = if blobs.len() > 1 { blobs.len() * word } else { 0 };
        let data_size: usize = blobs.iter().map(Vec::len).sum();
        let extra_size = 2 * table_size + text;
        let (directory_at, data_at, extra_at) = if self.header_first {
            (base, base + directory_size + extra_size, base + directory_size)
        } else {
            (base + data_size + extra_size, base, base + data_size)
        };
        let (mut offsets, mut counts, mut offset) = (Vec::new(), Vec::new(), data_at);
        for blob in blobs {
            offsets.extend(self.number(offset as u64, word));
            counts.extend(self.number(blob.len() as u64, word));
            offset += blob.len();
        }
        Layout { directory_at, directory_size, extra_at, table_size, offsets, counts }
    }

    /// The tags of a page in ascending order.
    fn entries(&self, layout: &Layout) -> Vec<Entry> {
        let word = self.word();
        let short = |tag: u16, value: u16| (tag, 3, 1, self.number(value.into(), 2));
        let long = |tag: u16, value: usize| (tag, 4, 1, self.number(value as u64, 4));
        // offsets and counts, or where they are
        let table = |tag: u16, table: &[u8], at: usize| {
            let value = if layout.table_size == 0 { table.to_vec() } else { self.number(at as u64, word) };
            (tag, if self.big_tiff { 16 } else { 4 }, table.len() / word, value)
        };
        let offsets = |tag| table(tag, &layout.offsets, layout.extra_at);
        let counts = |tag| table(tag, &layout.counts, layout.extra_at + layout.table_size);
        let mut entries = vec![
            long(256, self.width),
            long(257, self.height),
            short(258, 8 * self.sample.bytes() as u16),
            short(259, self.compression),
            short(262, self.photometric),
        ];
        let text = self.text().len();
        if text > 0 {
            let at = layout.extra_at + 2 * layout.table_size;
            entries.push((270, 2, text, self.number(at as u64, word)));
        }
        if self.is_in_strips() {
            entries.push(offsets(273));
            entries.extend((self.orientation > 0).then(|| short(274, self.orientation)));
            entries.extend([short(277, self.samples), long(278, self.tile.1), counts(279)]);
            entries.push(short(317, self.predictor));
        } else {
            entries.extend((self.orientation > 0).then(|| short(274, self.orientation)));
            entries.extend([short(277, self.samples), short(317, self.predictor)]);
            entries.extend([long(322, self.tile.0), long(323, self.tile.1), offsets(324), counts(325)]);
        }
        let format = match self.sample {
            SampleType::U8 | SampleType::U16 | SampleType::U32 | SampleType::U64 => 1,
            SampleType::I8 | SampleType::I16 | SampleType::I32 | SampleType::I64 => 2,
            _ => 3,
        };
        entries.push(short(339, format));
        entries
    }

    /// The directory of a page, with an empty link to the next one.
    fn directory(&self, layout: &Layout) -> Vec<u8> {
        let word = self.word();
        let entries = self.entries(layout);
        let mut out = self.number(entries.len() as u64, if self.big_tiff { 8 } else { 2 });
        for (tag, kind, count, mut value) in entries {
            out.extend(self.number(tag.into(), 2));
            out.extend(self.number(kind.into(), 2));
            out.extend(self.number(count as u64, word));
            value.resize(word, 0);
            out.extend(value);
        }
        out.extend(self.number(0, word));
        out
    }

    /// Values of one page that this sample type holds exactly.
    pub fn values(&self, page: usize) -> Vec<f64> {
        let extremes: &[f64] = match self.sample {
            SampleType::U8 => &[0.0, 255.0],
            SampleType::U16 => &[0.0, 65535.0, 4095.0],
            SampleType::U32 => &[0.0, 4294967040.0],
            SampleType::I8 => &[-128.0, 127.0],
            SampleType::I16 => &[-32768.0, 32767.0],
            SampleType::I32 => &[-2147483648.0, 2147483520.0],
            // between two values of f32, too: both types round alike
            SampleType::U64 => &[0.0, 18446744073709549568.0, 16777217.0],
            SampleType::I64 => &[-9223372036854775808.0, 9223372036854774784.0, -16777219.0],
            SampleType::F16 => &[-65504.0, 0.5, 6.1035156e-5],
            SampleType::F32 => &[-1.5e30, 0.25],
            SampleType::F64 => &[-1.5e9, 0.125],
        };
        let n = self.width * self.height;
        (0..n)
            .map(|i| if i % 5 == 1 { extremes[i % extremes.len()] } else { ((i * 7 + page * 3) % 120) as f64 })
            .collect()
    }
}
