//! Filtering on the host: the whole filter if the device is the host's CPU, and transforms for devices on which clFFT
//! does not work.

use super::RowTransform;
use crate::device::Session;
use crate::error::Result;
use crate::kernel::Padding;
use host_fft::{Complex, Fft, Real};
use opencl3::event::Event;
use opencl3::memory::Buffer;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Transforms of rows on the host: downloads the rows, transforms them on all processors, and uploads them again.
pub struct HostRows {
    rows: Vec<[f32; 2]>,
    forward: Arc<dyn Fft<f32>>,
    backward: Arc<dyn Fft<f32>>,
}

impl HostRows {
    /// Plans transforms of `batch` rows of `length` complex values.
    pub fn new(length: usize, batch: usize) -> Self {
        HostRows { rows: vec![[0.0; 2]; length * batch], forward: f32::forward(length), backward: f32::inverse(length) }
    }

    fn transform(&mut self, session: &Session, buffer: &mut Buffer<[f32; 2]>, fft: &dyn Fft<f32>) -> Result<Event> {
        session.read(buffer, &mut self.rows, "padded rows")?;
        self.rows.par_chunks_mut(fft.len()).for_each(|row| {
            let mut values: Vec<_> = row.iter().map(|v| Complex::new(v[0], v[1])).collect();
            fft.process(&mut values);
            for (value, result) in row.iter_mut().zip(values) {
                *value = [result.re, result.im];
            }
        });
        session.write(buffer, &self.rows, "padded rows")
    }
}

impl RowTransform for HostRows {
    fn forward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        let fft = self.forward.clone();
        self.transform(session, rows, fft.as_ref())
    }

    fn backward(&mut self, session: &Session, rows: &mut Buffer<[f32; 2]>) -> Result<Event> {
        let fft = self.backward.clone();
        self.transform(session, rows, fft.as_ref())
    }
}

/// Number of slices whose filtered rows are interleaved together, so that writes are contiguous.
const TOGETHER: usize = 16;

/// The filter on the host: filters rows `[slice][projection][bin]` into the compound sinogram `[projection][guard, bin,
/// guard][slice]` as `filter.cl` does, on all processors.
pub struct HostFilter {
    bins: usize,
    slices: usize,
    guard: usize,
    padding: Padding,
    spectrum: Vec<f32>,
    weights: Vec<f32>,
    forward: Arc<dyn Fft<f32>>,
    backward: Arc<dyn Fft<f32>>,
}

impl HostFilter {
    /// Plans the filter of sinograms with a weight for every projection; `spectrum` includes the factor `1 / length` of
    /// the inverse transform.
    pub fn new(
        bins: usize,
        slices: usize,
        guard: usize,
        padding: Padding,
        spectrum: Vec<f32>,
        weights: Vec<f32>,
    ) -> Self {
        HostFilter {
            forward: f32::forward(spectrum.len()),
            backward: f32::inverse(spectrum.len()),
            bins,
            slices,
            guard,
            padding,
            spectrum,
            weights,
        }
    }

    /// Filters some projections of the slices in `rows`; the other slices of the sinogram become 0.
    pub fn run(&self, projections: Range<usize>, rows: &[f32], sinogram: &mut [f32]) {
        self.interleave(projections, rows, sinogram, |values, scratch| {
            self.forward.process_with_scratch(values, scratch);
            values.iter_mut().zip(&self.spectrum).for_each(|(value, factor)| *value *= *factor);
            self.backward.process_with_scratch(values, scratch);
        });
    }

    /// Stores the rows in the compound sinogram without filtering them.
    pub fn store(&self, projections: Range<usize>, rows: &[f32], sinogram: &mut [f32]) {
        self.interleave(projections, rows, sinogram, |_, _| {});
    }

