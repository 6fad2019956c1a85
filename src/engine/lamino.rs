//! Slices about an inclined axis on one device: rows in, slices out, in parts of the projections.

use super::chunks::{Engine, Setup, no_buffer, places};
use super::seconds::{DeviceSeconds, seconds};
use crate::device::{Resources, Session};
use crate::error::{Error, Result};
use crate::fft::{Filtered, RowBatch};
use crate::geometry::Lamino;
use crate::kernel::{GUARD, KernelSource};
use crate::operations::{LaminoProjector, LaminoRows};
use crate::plan::LaminoPlan;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::ops::Range;
use std::time::Instant;

/// The back projection of an engine about an inclined axis.
pub(super) struct LaminoStage {
    lamino: Lamino,
    projector: LaminoProjector,
    /// Filtered rows `[row][projection][guard, bin, guard]`.
    filtered: Buffer<f32>,
    /// Parts of the projections that are on the device at a time.
    parts: Vec<Range<usize>>,
    /// Number of chunks that the host holds in each direction.
    pub chunks_on_host: usize,
    /// Largest number of rows of the detector that a chunk needs.
    pub rows: usize,
    bins: usize,
}

impl LaminoStage {
    pub fn new(session: &Session, setup: &Setup, plan: &LaminoPlan) -> Result<LaminoStage> {
        let Setup { geometry, cut, chunk, .. } = *setup;
        let values = plan.rows * cut.projections * (geometry.bins + 2 * GUARD);
        Ok(LaminoStage {
            lamino: plan.lamino,
            projector: LaminoProjector::new(session, geometry, plan.lamino, chunk)?,
            filtered: session.buffer(values, CL_MEM_READ_WRITE, "filtered rows of the detector")?,
            parts: cut.parts(geometry).collect(),
            chunks_on_host: plan.chunks_on_host,
            rows: plan.rows,
            bins: geometry.bins,
        })
    }

    pub fn resources(&self) -> Resources {
        self.projector.resources
    }

    pub fn source(&self) -> &KernelSource {
        &self.projector.source
    }

    /// Returns the rows of the detector that some slices need.
    pub fn rows_of(&self, slices: &[usize]) -> Range<usize> {
        self.lamino.rows_of(slices)
    }
}

impl Engine {
    /// Reconstructs the slices of these numbers, `[slice][y][x]`, from the corrected rows of the detector that they need,
    /// `[row][projection][bin]`.
    ///
    /// A slice's bits do not depend on the others, nor on the parts of the projections.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for a chunk that does not fit the plan.
    pub(super) fn reconstruct_inclined(
        &mut self,
        which: &[usize],
        rows: &[f32],
        slices: &mut [f32],
    ) -> Result<DeviceSeconds> {
        let Engine { session, kernels, lamino, inputs, outputs, shape, .. } = self;
        let (Some(stage), Some(input), Some(output)) = (lamino, inputs.first_mut(), outputs.first()) else {
            return Err(no_buffer());
        };
        let needed = stage.rows_of(which);
        let fits = which.len() <= shape.chunk && needed.len() <= stage.rows;
        if !fits || rows.len() != needed.len() * shape.in_slice || slices.len() != which.len() * shape.out_slice {
            let (count, chunk) = (which.len(), shape.chunk);
            return Err(Error::Internal(format!("{count} slices of {needed:?} do not fit the plan of {chunk}")));
        }
        stage.projector.choose(session, which)?;
        let mut total = DeviceSeconds::default();
        for part in &stage.parts {
            let start = Instant::now();
            let of_row = part.start * stage.bins..part.end * stage.bins;
            for (place, piece) in places(needed.len(), shape.in_slice, of_row) {
                session.upload(input, place, &rows[piece], "sinograms")?;
            }
            total.upload += start.elapsed().as_secs_f64();
            let began = Instant::now();
            let (mut filter, mut on_host) = (Vec::new(), 0.0);
            let of_row = part.len() * stage.bins;
            let stored = part.len() * (stage.bins + 2 * GUARD);
            for row in 0..needed.len() {
                let batch =
                    RowBatch { rows: input, first: row * of_row, valid: 1, projections: part.clone(), phases: None };
                let Filtered { events, host } = kernels.filter.run(session, &batch, &mut kernels.sinogram)?;
                filter.extend(events);
                on_host += host.as_secs_f64();
                let (from, to) = ((&kernels.sinogram.buffer, 0), (&stage.filtered, 4 * row * stored));
                filter.push(session.copy_between(&session.queue, from, to, 4 * stored, "filtered rows")?);
            }
            let filtered = LaminoRows { values: &stage.filtered, rows: needed.clone(), projections: part.clone() };
            let kernel = stage.projector.run(session, &filtered, &output.values, which.len())?;
            session.wait_for(&kernel)?;
            let (filter, back_projection) = (seconds(&filter), seconds(&[kernel]));
            // there are drivers whose clock stands still
            total.filter += if filter > 0.0 { filter + on_host } else { on_host };
            total.back_projection += match back_projection > 0.0 {
                true => back_projection,
                false => (began.elapsed().as_secs_f64() - on_host).max(0.0),
            };
        }
        let start = Instant::now();
        session.download(&output.values, 0, slices, "slices")?;
        total.download += start.elapsed().as_secs_f64();
        Ok(total)
    }
}
