//! Opening what a job reads.

use crate::config::{Input, Job};
use crate::error::Result;
use crate::io::{Binning, Stack, Stacks, hdf5};

/// Opens the data, the fields beside them, and with `angles` those of an HDF5 file. `data` opens the TIFF files of the
/// data by path and flag; it may wait for them. All are binned as the job wants.
///
/// # Errors
/// Those of opening.
pub fn open(job: &Job, angles: bool, data: impl FnOnce(&str, &str) -> Result<Stack>) -> Result<Stacks> {
    let field = |path: &Option<String>, flag: &str| path.as_deref().map(|path| Stack::open(path, flag)).transpose();
    let Stacks { data, flats, flats2, darks, angles } = match &job.input {
        Input::Sinograms(path) => {
            Stacks { data: data(path, "--sinograms")?, flats: None, flats2: None, darks: None, angles: None }
        }
        Input::Projections { path, flats, flats2, darks, .. } => Stacks {
            data: data(path, "--projections")?,
            flats: field(flats, "--flats")?,
            flats2: field(flats2, "--flats2")?,
            darks: field(darks, "--darks")?,
            angles: None,
        },
        Input::Hdf5 { input, .. } => hdf5::open(input, angles)?,
    };
    let binning = Binning { by: job.binning, pages: matches!(job.input, Input::Sinograms(_)) };
    let binned = |stack: Stack| stack.binned(binning);
    Ok(Stacks {
        data: binned(data)?,
        flats: flats.map(binned).transpose()?,
        flats2: flats2.map(binned).transpose()?,
        darks: darks.map(binned).transpose()?,
        angles,
    })
}
