//! Interface of an input format.

use super::{SampleType, StoredSamples};
use crate::error::Result;
use crate::remark::Remark;
use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;

/// Largest width or height that a frame may claim.
pub(super) const MAX_SIDE: u64 = 1 << 20;
/// Largest number of pixels that a frame may claim.
pub(super) const MAX_PIXELS: u64 = 1 << 31;

/// Frames of one size and sample type, however they are stored: pages of TIFF files, or parts of a dataset.
///
/// Opening only reads headers. Frames may be read from several threads at once.
pub trait Frames: Debug + Send + Sync {
    /// Returns the number of frames, above 0.
    fn count(&self) -> usize;

    /// Returns the width and height in pixels.
    fn size(&self) -> (usize, usize);

    /// Returns the type of a stored sample.
    fn sample(&self) -> SampleType;

    /// Returns the name of a frame for messages.
    fn name(&self, frame: usize) -> String;

    /// Returns text that identifies the frames without reading them.
    fn fingerprint(&self) -> String;

    /// Returns the paths of the files, in order.
    fn files(&self) -> &[PathBuf];

    /// Remarks for the user about the files.
    fn remarks(&self) -> &[Remark];

    /// Bytes that reading takes in addition to the values.
    fn held(&self) -> u64 {
        0
    }

    /// Reports whether reading some rows of a frame takes about as long as reading all of it.
    fn are_whole(&self) -> bool {
        false
    }

    /// Reports whether rows are stored uncompressed, so that reading them separately takes no longer than together.
    fn rows_are_apart(&self) -> bool {
        false
    }

    /// Reads rows of one frame as f32, `[row][pixel]`, into `out`, which has exactly their size. The frame and the rows
    /// must exist.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) when the file cannot be read, is damaged, or was written to since
    /// it was opened.
    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()>;

    /// Returns the form in which [`read_stored`](Self::read_stored) reads samples of every frame: as they are
    /// stored, or as f32.
    fn stored(&self) -> StoredSamples {
        StoredSamples::F32
    }

    /// Reads rows of one frame in the form of [`stored`](Self::stored), `[row][pixel]`.
    ///
    /// # Errors
    /// The errors of [`read_rows`](Self::read_rows).
    fn read_stored(&self, frame: usize, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        as_f32(out, |out| self.read_rows(frame, rows, out))
    }
}

/// Lets `read` fill `out`, whose length is a multiple of 4 bytes, with f32 values.
pub(super) fn as_f32(out: &mut [u8], read: impl FnOnce(&mut [f32]) -> Result<()>) -> Result<()> {
    if let Ok(values) = bytemuck::try_cast_slice_mut(out) {
        return read(values);
    }
    let mut values = vec![0f32; out.len() / 4];
    read(&mut values)?;
    out.copy_from_slice(bytemuck::cast_slice(&values));
    Ok(())
}
