//! A slice or another image as a page of a TIFF file.

use super::compression::Compression;
use super::encoding::{Dtype, Encoding, nearest, outside};
use super::errors::SliceOutputError;
use super::file::{create, failed, finish};
use super::form::PageForm;
use super::stamp::{SliceDescription, digits, fraction};
use crate::error::{Error, Result};
use crate::files::{OutputFile, SOFTWARE};
use crate::layout::tiff::{
    Directory, Photometric, Predictor, ResolutionUnit, SampleFormat, Tag, TagValue, TiffCompression,
};
use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use rayon::prelude::*;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Alignment of samples and directories after the header, in bytes.
const ALIGNMENT: u64 = 16;

/// Writes one image (row-major, `width * height` values) as a TIFF of one page; the file appears complete or not at
/// all.
///
/// # Errors
/// [`Error::Output`] when the file cannot be written or `data` has another size; [`Error::Usage`] for integers without
/// a range.
pub fn write_image(file: &OutputFile, (width, height): (usize, usize), data: &[f32], encoding: Encoding) -> Result<()> {
    let (compression, software) = (Compression::None, SOFTWARE.to_owned());
    let form = PageForm { width, height, encoding, compression, software, stamp: None };
    let page = OutputPage { form: &form, pixels: Pixels::Values(data), slice: None, number: None };
    file.write(page.bytes(file.path())?)
}

/// Pixels of an image, `[row][pixel]`.
#[derive(Clone, Copy, Debug)]
pub enum Pixels<'a> {
    /// Values to be encoded.
    Values(&'a [f32]),
    /// Samples as they are stored, and how many of them were clamped.
    Samples(&'a [u8], u64),
}

/// Page to be written.
pub(super) struct OutputPage<'a> {
    pub form: &'a PageForm,
    pub pixels: Pixels<'a>,
    /// Number of the slice, if the page is a slice.
    pub slice: Option<usize>,
    /// Number of the page, and total number of pages.
    pub number: Option<(usize, usize)>,
}

/// Samples of a page as they are stored.
pub(super) struct EncodedPage<'a> {
    samples: Samples<'a>,
    /// Number of bytes of an uncompressed strip.
    strip: usize,
    compressed: Option<CompressedStrips>,
    pub clamped: u64,
}

/// Compressed strips of a page.
struct CompressedStrips {
    strips: Vec<Vec<u8>>,
    /// CRC-32 of the samples before compression.
    crc32: u32,
}

/// Place of a page whose samples are written, and their checksum.
pub(super) struct PlacedPage {
    /// Offset of the first strip; the other strips follow it.
    data: u64,
    strips: Vec<u64>,
    compressed: bool,
    /// CRC-32 of the samples before compression.
    pub crc32: u32,
}

