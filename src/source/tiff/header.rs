//! TIFF headers.
//!
//! The header of every page is read once, checked against the size of the file, and kept as a table of strips or tiles.

use super::find::refuse_archive;
use super::page::{PIECE, Page};
use super::{FileResult, tag};
use crate::source::SampleType;
use crate::source::frames::{MAX_PIXELS, MAX_SIDE};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Largest compression ratio of the supported methods except Zstandard (LZW: 4096 bytes from 12 bits).
const MAX_RATIO: u64 = 4096;
/// Largest compression ratio of Zstandard (a block of 128 KiB from 4 bytes).
const MAX_ZSTD_RATIO: u64 = 1 << 15;
/// Value of the tag `Compression` for Zstandard.
const ZSTD: u64 = 50000;
/// Largest size of a compressed strip or tile after decompression, in bytes; it is decompressed in one piece.
const MAX_STRIP: u64 = 1 << 30;

/// Reader of the headers of one file.
struct Reader<'a> {
    file: &'a File,
    length: u64,
    big_endian: bool,
    big_tiff: bool,
    /// Number of header bytes that may still be read, which limits overlapping tables.
    budget: u64,
}

/// Directory entry; `value` is the value itself or its offset.
struct TagEntry {
    tag: u16,
    kind: u16,
    count: u64,
    value: [u8; 8],
}

/// Pages of a file, and notes about its headers.
pub struct TiffHeaders {
    pub pages: Vec<Page>,
    /// Value of the tag `Orientation`, if it is not the usual 1.
    pub orientation: Option<u64>,
    /// Number of images that ImageJ's description promises, if the file has fewer.
    pub promised: Option<u64>,
}

/// Reads the headers of all pages of a file of `length` bytes.
pub fn read_pages(file: &File, length: u64) -> FileResult<TiffHeaders> {
    if length == 0 {
        return Err("is empty (0 bytes), expected a TIFF; copy or write it again".into());
    }
    let mut start = [0; 16];
    let have = length.min(16) as usize;
    file.read_exact_at(&mut start[..have], 0).map_err(|e| e.to_string())?;
    refuse_archive(file)?;
    let big_endian =
        match &start[..2] {
            b"II" => false,
            b"MM" => true,
            _ => return Err(
                "is not a TIFF (it does not begin with II or MM); name the TIFF files alone, for example with a glob"
                    .into(),
            ),
        };
    let mut reader =
        Reader { file, length, big_endian, big_tiff: false, budget: length.saturating_mul(2).saturating_add(1 << 20) };
    let mut next = match reader.number(&start[2..4]) {
        42 if have >= 8 => reader.number(&start[4..8]),
        43 if have >= 16 && reader.number(&start[4..8]) == if big_endian { 8 << 16 } else { 8 } => {
            reader.big_tiff = true;
            reader.number(&start[8..16])
        }
        42 | 43 => return Err("is truncated or damaged: its TIFF header is incomplete; copy or write it again".into()),
        n => return Err(format!("is not a TIFF (version {n}, expected 42 or 43); copy or write it again")),
    };

    let (mut pages, mut seen) = (Vec::new(), HashSet::new());
    let (mut orientation, mut promised) = (None, None);
    while next != 0 {
        let number = pages.len();
        if !seen.insert(next) {
            return Err(format!(
                "is damaged: after page {} its list of pages goes back to an earlier page (a loop); copy or write it again",
                number - 1
            ));
        }
        let (entries, after) = reader.directory(next, number)?;
        let page = reader.page(&entries).map_err(|e| format!("page {number}: {e}"))?;
        // errors in a tag that nothing depends on are ignored
        orientation =
            orientation.or(reader.value(&entries, tag::ORIENTATION).unwrap_or(None).filter(|&value| value != 1));
        if number == 0 {
            promised = reader.promised(&entries);
            if let (0, Some(images)) = (after, promised) {
                return Ok(TiffHeaders { pages: reader.image_j(images, page)?, orientation, promised: None });
            }
        }
        pages.push(page);
        next = after;
    }
    if pages.is_empty() {
        return Err(
            "is a TIFF without pages, perhaps because writing it was interrupted; copy or write it again".into()
        );
    }
    let promised = promised.filter(|&images| images > pages.len() as u64);
    Ok(TiffHeaders { pages, orientation, promised })
}

