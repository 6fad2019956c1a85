//! Where the data come from.

use super::allowed;
use crate::cli::ReconstructArgs;
use crate::error::{Error, Result};
use crate::io::{Hdf5Input, hdf5};

/// Where the data come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// One sinogram a page.
    Sinograms(String),
    /// One projection a page, with fields.
    Projections { path: String, flats: Option<String>, flats2: Option<String>, darks: Option<String>, median: bool },
    /// One projection a frame, with fields and angles.
    Hdf5 { input: Hdf5Input, median: bool },
}

impl Input {
    /// Whether fields are medians instead of means.
    pub fn median(&self) -> bool {
        matches!(self, Input::Projections { median: true, .. } | Input::Hdf5 { median: true, .. })
    }
}

/// What the flags say, if they agree.
pub(super) fn input(args: &ReconstructArgs) -> Result<Input> {
    let given = &args.input;
    let median = || Ok(allowed(given.field_mode.as_deref().unwrap_or("mean"), "field-mode")? == "median");
    let kinds = [
        ("--sinograms", given.sinograms.is_some()),
        ("--projections", given.projections.is_some()),
        ("--hdf5", given.hdf5.is_some()),
    ];
    let kinds: Vec<&str> = kinds.iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| *flag).collect();
    if kinds.len() > 1 {
        return Err(Error::usage(format!("{}: give one of them", kinds.join(" and "))));
    }
    if let Some(file) = &given.hdf5 {
        return hdf5_input(args, file, median()?);
    }
    for (flag, value) in [
        ("--hdf5-data", &given.hdf5_data),
        ("--hdf5-flats", &given.hdf5_flats),
        ("--hdf5-darks", &given.hdf5_darks),
        ("--hdf5-angles", &given.hdf5_angles),
    ] {
        if value.is_some() {
            return Err(Error::usage(format!("{flag}: names a dataset of --hdf5, which is missing")));
        }
    }
    match (&args.input.sinograms, &args.input.projections) {
        (None, None) => {
            Err(Error::usage("--sinograms, --projections or --hdf5: missing, one of them says what to reconstruct"))
        }
        (Some(path), _) => {
            for (flag, value) in
                [("--flats", &args.input.flats), ("--flats2", &args.input.flats2), ("--darks", &args.input.darks)]
            {
                if value.is_some() {
                    return Err(Error::usage(format!(
                        "{flag}: works with --projections; sinograms are taken as already corrected"
                    )));
                }
            }
            Ok(Input::Sinograms(path.clone()))
        }
        (None, Some(path)) => {
            if args.input.flats.is_none() {
                for (flag, value) in [("--darks", &args.input.darks), ("--flats2", &args.input.flats2)] {
                    if value.is_some() {
                        return Err(Error::usage(format!(
                            "{flag}: needs --flats, too; without it nothing would be corrected"
                        )));
                    }
                }
            }
            Ok(Input::Projections {
                path: path.clone(),
                flats: args.input.flats.clone(),
                flats2: args.input.flats2.clone(),
                darks: args.input.darks.clone(),
                median: median()?,
            })
        }
    }
}

fn hdf5_input(args: &ReconstructArgs, file: &str, median: bool) -> Result<Input> {
    hdf5::built_in()?;
    let given = &args.input;
    for (flag, value) in [("--flats", &given.flats), ("--flats2", &given.flats2), ("--darks", &given.darks)] {
        if value.is_some() {
            return Err(Error::usage(format!(
                "{flag}: works with --projections; --hdf5 takes the fields of its file, see --hdf5-flats and --hdf5-darks"
            )));
        }
    }
    let angles = [
        ("--angles", args.scan.angles.is_some()),
        ("--overall-angle", args.scan.overall_angle.is_some()),
        ("--start-angle", args.scan.start_angle.is_some()),
    ];
    if let (Some(_), Some((flag, _))) = (&given.hdf5_angles, angles.iter().find(|(_, is_given)| *is_given)) {
        return Err(Error::usage(format!("--hdf5-angles and {flag}: give one of them")));
    }
    Ok(Input::Hdf5 {
        input: Hdf5Input {
            file: file.into(),
            data: given.hdf5_data.clone(),
            flats: given.hdf5_flats.clone(),
            darks: given.hdf5_darks.clone(),
            angles: given.hdf5_angles.clone(),
        },
        median,
    })
}
