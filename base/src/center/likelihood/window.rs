//! Transforms along the bins of the derivative of rows, cut by a window that is symmetric about a trial axis.

use host_fft::{Complex, Real};
use rayon::prelude::*;
use std::f64::consts::TAU;

/// A window in bins about an axis that may differ from row to row.
#[derive(Clone, Copy)]
pub struct AxisWindow {
    /// Distance from the middle of the window to its ends in bins.
    pub reach: f64,
    /// Share of the reach over which the window falls to zero.
    pub taper: f64,
    /// Highest frequency in radians per bin.
    pub highest: f64,
    /// Lowest frequency in units of the window's resolution.
    pub lowest: f64,
}

/// Fourier transforms of rows in a window.
pub struct Windowed {
    /// Frequencies in radians per bin, ascending.
    pub frequencies: Vec<f64>,
    /// Transforms `[row][frequency][projection]`; with the right axis, the real part has only even harmonics of the
    /// angle and the imaginary part only odd ones.
    pub values: Vec<Complex<f32>>,
    pub projections: usize,
    /// Middle of each row's window in bins.
    pub axes: Vec<f64>,
    /// Number of independent bins of the window.
    pub size: f64,
    /// Share of independent frequencies among those of the transform.
    pub independent: f64,
}

impl Windowed {
    /// Returns the values of a row and frequency over the angles.
    pub fn at(&self, row: usize, frequency: usize) -> &[Complex<f32>] {
        &self.values[(row * self.frequencies.len() + frequency) * self.projections..][..self.projections]
    }

    pub fn rows(&self) -> usize {
        self.values.len() / (self.projections * self.frequencies.len()).max(1)
    }
}

impl AxisWindow {
    /// Returns the height of the window at a distance from its middle.
    fn at(&self, distance: f64) -> f64 {
        let t = distance.abs() / self.reach;
        if t >= 1.0 {
            0.0
        } else if self.taper > 0.0 && t > 1.0 - self.taper {
            0.5 + 0.5 * (std::f64::consts::PI * (t - 1.0 + self.taper) / self.taper).cos()
        } else {
            1.0
        }
    }

    /// Transforms the derivatives of rows, `[projection][bin]` with `bins` values each, of which the first is at bin
    /// 0.5.
    pub fn look(&self, rows: &[Vec<f32>], bins: usize, axes: &[f64]) -> Windowed {
        // at least one bin, also where an axis is at the end of the detector
        let first = |axis: f64| ((axis - self.reach - 0.5).floor() + 1.0).clamp(0.0, bins as f64 - 1.0) as usize;
        let end = |axis: f64| ((axis + self.reach - 0.5).ceil().max(0.0) as usize).clamp(first(axis) + 1, bins);
        let longest = axes.iter().map(|&axis| end(axis) - first(axis)).max().unwrap_or(1);
        let length = (2 * longest).next_power_of_two();
        let wanted = TAU * self.lowest / longest as f64;
        let frequency = |k: usize| TAU * k as f64 / length as f64;
        let kept: Vec<usize> =
            (0..=length / 2).filter(|&k| frequency(k) <= self.highest && frequency(k) >= wanted).collect();
        let frequencies: Vec<f64> = kept.iter().map(|&k| frequency(k)).collect();
        let weights = |axis: f64| (first(axis)..end(axis)).map(move |i| self.at(i as f64 + 0.5 - axis));
        let power = |exponent: i32| {
            axes.iter().flat_map(|&axis| weights(axis)).map(|w| w.powi(exponent)).sum::<f64>() / axes.len() as f64
        };
        let (squares, fourths) = (power(2), power(4));
        let projections = rows.first().map_or(0, |row| row.len() / bins);
        let plan = f32::real_forward(length);
        let mut values = vec![Complex::default(); rows.len() * kept.len() * projections];
        let each = kept.len() * projections;
        for ((values, row), &axis) in values.chunks_mut(each.max(1)).zip(rows).zip(axes) {
            let (first, end) = (first(axis), end(axis));
            let weights: Vec<f32> = weights(axis).map(|w| w as f32).collect();
            let turns: Vec<Complex<f32>> = frequencies
                .iter()
                .map(|w| {
                    let turn = Complex::cis(w * (axis - first as f64 - 0.5)) * Complex::new(0.0, -1.0) / squares.sqrt();
                    Complex::new(turn.re as f32, turn.im as f32)
                })
                .collect();
            let transform = |room: &mut (Vec<f32>, Vec<Complex<f32>>), line: &[f32]| {
                room.0.fill(0.0);
                room.0.iter_mut().zip(&line[first..end]).zip(&weights).for_each(|((to, value), w)| *to = value * w);
                // lengths are those of the plan
                let _ = plan.process(&mut room.0, &mut room.1);
                kept.iter().zip(&turns).map(|(&k, turn)| room.1[k] * turn).collect::<Vec<_>>()
            };
            let lines: Vec<Vec<Complex<f32>>> =
                row.par_chunks(bins).map_init(|| (plan.make_input_vec(), plan.make_output_vec()), transform).collect();
            values.par_chunks_mut(projections).enumerate().for_each(|(k, to)| {
                to.iter_mut().zip(&lines).for_each(|(to, line)| *to = line[k]);
            });
        }
        let size = squares * squares / fourths;
        Windowed { frequencies, values, projections, axes: axes.to_vec(), size, independent: size / length as f64 }
    }
}
