//! Means of neighbouring pixels instead of pixels.

/// What becomes one pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binning {
    /// Bins and, of projections, rows; of sinograms, pages.
    pub by: usize,
    /// Whether the pages are the detector's rows, as those of sinograms are.
    pub pages: bool,
}

impl Binning {
    /// Nothing is binned.
    pub const NONE: Binning = Binning { by: 1, pages: false };

    /// How many rows of a page are one.
    pub fn rows(self) -> usize {
        if self.pages { 1 } else { self.by }
    }

    /// How many pages are one.
    pub fn pages(self) -> usize {
        if self.pages { self.by } else { 1 }
    }
}

/// Sums that become means, of `width` binned pixels a row.
pub struct Means {
    binning: Binning,
    width: usize,
    sums: Vec<f64>,
}

impl Means {
    /// For so many binned rows.
    pub fn new(binning: Binning, width: usize, rows: usize) -> Means {
        Means { binning, width, sums: vec![0.0; width * rows] }
    }

    /// Adds rows of the detector, `detector` bins wide; of a binned row all of them.
    pub fn add(&mut self, values: &[f32], detector: usize) {
        for (row, values) in values.chunks(detector).enumerate() {
            let first = row / self.binning.rows() * self.width;
            let sums = &mut self.sums[first..first + self.width];
            for (sum, values) in sums.iter_mut().zip(values.chunks_exact(self.binning.by)) {
                *sum += values.iter().copied().map(f64::from).sum::<f64>();
            }
        }
    }

    /// Writes the means.
    pub fn write(&self, out: &mut [f32]) {
        let count = (self.binning.by * self.binning.by) as f64;
        out.iter_mut().zip(&self.sums).for_each(|(value, sum)| *value = (sum / count) as f32);
    }
}
