//! Gaussian processes over the angles of a scan: quadratic forms with the inverse of a covariance.
//!
//! For evenly spaced angles a covariance is a Toeplitz matrix. N. Levinson's and J. Durbin's recursion gives its
//! determinant and its predictor; the formula of I. Gohberg and A. Semencul makes the inverse from the predictor, and
//! transforms of twice the length apply it. For other angles the covariance is factored (A.-L. Cholesky).

use host_fft::{Complex, Fft, Real};
use std::sync::Arc;

/// Quadratic forms of the real part `x` and the imaginary part `y` of values over the angles: of `x` with itself, of
/// `y` with itself, and of `x` with `y`.
pub type Forms = [f64; 3];

/// Transforms that several processes over the same number of angles share.
#[derive(Clone)]
pub struct Transforms {
    length: usize,
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
}

impl Transforms {
    pub fn new(count: usize) -> Transforms {
        let length = (2 * count).next_power_of_two();
        let (forward, inverse) = (f64::forward(length), f64::inverse(length));
        Transforms { length, forward, inverse }
    }

    /// Returns the transform of values padded with zeros.
    fn of(&self, values: impl Iterator<Item = Complex<f64>>) -> Vec<Complex<f64>> {
        let mut padded: Vec<Complex<f64>> = values.collect();
        padded.resize(self.length, Complex::default());
        self.forward.process(&mut padded);
        padded
    }
}

/// Values over the angles, with their transform where processes need it.
pub struct OverAngles {
    values: Vec<Complex<f64>>,
    transform: Option<Vec<Complex<f64>>>,
}

/// A factored covariance.
enum Factored {
    /// Conjugate transforms of the predictor and of its mirror image, and the variance that remains unpredicted.
    Toeplitz { transforms: Transforms, predictor: [Vec<Complex<f64>>; 2], variance: f64 },
    /// Rows of the lower triangle.
    Cholesky { lower: Vec<Vec<f64>> },
}

/// A process with a constant that has a prior variance of its own, which may be infinite.
pub struct Process {
    factors: Factored,
    /// `K^-1 1` of the covariance `K` without the constant.
    ones: Vec<f64>,
    /// Factor of the square of the product of `ones` with values.
    constant: f64,
    log_determinant: f64,
}

/// The angles of a scan in the form that processes need.
pub enum AngleSteps {
    /// Evenly spaced angles: their number, their step in radians, and their transforms.
    Even(usize, f64, Transforms),
    /// Unevenly spaced angles in radians.
    Uneven(Vec<f64>),
}

impl AngleSteps {
    pub fn len(&self) -> usize {
        match self {
            AngleSteps::Even(count, ..) => *count,
            AngleSteps::Uneven(angles) => angles.len(),
        }
    }

    /// Returns the angle of a projection in radians, relative to the first one.
    pub fn at(&self, p: usize) -> f64 {
        match self {
            AngleSteps::Even(_, step, _) => p as f64 * step,
            AngleSteps::Uneven(angles) => angles[p] - angles[0],
        }
    }

    /// Prepares values over the angles for [`Process::forms`].
    pub fn values(&self, values: impl Iterator<Item = Complex<f64>>) -> OverAngles {
        let values: Vec<Complex<f64>> = values.collect();
        let transform = match self {
            AngleSteps::Even(_, _, transforms) => Some(transforms.of(values.iter().copied())),
            AngleSteps::Uneven(_) => None,
        };
        OverAngles { values, transform }
    }

    /// Returns the process with the covariance `sum of power[m] cos(m difference)`, independent noise of variance
    /// `noise`, and a constant of variance `constant`, which may be infinite.
    pub fn process(&self, power: &[f64], noise: f64, constant: f64) -> Process {
        match self {
            AngleSteps::Even(count, step, transforms) => {
                let mut covariance = cosines(power, *step, *count);
                covariance[0] += noise;
                toeplitz(&covariance, transforms, constant)
            }
            AngleSteps::Uneven(angles) => cholesky(dense(power, noise, angles), constant),
        }
    }
}

/// Returns `sum of power[m] cos(m k step)` for each `k` below `count`.
fn cosines(power: &[f64], step: f64, count: usize) -> Vec<f64> {
    let used: Vec<(f64, f64)> = power
        .iter()
        .enumerate()
        .filter(|(_, power)| **power > 0.0)
        .map(|(m, power)| (m as f64 * step, *power))
        .collect();
    (0..count).map(|k| used.iter().map(|(turn, power)| power * (turn * k as f64).cos()).sum()).collect()
}

