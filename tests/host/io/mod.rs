//! TIFF stacks in and out: made by hand here, so that every layout and every damage is at hand.

use fbp::error::Error;
use fbp::sink::{Dtype, Encoding, Present, SliceWriter, Target, write_image};
use fbp::source::{SampleType, Stack};
use half::f16;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tiff::encoder::{Compression, TiffEncoder, colortype::Gray8};
use tiff::tags::Tag;

const F32: Encoding = Encoding { dtype: Dtype::F32, range: None };

/// What a hand-made TIFF looks like.
#[derive(Clone, Debug)]
struct Make {
    big_endian: bool,
    big_tiff: bool,
    sample: SampleType,
    width: usize,
    height: usize,
    /// Width and height of tiles, or strips of the width 0.
    tile: (usize, usize),
    compression: u16,
    predictor: u16,
    photometric: u16,
    samples: u16,
    header_first: bool,
    description: &'static str,
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
        }
    }
}

/// A JPEG stream of 8x8 grey pixels of the value 100.
const JPEG: &str = "ffd8ffdb0043000201010101010201010102020202020403020202020504040304060506060605060606070908060709070606080b08090a0a0a0a0a06080b0c0b0a0c090a0a0affc0000b080008000801011100ffc40014000100000000000000000000000000000007ffc40014100100000000000000000000000000000000ffda0008010100003f000f7fffd9";

