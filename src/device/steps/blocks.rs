//! Blocks of rows, corrected on a device by steps on images, and kept until their slices have been computed.

use super::correction::{CorrectedRows, PieceSize, RowCorrection, RowCorrector, RowCounts, SampleOrder};
use super::images::{ImageFilter, ImagePart, ImageRows, RowBlocks, RowRotator};
use super::{HostMemory, Session, cl_error};
use crate::error::{Error, Result};
use crate::kernel::{CORRECTION_GROUP, generate_minus_log, power_of_two_group};
use crate::source::StoredRows;
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
    /// Whether the block that was corrected last is kept by the host, because the device's memory does not hold it.
    pub on_host: bool,
}

impl BlockShape {
    /// Most rows that are corrected for a block.
    fn corrected(&self) -> usize {
        (self.blocks.rows + 2 * self.blocks.halo()).min(self.height)
    }

    fn size(&self) -> PieceSize {
        PieceSize { rows: self.corrected(), projections: self.batch, counted: self.blocks.rows, at_once: self.at_once }
    }

    /// Bytes of the host's memory for a block that it keeps.
    pub fn kept_bytes(&self) -> u64 {
        if self.on_host { 4 * (self.blocks.rows * self.projections * self.bins) as u64 } else { 0 }
    }

    /// Bytes on the device, with `halo` rows more around what is corrected, and so many field images: of the block, or a
    /// batch of it, and of the rest.
    pub fn bytes(&self, stored: StoredRows, halo: usize, fields: usize) -> [u64; 2] {
        let BlockShape { blocks, bins, height, batch, pairs, .. } = *self;
        let block = 4 * (blocks.rows * self.there() * bins) as u64;
        let images = 4 * (self.corrected() * batch * bins) as u64 * if self.rotates_and_filters() { 2 } else { 1 };
        let spectra = (pairs * blocks.pair_bytes()) as u64;
        [block, RowCorrector::bytes(stored, [bins, height], self.size(), halo, fields) + images + spectra]
    }

    /// Projections of a block that are on the device.
    fn there(&self) -> usize {
        if self.on_host { self.batch } else { self.projections }
    }

    fn rotates_and_filters(&self) -> bool {
        self.blocks.rotation_halo > 0 && self.blocks.images.is_some()
    }
}

/// Bytes of a part of a block that the host keeps, if rows are not larger: drivers limit single allocations.
const KEPT_PART: usize = 256 << 20;

/// Corrects blocks of rows of projections.
pub struct BlockCorrector {
    shape: BlockShape,
    corrector: RowCorrector,
    rotator: Option<RowRotator>,
    filter: Option<ImageFilter>,
    minus_log: Option<Kernel>,
    group: usize,
    /// Transmissions of a batch, `[row][projection][bin]`, and the same rotated.
    transmissions: Buffer<f32>,
    rotated: Option<Buffer<f32>>,
    /// `[row][projection][bin]` of the block that was corrected last, or of the last batch of it.
    block: Buffer<f32>,
    kept: Option<KeptBlock>,
}

/// A block that the host keeps, in memory that the device copies to and from.
struct KeptBlock {
    /// `[row][projection][bin]`, some rows each.
    parts: Vec<HostMemory>,
    /// Rows of a part.
    part_rows: usize,
    /// Values of a row.
    row: usize,
}

impl KeptBlock {
    fn new(session: &Session, shape: &BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, projections, .. } = *shape;
        let row = projections * bins;
        let part_rows = (KEPT_PART / (4 * row).max(1)).clamp(1, blocks.rows.max(1));
        let firsts = (0..blocks.rows).step_by(part_rows);
        let parts = firsts.map(|first| session.host_memory(part_rows.min(blocks.rows - first) * row));
        Ok(KeptBlock { parts: parts.collect::<Result<_>>()?, part_rows, row })
    }

    /// Waits for a batch of projections of all rows and takes it in.
    fn take(&mut self, session: &Session, block: &Buffer<f32>, projections: &Range<usize>, bins: usize) -> Result<()> {
        let (columns, count) = (projections.start * bins, projections.len() * bins);
        let mut first = 0;
        for part in &mut self.parts {
            let rows = part.len() / self.row;
            session.read_uploaded_columns((block, first * count), (part, self.row), columns..columns + count)?;
            first += rows;
        }
        Ok(())
    }

    /// A row of the block, `[projection][bin]`.
    fn row(&self, row: usize) -> &[f32] {
        &self.parts[row / self.part_rows][row % self.part_rows * self.row..][..self.row]
    }
}

