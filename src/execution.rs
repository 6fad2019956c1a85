//! How and where a run takes place: devices, memory, files, messages. Nothing here affects the bytes of a slice.

use crate::cli::{InputArgs, ReconstructArgs, ScanArgs, StepArgs, Text};
use crate::device::DeviceList;
use crate::error::{Result, messages};
use crate::least_squares::ProjectionWeights;
use crate::memory;
use crate::recipe::{Span, parse_size, parse_time};
use crate::report::Messages;
use crate::shard::Shard;
use crate::sink::{OUTPUT_FORMS, Target};
use crate::source::{CurrentSource, LogUse, StackPaths, distortion_files, list_file};
use crate::visible::Shown;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

messages! {
    /// Errors of a flag about files.
    enum ExecutionError: Usage {
        NoOutput { forms: &'static str } => "--output: missing, expected: {forms}",
        FileOfSeveralJobs { output: String } =>
            "--shard: several jobs cannot write one file, {output}";
            "name a directory or a pattern such as out/r-%05i.tif as --output",
        ResumedFile { output: String } =>
            "--resume: {output} is a single file, which is written completely or not at all";
            "leave --resume out, or name a directory or a pattern such as out/r-%05i.tif as --output",
        OtherOutput { flag: &'static str, extension: &'static str, output: String } =>
            "--{flag}: works with an --output that ends in {extension}, which {output} does not";
            "leave --{flag} out, or choose another --output",
        TwoReports { first: String, second: String, kind: &'static str } =>
            "--report: {first} and {second} would both be {kind}"; "give at most one FILE.json and one FILE.html",
        OtherExtension { flag: &'static str, path: String, extension: &'static str } =>
            "{flag}: {path} must end in .{extension}; other files beside it are named after it",
    }
}

/// How and where a run takes place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Execution {
    pub files: Files,
    /// Slices of the run; all if `None`.
    pub rows: Option<Span>,
    /// Share of the slices that this job computes, if several jobs share an output.
    pub shard: Option<Shard>,
    pub devices: DeviceList,
    /// True if kernels are used without a check before the run.
    pub skip_self_test: bool,
    /// Limit of the host memory in bytes.
    pub memory: Option<u64>,
    /// Limit of the memory of each device in bytes.
    pub device_memory: Option<u64>,
    pub output: Option<Target>,
    pub existing: Existing,
    pub preview: Option<PathBuf>,
    /// File of the histogram; the name contains the number of the shard, if there is one.
    pub histogram: Option<PathBuf>,
    /// File of the sections; the name contains the number of the shard, if there is one.
    pub sections: Option<PathBuf>,
    /// True if resolution and noise of the middle slice are measured.
    #[serde(default)]
    pub resolution: bool,
    /// File of the report as JSON.
    pub report: Option<PathBuf>,
    /// File of the report as a page; the name contains the number of the shard, if there is one.
    pub page: Option<PathBuf>,
    pub save_config: Option<PathBuf>,
    pub dry_run: bool,
    /// Time without new files after which the wait for files ends.
    pub watch: Option<Duration>,
    /// Number of pages that are expected.
    pub expect: Option<usize>,
    pub messages: Messages,
}

/// Locations of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Files {
    /// Those of the first part, if the scan consists of several.
    pub stacks: StackPaths,
    /// Those of further parts, in order.
    #[serde(default)]
    pub further: Vec<StackPaths>,
    /// Text file with one angle a line.
    pub angles: Option<PathBuf>,
    /// Text file with one shift of the axis a line.
    pub center_shifts: Option<PathBuf>,
    /// Text file with the weight of a projection on each line.
    #[serde(default)]
    pub weights: Option<PathBuf>,
    /// What is taken from a log beside projections, if there is one.
    #[serde(default)]
    pub log: LogUse,
    /// Run file.
    pub config: Option<PathBuf>,
}

/// Treatment of existing slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Existing {
    /// The run is refused.
    #[default]
    Refuse,
    Overwrite,
    /// Complete slices of this run are kept.
    Resume,
}

