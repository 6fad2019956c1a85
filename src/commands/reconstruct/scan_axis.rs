//! The rotation axis of a run: given, or found in its data.

use super::errors::{ReconstructInputError, ReconstructWarning};
use crate::axis::{Aligned, Axis, AxisQuery, of_ends};
use crate::center::accept;
use crate::engine::Source;
use crate::error::Result;
use crate::job::Job;
use crate::recipe::Center;
use crate::remark::{Doubt, DoubtKind};
use crate::report::Reporter;
use crate::steps::Tilt;

/// Returns the job and its source with the axis that was given or that is found in the data.
///
/// `in_doubt` gets the search of an axis that is refused.
///
/// # Errors
/// Errors of reading and of the search.
pub(in crate::commands) fn with_axis(
    job: Job,
    source: Source,
    reporter: &Reporter,
    in_doubt: impl FnOnce(Aligned),
) -> Result<(Job, Source, Axis)> {
    let (job, source, axis) = match job.recipe.scan.center {
        Center::Middle | Center::At(_) => {
            let axis = Axis::given(&source.scan);
            return Ok((job, source, axis));
        }
        Center::Ends(ends) => {
            let (stack, by) = (source.stack(), source.stack().binning().by);
            let [degrees, center] = of_ends(ends, [stack.width(), stack.height()].map(|pixels| pixels * by));
            let job = job.tilted(Tilt::within(degrees, "--center")?).about(center);
            reporter.note(&format!("note: centre {center:.2} bins, tilt {degrees:.3} degrees"));
            let source = source.as_of(&job)?;
            let axis = Axis::given(&source.scan);
            (job, source, axis)
        }
        Center::Search(method) => {
            reporter.stage("searching for the rotation axis");
            let wanted = job.recipe.scan.search_tilt;
            let query = AxisQuery { method, range: None };
            let mut found = Aligned::of(job, source, query, reporter)?;
            if wanted && found.tilt.is_none() {
                return Err(ReconstructInputError::NoTilt.into());
            }
            if wanted {
                found = found.upright(query, reporter)?;
            } else {
                tilted(&found).into_iter().for_each(|doubt| reporter.remark(doubt));
            }
            found.search.note.iter().for_each(|note| reporter.note(&format!("note: {note}")));
            let estimate = match accept(&found.search) {
                Ok(estimate) => estimate,
                Err(refused) => {
                    in_doubt(found);
                    return Err(refused);
                }
            };
            let axis = Axis { tilt: found.tilt.filter(|_| wanted), ..Axis::from(estimate) };
            reporter.note(&format!("note: {axis}"));
            let job = found.job.tilted(found.job.recipe.steps.tilt).about(axis.value);
            let source = found.source.as_of(&job)?;
            (job, source, axis)
        }
    };
    source.scan.remarks.iter().for_each(|remark| reporter.remark(remark.clone()));
    Ok((job, source, axis))
}

/// Returns a doubt about a tilted axis that nothing corrects.
fn tilted(found: &Aligned) -> Option<Doubt> {
    found.search.tilt.filter(|tilt| tilt.slope != 0.0)?;
    let tilt = found.tilt?;
    let warning = match found.job.recipe.input.is_sinograms() {
        true => ReconstructWarning::TiltedSinograms { tilt },
        false => ReconstructWarning::TiltedProjections { tilt },
    };
    Some(Doubt::of(DoubtKind::TiltedAxis, &warning))
}
