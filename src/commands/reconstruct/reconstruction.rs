//! The parts that a run into its output is made from.

use crate::cli::ReconstructArgs;
use crate::engine::Source;
use crate::job::Job;
use crate::report::Reporter;
use crate::sink::Target;
use std::sync::atomic::AtomicBool;

/// A run into its output.
#[derive(Clone, Copy)]
pub(super) struct Reconstruction<'a> {
    pub job: &'a Job,
    /// Flags from which the job was made.
    pub flags: &'a ReconstructArgs,
    pub source: &'a Source,
    pub target: &'a Target,
    pub reporter: &'a Reporter,
    pub cancelled: &'a AtomicBool,
}
