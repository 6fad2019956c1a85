//! The test of steps on rows of projections.

use super::values::{BINS, PROJECTIONS, ROWS, farthest, largest, noise};
use crate::device::Session;
use crate::error::Result;
use crate::geometry::{ExtendedField, even_angles};
use crate::operations::{
    AirCorrection, BlockCorrector, BlockShape, DetectorBatch, DeviceRows, FieldImages, LineIntegrals, OutlierForm,
    ProjectionState, RowBlocks, RowCorrection, RowExtender, RowOperation, SampleBinner, SampleOrder, SinogramBatch,
};
use crate::source::{SampleType, StoredRows, StoredSamples};
use crate::steps::{Air, BeamHardening, SMALLEST_TRANSMISSION};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// Returns the error of binning, for counts and floats as means of squares of them: the larger one.
pub(super) fn binning(session: &Session, by: usize) -> Result<f64> {
    let (rows, projections, bins) = (2, 3, 2 * BINS / by);
    // one is left over
    let width = bins * by + 1;
    let counts: Vec<u16> = (0..projections * rows * by * width).map(|i| 300 + (65_000.0 * noise(i)) as u16).collect();
    let floats: Vec<f32> = counts.iter().map(|&count| f32::from(count) * 0.37 - 9000.0).collect();
    let error = |sample: SampleType, samples: &[u8], values: &dyn Fn(usize) -> f64| -> Result<f64> {
        let stored = StoredRows { samples: StoredSamples { sample, swapped: false }, by, width };
        let mut buffer: Buffer<u8> = session.buffer(samples.len(), CL_MEM_READ_WRITE, "samples")?;
        session.write(&mut buffer, samples, "samples")?;
        let binner = SampleBinner::new(session, stored, SampleOrder::Projections, rows * projections)?;
        let means = binner.run(session, &buffer, rows, projections)?;
        let mut got = vec![0f32; rows * projections * bins];
        session.read_uploaded(means, bytemuck::cast_slice_mut(&mut got), "binned samples")?;
        let want = |i: usize| {
            let (row, bin) = (i / bins, i % bins);
            let sum: f64 = (0..by * by).map(|k| values((row * by + k / by) * width + bin * by + k % by)).sum();
            sum / (by * by) as f64
        };
        Ok(farthest(&got, &(0..got.len()).map(want).collect::<Vec<_>>()))
    };
    let of_counts = error(SampleType::U16, bytemuck::cast_slice(&counts), &|i| counts[i].into())?;
    let of_floats = error(SampleType::F32, bytemuck::cast_slice(&floats), &|i| floats[i].into())?;
    Ok(of_counts.max(of_floats))
}

/// Steps on rows that are tried beside flat and dark fields and -log.
#[derive(Default)]
pub(super) struct StepsOnRows<'a> {
    pub outliers: Option<OutlierForm>,
    pub air: Option<Air>,
    /// True if the beam has components, with weights in each projection.
    pub eigen: bool,
    /// True if transmissions are divided by an image.
    pub divided: bool,
    pub hardening: Option<&'a BeamHardening>,
}

