//! What is done to the data before the filter, from its flags.

use super::PixelSize;
use super::quantities::parse_length;
use crate::cli::{InputArgs, StepArgs};
use crate::error::{Error, Result};
use crate::geometry::Roi;
use crate::steps::{Air, LARGEST_NEIGHBOURHOOD, Outliers, Paganin, Steps, Stripes, Tilt, Unsharp};

/// Largest length of a phase filter in pixels.
const MAX_PHASE_LENGTH: f64 = 1000.0;

/// A number above 0 that a flag must have.
fn positive(value: Option<f64>, flag: &str, what: &str) -> Result<f64> {
    match value {
        Some(value) if value.is_finite() && value > 0.0 => Ok(value),
        Some(value) => Err(Error::usage(format!("{flag}: {value} is not {what} above 0"))),
        None => Err(Error::usage(format!("--phase: needs {flag}, too: {what}"))),
    }
}

/// The steps before the filter, with what they need of the input.
///
/// # Errors
/// [`Error::Usage`] that names the flag.
pub fn parse_steps(given: &StepArgs, input: &InputArgs, pixel_size: Option<&PixelSize>) -> Result<Steps> {
    let (hdf5, projections) = (input.hdf5.is_some(), input.sinograms.is_none());
    let transmissions = (input.minus_log && !input.no_minus_log) || input.flats.is_some();
    if !projections {
        for (flag, is_given) in [
            ("--remove-outliers", given.remove_outliers.is_some()),
            ("--phase", given.phase.is_some()),
            ("--tilt", given.tilt.is_some()),
        ] {
            if is_given {
                return Err(Error::usage(format!("{flag}: works on whole projections; give --projections or --hdf5")));
            }
        }
    }
    // what an HDF5 file has is not known yet
    if given.dark_scale.is_some() && input.darks.is_none() && !hdf5 {
        return Err(Error::usage("--dark-scale: needs --darks, whose level it scales"));
    }
    if given.normalize_air.is_some() && !transmissions && !hdf5 {
        return Err(Error::usage("--normalize-air: divides transmissions; it needs --flats or --minus-log"));
    }
    Ok(Steps {
        dark_scale: match given.dark_scale {
            Some(scale) if !(0.0..=1e6).contains(&scale) => {
                return Err(Error::usage(format!("--dark-scale: {scale} is not a factor, 0 to 1e6")));
            }
            scale => scale.map(|scale| scale as f32),
        },
        outliers: given.remove_outliers.as_ref().map(|text| parse_outliers(&text.0)).transpose()?,
        air: given.normalize_air.as_ref().map(|text| parse_air(&text.0, projections)).transpose()?,
        tilt: match given.tilt {
            Some(degrees) if !(-MAX_TILT..=MAX_TILT).contains(&degrees) => {
                return Err(Error::usage(format!(
                    "--tilt: {degrees} is not within -{MAX_TILT}..{MAX_TILT} degrees; turn the projections before"
                )));
            }
            degrees => degrees.filter(|degrees| *degrees != 0.0).map(|degrees| Tilt { degrees }),
        },
        phase: parse_phase(given, pixel_size)?,
        stripes: given.stripes.iter().map(|text| Stripes::parse_list(&text.0)).collect::<Result<Vec<_>>>()?.concat(),
    })
}

/// Largest turn of the detector in degrees, either way.
const MAX_TILT: f64 = 10.0;

fn parse_outliers(text: &str) -> Result<Outliers> {
    let (numbers, both) = match text.trim().strip_suffix("both").and_then(|rest| rest.trim_end().strip_suffix(',')) {
        Some(numbers) => (numbers, true),
        None => (text, false),
    };
    let (size, threshold) = numbers.split_once(',').unwrap_or_default();
    match (size.trim().parse(), threshold.trim().parse::<f32>()) {
        (Ok(size), Ok(threshold))
            if (3..=LARGEST_NEIGHBOURHOOD).contains(&size)
                && size % 2 == 1
                && threshold.is_finite()
                && threshold >= 0.0 =>
        {
            Ok(Outliers::new(size, threshold, both))
        }
        _ => Err(Error::usage(format!(
            "--remove-outliers: `{text}` is not SIZE,THRESHOLD or SIZE,THRESHOLD,both: an odd number of pixels, 3 to \
             {LARGEST_NEIGHBOURHOOD}, and counts from 0 on"
        ))),
    }
}

