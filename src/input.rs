//! Opening what a job reads.

use crate::config::Input;
use crate::error::Result;
use crate::io::{Stack, Stacks, hdf5};

/// Opens the data, the fields beside them, and with `angles` those of an HDF5 file. `data` opens the TIFF files of the
/// data by path and flag; it may wait for them.
///
/// # Errors
/// Those of opening.
pub fn open(input: &Input, angles: bool, data: impl FnOnce(&str, &str) -> Result<Stack>) -> Result<Stacks> {
    let field = |path: &Option<String>, flag: &str| path.as_deref().map(|path| Stack::open(path, flag)).transpose();
    match input {
        Input::Sinograms(path) => {
            Ok(Stacks { data: data(path, "--sinograms")?, flats: None, flats2: None, darks: None, angles: None })
        }
        Input::Projections { path, flats, flats2, darks, .. } => Ok(Stacks {
            data: data(path, "--projections")?,
            flats: field(flats, "--flats")?,
            flats2: field(flats2, "--flats2")?,
            darks: field(darks, "--darks")?,
            angles: None,
        }),
        Input::Hdf5 { input, .. } => hdf5::open(input, angles),
    }
}
