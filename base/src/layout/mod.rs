//! Byte layouts of formats of files, for readers in `source` and writers in `sink`: no flags, no targets, no messages
//! about paths.

pub mod codec;
mod convert;
pub mod hdf5;
mod sample;
pub mod tiff;
pub mod zarr;

pub use convert::{StoredSamples, to_f32};
pub use sample::SampleType;