/// Returns the error of steps on rows: counts, some of them outliers, through fields, the normalisation by air and by an
/// image, -log and a polynomial.
pub(super) fn rows(session: &Session, steps: StepsOnRows) -> Result<f64> {
    let StepsOnRows { outliers, air, eigen, divided, hardening } = steps;
    let projections = 3;
    let bright = |i: usize| if i % 211 == 7 { 60_000 } else { 300 + (900.0 * noise(i)) as u16 };
    let counts: Vec<u16> = (0..projections * ROWS * BINS).map(bright).collect();
    let flat: Vec<f32> = (0..ROWS * BINS).map(|i| 1500.0 + 200.0 * noise(i + 5) as f32).collect();
    let dark: Vec<f32> = (0..ROWS * BINS).map(|i| 90.0 + 9.0 * noise(i + 9) as f32).collect();
    let divisor: Vec<f32> = (0..ROWS * BINS).map(|i| 0.7 + 0.5 * noise(i + 3) as f32).collect();
    let count_of_components = if eigen { 2 } else { 0 };
    let components: Vec<f32> =
        (0..count_of_components * ROWS * BINS).map(|i| 60.0 * noise(i + 13) as f32 - 30.0).collect();
    let weights: Vec<f32> = (0..count_of_components * projections).map(|i| 1.5 - 0.7 * i as f32).collect();
    let level = |p: usize| 0.8 + 0.13 * p as f32;
    let state = |number| ProjectionState { number, progress: 0.0, level: level(number), watched: false };
    // no more bins than a row has
    let air = match air {
        None => AirCorrection::Without,
        Some(Air::Sides(left, right)) => AirCorrection::Sides(left.min(BINS / 2), right.min(BINS / 2)),
        Some(Air::Region(_)) => AirCorrection::Levels,
    };
    let polynomial = hardening.map(|hardening| hardening.polynomial(f32::MAX));
    let after: [Option<&dyn RowOperation>; 2] =
        [Some(&LineIntegrals), polynomial.as_ref().map(|polynomial| polynomial as _)];
    let correction = RowCorrection {
        outliers,
        air,
        divisor: divided.then_some(divisor.as_slice()),
        weights: weights.clone(),
        fields: Some(FieldImages { flat: &flat, flat2: None, dark: &dark, components: &components }),
        after: after.into_iter().flatten().collect(),
        ..RowCorrection::nothing(BINS, ROWS, (0..projections).map(state).collect())
    };
    let stored = StoredSamples { sample: SampleType::U16, swapped: false };
    let stored = StoredRows::unbinned(stored, BINS);
    let shape = BlockShape::straight(RowBlocks::all(ROWS), [BINS, ROWS], projections);
    let mut corrector = BlockCorrector::new(session, &correction, stored, SampleOrder::Projections, shape)?;
    let length = projections * BINS;
    let sinograms: Buffer<f32> = session.buffer(ROWS * length, CL_MEM_READ_WRITE, "sinograms")?;
    let all = DetectorBatch { rows: (0..ROWS).collect(), counted: 0..ROWS, place: 0, projections: 0..projections };
    let into = DeviceRows { values: &sinograms, first: 0, stride: length };
    corrector.correct_into(session, &all, bytemuck::cast_slice(&counts), &into)?;
    corrector.take_counts(session, ROWS)?;
    let mut got = vec![0f32; ROWS * length];
    session.read(&sinograms, &mut got, "sinograms")?;
    let line = |i: usize| {
        let (row, p) = (i / projections, i % projections);
        let frame = &counts[p * ROWS * BINS..][..ROWS * BINS];
        let transmission = |bin: usize| {
            let (count, at) = (cleaned(frame, row, bin, outliers), row * BINS + bin);
            let beam = (0..count_of_components).fold(f64::from(flat[at]) - f64::from(dark[at]), |beam, k| {
                beam + f64::from(weights[p * count_of_components + k]) * f64::from(components[k * ROWS * BINS + at])
            });
            (count - f64::from(dark[at])) / beam
        };
        let line = normalized((0..BINS).map(transmission).collect(), air, level(p).into());
        let factors = polynomial.map(|polynomial| polynomial.factors).unwrap_or_default();
        let by = |bin: usize| if divided { f64::from(divisor[row * BINS + bin]) } else { 1.0 };
        let line: Vec<f64> = line.into_iter().enumerate().map(|(bin, value)| value / by(bin)).collect();
        line.into_iter().map(move |value| {
            let p = -value.max(f64::from(SMALLEST_TRANSMISSION)).ln();
            factors.iter().zip(2..).fold(p, |sum, (&factor, power)| sum + f64::from(factor) * p.powi(power))
        })
    };
    Ok(farthest(&got, &(0..ROWS * projections).flat_map(line).collect::<Vec<_>>()))
}

