//! Reading rows of a page.
//!
//! Uncompressed rows are read with one positioned read. Compressed strips and tiles are decoded by the `tiff` crate,
//! each as a TIFF of its own, which keeps the pages of a file independent of each other and the values raw.

use super::errors::TiffPageError;
use crate::layout::tiff::{
    Directory, Photometric, Predictor, SampleFormat, Tag, TagValue, TiffCompression, TiffForm, TiffKind,
};
use crate::layout::{SampleType, to_f32};
use std::fs::File;
use std::io::{Cursor, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tiff::TiffError;
use tiff::decoder::{Decoder, Limits};

/// Bytes of one positioned read.
pub(super) const PIECE: usize = 1 << 20;

/// Page of a file, with the places of its strips or tiles; strips are tiles as wide as the page.
#[derive(Debug, Clone)]
pub(super) struct Page {
    pub width: usize,
    pub height: usize,
    pub sample: SampleType,
    pub big_endian: bool,
    pub compression: TiffCompression,
    pub predictor: Predictor,
    pub tile_width: usize,
    pub tile_height: usize,
    /// Places of the tiles, row by row.
    pub tiles: Box<[TilePlace]>,
    pub jpeg_tables: Option<Arc<[u8]>>,
}

/// Place of a tile in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct TilePlace {
    pub offset: u64,
    /// Number of bytes as the tile is stored.
    pub bytes: u64,
}

impl TilePlace {
    /// Returns the offset after the last byte.
    pub fn end(self) -> u64 {
        self.offset + self.bytes
    }
}

impl Page {
    /// Reads `rows` into `out`, which holds `rows.len() * width` values, row-major.
    pub fn read_rows(&self, file: &File, rows: Range<usize>, out: &mut [f32]) -> Result<(), TiffPageError> {
        let across = self.across();
        let mut buffer = Vec::new();
        for Part { band, within, top } in self.parts(rows) {
            let out = &mut out[top * self.width..(top + within.len()) * self.width];
            for column in 0..across {
                let tile = self.tiles[band * across + column];
                if self.is_plain() {
                    self.read_plain(file, tile, within.clone(), column, &mut buffer, out)?;
                } else {
                    let bytes = self.decompress(file, tile, within.end)?;
                    let start = within.start * self.row_bytes();
                    self.place(&bytes[start..], cfg!(target_endian = "big"), column, out);
                }
            }
        }
        Ok(())
    }

    /// Reports whether samples are stored without compression.
    pub fn is_plain(&self) -> bool {
        self.compression == TiffCompression::None
    }

    /// Reports whether [`read_stored`](Self::read_stored) returns samples in the opposite byte order of this machine's.
    pub fn swapped(&self) -> bool {
        self.is_plain() && self.big_endian != cfg!(target_endian = "big")
    }

    /// Reads `rows` uncompressed, in the sample type of the file, into `out`.
    pub fn read_stored(&self, file: &File, rows: Range<usize>, out: &mut [u8]) -> Result<(), TiffPageError> {
        if self.is_plain() && self.tile_width == self.width {
            return self.read_strips(file, rows, out);
        }
        let (across, sample) = (self.across(), self.sample.bytes());
        let mut tile_rows = Vec::new();
        for Part { band, within, top } in self.parts(rows) {
            let out = &mut out[top * self.width * sample..(top + within.len()) * self.width * sample];
            for column in 0..across {
                let tile = self.tiles[band * across + column];
                let start = within.start * self.row_bytes();
                let bytes = if self.is_plain() {
                    tile_rows.resize(within.len() * self.row_bytes(), 0);
                    read_at(file, tile.offset + start as u64, &mut tile_rows)?;
                    &tile_rows
                } else {
                    tile_rows = self.decompress(file, tile, within.end)?;
                    &tile_rows[start..]
                };
                let left = column * self.tile_width * sample;
                let used = self.row_bytes().min(self.width * sample - left);
                for (out, row) in out.chunks_exact_mut(self.width * sample).zip(bytes.chunks_exact(self.row_bytes())) {
                    out[left..left + used].copy_from_slice(&row[..used]);
                }
            }
        }
        Ok(())
    }

    /// Reads rows of uncompressed strips; strips that are contiguous in the file are read at once.
    fn read_strips(&self, file: &File, rows: Range<usize>, out: &mut [u8]) -> Result<(), TiffPageError> {
        let mut from = 0;
        let mut run: Option<Range<u64>> = None;
        for Part { band, within, .. } in self.parts(rows) {
            let first = self.tiles[band].offset;
            let bytes = within.start * self.row_bytes()..within.end * self.row_bytes();
            let next = first + bytes.start as u64..first + bytes.end as u64;
            run = match run {
                Some(run) if run.end == next.start => Some(run.start..next.end),
                Some(run) => {
                    from += read_run(file, run, &mut out[from..])?;
                    Some(next)
                }
                None => Some(next),
            };
        }
        run.map_or(Ok(()), |run| read_run(file, run, &mut out[from..]).map(drop))
    }

    /// Returns the number of tiles side by side.
    fn across(&self) -> usize {
        self.width.div_ceil(self.tile_width)
    }

    /// Returns the part of every band of tiles that is in `rows`.
    fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = Part> + use<> {
        let (height, start) = (self.tile_height, rows.start);
        let mut row = rows.start;
        std::iter::from_fn(move || {
            (row < rows.end).then(|| {
                let (band, first) = (row / height, row % height);
                let within = first..height.min(rows.end - band * height);
                let top = row - start;
                row += within.len();
                Part { band, within, top }
            })
        })
    }

