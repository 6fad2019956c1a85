//! Files of a scan, opened for those who take the frames as they are stored.

use super::flags::{ArrayFlag, parsed_words};
use crate::cli::Command;
use crate::error::{Error, Result};
use crate::files::read_numbers;
use crate::geometry::parse_angles;
use crate::job::Job;
use crate::source::{Stack, Stacks};
use crate::stitch;
use crate::visible::Shown;
use std::sync::atomic::AtomicBool;

/// Opens the files that flags of `fbp reconstruct` about the scan name: data, fields and angles.
///
/// # Errors
/// The errors of `fbp reconstruct` about files that cannot be read.
pub fn read_scan(flags: &[ArrayFlag]) -> Result<Stacks> {
    let Command::Reconstruct { args, .. } = parsed_words("reconstruct", &["--quiet"], flags)? else {
        return Err(Error::Internal("fbp reconstruct is another command".into()));
    };
    let job = Job::in_memory(&args)?;
    let request = job.open_request(job.recipe.scan.angles.is_input());
    let mut stacks = stitch::open(job.stitch_request(request), |path, flag| {
        Stack::open_by(path, flag, request.memory, request.paths.order_by)
    })?;
    if let Some(file) = &job.execution.files.angles {
        let text = read_numbers(file, "--angles", &AtomicBool::new(false))?;
        stacks.angles = Some(parse_angles(&text, &format!("--angles {}", file.shown()))?.0);
    }
    Ok(stacks)
}
