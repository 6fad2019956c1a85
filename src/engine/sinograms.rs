//! What happens to the sinograms of a chunk on a device before slices are computed, beside the computation of earlier ones.

use super::examination::RowExamination;
use crate::device::Session;
use crate::error::Result;
use crate::feed::parts_of;
use crate::least_squares::RowScale;
use crate::operations::{RowExtender, SinogramBatch};
use crate::steps::DeviceSinogramStep;
use opencl3::memory::Buffer;
use std::time::Instant;

/// Steps on sinograms, the extension of their rows after them, and what least squares need to know of them.
pub(super) struct SinogramStage {
    /// Session with queues of its own.
    pub session: Session,
    pub steps: Vec<Box<dyn DeviceSinogramStep>>,
    /// Number of sinograms that the steps process together.
    pub at_once: usize,
    pub extender: Option<RowExtender>,
    /// Examination of rows, if the device searches slices.
    pub examination: Option<RowExamination>,
    /// Number of sinograms of a pass.
    pub pass: usize,
    pub projections: usize,
    pub bins: usize,
}

/// What was found in the sinograms of a chunk.
#[derive(Default)]
pub(super) struct ReadySinograms {
    /// Scales of the rows of each, if they were examined.
    pub scales: Vec<RowScale>,
    /// Seconds that everything took.
    pub seconds: f64,
}

impl SinogramStage {
    /// Corrects the first `count` sinograms in a buffer, waits and examines them.
    ///
    /// # Errors
    /// Errors of the device, and those of [`RowExamination::scales`].
    pub fn run(&mut self, sinograms: &Buffer<f32>, count: usize) -> Result<ReadySinograms> {
        let SinogramStage { session, steps, at_once, extender, examination, pass, projections, bins } = self;
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
        let scales = examination.as_ref().map_or(Ok(Vec::new()), |of| of.scales(session, sinograms, count))?;
        Ok(ReadySinograms { scales, seconds: began.elapsed().as_secs_f64() })
    }
}
