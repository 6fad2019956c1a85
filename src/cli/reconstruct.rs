//! `fbp reconstruct`, and the keys of a run file.

use super::{InputArgs, ScanArgs, StepArgs, Text, filters, words};
use crate::geometry::AngleWeights;
use crate::kernel::Padding;
use crate::kernel::{Interpolation, Mode};
use crate::report::ProgressKind;
use crate::sink::Dtype;
use crate::spectrum::Filter;
use clap::{ArgAction, Args};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::ops::Not;
use std::path::PathBuf;

/// Flags of `fbp reconstruct`, and keys of a run file, of which `config` refuses unknown ones. What is not given is `None`
/// or `false`.
#[skip_serializing_none]
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ReconstructArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub scan: ScanArgs,

    /// Weight of each projection [default: spacing]
    #[arg(long, value_name = "SCHEME", value_parser = words::<AngleWeights>(), help_heading = "Geometry")]
    pub angle_weights: Option<AngleWeights>,
    /// Rotation axis in bins, counted from the centre of bin 0; auto or auto:METHOD searches it [default: (bins - 1) / 2]
    #[arg(long, value_name = "X|auto", allow_hyphen_values = true, help_heading = "Geometry")]
    pub center: Option<Text>,
    /// A whole turn with the axis near one end of the detector: slices as far as the longer side reaches; needs --center
    #[arg(long, help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Not::not")]
    pub extended_field: bool,
    /// Slices to reconstruct: A..B (without B), A..=B or A..B:STEP
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    pub rows: Option<Text>,
    /// Region of each slice, in pixels of the full slice
    #[arg(long, value_name = "X,Y,W,H", help_heading = "Geometry")]
    pub roi: Option<Text>,
    /// Side of the slice in pixels [default: number of bins]
    #[arg(long, value_name = "N", help_heading = "Geometry")]
    pub size: Option<usize>,
    /// Size of a pixel with its unit, such as 0.65um: values come out per that unit [default: per pixel]
    #[arg(long, value_name = "LENGTH", help_heading = "Geometry")]
    pub pixel_size: Option<Text>,

    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,

    /// Filter of rows [default: ramp]
    #[arg(long, value_name = "NAME", value_parser = filters(), help_heading = "Filtering")]
    pub filter: Option<Filter>,
    /// Where the filter ends, in units of the Nyquist frequency [default: 1]
    #[arg(long, value_name = "F", allow_hyphen_values = true, help_heading = "Filtering")]
    pub filter_cutoff: Option<f64>,
    /// What continues a row beyond the detector [default: edge]
    #[arg(long, value_name = "KIND", value_parser = words::<Padding>(), help_heading = "Filtering")]
    pub padding: Option<Padding>,

    /// Index (0), platform:device (0:1), part of a name, gpu, cpu or all; several with commas between them, `/N` behind
    /// one cuts it in N equal devices [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL", help_heading = "Back projection")]
    pub device: Option<Text>,
    /// Name of a profile, a TOML file, or auto [default: auto]
    #[arg(long, value_name = "PROFILE", help_heading = "Back projection")]
    pub profile: Option<String>,
    /// Family of kernels, or auto: what the profile says; oversample has a rule of its own, linear at 4 places a bin and then
    /// the nearest of them [default: auto]
    #[arg(long, value_name = "NAME", help_heading = "Back projection")]
    pub algorithm: Option<String>,
    /// Between two bins [default: linear]
    #[arg(long, value_name = "KIND", value_parser = words::<Interpolation>(), help_heading = "Back projection")]
    pub interpolation: Option<Interpolation>,
    /// fast allows sinograms stored as half and the texture units' weights of 8 bits: within 4e-3 of the interpolation's
    /// rule [default: precise]
    #[arg(long, value_name = "MODE", value_parser = words::<Mode>(), help_heading = "Back projection")]
    pub mode: Option<Mode>,
    /// Slices that one kernel run reconstructs side by side: auto, 1, 2, 4, 8, 16, 32 or 64 [default: auto]
    #[arg(long, value_name = "N", help_heading = "Back projection")]
    pub slices_per_pass: Option<Text>,

    /// Check the kernel against known values before the run, once for each kernel and device [default: on]
    #[arg(long, overrides_with = "no_self_test", help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Not::not")]
    pub self_test: bool,
    /// Do not check the kernel
    #[arg(long, help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Not::not")]
    pub no_self_test: bool,

    /// Directory (slice_00000.tif ...), pattern such as out/r-%05i.tif, or one multi-page file such as out.tif
    #[arg(long, short, value_name = "PATH", help_heading = "Output")]
    pub output: Option<String>,
    /// Sample type of the slices [default: f32]
    #[arg(long, value_name = "TYPE", value_parser = words::<Dtype>(), help_heading = "Output")]
    pub dtype: Option<Dtype>,
    /// Values that become the smallest and largest integer, for u16 and u8
    #[arg(long, value_name = "MIN,MAX", allow_hyphen_values = true, help_heading = "Output")]
    pub range: Option<Text>,
    /// The same as percentiles of sampled slices [default for u16 and u8: 0.1,99.9]
    #[arg(long, value_name = "LO,HI", help_heading = "Output")]
    pub percentile: Option<Text>,
    /// Set pixels outside a centred circle to 0; its radius as a fraction of half the slice [default: 1]
    #[arg(long, value_name = "FRACTION", num_args = 0..=1, default_missing_value = "1", help_heading = "Output")]
    pub mask: Option<f64>,
    /// Picture of the middle slice and its sinogram
    #[arg(long, value_name = "FILE.png", help_heading = "Output")]
    pub preview: Option<PathBuf>,
    /// How often values occur in all slices, within the mask, as JSON; a picture of it is FILE.png
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub histogram: Option<PathBuf>,
    /// Picture of three sections through the middle; their values are FILE-xy.tif, FILE-xz.tif and FILE-yz.tif
    #[arg(long, value_name = "FILE.png", help_heading = "Output")]
    pub sections: Option<PathBuf>,
    /// Write into an output that is not empty, replacing slices of the same name
    #[arg(long, help_heading = "Output")]
    #[serde(skip_serializing_if = "Not::not")]
    pub overwrite: bool,
    /// Keep the slices that are there, whole and of this very run; do the others
    #[arg(long, help_heading = "Output")]
    #[serde(skip_serializing_if = "Not::not")]
    pub resume: bool,

    /// Run file (TOML) with any of these flags as keys; flags win
    #[arg(long, value_name = "FILE.toml", help_heading = "Running")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Write the resolved run as a run file
    #[arg(long, value_name = "FILE.toml", help_heading = "Running")]
    #[serde(skip)]
    pub save_config: Option<PathBuf>,
    /// Print the plan and stop
    #[arg(long, help_heading = "Running")]
    #[serde(skip)]
    pub dry_run: bool,
    /// Wait for files that are still arriving, until nothing has come for so long, such as 90s or 10m
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    pub watch: Option<Text>,
    /// Pages of the stack that --watch waits for [default: lines of --angles for projections, else what comes]
    #[arg(long, value_name = "COUNT", requires = "watch", help_heading = "Running")]
    pub expect: Option<usize>,
    /// Host memory to use, such as 8G [default: half of what is free]
    #[arg(long, value_name = "SIZE", help_heading = "Running")]
    pub memory: Option<Text>,
    /// Device memory to use, such as 2G [default: 80 % of the device's]
    #[arg(long, value_name = "SIZE", help_heading = "Running")]
    pub device_memory: Option<Text>,
    /// This job's share of the slices, I from 0, or auto: the place in a Slurm array or among srun's ranks
    #[arg(long, value_name = "I/N", help_heading = "Running")]
    pub shard: Option<Text>,
    /// Progress on stderr [default: auto: a bar on a terminal, plain lines elsewhere]
    #[arg(long, value_name = "KIND", value_parser = words::<ProgressKind>(), help_heading = "Running")]
    pub progress: Option<ProgressKind>,
    /// Append messages to a file, too
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    pub log: Option<PathBuf>,
    /// Write what was run and how it went as JSON
    #[arg(long, value_name = "FILE.json", help_heading = "Running")]
    pub report: Option<PathBuf>,
    /// Say more
    #[arg(long, short, action = ArgAction::Count, help_heading = "Running")]
    #[serde(skip)]
    pub verbose: u8,
    /// Say nothing but errors
    #[arg(long, short, conflicts_with = "verbose", help_heading = "Running")]
    #[serde(skip)]
    pub quiet: bool,
    /// What the record of a run says beside the run
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub facts: IgnoredAny,
}
