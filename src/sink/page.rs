//! A slice or another image as a page of a TIFF file.

use super::compression::{Compression, predict, predictor};
use super::directory::{Directory, TagValue, TiffKind, tag};
use super::encoding::{Dtype, Encoding, nearest, outside};
use super::file::{create, failed, finish};
use super::stamp::{SliceDescription, SliceStamp, digits, fraction};
use super::{OmeZarr, SliceStorage};
use crate::error::{Error, Result};
use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use rayon::prelude::*;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Files larger than this are BigTIFF instead of classic TIFF.
const CLASSIC_LIMIT: u64 = (4 << 30) - (1 << 20);
/// Approximate size of a strip in bytes.
const STRIP: usize = 256 << 10;
/// Samples and directories begin at multiples of this after the header.
const ALIGNMENT: u64 = 16;

/// Common properties of all slices of an output.
pub struct SliceForm {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    pub encoding: Encoding,
    pub compression: Compression,
    /// Version of OME-Zarr, if slices go to that.
    pub ome_zarr: OmeZarr,
    /// Numbers of all slices of the run, ascending; some may be written by other jobs.
    pub run: Vec<usize>,
    /// The run file that leads to these slices; may be empty.
    pub run_file: String,
    /// Value of the tag `Software`.
    pub software: String,
    /// Description of the run in each slice.
    pub stamp: Option<SliceStamp>,
}

impl SliceForm {
    pub(super) fn new(
        (width, height): (usize, usize),
        storage: SliceStorage,
        run: Vec<usize>,
        software: &str,
    ) -> SliceForm {
        let SliceStorage { encoding, compression, ome_zarr } = storage;
        let (software, run_file) = (software.to_owned(), String::new());
        SliceForm { width, height, encoding, compression, ome_zarr, run, run_file, software, stamp: None }
    }

    /// Classic where this number of pages fits it.
    pub(super) fn kind(&self, pages: usize) -> TiffKind {
        if self.is_big(pages) { TiffKind::Big } else { TiffKind::Classic }
    }

    /// Rows of a strip.
    fn rows_of_strip(&self) -> usize {
        (STRIP / (self.width * self.encoding.dtype.bytes())).clamp(1, self.height)
    }

    /// Bytes of the samples of a page.
    pub(super) fn sample_bytes(&self) -> u64 {
        (self.width * self.height * self.encoding.dtype.bytes()) as u64
    }

    /// Whether this number of pages does not fit a classic TIFF.
    fn is_big(&self, pages: usize) -> bool {
        let row = (self.width as u64).saturating_mul(self.encoding.dtype.bytes() as u64);
        let header = 1024 + 16 * self.height as u64; // generous estimate of tags and the strip table
        row.saturating_mul(self.height as u64).saturating_add(header).saturating_mul(pages as u64) > CLASSIC_LIMIT
    }
}

/// Writes one image (row-major, `width * height` values) as a TIFF of one page, replacing an existing
/// file; the file appears complete or not at all. Creates no directory.
///
/// # Errors
/// [`Error::Output`] when it cannot be written or `data` has another size; [`Error::Usage`] for
/// integers without a range.
pub fn write_image(
    path: &Path,
    width: usize,
    height: usize,
    data: &[f32],
    encoding: Encoding,
    software: &str,
) -> Result<()> {
    let form = SliceForm::new((width, height), encoding.into(), Vec::new(), software);
    OutputPage { form: &form, pixels: Pixels::Values(data), slice: None, number: None }.write_file(path)?;
    Ok(())
}

/// The pixels of an image, `[row][pixel]`.
#[derive(Clone, Copy, Debug)]
pub enum Pixels<'a> {
    /// Values, to be encoded.
    Values(&'a [f32]),
    /// Samples as they are stored, and how many of them were clamped.
    Samples(&'a [u8], u64),
}

/// One page to write.
pub(super) struct OutputPage<'a> {
    pub form: &'a SliceForm,
    pub pixels: Pixels<'a>,
    /// Number of the slice.
    pub slice: Option<usize>,
    /// Number of the page, and total number of pages.
    pub number: Option<(usize, usize)>,
}

/// Samples of a page as they are stored.
pub(super) struct EncodedPage<'a> {
    strips: Vec<Strip<'a>>,
    compression: Compression,
    pub clamped: u64,
    /// Checksum of the samples before they are compressed.
    pub crc32: u32,
}

/// What the directory of a page says of its samples: where they are, and their checksum.
pub(super) struct PlacedPage {
    /// Offset of the first strip; the others follow.
    data: u64,
    strips: Vec<u64>,
    compression: Compression,
    crc32: u32,
}

