//! The command line, as a declaration. Nothing here knows the rest of the crate.

use clap::{ArgAction, Args, Parser, Subcommand};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   compared unequal, or a kernel is wrong (bench, doctor)
  2   usage: unknown flag or key, bad value, bad profile
  3   input: missing, corrupt or inconsistent files
  4   device or driver, or no kernel is right on it
  5   output: disk full, permission, not empty
  75  interrupted after a clean stop: every slice that is there is whole; run again with --resume";

/// Filtered back projection of X-ray sinograms and projections on any OpenCL device.
#[derive(Debug, Parser)]
#[command(name = "fbp", version, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Reconstruct slices from sinograms or projections
    #[command(alias = "reco", after_help = EXIT_CODES)]
    Reconstruct(Box<ReconstructArgs>),
    /// List OpenCL devices, what they can do, and the profile that each gets
    Devices(DevicesArgs),
    /// List, print or check device profiles
    Profiles {
        #[command(subcommand)]
        action: ProfilesAction,
    },
    /// Print a generated back-projection kernel and its build options; needs no device
    Kernel(KernelArgs),
    /// What each unit of a device allows a kernel, and which limits it; needs no device
    #[command(after_help = "\
Without --profile: the kernel of the paper's section 6.5 on every device with known rates, which is its Table 16.
With it: every kernel of the profiles, beside what was measured. GU/s is 10^9 pixel-projection updates a second.")]
    Model(ModelArgs),
    /// Check this device and driver: image formats, transforms, and every kernel of a profile against known values
    #[command(after_help = EXIT_CODES)]
    Doctor(DoctorArgs),
    /// Check and time the back-projection kernels of a profile on a device
    #[command(after_help = EXIT_CODES)]
    Bench(BenchArgs),
    /// Search the fastest right parameters of the kernels on a device, and write them as a profile
    #[command(after_help = EXIT_CODES)]
    Tune(TuneArgs),
    /// Search the rotation axis, or write trial slices about several
    #[command(after_help = EXIT_CODES)]
    Center(Box<CenterArgs>),
    /// Write what reconstruct would make of sinograms or projections before the filter; needs no device
    #[command(after_help = EXIT_CODES)]
    Preprocess(Box<PreprocessArgs>),
    /// Write analytic sinograms or projections of a phantom
    Phantom(PhantomArgs),
    /// Compare slices with reference slices
    Compare(CompareArgs),
    /// Say what a TIFF file or stack, or an HDF5 file, holds
    Info(InfoArgs),
    /// Print shell completions
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Text in a run file: a string, or a number or list written without quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Text(pub String);

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Text(String),
            Whole(i64),
            Real(f64),
            List(Vec<Any>),
        }
        fn text(any: Any) -> String {
            match any {
                Any::Text(text) => text,
                Any::Whole(value) => value.to_string(),
                Any::Real(value) => value.to_string(),
                Any::List(list) => list.into_iter().map(text).collect::<Vec<_>>().join(","),
            }
        }
        Any::deserialize(deserializer).map(|any| Text(text(any)))
    }
}

