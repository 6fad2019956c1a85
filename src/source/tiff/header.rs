//! TIFF headers.
//!
//! The header of every page is read once, checked against the size of the file, and kept as a table of strips or tiles.

use super::errors::{MAX_STRIP, TiffPageError};
use super::find::refuse_archive;
use super::page::{PIECE, Page, TilePlace};
use crate::error::BoxedError;
use crate::layout::SampleType;
use crate::layout::tiff::{FieldType, Photometric, Predictor, SampleFormat, Tag, TagEntry, TiffCompression, TiffForm};
use crate::source::frames::{MAX_PIXELS, MAX_SIDE};
use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Largest compression ratio of the supported methods except Zstandard (LZW: 4096 bytes from 12 bits).
const MAX_RATIO: u64 = 4096;
/// Largest compression ratio of Zstandard (a block of 128 KiB from 4 bytes).
const MAX_ZSTD_RATIO: u64 = 1 << 15;

/// Reader of the headers of one file.
struct Reader<'a> {
    file: &'a File,
    length: u64,
    form: TiffForm,
    /// Number of header bytes that may still be read, which limits overlapping tables.
    budget: u64,
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
pub fn read_pages(file: &File, length: u64) -> Result<TiffHeaders, BoxedError> {
    if length == 0 {
        return Err(TiffPageError::Empty.into());
    }
    let mut start = [0; TiffForm::HEADER];
    let start = &mut start[..length.min(TiffForm::HEADER as u64) as usize];
    file.read_exact_at(start, 0)?;
    refuse_archive(file)?;
    let (form, mut next) = TiffForm::parse(start)?;
    let mut reader = Reader { file, length, form, budget: length.saturating_mul(2).saturating_add(1 << 20) };
    let (mut pages, mut seen) = (Vec::new(), HashSet::new());
    let (mut orientation, mut promised) = (None, None);
    while next != 0 {
        let number = pages.len();
        if !seen.insert(next) {
            return Err(TiffPageError::Loop { page: number - 1 }.into());
        }
        let (entries, after) = reader.directory(next, number)?;
        let page = reader.page(&entries).map_err(|e| e.in_page(number))?;
        // errors in a tag that nothing depends on are ignored
        orientation =
            orientation.or(reader.value(&entries, Tag::Orientation).unwrap_or(None).filter(|&value| value != 1));
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
        return Err(TiffPageError::NoPages.into());
    }
    let promised = promised.filter(|&images| images > pages.len() as u64);
    Ok(TiffHeaders { pages, orientation, promised })
}

