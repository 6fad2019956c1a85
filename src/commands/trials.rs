//! `fbp center --sweep`: slices for trial axes, as files with a montage, or in a page.

use super::errors::{CommandOutputError, TrialSweepError};
use super::reconstruct::scan_name;
use super::survey::survey_json;
use crate::axis::{Trial, sample_of, sample_rows, trial_slices};
use crate::center::{Method, TrialScores};
use crate::cli::{CenterArgs, ReconstructArgs};
use crate::engine::{RowSlice, Source};
use crate::error::{Error, Result};
use crate::files::{InputSet, OutputFile, OutputKind};
use crate::html::{IMAGE_BYTES, PackedImage, TRIALS, write_page};
use crate::job::Job;
use crate::picture::{Panel, write_montage};
use crate::recipe::given;
use crate::report::Reporter;
use crate::sink::{Dtype, Encoding, OutputLock, Target, write_image};
use crate::visible::Shown;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Largest number of slices of a sweep.
const MOST: usize = 400;
/// Beyond this share of the radius that all projections see there are edges that are not in the sample.
const CALM: f64 = 0.95;
/// Smallest step of a sweep in bins, so that file names differ.
const FINEST: f64 = 0.01;
/// Side in pixels of the part that a montage shows, and the largest that a page does unless it is asked for more.
const TILE: usize = 256;
const PAGE_TILE: usize = 512;

/// The picture of all slices in a directory.
const MONTAGE: &str = "montage.png";

/// The part of a trial slice that is shown, with its axis.
struct ShownTrial {
    /// Axis in bins of the detector.
    center: f64,
    side: usize,
    /// `[y][x]` of the part.
    values: Vec<f32>,
}

/// Writes the slices of the middle row about the axes of a sweep: whole as files in a directory, with a montage of the same
/// part of all, or this part alone in a page.
pub(super) fn trials(job: &Job, args: &CenterArgs, range: &str, output: &Path, reporter: &Reporter) -> Result<String> {
    let axes = positions(range)?;
    let page = output.extension().is_some_and(|extension| extension == "html");
    let inputs = InputSet::new(job.execution.files.all());
    check_output(output, page, args.overwrite, &inputs)?;
    let target = Target::directory_of(output, "center_");
    let mut lock = None;
    let file = |name: &Path, kind| OutputFile::new("--output", name, kind, &inputs, None);
    let place = |center: f64| output.join(format!("center_{center:.2}.tif"));
    let page_file = if page { Some(file(output, OutputKind::Html)?) } else { None };
    if !page && output.is_dir() {
        // what may not be replaced is found before the first slice is computed
        axes.iter().try_for_each(|&center| file(&place(center), OutputKind::Tiff).map(drop))?;
        file(&output.join(MONTAGE), OutputKind::Png)?;
    }
    let side = side(args.tile.map(usize::from), page, axes.len())?;
    let source = Source::open(job, reporter, &AtomicBool::new(false))?;
    let shown =
        ShownTrials::of(job, source, axes, side, reporter, |Trial { center, slice: RowSlice { size, values } }| {
            if page {
                return Ok(());
            }
            // the directory is made when there is something to write: a refused run leaves nothing behind
            if lock.is_none() {
                lock = Some(OutputLock::alone(&target)?);
            }
            let encoding = Encoding { dtype: Dtype::F32, range: None };
            write_image(&file(&place(*center), OutputKind::Tiff)?, (*size, *size), values, encoding)
        })?;
    match &page_file {
        Some(file) => shown.write_page(job, command(args)?, file, reporter)?,
        None => montage(job, &file(&output.join(MONTAGE), OutputKind::Png)?, &shown.trials)?,
    }
    let ShownTrials { trials, part, row, .. } = shown;
    let (first, last) = (trials.first().map_or(0.0, |t| t.center), trials.last().map_or(0.0, |t| t.center));
    let shows = if page { "the page" } else { "montage.png" };
    let part = part.map(|part| format!("; {shows} shows {part}")).unwrap_or_default();
    Ok(format!("{} slices of row {row} about {first:.2} to {last:.2} bins in {}{part}\n", trials.len(), output.shown()))
}

/// Writes a page with trial slices of the middle row of a scan that is open; `flags` are those of the run.
///
/// # Errors
/// As a run.
pub(super) fn trial_page(
    job: &Job,
    source: Source,
    range: &str,
    flags: &ReconstructArgs,
    file: &OutputFile,
) -> Result<()> {
    let axes = positions(range)?;
    let (side, reporter) = (side(None, true, axes.len())?, Reporter::silent());
    let shown = ShownTrials::of(job, source, axes, side, &reporter, |_| Ok(()))?;
    let mut given = given(flags)?;
    ["center", "output", "report", "tilt"].into_iter().for_each(|flag| drop(given.remove(flag)));
    // the tilt of these slices, also where it was found
    given.extend(job.recipe.steps.tilt.map(|tilt| ("tilt".to_owned(), tilt.degrees.into())));
    shown.write_page(job, words_of(vec![given]), file, &reporter)
}

