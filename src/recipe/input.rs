//! Where the data come from.

use super::allowed;
use crate::cli::ReconstructArgs;
use crate::error::{Error, Result};
use crate::source::{Hdf5Input, NOTHING, hdf5};

/// Where the data come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// One sinogram a page.
    Sinograms(String),
    /// One projection a page.
    Projections { path: String, fields: FieldFiles },
    /// One projection a frame, with angles, and fields where there are no files of them.
    Hdf5 { input: Hdf5Input, fields: FieldFiles },
}

/// TIFF files of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldFiles {
    pub flats: Option<String>,
    pub flats2: Option<String>,
    pub darks: Option<String>,
    /// Medians of several frames instead of means.
    pub median: bool,
}

impl Input {
    /// The files of the fields; none of sinograms.
    pub fn fields(&self) -> Option<&FieldFiles> {
        match self {
            Input::Sinograms(_) => None,
            Input::Projections { fields, .. } | Input::Hdf5 { fields, .. } => Some(fields),
        }
    }

    /// Whether fields are medians instead of means.
    pub fn median(&self) -> bool {
        self.fields().is_some_and(|fields| fields.median)
    }
}

/// What the flags say, if they agree.
pub(super) fn input(args: &ReconstructArgs) -> Result<Input> {
    let given = &args.input;
    let fields = || -> Result<FieldFiles> {
        Ok(FieldFiles {
            flats: given.flats.clone(),
            flats2: given.flats2.clone(),
            darks: given.darks.clone(),
            median: allowed(given.field_mode.as_deref().unwrap_or("mean"), "field-mode")? == "median",
        })
    };
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
        return hdf5_input(args, file, fields()?);
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
            Ok(Input::Projections { path: path.clone(), fields: fields()? })
        }
    }
}

fn hdf5_input(args: &ReconstructArgs, file: &str, fields: FieldFiles) -> Result<Input> {
    hdf5::built_in()?;
    let given = &args.input;
    for (flag, files, dataset) in
        [("flats", &fields.flats, &given.hdf5_flats), ("darks", &fields.darks, &given.hdf5_darks)]
    {
        if files.is_some() && dataset.is_some() {
            return Err(Error::usage(format!("--{flag} and --hdf5-{flag}: give one of them, TIFF files or a dataset")));
        }
    }
    if fields.flats2.is_some() && fields.flats.is_none() {
        return Err(Error::usage("--flats2: needs --flats, too: the flats of the file are not mixed with others"));
    }
    // files stand for what is in the file
    let dataset = |files: &Option<String>, dataset: &Option<String>| match files {
        Some(_) => Some(NOTHING.to_owned()),
        None => dataset.clone(),
    };
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
            flats: dataset(&fields.flats, &given.hdf5_flats),
            darks: dataset(&fields.darks, &given.hdf5_darks),
            angles: given.hdf5_angles.clone(),
        },
        fields,
    })
}
