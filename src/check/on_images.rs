//! The test of steps on projections as images.

use super::values::{BINS, farthest, noise};
use crate::device::Session;
use crate::error::{Error, Result};
use crate::operations::{
    BlockCorrector, BlockShape, DetectorBatch, DeviceRows, ProjectionState, RowBlocks, RowCorrection, SampleOrder,
};
use crate::resampling::PlaceTable;
use crate::source::{StoredRows, StoredSamples};
use crate::steps::{Band, Counts, Optics, Steps, widened};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::sync::Arc;

/// Number of rows of the detector for steps on images.
const IMAGE_ROWS: usize = 45;

/// Returns optics that do not distort.
pub(super) fn straight(size: [usize; 2], _: usize) -> Optics {
    Optics::of(size)
}

/// Returns optics that move rows by at most `most` rows, and bins as much more as a row is longer than a column.
pub(super) fn distorted([bins, rows]: [usize; 2], most: usize) -> Optics {
    let middle = [bins, rows].map(|length| (length as f64 - 1.0) / 2.0);
    let (largest, corner) = (most.min(3) as f64 / middle[1].max(1.0), middle[0].hypot(middle[1]).max(1.0));
    let table = PlaceTable::new([bins, rows], |at| {
        let [dx, dz] = [at[0] - middle[0], at[1] - middle[1]];
        let factor = 1.0 - largest * (dx.hypot(dz) / corner).powi(2);
        [middle[0] + factor * dx, middle[1] + factor * dz]
    });
    Optics { places: Some(Arc::new(table)), ..Optics::of([bins, rows]) }
}

/// Returns the error of a step on images: transmissions of two projections, on the host and on the device, in blocks
/// with what is around them if blocks are given. `optics` are those of a detector of a size, and move rows by at most so many.
pub(super) fn images(
    session: &Session,
    steps: Steps,
    blocks: Option<(usize, RowBlocks)>,
    optics: impl Fn([usize; 2], usize) -> Optics,
) -> Result<f64> {
    let (bins, rows) = blocks.map_or((BINS, IMAGE_ROWS), |(bins, blocks)| (bins, blocks.rows + 2 * blocks.halo()));
    let projections = 2;
    let pixels = bins * rows;
    let value = |i: usize| {
        let (y, x) = ((i % pixels / bins) as f64 / rows as f64, (i % bins) as f64 / bins as f64);
        let sample = if (x - 0.45).abs() + 0.7 * (y - 0.5).abs() < 0.3 { 0.6 } else { 0.0 };
        (0.95 - sample + 0.05 * noise(i)) as f32
    };
    let transmissions: Vec<f32> = (0..projections * pixels).map(value).collect();
    let reach = blocks.map_or(IMAGE_ROWS, |(_, blocks)| blocks.rotation_halo.saturating_sub(PlaceTable::REACH));
    let on_host = steps.on_images(&optics([bins, rows], reach));
    let state = |number| ProjectionState { number, progress: 0.0, level: 1.0, watched: false };
    let mut correction = RowCorrection::nothing(bins, rows, (0..projections).map(state).collect());
    let possible = on_host.on_device(&mut correction);
    let small = || RowBlocks::new(&correction.images, [bins, rows], projections);
    let Some(blocks) = blocks.map(|(_, blocks)| blocks).or_else(small).filter(|_| possible) else {
        return Err(Error::Internal("images become too large".into()));
    };
    let shape = BlockShape::straight(blocks, [bins, rows], projections);
    let stored = StoredRows::unbinned(StoredSamples::F32, bins);
    let mut corrector = BlockCorrector::new(session, &correction, stored, SampleOrder::Projections, shape)?;
    let sinograms: Buffer<f32> = session.buffer(projections * pixels, CL_MEM_READ_WRITE, "sinograms")?;
    for block in 0..rows.div_ceil(blocks.rows) {
        let wanted = blocks.of(block, rows);
        let read = widened(&wanted, blocks.halo(), rows);
        let frames = transmissions.chunks(pixels);
        let samples: Vec<f32> = frames.flat_map(|frame| &frame[read.start * bins..read.end * bins]).copied().collect();
        let counted = 0..wanted.len();
        let length = projections * bins;
        let into = DeviceRows { values: &sinograms, first: wanted.start * length, stride: length };
        let batch = DetectorBatch { rows: wanted.collect(), counted, place: 0, projections: 0..projections };
        corrector.correct_into(session, &batch, bytemuck::cast_slice(&samples), &into)?;
    }
    session.finish_uploads()?;
    let (mut got, mut want) = (vec![0f32; projections * pixels], vec![0f64; projections * pixels]);
    session.read(&sinograms, &mut got, "sinograms")?;
    for (p, frame) in transmissions.chunks(pixels).enumerate() {
        let mut frame = frame.to_vec();
        on_host.apply(&mut Band::new(&mut frame, rows, 0..rows, 0..rows), &mut Counts::default());
        for (i, value) in frame.into_iter().enumerate() {
            want[(i / bins * projections + p) * bins + i % bins] = value.into();
        }
    }
    Ok(farthest(&got, &want))
}