/// All samples of a page, uncompressed.
enum Samples<'a> {
    Lent(&'a [u8]),
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

impl<'a> Samples<'a> {
    /// Encodes values in parallel pieces of `piece` values, and returns the samples and how many values were clamped.
    fn of(values: &'a [f32], dtype: Dtype, range: (f32, f32), piece: usize) -> (Self, u64) {
        let limits = |values: &[f32]| outside(values, range);
        match dtype {
            Dtype::F32 => (Samples::Lent(bytemuck::cast_slice(values)), 0),
            Dtype::F16 => {
                let mut half = vec![f16::ZERO; values.len()];
                let pieces = half.par_chunks_mut(piece).zip(values.par_chunks(piece)).map(|(half, values)| {
                    half.convert_from_f32_slice(values);
                    half.iter().zip(values).map(|(h, v)| u64::from(h.is_infinite() && v.is_finite())).sum::<u64>()
                });
                let infinite = pieces.sum();
                (Samples::Words(half.reinterpret_into()), infinite)
            }
            Dtype::U16 => {
                let words = values.par_iter().with_min_len(piece).map(|&v| nearest(v, range, 65535.0) as u16);
                (Samples::Words(words.collect()), values.par_chunks(piece).map(limits).sum())
            }
            Dtype::U8 => {
                let bytes = values.par_iter().with_min_len(piece).map(|&v| nearest(v, range, 255.0) as u8);
                (Samples::Bytes(bytes.collect()), values.par_chunks(piece).map(limits).sum())
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Samples::Lent(bytes) => bytes,
            Samples::Bytes(bytes) => bytes,
            Samples::Words(words) => bytemuck::cast_slice(words),
        }
    }
}

impl EncodedPage<'_> {
    /// Returns the samples before compression.
    pub fn samples(&self) -> &[u8] {
        self.samples.bytes()
    }

    /// Iterates over the strips as they are stored.
    fn strips(&self) -> Box<dyn Iterator<Item = &[u8]> + '_> {
        match &self.compressed {
            Some(compressed) => Box::new(compressed.strips.iter().map(Vec::as_slice)),
            None => Box::new(self.samples().chunks(self.strip)),
        }
    }

    /// Returns the number of bytes of all strips.
    pub fn bytes(&self) -> u64 {
        self.strips().map(|strip| strip.len() as u64).sum()
    }

    /// Returns the page as it is placed at the offset `data` of a file.
    fn placed_at(&self, data: u64) -> PlacedPage {
        PlacedPage {
            data,
            strips: self.strips().map(|strip| strip.len() as u64).collect(),
            compressed: self.compressed.is_some(),
            crc32: self.compressed.as_ref().map_or_else(|| crc32fast::hash(self.samples()), |c| c.crc32),
        }
    }

    /// Writes the samples to the offset `data` of a file. The checksum of an uncompressed strip is computed just before
    /// it is written, so that it is in the cache.
    pub fn write_at(&self, file: &File, data: u64) -> io::Result<PlacedPage> {
        let mut crc = crc32fast::Hasher::new();
        let (mut strips, mut at) = (Vec::new(), data);
        for bytes in self.strips() {
            if self.compressed.is_none() {
                crc.update(bytes);
            }
            file.write_all_at(bytes, at)?;
            strips.push(bytes.len() as u64);
            at += bytes.len() as u64;
        }
        let crc32 = self.compressed.as_ref().map_or_else(|| crc.finalize(), |compressed| compressed.crc32);
        Ok(PlacedPage { data, strips, compressed: self.compressed.is_some(), crc32 })
    }
}

impl PlacedPage {
    /// Returns the offset after the last strip.
    pub fn end(&self) -> u64 {
        self.data + self.strips.iter().sum::<u64>()
    }
}

/// Returns the first offset from `offset` on at which samples or a directory may begin.
pub(super) fn aligned(offset: u64) -> u64 {
    offset.next_multiple_of(ALIGNMENT)
}

impl<'a> OutputPage<'a> {
    /// Returns all bytes of a file that contains only this page.
    pub fn bytes(&self, path: &Path) -> Result<Vec<u8>> {
        let encoded = self.encode(path)?;
        let tiff = self.form.tiff(1);
        let data = tiff.header_bytes();
        let mut bytes = vec![0; data];
        encoded.strips().for_each(|strip| bytes.extend(strip));
        let placed = encoded.placed_at(data as u64);
        let directory = aligned(placed.end());
        bytes.resize(directory as usize, 0);
        bytes.extend(self.directory(&placed).bytes(tiff, directory, 0));
        bytes[..data].copy_from_slice(&tiff.header(directory));
        Ok(bytes)
    }

    /// Writes a file that contains only this page, and returns how many values were clamped.
    pub fn write_file(&self, path: &Path) -> Result<u64> {
        let encoded = self.encode(path)?;
        let complete = create(path)?;
        let tiff = self.form.tiff(1);
        let data = tiff.header_bytes() as u64;
        let write = || -> io::Result<()> {
            let file = complete.file();
            let placed = encoded.write_at(file, data)?;
            let directory = aligned(placed.end());
            file.write_all_at(&self.directory(&placed).bytes(tiff, directory, 0), directory)?;
            file.write_all_at(&tiff.header(directory), 0)
        };
        write().map_err(|e| failed(path, &e))?;
        finish(complete, true)?;
        Ok(encoded.clamped)
    }

