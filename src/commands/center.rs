//! `fbp center`: finds the rotation axis in the data, or writes trial slices to choose it by eye.

use crate::axis::{Sampled, Trial, sample, trial_slices};
use crate::center::{self, AxisEstimate, AxisSearch, AxisSurvey};
use crate::cli::{CenterArgs, Text};
use crate::device::DeviceList;
use crate::error::{Error, Result};
use crate::execution::{Execution, Files};
use crate::job::Job;
use crate::picture::{Panel, write_montage};
use crate::recipe::{Center, Input, Recipe, ScanRecipe, SliceGrid, Span, check_conflicts, given, steps};
use crate::report::Messages;
use crate::sink::SOFTWARE;
use crate::sink::{Dtype, Encoding, write_image};
use crate::units::parse_pair;
use serde_json::{Value, json};
use std::path::Path;

/// Largest number of slices of a sweep.
const MOST: usize = 400;
/// Beyond this share of the radius that all projections see there are edges that are not in the sample.
const CALM: f64 = 0.95;
/// Smallest step of a sweep in bins, so that file names differ.
const FINEST: f64 = 0.01;

/// The table or JSON of a search with its verdict, or a line about the slices of a sweep.
pub fn center(args: &CenterArgs) -> Result<(String, Result<()>)> {
    let job = job(args)?;
    if let (Some(range), Some(directory)) = (&args.sweep, &args.output) {
        return Ok((trials(&job, range, usize::from(args.tile), directory, args.overwrite)?, Ok(())));
    }
    let method = args.method.as_deref().map(|name| name.parse().map_err(|e| Error::usage(format!("--method: {e}"))));
    let method = method.transpose()?;
    let range = args.search.as_deref().map(|text| parse_pair(text, "--search")).transpose()?;
    let sampled = sample(&job)?;
    let search = sampled.search(method, range)?;
    let text = if args.json { as_json(&search, &sampled.rows) } else { table(&search) };
    Ok((text, center::accept(&search.found).map(|_| ())))
}

/// A job without an output whose axis is to be found.
fn job(args: &CenterArgs) -> Result<Job> {
    check_conflicts(&[given(&args.input)?, given(&args.scan)?])?;
    let text = |value: &Option<Text>| value.as_ref().map(|text| text.0.clone());
    let input = Input::new(&args.input)?;
    let slice = SliceGrid::of_pixels(text(&args.pixel_size).as_deref(), input.binning)?;
    let recipe = Recipe {
        scan: ScanRecipe { center: Center::Search(None), ..ScanRecipe::new(&args.scan, input.kind)? },
        steps: steps(&args.input, &args.steps, &slice)?,
        input,
        slice,
        ..Recipe::default()
    };
    let execution = Execution {
        files: Files::new(&args.input, &args.scan),
        rows: text(&args.rows).map(|text| Span::parse(&text, "--rows")).transpose()?,
        devices: text(&args.device).map(|text| DeviceList::parse(&text)).transpose()?.unwrap_or_default(),
        messages: Messages { verbosity: Messages::verbosity(args.verbose, args.quiet), ..Messages::default() },
        ..Execution::default()
    };
    Ok(Job { recipe, execution })
}