    fn interleave(
        &self,
        projections: Range<usize>,
        rows: &[f32],
        sinogram: &mut [f32],
        filter: impl Fn(&mut [Complex<f32>], &mut [Complex<f32>]) + Sync,
    ) {
        let (bins, slices, length) = (self.bins, self.slices, self.spectrum.len());
        let all_weights = &self.weights[projections];
        let projections = all_weights.len();
        let valid = rows.len() / (projections * bins).max(1);
        let width = (bins + 2 * self.guard) * slices;
        let zero = Complex::new(0.0, 0.0);
        let scratch = self.forward.get_inplace_scratch_len().max(self.backward.get_inplace_scratch_len());
        let fresh = || (vec![zero; length], vec![zero; scratch], vec![[0f32; 2]; bins * TOGETHER]);
        // two projections per task, which form one complex row of each slice
        sinogram.par_chunks_mut(2 * width).enumerate().for_each_init(
            fresh,
            |(values, scratch, waiting), (pair, out)| {
                let first = 2 * pair;
                let weights = [all_weights[first], all_weights.get(first + 1).copied().unwrap_or(0.0)];
                let edge = self.guard * slices;
                for row in out.chunks_mut(width) {
                    row[..edge].fill(0.0);
                    row[width - edge..].fill(0.0);
                }
                for start in (0..slices).step_by(TOGETHER) {
                    let count = TOGETHER.min(slices - start);
                    for place in 0..count {
                        let slice = start + place;
                        if slice < valid {
                            let row = |p: usize| {
                                let from = (slice * projections + p) * bins;
                                (p < projections).then(|| &rows[from..from + bins])
                            };
                            pad_rows(self.padding, row(first), row(first + 1), bins, values);
                            filter(values, scratch);
                        } else {
                            values.fill(zero);
                        }
                        for (bin, value) in values[..bins].iter().enumerate() {
                            waiting[bin * TOGETHER + place] = [weights[0] * value.re, weights[1] * value.im];
                        }
                    }
                    for (part, row) in out.chunks_mut(width).enumerate() {
                        for (bin, values) in waiting.chunks(TOGETHER).enumerate() {
                            let to = edge + bin * slices + start;
                            for (to, value) in row[to..to + count].iter_mut().zip(values) {
                                *to = value[part];
                            }
                        }
                    }
                }
            },
        );
    }
}

/// Combines two rows into one complex row that is padded to the length of `values`; see `padding.cl`.
pub(super) fn pad_rows(
    padding: Padding,
    real: Option<&[f32]>,
    imaginary: Option<&[f32]>,
    bins: usize,
    values: &mut [Complex<f32>],
) {
    let (bins, length) = (bins as isize, values.len() as isize);
    let right = bins + (length - bins + 1) / 2;
    for (x, value) in values.iter_mut().enumerate() {
        let mut i = x as isize;
        if i >= right {
            i -= length;
        }
        let inside = (0..bins).contains(&i);
        if padding == Padding::Mirror {
            i = i.rem_euclid(2 * bins);
            i = i.min(2 * bins - 1 - i);
        }
        let at = i.clamp(0, bins - 1) as usize;
        let of = |row: Option<&[f32]>| match row {
            Some(row) if inside || padding != Padding::Zero => row[at],
            _ => 0.0,
        };
        *value = Complex::new(of(real), of(imaginary));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rows_are_mirrored_again_and_again() {
        for bins in [1usize, 2, 20, 21, 22, 33, 42, 43, 65, 85, 1025, 1365] {
            let length = crate::spectrum::padded_length(bins);
            let row: Vec<f32> = (0..bins).map(|bin| bin as f32).collect();
            // a row and its mirror image in turn
            let both: Vec<f32> = row.iter().chain(row.iter().rev()).copied().collect();
            let left = (length - bins) / 2;
            let at = |x: usize| if x < length - left { x } else { 4 * both.len() * length + x - length };
            let mut padded = vec![Complex::default(); length];
            pad_rows(Padding::Mirror, Some(&row), Some(&row), bins, &mut padded);
            for (x, value) in padded.iter().enumerate() {
                let want = both[at(x) % both.len()];
                assert_eq!((value.re, value.im), (want, want), "{bins}: {x}");
            }
        }
    }
}
