//! What the pages of an output are like, and the bytes that follow from it.

use super::compression::Compression;
use super::directory::TiffKind;
use super::encoding::Encoding;
use super::stamp::SliceStamp;
use crate::fault;

/// Files larger than this are BigTIFF instead of classic TIFF.
const CLASSIC_LIMIT: u64 = (4 << 30) - (1 << 20);
/// Approximate size of a strip in bytes.
const STRIP: usize = 256 << 10;

/// What all pages of an output are like.
pub struct PageForm {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    pub encoding: Encoding,
    pub compression: Compression,
    /// Value of the tag `Software`.
    pub software: String,
    /// Description of the run in each slice.
    pub stamp: Option<SliceStamp>,
}

impl PageForm {
    /// Classic where this number of pages fits it.
    pub(super) fn kind(&self, pages: usize) -> TiffKind {
        if self.is_big(pages) { TiffKind::Big } else { TiffKind::Classic }
    }

    /// Rows of a strip.
    pub(super) fn rows_of_strip(&self) -> usize {
        (STRIP / (self.width * self.encoding.dtype.bytes())).clamp(1, self.height)
    }

    /// Bytes of the samples of a page.
    pub(super) fn sample_bytes(&self) -> u64 {
        (self.width * self.height * self.encoding.dtype.bytes()) as u64
    }

    /// No file of one page has more bytes.
    pub(super) fn most_bytes(&self) -> u64 {
        let table = 16 * self.height as u64;
        let stamp =
            self.stamp.as_ref().map_or(0, |stamp| stamp.run.len() + stamp.pixel_size.as_ref().map_or(0, String::len));
        self.sample_bytes() + table + 4096 + (self.software.len() + stamp) as u64
    }

    /// Whether this number of pages does not fit a classic TIFF.
    fn is_big(&self, pages: usize) -> bool {
        let row = (self.width as u64).saturating_mul(self.encoding.dtype.bytes() as u64);
        let header = 1024 + 16 * self.height as u64; // generous estimate of tags and the strip table
        let all = row.saturating_mul(self.height as u64).saturating_add(header).saturating_mul(pages as u64);
        all > fault::classic_limit().unwrap_or(CLASSIC_LIMIT)
    }
}
