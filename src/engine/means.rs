//! Means of all projections for a double flat field, which a device adds up faster than the host.

use super::prepare::open_for_steps;
use crate::check::TestShape;
use crate::device::Session;
use crate::error::{Error, Result};
use crate::feed::{BatchFeed, BatchPlace, ScanRows, parts_of, with_room};
use crate::job::Job;
use crate::operations::{
    BlockShape, ColumnProducts, DetectorBatch, RowBlocks, RowCorrection, SinogramBatch, SinogramShape,
};
use crate::report::Reporter;
use crate::source::Stacks;
use crate::steps::{BeforeMeans, Preparation, Scope, Steps};
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
    let rows = (most as usize / (used.len() * stack.stored().row_bytes())).clamp(1, wanted.len());
    let sums = with_room(rows, |rows| RowSums::new(&session, scan, &correction, rows))?.add_up(&session, &scan)?;
    session.keep();
    Ok(Some(sums.into_par_iter().map(|sum| f64::from(sum) / used.len() as f64).collect()))
}

/// Kernels and buffers that correct some rows of all projections, and add them up.
struct RowSums<'a> {
    feed: BatchFeed<'a>,
    products: ColumnProducts,
    /// Number of rows that are added up at once.
    rows: usize,
}

impl<'a> RowSums<'a> {
    fn new(session: &Session, scan: ScanRows<'a>, correction: &RowCorrection, rows: usize) -> Result<Self> {
        let (bins, projections) = (scan.stack.width(), scan.used.len());
        let straight = BlockShape::straight(RowBlocks::all(rows), [bins, scan.height()], projections);
        let held = [rows, projections];
        let shape = SinogramShape { slices: rows, projections, bins };
        Ok(RowSums {
            feed: BatchFeed::new(session, scan, correction, straight, held, BatchPlace::Beginning)?,
            products: ColumnProducts::new(session, shape, &[0, projections], &vec![1.0; projections])?,
            rows,
        })
    }

    /// Returns the sums `[row][bin]` of the wanted rows. A sum is that of the projections in an order that depends on nothing
    /// but their number.
    fn add_up(self, session: &Session, scan: &ScanRows) -> Result<Vec<f32>> {
        let RowSums { mut feed, products, rows } = self;
        let (bins, projections, wanted) = (scan.stack.width(), scan.used.len(), scan.wanted);
        let batch = |part: Range<usize>| DetectorBatch { counted: 0..0, ..scan.of_all_projections(&wanted[part], 0) };
        let mut sums = Vec::with_capacity(wanted.len() * bins);
        feed.correct(session, parts_of(wanted.len(), rows).map(batch), |feed, batch| {
            session.finish_uploads()?;
            let slices = batch.rows.len();
            products.run(session, &SinogramBatch { values: &feed.values, first: 0, slices, projections, bins })?;
            sums.extend(products.download(session, slices)?);
            Ok(true)
        })?;
        Ok(sums)
    }
}
