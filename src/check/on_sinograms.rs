//! The test of steps on sinograms.

use super::values::{BINS, farthest, noise};
use crate::device::Session;
use crate::error::Result;
use crate::operations::{SinogramBatch, SinogramShape};
use crate::steps::stripes::Stripes;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// Returns the error of a stripe removal method: samples with stripes and noise, on the host and on the device, in
/// three sinograms, at most two of them together.
pub(super) fn stripes(session: &Session, method: &Stripes, projections: usize) -> Result<f64> {
    let value = |i: usize| {
        let (p, bin) = ((i / BINS) as f64 / projections as f64, (i % BINS) as f64 / BINS as f64);
        let stripe = if i % BINS % 17 == 3 { 0.2 } else { 0.0 };
        ((3.0 * (1.0 - (2.0 * bin - 1.0).powi(2)) * (1.3 + (6.0 * p).sin())) + stripe + 0.05 * noise(i)) as f32
    };
    let (slices, at_once) = (3, 2);
    let sinograms: Vec<f32> = (0..slices * projections * BINS).map(value).collect();
    let mut values: Buffer<f32> = session.buffer(sinograms.len(), CL_MEM_READ_WRITE, "sinograms")?;
    session.write(&mut values, &sinograms, "sinograms")?;
    let batch = SinogramBatch { values: &values, first: 0, slices, projections, bins: BINS };
    let shape = SinogramShape { slices: at_once, projections, bins: BINS };
    let mut step = method.on_device(session, shape)?;
    step.apply_in_parts(session, &batch, at_once)?;
    session.finish()?;
    let (mut got, mut want) = (vec![0f32; sinograms.len()], sinograms);
    session.read(&values, &mut got, "sinograms")?;
    want.chunks_mut(projections * BINS).for_each(|sinogram| method.remove(sinogram, projections, BINS));
    Ok(farthest(&got, &want.into_iter().map(f64::from).collect::<Vec<_>>()))
}
