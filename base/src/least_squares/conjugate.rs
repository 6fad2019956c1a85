//! Slices by conjugate gradients: `tikhonov` to the minimum, `cgls` to the noise.

use super::method::{Iterations, LeastSquares, SliceMethod};
use super::problem::{SliceProblem, SliceScale, SolvedSlice, SolverProgress, dot};
use super::state::SplitState;
use super::torus::TorusMemory;

/// Decrease of the misfit in an iteration, relative to it, below which `cgls` ends: rows that contradict each other never
/// fit to within their noise, and more iterations only amplify the contradiction.
const STALLED: f64 = 0.02;

/// Minimises `1/2 |A f - d|^2 + mu/2 |grad f|^2` over the disc, with `mu = lambda / contrast` for `tikhonov`. For `cgls`, mu
/// is 0, and the iterations, without a preconditioner and from 0, end when the misfit is that of the noise or hardly
/// decreases.
pub fn solve(
    problem: &SliceProblem,
    request: &LeastSquares,
    projections: usize,
    memory: &mut TorusMemory,
) -> SolvedSlice {
    let SliceProblem { level, data, start, sigma, scale: SliceScale { contrast, lambda, .. }, .. } = problem;
    let smooth = request.method == SliceMethod::Tikhonov;
    let size = data.len();
    if *contrast <= 0.0 {
        let nothing = SolverProgress { iterations: 0, change: 0.0, converged: true };
        return problem.solved(&vec![0.0; size], 0.0, nothing, memory);
    }
    let mu = if smooth { lambda / contrast } else { 0.0 };
    let preconditioner = smooth.then(|| level.preconditioner(mu, 0.0));
    // Q f + mu times the Laplacian, over the disc
    let apply = |image: &[f32], to: &mut [f32], memory: &mut TorusMemory| {
        level.project(image, to, memory);
        if mu > 0.0 {
            add_laplacian(image, level.form.grid, mu as f32, to);
        }
        level.keep_disc(to);
    };
    let mut slice = if smooth { start.clone() } else { vec![0f32; size] };
    let mut residual = data.clone();
    level.keep_disc(&mut residual);
    let mut applied = vec![0f32; size];
    if smooth {
        apply(&slice, &mut applied, memory);
        residual.iter_mut().zip(&applied).for_each(|(r, a)| *r -= a);
    }
    let precondition = |residual: &[f32], to: &mut [f32], memory: &mut TorusMemory| match &preconditioner {
        Some(response) => {
            level.torus.convolve(residual, to, response, memory);
            level.keep_disc(to);
        }
        None => to.copy_from_slice(residual),
    };
    let mut preconditioned = vec![0f32; size];
    precondition(&residual, &mut preconditioned, memory);
    let mut direction = preconditioned.clone();
    let mut product = dot(&residual, &preconditioned);
    let noise = 0.5 * sigma * sigma * (projections * level.form.bins) as f64;
    // misfit of the slice by recurrence: half the step times the product less
    let mut misfit = 0.5 * problem.energy;
    let (mut change, mut done, mut converged) = (f64::INFINITY, 0, false);
    for number in 0..request.iterations.most() {
        apply(&direction, &mut applied, memory);
        let curvature = dot(&direction, &applied);
        if curvature <= 0.0 || product <= 0.0 {
            converged = true;
            break;
        }
        let length = product / curvature;
        for ((f, r), (d, a)) in slice.iter_mut().zip(&mut residual).zip(direction.iter().zip(&applied)) {
            *f += length as f32 * d;
            *r -= length as f32 * a;
        }
        let decrease = 0.5 * length * product;
        misfit -= decrease;
        precondition(&residual, &mut preconditioned, memory);
        let next = dot(&residual, &preconditioned);
        let share = (next / product) as f32;
        change = length.abs() * (dot(&direction, &direction) / level.pixels.max(1) as f64).sqrt() / contrast;
        direction.iter_mut().zip(&preconditioned).for_each(|(d, p)| *d = p + share * *d);
        product = next;
        done = number + 1;
        let enough = match smooth {
            true => change < request.tolerance,
            false => misfit <= noise || decrease < STALLED * misfit,
        };
        if request.iterations == Iterations::Auto && enough {
            converged = true;
            break;
        }
    }
    let converged = converged || request.iterations != Iterations::Auto;
    let penalty = 0.5 * mu * SplitState::squared_gradient(&slice, level.form.grid);
    problem.solved(&slice, penalty, SolverProgress { iterations: done, change, converged }, memory)
}

/// Adds `factor` times the transpose of the gradient of an image's gradient.
fn add_laplacian(image: &[f32], side: usize, factor: f32, to: &mut [f32]) {
    for (y, to) in to.chunks_exact_mut(side).enumerate() {
        let row = |y: usize| &image[y % side * side..][..side];
        let (above, here, below) = (row(y + side - 1), row(y), row(y + 1));
        for (x, to) in to.iter_mut().enumerate() {
            let (left, right) = (here[(x + side - 1) % side], here[(x + 1) % side]);
            *to += factor * (4.0 * here[x] - left - right - above[x] - below[x]);
        }
    }
}