/// Flags of `fbp reconstruct`, and keys of a run file, of which `config` refuses unknown ones. What is not given is `None`
/// or `false`.
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
    #[arg(long, value_name = "SCHEME", value_parser = ["spacing", "uniform"], help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub angle_weights: Option<String>,
    /// Rotation axis in bins, counted from the centre of bin 0; auto or auto:METHOD searches it [default: (bins - 1) / 2]
    #[arg(long, value_name = "X|auto", allow_hyphen_values = true, help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub center: Option<Text>,
    /// A whole turn with the axis near one end of the detector: slices as far as the longer side reaches; needs --center
    #[arg(long, help_heading = "Geometry")]
    #[serde(skip_serializing_if = "is_false")]
    pub extended_field: bool,
    /// Slices to reconstruct: A..B (without B), A..=B or A..B:STEP
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<Text>,
    /// Region of each slice, in pixels of the full slice
    #[arg(long, value_name = "X,Y,W,H", help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roi: Option<Text>,
    /// Side of the slice in pixels [default: number of bins]
    #[arg(long, value_name = "N", help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Size of a pixel with its unit, such as 0.65um: values come out per that unit [default: per pixel]
    #[arg(long, value_name = "LENGTH", help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pixel_size: Option<Text>,

    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,

    /// ramp, shepp-logan, cosine, hamming, hann, parzen, butterworth or none [default: ramp]
    #[arg(long, value_name = "NAME", help_heading = "Filtering")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Where the filter ends, in units of the Nyquist frequency [default: 1]
    #[arg(long, value_name = "F", allow_hyphen_values = true, help_heading = "Filtering")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter_cutoff: Option<f64>,
    /// What continues a row beyond the detector [default: edge]
    #[arg(long, value_name = "KIND", value_parser = ["edge", "zero", "mirror"], help_heading = "Filtering")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub padding: Option<String>,

    /// Index (0), platform:device (0:1), part of a name, gpu, cpu or all; several with commas between them, `/N` behind
    /// one cuts it in N equal devices [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL", help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Text>,
    /// Name of a profile, a TOML file, or auto [default: auto]
    #[arg(long, value_name = "PROFILE", help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Family of kernels, or auto: what the profile says; oversample has a rule of its own, linear at 4 places a bin and then
    /// the nearest of them [default: auto]
    #[arg(long, value_name = "NAME", help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// Between two bins [default: linear]
    #[arg(long, value_name = "KIND", value_parser = ["linear", "nearest"], help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpolation: Option<String>,
    /// fast allows sinograms stored as half and the texture units' weights of 8 bits: within 4e-3 of the interpolation's
    /// rule [default: precise]
    #[arg(long, value_name = "MODE", value_parser = ["precise", "fast"], help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Slices that one kernel run reconstructs side by side: auto, 1, 2, 4, 8, 16, 32 or 64 [default: auto]
    #[arg(long, value_name = "N", help_heading = "Back projection")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices_per_pass: Option<Text>,

    /// Check the kernel against known values before the run, once for each kernel and device [default: on]
    #[arg(long, overrides_with = "no_self_test", help_heading = "Back projection")]
    #[serde(skip_serializing_if = "is_false")]
    pub self_test: bool,
    /// Do not check the kernel
    #[arg(long, help_heading = "Back projection")]
    #[serde(skip_serializing_if = "is_false")]
    pub no_self_test: bool,

    /// Directory (slice_00000.tif ...), pattern such as out/r-%05i.tif, or one multi-page file such as out.tif
    #[arg(long, short, value_name = "PATH", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Sample type of the slices [default: f32]
    #[arg(long, value_name = "TYPE", value_parser = ["f32", "f16", "u16", "u8"], help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// Values that become the smallest and largest integer, for u16 and u8
    #[arg(
        long,
        value_name = "MIN,MAX",
        allow_hyphen_values = true,
        conflicts_with = "percentile",
        help_heading = "Output"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Text>,
    /// The same as percentiles of sampled slices [default for u16 and u8: 0.1,99.9]
    #[arg(long, value_name = "LO,HI", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentile: Option<Text>,
    /// Set pixels outside a centred circle to 0; its radius as a fraction of half the slice [default: 1]
    #[arg(long, value_name = "FRACTION", num_args = 0..=1, default_missing_value = "1", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask: Option<f64>,
    /// Picture of the middle slice and its sinogram
    #[arg(long, value_name = "FILE.png", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<PathBuf>,
    /// How often values occur in all slices, within the mask, as JSON; a picture of it is FILE.png
    #[arg(long, value_name = "FILE.json", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram: Option<PathBuf>,
    /// Picture of three sections through the middle; their values are FILE-xy.tif, FILE-xz.tif and FILE-yz.tif
    #[arg(long, value_name = "FILE.png", help_heading = "Output")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sections: Option<PathBuf>,
    /// Write into an output that is not empty, replacing slices of the same name
    #[arg(long, help_heading = "Output")]
    #[serde(skip_serializing_if = "is_false")]
    pub overwrite: bool,
    /// Keep the slices that are there, whole and of this very run; do the others
    #[arg(long, conflicts_with = "overwrite", help_heading = "Output")]
    #[serde(skip_serializing_if = "is_false")]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<Text>,
    /// Pages of the stack that --watch waits for [default: lines of --angles for projections, else what comes]
    #[arg(long, value_name = "COUNT", requires = "watch", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect: Option<usize>,
    /// Host memory to use, such as 8G [default: half of what is free]
    #[arg(long, value_name = "SIZE", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Text>,
    /// Device memory to use, such as 2G [default: 80 % of the device's]
    #[arg(long, value_name = "SIZE", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_memory: Option<Text>,
    /// This job's share of the slices, I from 0, or auto: the place in a Slurm array or among srun's ranks
    #[arg(long, value_name = "I/N", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<Text>,
    /// Progress on stderr [default: auto: a bar on a terminal, plain lines elsewhere]
    #[arg(long, value_name = "KIND", value_parser = ["auto", "bar", "plain", "json", "none"], help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Append messages to a file, too
    #[arg(long, value_name = "FILE", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<PathBuf>,
    /// Write what was run and how it went as JSON
    #[arg(long, value_name = "FILE.json", help_heading = "Running")]
    #[serde(skip_serializing_if = "Option::is_none")]
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

