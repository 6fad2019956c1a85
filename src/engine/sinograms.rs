//! Steps on the sinograms of a chunk on a device, beside the filter and the back projection of earlier ones.

use crate::device::Session;
use crate::error::Result;
use crate::feed::parts_of;
use crate::operations::{RowExtender, SinogramBatch};
use crate::steps::DeviceSinogramStep;
use opencl3::memory::Buffer;
use std::time::Instant;

/// Steps on sinograms, and the extension of their rows after them.
pub(super) struct SinogramStage {
    /// Session with queues of its own.
    pub session: Session,
    pub steps: Vec<Box<dyn DeviceSinogramStep>>,
    /// Number of sinograms that the steps process together.
    pub at_once: usize,
    pub extender: Option<RowExtender>,
    /// Number of sinograms of a pass.
    pub pass: usize,
    pub projections: usize,
    pub bins: usize,
}

impl SinogramStage {
    /// Corrects the first `count` sinograms in a buffer and waits. Returns the seconds that this took.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn run(&mut self, sinograms: &Buffer<f32>, count: usize) -> Result<f64> {
        let SinogramStage { session, steps, at_once, extender, pass, projections, bins } = self;
        let began = Instant::now();
        for part in parts_of(count, *pass) {
            let batch = SinogramBatch {
                values: sinograms,
                first: part.start * *projections * *bins,
                slices: part.len(),
                projections: *projections,
                bins: *bins,
            };
            let mut all = |sinograms: &SinogramBatch| {
                steps.iter_mut().try_for_each(|step| step.apply_in_parts(session, sinograms, *at_once))
            };
            match extender {
                Some(extender) => {
                    all(&extender.seen(session, &batch)?)?;
                    extender.extend(session, &batch)?;
                }
                None => all(&batch)?,
            }
        }
        session.finish()?;
        Ok(began.elapsed().as_secs_f64())
    }
}
