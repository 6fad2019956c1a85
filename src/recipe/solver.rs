//! `--method` and what belongs to it.

use super::errors::SolverFlagError;
use crate::cli::ReconstructArgs;
use crate::error::Result;
use crate::least_squares::{Iterations, LeastSquares, ProjectionWeights, SliceMethod};

/// Default of `--tolerance`.
const TOLERANCE: f64 = 5e-4;

/// Default of `--huber-threshold`.
const HUBER: f64 = 0.05;

/// Returns the request for least squares; `None` for filtered back projection.
///
/// # Errors
/// [`Error::Usage`](crate::error::Error::Usage) that names the flag.
pub fn solver(args: &ReconstructArgs) -> Result<Option<LeastSquares>> {
    let method = args.method.unwrap_or_default();
    let bounded = matches!(method, SliceMethod::Tv | SliceMethod::Huber);
    let regular = bounded || method == SliceMethod::Tikhonov;
    let least_squares = method != SliceMethod::Fbp;
    for (flag, given, used, by) in [
        ("--strength", args.strength.is_some(), regular, "tv, huber or tikhonov"),
        ("--iterations", args.iterations.is_some(), least_squares, "tv, huber, tikhonov or cgls"),
        ("--tolerance", args.tolerance.is_some(), regular, "tv, huber or tikhonov"),
        ("--huber-threshold", args.huber_threshold.is_some(), method == SliceMethod::Huber, "huber"),
        ("--interior", args.interior, least_squares, "tv, huber, tikhonov or cgls"),
        ("--weights", args.weights.is_some(), least_squares, "tv, huber, tikhonov or cgls"),
        ("--non-negative", args.non_negative, bounded, "tv or huber"),
        ("--no-non-negative", args.no_non_negative, bounded, "tv or huber"),
    ] {
        if given && !used {
            return Err(SolverFlagError::Unused { flag, method: method.to_string(), by }.into());
        }
    }
    let strength = positive("--strength", args.strength.unwrap_or(1.0), 1e6)?;
    let tolerance = positive("--tolerance", args.tolerance.unwrap_or(TOLERANCE), 1.0)?;
    let huber = positive("--huber-threshold", args.huber_threshold.unwrap_or(HUBER), 1.0)?;
    let iterations = match &args.iterations {
        None => Iterations::Auto,
        Some(text) => text.0.parse()?,
    };
    Ok(least_squares.then_some(LeastSquares {
        method,
        strength,
        iterations,
        tolerance,
        non_negative: bounded && !args.no_non_negative,
        huber,
        interior: args.interior,
        weights: ProjectionWeights::of(args.weights.as_deref()),
    }))
}

/// Checks a number above 0 and at most `most`.
fn positive(flag: &'static str, value: f64, most: f64) -> Result<f64> {
    // NaN is refused, too
    if value > 0.0 && value <= most { Ok(value) } else { Err(SolverFlagError::Outside { flag, value, most }.into()) }
}
