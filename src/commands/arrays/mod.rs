//! What commands do, with scans and results that are arrays in memory; for programs that use this crate.

mod axis;
mod errors;
mod flags;
mod input;
mod pages;
mod slices;

pub use axis::{ArrayAxis, array_axis};
pub use flags::ArrayFlag;
pub use input::read_scan;
pub use pages::ArrayPages;
pub use slices::ArraySlices;
