//! Opening the inputs of a run.

use super::skyscan::{BesideProjections, LogUse, beside};
use super::xrm::{self, XrmWanted};
use super::{Binning, Hdf5Input, RawVolume, Stack, StackPaths, Stacks, hdf5};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// Kind of frames of the input: sinograms or projections, or projections of a file with more of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// One sinogram per page.
    Sinograms,
    /// One projection per page.
    #[default]
    Projections,
    /// One projection per frame of an HDF5 file, with angles, and with fields unless they are given as files.
    Hdf5,
    /// One projection per frame of a `.txrm` file, with angles and shifts, and with a flat field unless flats are given as
    /// files.
    Xrm,
}

/// Method by which several frames of a field are combined.
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

/// Paths of datasets in an HDF5 file. Those that are not given are located; [`NOTHING`](super::NOTHING) means none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Datasets {
    #[serde(rename = "hdf5-data")]
    pub data: Option<String>,
    #[serde(rename = "hdf5-flats")]
    pub flats: Option<String>,
    #[serde(rename = "hdf5-darks")]
    pub darks: Option<String>,
    #[serde(rename = "hdf5-angles")]
    pub angles: Option<String>,
    #[serde(rename = "hdf5-keys", default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
    #[serde(rename = "current-dataset", default, skip_serializing_if = "Option::is_none")]
    pub currents: Option<String>,
}

/// Description of the inputs to be opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenRequest<'a> {
    pub kind: InputKind,
    pub paths: &'a StackPaths,
    pub datasets: &'a Datasets,
    /// Number of bins, and of rows or pages, that form one.
    pub binning: usize,
    /// True if angles are read from the file of the data, of HDF5 or `.txrm`.
    pub angles: bool,
    /// What is taken from a log beside projections, if there is one.
    pub log: LogUse,
    /// True if shifts of the axis are read from the file of the data, if it has any.
    pub shifts: bool,
    /// Memory in bytes, of which chunks that are decoded or kept may take a part.
    pub memory: u64,
}

/// Adds to projections what a log beside them says.
fn with_log(data: Stack, log: LogUse) -> Stacks {
    if log == LogUse::Nothing {
        return Stacks::of(data);
    }
    let BesideProjections { log, angles, measures, remarks } = beside(&data, log == LogUse::Angles);
    Stacks { log, angles, measures, ..Stacks::of(remarks.into_iter().fold(data, Stack::with_remark)) }
}

/// Opens the data and their fields, binned. `data` opens the files of the data, given their path and the flag, unless
/// they are HDF5; it may wait for them.
///
/// # Errors
/// The errors of opening a stack.
pub fn open(request: OpenRequest, data: impl FnOnce(&str, &str) -> Result<Stack>) -> Result<Stacks> {
    let OpenRequest { kind, paths, datasets, binning, angles, log, shifts, memory } = request;
    let mut stacks = match kind {
        InputKind::Sinograms => Stacks::of(data(&paths.data, "--sinograms")?),
        InputKind::Projections => {
            let flag = if RawVolume::looks_like(&paths.data) { "--raw" } else { "--projections" };
            with_log(data(&paths.data, flag)?, log)
        }
        InputKind::Xrm => {
            let flats = paths.flats.is_none();
            xrm::scan(data(&paths.data, "--projections")?, XrmWanted { angles, flats, shifts })?
        }
        InputKind::Hdf5 => {
            let Datasets { data, flats, darks, angles: of_angles, keys, currents } = datasets.clone();
            hdf5::open(
                &Hdf5Input { file: paths.data.clone().into(), data, flats, darks, angles: of_angles, keys, currents },
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
            *stack = Some(Stack::open_within(path, flag, memory)?);
        }
    }
    stacks.binned(Binning { by: binning, pages: kind == InputKind::Sinograms })?.with_files(paths)
}