impl Reader<'_> {
    /// Decodes an unsigned number of up to 8 bytes in the byte order of the file.
    fn number(&self, bytes: &[u8]) -> u64 {
        let shift = |n: u64, b: &u8| n << 8 | u64::from(*b);
        if self.big_endian { bytes.iter().fold(0, shift) } else { bytes.iter().rev().fold(0, shift) }
    }

    /// Reads `count` header bytes at `offset`, which must be within the file and the budget.
    fn bytes(&mut self, offset: u64, count: u64, what: &str) -> FileResult<Vec<u8>> {
        if offset.checked_add(count).is_none_or(|end| end > self.length) {
            return Err(format!(
                "is truncated or damaged: {what} needs {count} bytes from offset {offset}, the file has {}; copy or write it again",
                self.length
            ));
        }
        if count > self.budget {
            return Err("is damaged: its tables overlap each other; copy or write it again".into());
        }
        self.budget -= count;
        let mut bytes = vec![0; count as usize];
        self.file
            .read_exact_at(&mut bytes, offset)
            .map_err(|e| format!("cannot be read: {e}; check the disk and the permissions"))?;
        Ok(bytes)
    }

    /// Reads the entries of the directory at `offset`, and the offset of the next directory (0: none).
    fn directory(&mut self, offset: u64, number: usize) -> FileResult<(Vec<TagEntry>, u64)> {
        let what = format!("the header of page {number}");
        let word = if self.big_tiff { 8 } else { 4 };
        let head = if self.big_tiff { 8 } else { 2 };
        let bytes = self.bytes(offset, head, &what)?;
        let count = self.number(&bytes);
        if count > 65535 {
            return Err(format!("is damaged: {what} claims {count} entries; copy or write it again"));
        }
        let each = 4 + 2 * word;
        let bytes = self.bytes(offset + head, count * each as u64 + word as u64, &what)?;
        let (table, next) = bytes.split_at(count as usize * each);
        let entries = table.chunks_exact(each).map(|e| {
            let mut value = [0; 8];
            value[..word].copy_from_slice(&e[4 + word..]);
            TagEntry {
                tag: self.number(&e[..2]) as u16,
                kind: self.number(&e[2..4]) as u16,
                count: self.number(&e[4..4 + word]),
                value,
            }
        });
        Ok((entries.collect(), self.number(next)))
    }

    /// Reads the bytes of an entry's value, and returns them with the size of one item.
    fn raw(&mut self, entry: &TagEntry) -> FileResult<(Vec<u8>, usize)> {
        let size: usize = match entry.kind {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 13 => 4,
            16..=18 => 8,
            kind => {
                return Err(format!(
                    "tag {} has the type {kind}, expected an integer; copy or write it again",
                    entry.tag
                ));
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

    /// Reads all values of an integer tag; returns `None` if the page has no such tag.
    fn values(&mut self, entries: &[TagEntry], tag: u16, expected: Option<u64>) -> FileResult<Option<Vec<u64>>> {
        let Some(entry) = entries.iter().find(|e| e.tag == tag) else {
            return Ok(None);
        };
        if let Some(expected) = expected.filter(|&n| n != entry.count) {
            return Err(format!("tag {tag} has {} values, expected {expected}; copy or write it again", entry.count));
        }
        let (bytes, size) = self.raw(entry)?;
        Ok(Some(bytes.chunks_exact(size).map(|b| self.number(b)).collect()))
    }

    /// Reads the single value of an integer tag.
    fn value(&mut self, entries: &[TagEntry], tag: u16) -> FileResult<Option<u64>> {
        Ok(self.values(entries, tag, Some(1))?.and_then(|v| v.first().copied()))
    }

    /// Checks the tags of one page and builds its table of tiles.
    fn page(&mut self, entries: &[TagEntry]) -> FileResult<Page> {
        let (width, height) = self.size(entries)?;
        let sample = self.sample(entries)?;
        let (compression, predictor) = self.coding(entries, sample)?;
        let jpeg_tables = match entries.iter().find(|e| e.tag == tag::JPEG_TABLES) {
            Some(e) if compression == 7 => Some(Arc::from(self.raw(e)?.0)),
            _ => None,
        };
        let mut grid = self.grid(entries, (width, height))?;
        let row_bytes = grid.tile_width * sample.bytes() as u64;
        let mut tiles = self.tiles(&grid, height, row_bytes, compression)?;
        check_apart(&tiles, grid.noun)?;
        if compression == 1 && grid.noun == STRIP && tiles.windows(2).all(|t| t[0].0 + t[0].1 == t[1].0) {
            // contiguous strips are one strip
            tiles = vec![(tiles[0].0, height * row_bytes)];
            grid.tile_height = height;
        }
        Ok(Page {
            width: width as usize,
            height: height as usize,
            sample,
            big_endian: self.big_endian,
            compression: compression as u16,
            predictor: predictor as u16,
            tile_width: grid.tile_width as usize,
            tile_height: grid.tile_height as usize,
            tiles: tiles.into(),
            jpeg_tables,
        })
    }

    /// Reads width and height in pixels.
    fn size(&mut self, entries: &[TagEntry]) -> FileResult<(u64, u64)> {
        let width = needed(self.value(entries, tag::IMAGE_WIDTH)?, "ImageWidth")?;
        let height = needed(self.value(entries, tag::IMAGE_LENGTH)?, "ImageLength")?;
        if width == 0 || height == 0 {
            return Err(format!("has {width}x{height} pixels, which is empty; copy or write it again"));
        }
        if width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS {
            return Err(format!(
                "claims {width}x{height} pixels, more than the {MAX_SIDE} a side and {MAX_PIXELS} in all \
                 that can be read; check whether the file is damaged"
            ));
        }
        Ok((width, height))
    }

    /// Reads the sample type, and checks that a pixel has one sample.
    fn sample(&mut self, entries: &[TagEntry]) -> FileResult<SampleType> {
        let samples = self.value(entries, tag::SAMPLES_PER_PIXEL)?.unwrap_or(1);
        let photometric = self.value(entries, tag::PHOTOMETRIC_INTERPRETATION)?.unwrap_or(1);
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
            // some programs take three or four frames for the colours of one
            let frames = match samples {
                3 | 4 => format!(", or, if these are {samples} frames, save each of them as a page of grey values"),
                _ => String::new(),
            };
            return Err(format!(
                "has {samples} sample(s) per pixel ({kind}), expected one grey value per pixel; \
                 convert it to greyscale{frames}"
            ));
        }
        let format = self.value(entries, tag::SAMPLE_FORMAT)?.unwrap_or(1);
        let bits = self.value(entries, tag::BITS_PER_SAMPLE)?.unwrap_or(1);
        SampleType::from_tags(format, bits).ok_or_else(|| {
            format!(
                "has {bits}-bit samples of format {format}, expected 8-, 16-, 32- or 64-bit integers \
                 or 16-, 32- or 64-bit floats"
            )
        })
    }

    /// Reads compression and predictor.
    fn coding(&mut self, entries: &[TagEntry], sample: SampleType) -> FileResult<(u64, u64)> {
        let compression = self.value(entries, tag::COMPRESSION)?.unwrap_or(1);
        let known =
            matches!(compression, 1 | 5 | 8 | 32773 | 32946 | ZSTD) || (compression == 7 && sample == SampleType::U8);
        if !known {
            let name = match compression {
                6 | 7 => " (JPEG)",
                34925 => " (LZMA)",
                50001 => " (WebP)",
                _ => "",
            };
            return Err(format!(
                "is compressed by method {compression}{name}, expected none, LZW, deflate, \
                 Zstandard, PackBits or JPEG of 8-bit data; save it with one of these"
            ));
        }
        // PackBits and JPEG have no predictor
        let predictor = match compression {
            5 | 8 | 32946 | ZSTD => self.value(entries, tag::PREDICTOR)?.unwrap_or(1),
            _ => 1,
        };
        if !(predictor == 1 || predictor == 2 || predictor == 3 && sample.is_float()) {
            return Err(format!(
                "has the predictor {predictor} for {sample} data, which is not known; save it without a predictor"
            ));
        }
        if compression != 1 && self.value(entries, tag::FILL_ORDER)?.unwrap_or(1) != 1 {
            return Err("is compressed with reversed bits (FillOrder 2); save it again".into());
        }
        Ok((compression, predictor))
    }

    /// Reads how a page is divided into tiles, and the offsets of the tiles.
    fn grid(&mut self, entries: &[TagEntry], (width, height): (u64, u64)) -> FileResult<Grid> {
        let tiled = entries.iter().any(|e| e.tag == tag::TILE_WIDTH || e.tag == tag::TILE_OFFSETS);
        let (tile_width, tile_height, offsets, counts, noun) = if tiled {
            let width = needed(self.value(entries, tag::TILE_WIDTH)?, "TileWidth")?;
            let height = needed(self.value(entries, tag::TILE_LENGTH)?, "TileLength")?;
            (width, height, tag::TILE_OFFSETS, tag::TILE_BYTE_COUNTS, "tile")
        } else {
            let rows = self.value(entries, tag::ROWS_PER_STRIP)?.unwrap_or(height);
            (width, rows.min(height), tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS, STRIP)
        };
        if tile_width == 0 || tile_height == 0 || tile_width > MAX_SIDE || tile_height > MAX_SIDE {
            return Err(format!(
                "has {noun}s of {tile_width}x{tile_height} pixels; save it with strips, or tiles of 16 pixels or more"
            ));
        }
        let (across, down) = (width.div_ceil(tile_width), height.div_ceil(tile_height));
        let expected = Some(across * down);
        let offsets =
            self.values(entries, offsets, expected)?.ok_or(format!("has no {noun} offsets; copy or write it again"))?;
        let counts = self.values(entries, counts, expected)?;
        Ok(Grid { tile_width, tile_height, across, offsets, counts, noun })
    }

    /// Returns offset and length of every tile, and checks that they are within the file.
    fn tiles(&self, grid: &Grid, height: u64, row_bytes: u64, compression: u64) -> FileResult<Vec<(u64, u64)>> {
        let Grid { tile_height, across, noun, .. } = *grid;
        let mut tiles = Vec::with_capacity(grid.offsets.len());
        for (i, &offset) in grid.offsets.iter().enumerate() {
            let rows = tile_height.min(height - i as u64 / across * tile_height);
            let whole = rows * row_bytes;
            let count = grid.counts.as_ref().map_or(0, |c| c[i]);
            let used = used_bytes(compression, count, whole).map_err(|why| match why {
                Unusable::Short => format!("{noun} {i} holds {count} bytes, expected {whole}, so the file is damaged; copy or write it again"),
                Unusable::TooDense => {
                    format!("{noun} {i} holds {count} bytes, which cannot decompress to {whole}, so the file is damaged; copy or write it again")
                }
                Unusable::TooLarge => format!(
                    "{noun} {i} decompresses to {whole} bytes, more than the {MAX_STRIP} that can be read in one \
                     piece; save it with more {noun}s"
                ),
                Unusable::TooLong => {
                    format!("{noun} {i} holds {count} bytes for {whole} decompressed ones, so the file is damaged; copy or write it again")
                }
            })?;
            let end = offset.checked_add(used);
            if offset < 8 || end.is_none_or(|end| end > self.length) {
                return Err(format!(
                    "is truncated or damaged: {noun} {i} needs {used} bytes from offset {offset}, \
                     the file has {}; copy or write it again",
                    self.length
                ));
            }
            tiles.push((offset, used));
        }
        Ok(tiles)
    }

    /// Returns the number of images of an ImageJ stack, as the description of the first page gives it.
    fn promised(&mut self, entries: &[TagEntry]) -> Option<u64> {
        let text = match entries.iter().find(|e| e.tag == tag::IMAGE_DESCRIPTION && e.kind == 2 && e.count < 1 << 16) {
            Some(entry) => self.raw(entry).map(|(bytes, _)| bytes).unwrap_or_default(),
            None => Vec::new(),
        };
        let text = String::from_utf8_lossy(&text);
        let images = text.lines().find_map(|line| line.strip_prefix("images=")?.trim().parse::<u64>().ok());
        images.filter(|&n| n > 1 && n < 1 << 20 && text.starts_with("ImageJ="))
    }

    /// Returns the pages of an ImageJ stack above 4 GB, which contains only the header of the first page; the data of
    /// the other pages follow without headers.
    fn image_j(&self, images: u64, page: Page) -> FileResult<Vec<Page>> {
        let [(offset, bytes)] = *page.tiles else {
            return Err(format!("is an ImageJ stack of {images} images with a header for only one; save it again"));
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

/// Division of a page into tiles, or into strips, which are tiles as wide as the page.
struct Grid {
    tile_width: u64,
    tile_height: u64,
    /// Number of tiles side by side.
    across: u64,
    /// Offset of every tile, row by row.
    offsets: Vec<u64>,
    /// Number of bytes of every tile, row by row, if the file has them.
    counts: Option<Vec<u64>>,
    /// Name of a tile in messages.
    noun: &'static str,
}

/// Name in messages of a tile that is as wide as the page.
const STRIP: &str = "strip";

/// Returns the value of a tag that a page must have.
fn needed(value: Option<u64>, name: &str) -> FileResult<u64> {
    value.ok_or(format!("has no tag {name}; copy or write it again"))
}

/// Reason why the number of bytes of a tile is invalid.
enum Unusable {
    Short,
    TooDense,
    TooLarge,
    TooLong,
}

/// Returns the number of bytes of a tile in the file, which claims `count` bytes and has `whole` bytes uncompressed.
fn used_bytes(compression: u64, count: u64, whole: u64) -> Result<u64, Unusable> {
    let ratio = if compression == ZSTD { MAX_ZSTD_RATIO } else { MAX_RATIO };
    match compression {
        // some programs omit the count of uncompressed data, or include padding
        1 if count == 0 || count >= whole => Ok(whole),
        1 => Err(Unusable::Short),
        _ if count == 0 || whole / ratio > count => Err(Unusable::TooDense),
        _ if whole > MAX_STRIP => Err(Unusable::TooLarge),
        // incompressible data grow by half at most
        _ if count > 2 * whole + PIECE as u64 => Err(Unusable::TooLong),
        _ => Ok(count),
    }
}

/// Checks that no two tiles share bytes of the file.
fn check_apart(tiles: &[(u64, u64)], noun: &str) -> FileResult<()> {
    let apart = |tiles: &[(u64, u64)]| tiles.windows(2).all(|t| t[0].0 + t[0].1 <= t[1].0);
    if !apart(tiles) {
        let mut ordered = tiles.to_vec();
        ordered.sort_unstable();
        if !apart(&ordered) {
            return Err(format!(
                "is damaged: some of its {noun}s are at the same place in the file; copy or write it again"
            ));
        }
    }
    Ok(())
}
