//! Misfit of the rows in a window to an axis, in closed form for every position.
//!
//! Moving the axis by `t` bins turns the values of the frequency `w` by `exp(i w t)`, so that the quadratic forms of their
//! real and imaginary parts give the misfit `Q(t) = sum over w of a + b cos 2wt + d sin 2wt`.

use super::model::Model;
use super::process::AngleSteps;
use super::window::Windowed;
use host_fft::Complex;
use rayon::prelude::*;
use std::sync::Arc;

/// The misfit of rows in a window, for axes near its middle.
pub struct Misfit {
    pub model: Arc<Model>,
    pub windowed: Windowed,
    /// Terms by row and frequency: `a`, `b`, `d`, and the misfit without an axis.
    terms: Vec<[f64; 4]>,
    /// Index of the band of each frequency.
    band: Vec<usize>,
    /// Half the number of data of a frequency.
    data: f64,
}

/// Reference that a likelihood is relative to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// The data with phases at random.
    Phases,
    /// The data without an axis, with all harmonics in both parts.
    Free,
}

/// Slopes and curvatures of the logarithm of the likelihood, `[row][band]`.
pub struct Spread {
    pub slopes: Vec<Vec<f64>>,
    pub curvatures: Vec<Vec<f64>>,
}

impl Misfit {
    pub fn new(windowed: Windowed, model: Arc<Model>, angles: &AngleSteps, free: bool) -> Misfit {
        let band = model.assign(&windowed.frequencies);
        let count = windowed.frequencies.len();
        let of = |room: &mut Vec<Complex<f64>>, (i, values): (usize, &[Complex<f32>])| {
            let band = &model.bands[band[i % count]];
            let values = angles.values(values.iter().map(|z| Complex::new(f64::from(z.re), f64::from(z.im))));
            let [even_x, even_y, even_xy] = band.even.forms(&values, room);
            let [odd_x, odd_y, odd_xy] = band.odd.forms(&values, room);
            let without = if free { band.free.forms(&values, room) } else { [0.0; 3] };
            [
                (even_x + odd_y + even_y + odd_x) / 2.0,
                (even_x + odd_y - even_y - odd_x) / 2.0,
                odd_xy - even_xy,
                without[0] + without[1],
            ]
        };
        let terms = windowed.values.par_chunks(windowed.projections).enumerate().map_init(Vec::new, of).collect();
        let data = windowed.projections as f64 * windowed.independent;
        Misfit { band, terms, data, windowed, model }
    }

    fn rows(&self) -> usize {
        self.windowed.rows()
    }

    /// Returns frequency and terms (`a`, `b`, `d`, misfit without an axis) of a row in a band.
    fn of(&self, row: usize, band: usize) -> impl Iterator<Item = (f64, [f64; 4])> {
        let count = self.windowed.frequencies.len();
        let terms = &self.terms[row * count..(row + 1) * count];
        let frequencies = self.windowed.frequencies.iter().zip(&self.band).zip(terms);
        frequencies.filter(move |((_, of), _)| **of == band).map(|((w, _), terms)| (*w, *terms))
    }

    /// Returns the logarithm of the likelihood of each row, `[row][position]`, for axes that are `first + i * step`
    /// bins from the middle of the window. Every row and band has a noise level of its own.
    pub fn log_likelihood(&self, first: f64, step: f64, count: usize, reference: Against) -> Vec<Vec<f64>> {
        (0..self.rows()).into_par_iter().map(|row| self.of_row_against(row, first, step, count, reference)).collect()
    }

    /// Returns the logarithm of the likelihood of one row relative to phases at random, as [`Misfit::log_likelihood`].
    pub fn of_row(&self, row: usize, first: f64, step: f64, count: usize) -> Vec<f64> {
        self.of_row_against(row, first, step, count, Against::Phases)
    }