/// Returns the transmissions of a row divided by those of air.
pub(super) fn normalized(line: Vec<f64>, air: AirCorrection, level: f64) -> Vec<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let at = |bin: usize| match air {
        AirCorrection::Without => 1.0,
        AirCorrection::Levels => level,
        AirCorrection::Sides(left, 0) => mean(&line[..left]),
        AirCorrection::Sides(0, right) => mean(&line[BINS - right..]),
        AirCorrection::Sides(left, right) => {
            let (start, end) = (mean(&line[..left]), mean(&line[BINS - right..]));
            let (from, to) = ((left as f64 - 1.0) / 2.0, BINS as f64 - 1.0 - (right as f64 - 1.0) / 2.0);
            start + ((bin as f64 - from) / (to - from)).clamp(0.0, 1.0) * (end - start)
        }
    };
    line.iter().enumerate().map(|(bin, value)| value / at(bin)).collect()
}

/// Returns the error of the extension of rows: two sinograms of a whole turn with the axis near one end, and with one
/// that moves near the other.
pub(super) fn extension(session: &Session) -> Result<f64> {
    let (slices, detector) = (2, BINS);
    let angles = even_angles(0.0, 360.0, PROJECTIONS);
    let moving: Vec<f64> = (0..PROJECTIONS).map(|p| 120.0 + 0.3 * (p % 5) as f64).collect();
    let mut errors = Vec::new();
    for (center, axis) in [(31.25, vec![31.25; PROJECTIONS]), (120.6, moving)] {
        let field = ExtendedField::new(detector, center, &axis, &angles)?;
        let length = PROJECTIONS * field.bins;
        let seen = |slice: usize, p: usize, bin: usize| (noise((slice * PROJECTIONS + p) * BINS + bin) - 0.3) as f32;
        let mut values = vec![f32::NAN; slices * length];
        for (slice, sinogram) in values.chunks_mut(length).enumerate() {
            let rows = sinogram.chunks_mut(detector).take(PROJECTIONS).enumerate();
            rows.for_each(|(p, row)| row.iter_mut().enumerate().for_each(|(bin, value)| *value = seen(slice, p, bin)));
        }
        let mut extender = RowExtender::new(session, &field, slices, PROJECTIONS)?;
        let mut sinograms: Buffer<f32> = session.buffer(values.len(), CL_MEM_READ_WRITE, "sinograms")?;
        session.write(&mut sinograms, &values, "sinograms")?;
        let batch = SinogramBatch { values: &sinograms, first: 0, slices, projections: PROJECTIONS, bins: field.bins };
        extender.seen(session, &batch)?;
        extender.extend(session, &batch)?;
        session.finish()?;
        session.read(&sinograms, &mut values, "sinograms")?;
        let want = |i: usize| {
            let (slice, p, bin) = (i / length, i % length / field.bins, i % field.bins);
            let weights = field.weights();
            match bin.checked_sub(field.before) {
                Some(bin) if bin < detector => {
                    f64::from(seen(slice, p, bin)) * f64::from(weights[p.min(weights.len() - 1)][bin])
                }
                _ => 0.0,
            }
        };
        errors.push(farthest(&values, &(0..values.len()).map(want).collect::<Vec<_>>()));
    }
    Ok(largest(errors.into_iter()))
}

/// Returns a pixel of a frame, or the median around it if it is an outlier.
fn cleaned(frame: &[u16], row: usize, bin: usize, outliers: Option<OutlierForm>) -> f64 {
    let count = f64::from(frame[row * BINS + bin]);
    let Some(OutlierForm { size, threshold, both }) = outliers else { return count };
    // mirrored with the outermost value repeated
    let at = |place: usize, step: usize, length: usize| {
        let folded = (place as isize + step as isize - (size / 2) as isize).rem_euclid(2 * length as isize) as usize;
        folded.min(2 * length - 1 - folded)
    };
    let places = (0..size * size).map(|i| at(row, i / size, ROWS) * BINS + at(bin, i % size, BINS));
    let mut around: Vec<u16> = places.map(|place| frame[place]).collect();
    around.sort_unstable();
    let median = f64::from(around[size * size / 2]);
    let excess = count - median;
    if excess > f64::from(threshold) || both && -excess > f64::from(threshold) { median } else { count }
}