    /// Returns the number of bytes of one row of a tile.
    fn row_bytes(&self) -> usize {
        self.tile_width * self.sample.bytes()
    }

    /// Reads some rows of one uncompressed tile in pieces.
    fn read_plain(
        &self,
        file: &File,
        tile: TilePlace,
        rows: Range<usize>,
        column: usize,
        buffer: &mut Vec<u8>,
        out: &mut [f32],
    ) -> Result<(), TiffPageError> {
        let row_bytes = self.row_bytes();
        let step = (PIECE / row_bytes).max(1);
        for (i, out) in out.chunks_mut(step * self.width).enumerate() {
            let offset = tile.offset + ((rows.start + i * step) * row_bytes) as u64;
            buffer.resize(out.len() / self.width * row_bytes, 0);
            read_at(file, offset, buffer)?;
            self.place(buffer, self.big_endian, column, out);
        }
        Ok(())
    }

    /// Converts complete rows of the tiles of one column into rows of the page.
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

    /// Decompresses the first `rows` rows of one tile, into the byte order of this machine.
    fn decompress(&self, file: &File, tile: TilePlace, rows: usize) -> Result<Vec<u8>, TiffPageError> {
        let single = self.tile_as_tiff(file, tile, rows)?;
        let mut bytes = vec![0; rows * self.row_bytes()];
        let damaged = |e: TiffError| TiffPageError::CompressedData { error: e.to_string() };
        // the sizes were checked against the size of the file when the header was read
        let mut decoder = Decoder::new(Cursor::new(single)).map_err(damaged)?.with_limits(Limits::unlimited());
        decoder.read_image_bytes(&mut bytes).map_err(damaged)?;
        Ok(bytes)
    }

    /// Returns a TIFF of one strip, which consists of the first `rows` rows of a tile, as they are stored.
    fn tile_as_tiff(&self, file: &File, tile: TilePlace, rows: usize) -> Result<Vec<u8>, TiffPageError> {
        let form = TiffForm { kind: TiffKind::Big, big_endian: self.big_endian };
        let start = form.header_bytes();
        let end = start + tile.bytes as usize;
        let at = end.next_multiple_of(2);
        let directory = self.directory_of_strip(rows, start as u64, tile.bytes).bytes(form, at as u64, 0);
        let mut single = Vec::with_capacity(at + directory.len());
        single.extend(form.header(at as u64));
        single.resize(end, 0);
        file.read_exact_at(&mut single[start..], tile.offset).map_err(|error| TiffPageError::Unreadable { error })?;
        if self.compression == TiffCompression::Jpeg {
            let size = jpeg_size(&single[start..]);
            // the last block may extend beyond the last row
            let heights = rows..=self.tile_height.next_multiple_of(16);
            if size.is_none_or(|(w, h, channels)| w != self.tile_width || !heights.contains(&h) || channels != 1) {
                return Err(TiffPageError::JpegSize);
            }
        }
        single.resize(at, 0);
        single.extend(directory);
        Ok(single)
    }

    /// Returns the directory of a page of one strip, which consists of `rows` rows of a tile in `bytes` bytes at the
    /// offset `start`.
    fn directory_of_strip(&self, rows: usize, start: u64, bytes: u64) -> Directory {
        let mut directory = Directory::default();
        for (tag, value) in [(Tag::ImageWidth, self.tile_width), (Tag::ImageLength, rows), (Tag::RowsPerStrip, rows)] {
            directory.set(tag, TagValue::Long(value as u32));
        }
        for (tag, value) in [
            (Tag::BitsPerSample, 8 * self.sample.bytes() as u16),
            (Tag::Compression, self.compression as u16),
            // values as they are
            (Tag::PhotometricInterpretation, Photometric::BlackIsZero as u16),
            (Tag::SamplesPerPixel, 1),
            (Tag::Predictor, self.predictor as u16),
            (Tag::SampleFormat, SampleFormat::of(self.sample) as u16),
        ] {
            directory.set(tag, TagValue::Short(value));
        }
        directory.set(Tag::StripOffsets, TagValue::Offsets(vec![start]));
        directory.set(Tag::StripByteCounts, TagValue::Offsets(vec![bytes]));
        if let Some(tables) = self.jpeg_tables.as_deref().filter(|tables| !tables.is_empty()) {
            directory.set(Tag::JpegTables, TagValue::Bytes(tables.to_vec()));
        }
        directory
    }
}

/// Part of a band of tiles that is wanted.
struct Part {
    /// Number of the band.
    band: usize,
    /// Wanted rows of the band, counted from its top.
    within: Range<usize>,
    /// First wanted row of the band, counted from the first row that is wanted of the page.
    top: usize,
}

/// Fills `out` with bytes of the file from `offset` on.
fn read_at(file: &File, offset: u64, out: &mut [u8]) -> Result<(), TiffPageError> {
    file.read_exact_at(out, offset).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => TiffPageError::BecameShorter,
        _ => TiffPageError::Unreadable { error },
    })
}

/// Reads the bytes `run` of the file to the start of `out`, and returns their number.
fn read_run(file: &File, run: Range<u64>, out: &mut [u8]) -> Result<usize, TiffPageError> {
    let count = (run.end - run.start) as usize;
    read_at(file, run.start, &mut out[..count])?;
    Ok(count)
}

/// Returns width, height and number of channels from the frame header of a JPEG stream.
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
