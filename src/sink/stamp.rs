//! Description of a slice in its TIFF tags.

use crate::files::open_regular;
use crate::units::Length;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use tiff::decoder::Decoder;
use tiff::tags::Tag;

/// Content of an output. An output is only ever replaced by one with the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageContent {
    /// Corrected or simulated pages, which do not belong to a run.
    Pages,
    /// Slices of a run, which contain its key.
    Slices,
}

/// Description of a run, the same in all of its slices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceStamp {
    /// Key of the run; equal keys mean equal bytes.
    pub run: String,
    /// Position of the rotation axis in bins, without the shifts of projections.
    pub center: f64,
    /// Side of a pixel, with its unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixel_size: Option<String>,
    /// Number of pixels per centimetre, if the unit is known.
    #[serde(skip)]
    pub per_centimetre: Option<f64>,
}

/// What an output of all slices says of its scan, for programs that show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScanMetadata {
    /// Column and row of the rotation axis in the stored slices, in pixels from the centre of the first.
    pub axis: [f64; 2],
    /// Side of a pixel, if it was given or the input says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixel: Option<Length>,
    /// Photon energy in keV, if it was given or the input says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_kev: Option<f64>,
    /// Angles of the projections in degrees.
    pub angles: Vec<f64>,
}

/// Contents of the tag `ImageDescription` of a slice, as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceDescription {
    /// Number of the slice.
    pub slice: usize,
    /// CRC-32 of the samples, in hexadecimal digits.
    pub crc32: String,
    /// Values of the smallest and the largest integer, if samples are integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f32, f32)>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<SliceStamp>,
}

/// Formats a checksum for [`SliceDescription`].
pub(super) fn digits(crc: u32) -> String {
    format!("{crc:08x}")
}

impl SliceDescription {
    /// Returns the content that the page belongs to: slices have a stamp of their run, other pages do not.
    pub(super) fn content(&self) -> PageContent {
        if self.stamp.is_some() { PageContent::Slices } else { PageContent::Pages }
    }
}

/// Returns the description of a file's first page, if there is one.
pub fn described(path: &Path) -> Option<SliceDescription> {
    description(&mut Decoder::new(BufReader::new(open_regular(path).ok()?)).ok()?)
}

/// Returns the description of the page that the decoder is at, if it has one.
pub(super) fn description(decoder: &mut Decoder<BufReader<File>>) -> Option<SliceDescription> {
    serde_json::from_str(&decoder.get_tag_ascii_string(Tag::ImageDescription).ok()?).ok()
}

/// Returns a positive number as a fraction of two 32-bit integers.
pub(super) fn fraction(value: f64) -> Option<(u32, u32)> {
    let d = [1_000_000, 10_000, 100, 1].into_iter().find(|&d| value * f64::from(d) < f64::from(u32::MAX))?;
    let n = (value * f64::from(d)).round() as u32;
    (n > 0).then_some((n, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions() {
        assert_eq!(fraction(1e4 / 0.65), Some((153846154, 10_000)));
        assert_eq!(fraction(2.0), Some((2_000_000, 1_000_000)));
        assert_eq!(fraction(1e9), Some((1_000_000_000, 1)));
        assert_eq!(fraction(1e12), None);
        assert_eq!(fraction(1e-9), None);
    }
}