/// Samples of a few rows.
enum Strip<'a> {
    Lent(&'a [u8]),
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

impl<'a> Strip<'a> {
    /// Values, and how many of them were clamped.
    fn of(values: &'a [f32], dtype: Dtype, range: (f32, f32)) -> (Self, u64) {
        match dtype {
            Dtype::F32 => (Strip::Lent(bytemuck::cast_slice(values)), 0),
            Dtype::F16 => {
                let mut half = vec![f16::ZERO; values.len()];
                half.convert_from_f32_slice(values);
                let infinite = half.iter().zip(values).map(|(h, v)| u64::from(h.is_infinite() && v.is_finite()));
                let infinite = infinite.sum();
                (Strip::Words(half.reinterpret_into()), infinite)
            }
            Dtype::U16 => {
                let words = values.iter().map(|&v| nearest(v, range, 65535.0) as u16);
                (Strip::Words(words.collect()), outside(values, range))
            }
            Dtype::U8 => {
                let bytes = values.iter().map(|&v| nearest(v, range, 255.0) as u8);
                (Strip::Bytes(bytes.collect()), outside(values, range))
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Strip::Lent(bytes) => bytes,
            Strip::Bytes(bytes) => bytes,
            Strip::Words(words) => bytemuck::cast_slice(words),
        }
    }
}

impl EncodedPage<'_> {
    /// Bytes of all strips.
    pub fn bytes(&self) -> u64 {
        self.strips.iter().map(|strip| strip.bytes().len() as u64).sum()
    }

    /// All strips, one after the other.
    pub fn joined(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.bytes() as usize);
        self.strips.iter().for_each(|strip| all.extend_from_slice(strip.bytes()));
        all
    }

    /// Writes the samples to offset `data` of a file.
    pub fn write_at(&self, file: &File, data: u64) -> std::io::Result<()> {
        let mut at = data;
        for strip in &self.strips {
            file.write_all_at(strip.bytes(), at)?;
            at += strip.bytes().len() as u64;
        }
        Ok(())
    }

    /// What the directory says when the samples are at this offset.
    pub fn placed(&self, data: u64) -> PlacedPage {
        let strips = self.strips.iter().map(|strip| strip.bytes().len() as u64).collect();
        PlacedPage { data, strips, compression: self.compression, crc32: self.crc32 }
    }
}

impl PlacedPage {
    /// Offset after the last strip.
    pub fn end(&self) -> u64 {
        self.data + self.strips.iter().sum::<u64>()
    }
}

/// The first offset from this one on at which samples or a directory may begin.
pub(super) fn aligned(offset: u64) -> u64 {
    offset.next_multiple_of(ALIGNMENT)
}

