//! `fbp center`: finds the rotation axis in the data, or writes trial slices for choosing it by eye.

use super::add_measures;
use super::errors::CommandFlagError;
use super::survey::estimate_json;
use super::trials::sweep;
use crate::axis::{Aligned, AxisQuery, FoundTilt};
use crate::center::{self, AxisEstimate, AxisSearch, Method};
use crate::cli::{CenterArgs, StepArgs, Text};
use crate::device::DeviceList;
use crate::engine::Source;
use crate::error::Result;
use crate::execution::{Execution, Files};
use crate::job::Job;
use crate::recipe::{
    Center, CheckedCommand, Input, Recipe, ScanRecipe, SliceGrid, Span, check_conflicts, given, steps,
};
use crate::report::{Messages, Reporter};
use crate::units::parse_pair;
use serde_json::json;
use std::sync::atomic::AtomicBool;

/// The table or JSON of a search with its verdict, or a line about the slices of a sweep.
pub fn center(args: &CenterArgs) -> Result<(String, Result<()>)> {
    let mut steps = args.steps.clone();
    let remarks = add_measures(&args.input, &mut steps, args.pixel_size.is_some())?;
    let job = job(args, &steps)?;
    let reporter = Reporter::of(&job.execution.messages)?;
    remarks.into_iter().for_each(|remark| reporter.remark(remark));
    if let (Some(range), Some(output)) = (&args.sweep, &args.output) {
        return Ok((sweep(&job, args, range, output, &reporter)?, Ok(())));
    }
    let query = query(args)?;
    let source = Source::open(&job, &reporter, &AtomicBool::new(false))?;
    let found = Aligned::of(job, source, query, &reporter)?;
    let (search, rows) = (found.search.clone(), found.rows.clone());
    let tilt = Tilted::of(found, query, &reporter)?;
    let text = if args.json { as_json(&search, tilt.as_ref(), &rows) } else { table(&search, tilt.as_ref()) };
    Ok((text, center::accept(&search).map(|_| ())))
}

/// Method and range of the search.
pub(super) fn query(args: &CenterArgs) -> Result<AxisQuery> {
    let method = args.method.as_deref().map(|name| name.parse::<Method>()).transpose();
    let method = method.map_err(|e| CommandFlagError::Method { error: e.to_string() })?;
    let range = args.search.as_deref().map(|text| parse_pair(text, "--search")).transpose()?;
    Ok(AxisQuery { method, range })
}

/// The tilt of the projections, and what to do about it.
struct Tilted {
    tilt: FoundTilt,
    /// True if the tilt differs from that of `--tilt`.
    is_new: bool,
    /// Axis in bins once the tilt is corrected, where it is certain.
    center: Option<f64>,
    sinograms: bool,
}

impl Tilted {
    /// The tilt with which an axis that was found is upright, or of sinograms the one that was found.
    fn of(found: Aligned, query: AxisQuery, reporter: &Reporter) -> Result<Option<Tilted>> {
        let Some(tilt) = found.tilt else { return Ok(None) };
        if found.job.recipe.input.is_sinograms() {
            return Ok(Some(Tilted { tilt, is_new: tilt.degrees != 0.0, center: None, sinograms: true }));
        }
        let given = found.job.recipe.steps.tilt;
        let upright = found.upright(query, reporter)?;
        let is_new = upright.job.recipe.steps.tilt != given;
        let center = center::accept(&upright.search).ok().map(|found| found.value).filter(|_| is_new);
        Ok(upright.tilt.map(|tilt| Tilted { tilt, is_new, center, sinograms: false }))
    }
}

/// A job without an output whose axis is to be found.
pub(super) fn job(args: &CenterArgs, given_steps: &StepArgs) -> Result<Job> {
    check_conflicts(CheckedCommand::Center, &[given(&args.input)?, given(&args.scan)?, given(&args.steps)?])?;
    let text = |value: &Option<Text>| value.as_ref().map(|text| text.0.clone());
    let input = Input::new(&args.input, &args.steps)?;
    let slice = SliceGrid::of_pixels(text(&args.pixel_size).as_deref(), input.binning)?;
    let recipe = Recipe {
        scan: ScanRecipe { center: Center::Search(None), ..ScanRecipe::new(&args.scan, input.kind)? },
        steps: steps(&args.input, given_steps, &slice)?,
        input,
        slice,
        ..Recipe::default()
    };
    let execution = Execution {
        files: Files::new(&args.input, &args.scan, &args.steps),
        rows: text(&args.rows).map(|text| Span::parse(&text, "--rows")).transpose()?,
        devices: text(&args.device).map(|text| DeviceList::parse(&text)).transpose()?.unwrap_or_default(),
        messages: Messages { verbosity: Messages::verbosity(args.verbose, args.quiet), ..Messages::default() },
        ..Execution::default()
    };
    Ok(Job { recipe, execution })
}

fn table(search: &AxisSearch, tilted: Option<&Tilted>) -> String {
    let mut text = format!("{:<14}{:>10}  {:>11}  {:>6}  {}\n", "method", "centre", "uncertainty", "mass", "verdict");
    for f in &search.found {
        let AxisEstimate { method, value, uncertainty, mass, verdict } = f;
        text += &format!("{method:<14}{value:>10.2}  {uncertainty:>11.2}  {mass:>6.3}  {verdict}\n");
    }
    if let Some(Tilted { tilt, is_new, center, sinograms }) = tilted {
        text += &tilt.to_string();
        text += &match center {
            _ if !is_new => "\n".to_owned(),
            _ if *sinograms => "; rotate the projections, and make sinograms of them\n".to_owned(),
            Some(center) => format!(": --tilt {} --center {center:.2}\n", tilt.degrees),
            None => format!(": --tilt {} --center X\n", tilt.degrees),
        };
    }
    search.note.iter().for_each(|note| text += &format!("note: {note}\n"));
    text
}

/// The search as JSON; the first method is the answer.
fn as_json(search: &AxisSearch, tilted: Option<&Tilted>, rows: &[usize]) -> String {
    let methods: Vec<_> = search.found.iter().map(estimate_json).collect();
    let tilt = tilted.map(|Tilted { tilt: FoundTilt { degrees, uncertainty }, center, .. }| {
        json!({ "degrees": degrees, "uncertainty": uncertainty, "center": center })
    });
    let center = methods.first();
    format!("{:#}\n", json!({ "center": center, "tilt": tilt, "methods": methods, "note": search.note, "rows": rows }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_different_groups_may_contradict_each_other() {
        let refused = |flags: &str| {
            let command = ["fbp", "center"].into_iter().chain(flags.split_whitespace());
            let cli = <crate::cli::Cli as clap::Parser>::try_parse_from(command).unwrap();
            let crate::cli::Command::Center { args, .. } = cli.command else { panic!("{flags}") };
            job(&args, &args.steps).unwrap_err().to_string()
        };
        assert!(refused("--hdf5 f.h5 --hdf5-angles a --angles b.txt").starts_with("--hdf5-angles and --angles"));
        assert!(refused("--sinograms s --angles b.txt --overall-angle 90").starts_with("--angles and --overall-angle"));
    }
}
