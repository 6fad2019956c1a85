//! Where values were replaced: rows that lost too many, and detector bins that fail in most projections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Projections in which replaced values are counted bin by bin; more would not tell more, but take time.
const WATCHED: usize = 64;
/// Share of a row's values that may be replaced without a remark.
const MOST: f64 = 0.01;

/// Counts replaced values of a scan by row, and in some of its projections by bin.
#[derive(Debug, Default)]
pub struct Defects {
    /// Values of a row, over all projections.
    values: f64,
    /// Replaced values of every row.
    rows: Vec<AtomicU64>,
    /// Projections that are watched, by their number: spread evenly over those that are used.
    watched: Vec<bool>,
    /// How many these are.
    count: usize,
    /// In how many of them each bin of a row was replaced, for rows in which any was.
    bins: Mutex<BTreeMap<usize, Vec<u32>>>,
}

impl Defects {
    /// For the projections of these ascending numbers, of `rows` rows of `bins`.
    pub fn new(used: &[usize], rows: usize, bins: usize) -> Self {
        let count = used.len().min(WATCHED);
        let mut watched = vec![false; used.last().map_or(0, |last| last + 1)];
        for place in 0..count {
            watched[used[place * used.len() / count]] = true;
        }
        let rows = (0..rows).map(|_| AtomicU64::default()).collect();
        Defects { values: (used.len() * bins) as f64, rows, watched, count, bins: Mutex::default() }
    }

    /// Whether the bins of a projection are to be counted with [`add_bins`](Self::add_bins).
    pub fn watches(&self, projection: usize) -> bool {
        self.watched.get(projection).copied().unwrap_or(false)
    }

    /// `count` more values of a row were replaced.
    pub fn add(&self, row: usize, count: u64) {
        if count > 0
            && let Some(replaced) = self.rows.get(row)
        {
            replaced.fetch_add(count, Relaxed);
        }
    }

    /// The bins of a row, of `bins`, that were replaced in a projection that is watched.
    pub fn add_bins(&self, row: usize, bins: usize, replaced: impl Fn(usize) -> bool) {
        let mut rows = self.bins.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = rows.entry(row).or_insert_with(|| vec![0; bins]);
        for (bin, count) in counts.iter_mut().enumerate() {
            *count += u32::from(replaced(bin));
        }
    }

    /// Rows of whose values more than 1 % were replaced, ascending.
    pub fn spoilt_rows(&self) -> Vec<usize> {
        let spoilt = |row: &usize| self.rows[*row].load(Relaxed) as f64 > MOST * self.values;
        (0..self.rows.len()).filter(spoilt).collect()
    }

    /// Row and bin of what was replaced in more than half of the projections that are watched, ascending.
    pub fn failing_bins(&self) -> Vec<(usize, usize)> {
        let rows = self.bins.lock().unwrap_or_else(PoisonError::into_inner);
        let failing = |(&row, counts): (&usize, &Vec<u32>)| -> Vec<(usize, usize)> {
            let most = |count: u32| 2 * count as usize > self.count;
            counts.iter().enumerate().filter(|(_, count)| most(**count)).map(|(bin, _)| (row, bin)).collect()
        };
        rows.iter().flat_map(failing).collect()
    }

    /// Starts counting again.
    pub fn reset(&self) {
        self.rows.iter().for_each(|row| row.store(0, Relaxed));
        self.bins.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_bins_that_fail() {
        let used: Vec<usize> = (10..210).collect();
        let defects = Defects::new(&used, 3, 50);
        assert_eq!((0..300).filter(|&p| defects.watches(p)).count(), WATCHED);
        assert!(defects.watches(10) && !defects.watches(0) && !defects.watches(1000));
        for p in used.into_iter().filter(|&p| defects.watches(p)) {
            defects.add_bins(1, 50, |bin| bin == 7 || bin == 8 && p < 60);
        }
        assert_eq!(defects.failing_bins(), [(1, 7)]);
        // of 10000 values
        defects.add(0, 100);
        defects.add(2, 101);
        assert_eq!(defects.spoilt_rows(), [2]);
        defects.reset();
        assert!(defects.failing_bins().is_empty() && defects.spoilt_rows().is_empty());
        assert!(Defects::new(&[], 2, 4).failing_bins().is_empty());
    }
}
