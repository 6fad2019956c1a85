//! Correction of rows on a device: samples as they are stored become line integrals in sinograms.

use super::Session;
use super::outliers::{DetectorRows, OutlierForm, OutlierRemover};
use crate::error::{Error, Result};
use crate::kernel::{AirKind, CorrectionForm, SampleForm, SampleKind, generate_correction};
use crate::source::{SampleType, StoredSamples};
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE};
use std::ops::Range;

/// Largest work-group of the kernel: a row has few bins for more.
const GROUP: usize = 128;

/// What is done to the rows of some projections: plain data.
#[derive(Clone, Debug)]
pub struct RowCorrection<'a> {
    /// Bins of the detector.
    pub bins: usize,
    /// Rows of the detector.
    pub height: usize,
    /// What is replaced before all else.
    pub outliers: Option<OutlierForm>,
    pub fields: Option<FieldImages<'a>>,
    /// Counts from which a sample is saturated.
    pub saturation: Option<f32>,
    pub air: AirCorrection,
    pub minus_log: bool,
    /// Of every projection that is used.
    pub projections: Vec<ProjectionState>,
}

/// Flat and dark fields of all rows of the detector, `[row][bin]`.
#[derive(Clone, Copy, Debug)]
pub struct FieldImages<'a> {
    pub flat: &'a [f32],
    /// After the scan.
    pub flat2: Option<&'a [f32]>,
    pub dark: &'a [f32],
}

/// How transmissions are divided by those of air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AirCorrection {
    Without,
    /// By the line through the means of so many bins at both ends.
    Sides(usize, usize),
    /// By the projection's level.
    Levels,
}

/// What distinguishes a projection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProjectionState {
    /// Number of the projection in the input.
    pub number: usize,
    /// Place between the flats before and after the scan, 0 to 1.
    pub progress: f32,
    /// Level of air.
    pub level: f32,
    /// Whether replaced values are counted bin by bin.
    pub watched: bool,
}

/// What was replaced in the rows of a chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCounts {
    /// For every row: without light in the flat field, not finite, without logarithm, saturated.
    pub rows: Vec<[u32; 4]>,
    /// For every row the outliers; empty if none are looked for.
    pub outliers: Vec<u32>,
    /// For every projection whether a row had no light at all.
    pub unlit: Vec<u32>,
    /// How often bins were replaced in the watched projections, `[row][bin]`; empty if nothing was replaced.
    pub bins: Vec<u32>,
}

/// How the samples of a piece lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOrder {
    /// `[projection][row][bin]`, from projections.
    Projections,
    /// `[row][projection][bin]`, from sinograms.
    Sinograms,
}

/// The kernel with its fields and tables on the device.
pub struct RowCorrector {
    kernel: Kernel,
    order: SampleOrder,
    stored: StoredSamples,
    bins: usize,
    height: usize,
    has_fields: bool,
    /// Removes outliers, into `values`.
    outliers: Option<(OutlierRemover, Buffer<f32>)>,
    /// Rows that are read around those of a piece.
    halo: usize,
    projections: usize,
    group: usize,
    saturation: f32,
    air: [i32; 2],
    /// Most rows of a piece, and of a chunk.
    piece: usize,
    chunk: usize,
    samples: Buffer<u8>,
    flat: Buffer<f32>,
    flat2: Buffer<f32>,
    dark: Buffer<f32>,
    rows: Buffer<i32>,
    states: Buffer<[f32; 4]>,
    counts: Buffer<[u32; 4]>,
    unlit: Buffer<u32>,
    replaced: Buffer<u32>,
}

impl RowCorrector {
    /// Bytes on the device for pieces of `piece` rows with `halo` rows around them, of `[bins, height, projections]`, and so
    /// many field images.
    pub fn bytes(stored: StoredSamples, shape: [usize; 3], piece: usize, halo: usize, fields: usize) -> u64 {
        let [bins, height, projections] = shape.map(|size| size as u64);
        let (sample, read) = (stored.sample.bytes() as u64, (piece + 2 * halo) as u64);
        let values = if halo > 0 { 4 * piece as u64 } else { 0 };
        // counts of chunks are few
        (sample * read + values) * projections * bins + 4 * (fields as u64 * height * bins + 5 * projections)
    }

