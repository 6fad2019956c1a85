//! The kernel of projecting and back-projecting: `q(x) = sum_p w_p D_L(x . n_p)`, and its circulant approximation.

use super::definition::dirichlet;
use rayon::prelude::*;
use std::f64::consts::PI;

/// How positions on a projection change with x and y, and its weight.
#[derive(Clone, Copy, Debug)]
pub struct ProjectionNormal {
    pub x: f64,
    pub y: f64,
    pub weight: f64,
}

/// Number of values after which recurrences begin anew.
const RUN: usize = 256;

/// Returns `q` at offsets of whole pixels on a torus of `2 side x 2 side`, `[y][x]`.
pub fn kernel(directions: &[ProjectionNormal], side: usize, length: usize) -> Vec<f64> {
    let twice = 2 * side;
    let mut upper = vec![0.0; (side + 1) * twice];
    upper.par_chunks_exact_mut(twice).enumerate().for_each(|(y, row)| {
        for direction in directions {
            add_row(row, direction, y as f64 * direction.y, length);
        }
        // offsets from -side on become those of the torus
        row.rotate_left(side);
    });
    let mut torus = upper;
    torus.resize(twice * twice, 0.0);
    let (upper, lower) = torus.split_at_mut((side + 1) * twice);
    // q(-x) = q(x)
    lower.par_chunks_exact_mut(twice).enumerate().for_each(|(number, row)| {
        let opposite = &upper[(side - 1 - number) * twice..][..twice];
        for (x, value) in row.iter_mut().enumerate() {
            *value = opposite[(twice - x) % twice];
        }
    });
    torus
}

/// Adds a projection to the offsets `-side..side` of a row, whose part of the position is `base`.
fn add_row(row: &mut [f64], direction: &ProjectionNormal, base: f64, length: usize) {
    let (period, side) = (length as f64, row.len() / 2);
    let (slow, fast) = (PI / period, PI * (period - 1.0) / period);
    // sines of arguments in even steps
    let (slow_step, fast_step) = ((slow * direction.x).sin_cos(), (fast * direction.x).sin_cos());
    let turned = |(s, c): (f64, f64), (ds, dc): (f64, f64)| (s * dc + c * ds, c * dc - s * ds);
    for (number, run) in row.chunks_mut(RUN).enumerate() {
        let first = (number * RUN) as f64 - side as f64;
        let start = base + first * direction.x;
        let (mut below, mut above) = ((slow * start).sin_cos(), (fast * start).sin_cos());
        for (place, value) in run.iter_mut().enumerate() {
            // recurrences lose digits where both sines are small
            let interpolated = match below.0.abs() < 1e-6 {
                true => dirichlet(base + (first + place as f64) * direction.x, length),
                false => above.0 / (period * below.0),
            };
            *value += direction.weight * interpolated;
            (below, above) = (turned(below, slow_step), turned(above, fast_step));
        }
    }
}

/// Returns T. Chan's circulant of `q`: on a torus of `side x side`, the kernel nearest to the convolution in the
/// Frobenius norm, in which every offset counts by the number of pairs of pixels that have it.
pub fn circulant(kernel: &[f64], side: usize) -> Vec<f64> {
    let twice = 2 * side;
    let share = |offset: usize| 1.0 - offset as f64 / side as f64;
    let mut folded = vec![0.0; side * side];
    folded.par_chunks_exact_mut(side).enumerate().for_each(|(y, row)| {
        for (x, value) in row.iter_mut().enumerate() {
            // an offset and the one that is `side` less, in x and y
            for (v, of_y) in [(y, share(y)), ((y + side) % twice, 1.0 - share(y))] {
                for (u, of_x) in [(x, share(x)), ((x + side) % twice, 1.0 - share(x))] {
                    *value += of_y * of_x * kernel[v * twice + u];
                }
            }
        }
    });
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_sum_of_its_definition() {
        let directions: Vec<ProjectionNormal> = [0.0f64, 0.31, 1.2, 2.0, 3.05]
            .iter()
            .map(|angle| ProjectionNormal { x: angle.cos(), y: -angle.sin(), weight: 1.0 + 0.3 * angle })
            .collect();
        for (side, length) in [(8usize, 20usize), (300, 640)] {
            let got = kernel(&directions, side, length);
            let twice = 2 * side as i64;
            for (place, value) in got.iter().enumerate().step_by(7) {
                let [y, x] = [place as i64 / twice, place as i64 % twice];
                let offset = |at: i64| if at >= side as i64 { at - twice } else { at } as f64;
                let sum = |x: f64, y: f64| -> f64 {
                    directions.iter().map(|d| d.weight * dirichlet(x * d.x + y * d.y, length)).sum()
                };
                // at -side and side, which are one place of the torus, the two differ, and neither is needed
                if x != side as i64 && y != side as i64 {
                    let error = (value - sum(offset(x), offset(y))).abs();
                    assert!(error < 1e-10, "{side} {x} {y}: {error}");
                }
            }
        }
    }

    /// Among circulants, none is nearer to the matrix of the convolution: the mean of the matrix along each wrapped diagonal.
    #[test]
    fn the_circulant_is_the_mean_of_diagonals() {
        let directions = [[0.6, 0.8, 1.0], [1.0, 0.0, 0.5]].map(|[x, y, weight]| ProjectionNormal { x, y, weight });
        let side = 5usize;
        let q = kernel(&directions, side, 12);
        let got = circulant(&q, side);
        let at = |a: usize, b: usize| (a + 2 * side - b) % (2 * side);
        let mut mean = vec![0.0; side * side];
        for (y, v, x, u) in (0..side.pow(4)).map(|i| (i / 125, i / 25 % 5, i / 5 % 5, i % 5)) {
            let [dy, dx] = [(y + side - v) % side, (x + side - u) % side];
            mean[dy * side + dx] += q[at(y, v) * 2 * side + at(x, u)] / (side * side) as f64;
        }
        for (got, mean) in got.iter().zip(&mean) {
            assert!((got - mean).abs() < 1e-12, "{got} {mean}");
        }
    }
}
