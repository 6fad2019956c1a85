//! Input data: stacks of TIFF pages, HDF5 files, Zarr, EDF, raw volumes, and arrays in memory.
//!
//! [`Stack`] reads a directory, a glob, one file or a dataset as a sequence of frames of one size. Formats implement the
//! trait `Frames`; [`open`] opens everything that a run reads.

mod binning;
mod chunk_memory;
mod convert;
mod currents;
mod distortion;
mod edf;
mod files;
mod formats;
mod frames;
pub mod hdf5;
mod kept;
mod list;
mod memory;
mod npy;
mod open;
mod order;
mod paths;
mod plain;
mod raw;
mod stack;
mod stacks;
mod tiff;
mod watch;
pub mod zarr;

pub use binning::{Binning, StoredRows};
pub use convert::{StoredSamples, to_f32};
pub use currents::{BeamCurrents, CurrentSource, FrameRoles};
pub use distortion::{DistortionMap, distortion_files};
pub use frames::Frames;
pub use hdf5::{Hdf5Contents, Hdf5Frames, Hdf5Input, Hdf5Measure, Hdf5Measures, Hdf5Scan, NOTHING};
pub use list::{absolute_spec, list_file};
pub use memory::{ARRAY, MemoryArray, MemoryScan};
pub use open::{Datasets, FieldMode, InputKind, OpenRequest, open};
pub use order::natural;
pub use paths::{PART, StackPaths};
pub use raw::{RAW_FORM, RawVolume};
pub use stack::{FileNames, Stack};
pub use stacks::{Joined, JoinedPart, Stacks};
pub use watch::{Watch, wait};

pub use crate::layout::SampleType;
