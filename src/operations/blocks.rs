//! Blocks of detector rows, corrected on a device batch by batch of projections.
//!
//! Where steps on images need the rows around the wanted rows, a block is corrected as a whole and kept until its
//! slices have been computed. Without such steps a block consists of the rows that are wanted next, and nothing is
//! kept.

use super::batch_images::{BatchImages, ImageBatch};
use super::block_shape::{BlockPlace, BlockShape};
use super::correction::{RowCorrector, RowsForm};
use super::device_rows::DeviceRows;
use super::row_correction::{DetectorBatch, DetectorImages, RowCorrection, RowCounts};
use super::row_operation::{BatchRows, RowKernel};
use super::samples::SampleOrder;
use crate::device::{BufferLayout, Copying, KeptBlock, Session};
use crate::error::{Error, Result};
use crate::facts::DeviceFacts;
use crate::kernel::ImageFilterBackend;
use crate::source::StoredRows;
use opencl3::event::Event;
use opencl3::memory::Buffer;

/// The kernels that correct blocks of rows, and the rows of the last block.
pub struct BlockCorrector {
    batches: BatchKernels,
    kept: KeptRows,
}

/// The kernels that correct a batch of projections.
struct BatchKernels {
    shape: BlockShape,
    corrector: RowCorrector,
    /// The steps on images after the correction, if rows depend on the rows around them.
    images: Option<BatchImages>,
    /// The operations after all others.
    after: Vec<Box<dyn RowKernel>>,
}

/// The device and the backend that transforms images on it.
#[derive(Clone, Copy)]
pub struct ImagesTarget<'a> {
    pub facts: &'a DeviceFacts,
    pub backend: ImageFilterBackend,
}

/// The corrected rows of the last block, `[row][projection][bin]`, where they are kept.
enum KeptRows {
    Nowhere,
    Device(Buffer<f32>),
    Host(Box<KeptBlock>),
}

/// A batch for which all commands have been given to the device.
struct StartedBatch<'a> {
    /// Event of the last kernel of the steps on images.
    last: Option<Event>,
    /// The copy of the samples to the device.
    copying: Copying<'a>,
}

impl BlockCorrector {
    /// Builds the kernels and allocates memory on the device. Host memory is allocated with the first batch of a block
    /// that the host keeps.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        session: &Session,
        correction: &RowCorrection,
        stored: StoredRows,
        order: SampleOrder,
        shape: BlockShape,
    ) -> Result<Self> {
        let BlockShape { blocks, bins, projections, batch, place, .. } = shape;
        let images = correction.images.any();
        if batch == 0 || images && batch % 2 == 1 || projections != correction.projections.len() {
            return Err(Error::Internal(format!("batches of {batch} of {projections} projections")));
        }
        // the host keeps blocks only for steps on images: others do not need them
        if !images && (blocks.halo() > 0 || shape.on_host()) {
            return Err(Error::Internal("blocks of other steps".into()));
        }
        let batches = BatchKernels {
            corrector: RowCorrector::new(session, correction, stored, order, shape.size())?,
            images: images.then(|| BatchImages::new(session, correction, &shape)).transpose()?,
            after: correction.kernels_after(session)?,
            shape,
        };
        let size = [blocks.rows, projections, bins];
        Ok(BlockCorrector {
            batches,
            kept: match place {
                BlockPlace::Nowhere => KeptRows::Nowhere,
                BlockPlace::Device => KeptRows::Device(shape.kept_layout().buffer(session, "a block of rows")?),
                BlockPlace::Host { batches } => {
                    KeptRows::Host(Box::new(KeptBlock::new(session, size, batch, &shape.kept_layout(), batches)?))
                }
            },
        })
    }

    /// Returns the buffers except those for kept rows: for samples as `stored`, `halo` rows around a block that the
    /// removal of outliers reads, and the images of the detector that are `held`.
    pub fn layout(
        shape: &BlockShape,
        stored: StoredRows,
        halo: usize,
        held: DetectorImages,
        images: ImagesTarget,
    ) -> BufferLayout {
        let BlockShape { bins, height, projections, .. } = *shape;
        let form = RowsForm { stored, bins, height, size: shape.size(), halo, held, projections };
        let layout = RowCorrector::layout(form);
        match shape.blocks.halo() > 0 {
            true => layout.and(BatchImages::layout(shape, images.facts, images.backend)),
            false => layout,
        }
    }

    /// Ends the threads that were started for a block.
    pub fn end(&mut self) {
        if let KeptRows::Host(kept) = &mut self.kept {
            kept.end();
        }
    }

    /// Returns the largest number of bytes of the samples of a batch.
    pub fn most_bytes(&self) -> usize {
        self.batches.corrector.most_bytes()
    }

    /// Corrects a batch, from samples `[projection][row][bin]` (of sinograms `[row][projection][bin]`) of all rows that
    /// are needed, and stores the rows in `into`; replaced values are counted. Waits for the copy of the samples, but
    /// not for the kernels.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn correct_into(
        &mut self,
        session: &Session,
        batch: &DetectorBatch,
        samples: &[u8],
        into: &DeviceRows,
    ) -> Result<()> {
        self.batches.start(session, batch, samples, into)?.copying.wait()
    }

    /// Corrects a batch as [`correct_into`](Self::correct_into) does, into the block that is kept. Batches of a block
    /// come in any order, and each has all rows of the block. Also waits for host memory.
    ///
    /// # Errors
    /// Those of [`correct_into`](Self::correct_into), and [`Error::Memory`] if the host has too little.
    pub fn correct(&mut self, session: &Session, batch: &DetectorBatch, samples: &[u8]) -> Result<()> {
        let BlockCorrector { batches, kept } = self;
        let BlockShape { bins, projections: all, .. } = batches.shape;
        let projections = &batch.projections;
        if let KeptRows::Host(kept) = kept {
            kept.next_batch(session)?;
        }
        let into_block = match kept {
            KeptRows::Nowhere => return Err(Error::Internal("no block is kept".into())),
            KeptRows::Device(values) => DeviceRows { values, first: projections.start * bins, stride: all * bins },
            KeptRows::Host(kept) => DeviceRows { values: kept.batch(), first: 0, stride: projections.len() * bins },
        };
        let StartedBatch { last, copying } = batches.start(session, batch, samples, &into_block)?;
        match (kept, last) {
            (KeptRows::Host(kept), Some(last)) => kept.take(session, projections, &last)?,
            (KeptRows::Host(_), None) => return Err(Error::Internal("no step for a block that the host keeps".into())),
            _ => {}
        }
        copying.wait()
    }

    /// Waits for all batches, returns the counts of replaced values of the first `count` counted rows, and resets them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<RowCounts> {
        self.batches.corrector.take_counts(session, count)
    }

    /// Copies detector rows of the block that is kept to `sinograms`. Waits only if the host keeps the block.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub fn copy(
        &mut self,
        session: &Session,
        rows: &[usize],
        sinograms: &mut Buffer<f32>,
        first: usize,
        stride: usize,
    ) -> Result<()> {
        let BlockShape { blocks, bins, projections, .. } = self.batches.shape;
        let length = projections * bins;
        let Some(last) = rows.len().checked_sub(1) else { return Ok(()) };
        session.expect_length(sinograms, first + last * stride + length, "sinograms")?;
        let rows: Vec<usize> = rows.iter().map(|row| row % blocks.rows).collect();
        let block = match &mut self.kept {
            KeptRows::Nowhere => return Err(Error::Internal("no block is kept".into())),
            KeptRows::Host(kept) => return kept.copy(session, &rows, sinograms, first, stride),
            KeptRows::Device(block) => block,
        };
        rows.iter().enumerate().try_for_each(|(at, row)| {
            let (from, place) = (row * length, first + at * stride);
            let (from, to) = ((&*block, 4 * from), (&*sinograms, 4 * place));
            session.copy_between(&session.uploads, from, to, 4 * length, "sinograms").map(drop)
        })
    }
}

