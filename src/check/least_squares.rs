//! The test of the iterations of least squares on a device, with the host as the reference.

use super::values::{farthest, noise};
use crate::device::Session;
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::geometry::{Geometry, GridSides, Roi};
use crate::kernel::{StepSizes, StepTarget};
use crate::least_squares::{
    Iterations, LeastSquares, ProjectionWeights, RELAX, ScanOperators, SliceMethod, SliceSolver,
};
use crate::operations::{SplitEnd, SplitGroups, SplitIteration};
use crate::solver::{slice_weights, split_images};
use crate::spectrum::{Filter, spectrum};
use opencl3::memory::CL_MEM_READ_WRITE;

/// Side of a slice, and number of bins.
const SIZE: usize = 64;
const PROJECTIONS: usize = 40;
const ITERATIONS: usize = 6;
/// Number of the iteration after which `Q f` is computed anew.
const ANEW: usize = 3;

/// Returns the error of a slice of noisy rows of a disc, relative to its largest value; that of every method in turn.
///
/// # Errors
/// Errors of the device.
pub(super) fn least_squares(session: &Session) -> Result<f64> {
    let mut scan = Geometry::half_turn(SIZE, PROJECTIONS, SIZE);
    // whose mirror image has other angles
    scan.angles.iter_mut().for_each(|angle| *angle *= 0.8);
    let operators = ScanOperators::new(&scan, GridSides::PowersOfTwo, |length| spectrum(Filter::Ramp, 1.0, length));
    let radius = 0.3 * SIZE as f64;
    let row = |i: usize| {
        let t = (i % SIZE) as f64 - 0.45 * SIZE as f64;
        ((radius * radius - t * t).max(0.0).sqrt() + 3.0 * noise(i)) as f32
    };
    let sinogram: Vec<f32> = (0..PROJECTIONS * SIZE).map(row).collect();
    let Some(groups) = SplitGroups::new(session.step_target(), SIZE) else {
        return Err(Error::Internal(format!("no kernels for slices of {SIZE}")));
    };
    let level = &operators.levels[0];
    let mut images = split_images(session, groups, 1, level)?;
    let mut worst = 0f64;
    for method in [SliceMethod::Tv, SliceMethod::Huber] {
        let request = LeastSquares {
            method,
            strength: 1.0,
            iterations: Iterations::Exactly(ITERATIONS),
            tolerance: 0.0,
            non_negative: true,
            huber: 0.05,
            interior: false,
            weights: ProjectionWeights::Uniform,
        };
        let solver = SliceSolver::new(&operators, request);
        let start = solver.start(&sinogram);
        images.load(session, &start.data, &start.slice)?;
        images.begin(session, &[slice_weights(level, start.form.as_ref())], false)?;
        for number in 0..ITERATIONS {
            let iteration = SplitIteration { number, relax: RELAX, anew: number == ANEW };
            images.iterate(session, 1, iteration, SplitEnd { fewest: ITERATIONS, tolerance: 0.0 })?;
        }
        images.finish(session, 1)?;
        let slice = session.buffer(SIZE * SIZE, CL_MEM_READ_WRITE, "a slice")?;
        images.store(session, 1, Roi { x: 0, y: 0, width: SIZE, height: SIZE }, &slice, 0)?;
        let mut got = vec![0f32; SIZE * SIZE];
        session.read(&slice, &mut got, "a slice")?;
        let want: Vec<f64> = solver.solve(&sinogram).slice.iter().map(|value| f64::from(*value)).collect();
        worst = worst.max(farthest(&got, &want));
    }
    Ok(worst)
}

/// Returns the reason why a device cannot search slices, if there is one.
pub(super) fn lacks(facts: &DeviceFacts) -> Option<&'static str> {
    let target = StepTarget { facts, sizes: &StepSizes::default() };
    SplitGroups::new(target, SIZE).is_none().then_some("local memory for lines of slices")
}
