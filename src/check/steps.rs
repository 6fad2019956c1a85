//! Tests, before a run, of the steps that a device does: results for small data are compared with the host's and with
//! definitions in `f64`.

use super::least_squares;
use super::slices::{histogram, samples};
use super::sums::sums;
use super::values::{farthest, largest, noise};
use crate::device::Session;
use crate::digest::PartsDigest;
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::geometry::{ExtendedField, Roi, even_angles};
use crate::kernel::{ImageFilterBackend, StepBackend, StepBackends, StepSizes};
use crate::operations::{
    AirCorrection, BlockCorrector, BlockShape, DetectorBatch, DeviceRows, FieldImages, LineIntegrals, OutlierForm,
    ProjectionState, RowBlocks, RowCorrection, RowExtender, RowOperation, SampleBinner, SampleOrder, SinogramBatch,
    SinogramShape, SliceCounter,
};
use crate::operations::{EncodedSample, files};
use crate::resampling::PlaceTable;
use crate::source::{SampleType, StoredRows, StoredSamples};
use crate::steps::stripes::Stripes;
use crate::steps::{
    Air, Band, BeamHardening, Counts, Optics, Outliers, Paganin, SMALLEST_TRANSMISSION, Steps, Tilt, Unsharp, widened,
};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::sync::Arc;

/// Number of bins: odd, and more than a work-group has items.
const BINS: usize = 141;
/// Number of projections.
const PROJECTIONS: usize = 83;
/// Number of rows of the detector.
const ROWS: usize = 9;

/// Sizes of a run that decide which programs the steps need; the steps that are tried have them, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestShape {
    /// Number of values of a column.
    pub projections: usize,
    /// Bins, and blocks of rows, for steps on images; `None` for a small detector in blocks that suit it.
    pub images: Option<(usize, RowBlocks)>,
}

impl Default for TestShape {
    fn default() -> Self {
        TestShape { projections: PROJECTIONS, images: None }
    }
}

/// The steps that a device is to do.
pub struct DeviceSteps<'a> {
    pub steps: &'a Steps,
    pub backends: StepBackends,
    /// Number of bins and rows that the device makes one of.
    pub binning: usize,
    /// True if rows are extended.
    pub extended: bool,
    /// The sample type that slices are written as.
    pub sample: EncodedSample,
    /// True if the device counts the values of slices.
    pub counts_values: bool,
    pub shape: TestShape,
}

impl DeviceSteps<'_> {
    /// Returns a key that identifies the steps, the backend that transforms images, the sizes of work-groups and the
    /// text of all kernels; `None` if the device does no step.
    pub fn key(&self, sizes: &StepSizes, images: ImageFilterBackend) -> Option<String> {
        let names: Vec<String> = self.checks().iter().map(StepCheck::name).collect();
        let texts = files().iter().map(|((_, text), _)| *text).collect::<Vec<_>>().concat();
        let (names, sizes) = (names.join(" "), format!("{sizes:?} {images:?} {:?}", self.shape));
        (!names.is_empty()).then(|| format!("steps-{}", PartsDigest::of([names, sizes, texts])))
    }

    /// Returns the checks that are done before the run.
    fn checks(&self) -> Vec<StepCheck> {
        let Steps { outliers, fields, air, double_flat, tilt, phase, hardening, stripes, .. } = self.steps;
        // the tilt is part of the table
        let mapped = self.shape.images.is_some_and(|(_, blocks)| blocks.mapped);
        let resampled = if mapped { Some(StepCheck::Distortion) } else { tilt.map(StepCheck::Tilt) };
        let images = resampled.into_iter().chain(phase.map(StepCheck::Phase));
        let binning = (self.binning > 1).then_some(StepCheck::Binning(self.binning));
        let rows = binning.into_iter().chain([StepCheck::Rows(outliers.clone())]);
        let eigen = fields.eigen.map(|_| StepCheck::EigenFlats);
        let divided = double_flat.map(|_| StepCheck::DoubleFlat);
        let rows = rows.chain(air.map(StepCheck::Air)).chain(eigen).chain(divided).chain(images);
        let rows = rows.chain(hardening.clone().map(StepCheck::Hardening));
        let stripes = stripes.iter().copied().map(StepCheck::Stripes);
        let extension = self.extended.then_some(StepCheck::Extension);
        let all =
            rows.chain(stripes).chain(extension).chain([StepCheck::Samples(self.sample), StepCheck::LeastSquares]);
        let all = all.filter(|check| check.backend(self.backends) == StepBackend::Device);
        // also of slices that the host finishes
        all.chain(self.counts_values.then_some(StepCheck::Histogram)).collect()
    }

    /// Runs the checks of all steps.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn check(&self, session: &Session) -> Result<Vec<StepError>> {
        self.checks().iter().map(|check| check.run(session, self.shape)).collect()
    }
}

