//! The scan: angles, projections and axis; and the grid of pixels of a slice.

use super::errors::RecipeError;
use super::quantities::{degrees, text};
use super::{Ranges, Span};
use crate::center::Method;
use crate::cli::{ReconstructArgs, ScanArgs};
use crate::error::{Error, Result};
use crate::geometry::{AngleWeights, Roi};
use crate::source::InputKind;
use crate::units::{Length, parse_length};
use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};
use std::fmt;
use std::str::FromStr;

/// Largest side of a slice in pixels.
const MAX_SIZE: usize = 1 << 16;

/// Projections of the scan, their angles and the axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScanRecipe {
    pub angles: AngleSource,
    /// Projections that are used unless `exclude` removes them; all if `None`.
    pub projection_range: Option<Span>,
    pub exclude: Ranges,
    #[serde(rename = "angle-weights")]
    pub weights: AngleWeights,
    pub center: Center,
    /// True if the tilt is to be found together with the axis.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub search_tilt: bool,
    /// True if a full turn with the axis near one end of the detector is reconstructed as far as it sees.
    pub extended_field: bool,
    /// Inclination of the rotation axis in degrees; none of an upright one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lamino_angle: Option<f64>,
    /// Photon energy in keV, if it is given; outputs say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_kev: Option<f64>,
}

/// Largest inclination of the axis in degrees.
const MAX_INCLINATION: f64 = 80.0;

/// Checks an inclination of the axis; 0 is none.
pub(super) fn inclination(degrees: Option<f64>) -> Result<Option<f64>> {
    match degrees {
        // NaN is refused, too
        Some(degrees) if !(-MAX_INCLINATION..=MAX_INCLINATION).contains(&degrees) => {
            Err(RecipeError::InclinationOutside { degrees, most: MAX_INCLINATION }.into())
        }
        _ => Ok(degrees.filter(|degrees| *degrees != 0.0)),
    }
}

/// Source of the angles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AngleSource {
    /// Text file with one angle a line, in degrees.
    File,
    /// The input, an HDF5 file.
    Hdf5,
    /// The input, a `.txrm` file.
    Xrm,
    /// Even steps, in degrees.
    Even {
        #[serde(rename = "start-angle")]
        start: f64,
        #[serde(rename = "overall-angle")]
        overall: f64,
    },
}

impl AngleSource {
    /// Reports whether angles are read from the file of the data.
    pub fn is_input(self) -> bool {
        matches!(self, AngleSource::Hdf5 | AngleSource::Xrm)
    }
}

impl Default for AngleSource {
    fn default() -> Self {
        AngleSource::Even { start: 0.0, overall: 180.0 }
    }
}

/// Position of the rotation axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, SerializeDisplay, DeserializeFromStr)]
pub enum Center {
    /// Middle of the detector.
    #[default]
    Middle,
    /// Position in bins.
    At(f64),
    /// Positions in bins in the first and the last row of the detector.
    Ends([f64; 2]),
    /// Position found from the data, by this method or by those that suit the scan.
    Search(Option<Method>),
}

/// Formats the position as `--center` takes it, and the default as `middle`.
impl fmt::Display for Center {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Center::Middle => f.write_str("middle"),
            Center::At(center) => write!(f, "{center}"),
            Center::Ends([first, last]) => write!(f, "{first},{last}"),
            Center::Search(None) => f.write_str("auto"),
            Center::Search(Some(method)) => write!(f, "auto:{method}"),
        }
    }
}

impl FromStr for Center {
    type Err = Error;

    fn from_str(text: &str) -> Result<Center> {
        if text == "middle" { Ok(Center::Middle) } else { Center::parse(text) }
    }
}

impl Center {
    pub(super) fn parse(text: &str) -> Result<Center> {
        let text = text.trim();
        if text == "auto" {
            return Ok(Center::Search(None));
        }
        if let Some(method) = text.strip_prefix("auto:") {
            return match method.parse::<Method>() {
                Ok(method) => Ok(Center::Search(Some(method))),
                Err(error) => Err(RecipeError::UnknownMethod { error: error.into() }.into()),
            };
        }
        let numbers: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some([center]) if center.is_finite() => Ok(Center::At(*center)),
            Some([first, last]) if first.is_finite() && last.is_finite() => Ok(Center::Ends([*first, *last])),
            _ => {
                let methods = Method::ALL.map(Method::name).join(", ");
                Err(RecipeError::MalformedCenter { text: text.into(), methods }.into())
            }
        }
    }
}

impl ScanRecipe {
    /// Converts those flags about the scan that commands share; weights and axis have their defaults.
    pub fn new(args: &ScanArgs, input: InputKind) -> Result<ScanRecipe> {
        let angles = match &args.angles {
            Some(_) => AngleSource::File,
            None => {
                let overall = degrees(args.overall_angle, "--overall-angle", 180.0)?;
                if overall == 0.0 {
                    return Err(RecipeError::NoAngularRange.into());
                }
                let by_flags = args.overall_angle.or(args.start_angle).is_some();
                match input {
                    InputKind::Hdf5 if !by_flags => AngleSource::Hdf5,
                    InputKind::Xrm if !by_flags => AngleSource::Xrm,
                    _ => AngleSource::Even { start: degrees(args.start_angle, "--start-angle", 0.0)?, overall },
                }
            }
        };
        Ok(ScanRecipe {
            angles,
            projection_range: text(&args.projection_range).map(|t| Span::parse(t, "--projection-range")).transpose()?,
            exclude: text(&args.exclude).map(|t| Ranges::parse(t, "--exclude")).transpose()?.unwrap_or_default(),
            ..ScanRecipe::default()
        })
    }
}

/// Pixels of a slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SliceGrid {
    /// Side in pixels; the number of bins if `None`.
    pub size: Option<usize>,
    pub roi: Option<Roi>,
    /// Side of a pixel of the slices.
    pub pixel_size: Option<Length>,
}

impl SliceGrid {
    pub(super) fn new(args: &ReconstructArgs, binning: usize) -> Result<SliceGrid> {
        if let Some(size) = args.size
            && (size == 0 || size > MAX_SIZE)
        {
            return Err(RecipeError::SizeOutside { size, most: MAX_SIZE }.into());
        }
        Ok(SliceGrid {
            size: args.size,
            roi: text(&args.roi).map(Roi::from_str).transpose()?,
            ..SliceGrid::of_pixels(text(&args.pixel_size), binning)?
        })
    }

    /// Returns a grid whose pixel size is given by `--pixel-size` for the detector, `binning` pixels of which are
    /// averaged into one.
    pub fn of_pixels(size: Option<&str>, binning: usize) -> Result<SliceGrid> {
        let size = size.map(|text| parse_length(text, "--pixel-size")).transpose()?;
        let pixel_size = size.map(|size| size.times(binning as f64));
        Ok(SliceGrid { pixel_size, ..SliceGrid::default() })
    }

    /// Returns the unit of values in slices.
    pub fn unit(&self) -> String {
        format!("per {}", self.pixel_size.as_ref().map_or("pixel", |size| &size.unit).replace('µ', "u"))
    }
}