    /// Encodes the page as it is stored in a TIFF.
    pub fn encode(&self, path: &Path) -> Result<EncodedPage<'a>> {
        let samples = self.samples(path)?;
        self.compress(samples).map_err(|e| failed(path, &e))
    }

    /// Encodes the page without compression.
    pub fn samples(&self, path: &Path) -> Result<EncodedPage<'a>> {
        let PageForm { width, height, encoding, .. } = *self.form;
        let n = match self.pixels {
            Pixels::Values(values) => values.len(),
            Pixels::Samples(bytes, _) => bytes.len() / encoding.dtype.bytes(),
        };
        let sides = [width, height].map(u32::try_from);
        if n == 0 || width.checked_mul(height) != Some(n) || sides.iter().any(std::result::Result::is_err) {
            return Err(Error::output(path, SliceOutputError::ImageSize { values: n, width, height }));
        }
        let range = encoding.checked_range()?;
        let strip = self.form.rows_of_strip() * width;
        let (samples, clamped) = match self.pixels {
            Pixels::Values(values) => Samples::of(values, encoding.dtype, range, strip),
            Pixels::Samples(bytes, clamped) => (Samples::Lent(bytes), clamped),
        };
        Ok(EncodedPage { samples, strip: strip * encoding.dtype.bytes(), compressed: None, clamped })
    }

    /// Compresses the strips of a page in parallel; returns the page uncompressed if compression would not make it
    /// smaller.
    fn compress(&self, plain: EncodedPage<'a>) -> io::Result<EncodedPage<'a>> {
        let PageForm { width, encoding, compression, .. } = *self.form;
        if compression == Compression::None {
            return Ok(plain);
        }
        let strips = plain.samples().par_chunks(plain.strip);
        let (predictor, size) = (Predictor::of(encoding.dtype.sample()), encoding.dtype.bytes());
        let strips = strips.map(|strip| compression.compress(&predictor.applied(strip, size, width)));
        let strips = strips.collect::<io::Result<Vec<_>>>()?;
        if strips.iter().map(Vec::len).sum::<usize>() >= plain.samples().len() {
            return Ok(plain);
        }
        let crc32 = crc32fast::hash(plain.samples());
        Ok(EncodedPage { compressed: Some(CompressedStrips { strips, crc32 }), ..plain })
    }

    /// Returns the directory of a page whose samples are placed.
    pub fn directory(&self, placed: &PlacedPage) -> Directory {
        let PageForm { width, height, encoding, compression, ref software, ref stamp } = *self.form;
        let rows = self.form.rows_of_strip();
        let sample = encoding.dtype.sample();
        let (compression, predictor) = match placed.compressed {
            true => (compression.tiff(), Predictor::of(sample)),
            false => (TiffCompression::None, Predictor::None),
        };
        let mut directory = Directory::default();
        let longs = [(Tag::ImageWidth, width), (Tag::ImageLength, height), (Tag::RowsPerStrip, rows)];
        longs.into_iter().for_each(|(tag, value)| directory.set(tag, TagValue::Long(value as u32)));
        let shorts = [
            (Tag::BitsPerSample, 8 * encoding.dtype.bytes() as u16),
            (Tag::Compression, compression as u16),
            (Tag::PhotometricInterpretation, Photometric::BlackIsZero as u16),
            (Tag::SamplesPerPixel, 1),
            (Tag::Predictor, predictor as u16),
            (Tag::SampleFormat, SampleFormat::of(sample) as u16),
        ];
        shorts.into_iter().for_each(|(tag, value)| directory.set(tag, TagValue::Short(value)));
        let offsets =
            placed.strips.iter().scan(placed.data, |next, bytes| Some(std::mem::replace(next, *next + bytes)));
        directory.set(Tag::StripOffsets, TagValue::Offsets(offsets.collect()));
        directory.set(Tag::StripByteCounts, TagValue::Offsets(placed.strips.clone()));
        let ascii: String = software.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
        directory.set(Tag::Software, TagValue::Text(ascii));
        // pixels without a unit, or per centimetre
        let mut resolution = (ResolutionUnit::None, TagValue::Rational(1, 1));
        if let Some(slice) = self.slice {
            let range = encoding.range.filter(|_| encoding.dtype.is_integer());
            let description = SliceDescription { slice, crc32: digits(placed.crc32), range, stamp: stamp.clone() };
            // numbers and texts only, which serialise without errors
            let text = serde_json::to_string(&description).unwrap_or_default();
            directory.set(Tag::ImageDescription, TagValue::Text(text));
            let per_centimetre = stamp.as_ref().and_then(|stamp| fraction(stamp.per_centimetre?));
            if let Some((above, below)) = per_centimetre {
                resolution = (ResolutionUnit::Centimetre, TagValue::Rational(above, below));
            }
        }
        directory.set(Tag::ResolutionUnit, TagValue::Short(resolution.0 as u16));
        directory.set(Tag::XResolution, resolution.1.clone());
        directory.set(Tag::YResolution, resolution.1);
        // values of PageNumber have 16 bits
        if let Some((page, pages)) = self.number
            && let (Ok(page), Ok(pages)) = (u16::try_from(page), u16::try_from(pages))
        {
            directory.set(Tag::PageNumber, TagValue::Shorts(vec![page, pages]));
        }
        directory
    }
}
