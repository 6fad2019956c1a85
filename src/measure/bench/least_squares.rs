//! Times the iterations of least squares on a device.

use crate::device::Session;
use crate::error::Result;
use crate::geometry::{Geometry, GridSides};
use crate::least_squares::{
    Iterations, LeastSquares, ProjectionWeights, RELAX, ScanOperators, SliceMethod, SliceSolver, is_anew,
};
use crate::operations::{SplitEnd, SplitGroups, SplitImages, SplitIteration};
use crate::profile::Throughput;
use crate::solver::{slice_weights, split_images};
use crate::spectrum::{Filter, spectrum};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Number of projections: the time of an iteration does not depend on it.
const PROJECTIONS: usize = 16;
/// Iterations of a pass, which has one after which `Q f` is computed anew.
const ITERATIONS: usize = 25;
/// Largest number of slices that are searched together.
const MOST: usize = 8;
/// Time for which the device computes before passes are timed.
const WARM: Duration = Duration::from_millis(500);
/// Values for each pixel that an iteration reads and writes: the residual and its transform 7, columns with the inverse of the
/// circulant 2.5, the direction 2, rows of twice the side 3, their columns 6, the step 9, the split gradients 5.
const VALUES: f64 = 34.5;

/// The time of an iteration for a slice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IterationTiming {
    pub method: String,
    pub device: String,
    /// Side of a slice in pixels.
    pub size: usize,
    /// Number of slices that were searched together.
    pub slices: usize,
    pub milliseconds: f64,
    /// Bytes of device memory that an iteration of a slice reads and writes.
    pub bytes: f64,
    /// Time for these at the rate of device memory in the profile, in milliseconds.
    pub floor: Option<f64>,
}

/// Times iterations for slices of `size` pixels a side, a power of two. Returns `None` where the device has no kernels for them.
///
/// # Errors
/// Errors of the device.
pub fn time_iterations(
    session: &Session,
    method: SliceMethod,
    size: usize,
    passes: usize,
    rates: Option<&Throughput>,
) -> Result<Option<IterationTiming>> {
    let Some(groups) = SplitGroups::new(session.step_target(), size) else { return Ok(None) };
    let half = session.facts.global_memory / 2;
    let fits = |slices: &usize| {
        let layout = SplitImages::layout(groups, *slices);
        layout.bytes() <= half && layout.largest() <= session.facts.max_allocation
    };
    let counts = std::iter::successors(Some(MOST), |slices| Some(slices / 2).filter(|slices| *slices > 0));
    let Some(slices) = counts.into_iter().find(fits) else { return Ok(None) };

    let scan = Geometry::half_turn(size, PROJECTIONS, size);
    let operators = ScanOperators::new(&scan, GridSides::PowersOfTwo, |length| spectrum(Filter::Ramp, 1.0, length));
    let level = &operators.levels[0];
    let iterations = Iterations::Exactly(ITERATIONS);
    let request = LeastSquares {
        method,
        strength: 1.0,
        iterations,
        tolerance: 0.0,
        non_negative: true,
        huber: 0.05,
        interior: false,
        weights: ProjectionWeights::Uniform,
    };
    let sinogram: Vec<f32> = (0..PROJECTIONS * size).map(|i| crate::check::noise(i) as f32).collect();
    let start = SliceSolver::new(&operators, request).start(&sinogram);
    let mut images = split_images(session, groups, slices, level)?;
    let weights = vec![slice_weights(level, start.form.as_ref()); slices];
    let (data, image) = (start.data.repeat(slices), start.slice.repeat(slices));

    let mut pass = || -> Result<Duration> {
        images.load(session, &data, &image)?;
        images.begin(session, &weights, false)?;
        session.finish()?;
        let began = Instant::now();
        for number in 0..ITERATIONS {
            let iteration = SplitIteration { number, relax: RELAX, anew: is_anew(number) };
            images.iterate(session, slices, iteration, SplitEnd { fewest: ITERATIONS, tolerance: 0.0 })?;
        }
        session.finish()?;
        Ok(began.elapsed())
    };
    let began = Instant::now();
    while began.elapsed() < WARM {
        pass()?;
    }
    let mut times = (0..passes.max(1)).map(|_| pass()).collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    let bytes = VALUES * 4.0 * (size * size) as f64;
    let rate = rates.map(|rates| rates.device_memory).filter(|rate| *rate > 0.0);
    Ok(Some(IterationTiming {
        method: method.to_string(),
        device: session.device_name().to_owned(),
        size,
        slices,
        milliseconds: times[times.len() / 2].as_secs_f64() * 1e3 / (ITERATIONS * slices) as f64,
        bytes,
        // the profile has GB/s
        floor: rate.map(|rate| bytes / (rate * 1e9) * 1e3),
    }))
}

/// Returns a timing as text.
pub fn iteration_text(timing: &IterationTiming) -> String {
    let IterationTiming { method, size, slices, milliseconds, bytes, floor, .. } = timing;
    let share = floor.map_or(String::new(), |floor| {
        format!(
            ", {floor:.3} ms at the rate of device memory in the profile: {:.0} % of it",
            100.0 * floor / milliseconds
        )
    });
    format!(
        "{method}: {milliseconds:.3} ms for an iteration of a slice of {size} x {size} pixels, {slices} slices together; {:.0} MB{share}\n",
        bytes / 1e6
    )
}
