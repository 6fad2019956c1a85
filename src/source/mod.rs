//! Where the data come from: stacks of TIFF pages, and HDF5 files.
//!
//! [`Stack`] reads a directory, a glob or one file as a sequence of pages of one size.

mod binning;
mod convert;
mod decode;
#[cfg_attr(not(feature = "hdf5"), path = "no_hdf5.rs")]
pub mod hdf5;
mod order;
mod stack;
mod stacks;
mod watch;

pub use binning::Binning;
pub use convert::SampleType;
pub use order::natural;
pub use stack::Stack;
pub use stacks::{Hdf5Contents, Hdf5Frames, Hdf5Input, Hdf5Scan, NOTHING, Stacks};
pub use watch::{Watch, wait};