    /// Builds the kernel and copies fields and tables to the device.
    ///
    /// # Errors
    /// The device's.
    pub fn new(
        session: &Session,
        correction: &RowCorrection,
        stored: StoredSamples,
        order: SampleOrder,
        piece: usize,
        chunk: usize,
    ) -> Result<Self> {
        let RowCorrection { bins, height, fields, .. } = *correction;
        let projections = correction.projections.len();
        let group = GROUP.min(session.facts.max_work_group.max(1));
        let group = 1 << group.ilog2();
        let (air_kind, air) = match correction.air {
            AirCorrection::Without => (AirKind::Without, [0, 0]),
            AirCorrection::Sides(left, right) => (AirKind::Sides, [left as i32, right as i32]),
            AirCorrection::Levels => (AirKind::Levels, [0, 0]),
        };
        let flats = fields.map_or(0, |fields| if fields.flat2.is_some() { 2 } else { 1 });
        let source = generate_correction(CorrectionForm {
            samples: sample_form(if correction.outliers.is_some() { StoredSamples::F32 } else { stored })?,
            flats,
            air: air_kind,
            minus_log: correction.minus_log,
            group: group as u32,
        })?;
        let program = session.build(&source)?;
        let states = correction.projections.iter();
        let states: Vec<_> = states.map(|s| [s.progress, s.level, f32::from(u8::from(s.watched)), 0.0]).collect();
        let field = |image: Option<&[f32]>, what: &str| -> Result<Buffer<f32>> {
            match image {
                Some(image) if image.len() != height * bins => {
                    Err(Error::Device(format!("{what} have {} values", image.len())))
                }
                image => session.constant_buffer(image.unwrap_or(&[0.0]), what),
            }
        };
        let rows = DetectorRows { stored, saturation: correction.saturation, bins, height, projections, piece, chunk };
        let outliers = correction.outliers.map(|form| -> Result<_> {
            if order != SampleOrder::Projections {
                return Err(Error::Device("outliers are those of projections".into()));
            }
            let values = session.buffer(piece * projections * bins, CL_MEM_READ_WRITE, "counts without outliers")?;
            Ok((OutlierRemover::new(session, form, rows)?, values))
        });
        let halo = correction.outliers.map_or(0, |form| form.size / 2);
        let most = (piece + 2 * halo) * projections * bins * stored.sample.bytes();
        let mut corrector = RowCorrector {
            kernel: session.kernel(&program, source.entry)?,
            order,
            stored,
            bins,
            height,
            has_fields: fields.is_some(),
            halo,
            projections,
            group,
            // counted before outliers are replaced
            saturation: correction.saturation.filter(|_| outliers.is_none()).unwrap_or(f32::NAN),
            outliers: outliers.transpose()?,
            air,
            piece,
            chunk,
            samples: session.buffer(most, CL_MEM_READ_ONLY, "samples")?,
            flat: field(fields.map(|f| f.flat), "flat fields")?,
            flat2: field(fields.and_then(|f| f.flat2), "flat fields after the scan")?,
            dark: field(fields.map(|f| f.dark), "dark fields")?,
            rows: session.buffer(piece, CL_MEM_READ_ONLY, "numbers of rows")?,
            states: session.constant_buffer(&states, "projections")?,
            counts: session.buffer(chunk, CL_MEM_READ_WRITE, "counts of replaced values")?,
            unlit: session.buffer(projections, CL_MEM_READ_WRITE, "projections without light")?,
            replaced: session.buffer(chunk * bins, CL_MEM_READ_WRITE, "replaced bins")?,
        };
        corrector.clear(session)?;
        session.finish()?;
        Ok(corrector)
    }

    /// Bytes of the samples of a row of all projections.
    fn row_bytes(&self) -> usize {
        self.projections * self.bins * self.stored.sample.bytes()
    }

    /// Most bytes of the samples of a piece.
    pub fn most_bytes(&self) -> usize {
        (self.piece + 2 * self.halo) * self.row_bytes()
    }

    /// The rows of the detector that are read for these.
    fn read(&self, rows: &[usize]) -> Range<usize> {
        let (first, last) = (rows.first().copied().unwrap_or(0), rows.last().map_or(0, |last| last + 1));
        first.saturating_sub(self.halo)..(last + self.halo).min(self.height)
    }

    /// Bytes of the samples that are read for these rows.
    pub fn sample_bytes(&self, rows: &[usize]) -> usize {
        let count = if self.outliers.is_some() { self.read(rows).len() } else { rows.len() };
        count * self.row_bytes()
    }

