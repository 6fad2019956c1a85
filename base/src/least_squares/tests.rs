//! The solver against explicit matrices in `f64`, which are written from docs/least-squares.md.

use super::operators::ScanOperators;
use super::torus::TorusMemory;
use super::{Iterations, LeastSquares, ProjectionWeights, RowScale, SliceMethod, SliceSolver, dirichlet, grid_length};
use crate::geometry::{Geometry, GridSides};
use crate::spectrum::{Filter, padded_length, spectrum};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};
use std::f64::consts::PI;

const SIZE: usize = 32;
const BINS: usize = 40;

/// A scan with random angles and shifts, and its matrix.
struct Explicit {
    geometry: Geometry,
    /// Pixels of the disc, as indices of the slice.
    disc: Vec<usize>,
    /// `[projection and bin of a period][pixel]`.
    matrix: Vec<Vec<f64>>,
    /// `A^T W A`.
    normal: Vec<Vec<f64>>,
    /// Weight of each projection.
    weights: Vec<f64>,
    length: usize,
}

impl Explicit {
    fn new(projections: usize, random: &mut ChaCha8Rng) -> Explicit {
        Self::weighted(vec![1.0; projections], random)
    }

    /// Weights that differ by a factor of up to 25, with the mean 1.
    fn uneven(projections: usize, random: &mut ChaCha8Rng) -> Explicit {
        let weights: Vec<f64> = (0..projections).map(|_| random.random_range(0.2..5.0)).collect();
        let mean = weights.iter().sum::<f64>() / projections as f64;
        Self::weighted(weights.iter().map(|weight| weight / mean).collect(), random)
    }

    fn weighted(weights: Vec<f64>, random: &mut ChaCha8Rng) -> Explicit {
        let projections = weights.len();
        let mut geometry = Geometry::half_turn(BINS, projections, SIZE);
        geometry.angles.iter_mut().for_each(|angle| *angle = random.random_range(0.0..180.0));
        geometry.angles.sort_by(f64::total_cmp);
        geometry.axis.iter_mut().for_each(|axis| *axis = 19.3 + random.random_range(-1.0..1.0));
        let length = padded_length(BINS);
        let mut matrix = vec![];
        for p in 0..projections {
            let positions: Vec<f64> = (0..SIZE * SIZE)
                .map(|pixel| geometry.position(p, (pixel % SIZE) as f64, (pixel / SIZE) as f64))
                .collect();
            matrix.extend((0..length).map(|bin| -> Vec<f64> {
                positions.iter().map(|position| dirichlet(bin as f64 - position, length)).collect()
            }));
        }
        let mut normal = vec![vec![0.0; SIZE * SIZE]; SIZE * SIZE];
        for (number, row) in matrix.iter().enumerate() {
            let weight = weights[number / length];
            for (a, sums) in row.iter().zip(&mut normal) {
                sums.iter_mut().zip(row).for_each(|(sum, b)| *sum += weight * a * b);
            }
        }
        let centre = (SIZE as f64 - 1.0) / 2.0;
        let distance = |pixel: &usize| ((pixel % SIZE) as f64 - centre).hypot((pixel / SIZE) as f64 - centre);
        let disc = (0..SIZE * SIZE).filter(|pixel| distance(pixel) < 0.98 * SIZE as f64 / 2.0).collect();
        if weights.iter().any(|weight| *weight != 1.0) {
            geometry.misfit_weights = Some(weights.clone());
        }
        Explicit { geometry, disc, matrix, normal, weights, length }
    }

    /// Measured rows of a slice, with noise of the variance `sigma^2 / w`.
    fn sinogram(&self, slice: &[f64], sigma: f64, random: &mut ChaCha8Rng) -> Vec<f32> {
        let normal = Normal::new(0.0, sigma).unwrap();
        let rows = self.matrix.chunks_exact(self.length).zip(&self.weights);
        let rows = rows.flat_map(|(rows, weight)| rows[..BINS].iter().map(|row| (row, weight.sqrt())));
        rows.map(|(row, root)| (product(row, slice) + normal.sample(random) / root) as f32).collect()
    }

