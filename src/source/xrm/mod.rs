//! Scans and images of Xradia's microscopes by Zeiss (`.txrm`, `.xrm`), which are compound files (OLE2) of streams.

mod compound;
mod details;
mod errors;
mod images;
mod scan;

pub use details::XrmDetails;
pub(super) use images::{is_xrm, open};
pub use scan::{XrmContents, contents, is_xrm_scan, measures};
pub(super) use scan::{XrmWanted, scan};
