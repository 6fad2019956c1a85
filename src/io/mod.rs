//! TIFF files in and out, and text files in.
//!
//! [`Stack`] reads a directory, a glob or one file as a sequence of pages of one size;
//! [`SliceWriter`] writes slices so that a file that has its final name is complete.

mod binning;
mod convert;
mod decode;
mod lock;
mod order;
mod stack;
mod stamp;
mod text;
mod watch;
mod write;

pub use binning::Binning;
pub use convert::SampleType;
pub use lock::{Hold, Lock};
pub use order::natural;
pub use stack::Stack;
pub use stamp::{Description, Found, Stamp, described, examine};
pub use text::read_text;
pub use watch::{Watch, wait};
pub use write::{Dtype, Encoding, Present, SliceWriter, Target, write_image, write_text};
