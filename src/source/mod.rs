//! Input data: stacks of TIFF pages, HDF5 files, Zarr, EDF, images by Xradia's microscopes, raw volumes, and arrays in memory.
//!
//! [`Stack`] reads a directory, a glob, one file or a dataset as a sequence of frames of one size. Formats implement the
//! trait `Frames`; [`open`] opens everything that a run reads.

mod beam;
mod binning;
mod chunk_memory;
mod currents;
mod distortion;
mod edf;
mod files;
mod formats;
mod frames;
pub mod hdf5;
mod kept;
mod list;
mod measures;
mod memory;
mod npy;
mod open;
mod order;
mod paths;
mod plain;
mod raw;
mod skyscan;
mod stack;
mod stacks;
mod tiff;
mod watch;
pub mod xrm;
pub mod zarr;

pub use binning::{Binning, StoredRows};
pub use currents::{BeamCurrents, CurrentSource, FrameRoles};
pub use distortion::{DistortionMap, distortion_files};
pub use frames::Frames;
pub use hdf5::{Hdf5Contents, Hdf5Frames, Hdf5Input, Hdf5Scan, NOTHING};
pub use list::{absolute_spec, list_file};
pub use measures::{ScanMeasure, ScanMeasures};
pub use memory::{ARRAY, MemoryArray, MemoryScan};
pub use open::{Datasets, FieldMode, InputKind, OpenRequest, open};
pub use order::natural;
pub use paths::{PART, StackPaths};
pub use raw::{RAW_FORM, RawVolume};
pub use skyscan::{BesideProjections, LogUse, beside};
pub use stack::{FileNames, Stack};
pub use stacks::{Joined, JoinedPart, Stacks};
pub use watch::{Watch, wait};
pub use xrm::{XrmContents, XrmDetails, is_xrm_scan};

pub use crate::layout::{SampleType, StoredSamples, to_f32};
