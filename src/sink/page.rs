//! A slice or another image as a page of a TIFF file.

use super::encoding::{Dtype, Encoding, nearest, outside};
use super::file::{create, failed, finish};
use super::stamp::{SliceDescription, SliceStamp, digits, fraction};
use crate::error::{Error, Result};
use bytemuck::Pod;
use half::f16;
use half::slice::HalfFloatSliceExt;
use half::vec::HalfFloatVecExt;
use rayon::prelude::*;
use std::borrow::Cow;
use std::io::{BufWriter, Seek, Write};
use std::path::Path;
use tiff::encoder::colortype::{ColorType, Gray8, Gray16, Gray32Float};
use tiff::encoder::{TiffEncoder, TiffKind, TiffValue};
use tiff::tags::{PhotometricInterpretation, ResolutionUnit, SampleFormat, Tag};
use tiff::{TiffError, TiffResult};

/// Files larger than this are BigTIFF instead of classic TIFF.
const CLASSIC_LIMIT: u64 = (4 << 30) - (1 << 20);
/// Approximate size of a strip in bytes.
const STRIP: usize = 256 << 10;

/// Common properties of all slices of an output.
pub struct SliceForm {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    pub encoding: Encoding,
    /// Value of the tag `Software`.
    pub software: String,
    /// Description of the run in each slice.
    pub stamp: Option<SliceStamp>,
}

impl SliceForm {
    /// Whether this number of pages does not fit a classic TIFF.
    pub(super) fn is_big(&self, pages: usize) -> bool {
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
    let form = SliceForm { width, height, encoding, software: software.to_owned(), stamp: None };
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

/// Samples of a strip, and how many of them were clamped.
type EncodedStrip<'a, T> = (Cow<'a, [T]>, u64);

/// One page to write.
pub(super) struct OutputPage<'a> {
    pub form: &'a SliceForm,
    pub pixels: Pixels<'a>,
    /// Number of the slice.
    pub slice: Option<usize>,
    /// Number of the page, and total number of pages.
    pub number: Option<(usize, usize)>,
}

