//! Back projection of rows by their band-limited interpolation.

use super::kernel::ProjectionNormal;
use super::levels::LevelForm;
use crate::geometry::Geometry;
use host_fft::{Complex, ComplexToReal, Real, RealToComplex};
use std::f64::consts::PI;
use std::sync::Arc;

/// Number of positions per bin at which a row is evaluated; between them, cubic B-splines interpolate.
const FINE: usize = 8;

/// Number of values before and behind a period that a spline needs.
const BEFORE: usize = 1;
const BEHIND: usize = 2;

/// The transforms and positions of rows.
pub struct RowOperators {
    projections: Vec<RowPosition>,
    grid: usize,
    bins: usize,
    length: usize,
    forward: Arc<dyn RealToComplex<f32>>,
    back: Arc<dyn ComplexToReal<f32>>,
    /// Factors of each frequency: of A^T d, and of the slice to begin with.
    plain: Vec<f32>,
    filtered: Vec<f32>,
}

/// Where the pixels of a grid are on a projection.
struct RowPosition {
    /// Position of the first pixel in bins.
    first: f64,
    along_x: f64,
    along_y: f64,
    /// Weight in A^T d.
    weight: f64,
    /// Weight in filtered back projection.
    spacing: f64,
}

/// What rows give, on a grid.
pub struct BackProjected {
    /// `A^T d`.
    pub plain: Vec<f32>,
    /// The filtered back projection.
    pub filtered: Vec<f32>,
}

impl RowOperators {
    /// `filter` has the factors of the first `length / 2 + 1` frequencies of a period, or more.
    pub fn new(form: &LevelForm, geometry: &Geometry, directions: &[ProjectionNormal], filter: &[f64]) -> RowOperators {
        let LevelForm { bins, grid, length, .. } = *form;
        let centre = form.centre();
        let position = |(direction, number): (&ProjectionNormal, usize)| RowPosition {
            first: form.axis[number] - centre * (direction.x + direction.y),
            along_x: direction.x,
            along_y: direction.y,
            weight: direction.weight,
            spacing: geometry.weights[number],
        };
        let fine = length * FINE;
        // cubic splines dim a frequency by sinc^4
        let lifted = |k: usize| {
            let x = PI * k.max(1) as f64 / fine as f64;
            if k == 0 { 1.0 } else { (x / x.sin()).powi(4) }
        };
        // the Nyquist frequency is left out
        let factor = |k: usize| if 2 * k == length { 0.0 } else { lifted(k) / length as f64 };
        RowOperators {
            projections: directions.iter().zip(0..).map(position).collect(),
            grid,
            bins,
            length,
            forward: f32::real_forward(length),
            back: f32::real_inverse(fine),
            plain: (0..=length / 2).map(|k| factor(k) as f32).collect(),
            filtered: (0..=length / 2).map(|k| (factor(k) * filter[k]) as f32).collect(),
        }
    }

    /// Back-projects rows `[projection][bin]` onto the grid.
    pub fn back_project(&self, rows: &[f32]) -> BackProjected {
        let fine = self.length * FINE;
        let mut sums = vec![[0f64; 2]; self.grid * self.grid];
        let mut row = vec![0f32; self.length];
        let mut spectrum = self.forward.make_output_vec();
        let mut padded = vec![Complex::new(0f32, 0.0); fine / 2 + 1];
        let mut values = vec![0f32; fine];
        let mut table = vec![[0f32; 2]; BEFORE + fine + BEHIND];
        for (position, measured) in self.projections.iter().zip(rows.chunks_exact(self.bins)) {
            row[..self.bins].copy_from_slice(measured);
            row[self.bins..].fill(0.0);
            let transformed = self.forward.process(&mut row, &mut spectrum);
            debug_assert!(transformed.is_ok());
            for (number, factors) in [&self.plain, &self.filtered].into_iter().enumerate() {
                padded.fill(Complex::new(0.0, 0.0));
                for ((to, from), factor) in padded.iter_mut().zip(&spectrum).zip(factors) {
                    *to = *from * *factor;
                }
                padded[0].im = 0.0;
                let transformed = self.back.process(&mut padded, &mut values);
                debug_assert!(transformed.is_ok());
                let weight = if number == 0 { position.weight } else { position.spacing };
                for (entry, value) in table[BEFORE..].iter_mut().zip(&values) {
                    entry[number] = (f64::from(*value) * weight) as f32;
                }
            }
            table[0] = table[fine];
            table.copy_within(BEFORE..BEFORE + BEHIND, BEFORE + fine);
            position.add(&table, self.grid, &mut sums);
        }
        let plane = |number: usize| sums.iter().map(|sum| sum[number] as f32).collect();
        BackProjected { plain: plane(0), filtered: plane(1) }
    }
}

