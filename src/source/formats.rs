//! Formats of stacks, and which of them a path has.

use super::tiff::TiffPages;
use super::zarr::{ZarrFrames, is_zarr};
use super::{RawVolume, Stack, edf, hdf5, npy, xrm};
use crate::error::{Result, messages};
use crate::memory;
use std::path::Path;

messages! {
    /// Errors of `--order-by`.
    enum OrderByError: Usage {
        OtherFormat { flag: String, spec: String, format: &'static str } =>
            "--order-by: is about the names of TIFF, EDF and .xrm files, but {flag} {spec} is {format}";
            "leave --order-by out",
    }
}

impl Stack {
    /// Opens `spec`: a directory (its `*.tif` and `*.tiff`), a glob, `list FILE` with a path a line, or one TIFF of any
    /// number of pages; an HDF5 file, with `::/DATASET` if it has several; a directory of Zarr; NumPy; EDF; images of Xradia
    /// (`.xrm`, `.txrm`); or a raw volume ([`RAW_FORM`](super::RAW_FORM)). `flag` is used in messages, for example
    /// `--sinograms`.
    ///
    /// # Errors
    /// [`Error::Input`](crate::error::Error::Input) when there are no files, a file is not a TIFF, is damaged or
    /// truncated, when pages differ in size or sample type, when a file of the directory or glob is not named like the
    /// others, or when names have several orders; [`Error::Usage`](crate::error::Error::Usage) for a malformed glob.
    pub fn open(spec: &str, flag: &str) -> Result<Stack> {
        Stack::open_within(spec, flag, memory::available() / 2)
    }

    /// Opens `spec` as [`open`](Self::open) does; decoded chunks may take a part of `memory`, in bytes.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn open_within(spec: &str, flag: &str, memory: u64) -> Result<Stack> {
        Stack::open_by(spec, flag, memory, None)
    }

    /// Opens `spec` as [`open_within`](Self::open_within) does; `by` is the number in the file names, counted from 1,
    /// that the user has chosen as their order.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and [`Error::Usage`](crate::error::Error::Usage) for formats without a
    /// choice of the order.
    pub fn open_by(spec: &str, flag: &str, memory: u64, by: Option<usize>) -> Result<Stack> {
        if let (Some(_), Some(format)) =
            (by, Stack::other_format(spec).filter(|_| !edf::is_edf(spec) && !xrm::is_xrm(spec)))
        {
            return Err(OrderByError::OtherFormat { flag: flag.into(), spec: spec.into(), format }.into());
        }
        if let Some((file, dataset)) = hdf5::dataset_path(spec) {
            return hdf5::stack(file, dataset, flag, memory);
        }
        if is_zarr(Path::new(spec)) {
            return Ok(Stack::of(flag, spec, ZarrFrames::open(Path::new(spec), flag, memory)?));
        }
        if RawVolume::looks_like(spec) {
            return Ok(Stack::of(flag, spec, RawVolume::parse(spec, flag)?.open(flag)?));
        }
        if npy::is_npy(spec) {
            return Ok(Stack::of(flag, spec, npy::open(spec, flag)?));
        }
        if edf::is_edf(spec) {
            return Ok(Stack::of(flag, spec, edf::open(spec, flag, by)?));
        }
        if xrm::is_xrm(spec) {
            return Ok(Stack::of(flag, spec, xrm::open(spec, flag, by)?));
        }
        Ok(Stack::of(flag, spec, TiffPages::open(spec, flag, by)?))
    }

    /// Returns the format of the files that `spec` names, unless it is TIFF.
    pub(super) fn other_format(spec: &str) -> Option<&'static str> {
        match spec {
            _ if hdf5::dataset_path(spec).is_some() => Some("HDF5"),
            _ if is_zarr(Path::new(spec)) => Some("Zarr"),
            _ if RawVolume::looks_like(spec) => Some("a raw volume"),
            _ if npy::is_npy(spec) => Some("NumPy"),
            _ if edf::is_edf(spec) => Some("EDF"),
            _ if xrm::is_xrm(spec) => Some("XRM"),
            _ => None,
        }
    }
}
