//! The one way of rows: from samples in files to corrected rows of the detector, on the host or on a device.
//!
//! ```text
//!                   projections that are used
//!               0      batch      batch      batch
//!             +----------+----------+----------+
//!  halo       |          |          |          |   read, because steps need them
//!             +----------+----------+----------+
//!  block      |          |          |          |   corrected together; row r of all projections is sinogram r
//!             +----------+----------+----------+
//!  halo       |          |          |          |
//!             +----------+----------+----------+
//! ```
//!
//! Where a step needs the rows around those that are wanted, blocks begin at multiples of their size, so that slices do
//! not depend on what is read at once, and the block that was corrected last is kept: by the host, on the device, or by
//! the host for a device whose memory does not hold it. Else a block is just the rows that are wanted next, all
//! projections are one batch, and rows go straight to where they are needed. About an inclined axis, slices need many rows,
//! which are corrected for some projections at a time.
//!
//! The host's rows are those of a [`HostFeed`], a device's those of a [`DeviceFeed`]. A reconstruction reads the pieces of a
//! [`FeedPlan`], chunk after chunk. Who wants rows and no slices (the pages of `fbp preprocess`, the search of the axis, the means
//! of a double flat field) has a [`BatchFeed`], which drives a `DeviceFeed`, or asks the host.

mod batches;
mod device;
mod host;
mod pages;
mod plan;
mod samples;

pub use batches::{BATCHES_READ, BatchFeed, BatchPlace, with_room};
pub use device::{DeviceCounts, DeviceFeed, FedChunk, FoundReplaced};
pub use host::{CorrectedRows, HostFeed};
pub use plan::{FeedPlan, Piece};

use crate::geometry::{ExtendedField, Lamino};
use crate::operations::{DetectorBatch, RowCorrection, SampleOrder};
use crate::source::Stack;
use crate::steps::Preparation;
use std::ops::Range;

/// The rows of a scan: what is stored, and what is done to it.
#[derive(Clone, Copy)]
pub struct ScanRows<'a> {
    pub stack: &'a Stack,
    pub preparation: &'a Preparation,
    /// Numbers of the projections that are used, ascending.
    pub used: &'a [usize],
    /// Numbers of the rows of the detector that the job wants, ascending.
    pub wanted: &'a [usize],
    /// True if pages of the stack are sinograms, false if they are projections.
    pub sinograms: bool,
    /// Extension of rows after their correction, if there is one.
    pub field: Option<&'a ExtendedField>,
    /// Inclination of the axis, if it is inclined: slices then need several rows.
    pub lamino: Option<&'a Lamino>,
}

impl<'a> ScanRows<'a> {
    /// Returns the number of rows of the detector.
    pub fn height(&self) -> usize {
        if self.sinograms { self.stack.len() } else { self.stack.height() }
    }

    /// Returns the number of projections of the input.
    fn projections(&self) -> usize {
        if self.sinograms { self.stack.height() } else { self.stack.len() }
    }

    /// Returns the number of values of a sinogram as the detector saw it.
    pub fn seen_len(&self) -> usize {
        self.used.len() * self.stack.width()
    }

    /// Returns the number of values of a sinogram, with the bins of an extended field.
    pub fn sinogram_len(&self) -> usize {
        self.used.len() * self.field.map_or(self.stack.width(), |field| field.bins)
    }

    /// Returns the rows of the detector that slices, in ascending order, need.
    pub fn rows_of(&self, slices: &[usize]) -> Vec<usize> {
        self.lamino.map_or_else(|| slices.to_vec(), |lamino| lamino.rows_of(slices).collect())
    }

    /// Returns the correction of rows on a device, if a device can do all steps on rows.
    pub fn correction(&self) -> Option<RowCorrection<'a>> {
        self.preparation.correction(self.used, self.projections())
    }

    /// Returns the order of stored samples.
    pub fn order(&self) -> SampleOrder {
        if self.sinograms { SampleOrder::Sinograms } else { SampleOrder::Projections }
    }

    /// Returns those of some rows that are corrected together in which replaced values are counted: from the first that
    /// the job wants to the last.
    pub fn counted(&self, rows: &Range<usize>) -> Range<usize> {
        let within = self.wanted.partition_point(|s| *s < rows.start)..self.wanted.partition_point(|s| *s < rows.end);
        match &self.wanted[within] {
            [] => rows.start..rows.start,
            [one] => *one..one + 1,
            [first, .., last] => *first..last + 1,
        }
    }

    /// Returns the batch of some projections of a block of rows.
    pub fn batch(&self, rows: Range<usize>, projections: Range<usize>) -> DetectorBatch {
        let counted = self.counted(&rows);
        let counted = counted.start - rows.start..counted.end - rows.start;
        DetectorBatch { rows: rows.collect(), counted, place: 0, projections }
    }

    /// Returns the batch of all projections of some rows, whose counts begin at `place`.
    pub fn of_all_projections(&self, rows: &[usize], place: usize) -> DetectorBatch {
        DetectorBatch { rows: rows.to_vec(), counted: 0..rows.len(), place, projections: 0..self.used.len() }
    }
}

/// Splits `count` positions into contiguous parts of at most `most`.
pub fn parts_of(count: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(most.max(1)).map(move |start| start..(start + most.max(1)).min(count))
}

/// Groups ascending numbers into runs of consecutive ones.
fn runs_of(numbers: &[usize]) -> Vec<Range<usize>> {
    numbers.chunk_by(|a, b| a + 1 == *b).map(|run| run[0]..run[run.len() - 1] + 1).collect()
}
