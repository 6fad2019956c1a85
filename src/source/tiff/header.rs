//! TIFF headers.
//!
//! The header of every page is read once, checked against the size of the file, and kept as a table of strips or tiles.

use super::FileResult;
use super::find::refuse_archive;
use super::page::{PIECE, Page, TilePlace};
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
/// Largest size of a compressed strip or tile after decompression, in bytes; it is decompressed in one piece.
const MAX_STRIP: u64 = 1 << 30;

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
pub fn read_pages(file: &File, length: u64) -> FileResult<TiffHeaders> {
    if length == 0 {
        return Err("is empty (0 bytes), expected a TIFF; copy or write it again".into());
    }
    let mut start = [0; TiffForm::HEADER];
    let start = &mut start[..length.min(TiffForm::HEADER as u64) as usize];
    file.read_exact_at(start, 0).map_err(|e| e.to_string())?;
    refuse_archive(file)?;
    let (form, mut next) = TiffForm::parse(start).map_err(|e| e.to_string())?;
    let mut reader = Reader { file, length, form, budget: length.saturating_mul(2).saturating_add(1 << 20) };
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
        return Err(
            "is a TIFF without pages, perhaps because writing it was interrupted; copy or write it again".into()
        );
    }
    let promised = promised.filter(|&images| images > pages.len() as u64);
    Ok(TiffHeaders { pages, orientation, promised })
}

impl Reader<'_> {
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
        let head = self.form.count_bytes() as u64;
        let count = self.form.number(&self.bytes(offset, head, &what)?);
        if count > 65535 {
            return Err(format!("is damaged: {what} claims {count} entries; copy or write it again"));
        }
        let length = count * TagEntry::bytes(self.form) as u64 + self.form.offset_bytes() as u64;
        Ok(TagEntry::parse_all(&self.bytes(offset + head, length, &what)?, self.form))
    }

    /// Reads the bytes of an entry's value, and returns them with the size of one item.
    fn raw(&mut self, entry: &TagEntry) -> FileResult<(Vec<u8>, usize)> {
        let Some(size) = FieldType::from_repr(entry.field).and_then(FieldType::integer_bytes) else {
            let TagEntry { tag, field, .. } = entry;
            return Err(format!("tag {tag} has the type {field}, expected an integer; copy or write it again"));
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
    fn values(&mut self, entries: &[TagEntry], tag: Tag, expected: Option<u64>) -> FileResult<Option<Vec<u64>>> {
        let Some(entry) = entry_of(entries, tag) else {
            return Ok(None);
        };
        if let Some(expected) = expected.filter(|&n| n != entry.count) {
            let tag = tag.number();
            return Err(format!("tag {tag} has {} values, expected {expected}; copy or write it again", entry.count));
        }
        let (bytes, size) = self.raw(entry)?;
        Ok(Some(bytes.chunks_exact(size).map(|b| self.form.number(b)).collect()))
    }

    /// Reads the single value of an integer tag.
    fn value(&mut self, entries: &[TagEntry], tag: Tag) -> FileResult<Option<u64>> {
        Ok(self.values(entries, tag, Some(1))?.and_then(|v| v.first().copied()))
    }

    /// Reads the single value of an integer tag that a page must have.
    fn needed(&mut self, entries: &[TagEntry], tag: Tag) -> FileResult<u64> {
        let name = tag.name();
        self.value(entries, tag)?.ok_or_else(|| format!("has no tag {name}; copy or write it again"))
    }

    /// Checks the tags of one page and builds its table of tiles.
    fn page(&mut self, entries: &[TagEntry]) -> FileResult<Page> {
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
    fn size(&mut self, entries: &[TagEntry]) -> FileResult<(u64, u64)> {
        let width = self.needed(entries, Tag::ImageWidth)?;
        let height = self.needed(entries, Tag::ImageLength)?;
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
        let format = self.value(entries, Tag::SampleFormat)?.unwrap_or(SampleFormat::Unsigned as u64);
        let bits = self.value(entries, Tag::BitsPerSample)?.unwrap_or(1);
        known(format, SampleFormat::from_repr).and_then(|format| format.sample(bits)).ok_or_else(|| {
            format!(
                "has {bits}-bit samples of format {format}, expected 8-, 16-, 32- or 64-bit integers \
                 or 16-, 32- or 64-bit floats"
            )
        })
    }

    /// Reads compression and predictor.
    fn coding(&mut self, entries: &[TagEntry], sample: SampleType) -> FileResult<(TiffCompression, Predictor)> {
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
            return Err(format!(
                "is compressed by method {number}{name}, expected none, LZW, deflate, \
                 Zstandard, PackBits or JPEG of 8-bit data; save it with one of these"
            ));
        };
        let none = Predictor::None as u64;
        let number = if has_predictor { self.value(entries, Tag::Predictor)?.unwrap_or(none) } else { none };
        let predictor = known(number, Predictor::from_repr);
        let Some(predictor) = predictor.filter(|&of| of != Predictor::FloatingPoint || sample.is_float()) else {
            return Err(format!(
                "has the predictor {number} for {sample} data, which is not known; save it without a predictor"
            ));
        };
        if compression != Method::None && self.value(entries, Tag::FillOrder)?.unwrap_or(1) != 1 {
            return Err("is compressed with reversed bits (FillOrder 2); save it again".into());
        }
        Ok((compression, predictor))
    }

    /// Reads how a page is divided into tiles, and the offsets of the tiles.
    fn grid(&mut self, entries: &[TagEntry], width: u64, height: u64) -> FileResult<Grid> {
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
    fn tiles(
        &self,
        grid: &Grid,
        height: u64,
        row_bytes: u64,
        compression: TiffCompression,
    ) -> FileResult<Vec<TilePlace>> {
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
    fn image_j(&self, images: u64, page: Page) -> FileResult<Vec<Page>> {
        let [TilePlace { offset, bytes }] = *page.tiles else {
            return Err(format!("is an ImageJ stack of {images} images with a header for only one; save it again"));
        };
        if page.compression != TiffCompression::None
            || images.checked_mul(bytes).and_then(|all| all.checked_add(offset)).is_none_or(|end| end > self.length)
        {
            return Err(format!(
                "is truncated: its ImageJ header says {images} images of {bytes} bytes from offset {offset}, \
                 the file has {}; copy or save it again",
                self.length
            ));
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
fn check_apart(tiles: &[TilePlace], noun: &str) -> FileResult<()> {
    let apart = |tiles: &[TilePlace]| tiles.windows(2).all(|t| t[0].end() <= t[1].offset);
    if !apart(tiles) {
        let mut ordered = tiles.to_vec();
        ordered.sort_unstable_by_key(|tile| tile.offset);
        if !apart(&ordered) {
            return Err(format!(
                "is damaged: some of its {noun}s are at the same place in the file; copy or write it again"
            ));
        }
    }
    Ok(())
}