/// A step that is tried on its own.
#[derive(Clone, Debug, PartialEq)]
pub enum StepCheck {
    /// Means of this many bins and rows.
    Binning(usize),
    /// Steps on rows of projections, with the removal of outliers or without.
    Rows(Option<Outliers>),
    /// Steps on rows of projections with the normalisation by air.
    Air(Air),
    /// Steps on rows of projections with components of the beam.
    EigenFlats,
    /// Steps on rows of projections with the division by an image, and the sums that make it.
    DoubleFlat,
    /// Pixels that are looked up elsewhere.
    Distortion,
    Tilt(Tilt),
    Phase(Paganin),
    /// Steps on rows of projections with a polynomial of line integrals.
    Hardening(BeamHardening),
    Stripes(Stripes),
    /// Rows of an extended field.
    Extension,
    /// Samples of slices as they are written.
    Samples(EncodedSample),
    /// Counts and moments of the values of slices.
    Histogram,
    /// Iterations of least squares.
    LeastSquares,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq)]
pub struct StepError {
    pub step: String,
    /// Error relative to the range of values; for samples of slices, their difference; for a histogram, 1 if it
    /// differs.
    pub error: f64,
    pub margin: f64,
}

impl StepError {
    /// Reports whether the step is right.
    pub fn right(&self) -> bool {
        self.error <= self.margin
    }
}

impl StepCheck {
    /// Returns the checks of all steps that a device can do, with usual parameters.
    pub fn all() -> Vec<StepCheck> {
        let binning = [2, 3].map(StepCheck::Binning);
        let rows = [None, Some(Outliers::new(3, 400.0, true))].map(StepCheck::Rows);
        let air = [Air::Sides(9, 5), Air::Region(Roi { x: 0, y: 0, width: 9, height: 5 })].map(StepCheck::Air);
        let sharp = Paganin { length: 2.0, unsharp: Some(Unsharp { sigma: 1.5, amount: 2.0 }) };
        let images = [StepCheck::Distortion, StepCheck::Tilt(Tilt { degrees: 0.7 }), StepCheck::Phase(sharp)];
        let hardening = "0.1,-0.02".parse().ok().map(StepCheck::Hardening);
        let samples = [EncodedSample::Float, EncodedSample::Half, EncodedSample::Unsigned16, EncodedSample::Unsigned8];
        let stripes = Stripes::all_methods().into_iter().map(StepCheck::Stripes);
        binning
            .into_iter()
            .chain(rows)
            .chain(air)
            .chain([StepCheck::EigenFlats, StepCheck::DoubleFlat])
            .chain(images)
            .chain(hardening)
            .chain(stripes)
            .chain([StepCheck::Extension])
            .chain(samples.map(StepCheck::Samples))
            .chain([StepCheck::Histogram, StepCheck::LeastSquares])
            .collect()
    }

