//! Location of replaced values: rows with too many of them, and detector bins that fail in most projections.

use std::collections::BTreeMap;
use std::ops::AddAssign;

/// Number of projections in which replaced values are counted bin by bin; more would only take time.
const WATCHED: usize = 64;
/// Share of a row's values that may be replaced without a warning.
const MOST: f64 = 0.01;

/// Replaced values by row and, in watched projections, by bin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefectCounts {
    /// Number of replaced values of each row that has any.
    rows: BTreeMap<usize, u64>,
    /// How often each bin was replaced, for rows in which any bin was.
    bins: BTreeMap<usize, Vec<u32>>,
}

impl DefectCounts {
    /// Adds `count` replaced values of a row.
    pub fn add(&mut self, row: usize, count: u64) {
        if count > 0 {
            *self.rows.entry(row).or_default() += count;
        }
    }

    /// Adds the replaced bins of a row of `bins` in a watched projection.
    pub fn add_bins(&mut self, row: usize, bins: usize, replaced: impl Fn(usize) -> bool) {
        let counts = self.bins.entry(row).or_insert_with(|| vec![0; bins]);
        for (bin, count) in counts.iter_mut().enumerate() {
            *count += u32::from(replaced(bin));
        }
    }

    /// Adds the numbers of times that each bin of a row was replaced.
    pub fn add_row(&mut self, row: usize, counts: &[u32]) {
        let sums = self.bins.entry(row).or_insert_with(|| vec![0; counts.len()]);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
}

impl AddAssign for DefectCounts {
    fn add_assign(&mut self, other: Self) {
        for (row, count) in other.rows {
            self.add(row, count);
        }
        for (row, counts) in other.bins {
            self.add_row(row, &counts);
        }
    }
}

/// Limits for replaced values in a scan.
#[derive(Debug)]
pub struct Defects {
    /// Number of values of a row over all projections.
    values: f64,
    bins: usize,
    /// True for each projection that is watched; watched projections are spread evenly over the used ones.
    watched: Vec<bool>,
    /// Number of watched projections.
    count: usize,
}

impl Defects {
    /// Returns the limits for projections with the ascending numbers `used` and rows of `bins`.
    pub fn new(used: &[usize], bins: usize) -> Self {
        let count = used.len().min(WATCHED);
        let mut watched = vec![false; used.last().map_or(0, |last| last + 1)];
        for place in 0..count {
            watched[used[place * used.len() / count]] = true;
        }
        Defects { values: (used.len() * bins) as f64, bins, watched, count }
    }

    /// Reports whether the bins of a projection are counted with [`DefectCounts::add_bins`].
    pub fn watches(&self, projection: usize) -> bool {
        self.watched.get(projection).copied().unwrap_or(false)
    }

    /// Returns the rows in which more than 1 % of the values were replaced, ascending. Values of the projections
    /// `lost`, all of which may have been replaced, do not count.
    pub fn spoilt_rows(&self, counts: &DefectCounts, lost: &[usize]) -> Vec<usize> {
        let of_lost = (lost.len() * self.bins) as f64;
        let most = of_lost + MOST * (self.values - of_lost).max(0.0);
        let spoilt = counts.rows.iter().filter(|(_, count)| **count as f64 > most);
        spoilt.map(|(row, _)| *row).collect()
    }

    /// Returns row and bin of the values that were replaced in more than half of the watched projections, ascending,
    /// however often they were replaced in the projections `lost`.
    pub fn failing_bins(&self, counts: &DefectCounts, lost: &[usize]) -> Vec<(usize, usize)> {
        let lost = lost.iter().filter(|&&projection| self.watches(projection)).count();
        let failing = |(&row, counts): (&usize, &Vec<u32>)| -> Vec<(usize, usize)> {
            let most = |count: u32| 2 * (count as usize).saturating_sub(lost) > self.count - lost;
            counts.iter().enumerate().filter(|(_, count)| most(**count)).map(|(bin, _)| (row, bin)).collect()
        };
        counts.bins.iter().flat_map(failing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_bins_that_fail() {
        let used: Vec<usize> = (10..210).collect();
        let defects = Defects::new(&used, 50);
        assert_eq!((0..300).filter(|&p| defects.watches(p)).count(), WATCHED);
        assert!(defects.watches(10) && !defects.watches(0) && !defects.watches(1000));
        let mut parts = [DefectCounts::default(), DefectCounts::default()];
        for p in used.into_iter().filter(|&p| defects.watches(p)) {
            parts[p % 2].add_bins(1, 50, |bin| bin == 7 || bin == 8 && p < 60);
        }
        // of 10000 values
        parts[0].add(0, 100);
        parts[0].add(2, 50);
        parts[1].add(2, 51);
        let [one, other] = parts;
        let (mut sum, mut turned) = (one.clone(), other.clone());
        sum += other;
        turned += one;
        assert_eq!(sum, turned);
        assert_eq!(defects.failing_bins(&sum, &[]), [(1, 7)]);
        assert_eq!(defects.spoilt_rows(&sum, &[]), [2]);
        assert!(Defects::new(&[], 4).failing_bins(&DefectCounts::default(), &[]).is_empty());
    }

    #[test]
    fn lost_projections_spoil_no_rows_and_bins() {
        let used: Vec<usize> = (0..100).collect();
        let lost: Vec<usize> = (20..80).collect();
        let defects = Defects::new(&used, 50);
        let mut counts = DefectCounts::default();
        for p in used.iter().filter(|p| defects.watches(**p)) {
            counts.add_bins(0, 50, |bin| lost.contains(p) || bin == 3);
        }
        counts.add(0, 60 * 50);
        counts.add(1, 60 * 50 + 21);
        assert_eq!((defects.spoilt_rows(&counts, &[]).len(), defects.failing_bins(&counts, &[]).len()), (2, 50));
        assert_eq!(defects.spoilt_rows(&counts, &lost), [1]);
        assert_eq!(defects.failing_bins(&counts, &lost), [(0, 3)]);
    }
}
