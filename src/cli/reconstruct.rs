//! `fbp reconstruct`, and the keys of a run file.

use super::values::{filters, one_or_many, words};
use super::{InputArgs, ScanArgs, StepArgs, Text};
use crate::geometry::AngleWeights;
use crate::kernel::{Interpolation, Mode};
use crate::least_squares::SliceMethod;
use crate::report::ProgressKind;
use crate::sink::{Compression, Dtype, OUTPUT_FORMS, OmeZarr};
use crate::spectrum::{Filter, Padding};
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

    /// Weighting of the projections [default: spacing]
    #[arg(long, value_name = "SCHEME", value_parser = words::<AngleWeights>(), help_heading = "Geometry")]
    pub angle_weights: Option<AngleWeights>,
    /// Rotation axis in bins, counted from the centre of bin 0; X,Y of a tilted axis in the first and the last row of the
    /// detector; auto or auto:METHOD finds it [default: (bins - 1) / 2]
    #[arg(long, value_name = "X|X,Y|auto", allow_hyphen_values = true, help_heading = "Geometry")]
    pub center: Option<Text>,
    /// 360-degree scan with the axis near one end of the detector: the slice reaches as far as the longer side of the
    /// detector; needs --center
    #[arg(long, help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Not::not")]
    pub extended_field: bool,
    /// Laminography: inclination of the rotation axis in degrees, 0 if it is upright to the beam, as for tomography
    /// [default: 0]
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Geometry")]
    pub lamino_angle: Option<f64>,
    /// Divide a scan of many turns into windows of DEG degrees, or of N projections (610p), each of which becomes a volume of
    /// its own, t_000 and so on, about one axis
    #[arg(long, value_name = "DEG|Np", help_heading = "Geometry")]
    pub every: Option<Text>,
    /// Windows of --every to reconstruct: A..B (B excluded), A..=B or A..B:STEP [default: all]
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    pub turns: Option<Text>,
    /// Slices to reconstruct: A..B (B excluded), A..=B or A..B:STEP [default: all]
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    pub rows: Option<Text>,
    /// Slices to reconstruct with --lamino-angle, in pixels along the axis, of which the middle one is seen in the middle of
    /// the detector: A..B (B excluded), A..=B or A..B:STEP [default: as many as the detector has rows]
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    pub slab: Option<Text>,
    /// Region of each slice, in pixels of the full slice
    #[arg(long, value_name = "X,Y,W,H", help_heading = "Geometry")]
    pub roi: Option<Text>,
    /// Side of a slice in pixels [default: number of bins]
    #[arg(long, value_name = "N", help_heading = "Geometry")]
    pub size: Option<usize>,
    /// Pixel size with its unit, such as 0.65um; values are then attenuation per this unit [default: per pixel]
    #[arg(long, value_name = "LENGTH", help_heading = "Geometry")]
    pub pixel_size: Option<Text>,

    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,

    /// Filter [default: ramp]
    #[arg(long, value_name = "NAME", value_parser = filters(), help_heading = "Filtering")]
    pub filter: Option<Filter>,
    /// Cutoff of the filter, as a fraction of the Nyquist frequency [default: 1]
    #[arg(long, value_name = "F", allow_hyphen_values = true, help_heading = "Filtering")]
    pub filter_cutoff: Option<f64>,
    /// How to extend rows beyond the detector [default: edge]
    #[arg(long, value_name = "KIND", value_parser = words::<Padding>(), help_heading = "Filtering")]
    pub padding: Option<Padding>,

    /// How slices are found: fbp is filtered back projection; the others solve least squares for few or noisy projections:
    /// tv keeps edges and flattens the rest, huber also keeps slopes, tikhonov smooths, cgls stops at the noise [default:
    /// fbp]
    #[arg(long, value_name = "NAME", value_parser = words::<SliceMethod>(), help_heading = "Least squares")]
    pub method: Option<SliceMethod>,
    /// Weight of the regularisation, in units of what the noise of the rows suggests; more is smoother [default: 1]
    #[arg(long, value_name = "X", allow_hyphen_values = true, help_heading = "Least squares")]
    pub strength: Option<f64>,
    /// Number of iterations; auto ends when the slice hardly changes, after 100 at most [default: auto]
    #[arg(long, value_name = "N|auto", allow_hyphen_values = true, help_heading = "Least squares")]
    pub iterations: Option<Text>,
    /// Change of a slice between iterations, relative to its contrast, at which --iterations auto ends [default: 5e-4]
    #[arg(long, value_name = "T", allow_hyphen_values = true, help_heading = "Least squares")]
    pub tolerance: Option<f64>,
    /// Gradient up to which huber smooths, relative to the slice's contrast [default: 0.05]
    #[arg(long, value_name = "F", allow_hyphen_values = true, help_heading = "Least squares")]
    pub huber_threshold: Option<f64>,
    /// The sample is wider than the detector: extend rows; values have an offset
    #[arg(long, help_heading = "Least squares")]
    #[serde(skip_serializing_if = "Not::not")]
    pub interior: bool,
    /// Weights of projections, for uneven exposures: noise takes them from the noise of each, a file has one number per line
    /// [default: all the same]
    #[arg(long, value_name = "noise|FILE", help_heading = "Least squares")]
    pub weights: Option<PathBuf>,
    /// Exclude values below 0 [default: on for tv and huber]
    #[arg(long, overrides_with = "no_non_negative", help_heading = "Least squares")]
    #[serde(skip_serializing_if = "Not::not")]
    pub non_negative: bool,
    /// Allow values below 0
    #[arg(long, help_heading = "Least squares")]
    #[serde(skip_serializing_if = "Not::not")]
    pub no_non_negative: bool,

    /// Index (0), platform:device (0:1), part of a name, gpu, cpu or all; several are separated by commas; `/N` after a
    /// device divides it into N equal parts [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL", help_heading = "Back projection")]
    pub device: Option<Text>,
    /// Name of a profile, a TOML file, or auto [default: auto]
    #[arg(long, value_name = "PROFILE", help_heading = "Back projection")]
    pub profile: Option<String>,
    /// Kernel family, or auto for the profile's choice; oversample interpolates each row linearly to 4 positions per
    /// bin and uses the nearest [default: auto]
    #[arg(long, value_name = "NAME", help_heading = "Back projection")]
    pub algorithm: Option<String>,
    /// Interpolation between bins; exact evaluates the band-limited row to within --accuracy, and is the fastest for
    /// large slices [default: linear]
    #[arg(long, value_name = "KIND", value_parser = words::<Interpolation>(), help_heading = "Back projection")]
    pub interpolation: Option<Interpolation>,
    /// Error allowed with --interpolation exact: root mean square of the difference from the exact slice, relative to
    /// that of the slice, 2e-6 to 0.1 [default: 1e-5, 1e-3 with --mode fast]
    #[arg(long, value_name = "E", allow_hyphen_values = true, help_heading = "Back projection")]
    pub accuracy: Option<f64>,
    /// fast allows half-precision storage of sinograms and the 8-bit interpolation weights of texture units, with a
    /// relative error of up to 4e-3 [default: precise]
    #[arg(long, value_name = "MODE", value_parser = words::<Mode>(), help_heading = "Back projection")]
    pub mode: Option<Mode>,
    /// Number of slices that a kernel reconstructs at once: auto, 1, 2, 4, 8, 16, 32 or 64 [default: auto]
    #[arg(long, value_name = "N", help_heading = "Back projection")]
    pub slices_per_pass: Option<Text>,

    /// Check the kernel against a reference before the run, once for each kernel and device [default: on]
    #[arg(long, overrides_with = "no_self_test", help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Not::not")]
    pub self_test: bool,
    /// Do not check the kernel
    #[arg(long, help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Not::not")]
    pub no_self_test: bool,

    #[arg(long, short, help = OUTPUT_FORMS, value_name = "PATH", help_heading = "Output")]
    pub output: Option<String>,
    /// Sample type of the slices [default: f32]
    #[arg(long, value_name = "TYPE", value_parser = words::<Dtype>(), help_heading = "Output")]
    pub dtype: Option<Dtype>,
    /// Lossless compression of the slices, with a predictor in TIFF, of which ImageJ 1.53 reads only lzw of integers
    /// correctly [default: none]
    #[arg(long, value_name = "METHOD", value_parser = words::<Compression>(), help_heading = "Output")]
    pub compression: Option<Compression>,
    /// Version of OME-Zarr for an output that ends in .zarr [default: 0.4]
    #[arg(long, value_name = "VERSION", value_parser = words::<OmeZarr>(), help_heading = "Output")]
    pub ome_zarr: Option<OmeZarr>,
    /// Files among which an output that ends in .h5 distributes its slices, 1 to 64; with more than one, the output is a
    /// virtual dataset that refers to them, and threads do not wait for each other to write [default: 1]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub hdf5_parts: Option<u32>,
    /// Values that become the smallest and largest integer, for u16 and u8
    #[arg(long, value_name = "MIN,MAX", allow_hyphen_values = true, help_heading = "Output")]
    pub range: Option<Text>,
    /// --range as percentiles of a sample of slices [default for u16 and u8: 0.1,99.9]
    #[arg(long, value_name = "LO,HI", help_heading = "Output")]
    pub percentile: Option<Text>,
    /// Set pixels outside a centred circle to 0; FRACTION is its radius relative to half the side of the slice
    /// [default: 1]
    #[arg(long, value_name = "FRACTION", num_args = 0..=1, default_missing_value = "1", help_heading = "Output")]
    pub mask: Option<f64>,
    /// Write an image of the middle slice and its sinogram
    #[arg(long, value_name = "FILE.png", help_heading = "Output")]
    pub preview: Option<PathBuf>,
    /// Write a histogram of all slices (inside the mask) as JSON, and a plot of it as FILE.png
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    pub histogram: Option<PathBuf>,
    /// Write an image of three orthogonal sections through the middle, and their values as FILE-xy.tif, FILE-xz.tif and
    /// FILE-yz.tif
    #[arg(long, value_name = "FILE.png", help_heading = "Output")]
    pub sections: Option<PathBuf>,
    /// Measure resolution and noise of the middle slice from two half scans, of the even and the odd projections, for
    /// the summary and the reports
    #[arg(long, help_heading = "Output")]
    #[serde(skip_serializing_if = "Not::not")]
    pub resolution: bool,
    /// Write to an output that is not empty, and replace slices of the same name
    #[arg(long, help_heading = "Output")]
    #[serde(skip_serializing_if = "Not::not")]
    pub overwrite: bool,
    /// Keep the complete slices of an earlier attempt at the same run, and reconstruct the others
    #[arg(long, help_heading = "Output")]
    #[serde(skip_serializing_if = "Not::not")]
    pub resume: bool,

    /// Run file (TOML) with any of these flags as keys; flags on the command line take precedence
    #[arg(long, value_name = "FILE.toml", help_heading = "Running")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Write the flags of this run to a run file
    #[arg(long, value_name = "FILE.toml", help_heading = "Running")]
    #[serde(skip)]
    pub save_config: Option<PathBuf>,
    /// Print the plan without running it
    #[arg(long, help_heading = "Running")]
    #[serde(skip)]
    pub dry_run: bool,
    /// Wait for files that are still arriving, until none has arrived for this long, such as 90s or 10m
    #[arg(long, value_name = "TIME", help_heading = "Running")]
    pub watch: Option<Text>,
    /// Number of pages that --watch waits for [default: for projections, the number of lines in --angles; else no
    /// limit]
    #[arg(long, value_name = "COUNT", help_heading = "Running")]
    pub expect: Option<usize>,
    /// Host memory to use, such as 8G [default: half of the free memory]
    #[arg(long, value_name = "SIZE", help_heading = "Running")]
    pub memory: Option<Text>,
    /// Device memory to use, such as 2G [default: 80 % of the memory of the device]
    #[arg(long, value_name = "SIZE", help_heading = "Running")]
    pub device_memory: Option<Text>,
    /// This job's share of the slices, counted from 0, or auto: the index in a Slurm array or the rank under srun
    #[arg(long, value_name = "I/N", help_heading = "Running")]
    pub shard: Option<Text>,
    /// Progress on stderr [default: auto: a bar on a terminal, plain lines elsewhere]
    #[arg(long, value_name = "KIND", value_parser = words::<ProgressKind>(), help_heading = "Running")]
    pub progress: Option<ProgressKind>,
    /// Also append all messages to a file
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    pub log: Option<PathBuf>,
    /// Treat every warning about the data as an error, with exit code 3, before the first slice is written where it can be
    /// known then
    #[arg(long, help_heading = "Running")]
    #[serde(skip_serializing_if = "Not::not")]
    pub strict: bool,
    /// Write a report of the run: FILE.json, or FILE.html, a page with slices, histogram, axis search and times; give it
    /// twice for both
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub report: Vec<PathBuf>,
    /// Increase verbosity
    #[arg(long, short, action = ArgAction::Count, help_heading = "Running")]
    #[serde(skip)]
    pub verbose: u8,
    /// Print only errors
    #[arg(long, short, help_heading = "Running")]
    #[serde(skip)]
    pub quiet: bool,
    /// Facts in the record of a run, which a run file may contain
    #[arg(skip)]
    #[serde(skip_serializing)]
    pub facts: IgnoredAny,
}
