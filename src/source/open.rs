//! Opening what a run reads.

use super::{Binning, Stack, hdf5};
use crate::error::Result;
use crate::recipe::Input;

/// The data and their fields.
#[derive(Debug)]
pub struct Stacks {
    pub data: Stack,
    /// Beam without sample, before the scan.
    pub flats: Option<Stack>,
    /// The same after the scan.
    pub flats2: Option<Stack>,
    /// No beam.
    pub darks: Option<Stack>,
    /// Of every projection, in degrees, where the input has them and they are wanted.
    pub angles: Option<Vec<f64>>,
    /// Bytes that a library holds beside what is read.
    pub held: u64,
}

impl Stacks {
    /// Data alone.
    pub fn of(data: Stack) -> Stacks {
        Stacks { data, flats: None, flats2: None, darks: None, angles: None, held: 0 }
    }
}

/// Opens the data and their fields, binned by `binning`, and with `angles` those of an HDF5 file. `data` opens the TIFF files
/// of the data by path and flag; it may wait for them. A library that keeps parts of files does so in a share of `memory`
/// bytes.
///
/// # Errors
/// Those of opening.
pub fn open(
    input: &Input,
    binning: usize,
    angles: bool,
    memory: u64,
    data: impl FnOnce(&str, &str) -> Result<Stack>,
) -> Result<Stacks> {
    let Stacks { data, mut flats, mut flats2, mut darks, angles, held } = match input {
        Input::Sinograms(path) => Stacks::of(data(path, "--sinograms")?),
        Input::Projections { path, .. } => Stacks::of(data(path, "--projections")?),
        Input::Hdf5 { input, .. } => hdf5::open(input, angles, memory)?,
    };
    if let Some(files) = input.fields() {
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
    let binning = Binning { by: binning, pages: matches!(input, Input::Sinograms(_)) };
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