/// Trial slices of a row, in the order of their axes.
struct ShownTrials {
    trials: Vec<ShownTrial>,
    /// Part of each trial slice that is shown.
    part: Option<Crop>,
    row: usize,
    source: Source,
}

impl ShownTrials {
    /// Computes them; each is handed out as a whole, too.
    fn of(
        job: &Job,
        source: Source,
        mut axes: Vec<f64>,
        side: usize,
        reporter: &Reporter,
        mut whole: impl FnMut(&Trial) -> Result<()>,
    ) -> Result<ShownTrials> {
        // the middle one is the most likely to be sharp: it decides which part is shown
        let middle = axes.len() / 2;
        axes[..=middle].rotate_right(1);
        let mut part = None;
        let mut trials: Vec<ShownTrial> = Vec::with_capacity(axes.len());
        let row = trial_slices(job, &source, &axes, reporter, |trial| {
            whole(&trial)?;
            let Trial { center, slice: RowSlice { size, values } } = trial;
            let part = *part.get_or_insert_with(|| Crop::busiest(&values, size, side));
            trials.push(ShownTrial { center, side: part.side, values: part.of(&values, size) });
            Ok(())
        })?;
        trials.sort_by(|a, b| a.center.total_cmp(&b.center));
        Ok(ShownTrials { trials, part, row, source })
    }

    /// Writes a page with all of them, and with what every method says.
    fn write_page(&self, job: &Job, command: String, file: &OutputFile, reporter: &Reporter) -> Result<()> {
        let sampled = sample_of(&self.source, job, reporter)?;
        let mut search = survey_json(&sampled, None);
        if let Some(methods) = search["methods"].as_array_mut() {
            // the scores of the trials are its measure
            methods.retain(|method| method["method"] != Method::Sweep.name());
        }
        let scores = self.scores(job, reporter)?;
        let trial = |(number, trial): (usize, &ShownTrial)| {
            json!({
                "center": trial.center,
                "score": scores.as_ref().map(|found| found.scores[number]),
                "image": PackedImage::new(&trial.values, trial.side),
            })
        };
        let name = scan_name(&job.execution.files.stacks.data);
        let data = json!({
            "program": env!("CARGO_PKG_VERSION"),
            "name": name,
            "row": self.row,
            "unit": job.recipe.unit(),
            "pixel": job.recipe.slice.pixel_size.as_ref().map(|size| json!({ "size": size.value, "unit": size.unit })),
            "part": self.part.map(|part| json!({ "left": part.left, "top": part.top, "side": part.side })),
            "trials": self.trials.iter().enumerate().map(trial).collect::<Vec<_>>(),
            "score": scores.as_ref().map(|TrialScores { between, minimum, .. }| json!({
                "method": Method::Sweep.name(),
                "value": minimum.at,
                "uncertainty": minimum.uncertainty,
                "verdict": minimum.verdict.to_string(),
                "between": between,
            })),
            "search": search,
            "command": command,
        });
        write_page(file, &TRIALS, &format!("{name}: rotation axis, fbp"), &data)
    }

    /// Returns the scores of the trials from their own row; `None` where negative values tell nothing about the axis: the
    /// sample is beyond the detector at one side, or the row has none.
    fn scores(&self, job: &Job, reporter: &Reporter) -> Result<Option<TrialScores>> {
        if job.recipe.scan.extended_field {
            return Ok(None);
        }
        let sampled = sample_rows(&self.source, job, vec![self.row], reporter)?;
        let axes: Vec<f64> = self.trials.iter().map(|trial| trial.center).collect();
        Ok(sampled.trial_scores(&axes))
    }
}

/// Refuses to replace what is there, unless that was asked for.
fn check_output(output: &Path, page: bool, overwrite: bool, inputs: &InputSet) -> Result<()> {
    if inputs.contain(output) {
        return Err(Error::output(output, CommandOutputError::TrialsInInput));
    }
    let filled = std::fs::read_dir(output).into_iter().flatten().next().is_some();
    match (page, overwrite) {
        (true, false) if output.exists() => Err(Error::output(output, CommandOutputError::TrialsExist)),
        (false, false) if filled => Err(Error::output(output, CommandOutputError::TrialsInFilled)),
        _ => Ok(()),
    }
}

