//! Interface of an input format.

use super::SampleType;
use crate::error::Result;
use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;

/// Frames of one size and sample type, however they are stored: pages of TIFF files, or parts of a dataset.
///
/// Opening only reads headers. Frames may be read from several threads at once.
pub(super) trait Frames: Debug + Send + Sync {
    /// Number of frames, above 0.
    fn count(&self) -> usize;

    /// Width and height in pixels.
    fn size(&self) -> (usize, usize);

    /// How one sample is stored.
    fn sample(&self) -> SampleType;

    /// Name of a frame for messages.
    fn name(&self, frame: usize) -> String;

    /// Text that identifies the frames without reading them.
    fn fingerprint(&self) -> String;

    /// The files, in order.
    fn files(&self) -> &[PathBuf];

    /// Notes for the user about the files.
    fn notes(&self) -> &[String];

    /// Reads rows of one frame as f32, `[row][pixel]`, into `out`, which has exactly their size. Frame and rows exist.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) when the file cannot be read, is damaged, or was written to since it
    /// was opened.
    fn read_rows(&self, frame: usize, rows: Range<usize>, out: &mut [f32]) -> Result<()>;
}
