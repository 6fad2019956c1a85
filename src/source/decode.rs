//! TIFF headers, and the rows of one page.
//!
//! The header of every page is read once, checked against the size of the file, and kept as a
//! table of strips or tiles, so that any row of any page is then one positioned read away.
//! Compressed strips and tiles go through the `tiff` crate, each as a small TIFF of its own, which
//! keeps the pages of one file independent of each other and the values raw.
//!
//! Functions return the text of an error without the name of the file; the caller adds it.

use super::convert::{SampleType, to_f32};
use std::collections::HashSet;
use std::fs::File;
use std::io::Cursor;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tiff::decoder::{Decoder, Limits};

/// Largest width or height that a page may claim.
pub(super) const MAX_SIDE: u64 = 1 << 20;
/// Largest number of pixels that a page may claim.
pub(super) const MAX_PIXELS: u64 = 1 << 31;
/// No compression of the TIFF family turns one byte into more than this (LZW: 4096 for 12 bits).
const MAX_RATIO: u64 = 4096;
/// Bytes that one compressed strip or tile may hold; it is decompressed in one piece.
const MAX_STRIP: u64 = 1 << 30;
/// Bytes of one positioned read.
const PIECE: usize = 1 << 20;

type Text<T> = Result<T, String>;

/// One page: where its strips or tiles are. Strips are tiles as wide as the page.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub width: usize,
    pub height: usize,
    pub sample: SampleType,
    big_endian: bool,
    compression: u16,
    predictor: u16,
    tile_width: usize,
    tile_height: usize,
    /// Offset and length of each tile, row by row.
    tiles: Box<[(u64, u64)]>,
    jpeg_tables: Option<Arc<[u8]>>,
}

/// The header reader of one file.
struct Reader<'a> {
    file: &'a File,
    length: u64,
    big_endian: bool,
    big_tiff: bool,
    /// Header bytes that may still be read: tables that overlap each other end here.
    budget: u64,
}

/// One directory entry; `value` is the value itself or its offset.
struct Entry {
    tag: u16,
    kind: u16,
    count: u64,
    value: [u8; 8],
}

/// Reads the headers of all pages of a file of `length` bytes.
pub(super) fn read_pages(file: &File, length: u64) -> Text<Vec<Page>> {
    if length == 0 {
        return Err("is empty (0 bytes), expected a TIFF; copy or write it again".into());
    }
    let mut start = [0; 16];
    let have = length.min(16) as usize;
    file.read_exact_at(&mut start[..have], 0).map_err(|e| e.to_string())?;
    let big_endian = match &start[..2] {
        b"II" => false,
        b"MM" => true,
        _ => return Err("is not a TIFF (it does not begin with II or MM)".into()),
    };
    let mut reader =
        Reader { file, length, big_endian, big_tiff: false, budget: length.saturating_mul(2).saturating_add(1 << 20) };
    let mut next = match reader.number(&start[2..4]) {
        42 if have >= 8 => reader.number(&start[4..8]),
        43 if have >= 16 && reader.number(&start[4..8]) == if big_endian { 8 << 16 } else { 8 } => {
            reader.big_tiff = true;
            reader.number(&start[8..16])
        }
        42 | 43 => return Err("is truncated or damaged: its TIFF header is not whole".into()),
        n => return Err(format!("is not a TIFF (version {n}, expected 42 or 43)")),
    };

    let (mut pages, mut seen) = (Vec::new(), HashSet::new());
    while next != 0 {
        let number = pages.len();
        if !seen.insert(next) {
            return Err(format!(
                "is damaged: after page {} its list of pages goes back to an earlier page (a loop)",
                number - 1
            ));
        }
        let (entries, after) = reader.directory(next, number)?;
        let page = reader.page(&entries).map_err(|e| format!("page {number}: {e}"))?;
        if number == 0 && after == 0 {
            return reader.image_j(&entries, page);
        }
        pages.push(page);
        next = after;
    }
    if pages.is_empty() {
        return Err("is a TIFF without pages; it was perhaps not written to its end".into());
    }
    Ok(pages)
}

