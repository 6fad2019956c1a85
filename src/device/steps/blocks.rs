//! Blocks of rows, corrected on a device by steps on images, and kept until their slices have been computed.

use super::correction::{CorrectedRows, PieceSize, RowCorrection, RowCorrector, RowCounts, SampleOrder};
use super::images::{ImageFilter, ImagePart, ImageRows, RowBlocks, RowRotator};
use super::kept_block::{BATCHES, KeptBlocks};
use super::{Session, cl_error};
use crate::error::{Error, Result};
use crate::kernel::{CORRECTION_GROUP, generate_minus_log, power_of_two_group};
use crate::source::StoredRows;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::ops::Range;

/// Sizes of what a device holds for blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    pub blocks: RowBlocks,
    pub bins: usize,
    /// Rows of the detector.
    pub height: usize,
    /// Projections of the scan, and those that are copied and corrected at once: an even number.
    pub projections: usize,
    pub batch: usize,
    /// Pairs of projections that are filtered at once.
    pub pairs: usize,
    /// Batches whose samples are on the device together.
    pub at_once: usize,
    /// Blocks that the host keeps, because the device's memory does not hold one: that whose slices are computed, and perhaps the
    /// next one.
    pub on_host: usize,
}

impl BlockShape {
    /// Most rows that are corrected for a block.
    fn corrected(&self) -> usize {
        (self.blocks.rows + 2 * self.blocks.halo()).min(self.height)
    }

    fn size(&self) -> PieceSize {
        PieceSize { rows: self.corrected(), projections: self.batch, counted: self.blocks.rows, at_once: self.at_once }
    }

    /// Bytes of the host's memory for blocks that it keeps.
    pub fn kept_bytes(&self) -> u64 {
        4 * (self.on_host * self.blocks.rows * self.projections * self.bins) as u64
    }

    /// Bytes on the device, with `halo` rows more around what is corrected, and so many field images: of the block, or a
    /// batch of it, and of the rest.
    pub fn bytes(&self, stored: StoredRows, halo: usize, fields: usize) -> [u64; 2] {
        let BlockShape { blocks, bins, height, batch, pairs, .. } = *self;
        let block = 4 * (blocks.rows * self.there() * bins) as u64;
        let images = 4 * (self.corrected() * batch * bins) as u64 * self.images();
        let spectra = (pairs * blocks.pair_bytes()) as u64;
        [block, RowCorrector::bytes(stored, [bins, height], self.size(), halo, fields) + images + spectra]
    }

    /// Projections of a block that are on the device.
    fn there(&self) -> usize {
        if self.on_host > 0 { BATCHES * self.batch } else { self.projections }
    }

    /// Images of every projection of a batch besides those of the block: before each step on images.
    fn images(&self) -> u64 {
        u64::from(self.blocks.rotation_halo > 0) + u64::from(self.blocks.images.is_some())
    }
}

/// Corrects blocks of rows of projections.
pub struct BlockCorrector {
    shape: BlockShape,
    corrector: RowCorrector,
    /// What is done after it, if rows depend on those around them.
    images: Option<BatchImages>,
    rows: BlockRows,
}

