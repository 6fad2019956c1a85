//! Slices about an inclined axis on one device: rows in, slices out, in parts of the projections.

use super::seconds::{DeviceSeconds, seconds};
use crate::device::{HostMemory, Resources, Session, SinogramStore};
use crate::error::{Error, Result};
use crate::feed::{DeviceFeed, FedChunk, FoundReplaced, Piece, ScanRows, parts_of};
use crate::fft::{Filtered, RowBatch, RowStage};
use crate::geometry::{Cut, Geometry, Lamino};
use crate::kernel::{GUARD, KernelSource};
use crate::operations::{DetectorBatch, LaminoProjector, LaminoRows};
use crate::plan::{InclinedPieces, LaminoPlan};
use opencl3::event::Event;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// Largest number of launches that add the last projections: slices are copied from the device while others are computed.
const LAST_LAUNCHES: usize = 16;

/// The back projection of an engine about an inclined axis.
pub(super) struct LaminoStage {
    lamino: Lamino,
    projector: LaminoProjector,
    /// Filtered rows `[row][projection][guard, bin, guard]`.
    filtered: Buffer<f32>,
    /// Number of rows that are filtered at once.
    filtered_at_once: usize,
    /// Parts of the projections whose filtered rows are on the device at a time.
    parts: Vec<Range<usize>>,
    /// Pieces of a chunk that the host holds.
    pub pieces: InclinedPieces,
    /// Largest number of rows of the detector that a chunk needs.
    pub rows: usize,
    bins: usize,
    /// Largest number of slices of a chunk.
    chunk: usize,
    /// Parts that were started, in the order of their buffers, until they have ended.
    started: VecDeque<StartedPart>,
    /// Number of parts that were started in all.
    number: usize,
    /// Launches after which slices are complete, with their places in the chunk.
    completing: VecDeque<(Event, Range<usize>)>,
}

/// Commands for a part of the projections that a device may not have done yet.
struct StartedPart {
    filter: Vec<Event>,
    /// Seconds in which the host filtered.
    on_host: f64,
    back_projection: Vec<Event>,
    began: Instant,
}

/// Rows of some projections that the slices of a chunk need: corrected by the host, or samples.
pub(super) struct InclinedRows<'a> {
    pub scan: &'a ScanRows<'a>,
    pub piece: &'a Piece,
    pub values: &'a HostMemory,
}

