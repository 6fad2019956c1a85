//! Formats of outputs, and which of them `--output` names.

use super::errors::OutputSpecError;
use super::multipage::parse_single;
use super::separate::{parse_directory, parse_pattern};
use super::spec::literal;
use super::target::Target;
use super::volume::{parse_hdf5, parse_npy, parse_zarr};
use crate::error::{Error, Result};
use std::str::FromStr;

/// Forms of `--output`, for help and messages.
pub const OUTPUT_FORMS: &str = "Directory (slice_00000.tif ...), pattern such as out/r-%05i.tif, or one file of all slices: out.tif, out.h5, out.npy or out.zarr";

/// Function that parses `--output` if it has the form of a format.
type Parse = fn(&str) -> Result<Option<Target>>;

/// Parsers of the formats of `--output`; the first one that matches is used.
const FORMATS: [Parse; 5] = [parse_single, parse_hdf5, parse_npy, parse_zarr, parse_directory];

impl FromStr for Target {
    type Err = Error;

    fn from_str(spec: &str) -> Result<Target> {
        Target::parse(spec)
    }
}

impl Target {
    /// Parses `--output`: a directory, a printf pattern (`out/r-%05i.tif`), or one file (`out.tif`).
    ///
    /// # Errors
    /// [`Error::Usage`] when there is a `%` in the last part that is neither the one `%i`, `%d` or `%0Ni` nor part of
    /// `%%`.
    pub fn parse(spec: &str) -> Result<Target> {
        if let Some(pattern) = parse_pattern(spec)? {
            return Ok(pattern);
        }
        let spec = &literal(spec);
        for parse in FORMATS {
            if let Some(target) = parse(spec)? {
                return Ok(target);
            }
        }
        Err(OutputSpecError::Empty { forms: OUTPUT_FORMS }.into())
    }
}
