//! Slices about an inclined axis on one device: rows in, slices out, in parts of the projections.

use super::seconds::{DeviceSeconds, seconds};
use crate::device::{Resources, Session, SinogramStore};
use crate::error::{Error, Result};
use crate::fft::{Filtered, RowBatch, RowStage};
use crate::geometry::{Cut, Geometry, Lamino};
use crate::kernel::{GUARD, KernelSource};
use crate::operations::{LaminoProjector, LaminoRows};
use crate::plan::{InclinedPieces, LaminoPlan};
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
    /// Pieces of a chunk that the host holds.
    pub pieces: InclinedPieces,
    /// Largest number of rows of the detector that a chunk needs.
    pub rows: usize,
    bins: usize,
    /// Largest number of slices of a chunk.
    chunk: usize,
}

impl LaminoStage {
    /// Builds the kernel and allocates memory for chunks of at most `chunk` slices.
    pub fn new(
        session: &Session,
        geometry: &Geometry,
        (cut, chunk): (Cut, usize),
        plan: &LaminoPlan,
    ) -> Result<LaminoStage> {
        let values = plan.rows * cut.projections * (geometry.bins + 2 * GUARD);
        Ok(LaminoStage {
            lamino: plan.lamino,
            projector: LaminoProjector::new(session, geometry, plan.lamino, chunk)?,
            filtered: session.buffer(values, CL_MEM_READ_WRITE, "filtered rows of the detector")?,
            parts: cut.parts(geometry).collect(),
            pieces: plan.pieces,
            rows: plan.rows,
            bins: geometry.bins,
            chunk,
        })
    }

    pub fn resources(&self) -> Resources {
        self.projector.resources
    }

    pub fn source(&self) -> &KernelSource {
        &self.projector.source
    }

    /// Returns the number of projections of the scan.
    pub fn projections(&self) -> usize {
        self.parts.last().map_or(0, |last| last.end)
    }

    /// Returns the rows of the detector that some slices need.
    pub fn rows_of(&self, slices: &[usize]) -> Range<usize> {
        self.lamino.rows_of(slices)
    }

    /// Adds what some projections contribute to the slices of these numbers, from the corrected rows of the detector that they
    /// need, `[row][projection][bin]`, with buffers for a part of the rows and for the slices `[slice][y][x]`. The first
    /// projections begin the slices; the ones after them come in order.
    ///
    /// A slice's bits do not depend on the others, nor on the parts of the projections.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for a chunk that does not fit the plan.
    pub fn add(
        &mut self,
        session: &Session,
        (filter, sinogram): (&mut RowStage, &mut SinogramStore),
        (input, output): (&mut Buffer<f32>, &Buffer<f32>),
        which: &[usize],
        projections: Range<usize>,
        rows: &[f32],
    ) -> Result<DeviceSeconds> {
        let needed = self.rows_of(which);
        let in_row = projections.len() * self.bins;
        if which.len() > self.chunk || needed.len() > self.rows || rows.len() != needed.len() * in_row {
            let (count, chunk) = (which.len(), self.chunk);
            return Err(Error::Internal(format!("{count} slices of {needed:?} do not fit the plan of {chunk}")));
        }
        if projections.start == 0 {
            self.projector.choose(session, which)?;
        }
        let mut total = DeviceSeconds::default();
        let among = |part: &&Range<usize>| projections.start <= part.start && part.end <= projections.end;
        for part in self.parts.iter().filter(among) {
            let start = Instant::now();
            let first = part.start - projections.start;
            let within = first * self.bins..(first + part.len()) * self.bins;
            match within.len() == in_row {
                true => session.upload(input, 0, rows, "sinograms")?,
                false => rows.chunks_exact(in_row).enumerate().try_for_each(|(number, row)| {
                    session.upload(input, number * within.len(), &row[within.clone()], "sinograms")
                })?,
            }
            total.upload += start.elapsed().as_secs_f64();
            let began = Instant::now();
            let (mut events, mut on_host) = (Vec::new(), 0.0);
            let stored = part.len() * (self.bins + 2 * GUARD);
            for row in 0..needed.len() {
                let first = row * within.len();
                let batch = RowBatch { rows: input, first, valid: 1, projections: part.clone(), phases: None };
                let Filtered { events: commands, host } = filter.run(session, &batch, sinogram)?;
                events.extend(commands);
                on_host += host.as_secs_f64();
                let (from, to) = ((&sinogram.buffer, 0), (&self.filtered, 4 * row * stored));
                events.push(session.copy_between(&session.queue, from, to, 4 * stored, "filtered rows")?);
            }
            let filtered = LaminoRows { values: &self.filtered, rows: needed.clone(), projections: part.clone() };
            let kernel = self.projector.run(session, &filtered, output, which.len())?;
            session.wait_for(&kernel)?;
            let (filtering, back_projection) = (seconds(&events), seconds(&[kernel]));
            total.filter += filtering + on_host;
            // there are drivers whose clock stands still
            total.back_projection += match back_projection > 0.0 {
                true => back_projection,
                false => (began.elapsed().as_secs_f64() - on_host).max(0.0),
            };
        }
        Ok(total)
    }
}