impl BlockCorrector {
    /// Builds the kernels and allocates memory.
    ///
    /// # Errors
    /// The device's.
    pub fn new(session: &Session, correction: &RowCorrection, stored: StoredRows, shape: BlockShape) -> Result<Self> {
        let BlockShape { blocks, bins, height, projections, batch, pairs, .. } = shape;
        if batch == 0 || batch % 2 == 1 || projections != correction.projections.len() || !correction.images.any() {
            return Err(Error::Internal(format!("batches of {batch} of {projections} projections")));
        }
        let size = [bins, height];
        let rotation = correction.images.rotation;
        let rotator = rotation.map(|form| RowRotator::new(session, form.degrees, size)).transpose()?;
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
        Ok(BlockCorrector {
            corrector: RowCorrector::new(session, correction, stored, SampleOrder::Projections, shape.size())?,
            minus_log: correction.minus_log.then(minus_log).transpose()?,
            group,
            transmissions: images("transmissions")?,
            rotated: (rotator.is_some() && filter.is_some()).then(|| images("rotated rows")).transpose()?,
            rotator,
            filter,
            block: session.buffer(blocks.rows * shape.there() * bins, CL_MEM_READ_WRITE, "a block of rows")?,
            kept: shape.on_host.then(|| KeptBlock::new(session, &shape)).transpose()?,
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
        let rows: Vec<usize> = read.clone().collect();
        let (first, stride) = if self.kept.is_some() { (0, count) } else { (projections.start, all) };
        let into_block = ImageRows { values: &self.block, first: first * bins, stride: stride * bins };
        let batch = projections.clone();
        self.corrector.correct(
            session,
            samples,
            &CorrectedRows {
                rows: &rows,
                counted: counted.start - read.start..counted.end - read.start,
                place: 0,
                projections,
                out: &self.transmissions,
                first: 0,
                stride: count * bins,
            },
        )?;
        let part = |read: &Range<usize>, wanted: &Range<usize>| ImagePart {
            read: read.clone(),
            wanted: wanted.clone(),
            projections: count,
        };
        let rotated = match (&self.rotator, &self.rotated) {
            (Some(rotator), Some(rotated)) => {
                let to = ImageRows { values: rotated, first: 0, stride: count * bins };
                rotator.run(session, &self.transmissions, &part(&read, &upright), &to)?;
                rotated
            }
            (Some(rotator), None) => {
                rotator.run(session, &self.transmissions, &part(&read, &wanted), &into_block)?;
                &self.transmissions
            }
            (None, _) => &self.transmissions,
        };
        if let Some(filter) = &self.filter {
            filter.run(session, rotated, &part(&upright, &wanted), &into_block)?;
        }
        self.take_logarithm(session, &into_block, &part(&read, &wanted), counted)?;
        match &mut self.kept {
            Some(kept) => kept.take(session, &self.block, &batch, bins),
            None => Ok(()),
        }
    }

    /// -log of some projections of the block, if it is wanted.
    fn take_logarithm(
        &self,
        session: &Session,
        rows: &ImageRows,
        part: &ImagePart,
        counted: &Range<usize>,
    ) -> Result<()> {
        let Some(kernel) = &self.minus_log else { return Ok(()) };
        let ImagePart { wanted, projections, .. } = part;
        let launch = session
            .launch(kernel, "minus_log")
            .handle(rows.values)?
            .handle(self.corrector.counts())?
            .value(rows.first as u64)?
            .value(rows.stride as u64)?
            .value(self.shape.bins as i32)?
            .value([counted.start - wanted.start, counted.end - wanted.start].map(|row| row as i32))?;
        let global = [self.group, *projections, wanted.len()];
        // SAFETY: these rows of the block were written just before, and there are counts for all its rows.
        unsafe { launch.among_uploads().run(&global, Some(&[self.group, 1, 1])) }.map(drop)
    }

    /// Waits for a block, and hands out and forgets what was replaced in the `count` rows that are counted.
    ///
    /// # Errors
    /// The device's.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<RowCounts> {
        self.corrector.take_counts(session, count)
    }

    /// Copies a row of a block that was corrected to `sinograms` from value `first` on. Does not wait.
    ///
    /// # Errors
    /// The device's, and [`Error::Internal`] for what does not fit.
    pub fn copy(&self, session: &Session, row: usize, sinograms: &mut Buffer<f32>, first: usize) -> Result<()> {
        let length = self.shape.projections * self.shape.bins;
        session.expect_length(sinograms, first + length, "sinograms")?;
        let row = row % self.shape.blocks.rows;
        if let Some(kept) = &self.kept {
            return session.upload(sinograms, first, kept.row(row), "sinograms");
        }
        let from = row * length;
        // SAFETY: a block has this row, and the sinograms were checked.
        unsafe { session.uploads.enqueue_copy_buffer(&self.block, sinograms, 4 * from, 4 * first, 4 * length, &[]) }
            .map(drop)
            .map_err(|e| cl_error("copying sinograms", session.device_name(), e))
    }
}
