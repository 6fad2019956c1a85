//! Tests with known answers, before a run: of its kernel and of the steps that a device does. Measurements begin with the
//! same tests.

mod kernel;
mod lamino;
mod least_squares;
mod slices;
mod steps;
mod sums;
mod values;

pub use kernel::{Checked, Checker, KernelTest};
pub use lamino::LaminoTest;
pub use steps::{DeviceSteps, StepCheck, StepError, TestShape};

pub(crate) use kernel::Loaded;
pub(crate) use values::noise;
