//! The search for a device's fastest kernels: which are tried (`space`), in which order (`search`), the log of
//! measurements (`log`), which of them replaces the shipped one (`outcome`), and the profile with these (`profile`); and
//! the sizes of the work-groups of steps (`steps`), whose operations `step_timing` times.

mod log;
mod outcome;
mod profile;
mod search;
mod space;
mod step_timing;
mod steps;
#[cfg(test)]
mod tests;

pub use log::{Log, LogEntry, MeasurementConditions};
pub use outcome::{Outcome, TimedKernel, forbids, tuning_table};
pub use profile::{TuningRun, compose_profile, tuned_file_stem};
pub use search::{Candidate, Predict, Prediction, Search};
pub use space::{Point, Reach, Space, changes, describe_changes, shipped_kernel, starting_kernels};
pub use step_timing::{StepOperation, StepTiming};
pub use steps::{
    SizeOutcome, SizeTrial, compose_sizes, other_sizes, size_parameters, size_table, size_value, with_size,
};
