//! Flags for the steps before the filter.

use super::values::{Text, one_or_many};
use crate::units::Length;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Flags for the steps before the filter, and keys of a run file.
#[skip_serializing_none]
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct StepArgs {
    /// Factor to multiply the dark fields by, if their exposure time differs [default: 1]
    #[arg(long, value_name = "F", allow_hyphen_values = true, help_heading = "Preprocessing")]
    pub dark_scale: Option<f64>,
    /// Flat fields that change: divide each projection by the mean of the flats and N principal components of them, with
    /// weights of its own [default for N: as many as are more than noise]
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "auto", help_heading = "Preprocessing")]
    pub eigen_flats: Option<Text>,
    /// Scale projections by the current of the storage ring: a dataset of the HDF5 scan, or a file with a number a line, for
    /// each frame, each projection, or each of flats and projections
    #[arg(long, value_name = "DATASET|FILE", help_heading = "Preprocessing")]
    pub beam_current: Option<Text>,
    /// Divide by the air at both ends of each row (numbers of bins), or in a region of each projection (pixels)
    #[arg(long, value_name = "LEFT,RIGHT|X,Y,W,H", help_heading = "Preprocessing")]
    pub normalize_air: Option<Text>,
    /// Divide transmissions by their mean over all projections; with SIGMA, in pixels, only by what a Gaussian leaves of it
    #[arg(long, value_name = "SIGMA", num_args = 0..=1, default_missing_value = "all", help_heading = "Preprocessing")]
    pub double_flat: Option<Text>,
    /// Replace pixels brighter than the median of SIZE x SIZE pixels by more than THRESHOLD counts; with ',both' also
    /// darker ones
    #[arg(long, value_name = "SIZE,THRESHOLD", help_heading = "Preprocessing")]
    pub remove_outliers: Option<Text>,
    /// Correct beam hardening by a polynomial of line integrals: p + A2 p^2 + A3 p^3 + ...
    #[arg(long, value_name = "A2,A3,...", allow_hyphen_values = true, help_heading = "Preprocessing")]
    pub beam_hardening: Option<Text>,
    /// Remove stripes: sorting, filtering, fitting, large, dead, all, wavelet, titarenko or mean, or several in order,
    /// such as dead,titarenko
    #[arg(long, value_name = "METHOD[:KEY=VALUE,...]", help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub stripes: Vec<Text>,
    /// Correct the distortion by the detector's optics: a file of coefficients as Discorpy writes it, or two images with the
    /// positions along x and y at which pixels were seen; ',repeat' repeats the outermost pixels beyond the detector
    #[arg(long, value_name = "FILE|X,Y", help_heading = "Preprocessing")]
    pub distortion: Option<Text>,
    /// Rotate projections to correct a tilted axis, by at most 10 degrees; positive if the axis is at higher bins
    /// further down. With --center auto also 'auto': what the data say
    #[arg(long, value_name = "DEG|auto", allow_hyphen_values = true, help_heading = "Preprocessing")]
    pub tilt: Option<Text>,
    /// Phase retrieval, for projections; needs --delta-beta, and --energy-kev, --distance and --pixel-size, unless an HDF5
    /// file says them
    #[arg(long, value_name = "NAME", value_parser = ["paganin"], help_heading = "Preprocessing")]
    pub phase: Option<String>,
    /// Photon energy in keV
    #[arg(long, value_name = "E", allow_hyphen_values = true, help_heading = "Preprocessing")]
    pub energy_kev: Option<f64>,
    /// Distance from the sample to the detector, with its unit, such as 50mm
    #[arg(long, value_name = "LENGTH", help_heading = "Preprocessing")]
    pub distance: Option<Text>,
    /// Ratio delta / beta of the material: refractive index decrement to absorption index
    #[arg(long, value_name = "R", allow_hyphen_values = true, help_heading = "Preprocessing")]
    pub delta_beta: Option<f64>,
    /// Unsharp mask after --phase: sigma of the Gaussian in pixels, and factor of the difference that is added
    #[arg(long, value_name = "SIGMA,AMOUNT", help_heading = "Preprocessing")]
    pub unsharp: Option<Text>,
    // no flag: what the input says where flags do not
    #[arg(skip)]
    #[serde(skip)]
    pub of_input: InputMeasures,
}

/// Measures of the scan that the input states, for use where flags do not give them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InputMeasures {
    pub energy_kev: Option<f64>,
    pub distance: Option<Length>,
    /// Of the detector, before binning.
    pub pixel_size: Option<Length>,
}
