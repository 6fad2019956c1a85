//! Batches of projections, corrected on a device: rows of the detector, with steps on images where there are any.

use super::blocks::BlockShape;
use super::copies::Copying;
use super::correction::{CorrectedRows, RowCorrection, RowCorrector, RowCounts, SampleOrder};
use super::image_filter::ImageFilter;
use super::images::{ImagePart, ImageRows, RowRotator};
use super::{HostMemory, Session, cl_error};
use crate::error::{Error, Result};
use crate::kernel::{CORRECTION_GROUP, generate_minus_log, power_of_two_group};
use crate::source::StoredRows;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::types::CL_NON_BLOCKING;
use std::ops::Range;

/// Corrects batches of projections.
pub struct BatchCorrector {
    shape: BlockShape,
    corrector: RowCorrector,
    /// What is done after it, if rows depend on those around them.
    images: Option<BatchImages>,
}

/// What is corrected of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPart {
    /// Rows of the detector, and those of them in which replaced values are counted.
    pub wanted: Range<usize>,
    pub counted: Range<usize>,
    /// Projections; the first has an even number.
    pub projections: Range<usize>,
}

/// A batch that a device has got all commands for.
pub(super) struct StartedBatch<'a> {
    /// The last kernel of the steps on images.
    pub last: Option<Event>,
    /// The samples, on their way to the device.
    pub copying: Copying<'a>,
}

/// Steps on the images of a batch.
struct BatchImages {
    rotator: Option<RowRotator>,
    filter: Option<ImageFilter>,
    minus_log: Option<Kernel>,
    group: usize,
    bins: usize,
    /// Transmissions of a batch, `[row][projection][bin]`, and the same rotated.
    transmissions: Buffer<f32>,
    rotated: Option<Buffer<f32>>,
}

/// Rows of a batch: those that were read, of them the ones that are left after the rotation, and the block's.
struct BatchRows {
    read: Range<usize>,
    upright: Range<usize>,
    wanted: Range<usize>,
    counted: Range<usize>,
    projections: usize,
}

impl BatchImages {
    fn new(session: &Session, correction: &RowCorrection, shape: &BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, height, batch, pairs, .. } = *shape;
        let rotation = correction.images.rotation;
        let rotator = rotation.map(|form| RowRotator::new(session, form.degrees, [bins, height])).transpose()?;
        let filter = match (&correction.images.filter, blocks.images) {
            (Some(form), Some(size)) => Some(ImageFilter::new(session, form, size, bins, pairs.max(1))?),
            (None, None) => None,
            _ => return Err(Error::Internal("blocks of other steps".into())),
        };
        let group = power_of_two_group(&session.facts, CORRECTION_GROUP);
        let minus_log = || {
            let source = generate_minus_log(group)?;
            let program = session.build(&source)?;
            session.kernel(&program, source.entry)
        };
        let images = |what| session.buffer(shape.corrected() * batch * bins, CL_MEM_READ_WRITE, what);
        Ok(BatchImages {
            minus_log: correction.minus_log.then(minus_log).transpose()?,
            group,
            bins,
            transmissions: images("transmissions")?,
            rotated: (rotator.is_some() && filter.is_some()).then(|| images("rotated rows")).transpose()?,
            rotator,
            filter,
        })
    }

    /// Makes rows of the block of the transmissions; -log of what cannot be taken is counted in `counts`. Does not wait for the
    /// kernels, of which it returns the last.
    fn run(
        &mut self,
        session: &Session,
        rows: &BatchRows,
        into_block: &ImageRows,
        counts: &Buffer<[u32; 4]>,
    ) -> Result<Option<Event>> {
        let BatchRows { read, upright, wanted, counted, projections } = rows;
        let part = |read: &Range<usize>, wanted: &Range<usize>| ImagePart {
            read: read.clone(),
            wanted: wanted.clone(),
            projections: *projections,
        };
        let mut last = None;
        let rotated = match (&self.rotator, &self.rotated) {
            (Some(rotator), Some(rotated)) => {
                let to = ImageRows { values: rotated, first: 0, stride: projections * self.bins };
                rotator.run(session, &self.transmissions, &part(read, upright), &to)?;
                rotated
            }
            (Some(rotator), None) => {
                last = Some(rotator.run(session, &self.transmissions, &part(read, wanted), into_block)?);
                &self.transmissions
            }
            (None, _) => &self.transmissions,
        };
        if let Some(filter) = &mut self.filter {
            last = filter.run(session, rotated, &part(upright, wanted), into_block)?;
        }
        let Some(kernel) = &self.minus_log else { return Ok(last) };
        let launch = session
            .launch(kernel, "minus_log")
            .handle(into_block.values)?
            .handle(counts)?
            .value(into_block.first as u64)?
            .value(into_block.stride as u64)?
            .value(self.bins as i32)?
            .value([counted.start - wanted.start, counted.end - wanted.start].map(|row| row as i32))?;
        let global = [self.group, *projections, wanted.len()];
        // SAFETY: these rows of the block were written just before, and there are counts for all its rows.
        unsafe { launch.among_uploads().run(&global, Some(&[self.group, 1, 1])) }.map(Some)
    }
}

