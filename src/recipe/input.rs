//! Interpretation of the input.

use super::errors::RecipeError;
use super::stitching::Stitching;
use crate::cli::{InputArgs, StepArgs};
use crate::error::Result;
use crate::source::{CurrentSource, Datasets, FieldMode, InputKind, NOTHING, RawVolume, hdf5, is_xrm_scan};
use serde::{Deserialize, Serialize};

/// Largest number of bins that are averaged into one.
const MAX_BINNING: usize = 64;

/// Interpretation of the input. Its location is not part of it: see [`Files`](crate::execution::Files).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Input {
    #[serde(rename = "input-kind")]
    pub kind: InputKind,
    /// Datasets of an HDF5 file.
    pub datasets: Datasets,
    /// Method by which several flats or darks are combined into one.
    pub field_mode: FieldMode,
    /// Number of bins and of rows of the detector that are averaged into one; all quantities but the axis are in binned
    /// units.
    pub binning: usize,
    /// How the parts of a scan of several are joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stitching: Option<Stitching>,
}

impl Default for Input {
    fn default() -> Self {
        Input {
            kind: InputKind::default(),
            datasets: Datasets::default(),
            field_mode: FieldMode::default(),
            binning: 1,
            stitching: None,
        }
    }
}

impl Input {
    /// Interprets the flags.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
    pub fn new(args: &InputArgs, steps: &StepArgs) -> Result<Input> {
        let kind = kind(args)?;
        let currents = steps.beam_current.as_ref().map(|text| text.0.clone());
        let currents = currents.filter(|text| CurrentSource::of(text, true) == CurrentSource::Dataset);
        if kind == InputKind::Hdf5 {
            hdf5::built_in()?;
        }
        // given files replace datasets of the HDF5 file
        let dataset = |files: &Option<String>, dataset: &Option<String>| match files {
            Some(_) => Some(NOTHING.to_owned()),
            None => dataset.clone(),
        };
        let datasets = match kind {
            InputKind::Hdf5 => Datasets {
                data: args.hdf5_data.clone(),
                flats: dataset(&args.flats, &args.hdf5_flats),
                darks: dataset(&args.darks, &args.hdf5_darks),
                angles: args.hdf5_angles.clone(),
                keys: args.hdf5_keys.clone(),
                currents,
            },
            _ => Datasets::default(),
        };
        let binning = match args.binning {
            Some(binning) if !(1..=MAX_BINNING).contains(&binning) => {
                return Err(RecipeError::BinningOutside { binning, most: MAX_BINNING }.into());
            }
            binning => binning.unwrap_or(1),
        };
        let (field_mode, stitching) = (args.field_mode.unwrap_or_default(), Stitching::new(args)?);
        Ok(Input { kind, datasets, field_mode, binning, stitching })
    }

    /// Reports whether a page is a sinogram.
    pub fn is_sinograms(&self) -> bool {
        self.kind == InputKind::Sinograms
    }
}

fn kind(args: &InputArgs) -> Result<InputKind> {
    match (&args.sinograms, &args.projections, args.hdf5_spec(), &args.raw) {
        (Some(_), ..) => Ok(InputKind::Sinograms),
        (_, Some(path), ..) if is_xrm_scan(path) => Ok(InputKind::Xrm),
        (_, Some(_), ..) => Ok(InputKind::Projections),
        (.., Some(_), _) => Ok(InputKind::Hdf5),
        (.., Some(raw)) => RawVolume::parse(raw, "--raw").map(|_| InputKind::Projections),
        (None, None, None, None) => Err(RecipeError::NoInput.into()),
    }
}
