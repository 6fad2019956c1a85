//! Where slices go: files that are complete when they have their name.
//!
//! A [`Target`] says where and in which format; a [`SliceWriter`] sees to it that every slice is written once, and hands it
//! to the format's [`Sink`].

mod encoding;
mod file;
mod multipage;
mod page;
mod separate;
mod stamp;
mod target;
mod writer;

pub use encoding::{Dtype, Encoding};
pub use file::write_text;
pub use page::{SliceForm, write_image};
pub use stamp::{SliceDescription, SliceStamp, SliceState, described};
pub use target::{OutputFormat, Target};
pub use writer::{AllowedContents, SliceWriter};

use crate::error::Result;
use std::path::PathBuf;

/// Reads `--output` if its text has the form of a format.
type Parse = fn(&str) -> Result<Option<Target>>;

/// The formats of `--output`; the first that knows the form takes it.
const FORMATS: [Parse; 3] = [separate::parse_pattern, multipage::parse_single, separate::parse_directory];

/// Takes the slices of a run.
pub trait Sink: Send {
    /// Writes slices, numbers with their values, `[row][pixel]`; returns how many values did not fit. Numbers are of those
    /// that were announced, each comes once, and ascending where the format wants them in order.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when one cannot be written; nothing is left under its name.
    fn write(&mut self, slices: &[(usize, &[f32])], form: &SliceForm) -> Result<u64>;

    /// Ends the output when all slices are written, and names its files in order.
    ///
    /// # Errors
    /// [`Error::Output`](crate::error::Error::Output) when a file cannot be given its name.
    fn finish(self: Box<Self>) -> Result<Vec<PathBuf>>;
}
