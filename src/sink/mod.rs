//! Where slices go: TIFF files that are complete when they have their name.

mod stamp;
mod write;

pub use stamp::{Description, Found, Stamp, described, examine};
pub use write::{Dtype, Encoding, Present, SliceWriter, Target, write_image, write_text};
