//! Writing slices: a file is complete once it has its final name.
//!
//! A [`Target`] defines place and format; a [`SliceWriter`] ensures that every slice is written once, and passes it to
//! the format's [`Sink`].

mod compression;
mod encoding;
mod errors;
mod existing;
mod file;
mod form;
mod format;
mod formats;
mod memory;
mod multipage;
mod output_lock;
mod page;
mod request;
mod separate;
mod spec;
mod stamp;
mod target;
mod volume;
mod writer;

pub use compression::Compression;
pub use encoding::{Dtype, Encoding};
pub use existing::{SliceState, StoredSlices};
pub use form::PageForm;
pub use format::{OutputFormat, RECORD_END, Sink};
pub use formats::OUTPUT_FORMS;
pub use memory::TakeSlice;
pub use output_lock::OutputLock;
pub use page::{Pixels, write_image};
pub use request::{OmeZarr, OutputRequest, SliceStorage};
pub use stamp::{PageContent, ScanMetadata, SliceDescription, SliceStamp, described};
pub use target::Target;
pub use volume::{VolumeDescription, described_volume};
pub use writer::{AllowedContents, SliceWriter};

/// Value of the tag `Software` of every slice.
pub use crate::files::SOFTWARE;