impl BatchCorrector {
    /// Builds the kernels and allocates memory, but for the corrected rows.
    ///
    /// # Errors
    /// The device's.
    pub fn new(session: &Session, correction: &RowCorrection, stored: StoredRows, shape: BlockShape) -> Result<Self> {
        let BlockShape { blocks, projections, batch, .. } = shape;
        let images = correction.images.any();
        if batch == 0 || batch % 2 == 1 || projections != correction.projections.len() {
            return Err(Error::Internal(format!("batches of {batch} of {projections} projections")));
        }
        if !images && blocks.halo() > 0 {
            return Err(Error::Internal("blocks of other steps".into()));
        }
        Ok(BatchCorrector {
            corrector: RowCorrector::new(session, correction, stored, SampleOrder::Projections, shape.size())?,
            images: images.then(|| BatchImages::new(session, correction, &shape)).transpose()?,
            shape,
        })
    }

    /// Whether there are steps on images.
    pub(super) fn has_images(&self) -> bool {
        self.images.is_some()
    }

    /// Most bytes of the samples of a batch.
    pub fn most_bytes(&self) -> usize {
        self.corrector.most_bytes()
    }

    /// Bytes of the samples of so many projections for these rows.
    pub fn sample_bytes(&self, wanted: &Range<usize>, projections: usize) -> usize {
        let rows: Vec<usize> = self.around(wanted, self.shape.blocks.halo()).collect();
        self.corrector.bytes_of(&rows, projections)
    }

    fn around(&self, rows: &Range<usize>, halo: usize) -> Range<usize> {
        rows.start.saturating_sub(halo)..(rows.end + halo).min(self.shape.height)
    }

    /// Corrects a batch, from samples `[projection][row][bin]` of all rows that are needed, into `[row][projection][bin]`;
    /// replaced values are counted, always in the same rows. Waits for the samples' copy, but not for the kernels.
    ///
    /// # Errors
    /// The device's, and [`Error::Internal`] for what does not fit.
    pub fn correct(&mut self, session: &Session, part: &BatchPart, samples: &[u8], into: &ImageRows) -> Result<()> {
        self.start(session, part, samples, into)?.copying.wait()
    }

