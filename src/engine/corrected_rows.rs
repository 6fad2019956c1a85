//! Corrected rows of a scan without a reconstruction, for the search of the axis.

use super::prepare::open_for_steps;
use super::source::Source;
use super::stages::parts_of;
use crate::check::TestShape;
use crate::device::{BatchCorrector, BatchPart, BlockShape, HostMemory, ImageRows, RowBlocks, Session};
use crate::error::{Error, Result};
use crate::job::Job;
use crate::report::Reporter;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};

/// Bytes of the samples of a batch, and of the images that are filtered at once.
const BATCH: usize = 64 << 20;

/// Sinograms of some rows as the detector saw them, each `[projection][bin]`: corrected, with their stripes. A device does steps
/// on images, if the profile leaves them to it; other steps on a few rows take the host less time than a device takes to
/// start.
///
/// # Errors
/// Those of reading, and the device's.
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

/// `None` where the host does the steps.
fn on_device(source: &Source, job: &Job, rows: &[usize], reporter: &Reporter) -> Result<Option<Vec<Vec<f32>>>> {
    let Some(correction) = source.correction().filter(|correction| correction.images.any()) else { return Ok(None) };
    let (bins, stored) = (source.stack().width(), source.stack().stored());
    let projections = source.scan.used.len();
    let Some(blocks) = RowBlocks::of_rows(&correction.images, bins, 1) else { return Ok(None) };
    let test = TestShape { projections, images: Some((bins, blocks)) };
    let Some(session) = open_for_steps(job, (stored, test), false, reporter)? else { return Ok(None) };
    let read = (1 + 2 * source.scan.samples.halo).min(source.stack().height());
    let batch = (BATCH / (read * stored.row_bytes())).min(projections.next_multiple_of(2)) / 2 * 2;
    let batch = batch.max(2);
    let shape = BlockShape {
        blocks,
        bins,
        height: source.stack().height(),
        projections,
        batch,
        pairs: (BATCH / blocks.pair_bytes(&session.facts, session.image_backend).max(1)).clamp(1, batch / 2),
        at_once: 2,
        kept_batches: 0,
    };
    reporter.detail(&format!("{} corrects the rows of the search", session.device_name()));
    let mut corrector = BatchCorrector::new(&session, &correction, stored, shape)?;
    let mut memory = session.host_memory(corrector.most_bytes().div_ceil(4))?;
    let of_row = projections * bins;
    let sinogram: Buffer<f32> = session.buffer(of_row, CL_MEM_READ_WRITE, "a sinogram")?;
    let corrected = |&row: &usize| -> Result<Vec<f32>> {
        let mut values = vec![0f32; of_row];
        correct_row(source, (&session, &mut corrector), row, (shape, &mut memory), &sinogram)?;
        session.read_uploaded(&sinogram, &mut values, "a sinogram")?;
        Ok(values)
    };
    rows.iter().map(corrected).collect::<Result<_>>().map(Some)
}

/// Corrects a row of all projections. Does not wait for the last kernels.
fn correct_row(
    source: &Source,
    (session, corrector): (&Session, &mut BatchCorrector),
    row: usize,
    (shape, memory): (BlockShape, &mut HostMemory),
    sinogram: &Buffer<f32>,
) -> Result<()> {
    let BlockShape { bins, projections: all, batch, .. } = shape;
    let wanted = row..row + 1;
    for projections in parts_of(all, batch) {
        let bytes = corrector.sample_bytes(&wanted, projections.len());
        source.read_block(wanted.clone(), projections.clone(), &mut memory.as_bytes_mut()[..bytes])?;
        let into = ImageRows { values: sinogram, first: projections.start * bins, stride: all * bins };
        let part = BatchPart { wanted: wanted.clone(), counted: row..row, projections };
        corrector.correct(session, &part, &memory.as_bytes()[..bytes], &into)?;
    }
    Ok(())
}
