//! From flags and a run file to a [`Job`]: everything that can be checked without a device or a data file.
//!
//! Precedence: a flag wins over the run file, that over the default. A run file's keys are the flags' names.

mod input;
mod run_file;
mod spans;

pub use input::Input;
pub use run_file::{FACTS, merge, run_file};
pub use spans::{Ranges, Span};

use crate::center::Method;
use crate::cli::{ReconstructArgs, Text};
use crate::device::DeviceList;
use crate::error::{Error, Result};
use crate::geometry::{AngleWeights, Roi};
use crate::kernel::Padding;
use crate::memory;
use crate::profile::{Algorithm, Interpolation, Mode, SLICE_MODES};
use crate::shard::Shard;
use crate::sink::{Dtype, Target};
use crate::spectrum::Filter;
use crate::steps::Steps;
use clap::CommandFactory;
use input::input;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Largest angle in degrees, either way; cosines of larger ones say little.
pub const MAX_ANGLE: f64 = 1e9;

/// Largest side of a slice.
const MAX_SIZE: usize = 1 << 16;
/// Most bins that are one.
const MAX_BINNING: usize = 64;

/// A run, typed and checked.
#[derive(Clone, Debug)]
pub struct Job {
    pub input: Input,
    /// Bins and rows of the detector that are one; everything but the axis counts these.
    pub binning: usize,
    pub angles: AngleSource,
    /// Of these `exclude` leaves some out; all of them if none.
    pub projection_range: Option<Span>,
    pub exclude: Ranges,
    pub weights: AngleWeights,
    pub center: Center,
    pub center_shifts: Option<PathBuf>,
    /// A whole turn with the axis near one end of the detector is reconstructed as far as it sees.
    pub extended_field: bool,
    pub rows: Option<Span>,
    pub roi: Option<Roi>,
    pub size: Option<usize>,
    /// Of a pixel of the slices.
    pub pixel_size: Option<PixelSize>,
    /// What is done to the data before the filter.
    pub preprocess: Steps,
    pub filter: Filter,
    pub cutoff: f64,
    pub padding: Padding,
    pub device: DeviceList,
    pub profile: Option<String>,
    pub algorithm: Option<Algorithm>,
    pub interpolation: Interpolation,
    pub mode: Mode,
    pub slices_per_pass: Option<u32>,
    /// The kernel is checked before the run.
    pub self_test: bool,
    pub output: Option<Target>,
    pub dtype: Dtype,
    pub scaling: Scaling,
    pub mask: Option<f64>,
    pub preview: Option<PathBuf>,
    /// Where the histogram goes; of a shard, with its number in the name. So do sections.
    pub histogram: Option<PathBuf>,
    pub sections: Option<PathBuf>,
    pub overwrite: bool,
    /// Slices of this very run that are there are kept.
    pub resume: bool,
    pub dry_run: bool,
    /// Wait for files until nothing has come for so long.
    pub watch: Option<Duration>,
    /// Pages that will come.
    pub expect: Option<usize>,
    pub memory: Option<u64>,
    pub device_memory: Option<u64>,
    /// The share of the slices that this job computes, of several that share an output.
    pub shard: Option<Shard>,
    pub progress: ProgressKind,
    pub log: Option<PathBuf>,
    pub report: Option<PathBuf>,
    pub save_config: Option<PathBuf>,
    pub verbosity: i8,
    /// The merged flags and keys, for the report and `--save-config`.
    pub resolved: ReconstructArgs,
}

/// Where the rotation axis is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Center {
    /// In the middle of the detector.
    Middle,
    /// At this position in bins.
    At(f64),
    /// Where the data say, by this method or by those that suit the scan.
    Search(Option<Method>),
}

impl Center {
    fn parse(text: &str) -> Result<Center> {
        let text = text.trim();
        if text == "auto" {
            return Ok(Center::Search(None));
        }
        if let Some(method) = text.strip_prefix("auto:") {
            let method = method.parse().map_err(|e: Error| Error::usage(format!("--center: {e}")))?;
            return Ok(Center::Search(Some(method)));
        }
        match text.parse::<f64>() {
            Ok(center) if center.is_finite() => Ok(Center::At(center)),
            _ => Err(Error::usage(format!(
                "--center: `{text}` is not a finite number of bins, auto or auto:METHOD ({})",
                Method::ALL.map(Method::name).join(", ")
            ))),
        }
    }
}