fn table(search: &AxisSearch) -> String {
    let mut text =
        format!("{:<14}{:>10}  {:>11}  {:>10}  {}\n", "method", "centre", "uncertainty", "confidence", "verdict");
    for f in &search.found {
        let AxisEstimate { method, value, uncertainty, confidence, verdict } = f;
        text += &format!("{method:<14}{value:>10.2}  {uncertainty:>11.2}  {confidence:>10.2}  {verdict}\n");
    }
    search.note.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

/// The search as JSON; the first method is the answer.
fn as_json(search: &AxisSearch, rows: &[usize]) -> String {
    let methods: Vec<_> = search.found.iter().map(estimate_json).collect();
    format!("{:#}\n", json!({ "center": methods.first(), "methods": methods, "note": search.note, "rows": rows }))
}

fn estimate_json(f: &AxisEstimate) -> Value {
    json!({
        "method": f.method.name(),
        "value": f.value,
        "uncertainty": f.uncertainty,
        "confidence": f.confidence,
        "verdict": f.verdict.to_string(),
    })
}

/// What every method says on its own, with its costs, or why it does not suit the scan.
pub(super) fn survey_json(sampled: &Sampled, range: Option<(f64, f64)>) -> Value {
    let (found, note) = sampled.survey(range);
    let one = |AxisSurvey { method, outcome }: &AxisSurvey| match outcome {
        Ok((found, costs)) => {
            let mut method = estimate_json(found);
            method["whole"] = json!(costs.whole);
            method["near"] = json!(costs.near);
            method
        }
        Err(why) => json!({ "method": method.name(), "reason": why.to_string() }),
    };
    json!({ "rows": sampled.rows, "note": note, "methods": found.iter().map(one).collect::<Vec<_>>() })
}

/// Writes the slices of the middle row, and a montage of the same part of all.
fn trials(job: &Job, range: &str, side: usize, directory: &Path, overwrite: bool) -> Result<String> {
    let mut axes = positions(range)?;
    let mut entries = std::fs::read_dir(directory).into_iter().flatten();
    if !overwrite && entries.next().is_some() {
        return Err(Error::output(directory, "--output: is not empty; add --overwrite or choose another directory"));
    }
    // the middle one is the most likely to be sharp: it decides which part is shown
    let middle = axes.len() / 2;
    axes[..=middle].rotate_right(1);
    let mut part = None;
    let mut tiles: Vec<(f64, usize, Vec<f32>)> = Vec::with_capacity(axes.len());
    let row = trial_slices(job, &axes, |Trial { center, size, values }| {
        // created when there is something to write: a refused run leaves nothing behind
        std::fs::create_dir_all(directory).map_err(|e| Error::output(directory, format!("--output: {e}")))?;
        let encoding = Encoding { dtype: Dtype::F32, range: None };
        write_image(&directory.join(format!("center_{center:.2}.tif")), size, size, &values, encoding, SOFTWARE)?;
        let part = *part.get_or_insert_with(|| Crop::busiest(&values, size, side));
        tiles.push((center, part.side, part.of(&values, size)));
        Ok(())
    })?;
    tiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    let titles: Vec<String> = tiles.iter().map(|(center, ..)| format!("{center:.2}")).collect();
    let unit = job.recipe.unit();
    let panels: Vec<Panel> = tiles
        .iter()
        .zip(&titles)
        .map(|((_, side, data), title)| Panel { title, unit: &unit, width: *side, height: *side, data })
        .collect();
    write_montage(&directory.join("montage.png"), &panels)?;
    let part = part.map(|part| format!("; montage.png shows {part}")).unwrap_or_default();
    Ok(format!(
        "{} slices of row {row} about {} to {} bins in {}{part}\n",
        tiles.len(),
        titles[0],
        titles[titles.len() - 1],
        directory.display()
    ))
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
    let wrong =
        |why: &str| Error::usage(format!("--sweep: `{text}` {why}; write A..B:S in bins, such as 1020..1028:0.5"));
    let parts = text.split_once("..").and_then(|(first, rest)| Some((first, rest.split_once(':')?)));
    let (first, (end, step)) = parts.ok_or_else(|| wrong("does not have this form"))?;
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let (Some(first), Some(end), Some(step)) = (number(first), number(end), number(step)) else {
        return Err(wrong("contains something that is not a number"));
    };
    if step < FINEST {
        return Err(wrong(&format!("has a step below {FINEST}")));
    }
    let steps = ((end - first) / step + 1e-6).floor();
    if !(0.0..MOST as f64).contains(&steps) {
        return Err(wrong(&format!("covers no position, or more than {MOST}")));
    }
    Ok((0..=steps as usize).map(|i| first + i as f64 * step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_different_groups_may_contradict_each_other() {
        let refused = |flags: &str| {
            let command = ["fbp", "center"].into_iter().chain(flags.split_whitespace());
            let cli = <crate::cli::Cli as clap::Parser>::try_parse_from(command).unwrap();
            let crate::cli::Command::Center(args) = cli.command else { panic!("{flags}") };
            job(&args).unwrap_err().to_string()
        };
        assert!(refused("--hdf5 f.h5 --hdf5-angles a --angles b.txt").starts_with("--hdf5-angles and --angles"));
        assert!(refused("--sinograms s --angles b.txt --overall-angle 90").starts_with("--angles and --overall-angle"));
    }

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
}