/// The block that was corrected last, `[row][projection][bin]`, or the last blocks.
enum BlockRows {
    Device(Buffer<f32>),
    Host(KeptBlocks),
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
        &self,
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
        if let Some(filter) = &self.filter {
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

impl BlockCorrector {
    /// Builds the kernels and allocates memory.
    ///
    /// # Errors
    /// The device's.
    pub fn new(session: &Session, correction: &RowCorrection, stored: StoredRows, shape: BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, projections, batch, .. } = shape;
        let images = correction.images.any();
        if batch == 0 || batch % 2 == 1 || projections != correction.projections.len() {
            return Err(Error::Internal(format!("batches of {batch} of {projections} projections")));
        }
        // the host keeps blocks only for steps on images: others do not need them
        if !images && (shape.on_host > 0 || blocks.halo() > 0) {
            return Err(Error::Internal("blocks of other steps".into()));
        }
        Ok(BlockCorrector {
            corrector: RowCorrector::new(session, correction, stored, SampleOrder::Projections, shape.size())?,
            images: images.then(|| BatchImages::new(session, correction, &shape)).transpose()?,
            rows: match shape.on_host {
                1.. => BlockRows::Host(KeptBlocks::new(session, &shape)?),
                0 => {
                    let values = blocks.rows * projections * bins;
                    BlockRows::Device(session.buffer(values, CL_MEM_READ_WRITE, "a block of rows")?)
                }
            },
            shape,
        })
    }

    /// Most bytes of the samples of a batch.
    pub fn most_bytes(&self) -> usize {
        self.corrector.most_bytes()
    }

    /// Rows of the detector of a block.
    fn rows(&self, block: usize) -> Range<usize> {
        self.shape.blocks.of(block, self.shape.height)
    }

    /// Bytes of the samples of a batch of projections of a block.
    pub fn sample_bytes(&self, block: usize, projections: usize) -> usize {
        let rows: Vec<usize> = self.around(block, self.shape.blocks.halo()).collect();
        self.corrector.bytes_of(&rows, projections)
    }

    fn around(&self, block: usize, halo: usize) -> Range<usize> {
        let rows = self.rows(block);
        rows.start.saturating_sub(halo)..(rows.end + halo).min(self.shape.height)
    }

    /// Corrects a batch of projections of a block, from samples `[projection][row][bin]` of all rows that are needed, and
    /// counts what is replaced in some rows of the block, the same for all batches. These come in any order; their
    /// projections begin at an even number. Does not wait for the kernels.
    ///
    /// # Errors
    /// The device's, and [`Error::Internal`] for what does not fit.
    pub fn correct(
        &mut self,
        session: &Session,
        (block, counted): (usize, &Range<usize>),
        projections: Range<usize>,
        samples: &[u8],
    ) -> Result<()> {
        let BlockShape { blocks, bins, projections: all, batch, .. } = self.shape;
        let (wanted, count) = (self.rows(block), projections.len());
        let pairs = projections.start % 2 == 0 && (1..=batch).contains(&count) && projections.end <= all;
        if wanted.is_empty() || !pairs || counted.start < wanted.start || counted.end > wanted.end {
            return Err(Error::Internal(format!("projections {projections:?} of block {block}")));
        }
        let (read, upright) = (self.around(block, blocks.halo()), self.around(block, blocks.filter_halo));
        if let BlockRows::Host(kept) = &mut self.rows {
            kept.begin(session, block, false)?;
            kept.next_batch(session)?;
        }
        let into_block = match &self.rows {
            BlockRows::Device(values) => ImageRows { values, first: projections.start * bins, stride: all * bins },
            BlockRows::Host(kept) => ImageRows { values: kept.batch(), first: 0, stride: count * bins },
        };
        let corrected = match &self.images {
            Some(images) => ImageRows { values: &images.transmissions, first: 0, stride: count * bins },
            None => into_block,
        };
        let rows: Vec<usize> = read.clone().collect();
        self.corrector.correct(
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
        let Some(images) = &self.images else { return Ok(()) };
        let rows = BatchRows { read, upright, wanted, counted: counted.clone(), projections: count };
        let last = images.run(session, &rows, &into_block, self.corrector.counts())?;
        match (&mut self.rows, last) {
            (BlockRows::Device(_), _) => Ok(()),
            (BlockRows::Host(kept), Some(last)) => kept.take(session, block, &projections, &last),
            (BlockRows::Host(_), None) => Err(Error::Internal(format!("no step for block {block}"))),
        }
    }

    /// Makes room for a block beside the one before it, of which slices are still to be computed, if the host keeps blocks.
    ///
    /// # Errors
    /// The host's, that there is no memory.
    pub fn read_ahead(&mut self, session: &Session, block: usize) -> Result<()> {
        match &mut self.rows {
            BlockRows::Host(kept) => kept.begin(session, block, true),
            BlockRows::Device(_) => Ok(()),
        }
    }

    /// Waits for a block, and hands out and forgets what was replaced in the `count` rows that are counted.
    ///
    /// # Errors
    /// The device's.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<RowCounts> {
        self.corrector.take_counts(session, count)
    }

    /// Copies rows of the detector, of one block that was corrected, to `sinograms`, one after the other from value `first` on
    /// with `stride` values from one to the next. Waits only for what the host keeps.
    ///
    /// # Errors
    /// The device's, and [`Error::Internal`] for what does not fit.
    pub fn copy(
        &mut self,
        session: &Session,
        rows: &[usize],
        sinograms: &mut Buffer<f32>,
        (first, stride): (usize, usize),
    ) -> Result<()> {
        let length = self.shape.projections * self.shape.bins;
        let Some(last) = rows.len().checked_sub(1) else { return Ok(()) };
        session.expect_length(sinograms, first + last * stride + length, "sinograms")?;
        let of_block = self.shape.blocks.rows;
        let mut places = rows.iter().enumerate().map(|(at, row)| (row % of_block, first + at * stride));
        let block = match &mut self.rows {
            BlockRows::Host(kept) => return kept.copy(session, rows[last] / of_block, places, sinograms),
            BlockRows::Device(block) => block,
        };
        places.try_for_each(|(row, place)| {
            let from = row * length;
            // SAFETY: a block has this row, and the sinograms were checked.
            unsafe { session.uploads.enqueue_copy_buffer(block, sinograms, 4 * from, 4 * place, 4 * length, &[]) }
                .map(drop)
                .map_err(|e| cl_error("copying sinograms", session.device_name(), e))
        })
    }

    /// Waits for copies of sinograms that were not waited for.
    ///
    /// # Errors
    /// The device's.
    pub fn finish(&self, session: &Session) -> Result<()> {
        match &self.rows {
            BlockRows::Host(_) => Ok(()),
            BlockRows::Device(_) => session.finish_uploads(),
        }
    }
}