/// What the device does to rows before they are filtered, and where to.
pub(super) struct InclinedInputs<'a> {
    /// Correction of rows, if the device corrects them.
    pub correct: Option<&'a mut DeviceFeed>,
    /// Buffers for the rows of a part, which are used in turn.
    pub buffers: &'a mut [Buffer<f32>],
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
            filtered_at_once: plan.filtered,
            parts: cut.parts(geometry).collect(),
            pieces: plan.pieces,
            rows: plan.rows,
            bins: geometry.bins,
            chunk,
            started: VecDeque::new(),
            number: 0,
            completing: VecDeque::new(),
        })
    }

    pub fn resources(&self) -> Resources {
        self.projector.resources
    }

    pub fn source(&self) -> &KernelSource {
        &self.projector.source
    }

    /// Returns the largest number of values of a piece that the host corrects.
    pub fn piece_values(&self) -> usize {
        self.rows * self.pieces.projections * self.bins
    }

    /// Starts to add what a piece's projections contribute to the slices of these numbers, from the rows of the detector that
    /// they need, to the beginning of `slices` `[slice][y][x]`. The first projections begin the slices; the ones after them come
    /// in order. After the last ones [`complete`](Self::complete) says which slices are there.
    ///
    /// A slice's bits do not depend on the others, nor on the parts of the projections.
    ///
    /// Returns the seconds of copies, and of parts that have ended; and the counts of values that the device replaced, if rows
    /// are complete.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for a chunk that does not fit the plan.
    pub fn add(
        &mut self,
        session: &Session,
        (filter, sinogram): (&mut RowStage, &mut SinogramStore),
        (mut inputs, slices): (InclinedInputs, &Buffer<f32>),
        which: &[usize],
        rows: InclinedRows,
    ) -> Result<(DeviceSeconds, Option<FoundReplaced>)> {
        let Piece::Projections(DetectorBatch { rows: needed, projections, .. }) = rows.piece else {
            return Err(Error::Internal("a piece of another kind for an inclined axis".into()));
        };
        let is_of_plan = self.lamino.rows_of(which).eq(needed.iter().copied()) && needed.len() <= self.rows;
        if which.len() > self.chunk || !is_of_plan || inputs.buffers.is_empty() {
            let (count, chunk, needed) = (which.len(), self.chunk, needed.len());
            return Err(Error::Internal(format!("{count} slices of {needed} rows do not fit the plan of {chunk}")));
        }
        if projections.start == 0 {
            self.projector.choose(session, which)?;
        }
        let (mut total, mut found) = (DeviceSeconds::default(), None);
        let among = |part: &&Range<usize>| projections.start <= part.start && part.end <= projections.end;
        let parts: Vec<Range<usize>> = self.parts.iter().filter(among).cloned().collect();
        for part in parts {
            // the buffer for its rows is that of an earlier part
            while self.started.len() >= inputs.buffers.len() {
                total = total + self.end_first(session)?;
            }
            let turn = self.number % inputs.buffers.len();
            let start = Instant::now();
            let replaced = inputs.copy(session, &rows, (turn, self.bins), &part)?;
            total.upload += start.elapsed().as_secs_f64();
            found = replaced.or(found);
            let mut begun = self.filter(session, (filter, sinogram), &inputs.buffers[turn], needed.len(), &part)?;
            let of_part = LaminoRows {
                values: &self.filtered,
                rows: needed[0]..needed[0] + needed.len(),
                projections: part.clone(),
            };
            let is_last = self.parts.last() == Some(&part);
            for chosen in self.projector.parts(if is_last { LAST_LAUNCHES } else { 1 }) {
                begun.back_projection.push(self.projector.run(session, &of_part, slices, &chosen)?);
                if is_last {
                    self.completing.extend(begun.back_projection.pop().map(|event| (event, chosen.slices)));
                }
            }
            session.flush()?;
            self.started.push_back(begun);
            self.number += 1;
        }
        Ok((total, found))
    }

    /// Starts the filter for the rows of a part.
    fn filter(
        &self,
        session: &Session,
        (filter, sinogram): (&mut RowStage, &mut SinogramStore),
        input: &Buffer<f32>,
        rows: usize,
        part: &Range<usize>,
    ) -> Result<StartedPart> {
        let mut begun =
            StartedPart { filter: Vec::new(), on_host: 0.0, back_projection: Vec::new(), began: Instant::now() };
        let stored = part.len() * (self.bins + 2 * GUARD);
        // two projections are filtered together, and they must be of one row
        let at_once = if part.len() % 2 == 0 { self.filtered_at_once } else { 1 };
        for rows in parts_of(rows, at_once) {
            // the filter takes these rows for so many projections of one row
            let first = part.start * self.filtered_at_once;
            let projections = first..first + rows.len() * part.len();
            let first = rows.start * part.len() * self.bins;
            let batch = RowBatch { rows: input, first, valid: 1, projections, phases: None };
            let Filtered { events, host } = filter.run(session, &batch, sinogram)?;
            begun.filter.extend(events);
            begun.on_host += host.as_secs_f64();
            let (from, to) = ((&sinogram.buffer, 0), (&self.filtered, 4 * rows.start * stored));
            let bytes = 4 * rows.len() * stored;
            begun.filter.push(session.copy_between(&session.queue, from, to, bytes, "filtered rows")?);
        }
        Ok(begun)
    }

    /// Waits until more slices of a chunk are complete, and returns their places; `None` if all are that were begun.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn complete(&mut self, session: &Session) -> Result<Option<Range<usize>>> {
        let Some((launch, slices)) = self.completing.pop_front() else { return Ok(None) };
        session.wait_for(&launch)?;
        if let Some(last) = self.started.back_mut() {
            last.back_projection.push(launch);
        }
        Ok(Some(slices))
    }

    /// Waits for all parts that were started, and returns their seconds.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn end(&mut self, session: &Session) -> Result<DeviceSeconds> {
        let mut total = DeviceSeconds::default();
        while !self.started.is_empty() {
            total = total + self.end_first(session)?;
        }
        Ok(total)
    }

    /// Waits for the part that was started first, and returns its seconds.
    fn end_first(&mut self, session: &Session) -> Result<DeviceSeconds> {
        let Some(StartedPart { filter, on_host, back_projection, began }) = self.started.pop_front() else {
            return Ok(DeviceSeconds::default());
        };
        back_projection.iter().try_for_each(|launch| session.wait_for(launch))?;
        let (filtering, adding) = (seconds(&filter), seconds(&back_projection));
        // there are drivers whose clock stands still
        let back_projection = if adding > 0.0 { adding } else { (began.elapsed().as_secs_f64() - on_host).max(0.0) };
        Ok(DeviceSeconds { filter: filtering + on_host, back_projection, ..DeviceSeconds::default() })
    }
}

impl InclinedInputs<'_> {
    /// Copies the rows of a part of a piece to the buffer whose turn it is, corrects them if the device does, and waits. Returns
    /// the counts of values that the device replaced, if rows are complete.
    fn copy(
        &mut self,
        session: &Session,
        rows: &InclinedRows,
        (turn, bins): (usize, usize),
        part: &Range<usize>,
    ) -> Result<Option<FoundReplaced>> {
        let InclinedRows { scan, piece, values } = *rows;
        let (Piece::Projections(DetectorBatch { rows: needed, projections, .. }), Some(sinograms)) =
            (piece, self.buffers.get_mut(turn))
        else {
            return Err(Error::Internal("no buffer for a piece of projections".into()));
        };
        if let Some(feed) = &mut self.correct {
            let chunk = FedChunk { slices: &[], first: 0, sinograms, stride: part.len() * bins };
            feed.correct(session, scan, piece, values.as_bytes(), chunk)?;
            return feed.wait(session, scan, piece, None);
        }
        let in_row = projections.len() * bins;
        let first = part.start - projections.start;
        let within = first * bins..(first + part.len()) * bins;
        let values = &values[..needed.len() * in_row];
        match within.len() == in_row {
            true => session.upload(sinograms, 0, values, "sinograms")?,
            false => values.chunks_exact(in_row).enumerate().try_for_each(|(number, row)| {
                session.upload(sinograms, number * within.len(), &row[within.clone()], "sinograms")
            })?,
        }
        Ok(None)
    }
}