fn is_false(value: &bool) -> bool {
    !value
}

/// Flags about what is done to the data before the filter, and keys of a run file.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct StepArgs {
    /// Factor on the dark fields, when they have another exposure time [default: 1]
    #[arg(long, value_name = "F", allow_hyphen_values = true, help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dark_scale: Option<f64>,
    /// Divide by the air in so many bins at both ends of each row, or in a region of each projection, in pixels
    #[arg(long, value_name = "LEFT,RIGHT|X,Y,W,H", help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize_air: Option<Text>,
    /// Replace pixels brighter than the median of SIZE x SIZE pixels by more than THRESHOLD counts; ',both': or darker
    #[arg(long, value_name = "SIZE,THRESHOLD", help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove_outliers: Option<Text>,
    /// Take stripes out: sorting, filtering, fitting, large, dead, all, wavelet, titarenko, mean; several in order, such as
    /// dead,titarenko
    #[arg(long, value_name = "METHOD[:KEY=VALUE,...]", help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub stripes: Vec<Text>,
    /// Turn projections back by so many degrees: the axis leans to higher bins further down, at most 10 either way
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tilt: Option<f64>,
    /// Phase filter, for projections; needs the four flags below and --pixel-size
    #[arg(long, value_name = "NAME", value_parser = ["paganin"], help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Energy of the photons in keV
    #[arg(long, value_name = "E", allow_hyphen_values = true, help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_kev: Option<f64>,
    /// From the sample to the detector, with its unit, such as 50mm
    #[arg(long, value_name = "LENGTH", help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distance: Option<Text>,
    /// Decrement of the refractive index over absorption index of the material
    #[arg(long, value_name = "R", allow_hyphen_values = true, help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta_beta: Option<f64>,
    /// Sharpen after --phase: Gaussian in pixels, and how much of the difference to it is added
    #[arg(long, value_name = "SIGMA,AMOUNT", help_heading = "Preprocessing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsharp: Option<Text>,
}

/// The data, and how counts become line integrals.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct InputArgs {
    /// Directory, glob or multi-page TIFF; one sinogram a file or page, its rows are projections
    #[arg(long, value_name = "PATH", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sinograms: Option<String>,
    /// Directory, glob or multi-page TIFF; one projection a file or page
    #[arg(long, value_name = "PATH", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projections: Option<String>,
    /// HDF5 file with projections, fields and angles: Data Exchange, NXtomo, or as the paths below say
    #[arg(long, value_name = "FILE", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdf5: Option<String>,
    /// Dataset of the projections [default: where the layout has it]
    #[arg(long, value_name = "DATASET", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdf5_data: Option<String>,
    /// Dataset of the flat fields, or none [default: where the layout has it]
    #[arg(long, value_name = "DATASET", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdf5_flats: Option<String>,
    /// Dataset of the dark fields, or none [default: where the layout has it]
    #[arg(long, value_name = "DATASET", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdf5_darks: Option<String>,
    /// Dataset of the angles [default: where the layout has it]
    #[arg(long, value_name = "DATASET", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdf5_angles: Option<String>,
    /// Flat fields (beam without sample), for --projections, or in place of those of --hdf5
    #[arg(long, value_name = "PATH", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flats: Option<String>,
    /// Flat fields taken after the scan; every projection gets its share of both
    #[arg(long, value_name = "PATH", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flats2: Option<String>,
    /// Dark fields (no beam), for --projections, or in place of those of --hdf5
    #[arg(long, value_name = "PATH", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub darks: Option<String>,
    /// How several flats or darks become one [default: mean]
    #[arg(long, value_name = "MODE", value_parser = ["mean", "median"], help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_mode: Option<String>,
    /// Take -log of the transmission [default: on with flats]
    #[arg(long, overrides_with = "no_minus_log", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "is_false")]
    pub minus_log: bool,
    /// Do not take -log
    #[arg(long, help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "is_false")]
    pub no_minus_log: bool,
    /// Means of N x N pixels as pixels; other flags count these, but --center, --center-shifts and --pixel-size [default: 1]
    #[arg(long, value_name = "N", help_heading = "Input (exactly one of the first three)")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binning: Option<usize>,
}

