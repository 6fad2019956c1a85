//! Flags about angles and axis.

use super::Text;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::path::PathBuf;

/// The angle and the axis of every projection.
#[skip_serializing_none]
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ScanArgs {
    /// One angle in degrees a line ('#' starts a comment)
    #[arg(long, value_name = "FILE", help_heading = "Geometry")]
    pub angles: Option<PathBuf>,
    /// Angle in degrees that the projections are spread over, end excluded [default: 180, or the angles of --hdf5]
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Geometry")]
    pub overall_angle: Option<f64>,
    /// Angle of the first projection in degrees [default: 0]
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Geometry")]
    pub start_angle: Option<f64>,
    /// Projections to use: A..B (without B), A..=B or A..B:STEP [default: all]
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    pub projection_range: Option<Text>,
    /// Projections to leave out, such as 3,10..20
    #[arg(long, value_name = "RANGES", help_heading = "Geometry")]
    pub exclude: Option<Text>,
    /// One shift of the axis in bins a line, for every projection
    #[arg(long, value_name = "FILE", help_heading = "Geometry")]
    pub center_shifts: Option<PathBuf>,
}