/// Side in pixels of the part that is shown of each of `count` slices.
fn side(asked: Option<usize>, page: bool, count: usize) -> Result<usize> {
    if !page {
        return Ok(asked.unwrap_or(TILE));
    }
    let most = ((IMAGE_BYTES / (2 * count)) as f64).sqrt() as usize;
    match asked {
        Some(side) if side > most => Err(TrialSweepError::TileTooLarge { count, side, most }.into()),
        asked => Ok(asked.unwrap_or(most.min(PAGE_TILE))),
    }
}

fn montage(job: &Job, file: &OutputFile, shown: &[ShownTrial]) -> Result<()> {
    let titles: Vec<String> = shown.iter().map(|trial| format!("{:.2}", trial.center)).collect();
    let unit = job.recipe.unit();
    let panels: Vec<Panel> = shown
        .iter()
        .zip(&titles)
        .map(|(trial, title)| Panel {
            title,
            unit: &unit,
            pixel: None,
            width: trial.side,
            height: trial.side,
            data: &trial.values,
        })
        .collect();
    write_montage(file, &panels)
}

/// A run with the flags of a search, but for its axis and its output.
fn command(args: &CenterArgs) -> Result<String> {
    let mut input = given(&args.input)?;
    // what is reconstructed comes first
    let data = ["sinograms", "projections", "hdf5"]
        .into_iter()
        .filter_map(|flag| Some((flag.to_owned(), input.remove(flag)?)));
    let data = toml::Table::from_iter(data.collect::<Vec<_>>());
    let mut groups = vec![data, input, given(&args.scan)?, given(&args.steps)?];
    for (flag, value) in [("pixel-size", &args.pixel_size), ("device", &args.device)] {
        groups.extend(value.iter().map(|text| toml::Table::from_iter([(flag.to_owned(), text.0.clone().into())])));
    }
    Ok(words_of(groups))
}

/// The command of a run with these flags.
fn words_of(groups: Vec<toml::Table>) -> String {
    let mut words = vec!["fbp".to_owned(), "reconstruct".to_owned()];
    for (flag, value) in groups.into_iter().flatten() {
        let values = match value {
            toml::Value::Array(list) => list,
            one => vec![one],
        };
        for value in values {
            words.push(format!("--{flag}"));
            match value {
                toml::Value::Boolean(_) => {}
                toml::Value::String(text) => words.push(quoted(&text)),
                other => words.push(other.to_string()),
            }
        }
    }
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A square of a slice, relative to its middle: slices for other axes may be larger.
#[derive(Clone, Copy)]
struct Crop {
    /// From the middle of the slice to the first column and row, in pixels.
    left: i64,
    top: i64,
    side: usize,
}

impl Crop {
    /// The square of at most `side` pixels with the most structure: the largest sum of squares of the differences between
    /// neighbours, inside the circle that all projections see.
    fn busiest(slice: &[f32], size: usize, side: usize) -> Crop {
        let side = side.min(size);
        let middle = (size as f64 - 1.0) / 2.0;
        let seen = |x: usize, y: usize| (x as f64 - middle).hypot(y as f64 - middle) < CALM * size as f64 / 2.0;
        // sums over all rows above and columns to the left
        let width = size + 1;
        let mut sums = vec![0f64; width * width];
        for y in 0..size {
            let mut row = 0.0;
            for x in 0..size {
                let at = y * size + x;
                if x + 1 < size && y + 1 < size && seen(x, y) {
                    let [right, below] = [slice[at + 1] - slice[at], slice[at + size] - slice[at]].map(f64::from);
                    row += right * right + below * below;
                }
                sums[(y + 1) * width + x + 1] = sums[y * width + x + 1] + row;
            }
        }
        let inside = |&(x, y): &(usize, usize)| {
            sums[(y + side) * width + x + side] - sums[y * width + x + side] - sums[(y + side) * width + x]
                + sums[y * width + x]
        };
        let places = || (0..=size - side).step_by((side / 8).max(1));
        let (x, y) = places()
            .flat_map(|y| places().map(move |x| (x, y)))
            .max_by(|a, b| inside(a).total_cmp(&inside(b)))
            .unwrap_or((0, 0));
        let half = (size / 2) as i64;
        Crop { left: x as i64 - half, top: y as i64 - half, side }
    }

    /// Its values, `[y][x]`; 0 beyond the slice.
    fn of(self, slice: &[f32], size: usize) -> Vec<f32> {
        let half = (size / 2) as i64;
        let value = |i: usize| {
            let place = |first: i64, i: usize| usize::try_from(first + half + i as i64).ok().filter(|at| *at < size);
            let (x, y) = (place(self.left, i % self.side)?, place(self.top, i / self.side)?);
            Some(slice[y * size + x])
        };
        (0..self.side * self.side).map(|i| value(i).unwrap_or(0.0)).collect()
    }
}

impl std::fmt::Display for Crop {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let centre = |first: i64| first + self.side as i64 / 2;
        let Crop { left, top, side } = *self;
        write!(f, "{side} x {side} pixels about ({}, {}) from the middle", centre(left), centre(top))
    }
}