impl Files {
    /// Collects the files that flags name.
    pub fn new(input: &InputArgs, scan: &ScanArgs, steps: &StepArgs) -> Files {
        let data = [&input.sinograms, &input.projections, &input.raw].into_iter().flatten().next();
        let (currents, hdf5) = (steps.beam_current.as_ref().map(|text| text.0.clone()), input.hdf5_spec().is_some());
        let stacks = StackPaths {
            data: data.map(String::as_str).or(input.hdf5_spec()).unwrap_or_default().to_owned(),
            flats: input.flats.clone(),
            flats2: input.flats2.clone(),
            darks: input.darks.clone(),
            currents: currents.filter(|text| CurrentSource::of(text, hdf5) == CurrentSource::File),
            distortion: steps.distortion.as_ref().map_or(Vec::new(), |text| distortion_files(&text.0).0),
            order_by: input.order_by,
        };
        let log = match input.projections.is_some() {
            false => LogUse::Nothing,
            true if scan.angles.is_none() && scan.overall_angle.or(scan.start_angle).is_none() => LogUse::Angles,
            true => LogUse::Measures,
        };
        let mut parts = input.parts().iter().map(|part| stacks.of_part(part));
        Files {
            stacks: parts.next().unwrap_or_else(|| stacks.clone()),
            further: parts.collect(),
            angles: scan.angles.clone(),
            center_shifts: scan.center_shifts.clone(),
            weights: None,
            log,
            config: None,
        }
    }

    /// Returns all paths that the input was read from, except files in directories.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        let stacks = [&self.stacks].into_iter().chain(&self.further).flat_map(|part| {
            let StackPaths { data, flats, flats2, darks, distortion, currents, order_by: _ } = part;
            let stacks = [Some(data), flats.as_ref(), flats2.as_ref(), darks.as_ref()];
            stacks.into_iter().flatten().chain(distortion).chain(currents)
        });
        let texts = [&self.angles, &self.center_shifts, &self.weights, &self.config];
        let stacks = stacks.map(|spec| list_file(spec).unwrap_or(Path::new(spec)));
        stacks.chain(texts.into_iter().flatten().map(PathBuf::as_path))
    }
}

impl Execution {
    /// Converts and checks merged flags, as far as that is possible without a device or a data file.
    ///
    /// # Errors
    /// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
    pub fn new(args: &ReconstructArgs) -> Result<Execution> {
        let execution = Execution::in_memory(args)?;
        execution.check_output(args)?;
        Ok(execution)
    }