    fn scale(&self, sinogram: &[f32]) -> RowScale {
        RowScale::of(sinogram, BINS, Some(&self.weights))
    }

    /// `A^T W d`.
    fn back_projection(&self, sinogram: &[f32]) -> Vec<f64> {
        let mut sums = vec![0.0; SIZE * SIZE];
        let rows = self.matrix.chunks_exact(self.length).flat_map(|rows| &rows[..BINS]);
        for (number, (row, value)) in rows.zip(sinogram).enumerate() {
            let value = self.weights[number / BINS] * f64::from(*value);
            sums.iter_mut().zip(row).for_each(|(sum, a)| *sum += value * a);
        }
        sums
    }

    /// Returns `half sum of w |A f - d|^2 + lambda TV(f)`.
    fn objective(&self, slice: &[f64], sinogram: &[f32], lambda: f64) -> f64 {
        let padded = sinogram
            .chunks_exact(BINS)
            .flat_map(|row| (0..self.length).map(|bin| row.get(bin).map_or(0.0, |value| f64::from(*value))));
        let residuals = self.matrix.iter().zip(padded).map(|(row, d)| product(row, slice) - d).enumerate();
        let misfit: f64 = residuals.map(|(number, r)| self.weights[number / self.length] * r * r).sum();
        let variation: f64 =
            (0..SIZE * SIZE).map(|pixel| differences(slice, pixel).map(|d| d * d).iter().sum::<f64>().sqrt()).sum();
        0.5 * misfit + lambda * variation
    }

    fn operators(&self) -> ScanOperators {
        ScanOperators::new(&self.geometry, GridSides::Thirds, |length| spectrum(Filter::Ramp, 1.0, length))
    }
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The right and the lower neighbour of a pixel around the torus.
fn neighbours(pixel: usize) -> [usize; 2] {
    let (x, y) = (pixel % SIZE, pixel / SIZE);
    [y * SIZE + (x + 1) % SIZE, (y + 1) % SIZE * SIZE + x]
}

fn differences(slice: &[f64], pixel: usize) -> [f64; 2] {
    neighbours(pixel).map(|other| slice[other] - slice[pixel])
}

/// Adds `factor` times the matrix of the squared gradient.
fn add_gradient(matrix: &mut [Vec<f64>], factor: f64) {
    for pixel in 0..SIZE * SIZE {
        for other in neighbours(pixel) {
            matrix[pixel][pixel] += factor;
            matrix[other][other] += factor;
            matrix[pixel][other] -= factor;
            matrix[other][pixel] -= factor;
        }
    }
}

/// The lower triangle `L` of a positive matrix `L L^T`, of some of its rows and columns.
struct Cholesky(Vec<Vec<f64>>);

impl Cholesky {
    fn new(matrix: &[Vec<f64>], kept: &[usize]) -> Cholesky {
        let mut rows: Vec<Vec<f64>> = vec![];
        for &i in kept {
            let mut row: Vec<f64> = vec![];
            for (other, &j) in rows.iter().zip(kept) {
                let value = (matrix[i][j] - product(&row, &other[..row.len()])) / other[row.len()];
                row.push(value);
            }
            row.push((matrix[i][i] - product(&row, &row)).sqrt());
            rows.push(row);
        }
        Cholesky(rows)
    }

    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut x: Vec<f64> = vec![];
        for (row, value) in self.0.iter().zip(right) {
            let value = (value - product(row, &x)) / row[x.len()];
            x.push(value);
        }
        for i in (0..x.len()).rev() {
            x[i] /= self.0[i][i];
            let value = x[i];
            x[..i].iter_mut().zip(&self.0[i]).for_each(|(x, l)| *x -= l * value);
        }
        x
    }
}

fn phantom() -> Vec<f64> {
    let centre = (SIZE as f64 - 1.0) / 2.0;
    let value = |pixel: usize| {
        let (x, y) = ((pixel % SIZE) as f64 - centre, (pixel / SIZE) as f64 - centre);
        f64::from(u8::from(x.hypot(y) < 12.0)) + 0.5 * f64::from(u8::from((x - 4.0).hypot(y + 3.0) < 4.0))
    };
    (0..SIZE * SIZE).map(value).collect()
}