impl BatchKernels {
    /// Starts all kernels of a batch.
    fn start<'a>(
        &mut self,
        session: &'a Session,
        batch: &DetectorBatch,
        samples: &'a [u8],
        into: &DeviceRows,
    ) -> Result<StartedBatch<'a>> {
        let DetectorBatch { rows, counted, place, projections } = batch;
        let BlockShape { blocks, bins, projections: all, batch: most, .. } = self.shape;
        let count = projections.len();
        let fits = (1..=most).contains(&count) && projections.end <= all && (1..=blocks.rows).contains(&rows.len());
        if !fits || counted.end > rows.len() {
            return Err(Error::Internal(format!("projections {projections:?} of rows {rows:?}")));
        }
        let (mut last, copying) = match self.images {
            Some(_) => self.start_images(session, batch, samples, into)?,
            None => (None, self.corrector.start(session, batch, samples, into)?),
        };
        let counts = self.corrector.counts();
        let (values, counted, rows) = (*into, counted.clone(), rows.len());
        let corrected = BatchRows { values, rows, projections: count, bins, counted, place: *place, counts };
        for operation in &self.after {
            last = Some(operation.run(session, &corrected)?);
        }
        Ok(StartedBatch { last, copying })
    }

    /// Starts the kernels up to the steps on images. Returns the event of the last one, and the copy of the samples.
    fn start_images<'a>(
        &mut self,
        session: &'a Session,
        batch: &DetectorBatch,
        samples: &'a [u8],
        into: &DeviceRows,
    ) -> Result<(Option<Event>, Copying<'a>)> {
        let DetectorBatch { rows, counted, place, projections } = batch;
        let BlockShape { blocks, bins, height, .. } = self.shape;
        let refused = || Error::Internal(format!("projections {projections:?} of rows {rows:?}"));
        let Some(images) = &mut self.images else { return Err(refused()) };
        let count = projections.len();
        let wanted = rows[0]..rows[rows.len() - 1] + 1;
        // pairs of projections are one image
        if wanted.len() != rows.len() || wanted.end > height || projections.start % 2 == 1 {
            return Err(refused());
        }
        let around = |halo: usize| wanted.start.saturating_sub(halo)..(wanted.end + halo).min(height);
        let (read, upright) = (around(blocks.halo()), around(blocks.filter_halo));
        let before = wanted.start - read.start;
        let all_read = DetectorBatch {
            rows: read.clone().collect(),
            counted: before + counted.start..before + counted.end,
            place: *place,
            projections: projections.clone(),
        };
        let transmissions = DeviceRows { values: &images.transmissions, first: 0, stride: count * bins };
        let copying = self.corrector.start(session, &all_read, samples, &transmissions)?;
        let of_images = ImageBatch { read, upright, wanted, projections: count };
        Ok((images.run(session, &of_images, into)?, copying))
    }
}
