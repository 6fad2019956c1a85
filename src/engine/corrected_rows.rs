//! Corrected rows of a scan without a reconstruction, for the search of the axis.

use super::prepare::open_for_steps;
use super::source::Source;
use crate::check::TestShape;
use crate::error::{Error, Result};
use crate::feed::{BatchFeed, BatchPlace, parts_of};
use crate::job::Job;
use crate::operations::{BlockShape, DetectorBatch, RowBlocks};
use crate::report::Reporter;

/// Bytes of the samples of a batch, and of the images that are filtered at once.
const BATCH: usize = 64 << 20;

/// Returns the corrected sinograms `[projection][bin]` of some rows as the detector saw them, with their stripes.
///
/// A device does steps on images, if the profile leaves them to it; other steps on a few rows take the host less time
/// than a device takes to start.
///
/// # Errors
/// Errors of reading, and of the device.
pub fn corrected_rows(source: &Source, job: &Job, rows: &[usize], reporter: &Reporter) -> Result<Vec<Vec<f32>>> {
    match on_device(source, job, rows, reporter) {
        Ok(Some(values)) => Ok(values),
        Ok(None) => source.read_seen(rows),
        Err(Error::Memory(why)) => {
            reporter.note(&format!("note: {why}; the host corrects the rows of the search"));
            source.read_seen(rows)
        }
        Err(error) => Err(error),
    }
}

/// Corrects the rows on a device; `None` if the host does the steps.
fn on_device(source: &Source, job: &Job, rows: &[usize], reporter: &Reporter) -> Result<Option<Vec<Vec<f32>>>> {
    let scan = source.rows();
    let Some(correction) = scan.correction().filter(|correction| correction.images.any()) else { return Ok(None) };
    let (bins, stored, projections) = (scan.stack.width(), scan.stack.stored(), scan.used.len());
    let Some(blocks) = RowBlocks::of_rows(&correction.images, bins, 1) else { return Ok(None) };
    let test = TestShape { projections, images: Some((bins, blocks)) };
    let Some(session) = open_for_steps(job, stored, test, false, reporter)? else { return Ok(None) };
    let read = (1 + 2 * source.scan.samples.halo).min(scan.height());
    let batch = (BATCH / (read * stored.row_bytes())).min(projections.next_multiple_of(2)) / 2 * 2;
    let batch = batch.max(2);
    let shape = BlockShape::straight(blocks, [bins, scan.height()], projections).in_batches(&session, batch, BATCH);
    reporter.detail(&format!("{} corrects the rows of the search", session.device_name()));
    let mut feed = BatchFeed::new(&session, scan, &correction, shape, [1, projections], BatchPlace::Sinogram)?;
    let batches = rows.iter().flat_map(|&row| {
        let of_row = move |projections| DetectorBatch { counted: 0..0, ..scan.batch(row..row + 1, projections) };
        parts_of(projections, batch).map(of_row)
    });
    let mut sinograms = Vec::with_capacity(rows.len());
    feed.correct(&session, batches, |feed, batch| {
        if batch.projections.end == projections {
            let mut values = vec![0f32; projections * bins];
            session.read_uploaded(&feed.values, &mut values, "a sinogram")?;
            sinograms.push(values);
        }
        Ok(true)
    })?;
    drop(feed);
    session.keep();
    Ok(Some(sinograms))
}