impl Reader<'_> {
    /// An unsigned number of up to 8 bytes in the byte order of the file.
    fn number(&self, bytes: &[u8]) -> u64 {
        let shift = |n: u64, b: &u8| n << 8 | u64::from(*b);
        if self.big_endian { bytes.iter().fold(0, shift) } else { bytes.iter().rev().fold(0, shift) }
    }

    /// `count` header bytes at `offset`, inside the file and the budget.
    fn bytes(&mut self, offset: u64, count: u64, what: &str) -> Text<Vec<u8>> {
        if offset.checked_add(count).is_none_or(|end| end > self.length) {
            return Err(format!(
                "is truncated or damaged: {what} needs {count} bytes from offset {offset}, the file has {}",
                self.length
            ));
        }
        if count > self.budget {
            return Err("is damaged: its tables overlap each other".into());
        }
        self.budget -= count;
        let mut bytes = vec![0; count as usize];
        self.file.read_exact_at(&mut bytes, offset).map_err(|e| format!("cannot be read: {e}"))?;
        Ok(bytes)
    }

    /// The entries of the directory at `offset`, and the offset of the next one (0: none).
    fn directory(&mut self, offset: u64, number: usize) -> Text<(Vec<Entry>, u64)> {
        let what = format!("the header of page {number}");
        let word = if self.big_tiff { 8 } else { 4 };
        let head = if self.big_tiff { 8 } else { 2 };
        let bytes = self.bytes(offset, head, &what)?;
        let count = self.number(&bytes);
        if count > 65535 {
            return Err(format!("is damaged: {what} claims {count} entries"));
        }
        let each = 4 + 2 * word;
        let bytes = self.bytes(offset + head, count * each as u64 + word as u64, &what)?;
        let (table, next) = bytes.split_at(count as usize * each);
        let entries = table.chunks_exact(each).map(|e| {
            let mut value = [0; 8];
            value[..word].copy_from_slice(&e[4 + word..]);
            Entry {
                tag: self.number(&e[..2]) as u16,
                kind: self.number(&e[2..4]) as u16,
                count: self.number(&e[4..4 + word]),
                value,
            }
        });
        Ok((entries.collect(), self.number(next)))
    }

    /// The bytes of an entry's value, and the size of one item.
    fn raw(&mut self, entry: &Entry) -> Text<(Vec<u8>, usize)> {
        let size: usize = match entry.kind {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 13 => 4,
            16..=18 => 8,
            kind => {
                return Err(format!("tag {} has the type {kind}, expected an integer", entry.tag));
            }
        };
        let word = if self.big_tiff { 8 } else { 4 };
        let bytes = entry.count.saturating_mul(size as u64);
        if bytes <= word {
            return Ok((entry.value[..bytes as usize].to_vec(), size));
        }
        let offset = self.number(&entry.value[..word as usize]);
        Ok((self.bytes(offset, bytes, &format!("tag {}", entry.tag))?, size))
    }

    /// All values of an integer tag, or None when the page has no such tag.
    fn values(&mut self, entries: &[Entry], tag: u16, expected: Option<u64>) -> Text<Option<Vec<u64>>> {
        let Some(entry) = entries.iter().find(|e| e.tag == tag) else {
            return Ok(None);
        };
        if let Some(expected) = expected.filter(|&n| n != entry.count) {
            return Err(format!("tag {tag} has {} values, expected {expected}", entry.count));
        }
        let (bytes, size) = self.raw(entry)?;
        Ok(Some(bytes.chunks_exact(size).map(|b| self.number(b)).collect()))
    }

    /// The single value of an integer tag.
    fn value(&mut self, entries: &[Entry], tag: u16) -> Text<Option<u64>> {
        Ok(self.values(entries, tag, Some(1))?.and_then(|v| v.first().copied()))
    }

    /// Checks the tags of one page and builds its table of tiles.
    fn page(&mut self, entries: &[Entry]) -> Text<Page> {
        let need = |value: Option<u64>, name: &str| value.ok_or(format!("has no tag {name}"));
        let width = need(self.value(entries, 256)?, "ImageWidth")?;
        let height = need(self.value(entries, 257)?, "ImageLength")?;
        if width == 0 || height == 0 {
            return Err(format!("is {width}x{height} pixels: there is nothing in it"));
        }
        if width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS {
            return Err(format!(
                "claims {width}x{height} pixels, more than the {MAX_SIDE} a side and {MAX_PIXELS} in all \
                 that can be read; is the file damaged?"
            ));
        }
        let samples = self.value(entries, 277)?.unwrap_or(1);
        let photometric = self.value(entries, 262)?.unwrap_or(1);
        if samples != 1 || photometric > 1 {
            let kind = match photometric {
                2 => "RGB",
                3 => "a colour palette",
                4 => "a mask",
                5 => "CMYK",
                6 => "YCbCr colour",
                _ => "of another kind",
            };
            let kind = if photometric < 2 { "several channels" } else { kind };
            return Err(format!(
                "has {samples} sample(s) per pixel ({kind}), expected one grey value per pixel; \
                 convert it to greyscale"
            ));
        }
        let format = self.value(entries, 339)?.unwrap_or(1);
        let bits = self.value(entries, 258)?.unwrap_or(1);
        let sample = SampleType::from_tags(format, bits).ok_or_else(|| {
            format!(
                "has {bits}-bit samples of format {format}, expected 8-, 16- or 32-bit integers \
                 or 16-, 32- or 64-bit floats"
            )
        })?;
        let compression = self.value(entries, 259)?.unwrap_or(1);
        let known = matches!(compression, 1 | 5 | 8 | 32773 | 32946) || (compression == 7 && sample == SampleType::U8);
        if !known {
            let name = match compression {
                6 | 7 => " (JPEG)",
                34925 => " (LZMA)",
                50000 => " (Zstandard)",
                50001 => " (WebP)",
                _ => "",
            };
            return Err(format!(
                "is compressed by method {compression}{name}, expected none, LZW, deflate, PackBits \
                 or JPEG of 8-bit data; save it with one of these"
            ));
        }
        // the predictor belongs to LZW and deflate alone
        let predictor = match compression {
            5 | 8 | 32946 => self.value(entries, 317)?.unwrap_or(1),
            _ => 1,
        };
        if !(predictor == 1 || predictor == 2 || predictor == 3 && sample.is_float()) {
            return Err(format!("has the predictor {predictor} for {sample} data, which is not known"));
        }
        if compression != 1 && self.value(entries, 266)?.unwrap_or(1) != 1 {
            return Err("is compressed with reversed bits (FillOrder 2); save it again".into());
        }
        let jpeg_tables = match entries.iter().find(|e| e.tag == 347) {
            Some(e) if compression == 7 => Some(Arc::from(self.raw(e)?.0)),
            _ => None,
        };

        let tiled = entries.iter().any(|e| e.tag == 322 || e.tag == 324);
        let (tile_width, tile_height, offsets, counts, name) = if tiled {
            let width = need(self.value(entries, 322)?, "TileWidth")?;
            let height = need(self.value(entries, 323)?, "TileLength")?;
            (width, height, 324, 325, "tile")
        } else {
            let rows = self.value(entries, 278)?.unwrap_or(height);
            (width, rows.min(height), 273, 279, "strip")
        };
        if tile_width == 0 || tile_height == 0 || tile_width > MAX_SIDE || tile_height > MAX_SIDE {
            return Err(format!("has {name}s of {tile_width}x{tile_height} pixels"));
        }
        let (across, down) = (width.div_ceil(tile_width), height.div_ceil(tile_height));
        let expected = Some(across * down);
        let offsets = self.values(entries, offsets, expected)?.ok_or(format!("has no {name} offsets"))?;
        let counts = self.values(entries, counts, expected)?;

        let row_bytes = tile_width * sample.bytes() as u64;
        let mut tiles = Vec::with_capacity(offsets.len());
        for (i, &offset) in offsets.iter().enumerate() {
            let rows = tile_height.min(height - i as u64 / across * tile_height);
            let whole = rows * row_bytes;
            let count = counts.as_ref().map_or(0, |c| c[i]);
            let used = match compression {
                // some writers leave the count of uncompressed data out, or count padding
                1 if count == 0 || count >= whole => whole,
                1 => {
                    return Err(format!("{name} {i} holds {count} bytes, expected {whole}; the file is damaged"));
                }
                _ if count == 0 || whole / MAX_RATIO > count => {
                    return Err(format!(
                        "{name} {i} holds {count} bytes, which cannot decompress to {whole}; the file is damaged"
                    ));
                }
                _ if whole > MAX_STRIP => {
                    return Err(format!(
                        "{name} {i} decompresses to {whole} bytes, more than the {MAX_STRIP} that can be read in one \
                         piece; save it with more {name}s"
                    ));
                }
                // what does not compress grows by half at most
                _ if count > 2 * whole + PIECE as u64 => {
                    return Err(format!(
                        "{name} {i} holds {count} bytes for {whole} decompressed ones; the file is damaged"
                    ));
                }
                _ => count,
            };
            let end = offset.checked_add(used);
            if offset < 8 || end.is_none_or(|end| end > self.length) {
                return Err(format!(
                    "is truncated or damaged: {name} {i} needs {used} bytes from offset {offset}, \
                     the file has {}; copy or write it again",
                    self.length
                ));
            }
            tiles.push((offset, used));
        }
        let apart = |tiles: &[(u64, u64)]| tiles.windows(2).all(|t| t[0].0 + t[0].1 <= t[1].0);
        if !apart(&tiles) {
            let mut ordered = tiles.clone();
            ordered.sort_unstable();
            if !apart(&ordered) {
                return Err(format!("is damaged: some of its {name}s are at the same place of the file"));
            }
        }
        let mut tile_height = tile_height;
        if compression == 1 && !tiled && tiles.windows(2).all(|t| t[0].0 + t[0].1 == t[1].0) {
            // strips one after the other are one strip
            tiles = vec![(tiles[0].0, height * row_bytes)];
            tile_height = height;
        }
        Ok(Page {
            width: width as usize,
            height: height as usize,
            sample,
            big_endian: self.big_endian,
            compression: compression as u16,
            predictor: predictor as u16,
            tile_width: tile_width as usize,
            tile_height: tile_height as usize,
            tiles: tiles.into(),
            jpeg_tables,
        })
    }

    /// ImageJ writes stacks past 4 GB with the header of the first page alone; the others follow it.
    fn image_j(&mut self, entries: &[Entry], page: Page) -> Text<Vec<Page>> {
        let text = match entries.iter().find(|e| e.tag == 270 && e.kind == 2 && e.count < 1 << 16) {
            Some(entry) => self.raw(entry).map(|(bytes, _)| bytes).unwrap_or_default(),
            None => Vec::new(),
        };
        let text = String::from_utf8_lossy(&text);
        let images = text.lines().find_map(|line| line.strip_prefix("images=")?.trim().parse::<u64>().ok());
        let Some(images) = images.filter(|&n| n > 1 && n < 1 << 20 && text.starts_with("ImageJ=")) else {
            return Ok(vec![page]);
        };
        let [(offset, bytes)] = *page.tiles else {
            return Err(format!("is an ImageJ stack of {images} images with a header for one only; save it again"));
        };
        if page.compression != 1
            || images.checked_mul(bytes).and_then(|all| all.checked_add(offset)).is_none_or(|end| end > self.length)
        {
            return Err(format!(
                "is truncated: its ImageJ header says {images} images of {bytes} bytes from offset {offset}, \
                 the file has {}; copy or save it again",
                self.length
            ));
        }
        let at = |i| Page { tiles: [(offset + i * bytes, bytes)].into(), ..page.clone() };
        Ok((0..images).map(at).collect())
    }
}

