//! Flags for angles and axis.

use super::Text;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::path::PathBuf;

/// Angle and axis of every projection.
#[skip_serializing_none]
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ScanArgs {
    /// File with one angle in degrees per line ('#' starts a comment)
    #[arg(long, value_name = "FILE", help_heading = "Geometry")]
    pub angles: Option<PathBuf>,
    /// Angular range of the scan in degrees, end excluded [default: 180, or the angles in an HDF5 or .txrm file, or in the log
    /// of a SkyScan scanner beside --projections]
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Geometry")]
    pub overall_angle: Option<f64>,
    /// Angle of the first projection in degrees [default: 0]
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Geometry")]
    pub start_angle: Option<f64>,
    /// Projections to use: A..B (B excluded), A..=B or A..B:STEP [default: all]
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    pub projection_range: Option<Text>,
    /// Projections to leave out, such as 3,10..20
    #[arg(long, value_name = "RANGES", help_heading = "Geometry")]
    pub exclude: Option<Text>,
    /// File with one line per projection: shift of the axis in bins [default: none, or those in a .txrm file]
    #[arg(long, value_name = "FILE", help_heading = "Geometry")]
    pub center_shifts: Option<PathBuf>,
}
