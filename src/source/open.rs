//! Opening what a run reads.

use super::{Binning, Hdf5Input, Stack, hdf5};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

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

/// What a frame of the input is, and where it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// One sinogram a page.
    Sinograms,
    /// One projection a page.
    #[default]
    Projections,
    /// One projection a frame of an HDF5 file, with angles, and fields where there are no files of them.
    Hdf5,
}

/// How several frames of a field become one.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Default, Display, EnumString, IntoStaticStr, VariantArray, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FieldMode {
    #[default]
    Mean,
    Median,
}

/// Paths of datasets in an HDF5 file; what is not given is looked for, and [`NOTHING`](super::NOTHING) is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Datasets {
    pub data: Option<String>,
    pub flats: Option<String>,
    pub darks: Option<String>,
    pub angles: Option<String>,
}

/// Directories, globs or files of the data and their fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StackPaths {
    pub data: String,
    pub flats: Option<String>,
    pub flats2: Option<String>,
    pub darks: Option<String>,
}

/// What is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest<'a> {
    pub kind: InputKind,
    pub paths: &'a StackPaths,
    pub datasets: &'a Datasets,
    /// Bins and rows that are one.
    pub binning: usize,
    /// Whether the angles of an HDF5 file are wanted.
    pub angles: bool,
    /// Bytes of which a library that keeps parts of files may take a share.
    pub memory: u64,
}

/// Opens the data and their fields, binned. `data` opens the TIFF files of the data by path and flag; it may wait for them.
///
/// # Errors
/// Those of opening.
pub fn open(request: OpenRequest, data: impl FnOnce(&str, &str) -> Result<Stack>) -> Result<Stacks> {
    let OpenRequest { kind, paths, datasets, binning, angles, memory } = request;
    let mut stacks = match kind {
        InputKind::Sinograms => Stacks::of(data(&paths.data, "--sinograms")?),
        InputKind::Projections => Stacks::of(data(&paths.data, "--projections")?),
        InputKind::Hdf5 => {
            let Datasets { data, flats, darks, angles: of_angles } = datasets.clone();
            hdf5::open(
                &Hdf5Input { file: paths.data.clone().into(), data, flats, darks, angles: of_angles },
                angles,
                memory,
            )?
        }
    };
    for (stack, path, flag) in [
        (&mut stacks.flats, &paths.flats, "--flats"),
        (&mut stacks.flats2, &paths.flats2, "--flats2"),
        (&mut stacks.darks, &paths.darks, "--darks"),
    ] {
        if let Some(path) = path {
            *stack = Some(Stack::open(path, flag)?);
        }
    }
    let binning = Binning { by: binning, pages: kind == InputKind::Sinograms };
    let binned = |stack: Stack| stack.binned(binning);
    Ok(Stacks {
        data: binned(stacks.data)?,
        flats: stacks.flats.map(binned).transpose()?,
        flats2: stacks.flats2.map(binned).transpose()?,
        darks: stacks.darks.map(binned).transpose()?,
        ..stacks
    })
}
