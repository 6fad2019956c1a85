//! Samples as they are stored, for a device that corrects them.

use super::{ScanRows, parts_of, runs_of};
use crate::error::Result;
use crate::operations::DetectorBatch;
use crate::steps::widened;
use rayon::prelude::*;
use std::ops::Range;

/// Number of tasks for each thread that read the rows of a batch, if these have enough to read.
const TASKS_OF_THREAD: usize = 4;

/// Least number of bytes that are worth a task.
const LEAST_READ: usize = 256 << 10;

impl ScanRows<'_> {
    /// Reads the samples of a batch to the beginning of `out`, with those of the rows around it that steps need.
    ///
    /// They are `[projection][row][bin]` from projections and `[row][projection][bin]` from sinograms; where samples
    /// are to be binned, those of all pixels that form a bin are read.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn read_samples(&self, batch: &DetectorBatch, out: &mut [u8]) -> Result<()> {
        let projections = &self.used[batch.projections.clone()];
        let (pages, runs) = match self.sinograms {
            true => (batch.rows.as_slice(), runs_of(projections)),
            false => (projections, self.around(&batch.rows)),
        };
        let bytes = self.stack.stored().row_bytes();
        let of_page = bytes * runs.iter().map(Range::len).sum::<usize>();
        let at_once = self.rows_at_once(&runs, pages.len());
        out.par_chunks_mut(of_page).zip(pages).try_for_each(|(out, &page)| match runs.as_slice() {
            // so that all threads have something to do until the end
            [run] if at_once < run.len() => {
                let parts = parts_of(run.len(), at_once).map(|part| run.start + part.start..run.start + part.end);
                let parts: Vec<_> = parts.collect();
                out.par_chunks_mut(at_once * bytes)
                    .zip(parts)
                    .try_for_each(|(out, part)| self.stack.read_stored(page, &[part], out))
            }
            runs => self.stack.read_stored(page, runs, out),
        })
    }

    /// Returns the bytes of the samples that [`read_samples`](Self::read_samples) reads for a batch.
    pub fn sample_bytes(&self, batch: &DetectorBatch) -> usize {
        let rows: usize = match self.preparation.halo() {
            0 => batch.rows.len(),
            _ => self.around(&batch.rows).iter().map(Range::len).sum(),
        };
        rows * batch.projections.len() * self.stack.stored().row_bytes()
    }

    /// Returns runs of rows of the detector, with the rows around them that steps need.
    fn around(&self, rows: &[usize]) -> Vec<Range<usize>> {
        let halo = self.preparation.halo();
        runs_of(rows).iter().map(|run| widened(run, halo, self.height())).collect()
    }

    /// Returns how many rows of a page a thread reads at once: all, if parts would take longer together.
    fn rows_at_once(&self, runs: &[Range<usize>], pages: usize) -> usize {
        let [run] = runs else { return usize::MAX };
        if !self.stack.rows_are_apart() {
            return usize::MAX;
        }
        let parts = (TASKS_OF_THREAD * rayon::current_num_threads()).div_ceil(pages.max(1));
        run.len().div_ceil(parts).max(LEAST_READ.div_ceil(self.stack.stored().row_bytes().max(1)))
    }

    /// Splits positions in a list of slices into parts of at most `most`, which a device that corrects rows takes at
    /// once. The slices of a part are consecutive if steps need the rows around them.
    pub fn parts(&self, slices: &[usize], most: usize) -> Vec<Range<usize>> {
        let parts = parts_of(slices.len(), most);
        if self.preparation.halo() == 0 {
            return parts.collect();
        }
        let runs = |part: Range<usize>| {
            let mut start = part.start;
            slices[part]
                .chunk_by(|a, b| a + 1 == *b)
                .map(move |run| {
                    start += run.len();
                    start - run.len()..start
                })
                .collect::<Vec<_>>()
        };
        parts.flat_map(runs).collect()
    }
}
