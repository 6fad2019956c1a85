//! The filter on the host, where the device is the host's CPU.

use crate::error::{Error, Result};
use crate::spectrum::Padding;
use host_fft::{Complex, Fft, Real};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Number of slices whose filtered rows are interleaved together, so that writes are contiguous.
const TOGETHER: usize = 16;

/// How the rows of a slice are filtered, and where they are stored.
#[derive(Clone)]
pub struct RowForm {
    pub padding: Padding,
    /// One value for each frequency, with the factor `1 / length` of the inverse transform.
    pub spectrum: Vec<f32>,
    /// Bins of the compound sinogram before the first one of the row.
    pub shift: usize,
}

/// The filter on the host: filters rows `[slice][projection][bin]` into the compound sinogram `[projection][guard, bin,
/// guard][slice]` as `filter.cl` does, on all processors.
pub struct HostFilter {
    bins: usize,
    /// Number of bins of a row of the compound sinogram.
    stored: usize,
    slices: usize,
    guard: usize,
    form: RowForm,
    /// Forms of the first slices, in place of that of all.
    forms: Vec<RowForm>,
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
            stored: bins,
            slices,
            guard,
            form: RowForm { padding, spectrum, shift: 0 },
            forms: Vec::new(),
            weights,
        }
    }

    /// Gives each slice a form of its own, with spectra of the same length, and rows of the compound sinogram `stored` bins.
    ///
    /// # Errors
    /// [`Error::Internal`] if there are more forms than slices, or if a row does not fit.
    pub fn vary(&mut self, forms: Vec<RowForm>, stored: usize) -> Result<()> {
        let (length, bins) = (self.form.spectrum.len(), self.bins);
        let fits = |form: &RowForm| form.spectrum.len() == length && form.shift + bins <= stored;
        if forms.len() > self.slices || !forms.iter().all(fits) || stored < bins {
            return Err(Error::Internal("forms of rows that do not fit into a pass".into()));
        }
        (self.forms, self.stored) = (forms, stored);
        Ok(())
    }

    /// Returns the number of bins of a row of the compound sinogram, without its guards.
    pub fn stored(&self) -> usize {
        self.stored
    }

    fn form(&self, slice: usize) -> &RowForm {
        self.forms.get(slice).unwrap_or(&self.form)
    }

    /// Filters some projections of the slices in `rows`; the other slices of the sinogram become 0.
    pub fn run(&self, projections: Range<usize>, rows: &[f32], sinogram: &mut [f32]) {
        self.interleave(projections, rows, sinogram, |form, values, scratch| {
            self.forward.process_with_scratch(values, scratch);
            values.iter_mut().zip(&form.spectrum).for_each(|(value, factor)| *value *= *factor);
            self.backward.process_with_scratch(values, scratch);
        });
    }

    /// Stores the rows in the compound sinogram without filtering them.
    pub fn store(&self, projections: Range<usize>, rows: &[f32], sinogram: &mut [f32]) {
        self.interleave(projections, rows, sinogram, |_, _, _| {});
    }

    fn interleave(
        &self,
        projections: Range<usize>,
        rows: &[f32],
        sinogram: &mut [f32],
        filter: impl Fn(&RowForm, &mut [Complex<f32>], &mut [Complex<f32>]) + Sync,
    ) {
        let (bins, stored, slices, length) = (self.bins, self.stored, self.slices, self.form.spectrum.len());
        let all_weights = &self.weights[projections];
        let projections = all_weights.len();
        let valid = rows.len() / (projections * bins).max(1);
        let width = (stored + 2 * self.guard) * slices;
        let zero = Complex::new(0.0, 0.0);
        let scratch = self.forward.get_inplace_scratch_len().max(self.backward.get_inplace_scratch_len());
        let fresh = || (vec![zero; length], vec![zero; scratch], vec![[0f32; 2]; stored * TOGETHER]);
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
                        let form = self.form(slice);
                        let shift = form.shift;
                        if slice < valid {
                            let row = |p: usize| {
                                let from = (slice * projections + p) * bins;
                                (p < projections).then(|| &rows[from..from + bins])
                            };
                            pad_rows(form.padding, row(first), row(first + 1), bins, values);
                            filter(form, values, scratch);
                        } else {
                            values.fill(zero);
                        }
                        for (bin, value) in values[..bins].iter().enumerate() {
                            waiting[(shift + bin) * TOGETHER + place] = [weights[0] * value.re, weights[1] * value.im];
                        }
                        for bin in (0..shift).chain(shift + bins..stored) {
                            waiting[bin * TOGETHER + place] = [0.0; 2];
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
pub fn pad_rows(
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

    /// Slices of one pass with a form each have the values that they have alone, moved by their shifts, between zeros.
    #[test]
    fn slices_of_a_pass_have_forms_of_their_own() {
        let (bins, projections, slices, guard, stored) = (21, 5, 18, 3, 27);
        let rows: Vec<f32> = (0..slices * projections * bins).map(|i| (i as f32 * 0.754).sin()).collect();
        let weights: Vec<f32> = (0..projections).map(|p| 1.0 + 0.1 * p as f32).collect();
        let forms: Vec<RowForm> = (0..slices)
            .map(|slice| RowForm {
                padding: [Padding::Edge, Padding::Zero, Padding::Mirror][slice % 3],
                spectrum: (0..64).map(|i: i32| (i.min(64 - i) as f32 * (1.0 + slice as f32)) / 64.0).collect(),
                shift: slice % 7,
            })
            .collect();
        let filter = |slices: usize, guard: usize, of: &RowForm| {
            HostFilter::new(bins, slices, guard, of.padding, of.spectrum.clone(), weights.clone())
        };
        let mut together = filter(slices, guard, &forms[4]);
        together.vary(forms.clone(), stored).unwrap();
        let mut got = vec![f32::NAN; projections * (stored + 2 * guard) * slices];
        together.run(0..projections, &rows, &mut got);
        let mut want = vec![0f32; got.len()];
        for (slice, (form, rows)) in forms.iter().zip(rows.chunks(projections * bins)).enumerate() {
            let mut alone = vec![f32::NAN; projections * bins];
            filter(1, 0, form).run(0..projections, rows, &mut alone);
            for (i, value) in alone.into_iter().enumerate() {
                let at = i / bins * (stored + 2 * guard) + guard + form.shift + i % bins;
                want[at * slices + slice] = value;
            }
        }
        assert!(got.iter().zip(&want).all(|(got, want)| got.to_bits() == want.to_bits()));
        assert!(together.vary(forms.clone(), stored - 1).is_err(), "a row that does not fit");
        assert!(filter(17, guard, &forms[0]).vary(forms, stored).is_err(), "more slices than a pass has");
    }

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