fn request(method: SliceMethod, iterations: usize) -> LeastSquares {
    let non_negative = method == SliceMethod::Tv;
    LeastSquares {
        method,
        strength: 1.0,
        iterations: Iterations::Exactly(iterations),
        tolerance: 5e-4,
        non_negative,
        huber: 0.05,
        interior: false,
        weights: ProjectionWeights::Uniform,
    }
}

/// Largest difference relative to the largest value.
fn worst(got: impl IntoIterator<Item = f64>, want: &[f64]) -> f64 {
    let largest = want.iter().fold(0f64, |largest, value| largest.max(value.abs()));
    let differences = got.into_iter().zip(want).map(|(got, want)| (got - want).abs());
    differences.fold(0.0, f64::max) / largest
}

#[test]
fn projecting_and_back_projecting_is_the_convolution() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let scan = Explicit::uneven(17, &mut random);
    assert_eq!(grid_length(SIZE, GridSides::Thirds), SIZE);
    let operators = scan.operators();
    let slice: Vec<f32> = (0..SIZE * SIZE).map(|_| random.random_range(-1.0..1.0)).collect();
    let exact: Vec<f64> = slice.iter().map(|value| f64::from(*value)).collect();
    let want: Vec<f64> = scan.normal.iter().map(|row| product(row, &exact)).collect();
    let mut got = vec![0f32; slice.len()];
    operators.levels[0].project(&slice, &mut got, &mut TorusMemory::default());
    let error = worst(got.iter().map(|value| f64::from(*value)), &want);
    assert!(error < 1e-6, "{error:e}");
}

#[test]
fn tikhonov_finds_the_minimum() {
    let mut random = ChaCha8Rng::seed_from_u64(2);
    tikhonov_finds_the_minimum_of(&Explicit::new(25, &mut random), &mut random);
    tikhonov_finds_the_minimum_of(&Explicit::uneven(25, &mut random), &mut random);
}

fn tikhonov_finds_the_minimum_of(scan: &Explicit, random: &mut ChaCha8Rng) {
    let sinogram = scan.sinogram(&phantom(), 0.3, random);
    let operators = scan.operators();
    let got = SliceSolver::new(&operators, request(SliceMethod::Tikhonov, 60)).solve(&sinogram);
    // lambda and the contrast as the page defines them
    let sigma = scan.scale(&sinogram).sigma;
    assert!((sigma - got.outcome.sigma).abs() < 1e-12);
    let contrast = contrast_of(scan, &operators, &sinogram);
    let mu = sigma * (25.0 * SIZE as f64 / 200.0).sqrt() / contrast;
    let mut matrix = scan.normal.clone();
    add_gradient(&mut matrix, mu);
    let right = scan.back_projection(&sinogram);
    let solved =
        Cholesky::new(&matrix, &scan.disc).solve(&scan.disc.iter().map(|&pixel| right[pixel]).collect::<Vec<_>>());
    let error = worst(scan.disc.iter().map(|&pixel| f64::from(got.slice[pixel])), &solved);
    assert!(error < 1e-4, "{error:e}");
}