impl Page {
    /// Reads `rows` (row-major, `rows.len() * width` values) into `out`.
    pub(super) fn read_rows(&self, file: &File, rows: Range<usize>, out: &mut [f32]) -> Text<()> {
        let across = self.width.div_ceil(self.tile_width);
        let mut buffer = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            // the rows of this band of tiles that are asked for, from the top of the band
            let band = row / self.tile_height;
            let first = row % self.tile_height;
            let last = self.tile_height.min(rows.end - band * self.tile_height);
            let top = row - rows.start;
            for column in 0..across {
                let tile = self.tiles[band * across + column];
                let out = &mut out[top * self.width..(top + last - first) * self.width];
                if self.compression == 1 {
                    self.read_plain(file, tile, first..last, column, &mut buffer, out)?;
                } else {
                    let bytes = self.decompress(file, tile, last)?;
                    let start = first * self.row_bytes();
                    self.place(&bytes[start..], cfg!(target_endian = "big"), column, out);
                }
            }
            row += last - first;
        }
        Ok(())
    }

    /// Bytes of one row of a tile.
    fn row_bytes(&self) -> usize {
        self.tile_width * self.sample.bytes()
    }

    /// Reads some rows of one uncompressed tile in pieces.
    fn read_plain(
        &self,
        file: &File,
        tile: (u64, u64),
        rows: Range<usize>,
        column: usize,
        buffer: &mut Vec<u8>,
        out: &mut [f32],
    ) -> Text<()> {
        let row_bytes = self.row_bytes();
        let step = (PIECE / row_bytes).max(1);
        for (i, out) in out.chunks_mut(step * self.width).enumerate() {
            let offset = tile.0 + ((rows.start + i * step) * row_bytes) as u64;
            buffer.resize(out.len() / self.width * row_bytes, 0);
            file.read_exact_at(buffer, offset).map_err(|e| match e.kind() {
                std::io::ErrorKind::UnexpectedEof => "became shorter while it was read".to_owned(),
                _ => format!("cannot be read: {e}"),
            })?;
            self.place(buffer, self.big_endian, column, out);
        }
        Ok(())
    }

    /// Converts whole rows of the tiles of one column into rows of the page.
    fn place(&self, bytes: &[u8], big_endian: bool, column: usize, out: &mut [f32]) {
        if self.tile_width == self.width {
            return to_f32(bytes, self.sample, big_endian, out);
        }
        let left = column * self.tile_width;
        let columns = self.tile_width.min(self.width - left);
        let used = columns * self.sample.bytes();
        for (out, row) in out.chunks_exact_mut(self.width).zip(bytes.chunks_exact(self.row_bytes())) {
            to_f32(&row[..used], self.sample, big_endian, &mut out[left..left + columns]);
        }
    }

    /// The first `rows` rows of one compressed tile, in the byte order of this machine.
    fn decompress(&self, file: &File, tile: (u64, u64), rows: usize) -> Text<Vec<u8>> {
        let (offset, count) = tile;
        let mut small = self.small_tiff(rows, count).ok_or("has a compressed strip of 4 GiB or more")?;
        let start = small.len();
        small.resize(start + count as usize, 0);
        file.read_exact_at(&mut small[start..], offset).map_err(|e| format!("cannot be read: {e}"))?;
        if self.compression == 7 {
            let size = jpeg_size(&small[start..]);
            // a part of a block may follow the last row
            let heights = rows..=self.tile_height.next_multiple_of(16);
            if size.is_none_or(|(w, h, channels)| w != self.tile_width || !heights.contains(&h) || channels != 1) {
                return Err("holds JPEG data of another size than its header says; the file is damaged".into());
            }
        }
        let mut bytes = vec![0; rows * self.row_bytes()];
        let damaged = |e| format!("its compressed data is damaged ({e}); copy or write it again");
        // the sizes were checked against the size of the file when the header was read
        let mut decoder = Decoder::new(Cursor::new(small)).map_err(damaged)?.with_limits(Limits::unlimited());
        decoder.read_image_bytes(&mut bytes).map_err(damaged)?;
        Ok(bytes)
    }

    /// The header of a TIFF of one strip that is `rows` rows of a tile of this page; `count` bytes
    /// of compressed data follow it.
    fn small_tiff(&self, rows: usize, count: u64) -> Option<Vec<u8>> {
        let tables = self.jpeg_tables.as_deref().unwrap_or_default();
        let entries = if tables.is_empty() { 11 } else { 12 };
        let tables_at = 8 + 2 + entries * 12 + 4;
        let data_at = tables_at + tables.len() as u32;
        let mut bytes = Vec::new();
        let two = |n: u16| {
            if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
        };
        let four = |n: u32| {
            if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
        };
        bytes.extend(if self.big_endian { b"MM" } else { b"II" });
        bytes.extend(two(42));
        bytes.extend(four(8));
        bytes.extend(two(entries as u16));
        let mut long = |tag: u16, kind: u16, count: u32, value: u32| {
            bytes.extend(two(tag));
            bytes.extend(two(kind));
            bytes.extend(four(count));
            if kind == 3 {
                bytes.extend(two(value as u16));
                bytes.extend([0, 0]);
            } else {
                bytes.extend(four(value));
            }
        };
        let rows = u32::try_from(rows).ok()?;
        long(256, 4, 1, u32::try_from(self.tile_width).ok()?);
        long(257, 4, 1, rows);
        long(258, 3, 1, 8 * self.sample.bytes() as u32);
        long(259, 3, 1, self.compression.into());
        long(262, 3, 1, 1); // black is zero: values as they are
        long(273, 4, 1, data_at);
        long(277, 3, 1, 1);
        long(278, 4, 1, rows);
        long(279, 4, 1, u32::try_from(count).ok().filter(|n| n.checked_add(data_at).is_some())?);
        long(317, 3, 1, self.predictor.into());
        long(339, 3, 1, self.sample.format_tag().into());
        if !tables.is_empty() {
            long(347, 7, tables.len() as u32, tables_at);
        }
        bytes.extend(four(0));
        bytes.extend(tables);
        Some(bytes)
    }
}

/// Width, height and channels that the frame header of a JPEG stream gives.
fn jpeg_size(data: &[u8]) -> Option<(usize, usize, u8)> {
    let mut at = 2;
    loop {
        let segment = data.get(at..at + 4)?;
        if segment[0] != 0xff {
            return None;
        }
        if matches!(segment[1], 0xc0..=0xcf) && !matches!(segment[1], 0xc4 | 0xc8 | 0xcc) {
            let frame = data.get(at + 5..at + 10)?;
            let word = |i: usize| usize::from(frame[i]) << 8 | usize::from(frame[i + 1]);
            return Some((word(2), word(0), frame[4]));
        }
        at += 2 + (usize::from(segment[2]) << 8 | usize::from(segment[3]));
    }
}
