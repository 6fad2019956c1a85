//! Selection of the slices that `--resume` keeps.

use super::overview::middle;
use crate::error::Result;
use crate::job::Job;
use crate::plan::Scan;
use crate::report::Reporter;
use crate::sink::{SliceState, SliceWriter, Target};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Numbers of slices that are computed again, by reason.
#[derive(Default)]
struct RedoneSlices {
    missing: usize,
    torn: usize,
    other: usize,
    unreadable: Vec<String>,
    preview: usize,
}

/// Returns the slices of this job that exist, are complete and belong to this run.
///
/// # Errors
/// [`Error::Interrupted`] if a signal arrives.
pub(super) fn kept(
    job: &Job,
    scan: &Scan,
    target: &Target,
    writer: &SliceWriter,
    key: &str,
    reporter: &Reporter,
    cancelled: &AtomicBool,
) -> Result<Vec<usize>> {
    let slices = &scan.slices;
    let stored = writer.stored();
    let look = |&slice: &usize| match cancelled.load(Relaxed) {
        true => Err(target.interrupted()),
        false => Ok((slice, stored(slice))),
    };
    let found: Vec<_> = slices.par_iter().map(look).collect::<Result<_>>()?;
    // a preview shows the values, which a file may not hold exactly
    let shown = job.execution.preview.as_ref().map(|_| middle(slices));
    let mut redone = RedoneSlices::default();
    let mut kept = Vec::new();
    for (slice, found) in found {
        match found {
            SliceState::Complete(d) if d.slice == slice && d.stamp.as_ref().is_some_and(|stamp| stamp.run == key) => {
                match shown == Some(slice) {
                    true => redone.preview += 1,
                    false => kept.push(slice),
                }
            }
            SliceState::Complete(_) | SliceState::Unknown => redone.other += 1,
            SliceState::Missing => redone.missing += 1,
            SliceState::Damaged => redone.torn += 1,
            SliceState::Unreadable(why) => redone.unreadable.push(why),
        }
    }
    let reasons: Vec<_> = [
        (redone.missing, "missing".to_owned()),
        (redone.torn, "torn".to_owned()),
        (redone.other, "of another run (different input, flags, device or version)".to_owned()),
        (redone.unreadable.len(), format!("unreadable ({})", redone.unreadable.first().map_or("", String::as_str))),
        (redone.preview, "for --preview".to_owned()),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, why)| format!("{count} {why}"))
    .collect();
    let remaining =
        if reasons.is_empty() { "nothing is left to do".into() } else { format!("done now: {}", reasons.join(", ")) };
    reporter.note(&format!("--resume: {} of {} slices are kept; {remaining}", kept.len(), slices.len()));
    Ok(kept)
}