/// The angle and the axis of every projection.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct ScanArgs {
    /// One angle in degrees a line ('#' starts a comment)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["overall_angle", "start_angle"], help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub angles: Option<PathBuf>,
    /// Angle in degrees that the projections are spread over, end excluded [default: 180, or the angles of --hdf5]
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overall_angle: Option<f64>,
    /// Angle of the first projection in degrees [default: 0]
    #[arg(long, value_name = "DEG", allow_hyphen_values = true, help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_angle: Option<f64>,
    /// Projections to use: A..B (without B), A..=B or A..B:STEP [default: all]
    #[arg(long, value_name = "RANGE", help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub projection_range: Option<Text>,
    /// Projections to leave out, such as 3,10..20
    #[arg(long, value_name = "RANGES", help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclude: Option<Text>,
    /// One shift of the axis in bins a line, for every projection
    #[arg(long, value_name = "FILE", help_heading = "Geometry")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub center_shifts: Option<PathBuf>,
}

/// One text, or a list of them.
fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Text>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        Many(Vec<Text>),
        One(Text),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::Many(texts) => texts,
        OneOrMany::One(text) => vec![text],
    })
}

#[derive(Args, Debug)]
pub struct PreprocessArgs {
    #[command(flatten)]
    pub input: InputArgs,
    /// Size of a pixel with its unit, such as 0.65um, for --phase
    #[arg(long, value_name = "LENGTH")]
    pub pixel_size: Option<Text>,
    #[command(flatten)]
    pub steps: StepArgs,
    /// Directory (projection_00000.tif or sinogram_00000.tif ...), pattern such as out/p-%05i.tif, or one multi-page file
    /// such as out.tif; f32
    #[arg(long, short, value_name = "PATH")]
    pub output: String,
    /// Write into an output that is not empty, replacing files of the same name
    #[arg(long)]
    pub overwrite: bool,
}

#[derive(Args, Debug)]
pub struct CenterArgs {
    #[command(flatten)]
    pub input: InputArgs,
    #[command(flatten)]
    pub scan: ScanArgs,
    /// Size of a pixel with its unit, such as 0.65um, for --phase
    #[arg(long, value_name = "LENGTH")]
    pub pixel_size: Option<Text>,
    #[command(flatten)]
    pub steps: StepArgs,
    /// Rows of the detector to sample: A..B (without B), A..=B or A..B:STEP; --sweep takes the middle one [default: all]
    #[arg(long, value_name = "RANGE")]
    pub rows: Option<Text>,
    /// registration, vo, overlap or sweep [default: those that suit the scan, of which two must agree]
    #[arg(long, value_name = "NAME")]
    pub method: Option<String>,
    /// Where to look, in bins [default: a quarter of the detector on both sides of its middle; overlap: all of it]
    #[arg(long, value_name = "LO,HI")]
    pub search: Option<String>,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Do not search, but write slices about the axes from A to at most B bins, S apart, and a picture of all
    #[arg(long, value_name = "A..B:S", requires = "output", conflicts_with_all = ["method", "search", "json"])]
    pub sweep: Option<String>,
    /// Pixels along the side of the part of each slice that montage.png shows: that with the most structure
    #[arg(long, value_name = "PIXELS", requires = "sweep", default_value_t = 256, value_parser = clap::value_parser!(u16).range(16..=4096))]
    pub tile: u16,
    /// What the slices of --sweep are made on: index (0), platform:device (0:1), part of a name, gpu or cpu [default: best
    /// GPU, else CPU]
    #[arg(long, value_name = "SEL", requires = "sweep")]
    pub device: Option<Text>,
    /// Directory for the slices of --sweep (center_1023.50.tif ...) and their picture, montage.png
    #[arg(long, short, value_name = "DIR", requires = "sweep")]
    pub output: Option<PathBuf>,
    /// Write into a directory that is not empty
    #[arg(long, requires = "sweep")]
    pub overwrite: bool,
    /// Say more
    #[arg(long, short, action = ArgAction::Count)]
    pub verbose: u8,
    /// Say nothing but results and errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub quiet: bool,
}

