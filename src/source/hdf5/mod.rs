//! HDF5 files as input: Data Exchange, NXtomo, or datasets by their paths (docs/hdf5.md).

mod built_in;
#[cfg(feature = "hdf5")]
mod chunks;
mod contents;
#[cfg(feature = "hdf5")]
mod datasets;
#[cfg(feature = "hdf5")]
mod direct;
#[cfg(feature = "hdf5")]
mod errors;
#[cfg(feature = "hdf5")]
mod examine;
#[cfg(feature = "hdf5")]
mod file;
#[cfg(feature = "hdf5")]
mod filters;
#[cfg(feature = "hdf5")]
mod layout;
#[cfg(feature = "hdf5")]
mod links;
#[cfg(feature = "hdf5")]
mod measures;
#[cfg(not(feature = "hdf5"))]
mod missing;
#[cfg(feature = "hdf5")]
mod row_server;
#[cfg(feature = "hdf5")]
mod scan;
#[cfg(feature = "hdf5")]
mod serve;
#[cfg(feature = "hdf5")]
mod sources;
#[cfg(feature = "hdf5")]
mod text;
#[cfg(feature = "hdf5")]
mod volume;

pub use built_in::built_in;
pub use contents::{Hdf5Angles, Hdf5Contents, Hdf5Frames, Hdf5Input, Hdf5Scan, NOTHING};
#[cfg(feature = "hdf5")]
pub use examine::{EXAMINE, Hdf5Reading, Hdf5Verdict, examine, examine_with, reading_to_examine};
#[cfg(feature = "hdf5")]
pub use file::is_hdf5;
#[cfg(feature = "hdf5")]
pub use links::dataset;
#[cfg(not(feature = "hdf5"))]
pub use missing::{contents, dataset_path, is_hdf5, measures, open, stack};
#[cfg(feature = "hdf5")]
pub use scan::{contents, dataset_path, measures, open, stack};
#[cfg(feature = "hdf5")]
pub use serve::serve;