impl OutputPage<'_> {
    /// Writes a file with this page only; returns how many values were clamped.
    pub fn write_file(&self, path: &Path) -> Result<u64> {
        let complete = create(path)?;
        let mut file = BufWriter::with_capacity(STRIP, complete.file());
        let clamped = if self.form.is_big(1) {
            self.write(&mut TiffEncoder::new_big(&mut file).map_err(|e| failed(path, &e))?, path)
        } else {
            self.write(&mut TiffEncoder::new(&mut file).map_err(|e| failed(path, &e))?, path)
        }?;
        file.flush().map_err(|e| failed(path, &TiffError::IoError(e)))?;
        drop(file);
        finish(complete, true)?;
        Ok(clamped)
    }

    /// Adds the page to a file; returns how many values were clamped.
    pub fn write<W: Write + Seek, K: TiffKind>(&self, encoder: &mut TiffEncoder<W, K>, path: &Path) -> Result<u64> {
        let SliceForm { width, height, encoding, .. } = *self.form;
        let n = match self.pixels {
            Pixels::Values(values) => values.len(),
            Pixels::Samples(bytes, _) => bytes.len() / encoding.dtype.bytes(),
        };
        if width == 0 || width.checked_mul(height) != Some(n) {
            return Err(Error::output(path, format!("{n} values do not make an image of {width}x{height}")));
        }
        let range = encoding.checked_range()?;
        match encoding.dtype {
            Dtype::F32 => self.put::<Gray32Float, W, K>(encoder, |v| (Cow::Borrowed(v), 0)),
            Dtype::F16 => self.put::<Gray16Float, W, K>(encoder, |v| {
                let mut half = vec![f16::ZERO; v.len()];
                half.convert_from_f32_slice(v);
                let clamped = half.iter().zip(v).map(|(h, v)| u64::from(h.is_infinite() && v.is_finite())).sum();
                (Cow::Owned(half.reinterpret_into()), clamped)
            }),
            Dtype::U16 => self.put::<Gray16, W, K>(encoder, |v| {
                (Cow::Owned(v.iter().map(|&v| nearest(v, range, 65535.0) as u16).collect()), outside(v, range))
            }),
            Dtype::U8 => self.put::<Gray8, W, K>(encoder, |v| {
                (Cow::Owned(v.iter().map(|&v| nearest(v, range, 255.0) as u8).collect()), outside(v, range))
            }),
        }
        .map_err(|e| failed(path, &e))
    }

    /// Writes the strips, which are encoded side by side, then the tags, so that the data is contiguous. Returns how many
    /// values were clamped.
    fn put<C: ColorType, W: Write + Seek, K: TiffKind>(
        &self,
        encoder: &mut TiffEncoder<W, K>,
        encode: impl Fn(&[f32]) -> EncodedStrip<C::Inner> + Send + Sync,
    ) -> TiffResult<u64>
    where
        C::Inner: Pod + Send + Sync,
        [C::Inner]: TiffValue,
    {
        let form = self.form;
        let mut image = encoder.new_image::<C>(u32::try_from(form.width)?, u32::try_from(form.height)?)?;
        let rows = (STRIP / (form.width * form.encoding.dtype.bytes())).clamp(1, form.height);
        image.rows_per_strip(u32::try_from(rows)?)?;
        let (encoded, mut clamped): (Vec<EncodedStrip<C::Inner>>, u64) = match self.pixels {
            Pixels::Values(values) => (values.par_chunks(rows * form.width).map(encode).collect(), 0),
            Pixels::Samples(bytes, clamped) => {
                let strips = bytes.chunks(rows * form.width * form.encoding.dtype.bytes());
                (strips.map(|strip| (samples_of(strip), 0)).collect(), clamped)
            }
        };
        let mut crc = crc32fast::Hasher::new();
        for (samples, more) in encoded {
            crc.update(&samples.data());
            image.write_strip(&samples)?;
            clamped += more;
        }
        let ascii: String = form.software.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect();
        image.encoder().write_tag(Tag::Software, ascii.as_str())?;
        if let Some(slice) = self.slice {
            let stamp = form.stamp.as_ref();
            let description = SliceDescription { slice, crc32: digits(crc), stamp: stamp.cloned() };
            let text = serde_json::to_string(&description).map_err(std::io::Error::from)?;
            image.encoder().write_tag(Tag::ImageDescription, text.as_str())?;
            if let Some(resolution) = stamp.and_then(|stamp| fraction(stamp.per_centimetre?)) {
                image.resolution(ResolutionUnit::Centimeter, resolution);
            }
        }
        if let Some((page, pages)) = self.number {
            // the values of PageNumber have 16 bits
            if let (Ok(page), Ok(pages)) = (u16::try_from(page), u16::try_from(pages)) {
                image.encoder().write_tag(Tag::Unknown(297), &[page, pages][..])?;
            }
        }
        image.finish()?;
        Ok(clamped)
    }
}

/// Bytes as the samples that they are.
fn samples_of<T: Pod>(bytes: &[u8]) -> Cow<'_, [T]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(samples) => Cow::Borrowed(samples),
        Err(_) => Cow::Owned(bytemuck::allocation::pod_collect_to_vec(bytes)),
    }
}

/// 16-bit float, as its bits.
struct Gray16Float;

impl ColorType for Gray16Float {
    type Inner = u16;
    const TIFF_VALUE: PhotometricInterpretation = PhotometricInterpretation::BlackIsZero;
    const BITS_PER_SAMPLE: &'static [u16] = &[16];
    const SAMPLE_FORMAT: &'static [SampleFormat] = &[SampleFormat::IEEEFP];

    fn horizontal_predict(row: &[u16], result: &mut Vec<u16>) {
        result.extend_from_slice(row); // no predictor is ever used
    }
}
