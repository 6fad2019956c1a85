//! Tests with known answers, before a run: of its kernel and of the steps that a device does.

mod kernel;
mod reference;
mod step_timing;
mod steps;
mod timing;

pub use kernel::{Checked, Checker, KernelTest, examine_rows};
pub use reference::Reference;
pub use step_timing::{StepOperation, StepTiming};
pub use steps::{DeviceSteps, StepCheck, StepError, TestShape};
pub use timing::{Bench, KernelTiming, TimingOptions};
