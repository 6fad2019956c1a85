//! `fbp center` for arrays in memory.

use super::flags::{ArrayFlag, parsed};
use crate::axis::Aligned;
use crate::center::AxisEstimate;
use crate::cli::Command;
use crate::commands::add_measures;
use crate::commands::center::{job, query};
use crate::device::keep_devices;
use crate::engine::Source;
use crate::error::{Error, Result};
use crate::report::{Messages, Reporter};
use crate::source::MemoryScan;

/// The axis that a search found.
pub struct ArrayAxis {
    /// Result of the first method.
    pub estimate: AxisEstimate,
    /// Tilt of the projections in degrees; `None` from fewer than three rows.
    pub tilt: Option<f64>,
    /// Notes and warnings.
    pub said: Vec<String>,
}

/// Searches the axis with flags of `fbp center`, whatever the verdict.
///
/// # Errors
/// The errors of `fbp center`, except about the verdict.
pub fn array_axis(flags: &[ArrayFlag], scan: MemoryScan) -> Result<ArrayAxis> {
    keep_devices();
    let Command::Center { args, .. } = parsed("center", &["--quiet"], flags, &scan)? else {
        return Err(Error::Internal("fbp center is another command".into()));
    };
    let mut steps = args.steps.clone();
    let remarks = add_measures(&args.input, &mut steps, args.pixel_size.is_some())?;
    let job = job(&args, &steps)?;
    let query = query(&args)?;
    let reporter = Reporter::of(&Messages { verbosity: -1, ..Messages::default() })?;
    remarks.into_iter().for_each(|remark| reporter.remark(remark));
    let (stacks, shifts) = scan.stacks(job.recipe.input.binning)?;
    let stacks = stacks.with_files(&job.execution.files.stacks)?;
    let source = Source::of(&job, stacks, [shifts, None], &reporter)?;
    let Aligned { search, tilt, .. } = Aligned::of(job, source, query, &reporter)?;
    let Some(&estimate) = search.found.first() else {
        return Err(Error::Internal("no method was used to find the axis".into()));
    };
    search.note.iter().for_each(|note| reporter.note(&format!("note: {note}")));
    Ok(ArrayAxis { estimate, tilt: tilt.map(|tilt| tilt.degrees), said: reporter.said() })
}
