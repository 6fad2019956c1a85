//! Rows that the host corrects.

use super::{ScanRows, runs_of};
use crate::error::Result;
use crate::kernel::{StepBackend, StepBackends};
use crate::steps::{Band, Counts, widened};
use rayon::prelude::*;
use std::ops::{Add, Range};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Counts of replaced values in rows, and the time of their correction without reading.
#[derive(Default)]
pub struct CorrectedRows {
    pub counts: Counts,
    pub took: Duration,
}

impl ScanRows<'_> {
    /// Returns the rows of the detector that are read to correct the wanted ones.
    pub fn read_for(&self, wanted: &Range<usize>) -> Range<usize> {
        widened(wanted, self.preparation.halo(), self.height())
    }

    /// Reads rows of a page of projections with those around them, and corrects them in place.
    ///
    /// `values` has room for all rows that [are read](Self::read_for); only the wanted ones are of use afterwards.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn correct_projection(
        &self,
        page: usize,
        wanted: &Range<usize>,
        counted: &Range<usize>,
        values: &mut [f32],
    ) -> Result<CorrectedRows> {
        let read = self.read_for(wanted);
        self.stack.read_rows(page, read.clone(), values)?;
        let (start, mut counts) = (Instant::now(), Counts::default());
        let band = Band::new(values, self.height(), read, wanted.clone()).of(page, self.projections());
        self.preparation.projection(Band { counted: counted.clone(), ..band }, &mut counts);
        Ok(CorrectedRows { counts, took: start.elapsed() })
    }

    /// Reads the used projections of a sinogram, and corrects its rows in place; stripes stay.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn correct_sinogram(&self, page: usize, sinogram: &mut [f32]) -> Result<CorrectedRows> {
        let (bins, used, total) = (self.stack.width(), self.used, self.projections());
        if used.len() == total {
            self.stack.read_rows(page, 0..total, sinogram)?;
        } else {
            let mut all = vec![0f32; total * bins];
            self.stack.read_rows(page, 0..total, &mut all)?;
            for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
                row.copy_from_slice(&all[p * bins..(p + 1) * bins]);
            }
        }
        let (start, mut counts) = (Instant::now(), Counts::default());
        for (row, &p) in sinogram.chunks_mut(bins).zip(used) {
            let band = Band::new(row, total, page..page + 1, page..page + 1).of(p, total);
            self.preparation.projection(band, &mut counts);
        }
        Ok(CorrectedRows { counts, took: start.elapsed() })
    }

    /// Corrects rows of projections, and copies them to their places in the sinograms of `out`.
    fn turn_projections<'s>(&self, rows: &[usize], out: impl Iterator<Item = &'s mut [f32]>) -> Result<Counts> {
        let (bins, used) = (self.stack.width(), self.used);
        let mut rows_of: Vec<Vec<&mut [f32]>> = used.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for sinogram in out {
            for (rows, row) in rows_of.iter_mut().zip(sinogram.chunks_mut(bins)) {
                rows.push(row);
            }
        }
        let runs = runs_of(rows);
        let turn = |mut band: Vec<f32>, mut counts: Counts, (rows, &page): (Vec<&mut [f32]>, &usize)| {
            let mut rows = rows.into_iter();
            for run in &runs {
                let read = self.read_for(run);
                band.resize(read.len() * bins, 0.0);
                counts += self.correct_projection(page, run, &self.counted(run), &mut band)?.counts;
                let wanted = &band[(run.start - read.start) * bins..(run.end - read.start) * bins];
                wanted.chunks(bins).zip(rows.by_ref()).for_each(|(wanted, row)| row.copy_from_slice(wanted));
            }
            Ok((band, counts))
        };
        // a band and its counts go from projection to projection
        let start = || (Vec::new(), Counts::default());
        let turned = rows_of.into_par_iter().zip(used).try_fold(start, |(band, counts), next| turn(band, counts, next));
        turned.map(|done: Result<_>| Ok(done?.1)).try_reduce(Counts::default, |a, b| Ok(a + b))
    }

    /// Returns, for every sinogram of `out`, the part at its beginning that holds what the detector saw.
    fn seen<'s>(&self, out: &'s mut [f32]) -> impl IndexedParallelIterator<Item = &'s mut [f32]> {
        let seen = self.seen_len();
        out.par_chunks_mut(self.sinogram_len()).map(move |sinogram| &mut sinogram[..seen])
    }

    /// Does the steps on sinograms, if the host does them, and extends the rows of an extended field, if the host
    /// corrects rows.
    fn finish_sinograms(&self, out: &mut [f32], steps: StepBackends) -> Counts {
        let mut counts = Counts::default();
        if steps.sinograms == StepBackend::Host {
            let sinograms = self.seen(out).map(|sinogram| {
                let mut counts = Counts::default();
                self.preparation.sinogram(sinogram, &mut counts);
                counts
            });
            counts = sinograms.reduce(Counts::default, Counts::add);
        }
        if let (Some(field), StepBackend::Host) = (self.field, steps.rows) {
            out.par_chunks_mut(self.sinogram_len()).for_each(|sinogram| field.extend(sinogram));
        }
        counts
    }
}