    /// Returns the step that is checked, with its parameters.
    pub fn name(&self) -> String {
        match self {
            StepCheck::Binning(by) => format!("binning {by}"),
            StepCheck::Rows(None) => "rows".to_owned(),
            StepCheck::Rows(Some(outliers)) => format!("rows with outliers {outliers}"),
            StepCheck::Air(air) => format!("air {air}"),
            StepCheck::EigenFlats => "eigen flats".to_owned(),
            StepCheck::DoubleFlat => "double flat".to_owned(),
            StepCheck::Distortion => "distortion".to_owned(),
            StepCheck::Tilt(tilt) => format!("tilt {}", tilt.degrees),
            StepCheck::Phase(paganin) => format!("phase {paganin}"),
            StepCheck::Hardening(polynomial) => format!("beam hardening {polynomial}"),
            StepCheck::Stripes(method) => format!("stripes {method}"),
            StepCheck::Extension => "extension of rows".to_owned(),
            StepCheck::Samples(EncodedSample::Float) => "samples of slices, f32".to_owned(),
            StepCheck::Samples(EncodedSample::Half) => "samples of slices, f16".to_owned(),
            StepCheck::Samples(EncodedSample::Unsigned16) => "samples of slices, u16".to_owned(),
            StepCheck::Samples(EncodedSample::Unsigned8) => "samples of slices, u8".to_owned(),
            StepCheck::Histogram => "histogram of slices".to_owned(),
            StepCheck::LeastSquares => "least squares".to_owned(),
        }
    }

    /// Returns the backend that does the step.
    pub fn backend(&self, backends: StepBackends) -> StepBackend {
        match self {
            StepCheck::Binning(_) | StepCheck::Rows(_) | StepCheck::Air(_) => backends.rows,
            StepCheck::EigenFlats | StepCheck::DoubleFlat => backends.rows,
            StepCheck::Hardening(_) | StepCheck::Extension => backends.rows,
            StepCheck::Distortion | StepCheck::Tilt(_) | StepCheck::Phase(_) => backends.images,
            StepCheck::Stripes(_) => backends.sinograms,
            StepCheck::Samples(_) | StepCheck::Histogram => backends.slices,
            StepCheck::LeastSquares => backends.solver,
        }
    }

