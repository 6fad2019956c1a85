//! Request to an output: the form of its slices, and their numbers.

use super::compression::Compression;
use super::encoding::Encoding;
use super::form::PageForm;
use super::stamp::{PageContent, ScanMetadata};
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Version of OME-Zarr; 0.4 is of Zarr 2, 0.5 of Zarr 3.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
pub enum OmeZarr {
    /// which most viewers read
    #[default]
    #[serde(rename = "0.4")]
    #[strum(serialize = "0.4")]
    V04,
    /// the newest
    #[serde(rename = "0.5")]
    #[strum(serialize = "0.5")]
    V05,
}

/// Encoding of slices, and their storage in files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceStorage {
    pub encoding: Encoding,
    pub compression: Compression,
    /// Version of OME-Zarr.
    pub ome_zarr: OmeZarr,
    /// Number of files of an HDF5 output, if there are several.
    pub hdf5_parts: Option<u32>,
    pub content: PageContent,
}

/// Storage of uncompressed pages.
impl From<Encoding> for SliceStorage {
    fn from(encoding: Encoding) -> SliceStorage {
        let (compression, ome_zarr) = (Compression::None, OmeZarr::default());
        SliceStorage { encoding, compression, ome_zarr, hdf5_parts: None, content: PageContent::Pages }
    }
}

/// Request to an output.
pub struct OutputRequest {
    /// Form of every page.
    pub page: PageForm,
    /// Numbers of all slices of the run, ascending; some may be written by other jobs.
    pub run: Vec<usize>,
    /// Text of the run file that produces these slices; may be empty.
    pub run_file: String,
    /// The scan, if the pages are slices of one.
    pub scan: Option<ScanMetadata>,
    /// Version of OME-Zarr for outputs of that format.
    pub ome_zarr: OmeZarr,
    /// Number of files of an HDF5 output, if there are several.
    pub hdf5_parts: Option<u32>,
}

impl OutputRequest {
    pub(super) fn new(
        (width, height): (usize, usize),
        storage: SliceStorage,
        run: Vec<usize>,
        software: &str,
    ) -> OutputRequest {
        let SliceStorage { encoding, compression, ome_zarr, hdf5_parts, content: _ } = storage;
        let page = PageForm { width, height, encoding, compression, software: software.to_owned(), stamp: None };
        OutputRequest { page, run, run_file: String::new(), scan: None, ome_zarr, hdf5_parts }
    }
}
