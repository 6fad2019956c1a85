//! `fbp center`: the rotation axis from the data, or trial slices to choose it by eye.

use crate::center::{self, Found, sweep::Trials};
use crate::cli::{CenterArgs, ReconstructArgs};
use crate::config::{Job, parse_pair};
use crate::error::{Error, Result};
use crate::io::{Dtype, Encoding, write_image};
use crate::picture::{Panel, write_montage};
use crate::pipeline::{SOFTWARE, middle_row, sample};
use serde_json::json;
use std::path::Path;

/// Most slices of a sweep.
const MOST: usize = 400;
/// Smallest step of a sweep in bins: what file names tell apart.
const FINEST: f64 = 0.01;

/// The table or JSON of a search with its verdict, or a line about the slices of a sweep.
pub fn center(args: &CenterArgs) -> Result<(String, Result<()>)> {
    let job = Job::new(ReconstructArgs {
        input: args.input.clone(),
        scan: args.scan.clone(),
        center: Some("auto".into()),
        rows: args.rows.clone(),
        pixel_size: args.pixel_size.clone(),
        steps: args.steps.clone(),
        verbose: args.verbose,
        quiet: args.quiet,
        // nothing is reconstructed
        dry_run: true,
        ..Default::default()
    })?;
    if let (Some(range), Some(directory)) = (&args.sweep, &args.output) {
        return Ok((trial_slices(&job, range, directory, args.overwrite)?, Ok(())));
    }
    let method = args.method.as_deref().map(|name| name.parse().map_err(|e| Error::usage(format!("--method: {e}"))));
    let method = method.transpose()?;
    let range = args.search.as_deref().map(|text| parse_pair(text, "--search")).transpose()?;
    let sampled = sample(&job)?;
    let found = sampled.search(method, range)?;
    let text = if args.json { as_json(&found, &sampled.rows) } else { table(&found) };
    Ok((text, center::accept(&found).map(|_| ())))
}

fn table(found: &[Found]) -> String {
    let line = |f: &Found| format!("{:<14}{:>10.2}  {:>10.2}  {}\n", f.method, f.value, f.confidence, f.verdict);
    let head = format!("{:<14}{:>10}  {:>10}  {}\n", "method", "centre", "confidence", "verdict");
    head + &found.iter().map(line).collect::<String>()
}

/// The first of the methods is the answer.
fn as_json(found: &[Found], rows: &[usize]) -> String {
    let one = |f: &Found| {
        json!({
            "method": f.method.name(),
            "value": f.value,
            "confidence": f.confidence,
            "verdict": f.verdict.to_string(),
        })
    };
    let answer = found.first().map(one);
    format!("{:#}\n", json!({ "center": answer, "methods": found.iter().map(one).collect::<Vec<_>>(), "rows": rows }))
}

/// Writes the slices of the middle row, and a picture of all.
fn trial_slices(job: &Job, range: &str, directory: &Path, overwrite: bool) -> Result<String> {
    let centers = positions(range)?;
    let sampled = middle_row(job)?;
    let last = (sampled.bins * sampled.binning) as f64 - 1.0;
    if let Some(outside) = centers.iter().find(|center| !(0.0..=last).contains(*center)) {
        return Err(Error::usage(format!("--sweep: {outside} is outside the detector, bins 0 to {last}")));
    }
    std::fs::create_dir_all(directory).map_err(|e| Error::output(directory, format!("--output: {e}")))?;
    let mut entries = std::fs::read_dir(directory).map_err(|e| Error::output(directory, format!("--output: {e}")))?;
    if !overwrite && entries.next().is_some() {
        return Err(Error::output(directory, "--output: is not empty; add --overwrite or choose another directory"));
    }
    let encoding = Encoding { dtype: Dtype::F32, range: None };
    let trials = Trials::new(&sampled.sinograms[0], sampled.bins, &sampled.angles);
    let size = sampled.bins;
    let mut slices = Vec::with_capacity(centers.len());
    for &center in &centers {
        let slice = trials.slice(sampled.binned(center), size);
        write_image(&directory.join(format!("center_{center:.2}.tif")), size, size, &slice, encoding, SOFTWARE)?;
        let thumbnail = thinned(&slice, size);
        slices.push((format!("{center:.2}"), thumbnail));
    }
    let panels: Vec<Panel> =
        slices.iter().map(|(title, (side, data))| Panel { title, width: *side, height: *side, data }).collect();
    write_montage(&directory.join("montage.png"), &panels)?;
    Ok(format!(
        "{} slices of row {} about {:.2} to {:.2} bins in {}\n",
        centers.len(),
        sampled.rows[0],
        centers[0],
        centers[centers.len() - 1],
        directory.display()
    ))
}

/// The slice at about the size that a montage shows, by means of squares of pixels, with its side.
fn thinned(slice: &[f32], size: usize) -> (usize, Vec<f32>) {
    let by = size.div_ceil(512);
    let side = size / by;
    let mean = |i: usize| {
        let (x, y) = (i % side * by, i / side * by);
        let rows = (y..y + by).map(|y| slice[y * size + x..y * size + x + by].iter().sum::<f32>());
        rows.sum::<f32>() / (by * by) as f32
    };
    (side, (0..side * side).map(mean).collect())
}

/// `A..B:S`, from A to at most B, in bins.
fn positions(text: &str) -> Result<Vec<f64>> {
    let wrong =
        |why: &str| Error::usage(format!("--sweep: `{text}` {why}; write A..B:S in bins, such as 1020..1028:0.5"));
    let parts = text.split_once("..").and_then(|(first, rest)| Some((first, rest.split_once(':')?)));
    let (first, (end, step)) = parts.ok_or_else(|| wrong("has not the form"))?;
    let number = |word: &str| word.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let (Some(first), Some(end), Some(step)) = (number(first), number(end), number(step)) else {
        return Err(wrong("has something that is not a number"));
    };
    if step < FINEST {
        return Err(wrong(&format!("has a step below {FINEST}")));
    }
    let steps = ((end - first) / step + 1e-6).floor();
    if !(0.0..MOST as f64).contains(&steps) {
        return Err(wrong(&format!("is none, or more than {MOST} positions")));
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
    fn thumbnails_are_means() {
        let slice: Vec<f32> = (0..1030 * 1030).map(|i| (i % 1030) as f32).collect();
        let (side, values) = thinned(&slice, 1030);
        assert_eq!((side, values.len()), (343, 343 * 343));
        assert_eq!(values[2], 7.0);
        assert_eq!(thinned(&[1.0, 2.0, 3.0, 4.0], 2), (2, vec![1.0, 2.0, 3.0, 4.0]));
    }
}
