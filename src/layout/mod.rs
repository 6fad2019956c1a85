//! Byte layouts of formats of files, for readers in `source` and writers in `sink`: no flags, no targets, no messages
//! about paths.

pub mod codec;
pub mod hdf5;
mod sample;
pub mod tiff;
pub mod zarr;

pub use sample::SampleType;
