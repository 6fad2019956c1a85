//! Slices with a small total variation, by the alternating direction method of multipliers.
//!
//! The step along the slice is a single preconditioned step of steepest descent with exact length, whose product with
//! `Q` also updates `Q f`.

use super::method::{Iterations, LeastSquares, SliceMethod};
use super::operators::ScanLevel;
use super::problem::{SliceProblem, SliceScale, SolvedSlice, SolverProgress, dot};
use super::state::{SplitBounds, SplitState, SplitWeights};
use super::torus::TorusMemory;

/// Fewest iterations before the change may end them.
pub const FEWEST: usize = 6;
/// Over-relaxation.
pub const RELAX: f32 = 1.5;
/// Iterations after which what is kept by recurrence is computed anew.
const ANEW: usize = 25;
/// Step `tau` in units of the contrast; it grows with the root of the side.
const STEP: f64 = 0.3;
/// Weight of the bounds relative to that of the gradient.
const BOUNDS: f64 = 0.3;

/// What the iterations of a slice depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitForm {
    pub weights: SplitWeights,
    pub bounds: SplitBounds,
    /// Gradient below which the penalty is quadratic.
    pub huber: f64,
    /// Factor of the sum of squared changes in the disc: its root is then relative to the contrast.
    pub of_changes: f64,
}

impl SplitForm {
    /// Returns what iterations of a slice depend on; `None` for rows without values.
    pub fn new(level: &ScanLevel, request: &LeastSquares, scale: &SliceScale) -> Option<SplitForm> {
        let SliceScale { contrast, lambda, low } = *scale;
        let tau = STEP * contrast * level.growth();
        if tau <= 0.0 || lambda <= 0.0 {
            return None;
        }
        let rho = lambda / tau;
        let huber = if request.method == SliceMethod::Huber { request.huber * contrast } else { 0.0 };
        Some(SplitForm {
            weights: SplitWeights { rho, nu: BOUNDS * rho },
            bounds: SplitBounds { tau: tau as f32, least: (huber / (huber + tau)) as f32, low },
            huber,
            of_changes: 1.0 / (level.pixels.max(1) as f64 * contrast * contrast),
        })
    }
}

/// Reports whether `Q f` is computed anew after iteration `number`, the first of which is 0.
pub fn is_anew(number: usize) -> bool {
    number % ANEW == ANEW - 1
}

/// A slice on its grid, and its multipliers.
pub struct FoundSplit {
    pub slice: Vec<f32>,
    pub multipliers: [Vec<f32>; 2],
}

/// Minimises the objective of `tv` or `huber`.
pub fn minimise(
    problem: &SliceProblem,
    request: &LeastSquares,
    iterations: Iterations,
    start: Vec<f32>,
    multipliers: Option<[Vec<f32>; 2]>,
    memory: &mut TorusMemory,
) -> (SolvedSlice, FoundSplit) {
    let SliceProblem { level, data, scale, .. } = problem;
    let Some(SplitForm { weights, bounds, huber, of_changes }) = SplitForm::new(level, request, scale) else {
        let zero = || vec![0f32; data.len()];
        let nothing = SolverProgress { iterations: 0, change: 0.0, converged: true };
        return (
            problem.solved(&zero(), 0.0, nothing, memory),
            FoundSplit { slice: zero(), multipliers: [zero(), zero()] },
        );
    };
    let SplitWeights { rho, nu } = weights;
    let preconditioner = level.preconditioner(rho, nu);
    let scaled = multipliers.map(|planes| planes.map(|plane| plane.iter().map(|u| u * bounds.tau).collect()));
    let mut state = SplitState::new(start, scaled, &bounds, &level.disc);
    let mut residual = vec![0f32; data.len()];
    let mut direction = vec![0f32; data.len()];
    let mut projected = vec![0f32; data.len()];
    level.project(&state.slice, &mut state.projected, memory);
    let (mut change, mut done, mut converged) = (f64::INFINITY, 0, false);
    for number in 0..iterations.most() {
        state.residual(data, weights, &bounds, &level.disc, &mut residual);
        level.torus.convolve(&residual, &mut direction, &preconditioner, memory);
        level.project(&direction, &mut projected, memory);
        let curvature = dot(&direction, &projected)
            + rho * SplitState::squared_gradient(&direction, level.form.grid)
            + nu * dot(&direction, &direction);
        if curvature <= 0.0 {
            converged = true;
            break;
        }
        let length = (dot(&residual, &direction) / curvature) as f32;
        let squares = state.advance(length, &direction, &projected, RELAX, &bounds, &level.disc);
        if is_anew(number) {
            level.project(&state.slice, &mut state.projected, memory);
        }
        done = number + 1;
        change = (squares * of_changes).sqrt();
        if iterations == Iterations::Auto && change < request.tolerance && done >= FEWEST {
            converged = true;
            break;
        }
    }
    let slice = state.bounded(&bounds, &level.disc);
    let multipliers = state.multipliers(&bounds);
    let converged = converged || iterations != Iterations::Auto;
    let penalty = scale.lambda * SplitState::variation(&slice, level.form.grid, huber);
    let found = problem.solved(&slice, penalty, SolverProgress { iterations: done, change, converged }, memory);
    (found, FoundSplit { slice, multipliers })
}
