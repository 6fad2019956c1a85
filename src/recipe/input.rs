//! Interpretation of the input.

use crate::cli::InputArgs;
use crate::error::{Error, Result};
use crate::source::{Datasets, FieldMode, InputKind, NOTHING, RawVolume, hdf5};
use serde::{Deserialize, Serialize};

/// Largest number of bins that are averaged into one.
const MAX_BINNING: usize = 64;

/// Interpretation of the input. Its location is not part of it: see [`Files`](crate::execution::Files).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Default for Input {
    fn default() -> Self {
        Input {
            kind: InputKind::default(),
            datasets: Datasets::default(),
            field_mode: FieldMode::default(),
            binning: 1,
        }
    }
}

impl Input {
    /// Interprets the flags and checks that they agree.
    ///
    /// # Errors
    /// [`Error::Usage`] that names the flag.
    pub fn new(args: &InputArgs) -> Result<Input> {
        let kind = kind(args)?;
        if args.order_by.is_some() && args.hdf5.as_ref().or(args.raw.as_ref()).is_some() {
            return Err(Error::usage("--order-by: is about the names of files; leave it out with --hdf5 and --raw"));
        }
        match kind {
            InputKind::Hdf5 => check_hdf5(args)?,
            _ => check_tiff(args)?,
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
            },
            _ => Datasets::default(),
        };
        let binning = match args.binning {
            Some(binning) if !(1..=MAX_BINNING).contains(&binning) => {
                return Err(Error::usage(format!("--binning: {binning} is not a number of bins, 1 to {MAX_BINNING}")));
            }
            binning => binning.unwrap_or(1),
        };
        Ok(Input { kind, datasets, field_mode: args.field_mode.unwrap_or_default(), binning })
    }

    /// Reports whether a page is a sinogram.
    pub fn is_sinograms(&self) -> bool {
        self.kind == InputKind::Sinograms
    }
}

fn kind(args: &InputArgs) -> Result<InputKind> {
    match (&args.sinograms, &args.projections, &args.hdf5, &args.raw) {
        (Some(_), ..) => Ok(InputKind::Sinograms),
        (_, Some(_), ..) => Ok(InputKind::Projections),
        (.., Some(_), _) => Ok(InputKind::Hdf5),
        (.., Some(raw)) => RawVolume::parse(raw, "--raw").map(|_| InputKind::Projections),
        (None, None, None, None) => {
            Err(Error::usage("--sinograms, --projections, --hdf5 or --raw: missing; give one of them"))
        }
    }
}

fn check_tiff(args: &InputArgs) -> Result<()> {
    for (flag, value) in [
        ("--hdf5-data", &args.hdf5_data),
        ("--hdf5-flats", &args.hdf5_flats),
        ("--hdf5-darks", &args.hdf5_darks),
        ("--hdf5-angles", &args.hdf5_angles),
        ("--hdf5-keys", &args.hdf5_keys),
    ] {
        if value.is_some() {
            return Err(Error::usage(format!("{flag}: names a dataset of --hdf5, which is missing; give --hdf5, too")));
        }
    }
    let fields = [("--flats", &args.flats), ("--flats2", &args.flats2), ("--darks", &args.darks)];
    if let (Some(_), Some((flag, _))) = (&args.sinograms, fields.iter().find(|(_, value)| value.is_some())) {
        return Err(Error::usage(format!(
            "{flag}: works with --projections; sinograms are taken as already corrected"
        )));
    }
    for (flag, value) in [("--darks", &args.darks), ("--flats2", &args.flats2)] {
        if value.is_some() && args.flats.is_none() {
            return Err(Error::usage(format!("{flag}: needs --flats, too; without it nothing would be corrected")));
        }
    }
    Ok(())
}

fn check_hdf5(args: &InputArgs) -> Result<()> {
    hdf5::built_in()?;
    if args.flats2.is_some() && args.flats.is_none() {
        return Err(Error::usage("--flats2: needs --flats, too: the flats of the file are not mixed with others"));
    }
    Ok(())
}
