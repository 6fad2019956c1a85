//! Opening what a job reads.

use crate::error::Result;
use crate::recipe::{Input, Job};
use crate::source::{Binning, Stack, Stacks, hdf5};

/// Opens the data and their fields, and with `angles` those of an HDF5 file. `data` opens the TIFF files of the data by path
/// and flag; it may wait for them. All are binned as the job wants.
///
/// # Errors
/// Those of opening.
pub fn open(job: &Job, angles: bool, data: impl FnOnce(&str, &str) -> Result<Stack>) -> Result<Stacks> {
    let Stacks { data, mut flats, mut flats2, mut darks, angles, held } = match &job.input {
        Input::Sinograms(path) => Stacks::of(data(path, "--sinograms")?),
        Input::Projections { path, .. } => Stacks::of(data(path, "--projections")?),
        Input::Hdf5 { input, .. } => hdf5::open(input, angles, job.host_memory())?,
    };
    if let Some(files) = job.input.fields() {
        for (stack, path, flag) in [
            (&mut flats, &files.flats, "--flats"),
            (&mut flats2, &files.flats2, "--flats2"),
            (&mut darks, &files.darks, "--darks"),
        ] {
            if let Some(path) = path {
                *stack = Some(Stack::open(path, flag)?);
            }
        }
    }
    let binning = Binning { by: job.binning, pages: matches!(job.input, Input::Sinograms(_)) };
    let binned = |stack: Stack| stack.binned(binning);
    Ok(Stacks {
        data: binned(data)?,
        flats: flats.map(binned).transpose()?,
        flats2: flats2.map(binned).transpose()?,
        darks: darks.map(binned).transpose()?,
        angles,
        held,
    })
}