/// Where the angles come from.
#[derive(Clone, Debug, PartialEq)]
pub enum AngleSource {
    /// A file with one angle a line, in degrees.
    File(PathBuf),
    /// The input, an HDF5 file.
    Hdf5(PathBuf),
    /// Even steps, in degrees.
    Even { start: f64, overall: f64 },
}

/// How values become integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scaling {
    Fixed(f32, f32),
    /// Percentiles of sampled slices.
    Percentile(f64, f64),
}

/// A pixel's size: a number and the unit it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct PixelSize {
    pub value: f64,
    pub unit: String,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressKind {
    Auto,
    Bar,
    Plain,
    Json,
    None,
}

/// A size in bytes: a number with an optional suffix K, M, G or T (powers of 1024).
pub fn parse_size(text: &str, flag: &str) -> Result<u64> {
    let trimmed = text.trim();
    let trimmed = trimmed.strip_suffix(['B', 'b']).unwrap_or(trimmed);
    let trimmed = trimmed.strip_suffix('i').unwrap_or(trimmed);
    let (number, shift) = match trimmed.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => (&trimmed[..trimmed.len() - 1], 10),
        Some('M') => (&trimmed[..trimmed.len() - 1], 20),
        Some('G') => (&trimmed[..trimmed.len() - 1], 30),
        Some('T') => (&trimmed[..trimmed.len() - 1], 40),
        _ => (trimmed, 0),
    };
    match number.trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value < 1e9 => Ok((value * (1u64 << shift) as f64) as u64),
        _ => Err(Error::usage(format!(
            "{flag}: `{text}` is not a size; write a number of bytes or one with K, M, G or T, such as 8G"
        ))),
    }
}

/// Longest time that a flag takes.
const LONGEST_TIME: Duration = Duration::from_secs(7 * 24 * 3600);

/// A length of time above 0, at most a week: `90s`, `10m`, `1h 30m`; a bare number is seconds.
pub fn parse_time(text: &str, flag: &str) -> Result<Duration> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match seconds.or_else(|| humantime::parse_duration(text.trim()).ok()) {
        Some(time) if !time.is_zero() && time <= LONGEST_TIME => Ok(time),
        _ => Err(Error::usage(format!(
            "{flag}: `{text}` is not a time above 0 and up to 7 days; write it like 90s, 10m or 1h, a bare number is seconds"
        ))),
    }
}

/// Two numbers, the first smaller.
pub fn parse_pair(text: &str, flag: &str) -> Result<(f64, f64)> {
    let parts: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_deref() {
        Some(&[low, high]) if low.is_finite() && high.is_finite() && low < high => Ok((low, high)),
        _ => Err(Error::usage(format!("{flag}: `{text}` is not two numbers LOW,HIGH with LOW < HIGH"))),
    }
}

fn parse_roi(text: &str) -> Result<Roi> {
    let parts: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    match parts.as_deref() {
        Some(&[x, y, width, height]) if width > 0 && height > 0 => Ok(Roi { x, y, width, height }),
        _ => Err(Error::usage(format!(
            "--roi: `{text}` is not X,Y,W,H: four whole numbers of pixels with W and H above 0"
        ))),
    }
}

/// Units of length, and how many metres they are.
const UNITS: [(&str, f64); 6] = [("nm", 1e-9), ("um", 1e-6), ("µm", 1e-6), ("mm", 1e-3), ("cm", 1e-2), ("m", 1.0)];

/// As `--pixel-size` takes it.
impl fmt::Display for PixelSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)?;
        match UNITS.iter().any(|(unit, _)| *unit == self.unit) {
            true => f.write_str(&self.unit),
            false => Ok(()),
        }
    }
}

impl PixelSize {
    /// The size in metres, if its unit was given.
    pub fn metres(&self) -> Option<f64> {
        UNITS.iter().find(|(unit, _)| *unit == self.unit).map(|(_, metres)| self.value * metres)
    }
}

