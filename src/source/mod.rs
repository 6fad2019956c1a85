//! Input data: stacks of TIFF pages, and HDF5 files.
//!
//! [`Stack`] reads a directory, a glob, one file or a dataset as a sequence of frames of one size. Formats implement the
//! trait `Frames`; [`open`] opens everything that a run reads.

mod binning;
mod convert;
mod files;
mod frames;
pub mod hdf5;
mod open;
mod order;
mod stack;
mod tiff;
mod watch;

pub use binning::{Binning, StoredRows};
pub use convert::{SampleType, StoredSamples};
pub use hdf5::{Hdf5Contents, Hdf5Frames, Hdf5Input, Hdf5Scan, NOTHING};
pub use open::{Datasets, FieldMode, InputKind, OpenRequest, StackPaths, Stacks, open};
pub use order::natural;
pub use stack::Stack;
pub use watch::{Watch, wait};