    fn of_row_against(&self, row: usize, first: f64, step: f64, count: usize, reference: Against) -> Vec<f64> {
        let mut sum = vec![0f64; count];
        for band in 0..self.model.bands.len() {
            let mut misfit = vec![0f64; count];
            let (mut frequencies, mut phases, mut free) = (0.0, 1e-300, 1e-300);
            for (w, [a, b, d, without]) in self.of(row, band) {
                (frequencies, phases, free) = (frequencies + 1.0, phases + a, free + without);
                let mut at = Complex::cis(2.0 * w * first);
                let turn = Complex::cis(2.0 * w * step);
                for misfit in &mut misfit {
                    *misfit += b * at.re + d * at.im;
                    at *= turn;
                }
            }
            if frequencies > 0.0 {
                let (against, gain) = self.reference(band, frequencies, phases, free, reference);
                for (sum, misfit) in sum.iter_mut().zip(&misfit) {
                    *sum += gain - self.data * frequencies * ((phases + misfit).max(1e-12 * phases) / against).ln();
                }
            }
        }
        sum
    }

    /// Returns the misfit that a likelihood is relative to, and the gain by volume, of a number of frequencies of a
    /// band.
    fn reference(&self, band: usize, frequencies: f64, phases: f64, free: f64, reference: Against) -> (f64, f64) {
        match reference {
            Against::Phases => (phases, 0.0),
            Against::Free => (free, frequencies * self.windowed.independent * self.model.bands[band].gain()),
        }
    }

    /// Returns the logarithm of the likelihood of all rows at an axis `at[row]` bins from the middle of each row's
    /// window.
    pub fn log_likelihood_at(&self, at: &[f64], reference: Against) -> f64 {
        (0..self.rows()).map(|row| self.row_and_band(row, at[row], reference).sum::<f64>()).sum()
    }

    /// Returns the logarithm of the likelihood of each band of a row; 0 where the window has none of its frequencies.
    pub fn row_and_band(&self, row: usize, at: f64, reference: Against) -> impl Iterator<Item = f64> {
        (0..self.model.bands.len()).map(move |band| {
            let (mut count, mut misfit, mut phases, mut free) = (0.0, 0.0, 1e-300, 1e-300);
            for (w, [a, b, d, without]) in self.of(row, band) {
                let (sin, cos) = (2.0 * w * at).sin_cos();
                (count, phases, free, misfit) =
                    (count + 1.0, phases + a, free + without, misfit + a + b * cos + d * sin);
            }
            let (against, gain) = self.reference(band, count, phases, free, reference);
            if count > 0.0 { gain - self.data * count * (misfit.max(1e-12 * phases) / against).ln() } else { 0.0 }
        })
    }

    /// Returns the slopes and curvatures of the logarithm of the likelihood at an axis `at[row]` bins from the middle
    /// of each row's window.
    pub fn spread(&self, at: &[f64]) -> Spread {
        let bands = self.model.bands.len();
        let mut spread =
            Spread { slopes: vec![vec![0.0; bands]; at.len()], curvatures: vec![vec![0.0; bands]; at.len()] };
        for (row, at) in at.iter().enumerate() {
            for band in 0..bands {
                let (mut count, mut misfit, mut slope, mut bend, mut phases) = (0.0, 0.0, 0.0, 0.0, 1e-300);
                for (w, [a, b, d, _]) in self.of(row, band) {
                    let (sin, cos) = (2.0 * w * at).sin_cos();
                    count += 1.0;
                    phases += a;
                    misfit += a + b * cos + d * sin;
                    slope += 2.0 * w * (b * sin - d * cos);
                    bend -= 4.0 * w * w * (b * cos + d * sin);
                }
                let level = misfit.max(1e-12 * phases) + 1e-300;
                spread.slopes[row][band] = self.data * count * slope / level;
                spread.curvatures[row][band] = self.data * count * bend / level;
            }
        }
        spread
    }

    /// Returns the mean misfit of a datum, with the axis and with phases at random; 1 is the level of the noise.
    pub fn of_data(&self, at: &[f64]) -> [f64; 2] {
        let count = self.windowed.frequencies.len();
        let (mut with, mut without) = (0.0, 0.0);
        for (i, [a, b, d, _]) in self.terms.iter().enumerate() {
            let (sin, cos) = (2.0 * self.windowed.frequencies[i % count] * at[i / count]).sin_cos();
            with += a + b * cos + d * sin;
            without += a;
        }
        let data = (2 * self.windowed.projections * self.terms.len()) as f64;
        [with / data, without / data]
    }
}