/// Conjugate gradients in `f64`; more iterations would compare how rounding grows, as the minimum is flat where frequencies are
/// beyond those of rows.
#[test]
fn cgls_takes_the_steps_of_conjugate_gradients() {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let scan = Explicit::new(40, &mut random);
    let sinogram = scan.sinogram(&phantom(), 0.05, &mut random);
    let got = SliceSolver::new(&scan.operators(), request(SliceMethod::Cgls, 4)).solve(&sinogram);
    let in_disc = |values: &[f64]| -> Vec<f64> { scan.disc.iter().map(|&pixel| values[pixel]).collect() };
    let mut residual = in_disc(&scan.back_projection(&sinogram));
    let mut slice = vec![0.0; residual.len()];
    let mut direction = residual.clone();
    for _ in 0..4 {
        let normal: Vec<f64> =
            scan.disc.iter().map(|&pixel| product(&in_disc(&scan.normal[pixel]), &direction)).collect();
        let squares = product(&residual, &residual);
        let length = squares / product(&direction, &normal);
        slice.iter_mut().zip(&direction).for_each(|(f, d)| *f += length * d);
        residual.iter_mut().zip(&normal).for_each(|(r, n)| *r -= length * n);
        let share = product(&residual, &residual) / squares;
        direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = r + share * *d);
    }
    let error = worst(scan.disc.iter().map(|&pixel| f64::from(got.slice[pixel])), &slice);
    assert!(error < 1e-4, "{error:e}");
}

#[test]
fn cgls_ends_when_rows_contradict_each_other() {
    let mut random = ChaCha8Rng::seed_from_u64(6);
    let scan = Explicit::new(24, &mut random);
    let slice = phantom();
    let mut sinogram = scan.sinogram(&slice, 0.01, &mut random);
    sinogram.chunks_exact_mut(2 * BINS).for_each(|pair| pair[..BINS].iter_mut().for_each(|value| *value *= 1.1));
    let solve = |iterations| {
        let request = LeastSquares { iterations, ..request(SliceMethod::Cgls, 1) };
        let got = SliceSolver::new(&scan.operators(), request).solve(&sinogram);
        let error = |&pixel: &usize| (f64::from(got.slice[pixel]) - slice[pixel]).powi(2);
        (got.outcome.iterations, got.outcome.converged, scan.disc.iter().map(error).sum::<f64>().sqrt())
    };
    let (iterations, converged, error) = solve(Iterations::Auto);
    let (_, _, later) = solve(Iterations::Exactly(100));
    assert!(converged && iterations < 30, "{iterations}");
    assert!(error < later, "{error} {later}");
}

/// Standard deviation of the filtered back projection in the disc, without that of noise.
fn contrast_of(scan: &Explicit, operators: &ScanOperators, sinogram: &[f32]) -> f64 {
    let filtered = operators.levels[0].rows.back_project(sinogram).filtered;
    let values: Vec<f64> = scan.disc.iter().map(|&pixel| f64::from(filtered[pixel])).collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    let projections = scan.weights.len() as f64;
    let of_projections = scan.weights.iter().map(|weight| scan.scale(sinogram).sigma.powi(2) / weight);
    let of_noise = PI.powi(2) / 12.0 * of_projections.sum::<f64>() / projections.powi(2);
    (variance - of_noise).max(0.1 * variance).sqrt()
}

/// Minimises the objective by the alternating direction method with exact steps, until it is stationary.
fn reference(scan: &Explicit, sinogram: &[f32], lambda: f64) -> Vec<f64> {
    let (rho, nu, pixels) = (lambda / 0.1, 0.3 * lambda / 0.1, SIZE * SIZE);
    let mut matrix = scan.normal.clone();
    add_gradient(&mut matrix, rho);
    (0..pixels).for_each(|pixel| matrix[pixel][pixel] += nu);
    let factor = Cholesky::new(&matrix, &(0..pixels).collect::<Vec<_>>());
    let data = scan.back_projection(sinogram);
    let mut inside = vec![false; pixels];
    scan.disc.iter().for_each(|&pixel| inside[pixel] = true);
    let (mut z, mut u) = (vec![[0.0; 2]; pixels], vec![[0.0; 2]; pixels]);
    let (mut v, mut e) = (vec![0.0; pixels], vec![0.0; pixels]);
    for _ in 0..400 {
        let mut right: Vec<f64> = (0..pixels).map(|pixel| data[pixel] + nu * (v[pixel] - e[pixel])).collect();
        for pixel in 0..pixels {
            for (axis, other) in neighbours(pixel).into_iter().enumerate() {
                let value = rho * (z[pixel][axis] - u[pixel][axis]);
                right[other] += value;
                right[pixel] -= value;
            }
        }
        let f = factor.solve(&right);
        for pixel in 0..pixels {
            let g = differences(&f, pixel);
            let t = [g[0] + u[pixel][0], g[1] + u[pixel][1]];
            let share = (1.0 - lambda / rho / t[0].hypot(t[1]).max(1e-30)).max(0.0);
            z[pixel] = t.map(|t| t * share);
            u[pixel] = [t[0] - z[pixel][0], t[1] - z[pixel][1]];
            let t = f[pixel] + e[pixel];
            v[pixel] = if inside[pixel] { t.max(0.0) } else { 0.0 };
            e[pixel] = t - v[pixel];
        }
    }
    v
}