#[derive(Args, Debug)]
pub struct DevicesArgs {
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// One line a profile
    List,
    /// Print a profile as TOML
    Show {
        /// Name or file
        profile: String,
    },
    /// Check profile files
    Check {
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub struct KernelArgs {
    /// Name of a profile or a TOML file
    #[arg(long, default_value = "default")]
    pub profile: String,
    /// Family of kernels, or auto
    #[arg(long)]
    pub algorithm: Option<String>,
    #[arg(long, default_value = "linear", value_parser = ["linear", "nearest"])]
    pub interpolation: String,
    #[arg(long, default_value = "precise", value_parser = ["precise", "fast"])]
    pub mode: String,
    /// auto, 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, default_value = "auto")]
    pub slices_per_pass: String,
    /// Detector bins
    #[arg(long, default_value_t = 2048)]
    pub bins: usize,
    /// Projections
    #[arg(long, default_value_t = 2048)]
    pub projections: usize,
    /// Side of the slice [default: bins]
    #[arg(long)]
    pub size: Option<usize>,
    /// Write every program that the profile leads to into a directory, one file each; the first lines say how to build it
    #[arg(long, value_name = "DIR", conflicts_with_all = ["algorithm", "interpolation", "mode", "slices_per_pass"])]
    pub every: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct ModelArgs {
    /// Name of a profile, a TOML file, or all
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct BenchArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Name of a profile, a TOML file, auto, or all: every kernel of every profile, each once [default: auto]
    #[arg(long, value_name = "PROFILE", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Only these families of kernels
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub algorithm: Vec<String>,
    /// Only these interpolations: linear, nearest
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub interpolation: Vec<String>,
    /// Only these modes: precise, fast
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    pub mode: Vec<String>,
    /// Only kernels of so many slices: 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub slices_per_pass: Vec<String>,
    /// Side of a slice in pixels
    #[arg(long, value_name = "N", default_value_t = 2048)]
    pub size: usize,
    /// Detector bins [default: size]
    #[arg(long, value_name = "N")]
    pub bins: Option<usize>,
    /// Projections [default: size]
    #[arg(long, value_name = "N")]
    pub projections: Option<usize>,
    /// Timed passes of each kernel, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub passes: usize,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Draw the speeds as bars
    #[arg(long, value_name = "FILE.svg")]
    pub plot: Option<PathBuf>,
    /// Say nothing but results and errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// Name of a profile, a TOML file, auto, or all: every kernel of every profile, each once [default: auto]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Only one small problem and one row length: for simulators
    #[arg(long)]
    pub quick: bool,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Say nothing but results and errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
pub struct TuneArgs {
    /// Index (0), platform:device (0:1), part of a name, gpu or cpu [default: best GPU, else CPU]
    #[arg(long, value_name = "SEL")]
    pub device: Option<String>,
    /// What to start from: name of a profile, a TOML file, or auto: what the device gets without tuning [default: auto]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<String>,
    /// Write the tuned profile there [default: the cache directory, where this device finds it by itself]
    #[arg(long, short, value_name = "FILE.toml")]
    pub output: Option<PathBuf>,
    /// Only these families of kernels
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub algorithm: Vec<String>,
    /// Only these interpolations: linear, nearest
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub interpolation: Vec<String>,
    /// Only these modes: precise, fast
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    pub mode: Vec<String>,
    /// Only kernels of so many slices: 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub slices_per_pass: Vec<String>,
    /// Side of a slice in pixels [default: 2048, 512 on processors; a quarter and a half of that with --quick; less where
    /// the device is too small]
    #[arg(long, value_name = "N")]
    pub size: Option<usize>,
    /// Detector bins [default: size]
    #[arg(long, value_name = "N")]
    pub bins: Option<usize>,
    /// Projections [default: size]
    #[arg(long, value_name = "N")]
    pub projections: Option<usize>,
    /// Timed passes of each kernel, of which the median counts [default: 5, with --quick 3]
    #[arg(long, value_name = "N")]
    pub passes: Option<usize>,
    /// One round of steps to the next values, on a small problem: less than two minutes
    #[arg(long)]
    pub quick: bool,
    /// Time for all measurements, such as 90s or 10m [default: 20m, with --quick 80s]
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Go on where the last run stopped: what it measured is not measured again
    #[arg(long)]
    pub resume: bool,
    /// All measurements as JSON on stdout
    #[arg(long)]
    pub json: bool,
    /// Say nothing but results and errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args, Debug)]
pub struct PhantomArgs {
    /// Side of the slice, and number of bins unless --bins says otherwise
    #[arg(long)]
    pub size: usize,
    /// Number of projections
    #[arg(long)]
    pub projections: usize,
    /// Number of slices
    #[arg(long, default_value_t = 1)]
    pub slices: usize,
    /// shepp-logan, asymmetric, discs or disc
    #[arg(long, default_value = "shepp-logan")]
    pub kind: String,
    /// What to write: one file a slice or one a projection
    #[arg(long = "as", default_value = "sinograms", value_parser = ["sinograms", "projections"])]
    pub layout: String,
    /// Directory for the files
    #[arg(long, short)]
    pub output: PathBuf,
    /// Write the phantom's own slices as one TIFF file
    #[arg(long, value_name = "FILE.tif")]
    pub truth: Option<PathBuf>,
    /// Detector bins [default: size]
    #[arg(long)]
    pub bins: Option<usize>,
    /// Rotation axis in bins [default: (bins - 1) / 2]
    #[arg(long, allow_hyphen_values = true)]
    pub center: Option<f64>,
    /// Angle in degrees that the projections are spread over, end excluded
    #[arg(long, default_value_t = 180.0, allow_hyphen_values = true)]
    pub overall_angle: f64,
    /// Angle of the first projection in degrees
    #[arg(long, default_value_t = 0.0, allow_hyphen_values = true)]
    pub start_angle: f64,
    /// One angle in degrees a line, --projections of them
    #[arg(long, value_name = "FILE")]
    pub angles: Option<PathBuf>,
    /// Factor on all values: the attenuation per pixel of the phantom's value 1
    #[arg(long, default_value_t = 1.0)]
    pub scale: f64,
    /// Standard deviation of Gaussian noise on the line integrals
    #[arg(long, default_value_t = 0.0)]
    pub noise: f64,
    /// Write detector counts (16 bit, Poisson noise) of a beam of so many photons a pixel (at most 55000), for --as projections
    #[arg(long, value_name = "PHOTONS", requires = "flats")]
    pub photons: Option<f64>,
    /// Directory for flat fields, with --photons
    #[arg(long, value_name = "DIR", requires = "photons", requires = "darks")]
    pub flats: Option<PathBuf>,
    /// Directory for dark fields, with --photons
    #[arg(long, value_name = "DIR", requires = "photons")]
    pub darks: Option<PathBuf>,
    /// Seed of all noise
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Replace files that are there
    #[arg(long)]
    pub overwrite: bool,
}

#[derive(Args, Debug)]
pub struct CompareArgs {
    /// File, directory or glob
    pub a: String,
    /// The reference
    pub b: String,
    /// Compare inside the centred circle of this fraction of half the width
    #[arg(long, value_name = "FRACTION")]
    pub mask: Option<f64>,
    /// Exit with 1 when the NRMSE is larger
    #[arg(long, value_name = "NRMSE")]
    pub tolerance: Option<f64>,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct InfoArgs {
    /// File, directory or glob
    pub path: String,
    /// JSON on stdout
    #[arg(long)]
    pub json: bool,
}