impl RowPosition {
    /// Adds the projection to all pixels of a grid. The table has a period of values, and some before and behind it.
    fn add(&self, table: &[[f32; 2]], grid: usize, sums: &mut [[f64; 2]]) {
        let fine = table.len() - BEFORE - BEHIND;
        let period = fine as f64;
        let step = self.along_x * FINE as f64;
        for (y, row) in sums.chunks_exact_mut(grid).enumerate() {
            let first = ((self.first + y as f64 * self.along_y) * FINE as f64).rem_euclid(period);
            for (x, sum) in row.iter_mut().enumerate() {
                let mut at = first + x as f64 * step;
                // a row of pixels is shorter than a period
                if at < 0.0 {
                    at += period;
                } else if at >= period {
                    at -= period;
                }
                // rounding may reach the period
                let below = (at as usize).min(fine - 1);
                let weights = cubic((at - below as f64) as f32);
                let [a, b, c, d] = [0, 1, 2, 3].map(|tap| table[below + tap]);
                for (number, sum) in sum.iter_mut().enumerate() {
                    let value = weights[0] * a[number]
                        + weights[1] * b[number]
                        + weights[2] * c[number]
                        + weights[3] * d[number];
                    *sum += f64::from(value);
                }
            }
        }
    }
}

/// Returns the weights of four neighbours of a position between the middle two, by the cubic B-spline.
fn cubic(t: f32) -> [f32; 4] {
    let u = 1.0 - t;
    let sixth = 1.0 / 6.0;
    let middle = |t: f32| 2.0 / 3.0 - t * t * (1.0 - 0.5 * t);
    [u * u * u * sixth, middle(t), middle(u), t * t * t * sixth]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::least_squares::dirichlet;

    /// A^T d against the sum over bins of its definition.
    #[test]
    fn back_projection_is_that_of_the_dirichlet_kernel() {
        let mut geometry = Geometry::half_turn(13, 7, 12);
        geometry.axis.iter_mut().zip(0..).for_each(|(axis, p)| *axis += 0.3 * p as f64);
        let (size, length) = (geometry.size, 30);
        let form = LevelForm { bins: 13, size, grid: 12, offset: 0, length, axis: geometry.axis.clone() };
        let direction = |angle: &f64| {
            let (sin, cos) = angle.to_radians().sin_cos();
            ProjectionNormal { x: cos, y: -sin, weight: 1.0 }
        };
        let directions: Vec<ProjectionNormal> = geometry.angles.iter().map(direction).collect();
        let rows: Vec<f32> = (0..7 * 13).map(|i| ((i * 31 % 19) as f32 - 9.0) / 9.0).collect();
        let operators = RowOperators::new(&form, &geometry, &directions, &vec![1.0; length]);
        let got = operators.back_project(&rows);
        let (mut largest, mut worst) = (0f64, 0f64);
        for (place, value) in got.plain.iter().enumerate() {
            let (x, y) = ((place % size) as f64, (place / size) as f64);
            let mut sum = 0.0;
            for p in 0..directions.len() {
                let at = geometry.position(p, x, y);
                for (bin, value) in rows[p * 13..][..13].iter().enumerate() {
                    sum += f64::from(*value) * dirichlet(bin as f64 - at, length);
                }
            }
            largest = largest.max(sum.abs());
            worst = worst.max((sum - f64::from(*value)).abs());
        }
        assert!(worst < 2e-5 * largest, "{worst:e} of {largest}");
    }
}
