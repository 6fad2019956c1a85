//! TIFF, classic and BigTIFF: header, directories, and tags with their values.

mod directory;
mod form;
mod predictor;
mod tag;
mod value;

pub use directory::{Directory, TagEntry, TagValue};
pub use form::{TiffForm, TiffHeaderError, TiffKind};
pub use predictor::Predictor;
pub use tag::{FieldType, Tag};
pub use value::{Photometric, ResolutionUnit, SampleFormat, TiffCompression};