    /// Converts and checks flags as [`new`](Self::new) does, for slices that no file may be named for.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn in_memory(args: &ReconstructArgs) -> Result<Execution> {
        let text = |value: &Option<Text>| value.as_ref().map(|text| text.0.clone());
        let size = |value: &Option<Text>, flag: &str| text(value).map(|text| parse_size(&text, flag)).transpose();
        let shard = text(&args.shard).map(|t| Shard::parse(&t, |name| std::env::var(name).ok())).transpose()?;
        let weights = ProjectionWeights::of(args.weights.as_deref());
        Ok(Execution {
            files: Files {
                config: args.config.clone(),
                weights: args.weights.clone().filter(|_| weights == ProjectionWeights::File),
                ..Files::new(&args.input, &args.scan, &args.steps)
            },
            rows: match (text(&args.rows), text(&args.slab)) {
                (_, Some(slab)) => Some(Span::parse(&slab, "--slab")?),
                (rows, None) => rows.map(|rows| Span::parse(&rows, "--rows")).transpose()?,
            },
            shard,
            devices: text(&args.device).map(|t| DeviceList::parse(&t)).transpose()?.unwrap_or_default(),
            skip_self_test: args.no_self_test,
            memory: size(&args.memory, "--memory")?,
            device_memory: size(&args.device_memory, "--device-memory")?,
            output: args.output.as_deref().map(Target::parse).transpose()?,
            existing: match (args.resume, args.overwrite) {
                (true, _) => Existing::Resume,
                (_, true) => Existing::Overwrite,
                _ => Existing::Refuse,
            },
            preview: args.preview.clone(),
            histogram: named_by_shard(&args.histogram, "--histogram", "json", shard)?,
            sections: named_by_shard(&args.sections, "--sections", "png", shard)?,
            resolution: args.resolution,
            report: one_report(&args.report, false)?,
            page: named_by_shard(&one_report(&args.report, true)?, "--report", "html", shard)?,
            save_config: args.save_config.clone(),
            dry_run: args.dry_run,
            watch: text(&args.watch).map(|t| parse_time(&t, "--watch")).transpose()?,
            expect: args.expect,
            messages: Messages {
                verbosity: Messages::verbosity(args.verbose, args.quiet),
                progress: args.progress.unwrap_or_default(),
                log: args.log.clone(),
                strict: args.strict,
            },
        })
    }

    /// Reports whether the values of slices are needed in addition to the samples that are written and to their counts.
    pub fn keeps_values(&self) -> bool {
        self.preview.is_some() || self.sections.is_some() || self.page.is_some()
    }

    /// Reports whether the values of slices are counted.
    pub fn counts_values(&self) -> bool {
        self.histogram.is_some() || self.page.is_some()
    }

    fn check_output(&self, args: &ReconstructArgs) -> Result<()> {
        let Some(output) = &self.output else {
            return match self.dry_run {
                true => Ok(()),
                false => Err(ExecutionError::NoOutput { forms: OUTPUT_FORMS }.into()),
            };
        };
        let path = || output.path_of(0).shown().to_string();
        if self.shard.is_some() && !output.shareable() {
            return Err(ExecutionError::FileOfSeveralJobs { output: path() }.into());
        }
        if self.existing == Existing::Resume && !output.resumable() {
            return Err(ExecutionError::ResumedFile { output: path() }.into());
        }
        for (given, flag, extension) in
            [(args.hdf5_parts.is_some(), "hdf5-parts", ".h5"), (args.ome_zarr.is_some(), "ome-zarr", ".zarr")]
        {
            if given && !output.has_flag(flag) {
                return Err(ExecutionError::OtherOutput { flag, extension, output: output.to_string() }.into());
            }
        }
        output.check_compression(args.compression.unwrap_or_default())
    }

    /// Returns the host memory that the run may use, in bytes.
    pub fn host_memory(&self) -> u64 {
        self.memory.unwrap_or_else(|| memory::available() / 2)
    }
}

/// Reports whether a report with this name is a page rather than JSON.
fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "html")
}

/// Returns the report that is a page, or the one that is not.
fn one_report(reports: &[PathBuf], page: bool) -> Result<Option<PathBuf>> {
    let mut of_kind = reports.iter().filter(|path| is_page(path) == page);
    let first = of_kind.next();
    if let (Some(first), Some(second)) = (first, of_kind.next()) {
        let kind = if page { "a page" } else { "JSON" };
        let [first, second] = [first, second].map(|path| path.shown().to_string());
        return Err(ExecutionError::TwoReports { first, second, kind }.into());
    }
    Ok(first.cloned())
}

/// Returns the name of a file made from the slices of a job, and checks its extension: `name-2of8.json` for shard 2 of
/// 8, which has only a part of them.
fn named_by_shard(
    path: &Option<PathBuf>,
    flag: &'static str,
    extension: &'static str,
    shard: Option<Shard>,
) -> Result<Option<PathBuf>> {
    let Some(path) = path else { return Ok(None) };
    let stem = path.file_stem().filter(|_| path.extension().is_some_and(|e| e == extension));
    let Some(mut name) = stem.map(ToOwned::to_owned) else {
        return Err(ExecutionError::OtherExtension { flag, path: path.shown().to_string(), extension }.into());
    };
    if let Some(Shard { index, count }) = shard {
        name.push(format!("-{index}of{count}"));
    }
    name.push(format!(".{extension}"));
    Ok(Some(path.with_file_name(name)))
}
