//! Pages as they are stored, projections or sinograms, that are corrected and not reconstructed.

use super::{CorrectedRows, ScanRows, parts_of};
use crate::error::Result;
use crate::operations::DetectorBatch;
use crate::steps::Counts;
use rayon::prelude::*;
use std::ops::Range;
use std::time::{Duration, Instant};

impl<'a> ScanRows<'a> {
    /// Returns the numbers of the pages that are corrected, ascending: the sinograms that are wanted, or all projections.
    pub fn pages(&self) -> &'a [usize] {
        if self.sinograms { self.wanted } else { self.used }
    }

    /// Returns the number of values of a page.
    pub fn page_values(&self) -> usize {
        self.stack.width() * self.stack.height()
    }

    /// Returns the batch of the pages at some positions.
    pub fn batch_of_pages(&self, places: Range<usize>) -> DetectorBatch {
        match self.sinograms {
            true => self.of_all_projections(&self.wanted[places], 0),
            false => self.batch(0..self.height(), places),
        }
    }

    /// Corrects all pages on the host, with all threads, as many at once as half of `memory` bytes holds, and passes them on
    /// with their positions. Returns the counts of replaced values, and the time of all threads together without reading.
    ///
    /// # Errors
    /// Errors of reading, and of `write`.
    pub fn correct_pages(
        &self,
        memory: u64,
        write: impl Fn(Range<usize>, &[f32]) -> Result<()>,
    ) -> Result<(Counts, Duration)> {
        let (pages, page_values) = (self.pages(), self.page_values());
        let held = (memory / 2) as usize / (size_of::<f32>() * page_values);
        let at_once = rayon::current_num_threads().min(held).clamp(1, pages.len());
        let mut together = vec![0f32; at_once * page_values];
        let mut all = CorrectedRows::default();
        for places in parts_of(pages.len(), at_once) {
            let values = &mut together[..places.len() * page_values];
            let pages = values.par_chunks_mut(page_values).zip(&pages[places.clone()]);
            let corrected = pages.map(|(values, &page)| self.correct_page(page, values));
            for CorrectedRows { counts, took } in corrected.collect::<Result<Vec<_>>>()? {
                all.counts += counts;
                all.took += took;
            }
            write(places, values)?;
        }
        Ok((all.counts, all.took))
    }

    /// Reads and corrects a page, or of a projection the wanted rows.
    fn correct_page(&self, page: usize, values: &mut [f32]) -> Result<CorrectedRows> {
        if self.sinograms {
            let CorrectedRows { mut counts, took } = self.correct_sinogram(page, values)?;
            let start = Instant::now();
            self.preparation.sinogram(values, &mut counts);
            return Ok(CorrectedRows { counts, took: took + start.elapsed() });
        }
        let (all, bins) = (0..self.height(), self.stack.width());
        let counted = self.counted(&all);
        // steps on images give the same values whatever rows are wanted
        let wanted = if self.preparation.block().is_some() { all } else { counted.clone() };
        let read = self.read_for(&wanted);
        self.correct_projection(page, &wanted, &counted, &mut values[read.start * bins..read.end * bins])
    }
}