#[test]
fn tv_reaches_the_least_objective() {
    let mut random = ChaCha8Rng::seed_from_u64(4);
    tv_reaches_the_least_objective_of(&Explicit::new(15, &mut random), &mut random);
    tv_reaches_the_least_objective_of(&Explicit::uneven(15, &mut random), &mut random);
}

fn tv_reaches_the_least_objective_of(scan: &Explicit, random: &mut ChaCha8Rng) {
    let sinogram = scan.sinogram(&phantom(), 0.2, random);
    let lambda = scan.scale(&sinogram).sigma * (15.0 * SIZE as f64 / 200.0).sqrt();
    let least = scan.objective(&reference(scan, &sinogram, lambda), &sinogram, lambda);
    let got = SliceSolver::new(&scan.operators(), request(SliceMethod::Tv, 100)).solve(&sinogram);
    let slice: Vec<f64> = got.slice.iter().map(|value| f64::from(*value)).collect();
    assert!(slice.iter().all(|value| *value >= 0.0));
    let reached = scan.objective(&slice, &sinogram, lambda);
    assert!((reached / least - 1.0).abs() < 1e-3, "{reached} {least}");
    // what the solver reports is the objective of its slice
    assert!((got.outcome.objective / reached - 1.0).abs() < 1e-3, "{} {reached}", got.outcome.objective);
}

#[test]
fn a_slice_of_nothing_is_nothing() {
    let geometry = Geometry::half_turn(BINS, 10, 24);
    let operators = ScanOperators::new(&geometry, GridSides::Thirds, |length| spectrum(Filter::Ramp, 1.0, length));
    for method in [SliceMethod::Tv, SliceMethod::Huber, SliceMethod::Tikhonov, SliceMethod::Cgls] {
        let got = SliceSolver::new(&operators, request(method, 5)).solve(&vec![0.0; 10 * BINS]);
        assert_eq!(got.slice, vec![0.0; 24 * 24], "{method}");
    }
}

/// A cylinder that is twice as wide as the detector, with a smaller one inside: its contrast is found, and its value roughly.
#[test]
fn a_sample_that_is_cut_off_has_its_contrast() {
    let (bins, projections) = (64, 40);
    let geometry = Geometry::half_turn(bins, projections, bins);
    let chord = |radius: f64, at: f64| 2.0 * (radius * radius - at * at).max(0.0).sqrt();
    let row = |p: usize| {
        let angle = geometry.angles[p].to_radians();
        (0..bins).map(move |bin| {
            let at = bin as f64 - 31.5;
            (chord(64.0, at) + 0.5 * chord(10.0, at - 8.0 * angle.cos())) as f32
        })
    };
    let rows: Vec<f32> = (0..projections).flat_map(row).collect();
    let request = LeastSquares { interior: true, iterations: Iterations::Auto, ..request(SliceMethod::Tv, 1) };
    let operators = ScanOperators::interior(&geometry, |length| spectrum(Filter::Ramp, 1.0, length));
    let got = SliceSolver::new(&operators, request).solve(&rows);
    assert_eq!(got.slice.len(), bins * bins);
    let at = |x: usize, y: usize| f64::from(got.slice[y * bins + x]);
    let contrast = at(39, 31) - at(20, 31);
    assert!((contrast - 0.5).abs() < 0.05, "{contrast}");
    assert!((at(20, 31) - 1.0).abs() < 0.3, "{}", at(20, 31));
}
