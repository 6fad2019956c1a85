//! Eigenvalues and eigenvectors of small symmetric matrices.

/// Largest number of sweeps of rotations; a few are enough.
const MOST_SWEEPS: usize = 60;
/// Eigenvalues below this part of the largest one count as none.
const LEAST_EIGENVALUE: f64 = 1e-9;

/// Eigenvalues in descending order, each with its vector of length 1, whose largest entry is positive.
#[derive(Clone, Debug)]
pub struct EigenSystem {
    pub values: Vec<f64>,
    pub vectors: Vec<Vec<f64>>,
}

impl EigenSystem {
    /// Finds the eigenvalues of a symmetric matrix `[row][column]` of `size` rows by Jacobi's rotations.
    pub fn of(mut matrix: Vec<f64>, size: usize) -> EigenSystem {
        let mut vectors = vec![0.0; size * size];
        (0..size).for_each(|i| vectors[i * size + i] = 1.0);
        for _ in 0..MOST_SWEEPS {
            let outside: f64 = pairs(size).map(|(p, q)| matrix[p * size + q].powi(2)).sum();
            let all: f64 = matrix.iter().map(|value| value * value).sum();
            if outside <= all * f64::EPSILON.powi(2) {
                break;
            }
            for (p, q) in pairs(size) {
                rotate(&mut matrix, &mut vectors, size, (p, q));
            }
        }
        let mut order: Vec<usize> = (0..size).collect();
        order.sort_by(|a, b| matrix[b * size + b].total_cmp(&matrix[a * size + a]));
        let vector = |&k: &usize| {
            let vector: Vec<f64> = (0..size).map(|i| vectors[i * size + k]).collect();
            let largest =
                vector.iter().fold(0.0f64, |most, &value| if value.abs() > most.abs() { value } else { most });
            vector.into_iter().map(|value| if largest < 0.0 { -value } else { value }).collect()
        };
        EigenSystem {
            values: order.iter().map(|k| matrix[k * size + k]).collect(),
            vectors: order.iter().map(vector).collect(),
        }
    }

    /// Returns the shortest vector that the matrix maps nearest to `right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let least = LEAST_EIGENVALUE * self.values.first().copied().unwrap_or(0.0);
        let mut solution = vec![0.0; right.len()];
        for (value, vector) in self.values.iter().zip(&self.vectors).filter(|(value, _)| **value > least) {
            let along: f64 = vector.iter().zip(right).map(|(a, b)| a * b).sum();
            solution.iter_mut().zip(vector).for_each(|(sum, entry)| *sum += along / value * entry);
        }
        solution
    }
}

/// Returns the positions above the diagonal.
fn pairs(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size).flat_map(move |p| (p + 1..size).map(move |q| (p, q)))
}

/// Makes an entry of the matrix 0 by a rotation.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], size: usize, (p, q): (usize, usize)) {
    let entry = matrix[p * size + q];
    if entry == 0.0 {
        return;
    }
    let theta = (matrix[q * size + q] - matrix[p * size + p]) / (2.0 * entry);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cos = 1.0 / (t * t + 1.0).sqrt();
    let sin = t * cos;
    let turn = |values: &mut [f64], a: usize, b: usize| {
        let (x, y) = (values[a], values[b]);
        (values[a], values[b]) = (cos * x - sin * y, sin * x + cos * y);
    };
    for i in 0..size {
        turn(matrix, i * size + p, i * size + q);
        turn(vectors, i * size + p, i * size + q);
    }
    for i in 0..size {
        turn(matrix, p * size + i, q * size + i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn vectors_are_those_of_the_matrix() {
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        for size in [1, 2, 3, 7, 20] {
            let rows: Vec<f64> = (0..size * (size + 2)).map(|_| rng.random_range(-1.0..1.0)).collect();
            let rows: Vec<&[f64]> = rows.chunks(size + 2).collect();
            let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let matrix: Vec<f64> = (0..size * size).map(|i| product(rows[i / size], rows[i % size])).collect();
            let EigenSystem { values, vectors } = EigenSystem::of(matrix.clone(), size);
            assert!(values.is_sorted_by(|a, b| a >= b), "{values:?}");
            for (k, (value, vector)) in values.iter().zip(&vectors).enumerate() {
                for (row, entry) in matrix.chunks(size).zip(vector) {
                    assert!((product(row, vector) - value * entry).abs() < 1e-11 * values[0], "{size}: {k}");
                }
                for (l, other) in vectors.iter().enumerate() {
                    let want = f64::from(u8::from(k == l));
                    assert!((product(vector, other) - want).abs() < 1e-11, "{size}: {k}, {l}");
                }
            }
            let right: Vec<f64> = (0..size).map(|i| i as f64 - 1.5).collect();
            let system = EigenSystem { values, vectors };
            if system.values[size - 1] > 1e-6 * system.values[0] {
                let solution = system.solve(&right);
                let off = matrix.chunks(size).zip(&right).map(|(row, right)| (product(row, &solution) - right).abs());
                assert!(off.fold(0.0, f64::max) < 1e-6, "{size}");
            }
        }
    }

    #[test]
    fn directions_without_effect_are_left_out() {
        // the matrix of (1, 2) times itself
        let system = EigenSystem::of(vec![1.0, 2.0, 2.0, 4.0], 2);
        let solution = system.solve(&[5.0, 10.0]);
        assert!((solution[0] - 1.0).abs() < 1e-12 && (solution[1] - 2.0).abs() < 1e-12, "{solution:?}");
        assert_eq!(EigenSystem::of(vec![0.0; 9], 3).solve(&[1.0, 2.0, 3.0]), [0.0; 3]);
    }
}