/// The stream of a compression method for some bytes.
fn squeeze(bytes: &[u8], compression: u16) -> Vec<u8> {
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
            SampleType::F16 => f16::from_f64(v).to_le_bytes().to_vec(),
            SampleType::F32 => (v as f32).to_le_bytes().to_vec(),
            SampleType::F64 => v.to_le_bytes().to_vec(),
        })
    }

    /// The bytes of one tile, row by row, before compression.
    fn predict(&self, row: &[f64]) -> Vec<u8> {
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

    fn file(&self, pages: &[Vec<f64>]) -> Vec<u8> {
        let word = if self.big_tiff { 8 } else { 4 };
        let number = |v: u64, n: usize| self.order(v.to_le_bytes()[..n].to_vec());
        let mut out = if self.big_endian { b"MM" } else { b"II" }.to_vec();
        if self.big_tiff {
            out.extend(number(43, 2));
            out.extend(number(8, 2));
            out.extend(number(0, 2));
        } else {
            out.extend(number(42, 2));
        }
        let mut link = out.len();
        out.extend(number(0, word));
        for values in pages {
            let (tw, th) = (if self.tile.0 == 0 { self.width } else { self.tile.0 }, self.tile.1);
            let mut blobs = Vec::new();
            for top in (0..self.height).step_by(th) {
                for left in (0..self.width).step_by(tw) {
                    let mut bytes = Vec::new();
                    let bottom = if self.tile.0 == 0 { self.height.min(top + th) } else { top + th };
                    for y in top..bottom {
                        let row: Vec<f64> = (left..left + tw)
                            .map(|x| if x < self.width && y < self.height { values[y * self.width + x] } else { 77.0 })
                            .collect();
                        bytes.extend(self.predict(&row));
                    }
                    blobs.push(squeeze(&bytes, self.compression));
                }
            }
            let description = [self.description.as_bytes(), b"\0"].concat();
            let strips = self.tile.0 == 0;
            let count = blobs.len();
            let array = if count * word > word { count * word } else { 0 };
            let text = if self.description.is_empty() { 0 } else { description.len() };
            let tags = 10 + if strips { 1 } else { 2 } + usize::from(text > 0);
            let ifd = if self.big_tiff { 8 + tags * 20 + 8 } else { 2 + tags * 12 + 4 };
            let sum: usize = blobs.iter().map(Vec::len).sum();
            let base = out.len();
            let (ifd_at, data_at) = if self.header_first {
                (base, base + ifd + 2 * array + text)
            } else {
                (base + sum + 2 * array + text, base)
            };
            let extra_at = if self.header_first { base + ifd } else { base + sum };
            let list = |values: Vec<u64>| values.iter().flat_map(|&v| number(v, word)).collect::<Vec<u8>>();
            let mut offset = data_at as u64;
            let mut offsets = Vec::new();
            for b in &blobs {
                offsets.push(offset);
                offset += b.len() as u64;
            }
            let offsets = list(offsets);
            let counts = list(blobs.iter().map(|b| b.len() as u64).collect());
            let long = if self.big_tiff { 16 } else { 4 };
            let mut entries: Vec<(u16, u16, usize, Vec<u8>)> = Vec::new();
            let short = |tag: u16, v: u16| (tag, 3, 1, number(v.into(), 2));
            entries.push((256, 4, 1, number(self.width as u64, 4)));
            entries.push((257, 4, 1, number(self.height as u64, 4)));
            entries.push(short(258, 8 * self.sample.bytes() as u16));
            entries.push(short(259, self.compression));
            entries.push(short(262, self.photometric));
            if text > 0 {
                entries.push((270, 2, text, number((extra_at + 2 * array) as u64, word)));
            }
            let place = |bytes: &Vec<u8>, at: usize| {
                if array == 0 { bytes.clone() } else { number(at as u64, word) }
            };
            let where_ = place(&offsets, extra_at);
            let sizes = place(&counts, extra_at + array);
            if strips {
                entries.push((273, long, count, where_.clone()));
            }
            entries.push(short(277, self.samples));
            if strips {
                entries.push((278, 4, 1, number(th as u64, 4)));
                entries.push((279, long, count, sizes.clone()));
            }
            entries.push(short(317, self.predictor));
            if !strips {
                entries.push((322, 4, 1, number(tw as u64, 4)));
                entries.push((323, 4, 1, number(th as u64, 4)));
                entries.push((324, long, count, where_));
                entries.push((325, long, count, sizes));
            }
            let format = match self.sample {
                SampleType::U8 | SampleType::U16 | SampleType::U32 => 1,
                SampleType::I8 | SampleType::I16 | SampleType::I32 => 2,
                _ => 3,
            };
            entries.push(short(339, format));
            assert_eq!(entries.len(), tags);
            let mut header = number(tags as u64, if self.big_tiff { 8 } else { 2 });
            for (tag, kind, count, value) in entries {
                header.extend(number(tag.into(), 2));
                header.extend(number(kind.into(), 2));
                header.extend(number(count as u64, word));
                let mut value = value;
                value.resize(word, 0);
                header.extend(value);
            }
            header.extend(number(0, word));
            let mut extra = Vec::new();
            if array > 0 {
                extra.extend(offsets);
                extra.extend(counts);
            }
            if text > 0 {
                extra.extend(description);
            }
            let (a, b) = (number(ifd_at as u64, word), ifd_at + ifd - word);
            out[link..link + word].copy_from_slice(&a);
            link = b;
            if self.header_first {
                out.extend(header);
                out.extend(extra);
                out.extend(blobs.concat());
            } else {
                out.extend(blobs.concat());
                out.extend(extra);
                out.extend(header);
            }
        }
        out
    }

    /// Values of one page that this sample type holds exactly.
    fn values(&self, page: usize) -> Vec<f64> {
        let extremes: &[f64] = match self.sample {
            SampleType::U8 => &[0.0, 255.0],
            SampleType::U16 => &[0.0, 65535.0, 4095.0],
            SampleType::U32 => &[0.0, 4294967040.0],
            SampleType::I8 => &[-128.0, 127.0],
            SampleType::I16 => &[-32768.0, 32767.0],
            SampleType::I32 => &[-2147483648.0, 2147483520.0],
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

fn put(dir: &TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn open(path: &Path) -> fbp::error::Result<Stack> {
    Stack::open(path.to_str().unwrap(), "--sinograms")
}

fn read(stack: &Stack, page: usize) -> fbp::error::Result<Vec<f32>> {
    let mut out = vec![f32::NAN; stack.width() * stack.height()];
    stack.read_rows(page, 0..stack.height(), &mut out).map(|_| out)
}

/// The text of an input error that holds all of these words.
fn input_error(path: &Path, words: &[&str]) -> String {
    let error = match open(path) {
        Err(e) => e,
        Ok(stack) => (0..stack.len()).find_map(|p| read(&stack, p).err()).expect("an error"),
    };
    assert_eq!(error.exit_code(), 3, "{error}");
    let text = error.to_string();
    for word in words.iter().chain(&["--sinograms"]) {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
    text
}

const TYPES: [SampleType; 9] = [
    SampleType::U8,
    SampleType::U16,
    SampleType::U32,
    SampleType::I8,
    SampleType::I16,
    SampleType::I32,
    SampleType::F16,
    SampleType::F32,
    SampleType::F64,
];

#[test]
fn every_layout_reads_back() {
    let dir = TempDir::new().unwrap();
    let mut makes = Vec::new();
    for sample in TYPES {
        for tile in [(0, 2), (0, 5), (0, 1), (4, 2), (16, 16)] {
            for (compression, predictor) in [(1, 1), (5, 1), (5, 2), (8, 1), (32946, 2), (32773, 1), (5, 3), (8, 3)] {
                let float = matches!(sample, SampleType::F16 | SampleType::F32 | SampleType::F64);
                if predictor == 3 && !float {
                    continue;
                }
                for bits in 0..4 {
                    makes.push(Make {
                        sample,
                        tile,
                        compression,
                        predictor,
                        big_endian: bits & 1 == 1,
                        big_tiff: bits & 2 == 2,
                        header_first: bits == 0,
                        photometric: u16::from(bits != 1),
                        ..Default::default()
                    });
                }
            }
        }
    }
    for make in makes {
        let pages: Vec<Vec<f64>> = (0..3).map(|p| make.values(p)).collect();
        let path = put(&dir, "x.tif", &make.file(&pages));
        let stack = open(&path).unwrap_or_else(|e| panic!("{make:?}: {e}"));
        assert_eq!((stack.len(), stack.width(), stack.height()), (3, 7, 5), "{make:?}");
        assert_eq!(stack.sample(), make.sample);
        for (p, values) in pages.iter().enumerate() {
            let expected: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            let full = read(&stack, p).unwrap_or_else(|e| panic!("{make:?}: {e}"));
            assert_eq!(full, expected, "{make:?} page {p}");
            for start in 0..5 {
                for end in start..=5 {
                    let mut part = vec![0.0; (end - start) * 7];
                    stack.read_rows(p, start..end, &mut part).unwrap();
                    assert_eq!(part, full[start * 7..end * 7], "{make:?} {start}..{end}");
                }
            }
        }
    }
}

#[test]
fn rows_longer_than_one_read() {
    let dir = TempDir::new().unwrap();
    for tile in [(0, 400), (0, 7), (512, 128)] {
        let make = Make { width: 1500, height: 400, tile, sample: SampleType::F32, ..Default::default() };
        let values: Vec<f64> = (0..1500 * 400).map(f64::from).collect();
        let path = put(&dir, "x.tif", &make.file(&[values]));
        let stack = open(&path).unwrap();
        let mut out = vec![0.0; 397 * 1500];
        stack.read_rows(0, 2..399, &mut out).unwrap();
        assert!(out.iter().enumerate().all(|(i, &v)| v == (i + 3000) as f32));
    }
}

#[test]
fn many_threads_read_many_files() {
    use rayon::prelude::*;
    let dir = TempDir::new().unwrap();
    for compression in [1, 5] {
        let make = Make { compression, ..Default::default() };
        for i in 0..100 {
            put(&dir, &format!("p_{i}.tif"), &make.file(&[vec![f64::from(i); 35], vec![f64::from(i) + 0.5; 35]]));
        }
        let stack = open(dir.path()).unwrap();
        assert_eq!((stack.len(), stack.files().len()), (200, 100));
        (0..2000usize).into_par_iter().for_each(|k| {
            let page = k * 77 % 200;
            assert_eq!(read(&stack, page).unwrap(), vec![(page / 2) as f32; 35]);
        });
        assert_eq!(stack.page_name(21), "p_10.tif page 1");
    }
}

#[test]
fn order_notes_and_ignored_files() {
    let dir = TempDir::new().unwrap();
    let make = Make::default();
    for i in [10, 2, 0, 1, 4] {
        put(&dir, &format!("s_{i}.tif"), &make.file(&[vec![f64::from(i); 35]]));
    }
    put(&dir, "notes.txt", b"hello");
    put(&dir, ".s_11.tif.part-1-0", b"half");
    put(&dir, ".hidden.tif", b"half");
    fs::create_dir(dir.path().join("old.tif")).unwrap();
    let stack = open(dir.path()).unwrap();
    let values: Vec<f32> = (0..5).map(|p| read(&stack, p).unwrap()[0]).collect();
    assert_eq!(values, [0.0, 1.0, 2.0, 4.0, 10.0]);
    assert_eq!(stack.page_name(4), "s_10.tif");
    let notes = stack.notes().join("\n");
    assert!(notes.contains("ignored 1 file that is not TIFF: notes.txt"), "{notes}");
    assert!(!notes.contains("hidden") && !notes.contains("part"), "{notes}");
    let glob = dir.path().join("s_?.tif");
    let stack = open(&glob).unwrap();
    assert_eq!(stack.len(), 4);
    assert!(stack.notes().is_empty());
    let one = open(&dir.path().join("s_10.tif")).unwrap();
    assert_eq!((one.len(), one.page_name(0)), (1, "s_10.tif".into()));
}

#[test]
fn gaps_are_noted_and_strays_refused() {
    let dir = TempDir::new().unwrap();
    let bytes = Make::default().file(&[vec![1.0; 35]]);
    for i in [0, 1, 2, 4, 5] {
        put(&dir, &format!("p_{i:04}.TIFF"), &bytes);
    }
    let stack = open(dir.path()).unwrap();
    assert!(stack.notes()[0].contains("no file with number 3 (1 missing)"), "{:?}", stack.notes());
    put(&dir, "zz_180deg.tif", &bytes);
    input_error(dir.path(), &["zz_180deg.tif", "move", "glob"]);
    assert_eq!(open(&dir.path().join("*")).unwrap().len(), 6);
    fs::remove_file(dir.path().join("zz_180deg.tif")).unwrap();
    put(&dir, "p_004.TIFF", &bytes);
    input_error(dir.path(), &["p_004.TIFF", "p_0004.TIFF", "same number"]);
}

#[test]
fn the_odd_one_is_named() {
    let dir = TempDir::new().unwrap();
    let make = Make { width: 64, height: 64, ..Default::default() };
    for i in 0..4 {
        let height = if i == 2 { 50 } else { 64 };
        let make = Make { height, ..make.clone() };
        put(&dir, &format!("s_{i:04}.tif"), &make.file(&[vec![0.0; 64 * height]]));
    }
    input_error(dir.path(), &["slice 2: s_0002.tif is 64x50, the others are 64x64"]);
    // the first one may be the odd one
    put(&dir, "s_0002.tif", &make.file(&[vec![0.0; 64 * 64]]));
    let small = Make { width: 32, ..make.clone() };
    put(&dir, "s_0000.tif", &small.file(&[vec![0.0; 32 * 64]]));
    input_error(dir.path(), &["slice 0: s_0000.tif is 32x64, the others are 64x64"]);
    let floats = Make { sample: SampleType::F32, ..make.clone() };
    put(&dir, "s_0000.tif", &floats.file(&[vec![0.0; 64 * 64]]));
    input_error(dir.path(), &["s_0000.tif is 32-bit float, the others are 16-bit unsigned"]);
}

#[test]
fn what_is_not_there_or_not_a_tiff() {
    let dir = TempDir::new().unwrap();
    input_error(&dir.path().join("no"), &["no", "does not exist"]);
    input_error(dir.path(), &["holds no TIFF"]);
    input_error(&dir.path().join("*.tif"), &["no file matches"]);
    put(&dir, "a.txt", b"x");
    input_error(dir.path(), &["holds no TIFF", "a.txt"]);
    let text = put(&dir, "a.tif", b"this is text");
    input_error(dir.path(), &["a.tif", "is not a TIFF"]);
    input_error(&text, &["a.tif", "is not a TIFF"]);
    input_error(&put(&dir, "empty.tif", b""), &["empty.tif", "is empty"]);
    input_error(&put(&dir, "none.tif", b"II*\0\0\0\0\0"), &["without pages"]);
    input_error(Path::new("/dev/null"), &["neither a file nor a directory"]);
    let error = Stack::open("a***b[", "--sinograms").unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    std::os::unix::fs::symlink("nowhere", dir.path().join("link.tif")).unwrap();
    fs::remove_file(text).unwrap();
    fs::remove_file(dir.path().join("empty.tif")).unwrap();
    fs::remove_file(dir.path().join("none.tif")).unwrap();
    input_error(dir.path(), &["link.tif", "cannot be read"]);
}

#[test]
fn images_that_are_not_grey() {
    let dir = TempDir::new().unwrap();
    let file = |make: &Make| put(&dir, "x.tif", &make.file(&[vec![0.0; make.width * make.height]]));
    let rgb = Make { samples: 3, photometric: 2, ..Default::default() };
    input_error(&file(&rgb), &["page 0", "RGB", "one grey value"]);
    input_error(&file(&Make { samples: 2, ..Default::default() }), &["2 sample"]);
    input_error(&file(&Make { photometric: 3, ..Default::default() }), &["palette"]);
    input_error(&file(&Make { compression: 50000, ..Default::default() }), &["Zstandard"]);
    input_error(&file(&Make { compression: 7, ..Default::default() }), &["JPEG"]);
    let predicted = Make { compression: 5, predictor: 3, ..Default::default() };
    input_error(&file(&predicted), &["predictor 3"]);
    let mut bytes = Make::default().file(&[vec![0.0; 35]]);
    patch(&mut bytes, 258, 12);
    input_error(&put(&dir, "x.tif", &bytes), &["12-bit", "expected"]);
    let mut bytes = Make::default().file(&[vec![0.0; 35]]);
    patch(&mut bytes, 257, 0);
    input_error(&put(&dir, "x.tif", &bytes), &["7x0"]);
    let broken = Make { compression: 7, sample: SampleType::U8, ..Default::default() };
    input_error(&file(&broken), &["page 0", "damaged"]);
}

#[test]
fn jpeg_of_grey_pixels() {
    let dir = TempDir::new().unwrap();
    let make = Make { compression: 7, sample: SampleType::U8, width: 8, height: 8, tile: (0, 8), ..Default::default() };
    let bytes = make.file(&[vec![100.0; 64]]);
    let stack = open(&put(&dir, "x.tif", &bytes)).unwrap();
    assert_eq!(read(&stack, 0).unwrap(), [100.0; 64]);
    let mut part = [0.0; 16];
    stack.read_rows(0, 3..5, &mut part).unwrap();
    assert_eq!(part, [100.0; 16]);
    let mut wide = bytes.clone();
    patch(&mut wide, 256, 9);
    input_error(&put(&dir, "x.tif", &wide), &["page 0", "another size"]);
}

/// Position of a tag's entry in a little-endian classic TIFF whose first page has it.
fn entry(bytes: &[u8], tag: u16) -> usize {
    let ifd = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let count = u16::from_le_bytes([bytes[ifd], bytes[ifd + 1]]) as usize;
    (0..count).map(|i| ifd + 2 + 12 * i).find(|&at| u16::from_le_bytes([bytes[at], bytes[at + 1]]) == tag).unwrap()
}

fn patch(bytes: &mut [u8], tag: u16, value: u32) {
    let at = entry(bytes, tag);
    let kind = bytes[at + 2];
    let n = if kind == 3 { 2 } else { 4 };
    bytes[at + 8..at + 8 + n].copy_from_slice(&value.to_le_bytes()[..n]);
}

#[test]
fn hostile_headers() {
    let dir = TempDir::new().unwrap();
    let good = Make::default().file(&[vec![1.0; 35], vec![2.0; 35]]);
    let check = |change: &dyn Fn(&mut Vec<u8>), words: &[&str]| {
        let mut bytes = good.clone();
        change(&mut bytes);
        input_error(&put(&dir, "x.tif", &bytes), words)
    };
    let first = Make { header_first: true, ..Default::default() }.file(&[vec![1.0; 35], vec![2.0; 35]]);
    let cut = put(&dir, "x.tif", &first[..first.len() - 5]);
    let end = format!("the file has {}", first.len() - 5);
    input_error(&cut, &["x.tif: page 1: is truncated", "strip 2 needs 14 bytes", &end]);
    check(&|b| patch(b, 256, u32::MAX), &["page 0", "4294967295x5"]);
    check(&|b| patch(b, 257, 1 << 20), &["page 0"]);
    check(&|b| (patch(b, 256, 1 << 20), patch(b, 257, 1 << 20)).0, &["1048576x1048576"]);
    check(&|b| patch(b, 278, 0), &["strips of 7x0"]);
    check(&|b| patch(b, 273, 0xffff_fff0), &["page 0", "truncated or damaged"]);
    let count = |b: &mut [u8], tag, n: u32| {
        let at = entry(b, tag);
        b[at + 4..at + 8].copy_from_slice(&n.to_le_bytes());
    };
    check(&|b| count(b, 273, u32::MAX), &["page 0", "4294967295 values, expected 3"]);
    check(&|b| count(b, 258, 0), &["page 0"]);
    // strips of one row of a page that is 2^20 rows high: a table far past the file's end
    check(
        &|b| {
            patch(b, 257, 1 << 20);
            patch(b, 278, 1);
            count(b, 273, 1 << 20);
            count(b, 279, 1 << 20);
        },
        &["page 0", "from offset"],
    );
    // a page list that is a loop
    let ifd = u32::from_le_bytes(good[4..8].try_into().unwrap());
    let next = ifd as usize + 2 + 11 * 12;
    check(&|b| b[next..next + 4].copy_from_slice(&ifd.to_le_bytes()), &["loop"]);
    check(&|b| b[next..next + 4].copy_from_slice(&[255; 4]), &["page 1", "truncated"]);
    check(&|b| b[4..8].copy_from_slice(&[3, 0, 0, 0]), &["x.tif"]);
    // much from little: 2^31 pixels in a strip of a few bytes
    let mut squeezed = Make { compression: 8, tile: (0, 5), ..Default::default() }.file(&[vec![1.0; 35]]);
    patch(&mut squeezed, 256, 1 << 20);
    patch(&mut squeezed, 257, 1 << 11);
    patch(&mut squeezed, 278, 1 << 11);
    input_error(&put(&dir, "x.tif", &squeezed), &["cannot decompress"]);
    // BigTIFF with absurd counts
    let big = Make { big_tiff: true, ..Default::default() }.file(&[vec![1.0; 35]]);
    let ifd = u64::from_le_bytes(big[8..16].try_into().unwrap()) as usize;
    let mut bytes = big.clone();
    bytes[ifd..ifd + 8].copy_from_slice(&[255; 8]);
    input_error(&put(&dir, "x.tif", &bytes), &["entries"]);
    let mut bytes = big.clone();
    bytes[8..16].copy_from_slice(&[255; 8]);
    input_error(&put(&dir, "x.tif", &bytes), &["truncated"]);
}

fn small_files() -> Vec<(Make, Vec<Vec<f64>>, Vec<u8>)> {
    let mut list = Vec::new();
    for (compression, predictor, tile, big_endian, big_tiff, header_first) in [
        (1, 1, (0, 2), false, false, false),
        (1, 1, (0, 2), true, false, true),
        (1, 1, (4, 2), false, true, true),
        (5, 2, (0, 2), false, false, true),
        (8, 1, (4, 4), true, true, true),
        (32773, 1, (0, 5), false, false, true),
        (8, 2, (0, 5), false, false, false),
    ] {
        let make = Make { compression, predictor, tile, big_endian, big_tiff, header_first, ..Default::default() };
        let pages: Vec<Vec<f64>> = (0..2).map(|p| make.values(p)).collect();
        let bytes = make.file(&pages);
        list.push((make, pages, bytes));
    }
    list
}

#[test]
fn every_prefix_is_an_error_or_right() {
    let dir = TempDir::new().unwrap();
    for (make, pages, bytes) in small_files() {
        for length in 0..bytes.len() {
            let path = put(&dir, "x.tif", &bytes[..length]);
            match open(&path) {
                Err(e) => assert!(e.to_string().contains("x.tif"), "{e}"),
                Ok(stack) => {
                    assert_eq!(stack.len(), 2, "{make:?} {length}");
                    for (p, page) in pages.iter().enumerate() {
                        if let Ok(values) = read(&stack, p) {
                            let expected: Vec<f32> = page.iter().map(|&v| v as f32).collect();
                            assert_eq!(values, expected, "{make:?} {length}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn no_changed_byte_panics() {
    let dir = TempDir::new().unwrap();
    for (_, _, bytes) in small_files() {
        for at in 0..bytes.len() {
            for value in [0, 255, bytes[at] ^ 1, bytes[at] ^ 0x80] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let path = put(&dir, "x.tif", &changed);
                if let Ok(stack) = open(&path) {
                    assert!(stack.width() * stack.height() < 1 << 20);
                    for p in 0..stack.len() {
                        let _ = read(&stack, p);
                    }
                }
            }
        }
    }
}

#[test]
fn files_that_shrink_or_grow_after_open() {
    let dir = TempDir::new().unwrap();
    let bytes = Make { header_first: true, ..Default::default() }.file(&[vec![1.0; 35]]);
    let path = put(&dir, "x.tif", &bytes);
    let stack = open(&path).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_len(bytes.len() as u64 - 5).unwrap();
    let error = read(&stack, 0).unwrap_err();
    assert!(error.to_string().contains("x.tif") && error.to_string().contains("had 240 bytes"), "{error}");
    for i in 0..70 {
        put(&dir, &format!("p{i}.tif"), &bytes);
    }
    let stack = open(&dir.path().join("p*.tif")).unwrap();
    put(&dir, "p3.tif", &[&bytes[..], b"more"].concat());
    assert!(read(&stack, 2).is_ok());
    let error = read(&stack, 3).unwrap_err();
    assert!(error.to_string().contains("p3.tif") && error.to_string().contains("now"), "{error}");
}

#[test]
fn requests_that_do_not_fit() {
    let dir = TempDir::new().unwrap();
    let stack = open(&put(&dir, "x.tif", &Make::default().file(&[vec![1.0; 35]]))).unwrap();
    assert!(stack.read_rows(1, 0..1, &mut [0.0; 7]).is_err());
    assert!(stack.read_rows(0, 4..6, &mut [0.0; 14]).is_err());
    assert!(stack.read_rows(0, 0..2, &mut [0.0; 7]).is_err());
    #[allow(clippy::reversed_empty_ranges)]
    let backwards = 2..1;
    assert!(stack.read_rows(0, backwards, &mut []).is_err());
    assert!(stack.read_rows(0, 5..5, &mut []).is_ok());
}

#[test]
fn imagej_stacks_with_one_header() {
    let dir = TempDir::new().unwrap();
    let make = Make {
        header_first: true,
        big_endian: true,
        description: "ImageJ=1.53t\nimages=3\nslices=3\n",
        ..Default::default()
    };
    let mut bytes = make.file(&[make.values(0)]);
    for p in 1..3 {
        bytes.extend(make.predict(&make.values(p)));
    }
    let stack = open(&put(&dir, "x.tif", &bytes)).unwrap();
    assert_eq!(stack.len(), 3);
    for p in 0..3 {
        let expected: Vec<f32> = make.values(p).iter().map(|&v| v as f32).collect();
        assert_eq!(read(&stack, p).unwrap(), expected);
    }
    bytes.truncate(bytes.len() - 1);
    input_error(&put(&dir, "x.tif", &bytes), &["x.tif", "truncated", "3 images"]);
}

// ---- writing ----

fn writer(spec: &Path, indices: &[usize], encoding: Encoding, overwrite: bool) -> fbp::error::Result<SliceWriter> {
    let target = Target::parse(spec.to_str().unwrap())?;
    SliceWriter::create(target, 3, 2, encoding, indices, Present::new(overwrite, None), "fbp test")
}

fn slice(index: usize) -> Vec<f32> {
    (0..6).map(|i| index as f32 + i as f32 / 8.0).collect()
}

fn output_error<T>(result: fbp::error::Result<T>, words: &[&str]) {
    let error = result.err().expect("an error");
    assert_eq!(error.exit_code(), 5, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "no {word:?} in: {error}");
    }
}

fn listing(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn targets() {
    let parse = |s: &str| Target::parse(s);
    assert_eq!(parse("out").unwrap(), Target::Directory("out".into()));
    assert_eq!(parse("a/out.tif").unwrap(), Target::Single("a/out.tif".into()));
    assert_eq!(parse("out.TIFF").unwrap(), Target::Single("out.TIFF".into()));
    let path = |s: &str, i| parse(s).unwrap().path_of(i).to_str().unwrap().to_owned();
    assert_eq!(path("out", 7), "out/slice_00007.tif");
    assert_eq!(path("out", 123456), "out/slice_123456.tif");
    assert_eq!(path("out/r-%05i.tif", 7), "out/r-00007.tif");
    assert_eq!(path("out/r-%d.tif", 7), "out/r-7.tif");
    assert_eq!(path("out/%03dx.tiff", 7), "out/007x.tiff");
    assert_eq!(path("/%i.tif", 7), "/7.tif");
    for wrong in ["", "o/%s.tif", "o/%5i.tif", "o/%i%i.tif", "o/%.tif", "%i/a.tif", "o/%03i", "o/%099i.tif", "o/%%.tif"]
    {
        let error = parse(wrong).unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{wrong}: {error}");
    }
}

#[test]
fn directory_pattern_and_single_read_back() {
    let dir = TempDir::new().unwrap();
    for name in ["a/b", "c/r-%02i.tif", "d/all.tif"] {
        let spec = dir.path().join(name);
        let indices = [3, 4, 11];
        let mut w = writer(&spec, &indices, F32, false).unwrap();
        let single = name == "d/all.tif";
        let order = if single { [3, 4, 11] } else { [11, 3, 4] };
        for i in order {
            w.write(i, &slice(i)).unwrap();
            assert_eq!(w.path_of(i).exists(), !single);
        }
        assert_eq!(w.clamped(), 0);
        let files = w.finish().unwrap();
        assert_eq!(files.len(), if single { 1 } else { 3 });
        assert!(files.iter().all(|f| f.exists()));
        let directory = files[0].parent().unwrap();
        assert!(listing(directory).iter().all(|n| !n.starts_with('.')), "temporary files stay");
        let stack = open(if single { &spec } else { directory }).unwrap();
        assert_eq!((stack.len(), stack.width(), stack.height()), (3, 3, 2));
        assert_eq!(stack.sample(), SampleType::F32);
        for (p, i) in indices.into_iter().enumerate() {
            assert_eq!(read(&stack, p).unwrap(), slice(i));
        }
    }
    assert_eq!(listing(&dir.path().join("c")), ["r-03.tif", "r-04.tif", "r-11.tif"]);
}

#[test]
fn tags_of_a_slice() {
    let dir = TempDir::new().unwrap();
    let mut w = writer(&dir.path().join("x.tif"), &[5, 6], F32, false).unwrap();
    w.write(5, &slice(5)).unwrap();
    w.write(6, &slice(6)).unwrap();
    let files = w.finish().unwrap();
    let mut decoder = tiff::decoder::Decoder::new(fs::File::open(&files[0]).unwrap()).unwrap();
    decoder.next_image().unwrap();
    assert_eq!(decoder.get_tag_ascii_string(Tag::Software).unwrap(), "fbp test");
    let bytes: Vec<u8> = slice(6).iter().flat_map(|v| v.to_ne_bytes()).collect();
    let description = format!("{{\"slice\":6,\"crc32\":\"{:08x}\"}}", crc32fast::hash(&bytes));
    assert_eq!(decoder.get_tag_ascii_string(Tag::ImageDescription).unwrap(), description);
    assert_eq!(decoder.get_tag_u16_vec(Tag::Unknown(297)).unwrap(), [1, 2]);
    assert_eq!(decoder.get_tag_u32(Tag::RowsPerStrip).unwrap(), 2);
    write_image(&dir.path().join("y.tif"), 3, 2, &slice(0), F32, "Grüße\n").unwrap();
}

#[test]
fn encodings() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.tif");
    let data = [-1.0, 0.0, 0.5, 1.0, 2.0, f32::NAN];
    let encode = |dtype, range, data: &[f32]| {
        let mut w = writer(&dir.path().join("d"), &[0], Encoding { dtype, range }, true).unwrap();
        w.write(0, data).unwrap();
        let clamped = w.clamped();
        let stack = open(&w.finish().unwrap()[0]).unwrap();
        (stack.sample(), read(&stack, 0).unwrap(), clamped)
    };
    let (sample, values, clamped) = encode(Dtype::U8, Some((0.0, 1.0)), &data);
    assert_eq!((sample, values, clamped), (SampleType::U8, vec![0.0, 0.0, 128.0, 255.0, 255.0, 0.0], 3));
    let (sample, values, clamped) = encode(Dtype::U16, Some((-1.0, 2.0)), &data);
    assert_eq!(sample, SampleType::U16);
    assert_eq!((values, clamped), (vec![0.0, 21845.0, 32768.0, 43690.0, 65535.0, 0.0], 1));
    let ends = (-f32::MAX, f32::MAX);
    let infinite = [f32::INFINITY, f32::NEG_INFINITY, 0.0, 0.0, ends.0, ends.1];
    let (_, values, clamped) = encode(Dtype::U16, Some(ends), &infinite);
    assert_eq!((values, clamped), (vec![65535.0, 0.0, 32768.0, 32768.0, 0.0, 65535.0], 2));
    let (sample, values, clamped) = encode(Dtype::F16, None, &[0.5, -65504.0, 65519.0, 65520.0, -1e9, f32::INFINITY]);
    assert_eq!(sample, SampleType::F16);
    let inf = f32::INFINITY;
    assert_eq!((values, clamped), (vec![0.5, -65504.0, 65504.0, inf, -inf, inf], 2));

    for range in [None, Some((1.0, 1.0)), Some((2.0, 1.0)), Some((f32::NAN, 1.0)), Some((0.0, inf))] {
        let encoding = Encoding { dtype: Dtype::U8, range };
        let error = write_image(&path, 3, 2, &data, encoding, "").unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{error}");
        assert_eq!(writer(&dir.path().join("e"), &[0], encoding, false).err().unwrap().exit_code(), 2);
    }
    assert_eq!(listing(dir.path()), ["d"]);
}

#[test]
fn large_images_have_strips_that_follow_each_other() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x.tif");
    let data: Vec<f32> = (0..1000 * 701).map(|i| i as f32 / 3.0).collect();
    for dtype in [Dtype::F32, Dtype::F16, Dtype::U16, Dtype::U8] {
        let encoding = Encoding { dtype, range: Some((0.0, 300000.0)) };
        write_image(&path, 1000, 701, &data, encoding, "fbp").unwrap();
        let mut decoder = tiff::decoder::Decoder::new(fs::File::open(&path).unwrap()).unwrap();
        let offsets = decoder.get_tag_u64_vec(Tag::StripOffsets).unwrap();
        let counts = decoder.get_tag_u64_vec(Tag::StripByteCounts).unwrap();
        assert!(offsets.len() > 1);
        assert!((0..offsets.len() - 1).all(|i| offsets[i] + counts[i] == offsets[i + 1]));
        let image = decoder.read_image().unwrap();
        let ours = read(&open(&path).unwrap(), 0).unwrap();
        match image {
            tiff::decoder::DecodingResult::F32(v) => assert_eq!(v, data),
            tiff::decoder::DecodingResult::F16(v) => {
                assert_eq!(v.iter().map(|h| h.to_f32()).collect::<Vec<_>>(), ours)
            }
            tiff::decoder::DecodingResult::U16(v) => {
                assert_eq!(v.iter().map(|&h| h.into()).collect::<Vec<f32>>(), ours)
            }
            tiff::decoder::DecodingResult::U8(v) => {
                assert_eq!(v.iter().map(|&h| h.into()).collect::<Vec<f32>>(), ours)
            }
            _ => panic!("another type"),
        }
    }
    output_error(write_image(&path, 3, 2, &[0.0; 5], F32, ""), &["x.tif", "3x2"]);
    assert_eq!(listing(dir.path()), ["x.tif"]);
}

#[test]
fn what_exists_is_kept() {
    let dir = TempDir::new().unwrap();
    put(&dir, "keep.txt", b"mine");
    output_error(writer(dir.path(), &[0], F32, false), &["keep.txt", "--overwrite"]);
    let mut w = writer(dir.path(), &[0], F32, true).unwrap();
    w.write(0, &slice(0)).unwrap();
    w.finish().unwrap();
    assert_eq!(listing(dir.path()), ["keep.txt", "slice_00000.tif"]);

    let pattern = dir.path().join("slice_%05i.tif");
    output_error(writer(&pattern, &[0, 1], F32, false), &["slice_00000.tif", "--overwrite"]);
    let mut w = writer(&pattern, &[1, 2], F32, false).unwrap();
    w.write(1, &slice(1)).unwrap();
    put(&dir, "slice_00002.tif", b"another run's");
    output_error(w.write(2, &slice(2)), &["slice_00002.tif", "another run"]);

    let single = put(&dir, "one.tif", b"old");
    output_error(writer(&single, &[0], F32, false), &["one.tif", "--overwrite"]);
    let w = writer(&single, &[0], F32, true).unwrap();
    drop(w);
    assert_eq!(fs::read(&single).unwrap(), b"old");
    let mut w = writer(&single, &[0], F32, true).unwrap();
    w.write(0, &slice(0)).unwrap();
    w.finish().unwrap();
    assert_eq!(read(&open(&single).unwrap(), 0).unwrap(), slice(0));
}

#[test]
fn places_that_cannot_be_written() {
    let dir = TempDir::new().unwrap();
    let file = put(&dir, "file", b"x");
    output_error(writer(&file, &[0], F32, false), &["file", "cannot make this directory"]);
    output_error(writer(&file.join("out"), &[0], F32, false), &["cannot make this directory"]);
    output_error(writer(&file.join("out.tif"), &[0], F32, false), &["file"]);
    output_error(writer(Path::new("/proc/fbp-out"), &[0], F32, false), &["/proc"]);
    output_error(writer(Path::new("/proc/r-%i.tif"), &[0], F32, false), &["cannot write here"]);
    output_error(write_image(&file.join("a.tif"), 3, 2, &slice(0), F32, ""), &["cannot write here"]);
    fs::create_dir(dir.path().join("d.tif")).unwrap();
    let target = Target::Single(dir.path().join("d.tif"));
    output_error(SliceWriter::create(target, 3, 2, F32, &[0], Present::Anything, ""), &["is a directory"]);
}

#[test]
fn failures_leave_nothing() {
    let dir = TempDir::new().unwrap();
    let out = dir.path().join("out");
    let mut w = writer(&out, &[0, 1], F32, false).unwrap();
    w.write(0, &slice(0)).unwrap();
    fs::remove_dir_all(&out).unwrap();
    output_error(w.write(1, &slice(1)), &["out", "cannot write here"]);
    output_error(w.finish(), &["1 of 2 slices"]);
    assert!(!out.exists());

    // the final name cannot be taken: the temporary goes
    let mut w = writer(&out, &[0], F32, true).unwrap();
    fs::create_dir(out.join("slice_00000.tif")).unwrap();
    output_error(w.write(0, &slice(0)), &["slice_00000.tif", "cannot be given its name"]);
    assert_eq!(listing(&out), ["slice_00000.tif"]);

    let single = dir.path().join("one.tif");
    let mut w = writer(&single, &[0, 1], F32, false).unwrap();
    w.write(0, &slice(0)).unwrap();
    assert!(!single.exists());
    assert_eq!(listing(dir.path()).iter().filter(|n| n.starts_with(".one.tif.part-")).count(), 1);
    output_error(w.finish(), &["one.tif", "1 of 2"]);
    assert_eq!(listing(dir.path()), ["out"]);
}

#[test]
fn slices_out_of_place() {
    let dir = TempDir::new().unwrap();
    let mut w = writer(&dir.path().join("one.tif"), &[2, 5, 7], F32, false).unwrap();
    output_error(w.write(3, &slice(3)), &["slice 3 was not announced"]);
    output_error(w.write(5, &slice(5)), &["slice 5", "before slice 2", "ascending"]);
    w.write(2, &slice(2)).unwrap();
    output_error(w.write(2, &slice(2)), &["written already"]);
    w.write(5, &slice(5)).unwrap();
    output_error(w.write(7, &[0.0]), &["1 values", "3x2"]);
    output_error(w.write(7, &slice(7)), &["after this file failed"]);
    drop(w);
    assert!(listing(dir.path()).is_empty());

    output_error(writer(&dir.path().join("one.tif"), &[], F32, false), &["no slice"]);
    assert_eq!(writer(&dir.path().join("d"), &[], F32, false).unwrap().finish().unwrap(), Vec::<PathBuf>::new());
    assert_eq!(writer(&dir.path().join("e"), &[1, 1], F32, false).err().unwrap().exit_code(), 2);
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

/// A disk of 200 kB, where the system lets tests make one.
#[test]
fn a_full_disk_is_an_error() {
    let dir = TempDir::new().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=200k", "none"])
        .arg(dir.path())
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        crate::support::skip::skipped("small-disk", "no permission to mount a small disk");
        return;
    }
    let mounted = Mounted(dir.path().to_owned());
    let (image, out) = (vec![1.0; 200 * 200], dir.path().join("out"));
    let make = |target| SliceWriter::create(target, 200, 200, F32, &[0, 1], Present::Nothing, "").unwrap();
    let mut w = make(Target::Directory(out.clone()));
    w.write(0, &image).unwrap();
    let many = w.write(1, &image);
    let names = listing(&out);
    let _ = fs::remove_dir_all(&out);
    let mut w = make(Target::Single(dir.path().join("one.tif")));
    w.write(0, &image).unwrap();
    let one = w.write(1, &image);
    drop(w);
    let left = listing(dir.path());
    drop(mounted);
    output_error(many, &["slice_00001.tif", "No space left"]);
    assert_eq!(names, ["slice_00000.tif"]);
    output_error(one, &["one.tif", "No space left"]);
    assert!(left.is_empty(), "{left:?}");
}

fn is_send<T: Send>() {}
fn is_sync<T: Sync>() {}

#[test]
fn threads_may_share() {
    is_send::<Stack>();
    is_sync::<Stack>();
    is_send::<SliceWriter>();
}