fn parse_air(text: &str, projections: bool) -> Result<Air> {
    let parts: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_deref() {
        Some(&[left, right]) if left > 0 || right > 0 => Ok(Air::Sides(left, right)),
        Some(&[x, y, width, height]) if width > 0 && height > 0 => match projections {
            true => Ok(Air::Region(Roi { x, y, width, height })),
            false => {
                Err(Error::usage("--normalize-air: X,Y,W,H is a region of projections; give --projections or --hdf5"))
            }
        },
        _ => Err(Error::usage(format!(
            "--normalize-air: `{text}` is neither LEFT,RIGHT, bins of which one may be 0, nor X,Y,W,H in pixels"
        ))),
    }
}

fn parse_phase(given: &StepArgs, pixel_size: Option<&PixelSize>) -> Result<Option<Paganin>> {
    let Some(name) = &given.phase else {
        for (flag, is_given) in [
            ("--energy-kev", given.energy_kev.is_some()),
            ("--distance", given.distance.is_some()),
            ("--delta-beta", given.delta_beta.is_some()),
            ("--unsharp", given.unsharp.is_some()),
        ] {
            if is_given {
                return Err(Error::usage(format!("{flag}: belongs to --phase paganin, which is missing")));
            }
        }
        return Ok(None);
    };
    if name != "paganin" {
        return Err(Error::usage(format!("--phase: `{name}` is not one of paganin")));
    }
    // what is missing is said at once
    let missing: Vec<&str> = [
        ("--energy-kev", given.energy_kev.is_none()),
        ("--distance", given.distance.is_none()),
        ("--delta-beta", given.delta_beta.is_none()),
        ("--pixel-size", pixel_size.is_none()),
    ]
    .into_iter()
    .filter_map(|(flag, is_missing)| is_missing.then_some(flag))
    .collect();
    if missing.len() > 1 {
        return Err(Error::usage(format!(
            "--phase: needs {}, too: photons in keV, lengths with their units such as 50mm and 0.65um, delta over beta",
            missing.join(", ")
        )));
    }
    let energy = positive(given.energy_kev, "--energy-kev", "an energy in keV")?;
    let ratio = positive(given.delta_beta, "--delta-beta", "a ratio")?;
    let Some(distance) = &given.distance else {
        return Err(Error::usage("--phase: needs --distance, too: from sample to detector, such as 50mm"));
    };
    let Some(distance) = parse_length(&distance.0, "--distance")?.metres() else {
        return Err(Error::usage(format!("--distance: `{}` has no unit; write it like 50mm or 0.05m", distance.0)));
    };
    let Some(pixel) = pixel_size.and_then(PixelSize::metres) else {
        return Err(Error::usage("--phase: needs --pixel-size with its unit, too, such as 0.65um"));
    };
    let mut paganin = Paganin::new(energy, distance, pixel, ratio);
    if !(0.0..=MAX_PHASE_LENGTH).contains(&paganin.length) {
        return Err(Error::usage(format!(
            "--phase: energy, distance, pixel size and ratio make a filter {:.3e} pixels wide, more than \
             {MAX_PHASE_LENGTH}; check their units",
            paganin.length
        )));
    }
    if let Some(text) = &given.unsharp {
        let parts: Option<Vec<f64>> = text.0.split(',').map(|part| part.trim().parse().ok()).collect();
        paganin.unsharp = match parts.as_deref() {
            Some(&[sigma, amount]) if sigma > 0.0 && sigma <= 1000.0 && (0.0..=1000.0).contains(&amount) => {
                Some(Unsharp { sigma, amount })
            }
            _ => {
                return Err(Error::usage(format!(
                    "--unsharp: `{}` is not SIGMA,AMOUNT: pixels above 0 and a factor from 0 on, both up to 1000",
                    text.0
                )));
            }
        };
    }
    Ok(Some(paganin))
}