    /// The same without waiting for the copy.
    pub(super) fn start<'a>(
        &mut self,
        session: &'a Session,
        part: &BatchPart,
        samples: &'a [u8],
        into: &ImageRows,
    ) -> Result<StartedBatch<'a>> {
        let BatchPart { wanted, counted, projections } = part;
        let BlockShape { blocks, bins, projections: all, batch, .. } = self.shape;
        let count = projections.len();
        let pairs = projections.start % 2 == 0 && (1..=batch).contains(&count) && projections.end <= all;
        let rows = (1..=blocks.rows).contains(&wanted.len()) && wanted.end <= self.shape.height;
        if !pairs || !rows || counted.start < wanted.start || counted.end > wanted.end {
            return Err(Error::Internal(format!("projections {projections:?} of rows {wanted:?}")));
        }
        let (read, upright) = (self.around(wanted, blocks.halo()), self.around(wanted, blocks.filter_halo));
        let corrected = match &self.images {
            Some(images) => ImageRows { values: &images.transmissions, first: 0, stride: count * bins },
            None => *into,
        };
        let rows: Vec<usize> = read.clone().collect();
        let copying = self.corrector.correct(
            session,
            samples,
            &CorrectedRows {
                rows: &rows,
                counted: counted.start - read.start..counted.end - read.start,
                place: 0,
                projections: projections.clone(),
                out: corrected.values,
                first: corrected.first,
                stride: corrected.stride,
            },
        )?;
        let Some(images) = &mut self.images else { return Ok(StartedBatch { last: None, copying }) };
        let (wanted, counted) = (wanted.clone(), counted.clone());
        let rows = BatchRows { read, upright, wanted, counted, projections: count };
        let last = images.run(session, &rows, into, self.corrector.counts())?;
        Ok(StartedBatch { last, copying })
    }

    /// Waits for all batches, and hands out and forgets what was replaced in the `count` rows that are counted.
    ///
    /// # Errors
    /// The device's.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<RowCounts> {
        self.corrector.take_counts(session, count)
    }

    /// Starts to copy a batch that was corrected for whole projections, `[row][projection][bin]` at the start of a buffer, as
    /// `[projection][row][bin]`.
    ///
    /// # Errors
    /// The device's, and [`Error::Internal`] for what does not fit.
    pub fn copy_projections(
        &self,
        session: &Session,
        rows: &Buffer<f32>,
        count: usize,
        memory: HostMemory,
    ) -> Result<CopiedProjections> {
        let BlockShape { bins, height, .. } = self.shape;
        let mut copied = CopiedProjections { memory, last: None };
        if copied.memory.len() < count * height * bins {
            return Err(Error::Internal(format!("{count} projections do not fit {} values", copied.memory.len())));
        }
        session.expect_length(rows, count * height * bins, "projections")?;
        for projection in 0..count {
            let (from, to) = ([4 * projection * bins, 0, 0], [0; 3]);
            let page = &mut copied.memory[projection * height * bins..][..height * bins];
            // SAFETY: rows and page were checked, and the memory is kept until the copy is over.
            let copy = unsafe {
                session.uploads.enqueue_read_buffer_rect(
                    rows,
                    CL_NON_BLOCKING,
                    from.as_ptr(),
                    to.as_ptr(),
                    [4 * bins, height, 1].as_ptr(),
                    4 * count * bins,
                    0,
                    4 * bins,
                    0,
                    page.as_mut_ptr().cast(),
                    &[],
                )
            };
            match copy {
                Ok(copy) => copied.last = Some(copy),
                Err(e) => {
                    session.finish_uploads()?;
                    return Err(cl_error("downloading projections", session.device_name(), e));
                }
            }
        }
        session.uploads.flush().map_err(|e| cl_error("downloading projections", session.device_name(), e))?;
        Ok(copied)
    }
}

/// Projections on their way from a device.
pub struct CopiedProjections {
    memory: HostMemory,
    /// The last copy; the queue does one after the other.
    last: Option<Event>,
}

impl CopiedProjections {
    /// The memory, `[projection][row][bin]`, once they are there.
    ///
    /// # Errors
    /// The device's.
    pub fn wait(mut self, session: &Session) -> Result<HostMemory> {
        if let Some(last) = self.last.take() {
            session.wait_for_upload(&last)?;
        }
        Ok(std::mem::replace(&mut self.memory, HostMemory::plain(0)?))
    }
}

impl Drop for CopiedProjections {
    /// Nothing is copied into memory that is gone.
    fn drop(&mut self) {
        if let Some(last) = &self.last {
            let _ = last.wait();
        }
    }
}
