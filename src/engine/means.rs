//! Means of all projections for a double flat field, which a device adds up faster than the host.

use super::prepare::open_for_steps;
use super::read_ahead::read_ahead;
use crate::check::TestShape;
use crate::device::{HostMemory, Session};
use crate::error::{Error, Result};
use crate::feed::{ScanRows, parts_of};
use crate::job::Job;
use crate::operations::{
    BlockCorrector, BlockShape, ColumnProducts, DetectorBatch, DeviceRows, RowBlocks, RowCorrection, SinogramBatch,
    SinogramShape,
};
use crate::report::Reporter;
use crate::source::Stacks;
use crate::steps::{BeforeMeans, Preparation, Scope, Steps};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use rayon::prelude::*;
use std::ops::Range;

/// Bytes of the samples of the rows that are added up at once, if a row is not larger.
const AT_ONCE: u64 = 64 << 20;
/// Part of the device memory that a job may use that these samples take at most: corrected, they take twice as much or more.
const SHARE: u64 = 8;

/// Prepares the steps of a job for its data, as [`Preparation::like`] does; a device adds up the projections for a double flat
/// field, if the profile leaves steps on rows to it.
///
/// # Errors
/// Those of [`Preparation::like`], and errors of the device.
pub fn prepare(
    job: &Job,
    earlier: Option<(&Steps, &Preparation)>,
    stacks: &Stacks,
    scope: Scope,
    reporter: &Reporter,
) -> Result<Preparation> {
    let steps = &job.recipe.steps;
    let Some(before) = Preparation::before_means(earlier, steps, stacks, scope)? else {
        return Preparation::like(earlier, steps, stacks, scope);
    };
    let means = match on_device(job, stacks, &before, scope.used, reporter) {
        // what becomes of the run is for those to say who open its devices
        Err(Error::Memory(why) | Error::Device(why)) => {
            reporter.note(&format!("note: {why}; the host adds up the projections"));
            None
        }
        means => means?,
    };
    let earlier = Some((steps, &before.preparation));
    Preparation::like(earlier, steps, stacks, Scope { means: means.as_deref(), ..scope })
}

/// Returns the means `[row][bin]` of the projections `used`; `None` if the host computes them.
fn on_device(
    job: &Job,
    stacks: &Stacks,
    before: &BeforeMeans,
    used: &[usize],
    reporter: &Reporter,
) -> Result<Option<Vec<f64>>> {
    let stack = &stacks.data;
    // else every page would be read for each part of the rows
    let suits = stack.rows_are_apart() && !before.rows.is_empty();
    let Some(correction) = before.correction(used, stack.len()).filter(|_| suits) else { return Ok(None) };
    let wanted: Vec<usize> = before.rows.clone().collect();
    let preparation = &before.preparation;
    let scan = ScanRows { stack, preparation, used, wanted: &wanted, sinograms: false, field: None, lamino: None };
    let test = TestShape { projections: used.len(), images: None };
    let Some(session) = open_for_steps(job, stack.stored(), test, false, reporter)? else { return Ok(None) };
    reporter.detail(&format!("{} adds up the projections", session.device_name()));
    let most = job.execution.device_memory.map_or(AT_ONCE, |memory| AT_ONCE.min(memory / SHARE));
    let mut rows = (most as usize / (used.len() * stack.stored().row_bytes())).clamp(1, wanted.len());
    let sums = loop {
        match RowSums::new(&session, &scan, &correction, rows) {
            Err(Error::Memory(_)) if rows > 1 => rows /= 2,
            sums => break sums?.add_up(&session, &scan, &wanted)?,
        }
    };
    session.keep();
    Ok(Some(sums.into_par_iter().map(|sum| f64::from(sum) / used.len() as f64).collect()))
}

/// Kernels and buffers that correct some rows of all projections, and add them up.
struct RowSums {
    corrector: BlockCorrector,
    corrected: Buffer<f32>,
    products: ColumnProducts,
    /// Samples of rows, some of which are read while others are copied.
    samples: [HostMemory; 2],
    /// Number of rows that are added up at once.
    rows: usize,
}

impl RowSums {
    fn new(session: &Session, scan: &ScanRows, correction: &RowCorrection, rows: usize) -> Result<Self> {
        let (bins, projections) = (scan.stack.width(), scan.used.len());
        let straight = BlockShape::straight(RowBlocks::all(rows), [bins, scan.height()], projections);
        let corrector = BlockCorrector::new(session, correction, scan.stack.stored(), scan.order(), straight)?;
        let samples = || session.host_memory(corrector.most_bytes().div_ceil(size_of::<f32>()));
        let shape = SinogramShape { slices: rows, projections, bins };
        Ok(RowSums {
            corrected: session.buffer(rows * projections * bins, CL_MEM_READ_WRITE, "corrected rows")?,
            products: ColumnProducts::new(session, shape, &[0, projections], &vec![1.0; projections])?,
            samples: [samples()?, samples()?],
            corrector,
            rows,
        })
    }

    /// Returns the sums `[row][bin]` of the rows `wanted`, which are read by a thread of their own. A sum is that of the
    /// projections in an order that depends on nothing but their number.
    fn add_up(self, session: &Session, scan: &ScanRows, wanted: &[usize]) -> Result<Vec<f32>> {
        let RowSums { mut corrector, corrected, products, samples, rows } = self;
        let (bins, projections) = (scan.stack.width(), scan.used.len());
        let batch = |part: Range<usize>| DetectorBatch { counted: 0..0, ..scan.of_all_projections(&wanted[part], 0) };
        let batches = parts_of(wanted.len(), rows).map(batch);
        let into = DeviceRows { values: &corrected, first: 0, stride: projections * bins };
        let mut sums = Vec::with_capacity(wanted.len() * bins);
        read_ahead(scan, batches, samples, |read, back| {
            for (batch, memory) in read {
                corrector.correct_into(session, &batch, &memory.as_bytes()[..scan.sample_bytes(&batch)], &into)?;
                // the reader may have read all
                let _ = back.send(memory);
                session.finish_uploads()?;
                let slices = batch.rows.len();
                let sinograms = SinogramBatch { values: &corrected, first: 0, slices, projections, bins };
                products.run(session, &sinograms)?;
                sums.extend(products.download(session, slices)?);
            }
            Ok(())
        })?;
        Ok(sums)
    }
}