/// `A..B:S`, from A to at most B, in bins.
fn positions(text: &str) -> Result<Vec<f64>> {
    let parts = text.split_once("..").and_then(|(first, rest)| Some((first, rest.split_once(':')?)));
    let (first, (end, step)) = parts.ok_or_else(|| TrialSweepError::Malformed { text: text.into() })?;
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let (Some(first), Some(end), Some(step)) = (number(first), number(end), number(step)) else {
        return Err(TrialSweepError::NotANumber { text: text.into() }.into());
    };
    if step < FINEST {
        return Err(TrialSweepError::StepTooSmall { text: text.into(), finest: FINEST }.into());
    }
    let steps = ((end - first) / step + 1e-6).floor();
    if !(0.0..MOST as f64).contains(&steps) {
        return Err(TrialSweepError::Positions { text: text.into(), most: MOST }.into());
    }
    Ok((0..=steps as usize).map(|i| first + i as f64 * step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_are_read() {
        assert_eq!(positions("10..12:0.5").unwrap(), [10.0, 10.5, 11.0, 11.5, 12.0]);
        assert_eq!(positions(" 0.25 .. 1 : 0.5 ").unwrap(), [0.25, 0.75]);
        assert_eq!(positions("7..7:1").unwrap(), [7.0]);
        for wrong in ["", "1..2", "2..1:1", "1..2:0", "1..2:-1", "1..x:1", "0..1e9:1", "0..1:NaN"] {
            assert_eq!(positions(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }

    #[test]
    fn the_part_with_most_structure_is_shown() {
        let (size, side) = (200, 32);
        let mut slice = vec![1f32; size * size];
        // a chequered corner, and a stronger one that no projection but a few sees
        for (left, top, value) in [(120, 40, 2.0), (0, 0, 9.0)] {
            for i in (0..20 * 20).step_by(3) {
                slice[(top + i / 20) * size + left + i % 20] = value;
            }
        }
        let part = Crop::busiest(&slice, size, side);
        let (x, y) = (part.left + 100, part.top + 100);
        assert!((108..=120).contains(&x) && (28..=40).contains(&y), "{x}, {y}");
        let values = part.of(&slice, size);
        assert_eq!((values.len(), values.iter().filter(|v| **v == 2.0).count()), (32 * 32, 134));
        // about the same middle in a larger slice
        let mut larger = vec![0f32; 240 * 240];
        (0..size).for_each(|y| larger[(y + 20) * 240 + 20..][..size].copy_from_slice(&slice[y * size..][..size]));
        assert_eq!(part.of(&larger, 240), values);
        assert_eq!(Crop::busiest(&slice[..9], 3, 256).side, 3);
    }

    #[test]
    fn parts_fit_into_a_page() {
        assert_eq!((side(None, false, 9).unwrap(), side(Some(64), true, 9).unwrap()), (256, 64));
        for count in [1, 9, 17, 400] {
            let side = side(None, true, count).unwrap();
            assert!(side <= 512 && 2 * count * side * side <= IMAGE_BYTES, "{count}: {side}");
        }
        let error = side(Some(4096), true, 17).unwrap_err();
        assert!(error.exit_code() == 2 && error.to_string().contains("at most 440"), "{error}");
    }

    #[test]
    fn the_command_has_the_flags_of_the_search() {
        let command_of = |words: &[&str]| {
            let cli = <crate::cli::Cli as clap::Parser>::try_parse_from(words).unwrap();
            let crate::cli::Command::Center { args, .. } = cli.command else { panic!("{words:?}") };
            command(&args).unwrap()
        };
        let words =
            ["fbp", "center", "--projections", "it's", "--flats", "f", "--overall-angle", "360", "--tilt", "0.5"];
        let more =
            ["--stripes", "dead", "--stripes", "large", "--minus-log", "--pixel-size", "0.65um", "--sweep", "1..2:1"];
        let all: Vec<&str> = words.into_iter().chain(more).chain(["--output", "o.html", "--device", "cpu"]).collect();
        let command = command_of(&all);
        for part in [
            "fbp reconstruct --",
            "--projections 'it'\\''s'",
            "--flats f",
            "--overall-angle 360",
            "--tilt 0.5",
            "--stripes dead --stripes large",
            "--minus-log",
            "--pixel-size 0.65um",
            "--device cpu",
        ] {
            assert!(command.contains(part), "{part}: {command}");
        }
        assert!(!command.contains("sweep") && !command.contains("o.html"));
    }
}
