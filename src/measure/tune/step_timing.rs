//! Times operations of the steps, with whatever sizes of work-groups a session has.

use crate::check::noise;
use crate::device::Session;
use crate::digest::PartsDigest;
use crate::error::{Result, messages};
use crate::kernel::IMAGE_LENGTHS;
use crate::operations::{
    ColumnOrder, DetectorRows, DeviceRows, ImageFilter, ImageFilterForm, ImagePart, OutlierForm, OutlierRemover,
    OutlierRows, PieceSize, RunningMedians, SinogramBatch, SinogramShape,
};
use crate::source::{SampleType, StoredSamples};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rayon::prelude::*;
use std::fmt;
use std::time::Instant;

messages! {
    /// Why an operation of a step is not timed.
    enum StepTimingError: Device {
        NotANumber =>
            "a result is not a number"; "check the device with fbp doctor, or choose another --device",
    }
}

/// Number of sinograms, or of projections, in a pass.
const SLICES: usize = 4;
/// Number of rows of the detector in which outliers are removed together.
const ROWS: usize = 64;
/// Number of projections of a short column.
const SHORT: usize = 300;
/// Number of bins of a running median.
const MEDIAN: usize = 21;
/// Height of filtered images.
const IMAGE_HEIGHT: usize = 512;

/// The operation that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOperation {
    SortColumns,
    SortShortColumns,
    RunningMedians,
    RemoveOutliers,
    FilterImages,
}

impl fmt::Display for StepOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StepOperation::SortColumns => "sorting columns",
            StepOperation::SortShortColumns => "sorting short columns",
            StepOperation::RunningMedians => "running medians",
            StepOperation::RemoveOutliers => "removal of outliers",
            StepOperation::FilterImages => "filtering images",
        })
    }
}

/// The measurement of an operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepTiming {
    /// Median of a pass in seconds.
    pub seconds: f64,
    /// Hash of the values that the operation computed.
    pub result: PartsDigest,
}

impl StepOperation {
    /// Times the operation on noise of `bins` bins and `projections` projections. Returns the median of `passes` passes
    /// after one that does not count.
    ///
    /// # Errors
    /// Errors of the device, and an internal error for a problem for which the device cannot do the operation.
    pub fn time(self, session: &Session, bins: usize, projections: usize, passes: usize) -> Result<StepTiming> {
        match self {
            StepOperation::SortColumns => sort(session, bins, projections, passes),
            StepOperation::SortShortColumns => sort(session, bins, SHORT.min(projections), passes),
            StepOperation::RunningMedians => medians(session, bins, projections, passes),
            StepOperation::RemoveOutliers => outliers(session, bins, projections, passes),
            StepOperation::FilterImages => images(session, bins, passes),
        }
    }
}

fn sort(session: &Session, bins: usize, projections: usize, passes: usize) -> Result<StepTiming> {
    let shape = SinogramShape { slices: SLICES, projections, bins };
    let columns = noise_on(session, SLICES * projections * bins)?;
    let [ranked, spare] = [(); 2].map(|()| session.scratch(SLICES * projections * bins, "ranked columns"));
    let (ranked, spare) = (ranked?, spare?);
    let columns = SinogramBatch { values: &columns, first: 0, slices: SLICES, projections, bins };
    let mut order = ColumnOrder::new(session, shape)?;
    measure(session, &ranked, SLICES * projections * bins, passes, || {
        order.sort(session, &columns, &columns.in_buffer(&ranked), &columns.in_buffer(&spare))
    })
}

fn medians(session: &Session, bins: usize, projections: usize, passes: usize) -> Result<StepTiming> {
    let columns = noise_on(session, SLICES * projections * bins)?;
    let out = session.scratch(SLICES * projections * bins, "medians")?;
    let columns = SinogramBatch { values: &columns, first: 0, slices: SLICES, projections, bins };
    let medians = RunningMedians::new(session, MEDIAN)?;
    measure(session, &out, SLICES * projections * bins, passes, || {
        medians.run(session, &columns, &columns.in_buffer(&out))
    })
}

fn outliers(session: &Session, bins: usize, projections: usize, passes: usize) -> Result<StepTiming> {
    let count = projections * ROWS * bins;
    let bright = |i: usize| if i % 211 == 7 { 60_000 } else { 300 + (900.0 * noise(i)) as u16 };
    let counts: Vec<u16> = (0..count).into_par_iter().map(bright).collect();
    let mut samples: Buffer<u8> = session.buffer(2 * count, CL_MEM_READ_WRITE, "samples")?;
    session.write(&mut samples, bytemuck::cast_slice(&counts), "samples")?;
    let values = session.scratch(count, "counts without outliers")?;
    let rows = DetectorRows {
        stored: StoredSamples { sample: SampleType::U16, swapped: false },
        saturation: None,
        bins,
        height: ROWS,
        piece: PieceSize { rows: ROWS, projections, counted: ROWS, at_once: 1 },
    };
    let mut remover = OutlierRemover::new(session, OutlierForm { size: 3, threshold: 800.0, both: false }, rows)?;
    let all = OutlierRows { read: 0..ROWS, wanted: 0..ROWS, counted: 0..ROWS, place: 0, projections };
    measure(session, &values, count, passes, || remover.run(session, &samples, &values, &all))
}

fn images(session: &Session, bins: usize, passes: usize) -> Result<StepTiming> {
    let (rows, width) = (IMAGE_HEIGHT / 2, (bins + 1).next_power_of_two().clamp(IMAGE_LENGTHS[0], IMAGE_LENGTHS[1]));
    let bins = bins.min(width);
    let values = noise_on(session, rows * SLICES * bins)?;
    let out = session.scratch(rows * SLICES * bins, "filtered rows")?;
    let form = ImageFilterForm { length: 3.0, sigma: 0.0, sharpening: 0.0, halo: rows / 2 };
    let mut filter = ImageFilter::new(session, &form, [width, IMAGE_HEIGHT], bins, SLICES / 2)?;
    let part = ImagePart { read: 0..rows, wanted: 0..rows, projections: SLICES };
    let to = DeviceRows { values: &out, first: 0, stride: SLICES * bins };
    measure(session, &out, rows * SLICES * bins, passes, || filter.run(session, &values, &part, &to).map(drop))
}

fn noise_on(session: &Session, count: usize) -> Result<Buffer<f32>> {
    let values: Vec<f32> = (0..count).into_par_iter().map(|i| noise(i) as f32).collect();
    let mut buffer = session.scratch(count, "noise")?;
    session.write(&mut buffer, &values, "noise")?;
    Ok(buffer)
}

/// Runs an operation that fills `out`.
fn measure(
    session: &Session,
    out: &Buffer<f32>,
    count: usize,
    passes: usize,
    mut run: impl FnMut() -> Result<()>,
) -> Result<StepTiming> {
    let mut timed = || -> Result<f64> {
        let start = Instant::now();
        run()?;
        session.finish_uploads()?;
        session.finish()?;
        Ok(start.elapsed().as_secs_f64())
    };
    timed()?;
    let mut seconds = (0..passes.max(1)).map(|_| timed()).collect::<Result<Vec<f64>>>()?;
    seconds.sort_by(f64::total_cmp);
    let mut got = vec![0f32; count];
    session.read(out, &mut got, "results")?;
    if got.iter().any(|value| value.is_nan()) {
        return Err(StepTimingError::NotANumber.into());
    }
    Ok(StepTiming {
        seconds: seconds[seconds.len() / 2],
        result: PartsDigest::of([bytemuck::cast_slice::<f32, u8>(&got)]),
    })
}