/// Correction of rows on the host, which keeps the block that it corrected last, where steps need blocks.
#[derive(Default)]
pub struct HostFeed {
    kept: Mutex<CorrectedBlock>,
}

/// The block that was corrected last.
#[derive(Default)]
struct CorrectedBlock {
    /// Numbers of the rows.
    rows: Vec<usize>,
    /// Sinograms of the rows as the detector saw them.
    sinograms: Vec<f32>,
    /// Counts of replaced values, until a run has taken them: a search or percentiles may read a block first.
    counts: Counts,
}

impl HostFeed {
    /// Frees the block that is kept, for when the next reader does not start in it.
    pub fn forget(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = CorrectedBlock::default();
    }

    /// Reads corrected sinograms `[row][projection][bin]` of some rows of the detector into `out`, which has their
    /// size, with the steps on sinograms and the extension of rows as far as the host does them.
    ///
    /// Returns the counts of replaced values; of a block that is kept, only if the rows are `counted`, as those read
    /// for a run are.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn read(
        &self,
        scan: &ScanRows,
        which: &[usize],
        steps: StepBackends,
        counted: bool,
        out: &mut [f32],
    ) -> Result<Counts> {
        let counts = self.correct(scan, which, counted, scan.seen(out).collect())?;
        Ok(counts + scan.finish_sinograms(out, steps))
    }

    /// Reads sinograms `[projection][bin]` of some rows as the detector saw them: corrected, with their stripes.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn read_seen(&self, scan: &ScanRows, which: &[usize]) -> Result<Vec<Vec<f32>>> {
        let mut sinograms: Vec<_> = which.iter().map(|_| vec![0f32; scan.seen_len()]).collect();
        self.correct(scan, which, false, sinograms.iter_mut().map(Vec::as_mut_slice).collect())?;
        Ok(sinograms)
    }

    /// Corrects each of the rows into its sinogram of `out`, as the detector saw it.
    fn correct(&self, scan: &ScanRows, which: &[usize], counted: bool, out: Vec<&mut [f32]>) -> Result<Counts> {
        if scan.sinograms {
            let one = |(sinogram, &page): (&mut [f32], &usize)| {
                let counts = scan.correct_sinogram(page, sinogram)?.counts;
                Ok(if scan.wanted.binary_search(&page).is_ok() { counts } else { Counts::default() })
            };
            return out.into_par_iter().zip(which).map(one).try_reduce(Counts::default, |a, b| Ok(a + b));
        }
        let Some(block) = scan.preparation.block() else {
            return scan.turn_projections(which, out.into_iter());
        };
        let seen = scan.seen_len();
        let mut counts = Counts::default();
        // rows in order: most are in the block that was corrected last
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for (sinogram, &row) in out.into_iter().zip(which) {
            let first = row / block * block;
            let rows: Vec<usize> = (first..(first + block).min(scan.height())).collect();
            if kept.rows != rows {
                kept.rows.clear();
                kept.sinograms.resize(rows.len() * seen, 0.0);
                kept.counts = scan.turn_projections(&rows, kept.sinograms.chunks_mut(seen))?;
                kept.rows = rows;
            }
            if counted {
                counts += std::mem::take(&mut kept.counts);
            }
            let at = (row - first) * seen;
            sinogram.copy_from_slice(&kept.sinograms[at..at + seen]);
        }
        Ok(counts)
    }
}