/// Returns the rows of the lower triangle of a covariance.
fn dense(power: &[f64], noise: f64, angles: &[f64]) -> Vec<Vec<f64>> {
    let waves: Vec<Vec<f64>> = angles
        .iter()
        .map(|angle| {
            let of = |(m, power): (usize, &f64)| {
                let (sin, cos) = (m as f64 * angle).sin_cos();
                [power.sqrt() * cos, power.sqrt() * sin]
            };
            power.iter().enumerate().filter(|(_, power)| **power > 0.0).flat_map(of).collect()
        })
        .collect();
    let row = |i: usize| {
        let mut row: Vec<f64> = (0..=i).map(|j| dot(&waves[i], &waves[j])).collect();
        row[i] += noise;
        row
    };
    (0..angles.len()).map(row).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 4;
    let mut sums = [0f64; LANES];
    let (a_parts, b_parts) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a_parts.remainder().iter().zip(b_parts.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_parts.zip(b_parts) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Factors the Toeplitz matrix whose first row is `covariance`.
fn toeplitz(covariance: &[f64], transforms: &Transforms, constant: f64) -> Process {
    let count = covariance.len();
    let mut predictor = vec![0f64; count];
    predictor[0] = 1.0;
    let mut variance = covariance[0];
    let mut log_determinant = variance.ln();
    for order in 1..count {
        let missed: f64 = (0..order).map(|i| predictor[i] * covariance[order - i]).sum();
        let reflection = -missed / variance;
        for i in 0..=order / 2 {
            let (a, b) = (predictor[i], predictor[order - i]);
            predictor[i] = a + reflection * b;
            predictor[order - i] = b + reflection * a;
        }
        variance *= 1.0 - reflection * reflection;
        log_determinant += variance.ln();
    }
    // the first columns of the two triangular matrices
    let mirrored: Vec<f64> = std::iter::once(0.0).chain(predictor[1..].iter().rev().copied()).collect();
    let conjugate = |values: &[f64]| -> Vec<Complex<f64>> {
        transforms.of(values.iter().map(|value| Complex::from(*value))).iter().map(Complex::conj).collect()
    };
    // K^-1 1 = (L (L^T 1) - U (U^T 1)) / variance, by sums of columns
    let inverse_of_ones = |first: &[f64]| {
        // (L^T 1)[j] is the sum of the first count - j values
        let mut sums: Vec<f64> = first
            .iter()
            .scan(0.0, |sum, value| {
                *sum += value;
                Some(*sum)
            })
            .collect();
        sums.reverse();
        (0..count).map(|i| (0..=i).map(|j| first[i - j] * sums[j]).sum::<f64>()).collect::<Vec<f64>>()
    };
    let (with, without) = (inverse_of_ones(&predictor), inverse_of_ones(&mirrored));
    let ones = with.iter().zip(&without).map(|(a, b)| (a - b) / variance).collect();
    let factors = Factored::Toeplitz {
        transforms: transforms.clone(),
        predictor: [conjugate(&predictor), conjugate(&mirrored)],
        variance,
    };
    Process::new(factors, ones, constant, log_determinant)
}

/// Factors a matrix of which the rows of the lower triangle are given.
fn cholesky(mut lower: Vec<Vec<f64>>, constant: f64) -> Process {
    let count = lower.len();
    for i in 0..count {
        let (before, rest) = lower.split_at_mut(i);
        let row = &mut rest[0];
        for j in 0..i {
            row[j] = (row[j] - dot(&row[..j], &before[j][..j])) / before[j][j];
        }
        row[i] = (row[i] - dot(&row[..i], &row[..i])).max(f64::MIN_POSITIVE).sqrt();
    }
    let log_determinant = 2.0 * lower.iter().enumerate().map(|(i, row)| row[i].ln()).sum::<f64>();
    let mut ones = forward(&lower, vec![1.0; count]);
    // back substitution
    for i in (0..count).rev() {
        ones[i] /= lower[i][i];
        let value = ones[i];
        for j in 0..i {
            ones[j] -= lower[i][j] * value;
        }
    }
    Process::new(Factored::Cholesky { lower }, ones, constant, log_determinant)
}

/// Solves the system with the lower triangle by forward substitution.
fn forward(lower: &[Vec<f64>], mut values: Vec<f64>) -> Vec<f64> {
    for i in 0..values.len() {
        values[i] = (values[i] - dot(&lower[i][..i], &values[..i])) / lower[i][i];
    }
    values
}

impl Process {
    fn new(factors: Factored, ones: Vec<f64>, constant: f64, log_determinant: f64) -> Process {
        let whole: f64 = ones.iter().sum();
        let known = constant.recip();
        let log_determinant = log_determinant + if known.is_finite() { (known + whole).ln() } else { 0.0 };
        Process { factors, constant: (known + whole).recip(), log_determinant, ones }
    }

    /// Returns the logarithm of the determinant, without that of the prior variance of the constant.
    pub fn log_determinant(&self) -> f64 {
        self.log_determinant
    }

    /// Returns the weights that estimate the constant, and the variance of the estimate if the constant has no prior
    /// one.
    pub fn mean(&self) -> (Vec<f64>, f64) {
        let whole: f64 = self.ones.iter().sum();
        (self.ones.iter().map(|value| value / whole).collect(), whole.recip())
    }

    /// Returns the forms with the inverse of the covariance. `room` holds intermediate values.
    pub fn forms(&self, OverAngles { values, transform }: &OverAngles, room: &mut Vec<Complex<f64>>) -> Forms {
        let mut forms = match (&self.factors, transform) {
            (Factored::Toeplitz { transforms, predictor, variance }, Some(transform)) => {
                let mut forms = [0.0; 3];
                for (factors, sign) in predictor.iter().zip([1.0, -1.0]) {
                    room.clear();
                    room.extend(factors.iter().zip(transform).map(|(a, b)| a * b));
                    transforms.inverse.process(room);
                    let scale = sign / (*variance * (transforms.length as f64).powi(2));
                    let of = squares(&room[..values.len()]);
                    forms.iter_mut().zip(of).for_each(|(sum, value)| *sum += scale * value);
                }
                forms
            }
            (Factored::Cholesky { lower }, _) => {
                let part = |of: fn(&Complex<f64>) -> f64| forward(lower, values.iter().map(of).collect());
                let (x, y) = (part(|z| z.re), part(|z| z.im));
                [dot(&x, &x), dot(&y, &y), dot(&x, &y)]
            }
            (Factored::Toeplitz { .. }, None) => [0.0; 3],
        };
        let sum: Complex<f64> = self.ones.iter().zip(values).map(|(one, value)| value * one).sum();
        forms[0] -= self.constant * sum.re * sum.re;
        forms[1] -= self.constant * sum.im * sum.im;
        forms[2] -= self.constant * sum.re * sum.im;
        forms
    }
}

fn squares(values: &[Complex<f64>]) -> Forms {
    let mut forms = [0.0; 3];
    for z in values {
        forms[0] += z.re * z.re;
        forms[1] += z.im * z.im;
        forms[2] += z.re * z.im;
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_factor_agree_with_the_definition() {
        let (count, step) = (37, 0.09);
        let power: Vec<f64> = (0..30).map(|m| 3.0 / (1.0 + m as f64 * m as f64)).collect();
        let even = AngleSteps::Even(count, step, Transforms::new(count));
        let uneven = AngleSteps::Uneven((0..count).map(|p| 0.4 + p as f64 * step).collect());
        let values = |i: usize| Complex::new((1.3 * i as f64).sin(), (0.7 * i as f64 * i as f64).cos());
        for constant in [0.0, 2.5, f64::INFINITY] {
            let [a, b] = [&even, &uneven].map(|angles| {
                let process = angles.process(&power, 0.2, constant);
                let forms = process.forms(&angles.values((0..count).map(values)), &mut Vec::new());
                (forms, process.log_determinant(), process.mean())
            });
            for (a, b) in a.0.iter().zip(b.0) {
                assert!((a - b).abs() < 1e-9 * a.abs().max(1.0), "{constant}: {a} {b}");
            }
            assert!((a.1 - b.1).abs() < 1e-9);
            assert!((a.2.1 - b.2.1).abs() < 1e-12);
        }
        // the forms of a solution of K v = z are those of v and z
        let angles = even;
        let process = angles.process(&power, 0.2, 0.0);
        let covariance = |i: usize, j: usize| {
            let turn = (i as f64 - j as f64) * step;
            let noise = if i == j { 0.2 } else { 0.0 };
            noise + power.iter().enumerate().map(|(m, power)| power * (m as f64 * turn).cos()).sum::<f64>()
        };
        let v: Vec<f64> = (0..count).map(|i| (i as f64).cos()).collect();
        let z: Vec<f64> = (0..count).map(|i| (0..count).map(|j| covariance(i, j) * v[j]).sum()).collect();
        let form = process.forms(&angles.values(z.iter().map(|z| Complex::from(*z))), &mut Vec::new())[0];
        assert!((form - dot(&v, &z)).abs() < 1e-9 * form);
    }
}
