//! What the programs of operations are made for.

use crate::kernel::{ImageFilterBackend, StepBackends, StepTarget};

/// The device, the sizes of work-groups, and the processors that run the steps.
#[derive(Clone, Copy, Debug)]
pub struct ProgramTarget<'a> {
    pub target: StepTarget<'a>,
    pub backends: StepBackends,
    /// What transforms images.
    pub images: ImageFilterBackend,
}
