//! Writing slices: a file is complete once it has its final name.
//!
//! A [`Target`] defines place and format; a [`SliceWriter`] ensures that every slice is written once, and passes it to the
//! format's [`Sink`].

mod compression;
mod directory;
mod encoding;
mod file;
mod multipage;
mod output_lock;
mod page;
mod separate;
mod stamp;
mod target;
mod volume;
mod writer;

pub use compression::Compression;
pub use encoding::{Dtype, Encoding, PageContent, SliceStorage};
pub use output_lock::OutputLock;
pub use page::{Pixels, SliceForm, write_image};
pub use stamp::{SliceDescription, SliceStamp, SliceState, StoredSlices, described};
pub use target::{OutputFormat, RECORD_END, Target};
pub use volume::{OmeZarr, VolumeDescription, described_volume};
pub use writer::{AllowedContents, SliceWriter};

use crate::error::Result;
use std::path::PathBuf;

/// What the `Software` tag of every slice says.
pub use crate::files::SOFTWARE;

/// The forms of `--output`, for help and messages.
pub const OUTPUT_FORMS: &str = "Directory (slice_00000.tif ...), pattern such as out/r-%05i.tif, or one file of all slices: out.tif, out.h5 or out.zarr";

/// Reads `--output` if it has the form of a format.
type Parse = fn(&str) -> Result<Option<Target>>;

/// The formats of `--output`; the first that matches is used.
const FORMATS: [Parse; 4] =
    [multipage::parse_single, volume::parse_hdf5, volume::parse_zarr, separate::parse_directory];

/// Writes the slices of a run; several threads may write at the same time.
pub trait Sink: Send + Sync {
    /// Begins a run: all about it is known, and no slice but `kept` ones is there. Called once, before slices are written.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when the output cannot be made ready.
    fn start(&self, _form: &SliceForm, _kept: &[usize]) -> Result<()> {
        Ok(())
    }

    /// Writes slices, given as numbers with pixels; returns how many values were clamped. Every number is one
    /// of those announced, and is written once.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when a slice cannot be written; then there is no file of its name.
    fn write(&self, slices: &[(usize, Pixels)], form: &SliceForm) -> Result<u64>;

    /// Completes the output after all slices are written; returns its files in order, or none as long as other jobs have
    /// slices of them to write.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when a file cannot be renamed.
    fn finish(self: Box<Self>, form: &SliceForm) -> Result<Vec<PathBuf>>;
}
