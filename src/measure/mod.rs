//! Measures a device: which kernels are right, how fast they are (`bench`, `doctor`), how fast they can be (`model`),
//! and which parameters make them faster (`tune`).
//!
//! No run needs any of this: data become slices without it. What a run checks before it starts is in
//! [`check`](crate::check); measurements begin with the same checks. Results of measuring reach runs as a profile, and as
//! stored verdicts.

mod bench;
mod doctor;
mod model;
mod protocol;
mod text;
mod tune;
mod verdict;

pub use bench::{
    Bench, BenchRow, IterationTiming, KernelTiming, TimingOptions, bench_plot, bench_table, iteration_text,
    time_iterations,
};
pub use doctor::{
    DOCTOR_BINS, DOCTOR_PROBLEMS, Diagnosis, Finding, QUICK_DOCTOR_BINS, QUICK_DOCTOR_PROBLEMS, examine_rows,
};
pub use model::{ModelRow, model_of_paper, model_of_profile, model_table, occupancy, stage_table, table_15};
pub use protocol::{OfferFilter, Protocol};
pub use tune::{
    Candidate, Log, LogEntry, MeasurementConditions, Outcome, Point, Predict, Prediction, Reach, Search, SizeOutcome,
    SizeTrial, Space, StepOperation, StepTiming, TimedKernel, TuningRun, changes, compose_profile, compose_sizes,
    describe_changes, forbids, other_sizes, shipped_kernel, size_parameters, size_table, size_value, starting_kernels,
    tuned_file_stem, tuning_table, with_size,
};
pub use verdict::Verdict;

pub(crate) use text::{scientific, three_digits};