impl Reader<'_> {
    /// Reads `count` header bytes at `offset`, which must be within the file and the budget.
    fn bytes(&mut self, offset: u64, count: u64, what: &str) -> Result<Vec<u8>, TiffPageError> {
        if offset.checked_add(count).is_none_or(|end| end > self.length) {
            let (what, length) = (what.to_owned(), self.length);
            return Err(TiffPageError::Truncated { what, needed: count, offset, length });
        }
        if count > self.budget {
            return Err(TiffPageError::OverlappingTables);
        }
        self.budget -= count;
        let mut bytes = vec![0; count as usize];
        self.file.read_exact_at(&mut bytes, offset).map_err(|error| TiffPageError::Unreadable { error })?;
        Ok(bytes)
    }

    /// Reads the entries of the directory at `offset`, and the offset of the next directory (0: none).
    fn directory(&mut self, offset: u64, number: usize) -> Result<(Vec<TagEntry>, u64), TiffPageError> {
        let what = format!("the header of page {number}");
        let head = self.form.count_bytes() as u64;
        let count = self.form.number(&self.bytes(offset, head, &what)?);
        if count > 65535 {
            return Err(TiffPageError::TooManyEntries { page: number, count });
        }
        let length = count * TagEntry::bytes(self.form) as u64 + self.form.offset_bytes() as u64;
        Ok(TagEntry::parse_all(&self.bytes(offset + head, length, &what)?, self.form))
    }

    /// Reads the bytes of an entry's value, and returns them with the size of one item.
    fn raw(&mut self, entry: &TagEntry) -> Result<(Vec<u8>, usize), TiffPageError> {
        let Some(size) = FieldType::from_repr(entry.field).and_then(FieldType::integer_bytes) else {
            return Err(TiffPageError::NotAnInteger { tag: entry.tag, field: entry.field });
        };
        let word = self.form.offset_bytes();
        let bytes = entry.count.saturating_mul(size as u64);
        if bytes <= word as u64 {
            return Ok((entry.value[..bytes as usize].to_vec(), size));
        }
        let offset = self.form.number(&entry.value[..word]);
        Ok((self.bytes(offset, bytes, &format!("tag {}", entry.tag))?, size))
    }

    /// Reads all values of an integer tag; returns `None` if the page has no such tag.
    fn values(
        &mut self,
        entries: &[TagEntry],
        tag: Tag,
        expected: Option<u64>,
    ) -> Result<Option<Vec<u64>>, TiffPageError> {
        let Some(entry) = entry_of(entries, tag) else {
            return Ok(None);
        };
        if let Some(expected) = expected.filter(|&n| n != entry.count) {
            return Err(TiffPageError::ValueCount { tag: tag.number(), count: entry.count, expected });
        }
        let (bytes, size) = self.raw(entry)?;
        Ok(Some(bytes.chunks_exact(size).map(|b| self.form.number(b)).collect()))
    }

    /// Reads the single value of an integer tag.
    fn value(&mut self, entries: &[TagEntry], tag: Tag) -> Result<Option<u64>, TiffPageError> {
        Ok(self.values(entries, tag, Some(1))?.and_then(|v| v.first().copied()))
    }

    /// Reads the single value of an integer tag that a page must have.
    fn needed(&mut self, entries: &[TagEntry], tag: Tag) -> Result<u64, TiffPageError> {
        self.value(entries, tag)?.ok_or_else(|| TiffPageError::NoTag { name: tag.name() })
    }

    /// Checks the tags of one page and builds its table of tiles.
    fn page(&mut self, entries: &[TagEntry]) -> Result<Page, TiffPageError> {
        let (width, height) = self.size(entries)?;
        let sample = self.sample(entries)?;
        let (compression, predictor) = self.coding(entries, sample)?;
        let jpeg_tables = match entry_of(entries, Tag::JpegTables) {
            Some(entry) if compression == TiffCompression::Jpeg => Some(Arc::from(self.raw(entry)?.0)),
            _ => None,
        };
        let mut grid = self.grid(entries, width, height)?;
        let row_bytes = grid.tile_width * sample.bytes() as u64;
        let mut tiles = self.tiles(&grid, height, row_bytes, compression)?;
        check_apart(&tiles, grid.noun)?;
        let plain = compression == TiffCompression::None;
        if plain && grid.noun == STRIP && tiles.windows(2).all(|t| t[0].end() == t[1].offset) {
            // contiguous strips are one strip
            tiles = vec![TilePlace { offset: tiles[0].offset, bytes: height * row_bytes }];
            grid.tile_height = height;
        }
        Ok(Page {
            width: width as usize,
            height: height as usize,
            sample,
            big_endian: self.form.big_endian,
            compression,
            predictor,
            tile_width: grid.tile_width as usize,
            tile_height: grid.tile_height as usize,
            tiles: tiles.into(),
            jpeg_tables,
        })
    }

    /// Reads width and height in pixels.
    fn size(&mut self, entries: &[TagEntry]) -> Result<(u64, u64), TiffPageError> {
        let width = self.needed(entries, Tag::ImageWidth)?;
        let height = self.needed(entries, Tag::ImageLength)?;
        if width == 0 || height == 0 {
            return Err(TiffPageError::NoPixels { width, height });
        }
        if width > MAX_SIDE || height > MAX_SIDE || width * height > MAX_PIXELS {
            return Err(TiffPageError::TooManyPixels { width, height });
        }
        Ok((width, height))
    }

    /// Reads the sample type, and checks that a pixel has one sample.
    fn sample(&mut self, entries: &[TagEntry]) -> Result<SampleType, TiffPageError> {
        let samples = self.value(entries, Tag::SamplesPerPixel)?.unwrap_or(1);
        let black_is_zero = Photometric::BlackIsZero as u64;
        let photometric = self.value(entries, Tag::PhotometricInterpretation)?.unwrap_or(black_is_zero);
        if samples != 1 || photometric > black_is_zero {
            let kind = match known(photometric, Photometric::from_repr) {
                Some(Photometric::WhiteIsZero | Photometric::BlackIsZero) => "several channels",
                Some(Photometric::Rgb) => "RGB",
                Some(Photometric::Palette) => "a colour palette",
                Some(Photometric::Mask) => "a mask",
                Some(Photometric::Cmyk) => "CMYK",
                Some(Photometric::YCbCr) => "YCbCr colour",
                None => "of another kind",
            };
            return Err(match samples {
                3 | 4 => TiffPageError::NotGreyOrFrames { samples, kind },
                _ => TiffPageError::NotGrey { samples, kind },
            });
        }
        let format = self.value(entries, Tag::SampleFormat)?.unwrap_or(SampleFormat::Unsigned as u64);
        let bits = self.value(entries, Tag::BitsPerSample)?.unwrap_or(1);
        let sample = known(format, SampleFormat::from_repr).and_then(|format| format.sample(bits));
        sample.ok_or(TiffPageError::SampleFormat { bits, format })
    }

    /// Reads compression and predictor.
    fn coding(
        &mut self,
        entries: &[TagEntry],
        sample: SampleType,
    ) -> Result<(TiffCompression, Predictor), TiffPageError> {
        use TiffCompression as Method;
        let number = self.value(entries, Tag::Compression)?.unwrap_or(Method::None as u64);
        let (method, has_predictor, name) = match known(number, Method::from_repr) {
            Some(method @ (Method::Lzw | Method::Deflate | Method::OldDeflate | Method::Zstd)) => {
                (Some(method), true, "")
            }
            Some(method @ (Method::None | Method::PackBits)) => (Some(method), false, ""),
            Some(Method::Jpeg) if sample == SampleType::U8 => (Some(Method::Jpeg), false, ""),
            Some(Method::OldJpeg | Method::Jpeg) => (None, false, " (JPEG)"),
            Some(Method::Lzma) => (None, false, " (LZMA)"),
            Some(Method::WebP) => (None, false, " (WebP)"),
            None => (None, false, ""),
        };
        let Some(compression) = method else {
            return Err(TiffPageError::Compression { number, name });
        };
        let none = Predictor::None as u64;
        let number = if has_predictor { self.value(entries, Tag::Predictor)?.unwrap_or(none) } else { none };
        let predictor = known(number, Predictor::from_repr);
        let Some(predictor) = predictor.filter(|&of| of != Predictor::FloatingPoint || sample.is_float()) else {
            return Err(TiffPageError::Predictor { number, sample });
        };
        if compression != Method::None && self.value(entries, Tag::FillOrder)?.unwrap_or(1) != 1 {
            return Err(TiffPageError::ReversedBits);
        }
        Ok((compression, predictor))
    }

    /// Reads how a page is divided into tiles, and the offsets of the tiles.
    fn grid(&mut self, entries: &[TagEntry], width: u64, height: u64) -> Result<Grid, TiffPageError> {
        let tiled = [Tag::TileWidth, Tag::TileOffsets].iter().any(|&tag| entry_of(entries, tag).is_some());
        let (tile_width, tile_height, offsets, counts, noun) = if tiled {
            let width = self.needed(entries, Tag::TileWidth)?;
            let height = self.needed(entries, Tag::TileLength)?;
            (width, height, Tag::TileOffsets, Tag::TileByteCounts, "tile")
        } else {
            let rows = self.value(entries, Tag::RowsPerStrip)?.unwrap_or(height);
            (width, rows.min(height), Tag::StripOffsets, Tag::StripByteCounts, STRIP)
        };
        if tile_width == 0 || tile_height == 0 || tile_width > MAX_SIDE || tile_height > MAX_SIDE {
            return Err(TiffPageError::TileSize { noun, width: tile_width, height: tile_height });
        }
        let (across, down) = (width.div_ceil(tile_width), height.div_ceil(tile_height));
        let expected = Some(across * down);
        let offsets = self.values(entries, offsets, expected)?.ok_or(TiffPageError::NoOffsets { noun })?;
        let counts = self.values(entries, counts, expected)?;
        Ok(Grid { tile_width, tile_height, across, offsets, counts, noun })
    }

    /// Returns offset and length of every tile, and checks that they are within the file.
    fn tiles(
        &self,
        grid: &Grid,
        height: u64,
        row_bytes: u64,
        compression: TiffCompression,
    ) -> Result<Vec<TilePlace>, TiffPageError> {
        let Grid { tile_height, across, noun, .. } = *grid;
        let mut tiles = Vec::with_capacity(grid.offsets.len());
        for (number, &offset) in grid.offsets.iter().enumerate() {
            let rows = tile_height.min(height - number as u64 / across * tile_height);
            let whole = rows * row_bytes;
            let bytes = grid.counts.as_ref().map_or(0, |counts| counts[number]);
            let used = used_bytes(compression, bytes, whole).map_err(|why| match why {
                Unusable::Short => TiffPageError::TileTooShort { noun, number, bytes, expected: whole },
                Unusable::TooDense => TiffPageError::TileTooDense { noun, number, bytes, whole },
                Unusable::TooLarge => TiffPageError::TileTooLarge { noun, number, whole },
                Unusable::TooLong => TiffPageError::TileTooLong { noun, number, bytes, whole },
            })?;
            let end = offset.checked_add(used);
            if offset < 8 || end.is_none_or(|end| end > self.length) {
                let what = format!("{noun} {number}");
                return Err(TiffPageError::Truncated { what, needed: used, offset, length: self.length });
            }
            tiles.push(TilePlace { offset, bytes: used });
        }
        Ok(tiles)
    }

    /// Returns the number of images of an ImageJ stack, as the description of the first page gives it.
    fn promised(&mut self, entries: &[TagEntry]) -> Option<u64> {
        let is_text = |entry: &&TagEntry| entry.field == FieldType::Ascii as u16 && entry.count < 1 << 16;
        let text = match entry_of(entries, Tag::ImageDescription).filter(is_text) {
            Some(entry) => self.raw(entry).map(|(bytes, _)| bytes).unwrap_or_default(),
            None => Vec::new(),
        };
        let text = String::from_utf8_lossy(&text);
        let images = text.lines().find_map(|line| line.strip_prefix("images=")?.trim().parse::<u64>().ok());
        images.filter(|&n| n > 1 && n < 1 << 20 && text.starts_with("ImageJ="))
    }

    /// Returns the pages of an ImageJ stack above 4 GB, which contains only the header of the first page; the data of
    /// the other pages follow without headers.
    fn image_j(&self, images: u64, page: Page) -> Result<Vec<Page>, TiffPageError> {
        let [TilePlace { offset, bytes }] = *page.tiles else {
            return Err(TiffPageError::ImageJTiles { images });
        };
        if page.compression != TiffCompression::None
            || images.checked_mul(bytes).and_then(|all| all.checked_add(offset)).is_none_or(|end| end > self.length)
        {
            return Err(TiffPageError::ImageJTruncated { images, bytes, offset, length: self.length });
        }
        let at = |i| Page { tiles: [TilePlace { offset: offset + i * bytes, bytes }].into(), ..page.clone() };
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

/// Returns the entry of a tag, if the page has it.
fn entry_of(entries: &[TagEntry], tag: Tag) -> Option<&TagEntry> {
    entries.iter().find(|entry| entry.tag == tag.number())
}

/// Returns the value that a number in a file stands for, if it is known.
fn known<T>(number: u64, value: impl Fn(u16) -> Option<T>) -> Option<T> {
    u16::try_from(number).ok().and_then(value)
}

/// Reason why the number of bytes of a tile is invalid.
enum Unusable {
    Short,
    TooDense,
    TooLarge,
    TooLong,
}

/// Returns the number of bytes of a tile in the file, which claims `count` bytes and has `whole` bytes uncompressed.
fn used_bytes(compression: TiffCompression, count: u64, whole: u64) -> Result<u64, Unusable> {
    let ratio = if compression == TiffCompression::Zstd { MAX_ZSTD_RATIO } else { MAX_RATIO };
    match compression {
        // some programs omit the count of uncompressed data, or include padding
        TiffCompression::None if count == 0 || count >= whole => Ok(whole),
        TiffCompression::None => Err(Unusable::Short),
        _ if count == 0 || whole / ratio > count => Err(Unusable::TooDense),
        _ if whole > MAX_STRIP => Err(Unusable::TooLarge),
        // incompressible data grow by half at most
        _ if count > 2 * whole + PIECE as u64 => Err(Unusable::TooLong),
        _ => Ok(count),
    }
}

/// Checks that no two tiles share bytes of the file.
fn check_apart(tiles: &[TilePlace], noun: &'static str) -> Result<(), TiffPageError> {
    let apart = |tiles: &[TilePlace]| tiles.windows(2).all(|t| t[0].end() <= t[1].offset);
    if !apart(tiles) {
        let mut ordered = tiles.to_vec();
        ordered.sort_unstable_by_key(|tile| tile.offset);
        if !apart(&ordered) {
            return Err(TiffPageError::OverlappingTiles { noun });
        }
    }
    Ok(())
}
