//! Convolution of real images on a torus, by transforms on the host.

use host_fft::{Complex, ComplexToReal, Fft, Real, RealToComplex};
use rayon::prelude::*;
use std::sync::Arc;

/// Number of columns that are transformed together.
const COLUMNS: usize = 16;

/// Transforms of real images of `side x side` pixels.
pub struct Torus {
    side: usize,
    rows: Arc<dyn RealToComplex<f32>>,
    rows_back: Arc<dyn ComplexToReal<f32>>,
    columns: Arc<dyn Fft<f32>>,
    columns_back: Arc<dyn Fft<f32>>,
}

/// Memory in which images are transformed.
#[derive(Default)]
pub struct TorusMemory {
    row: Vec<f32>,
    spectra: Vec<Complex<f32>>,
    columns: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
}

impl Torus {
    pub fn new(side: usize) -> Torus {
        Torus {
            side,
            rows: f32::real_forward(side),
            rows_back: f32::real_inverse(side),
            columns: f32::forward(side),
            columns_back: f32::inverse(side),
        }
    }

    /// Returns the number of frequencies along x: those along y for each of them form a response.
    pub fn frequencies(&self) -> usize {
        self.side / 2 + 1
    }

    /// Returns the factor that a response contains, as transforms are not normalised.
    pub fn scale(&self) -> f64 {
        (self.side as f64).powi(-2)
    }

    /// Convolves an image of `width x width` pixels in a corner of the torus, which is 0 elsewhere, and stores the same
    /// corner of the result. `response` has the real spectrum `[frequency along x][frequency along y]`, with
    /// [`scale`](Self::scale).
    pub fn convolve(&self, from: &[f32], to: &mut [f32], response: &[f32], memory: &mut TorusMemory) {
        let (side, count) = (self.side, self.frequencies());
        let width = (from.len() as f64).sqrt() as usize;
        let zero = Complex::new(0.0, 0.0);
        let scratch = self.rows.get_scratch_len().max(self.rows_back.get_scratch_len());
        let scratch =
            scratch.max(self.columns.get_inplace_scratch_len()).max(self.columns_back.get_inplace_scratch_len());
        memory.row.resize(side, 0.0);
        memory.spectra.resize(width * count, zero);
        memory.columns.resize(COLUMNS * side, zero);
        memory.scratch.resize(scratch, zero);
        let TorusMemory { row, spectra, columns, scratch } = memory;
        for (values, spectrum) in from.chunks_exact(width).zip(spectra.chunks_exact_mut(count)) {
            row[..width].copy_from_slice(values);
            row[width..].fill(0.0);
            // fails for wrong lengths only
            let transformed = self.rows.process_with_scratch(row, spectrum, scratch);
            debug_assert!(transformed.is_ok());
        }
        for first in (0..count).step_by(COLUMNS) {
            let some = COLUMNS.min(count - first);
            let columns = &mut columns[..some * side];
            for (y, spectrum) in spectra.chunks_exact(count).enumerate() {
                for (column, value) in columns.chunks_exact_mut(side).zip(&spectrum[first..]) {
                    column[y] = *value;
                }
            }
            for column in columns.chunks_exact_mut(side) {
                column[width..].fill(zero);
            }
            self.columns.process_with_scratch(columns, scratch);
            for (value, factor) in columns.iter_mut().zip(&response[first * side..]) {
                *value *= *factor;
            }
            self.columns_back.process_with_scratch(columns, scratch);
            for (y, spectrum) in spectra.chunks_exact_mut(count).enumerate() {
                for (column, value) in columns.chunks_exact(side).zip(&mut spectrum[first..]) {
                    *value = column[y];
                }
            }
        }
        for (spectrum, values) in spectra.chunks_exact_mut(count).zip(to.chunks_exact_mut(width)) {
            // of real rows; rounding leaves some
            spectrum[0].im = 0.0;
            spectrum[count - 1].im = 0.0;
            let transformed = self.rows_back.process_with_scratch(spectrum, row, scratch);
            debug_assert!(transformed.is_ok());
            values.copy_from_slice(&row[..width]);
        }
    }
}

/// Returns the real spectrum of an even kernel `[y][x]` on a torus, as [`Torus::convolve`] takes it, without the scale.
pub fn even_spectrum(kernel: &[f64], side: usize) -> Vec<f64> {
    let count = side / 2 + 1;
    let rows = f64::real_forward(side);
    let columns = f64::forward(side);
    let zero = Complex::new(0.0, 0.0);
    let mut spectra = vec![zero; side * count];
    let row_memory = || (vec![0.0; side], rows.make_scratch_vec());
    let of_rows = kernel.par_chunks_exact(side).zip(spectra.par_chunks_exact_mut(count));
    of_rows.for_each_init(row_memory, |(row, scratch), (values, spectrum)| {
        row.copy_from_slice(values);
        let transformed = rows.process_with_scratch(row, spectrum, scratch);
        debug_assert!(transformed.is_ok());
    });
    let mut spectrum = vec![0.0; count * side];
    let column_memory = || (vec![zero; COLUMNS * side], vec![zero; columns.get_inplace_scratch_len()]);
    let of_columns = spectrum.par_chunks_mut(COLUMNS * side).enumerate();
    of_columns.for_each_init(column_memory, |(together, scratch), (number, to)| {
        let some = &mut together[..to.len()];
        for (y, row) in spectra.chunks_exact(count).enumerate() {
            for (column, value) in some.chunks_exact_mut(side).zip(&row[number * COLUMNS..]) {
                column[y] = *value;
            }
        }
        columns.process_with_scratch(some, scratch);
        for (to, value) in to.iter_mut().zip(some) {
            *to = value.re;
        }
    });
    spectrum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn convolution_is_a_sum_of_shifted_kernels() {
        let (side, width) = (16usize, 8usize);
        let at = |x: i64| x.rem_euclid(side as i64) as usize;
        let mut kernel = vec![0.0; side * side];
        for (y, x, value) in [(0, 0, 2.0), (1, 0, 0.5), (2, 3, -0.25), (1, -2, 0.125)] {
            kernel[at(y) * side + at(x)] = value;
            kernel[at(-y) * side + at(-x)] = value;
        }
        let torus = Torus::new(side);
        let response: Vec<f32> = even_spectrum(&kernel, side).iter().map(|v| (v * torus.scale()) as f32).collect();
        let image: Vec<f32> = (0..width * width).map(|i| ((i * 37 % 17) as f32 - 8.0) / 8.0).collect();
        let mut got = vec![0.0; width * width];
        torus.convolve(&image, &mut got, &response, &mut TorusMemory::default());
        for y in 0..width as i64 {
            for x in 0..width as i64 {
                let mut sum = 0.0;
                for (v, row) in image.chunks_exact(width).enumerate() {
                    for (u, value) in row.iter().enumerate() {
                        sum += f64::from(*value) * kernel[at(y - v as i64) * side + at(x - u as i64)];
                    }
                }
                let error = (sum - f64::from(got[y as usize * width + x as usize])).abs();
                assert!(error < 1e-6, "{x} {y}: {error}");
            }
        }
    }
}
