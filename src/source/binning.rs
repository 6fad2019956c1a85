//! Binning of pixels.

use super::StoredSamples;

/// Binning of pixels by averaging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binning {
    /// Number of bins and, for projections, of rows that form one; for sinograms, number of bins and of pages.
    pub by: usize,
    /// True if pages are detector rows, as for sinograms.
    pub pages: bool,
}

impl Binning {
    /// No binning.
    pub const NONE: Binning = Binning { by: 1, pages: false };

    /// Returns the number of rows of a page that form one binned row.
    pub fn rows(self) -> usize {
        if self.pages { 1 } else { self.by }
    }

    /// Returns the number of pages that form one binned page.
    pub fn pages(self) -> usize {
        if self.pages { self.by } else { 1 }
    }
}

/// Layout in memory of detector rows whose pixels are not binned yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredRows {
    pub samples: StoredSamples,
    /// Number of bins, and of rows, that form one.
    pub by: usize,
    /// Number of samples of a row as it is stored.
    pub width: usize,
}

impl StoredRows {
    /// Describes rows of `bins` bins with one sample each.
    pub fn unbinned(samples: StoredSamples, bins: usize) -> Self {
        StoredRows { samples, by: 1, width: bins }
    }

    /// Returns the number of bins of a row after binning.
    pub fn bins(self) -> usize {
        self.width / self.by.max(1)
    }

    /// Returns the number of bytes of the stored rows that form one binned row.
    pub fn row_bytes(self) -> usize {
        self.by * self.width * self.samples.sample.bytes()
    }
}

/// Accumulates the means of binned pixels, `width` per row.
pub struct Means {
    binning: Binning,
    width: usize,
    sums: Vec<f64>,
}

impl Means {
    /// Creates sums for `rows` binned rows.
    pub fn new(binning: Binning, width: usize, rows: usize) -> Means {
        Means { binning, width, sums: vec![0.0; width * rows] }
    }

    /// Adds detector rows of `detector` bins each; every binned row must get all of its rows.
    pub fn add(&mut self, values: &[f32], detector: usize) {
        for (row, values) in values.chunks(detector).enumerate() {
            let first = row / self.binning.rows() * self.width;
            let sums = &mut self.sums[first..first + self.width];
            for (sum, values) in sums.iter_mut().zip(values.chunks_exact(self.binning.by)) {
                *sum += values.iter().copied().map(f64::from).sum::<f64>();
            }
        }
    }

    /// Writes the means to `out`.
    pub fn write(&self, out: &mut [f32]) {
        let count = (self.binning.by * self.binning.by) as f64;
        out.iter_mut().zip(&self.sums).for_each(|(value, sum)| *value = (sum / count) as f32);
    }
}
