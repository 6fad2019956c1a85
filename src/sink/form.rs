//! Common form of the pages of an output, and sizes that follow from it.

use super::compression::Compression;
use super::encoding::Encoding;
use super::stamp::SliceStamp;
use crate::fault;
use crate::layout::tiff::{TiffForm, TiffKind};

/// Size in bytes above which files are BigTIFF instead of classic TIFF.
const CLASSIC_LIMIT: u64 = (4 << 30) - (1 << 20);
/// Approximate size of a strip in bytes.
const STRIP: usize = 256 << 10;

/// Form that all pages of an output have in common.
pub struct PageForm {
    /// Number of pixels in a row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    pub encoding: Encoding,
    pub compression: Compression,
    /// Value of the tag `Software`.
    pub software: String,
    /// Description of the run in each slice.
    pub stamp: Option<SliceStamp>,
}

impl PageForm {
    /// Returns the form of a TIFF of this number of pages: classic if they fit.
    pub(super) fn tiff(&self, pages: usize) -> TiffForm {
        TiffForm::native(if self.is_big(pages) { TiffKind::Big } else { TiffKind::Classic })
    }

    /// Returns the number of rows of a strip.
    pub(super) fn rows_of_strip(&self) -> usize {
        (STRIP / (self.width * self.encoding.dtype.bytes())).clamp(1, self.height)
    }

    /// Returns the number of bytes of the samples of a page.
    pub(super) fn sample_bytes(&self) -> u64 {
        (self.width * self.height * self.encoding.dtype.bytes()) as u64
    }

    /// Returns an upper bound of the number of bytes of a file of one page.
    pub(super) fn most_bytes(&self) -> u64 {
        let table = 16 * self.height as u64;
        let stamp =
            self.stamp.as_ref().map_or(0, |stamp| stamp.run.len() + stamp.pixel_size.as_ref().map_or(0, String::len));
        self.sample_bytes() + table + 4096 + (self.software.len() + stamp) as u64
    }

    /// Reports whether this number of pages does not fit a classic TIFF.
    fn is_big(&self, pages: usize) -> bool {
        let row = (self.width as u64).saturating_mul(self.encoding.dtype.bytes() as u64);
        let header = 1024 + 16 * self.height as u64; // generous estimate of tags and the strip table
        let all = row.saturating_mul(self.height as u64).saturating_add(header).saturating_mul(pages as u64);
        all > fault::classic_limit().unwrap_or(CLASSIC_LIMIT)
    }
}