    /// Returns the capability that the device lacks for the step, if any.
    pub fn lacks(&self, facts: &DeviceFacts) -> Option<&'static str> {
        match self {
            // whole numbers are scaled in f64 everywhere
            StepCheck::Samples(EncodedSample::Unsigned16 | EncodedSample::Unsigned8) => {
                (!facts.has("cl_khr_fp64")).then_some("double precision")
            }
            StepCheck::Histogram => SliceCounter::lacks(facts),
            StepCheck::LeastSquares => least_squares::lacks(facts),
            _ => None,
        }
    }

    /// Returns the largest error of a device that does the step correctly, and why so much is allowed.
    fn margin(&self) -> (f64, &'static str) {
        match self {
            StepCheck::Stripes(Stripes::Filtering { .. }) => {
                (1e-2, "values that are equal within rounding may be sorted in another order")
            }
            StepCheck::Binning(_) | StepCheck::Extension => (5e-7, "one rounding to f32"),
            StepCheck::Rows(_)
            | StepCheck::Air(_)
            | StepCheck::EigenFlats
            | StepCheck::DoubleFlat
            | StepCheck::Hardening(_) => (1e-5, "roundings of divisions and of the logarithm"),
            StepCheck::Distortion | StepCheck::Tilt(_) => (1e-5, "roundings of positions and weights"),
            StepCheck::Stripes(_) => (1e-5, "sums over projections or bins in f32"),
            StepCheck::Phase(Paganin { unsharp, .. }) => (
                2e-5 * (1.0 + unsharp.map_or(0.0, |unsharp| unsharp.amount)),
                "images of other sizes, which end beyond the filter's halo",
            ),
            StepCheck::Samples(_) | StepCheck::Histogram => (0.0, "bit for bit"),
            StepCheck::LeastSquares => (1e-3, "roundings that grow where gradients are shrunk or not"),
        }
    }

    /// Tries the step on a device.
    ///
    /// # Errors
    /// Errors of the device; a wrong result is none.
    pub fn run(&self, session: &Session, shape: TestShape) -> Result<StepError> {
        let alone = |blocks: RowBlocks| match self {
            StepCheck::Distortion => RowBlocks { filter_halo: 0, images: None, mapped: true, ..blocks },
            StepCheck::Tilt(_) => RowBlocks { filter_halo: 0, images: None, mapped: false, ..blocks },
            _ => RowBlocks { rotation_halo: 0, mapped: false, ..blocks },
        };
        let of_images = shape.images.map(|(bins, blocks)| (bins, alone(blocks)));
        let error = match self {
            StepCheck::Binning(by) => binning(session, *by),
            StepCheck::Rows(outliers) => {
                rows(session, StepsOnRows { outliers: outliers.as_ref().map(Outliers::form), ..Default::default() })
            }
            StepCheck::Air(air) => rows(session, StepsOnRows { air: Some(*air), ..Default::default() }),
            StepCheck::EigenFlats => rows(session, StepsOnRows { eigen: true, ..Default::default() }),
            StepCheck::DoubleFlat => rows(session, StepsOnRows { divided: true, ..Default::default() })
                .and_then(|error| Ok(error.max(sums(session, [ROWS, shape.projections, BINS])?))),
            StepCheck::Hardening(polynomial) => {
                rows(session, StepsOnRows { hardening: Some(polynomial), ..Default::default() })
            }
            StepCheck::Extension => extension(session),
            StepCheck::Distortion => images(session, Steps::default(), of_images, distorted),
            StepCheck::Tilt(tilt) => {
                images(session, Steps { tilt: Some(*tilt), ..Steps::default() }, of_images, straight)
            }
            StepCheck::Phase(phase) => {
                images(session, Steps { phase: Some(*phase), ..Steps::default() }, of_images, straight)
            }
            StepCheck::Stripes(method) => stripes(session, method, shape.projections),
            StepCheck::Samples(sample) => samples(session, *sample),
            StepCheck::Histogram => histogram(session),
            StepCheck::LeastSquares => least_squares::least_squares(session),
        }?;
        Ok(StepError { step: self.name(), error, margin: self.margin().0 })
    }
}

/// Returns the error of a stripe removal method: samples with stripes and noise, on the host and on the device, in
/// three sinograms, at most two of them together.
fn stripes(session: &Session, method: &Stripes, projections: usize) -> Result<f64> {
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

/// Returns the error of binning, for counts and floats as means of squares of them: the larger one.
fn binning(session: &Session, by: usize) -> Result<f64> {
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
struct StepsOnRows<'a> {
    outliers: Option<OutlierForm>,
    air: Option<Air>,
    /// True if the beam has components, with weights in each projection.
    eigen: bool,
    /// True if transmissions are divided by an image.
    divided: bool,
    hardening: Option<&'a BeamHardening>,
}

/// Returns the error of steps on rows: counts, some of them outliers, through fields, the normalisation by air and by an
/// image, -log and a polynomial.
fn rows(session: &Session, steps: StepsOnRows) -> Result<f64> {
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
fn normalized(line: Vec<f64>, air: AirCorrection, level: f64) -> Vec<f64> {
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
fn extension(session: &Session) -> Result<f64> {
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

/// Number of rows of the detector for steps on images.
const IMAGE_ROWS: usize = 45;

/// Returns optics that do not distort.
fn straight(size: [usize; 2], _: usize) -> Optics {
    Optics::of(size)
}

/// Returns optics that move rows by at most `most` rows, and bins as much more as a row is longer than a column.
fn distorted([bins, rows]: [usize; 2], most: usize) -> Optics {
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
fn images(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_margin() {
        let page = include_str!("../../docs/dev/steps.md");
        let row = |check: &StepCheck| {
            let (error, reason) = check.margin();
            format!("| `{}` | {error:.0e} | {reason} |\n", check.name())
        };
        let table: String = StepCheck::all().iter().map(row).collect();
        assert!(page.contains(&table), "docs/dev/steps.md lacks\n{table}");
    }
}