impl OutputPage<'_> {
    /// Writes a file with this page only; returns how many values were clamped.
    pub fn write_file(&self, path: &Path) -> Result<u64> {
        let encoded = self.encode(path)?;
        let complete = create(path)?;
        let kind = self.form.kind(1);
        let data = kind.header_bytes() as u64;
        let end = data + encoded.bytes();
        let directory = aligned(end);
        let write = || -> std::io::Result<()> {
            let mut file = BufWriter::with_capacity(STRIP, complete.file());
            file.write_all(&kind.header(directory))?;
            encoded.strips.iter().try_for_each(|strip| file.write_all(strip.bytes()))?;
            file.write_all(&vec![0; (directory - end) as usize])?;
            file.write_all(&self.directory(&encoded.placed(data)).bytes(kind, directory, 0))?;
            file.flush()
        };
        write().map_err(|e| failed(path, &e))?;
        finish(complete, true)?;
        Ok(encoded.clamped)
    }

    /// The page as it is stored in a TIFF.
    pub fn encode(&self, path: &Path) -> Result<EncodedPage<'_>> {
        let samples = self.samples(path)?;
        self.compress(samples).map_err(|e| failed(path, &e))
    }

    /// Samples that are not compressed, the strips encoded side by side.
    pub fn samples(&self, path: &Path) -> Result<EncodedPage<'_>> {
        let SliceForm { width, height, encoding, .. } = *self.form;
        let n = match self.pixels {
            Pixels::Values(values) => values.len(),
            Pixels::Samples(bytes, _) => bytes.len() / encoding.dtype.bytes(),
        };
        let sides = [width, height].map(u32::try_from);
        if n == 0 || width.checked_mul(height) != Some(n) || sides.iter().any(std::result::Result::is_err) {
            return Err(Error::output(
                path,
                format!("{n} values do not make an image of {width}x{height}; please report this"),
            ));
        }
        let range = encoding.checked_range()?;
        let strip = self.form.rows_of_strip() * width;
        let (strips, clamped) = match self.pixels {
            Pixels::Values(values) => {
                let (strips, clamped): (Vec<_>, Vec<u64>) =
                    values.par_chunks(strip).map(|values| Strip::of(values, encoding.dtype, range)).unzip();
                (strips, clamped.into_iter().sum())
            }
            Pixels::Samples(bytes, clamped) => {
                (bytes.chunks(strip * encoding.dtype.bytes()).map(Strip::Lent).collect(), clamped)
            }
        };
        let mut crc = crc32fast::Hasher::new();
        strips.iter().for_each(|strip| crc.update(strip.bytes()));
        Ok(EncodedPage { strips, compression: Compression::None, clamped, crc32: crc.finalize() })
    }

    /// The same page compressed, the strips side by side; as it is where that would not make it smaller.
    fn compress<'a>(&self, plain: EncodedPage<'a>) -> std::io::Result<EncodedPage<'a>> {
        let SliceForm { width, encoding, compression, .. } = *self.form;
        if compression == Compression::None {
            return Ok(plain);
        }
        let strips = plain
            .strips
            .par_iter()
            .map(|strip| Ok(Strip::Bytes(compression.compress(&predict(strip.bytes(), encoding.dtype, width))?)));
        let strips = strips.collect::<std::io::Result<Vec<_>>>()?;
        let packed = EncodedPage { strips, compression, clamped: plain.clamped, crc32: plain.crc32 };
        Ok(if packed.bytes() < plain.bytes() { packed } else { plain })
    }

    /// The directory of samples at their place.
    pub fn directory(&self, placed: &PlacedPage) -> Directory {
        let SliceForm { width, height, encoding, ref software, ref stamp, .. } = *self.form;
        let rows = self.form.rows_of_strip();
        let coded = placed.compression != Compression::None;
        // unsigned or float
        let format = if encoding.dtype.is_integer() { 1 } else { 3 };
        let mut directory = Directory::default();
        let longs = [(tag::IMAGE_WIDTH, width), (tag::IMAGE_LENGTH, height), (tag::ROWS_PER_STRIP, rows)];
        longs.into_iter().for_each(|(tag, value)| directory.set(tag, TagValue::Long(value as u32)));
        let shorts = [
            (tag::BITS_PER_SAMPLE, 8 * encoding.dtype.bytes() as u16),
            (tag::COMPRESSION, placed.compression.tag()),
            (tag::PHOTOMETRIC_INTERPRETATION, 1),
            (tag::SAMPLES_PER_PIXEL, 1),
            (tag::PREDICTOR, if coded { predictor(encoding.dtype) } else { 1 }),
            (tag::SAMPLE_FORMAT, format),
        ];
        shorts.into_iter().for_each(|(tag, value)| directory.set(tag, TagValue::Shorts(vec![value])));
        let offsets =
            placed.strips.iter().scan(placed.data, |next, bytes| Some(std::mem::replace(next, *next + bytes)));
        directory.set(tag::STRIP_OFFSETS, TagValue::Offsets(offsets.collect()));
        directory.set(tag::STRIP_BYTE_COUNTS, TagValue::Offsets(placed.strips.clone()));
        let ascii: String = software.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
        directory.set(tag::SOFTWARE, TagValue::Text(ascii));
        // pixels without a unit, or by centimetre
        let mut resolution = (1, TagValue::Rational(1, 1));
        if let Some(slice) = self.slice {
            let description = SliceDescription { slice, crc32: digits(placed.crc32), stamp: stamp.clone() };
            // numbers and texts
            let text = serde_json::to_string(&description).unwrap_or_default();
            directory.set(tag::IMAGE_DESCRIPTION, TagValue::Text(text));
            let per_centimetre = stamp.as_ref().and_then(|stamp| fraction(stamp.per_centimetre?));
            if let Some((above, below)) = per_centimetre {
                resolution = (3, TagValue::Rational(above, below));
            }
        }
        directory.set(tag::RESOLUTION_UNIT, TagValue::Shorts(vec![resolution.0]));
        directory.set(tag::X_RESOLUTION, resolution.1.clone());
        directory.set(tag::Y_RESOLUTION, resolution.1);
        // the values of PageNumber have 16 bits
        if let Some((page, pages)) = self.number
            && let (Ok(page), Ok(pages)) = (u16::try_from(page), u16::try_from(pages))
        {
            directory.set(tag::PAGE_NUMBER, TagValue::Shorts(vec![page, pages]));
        }
        directory
    }
}
