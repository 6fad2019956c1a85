//! TIFF files in and out, HDF5 and text files in.
//!
//! [`Stack`] reads a directory, a glob or one file as a sequence of pages of one size;
//! [`SliceWriter`] writes slices so that a file that has its final name is complete.

mod binning;
mod convert;
mod decode;
#[cfg_attr(not(feature = "hdf5"), path = "no_hdf5.rs")]
pub mod hdf5;
mod lock;
mod order;
mod stack;
mod stacks;
mod stamp;
mod text;
mod watch;
mod write;

pub use binning::Binning;
pub use convert::SampleType;
pub use lock::{Hold, Lock};
pub use order::natural;
pub use stack::Stack;
pub use stacks::{Hdf5Contents, Hdf5Frames, Hdf5Input, Hdf5Scan, NOTHING, Stacks};
pub use stamp::{Description, Found, Stamp, described, examine};
pub use text::read_text;
pub use watch::{Watch, wait};
pub use write::{Dtype, Encoding, Present, SliceWriter, Target, write_image, write_text};
