//! Runs on devices: sinograms are read and corrected, uploaded, filtered, back-projected, downloaded and passed on, in
//! chunks, with a thread for every stage.

mod chunks;
mod corrected_rows;
mod devices;
mod errors;
mod examination;
mod finish;
mod lamino;
mod levels;
mod means;
mod noise_weights;
mod pages;
mod prepare;
mod row_slices;
mod run;
mod seconds;
mod setup;
mod sinograms;
mod solver;
mod source;
mod stages;
mod threads;
mod transfer;
mod work;
mod writing;

pub use chunks::Engine;
pub use corrected_rows::corrected_rows;
pub use devices::{ReadyDevice, chosen, host_budget, leave, ready_devices};
pub use finish::Finish;
pub use means::prepare;
pub use noise_weights::with_noise_weights;
pub use pages::PageDevice;
pub use prepare::{Prepared, SelfTest, open_device, plan_for};
pub use row_slices::{RowSlice, RowWork, row_slices};
pub use run::{ObservedSlice, Run};
pub use seconds::DeviceSeconds;
pub use setup::{Setup, SliceForm};
pub use solver::SolverCounts;
pub use source::{FieldCounts, Source, projection_weights};
pub use stages::{DeviceShare, Done, run_stages};
pub use writing::WRITERS;