/// A length above 0 with its unit.
pub(crate) fn parse_length(text: &str, flag: &str) -> Result<PixelSize> {
    let split = text.find(|c: char| c.is_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit.trim() {
        "" => "length unit".to_owned(),
        unit if UNITS.iter().any(|(name, _)| *name == unit) => unit.to_owned(),
        other => {
            return Err(Error::usage(format!("{flag}: unknown unit `{other}`; use nm, um, mm, cm or m")));
        }
    };
    match number.trim().parse::<f64>() {
        // slices are multiplied by the reciprocal of a pixel
        Ok(value) if value > 0.0 && (1.0 / value as f32).is_normal() => Ok(PixelSize { value, unit }),
        _ => Err(Error::usage(format!(
            "{flag}: `{text}` is not a length above 0 whose reciprocal is a number, such as 0.65um"
        ))),
    }
}

/// `auto` or one of the slice modes.
pub fn parse_slices(text: &str) -> Result<Option<u32>> {
    if text == "auto" {
        return Ok(None);
    }
    match text.parse() {
        Ok(slices) if SLICE_MODES.contains(&slices) => Ok(Some(slices)),
        _ => Err(Error::usage(format!("--slices-per-pass: `{text}` is not auto or one of {SLICE_MODES:?}"))),
    }
}

/// `auto` or an algorithm.
pub fn parse_algorithm(text: Option<&str>) -> Result<Option<Algorithm>> {
    match text {
        None | Some("auto") => Ok(None),
        Some(name) => name.parse().map(Some).map_err(|e: Error| Error::usage(format!("--algorithm: {e}"))),
    }
}

fn finite(value: Option<f64>, flag: &str, default: f64) -> Result<f64> {
    match value {
        Some(value) if !value.is_finite() => Err(Error::usage(format!("{flag}: {value} is not a finite number"))),
        value => Ok(value.unwrap_or(default)),
    }
}

/// A number of degrees.
fn degrees(value: Option<f64>, flag: &str, default: f64) -> Result<f64> {
    match finite(value, flag, default)? {
        angle if angle.abs() > MAX_ANGLE => {
            Err(Error::usage(format!("{flag}: {angle:?} is not within -{MAX_ANGLE}..{MAX_ANGLE} degrees")))
        }
        angle => Ok(angle),
    }
}

impl Job {
    /// The unit of values in slices.
    pub fn unit(&self) -> String {
        format!("per {}", self.pixel_size.as_ref().map_or("pixel", |size| &size.unit).replace('µ', "u"))
    }

    /// Memory of the host that the run may use, in bytes.
    pub fn host_memory(&self) -> u64 {
        self.memory.unwrap_or_else(|| memory::available() / 2)
    }

    /// Types and checks merged flags.
    pub fn new(args: ReconstructArgs) -> Result<Job> {
        let input = input(&args)?;
        let text = |value: &Option<Text>| value.as_ref().map(|t| t.0.clone());
        let parse_word = |value: &Option<String>, flag: &str, default: &str| -> Result<String> {
            let word = value.clone().unwrap_or_else(|| default.to_owned());
            allowed(&word, flag)
        };
        let center = text(&args.center).map_or(Ok(Center::Middle), |t| Center::parse(&t))?;
        let dtype = match parse_word(&args.dtype, "dtype", "f32")?.as_str() {
            "f16" => Dtype::F16,
            "u16" => Dtype::U16,
            "u8" => Dtype::U8,
            _ => Dtype::F32,
        };
        if args.range.is_some() && args.percentile.is_some() {
            return Err(Error::usage("--range and --percentile: give one of them"));
        }
        let scaling = match (text(&args.range), text(&args.percentile)) {
            (Some(range), _) => {
                let (low, high) = parse_pair(&range, "--range")?;
                Scaling::Fixed(low as f32, high as f32)
            }
            (None, percentile) => {
                let percentile = percentile.unwrap_or_else(|| "0.1,99.9".to_owned());
                let (low, high) = parse_pair(&percentile, "--percentile")?;
                if low < 0.0 || high > 100.0 {
                    return Err(Error::usage(format!("--percentile: {low},{high} is not within 0,100")));
                }
                Scaling::Percentile(low, high)
            }
        };
        let cutoff = finite(args.filter_cutoff, "--filter-cutoff", 1.0)?;
        if cutoff <= 0.0 || cutoff > 1.0 {
            return Err(Error::usage(format!(
                "--filter-cutoff: {cutoff} is not above 0 and at most 1 (the Nyquist frequency)"
            )));
        }
        if let Some(size) = args.size
            && (size == 0 || size > MAX_SIZE)
        {
            return Err(Error::usage(format!("--size: {size} is not within 1..={MAX_SIZE}")));
        }
        if let Some(mask) = args.mask
            && !(mask.is_finite() && mask > 0.0)
        {
            return Err(Error::usage(format!("--mask: {mask} is not a fraction above 0")));
        }
        if args.scan.angles.is_some() && (args.scan.overall_angle.is_some() || args.scan.start_angle.is_some()) {
            return Err(Error::usage("--angles stands for --overall-angle and --start-angle: give one or the other"));
        }
        let angles = match &args.scan.angles {
            Some(file) => AngleSource::File(file.clone()),
            None => {
                let overall = degrees(args.scan.overall_angle, "--overall-angle", 180.0)?;
                if overall == 0.0 {
                    return Err(Error::usage("--overall-angle: 0 degrees hold no scan"));
                }
                match &input {
                    Input::Hdf5 { input, .. } if args.scan.overall_angle.or(args.scan.start_angle).is_none() => {
                        AngleSource::Hdf5(input.file.clone())
                    }
                    _ => AngleSource::Even { start: degrees(args.scan.start_angle, "--start-angle", 0.0)?, overall },
                }
            }
        };
        let progress = match parse_word(&args.progress, "progress", "auto")?.as_str() {
            "bar" => ProgressKind::Bar,
            "plain" => ProgressKind::Plain,
            "json" => ProgressKind::Json,
            "none" => ProgressKind::None,
            _ => ProgressKind::Auto,
        };
        let output = args.output.as_deref().map(Target::parse).transpose()?;
        if output.is_none() && !args.dry_run {
            return Err(Error::usage(
                "--output: missing; name a directory, a pattern such as out/r-%05i.tif, or a file out.tif",
            ));
        }
        if args.watch.is_some() && matches!(input, Input::Hdf5 { .. }) {
            return Err(Error::usage("--watch: waits for TIFF files; with --hdf5, start when the file is complete"));
        }
        let binning = match args.input.binning {
            Some(binning) if !(1..=MAX_BINNING).contains(&binning) => {
                return Err(Error::usage(format!("--binning: {binning} is not a number of bins, 1 to {MAX_BINNING}")));
            }
            binning => binning.unwrap_or(1),
        };
        let mut pixel_size = text(&args.pixel_size).map(|t| parse_length(&t, "--pixel-size")).transpose()?;
        if let Some(size) = &mut pixel_size {
            size.value *= binning as f64;
        }
        if args.extended_field && args.center.is_none() {
            return Err(Error::usage(
                "--extended-field: the axis is not in the middle; needs --center X or --center auto",
            ));
        }
        let shard = text(&args.shard).map(|t| Shard::parse(&t, |name| std::env::var(name).ok())).transpose()?;
        if let (Some(_), Some(target)) = (&shard, output.as_ref().filter(|target| !target.shareable())) {
            return Err(Error::usage(format!(
                "--shard: several jobs cannot write one file, {}; name a directory or a pattern such as out/r-%05i.tif \
                 as --output",
                target.path_of(0).display()
            )));
        }
        if args.resume && args.overwrite {
            return Err(Error::usage("--resume keeps slices and --overwrite replaces them: give one of them"));
        }
        if let (true, Some(target)) = (args.resume, output.as_ref().filter(|target| !target.resumable())) {
            return Err(Error::usage(format!(
                "--resume: {} is one file, which is there as a whole or not at all; leave --resume out, or name a directory \
                 or a pattern such as out/r-%05i.tif as --output",
                target.path_of(0).display()
            )));
        }
        Ok(Job {
            input,
            binning,
            preprocess: Steps::parse(&args, pixel_size.as_ref())?,
            angles,
            projection_range: text(&args.scan.projection_range)
                .map(|t| Span::parse(&t, "--projection-range"))
                .transpose()?,
            exclude: text(&args.scan.exclude).map(|t| Ranges::parse(&t, "--exclude")).transpose()?.unwrap_or_default(),
            weights: match parse_word(&args.angle_weights, "angle-weights", "spacing")?.as_str() {
                "uniform" => AngleWeights::Uniform,
                _ => AngleWeights::Spacing,
            },
            center,
            center_shifts: args.scan.center_shifts.clone(),
            extended_field: args.extended_field,
            rows: text(&args.rows).map(|t| Span::parse(&t, "--rows")).transpose()?,
            roi: text(&args.roi).map(|t| parse_roi(&t)).transpose()?,
            size: args.size,
            pixel_size,
            filter: args.filter.as_deref().unwrap_or("ramp").parse()?,
            cutoff,
            padding: match parse_word(&args.padding, "padding", "edge")?.as_str() {
                "zero" => Padding::Zero,
                "mirror" => Padding::Mirror,
                _ => Padding::Edge,
            },
            device: text(&args.device).map(|t| DeviceList::parse(&t)).transpose()?.unwrap_or_default(),
            profile: args.profile.clone(),
            algorithm: parse_algorithm(args.algorithm.as_deref())?,
            interpolation: parse_word(&args.interpolation, "interpolation", "linear")?.parse()?,
            mode: parse_word(&args.mode, "mode", "precise")?.parse()?,
            slices_per_pass: parse_slices(text(&args.slices_per_pass).as_deref().unwrap_or("auto"))?,
            self_test: !args.no_self_test,
            output,
            dtype,
            scaling,
            mask: args.mask,
            preview: args.preview.clone(),
            histogram: beside(&args.histogram, "--histogram", "json", shard)?,
            sections: beside(&args.sections, "--sections", "png", shard)?,
            overwrite: args.overwrite,
            resume: args.resume,
            dry_run: args.dry_run,
            watch: text(&args.watch).map(|t| parse_time(&t, "--watch")).transpose()?,
            expect: args.expect,
            memory: text(&args.memory).map(|t| parse_size(&t, "--memory")).transpose()?,
            device_memory: text(&args.device_memory).map(|t| parse_size(&t, "--device-memory")).transpose()?,
            shard,
            progress,
            log: args.log.clone(),
            report: args.report.clone(),
            save_config: args.save_config.clone(),
            verbosity: if args.quiet { -1 } else { args.verbose.min(3) as i8 },
            resolved: args,
        })
    }
}

/// Checks a word against the values that the flag's declaration lists (a run file has not passed clap).
pub(crate) fn allowed(word: &str, flag: &str) -> Result<String> {
    let command = crate::cli::Cli::command();
    let values: Vec<String> = command
        .find_subcommand("reconstruct")
        .and_then(|c| c.get_arguments().find(|a| a.get_long() == Some(flag)))
        .map(|a| a.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect())
        .unwrap_or_default();
    if values.iter().any(|v| v == word) {
        Ok(word.to_owned())
    } else {
        Err(Error::usage(format!("{flag}: `{word}` is not one of {}", values.join(", "))))
    }
}

/// A file with this extension that is made of a job's slices: `name-2of8.json` for shard 2 of 8, which has a part of them.
fn beside(path: &Option<PathBuf>, flag: &str, extension: &str, shard: Option<Shard>) -> Result<Option<PathBuf>> {
    let Some(path) = path else { return Ok(None) };
    let stem = path.file_stem().filter(|_| path.extension().is_some_and(|e| e == extension));
    let Some(mut name) = stem.map(ToOwned::to_owned) else {
        return Err(Error::usage(format!(
            "{flag}: {} must end in .{extension}; other files beside it are named after it",
            path.display()
        )));
    };
    if let Some(Shard { index, count }) = shard {
        name.push(format!("-{index}of{count}"));
    }
    name.push(format!(".{extension}"));
    Ok(Some(path.with_file_name(name)))
}

/// The contiguous pieces of at most `most` of a list of slices.
pub fn pieces(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(most.max(1)).map(move |start| start..(start + most.max(1)).min(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{InputArgs, ScanArgs, StepArgs};
    use crate::steps::{Air, Outliers, Stripes, Unsharp};

    fn args() -> ReconstructArgs {
        ReconstructArgs { input: sinograms(), output: Some("r".into()), ..Default::default() }
    }

    fn sinograms() -> InputArgs {
        InputArgs { sinograms: Some("s".into()), ..Default::default() }
    }

    fn message(args: ReconstructArgs) -> String {
        let error = Job::new(args).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        error.to_string()
    }

    #[test]
    fn centers() {
        for (text, center) in [
            ("12.5", Center::At(12.5)),
            (" auto ", Center::Search(None)),
            ("auto:vo", Center::Search(Some(Method::Vo))),
            ("auto:overlap", Center::Search(Some(Method::Overlap))),
        ] {
            assert_eq!(Center::parse(text).unwrap(), center);
        }
        for wrong in ["", "nan", "inf", "auto:", "auto:eye", "middle"] {
            assert_eq!(Center::parse(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }

    #[test]
    fn spans() {
        let list = |text: &str, n| Span::parse(text, "--rows").and_then(|s| s.within(n, "--rows", "slices"));
        assert_eq!(list("2..5", 9).unwrap(), [2, 3, 4]);
        assert_eq!(list("2..=5", 9).unwrap(), [2, 3, 4, 5]);
        assert_eq!(list("1..8:3", 9).unwrap(), [1, 4, 7]);
        assert_eq!(list("7..", 9).unwrap(), [7, 8]);
        assert_eq!(list("..2", 9).unwrap(), [0, 1]);
        assert_eq!(list("4", 9).unwrap(), [4]);
        for bad in ["5..5", "6..2", "a..b", "1..2:0", "-1..3", "3..10", "9.."] {
            let error = list(bad, 9).unwrap_err();
            assert!(error.to_string().contains("--rows"), "{error}");
        }
        let marks = Ranges::parse("0,2..4", "--exclude").unwrap().marks(5, "--exclude", "projections");
        assert_eq!(marks.unwrap(), [true, false, true, true, false]);
    }

    #[test]
    fn sizes() {
        assert_eq!(parse_size("8G", "--memory").unwrap(), 8 << 30);
        assert_eq!(parse_size("1.5MiB", "--memory").unwrap(), 3 << 19);
        assert_eq!(parse_size("700", "--memory").unwrap(), 700);
        for bad in ["", "-1G", "eight", "0", "nan"] {
            assert!(parse_size(bad, "--memory").is_err(), "{bad}");
        }
    }

    #[test]
    fn wrong_values_name_their_flag() {
        assert!(message(ReconstructArgs { input: InputArgs::default(), ..args() }).contains("--sinograms"));
        assert!(message(ReconstructArgs { output: None, ..args() }).contains("--output"));
        let read = |input| message(ReconstructArgs { input, ..args() });
        assert!(read(InputArgs { projections: Some("p".into()), ..sinograms() }).contains("one of them"));
        assert!(read(InputArgs { flats: Some("f".into()), ..sinograms() }).contains("--flats"));
        let darks = InputArgs { projections: Some("p".into()), darks: Some("d".into()), ..Default::default() };
        assert!(read(darks).contains("needs --flats"));
        for bad in ["nan", "inf", "left", "auto:guess"] {
            assert!(message(ReconstructArgs { center: Some(bad.into()), ..args() }).contains("--center"));
        }
        assert!(message(ReconstructArgs { filter: Some("x".into()), ..args() }).contains("--filter"));
        assert!(message(ReconstructArgs { filter_cutoff: Some(2.0), ..args() }).contains("--filter-cutoff"));
        assert!(message(ReconstructArgs { padding: Some("wrap".into()), ..args() }).contains("padding"));
        assert!(message(ReconstructArgs { roi: Some("1,2,0,4".into()), ..args() }).contains("--roi"));
        assert!(message(ReconstructArgs { pixel_size: Some("0.5 inch".into()), ..args() }).contains("--pixel-size"));
        assert!(message(ReconstructArgs { range: Some("2,1".into()), ..args() }).contains("--range"));
        assert!(message(ReconstructArgs { percentile: Some("1,101".into()), ..args() }).contains("--percentile"));
        assert!(message(ReconstructArgs { slices_per_pass: Some("3".into()), ..args() }).contains("--slices-per-pass"));
        assert!(message(ReconstructArgs { algorithm: Some("magic".into()), ..args() }).contains("--algorithm"));
        let scan = ScanArgs { overall_angle: Some(f64::NAN), ..Default::default() };
        assert!(message(ReconstructArgs { scan, ..args() }).contains("--overall-angle"));
    }

    #[test]
    fn lengths_have_units() {
        let parse = |text| parse_length(text, "--pixel-size");
        assert_eq!(parse("0.65um").unwrap(), PixelSize { value: 0.65, unit: "um".into() });
        assert_eq!(parse("1e-3 mm").unwrap(), PixelSize { value: 1e-3, unit: "mm".into() });
        assert_eq!(parse("2").unwrap().value, 2.0);
        assert_eq!((parse("5cm").unwrap().metres(), parse("2").unwrap().metres()), (Some(0.05), None));
    }

    fn prepared(steps: StepArgs) -> ReconstructArgs {
        ReconstructArgs {
            input: InputArgs {
                projections: Some("p".into()),
                flats: Some("f".into()),
                darks: Some("d".into()),
                ..Default::default()
            },
            pixel_size: Some("1um".into()),
            steps,
            ..args()
        }
    }

    fn paganin() -> StepArgs {
        StepArgs {
            phase: Some("paganin".into()),
            energy_kev: Some(20.0),
            distance: Some("10cm".into()),
            delta_beta: Some(1000.0),
            ..Default::default()
        }
    }

    #[test]
    fn steps_are_read() {
        let steps = StepArgs {
            dark_scale: Some(0.5),
            normalize_air: Some("10,0".into()),
            remove_outliers: Some("5, 300,both".into()),
            stripes: vec!["dead,wavelet:level=4,sigma=1.5".into(), "sorting".into()],
            unsharp: Some("1.5,2".into()),
            ..paganin()
        };
        let steps = Job::new(prepared(steps)).unwrap().preprocess;
        assert_eq!(steps.fields.dark_scale, Some(0.5));
        assert_eq!(steps.air, Some(Air::Sides(10, 0)));
        assert_eq!(steps.outliers, Some(Outliers::new(5, 300.0, true)));
        assert_eq!(
            steps.stripes,
            [
                Stripes::Dead { snr: 3.0, size: 51 },
                Stripes::Wavelet { moments: 5, level: Some(4), sigma: 1.5 },
                Stripes::Sorting { size: 21 }
            ]
        );
        let phase = steps.phase.unwrap();
        assert!((phase.length - 22.21).abs() < 0.01);
        assert_eq!(phase.unsharp, Some(Unsharp { sigma: 1.5, amount: 2.0 }));
    }

    #[test]
    fn wrong_steps_name_their_flag() {
        let none = StepArgs::default;
        for (steps, words) in [
            (StepArgs { dark_scale: Some(-1.0), ..none() }, "--dark-scale"),
            (StepArgs { dark_scale: Some(f64::NAN), ..none() }, "--dark-scale"),
            (StepArgs { normalize_air: Some("0,0".into()), ..none() }, "--normalize-air"),
            (StepArgs { normalize_air: Some("1,2,3".into()), ..none() }, "--normalize-air"),
            (StepArgs { normalize_air: Some("1,2,0,3".into()), ..none() }, "--normalize-air"),
            (StepArgs { remove_outliers: Some("4,100".into()), ..none() }, "--remove-outliers"),
            (StepArgs { remove_outliers: Some("3".into()), ..none() }, "--remove-outliers"),
            (StepArgs { remove_outliers: Some("3,nan".into()), ..none() }, "--remove-outliers"),
            (StepArgs { stripes: vec!["rings".into()], ..none() }, "--stripes: `rings` is not one of sorting"),
            (StepArgs { stripes: vec!["".into()], ..none() }, "--stripes"),
            (StepArgs { stripes: vec!["sorting:size=4".into()], ..none() }, "size=4: expected an odd number"),
            (StepArgs { stripes: vec!["sorting:size=5,size=7".into()], ..none() }, "twice"),
            (StepArgs { stripes: vec!["sorting:5".into()], ..none() }, "key=value"),
            (
                StepArgs { stripes: vec!["mean:size=5".into()], ..none() },
                "unknown parameter `size`; there are sigma, blocks",
            ),
            (StepArgs { stripes: vec!["wavelet:wavelet=sym4".into()], ..none() }, "db1 to db10"),
            (StepArgs { stripes: vec!["large:drop=1".into()], ..none() }, "0 to 0.8"),
            (StepArgs { stripes: vec!["titarenko:alpha=nan".into()], ..none() }, "alpha=nan"),
            (StepArgs { phase: Some("tie".into()), ..paganin() }, "phase"),
            (StepArgs { energy_kev: None, ..paganin() }, "--energy-kev"),
            (StepArgs { energy_kev: Some(0.0), ..paganin() }, "--energy-kev"),
            (StepArgs { distance: None, ..paganin() }, "--distance"),
            (StepArgs { distance: Some("10".into()), ..paganin() }, "has no unit"),
            (StepArgs { distance: Some("10km".into()), ..paganin() }, "unknown unit"),
            (StepArgs { distance: Some("1000m".into()), ..paganin() }, "check their units"),
            (StepArgs { delta_beta: Some(-3.0), ..paganin() }, "--delta-beta"),
            (StepArgs { unsharp: Some("0,1".into()), ..paganin() }, "--unsharp"),
            (StepArgs { phase: None, ..paganin() }, "belongs to --phase"),
        ] {
            let text = message(prepared(steps));
            assert!(text.contains(words), "{text}");
        }
        let with = |steps| ReconstructArgs { steps, ..args() };
        assert!(message(with(paganin())).contains("--phase"));
        let outliers = StepArgs { remove_outliers: Some("3,100".into()), ..none() };
        assert!(message(with(outliers)).contains("--remove-outliers"));
        let air = StepArgs { normalize_air: Some("3,4".into()), ..none() };
        assert!(message(with(air.clone())).contains("needs --flats or --minus-log"));
        let input = InputArgs { minus_log: true, ..sinograms() };
        assert!(Job::new(ReconstructArgs { input, ..with(air) }).is_ok());
        assert!(
            message(ReconstructArgs { pixel_size: Some("2".into()), ..prepared(paganin()) }).contains("--pixel-size")
        );
    }

    #[test]
    fn steps_in_run_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            merge(ReconstructArgs { config: Some(path.clone()), output: Some("r".into()), ..Default::default() })
        };
        let merged = read("sinograms = \"a\"\nstripes = \"dead,sorting:size=31\"\nenergy-kev = 20\n").unwrap();
        assert_eq!(merged.steps.stripes, ["dead,sorting:size=31".into()]);
        assert_eq!(merged.steps.energy_kev, Some(20.0));
        let merged = read("sinograms = \"a\"\nstripes = [\"dead\", \"mean\"]\n").unwrap();
        assert_eq!(Job::new(merged.clone()).unwrap().preprocess.stripes.len(), 2);
        let again = read(&run_file(&merged).unwrap()).unwrap();
        assert_eq!(again, merged);
        assert!(read("stripe = \"dead\"").unwrap_err().to_string().contains("`stripes`"));
    }

    #[test]
    fn flags_win_over_the_run_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.toml");
        std::fs::write(&path, "sinograms = \"a\"\ncenter = 31.5\nrows = [1]\nangles = \"x\"\nfilter = \"hann\"\n")
            .unwrap();
        let flags = ReconstructArgs {
            config: Some(path.clone()),
            filter: Some("parzen".into()),
            scan: ScanArgs { overall_angle: Some(360.0), ..Default::default() },
            output: Some("r".into()),
            ..Default::default()
        };
        let merged = merge(flags).unwrap();
        assert_eq!(merged.center, Some("31.5".into()));
        assert_eq!(merged.filter.as_deref(), Some("parzen"));
        assert_eq!((merged.scan.angles.clone(), merged.scan.overall_angle), (None, Some(360.0)));
        // what is saved is read back as the same run
        std::fs::write(&path, run_file(&merged).unwrap()).unwrap();
        let again = merge(ReconstructArgs { config: Some(path), ..Default::default() }).unwrap();
        assert_eq!(ReconstructArgs { config: None, ..again }, ReconstructArgs { config: None, ..merged });
    }

    #[test]
    fn unknown_keys_get_a_hint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.toml");
        for (text, hint) in [("algoritm = \"alu\"", "`algorithm`"), ("zzzzzzzzzzzz = 1", "fbp reconstruct --help")] {
            std::fs::write(&path, text).unwrap();
            let error = merge(ReconstructArgs { config: Some(path.clone()), ..Default::default() }).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(hint), "{error}");
        }
    }

    #[test]
    fn pieces_cover() {
        let all: Vec<_> = pieces(7, 3).collect();
        assert_eq!(all, [0..3, 3..6, 6..7]);
        assert_eq!(pieces(0, 3).count(), 0);
    }
}
