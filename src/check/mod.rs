//! Tests with known answers, before a run: of its kernel and of the steps that a device does. Measurements begin with the
//! same tests.

mod kernel;
mod lamino;
mod least_squares;
mod on_images;
mod on_rows;
mod on_sinograms;
mod slices;
mod step_check;
mod steps;
mod sums;
mod values;

pub use kernel::{Checked, Checker, KernelTest};
pub use lamino::LaminoTest;
pub use step_check::{StepCheck, StepError, TestShape};
pub use steps::{DeviceSteps, all_step_checks};

pub(crate) use kernel::Loaded;
pub(crate) use values::noise;