    /// Copies the samples of some rows of the detector to the device and corrects them into sinograms of `stride` values,
    /// the first of them at sinogram `place` of `sinograms`; what is replaced is counted there, too. Where outliers are
    /// replaced, rows are next to each other, and samples are those of the rows around them, too. Does not wait for the
    /// kernels.
    ///
    /// # Errors
    /// The device's, and [`Error::Device`] for what does not fit.
    pub fn run(
        &mut self,
        session: &Session,
        samples: &[u8],
        rows: &[usize],
        place: usize,
        (sinograms, stride): (&Buffer<f32>, usize),
    ) -> Result<()> {
        let fits = rows.len() <= self.piece
            && place + rows.len() <= self.chunk
            && samples.len() == self.sample_bytes(rows)
            && stride >= self.projections * self.bins
            && (!self.has_fields || rows.iter().all(|&row| row < self.height))
            && (self.outliers.is_none() || rows.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        if !fits {
            return Err(Error::Device(format!("{} rows do not fit the plan of {}", rows.len(), self.piece)));
        }
        session.expect_length(sinograms, (place + rows.len()) * stride, "sinograms")?;
        let numbers: Vec<i32> = rows.iter().map(|&row| if self.has_fields { row as i32 } else { 0 }).collect();
        session.upload(&mut self.rows, 0, &numbers, "numbers of rows")?;
        session.upload(&mut self.samples, 0, samples, "samples")?;
        let (row_stride, projection_stride) = match self.order {
            SampleOrder::Projections => (1, rows.len()),
            SampleOrder::Sinograms => (self.projections, 1),
        };
        let read = self.read(rows);
        let launch = session.launch(&self.kernel, "correct_rows");
        let launch = match &mut self.outliers {
            Some((outliers, values)) => {
                let wanted = read.start.max(rows.first().copied().unwrap_or(0));
                let wanted = wanted..wanted + rows.len();
                outliers.run(session, (&self.samples, read), (values, wanted), place)?;
                launch.handle(values)?
            }
            None => launch.handle(&self.samples)?,
        };
        let launch = launch
            .handle(&self.flat)?
            .handle(&self.flat2)?
            .handle(&self.dark)?
            .handle(&self.rows)?
            .handle(&self.states)?
            .handle(sinograms)?
            .handle(&self.counts)?
            .handle(&self.unlit)?
            .handle(&self.replaced)?
            .value((place * stride) as u64)?
            .value(stride as u64)?
            .value(row_stride as i32)?
            .value(projection_stride as i32)?
            .value(self.bins as i32)?
            .value(place as i32)?
            .value(self.saturation)?
            .value(self.air)?;
        let global = [self.group, self.projections, rows.len()];
        // SAFETY: sinograms and samples were checked against these rows, fields against the detector, counts against the
        // chunk.
        unsafe { launch.among_uploads().run(&global, Some(&[self.group, 1, 1])) }.map(drop)
    }

    /// Waits for the rows of a chunk, and hands out and forgets what was replaced in its `count` rows.
    ///
    /// # Errors
    /// The device's.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<RowCounts> {
        let (outliers, unlit) = (Vec::new(), vec![0; self.projections]);
        let mut counts = RowCounts { rows: vec![[0; 4]; count], outliers, unlit, bins: Vec::new() };
        session.read_uploaded(&self.counts, &mut counts.rows, "counts of replaced values")?;
        let found = self.outliers.as_mut().map(|(outliers, _)| outliers.take_counts(session, count)).transpose()?;
        let replaced = counts.rows.iter().flatten().any(|&count| count > 0);
        for (row, [outliers, saturated]) in counts.rows.iter_mut().zip(found.into_iter().flatten()) {
            row[3] += saturated;
            counts.outliers.push(outliers);
        }
        if !replaced {
            return Ok(counts);
        }
        session.read_uploaded(&self.unlit, &mut counts.unlit, "projections without light")?;
        if counts.rows.iter().any(|[dead, non_finite, dark, _]| dead + non_finite + dark > 0) {
            counts.bins = vec![0; count * self.bins];
            session.read_uploaded(&self.replaced, &mut counts.bins, "replaced bins")?;
        }
        self.clear(session)?;
        Ok(counts)
    }

    fn clear(&mut self, session: &Session) -> Result<()> {
        session.upload(&mut self.counts, 0, &vec![[0; 4]; self.chunk], "counts of replaced values")?;
        session.upload(&mut self.unlit, 0, &vec![0; self.projections], "projections without light")?;
        session.upload(&mut self.replaced, 0, &vec![0; self.chunk * self.bins], "replaced bins")
    }
}

/// How kernels read samples.
pub(super) fn sample_form(stored: StoredSamples) -> Result<SampleForm> {
    let kind = match stored.sample {
        SampleType::U8 | SampleType::U16 | SampleType::U32 => SampleKind::Unsigned,
        SampleType::I8 | SampleType::I16 | SampleType::I32 => SampleKind::Signed,
        SampleType::F16 | SampleType::F32 => SampleKind::Float,
        SampleType::F64 => return Err(Error::Device("64-bit samples are converted before".into())),
    };
    Ok(SampleForm { bytes: stored.sample.bytes() as u32, kind, swapped: stored.swapped })
}
