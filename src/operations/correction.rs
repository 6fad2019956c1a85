//! Correction of rows on a device: samples as they are stored become line integrals in sinograms.

use super::binning::SampleBinner;
use super::detector_buffers::DetectorBuffers;
use super::device_rows::DeviceRows;
use super::files::{LOGARITHM, SAMPLES};
use super::outliers::{DetectorRows, OutlierRemover, OutlierRows};
use super::program_target::ProgramTarget;
use super::row_correction::{AirCorrection, DetectorBatch, DetectorImages, RowCorrection, RowCounts};
use super::samples::{DeviceSamples, PieceSize, SampleForm, SampleKind, SampleOrder, sample_form};
use crate::device::{BufferLayout, Copying, Session};
use crate::error::{Error, Result};
use crate::kernel::{ClFile, Defines, KernelSource, LaunchShape, assemble, cl_file, power_of_two_group};
use crate::source::{StoredRows, StoredSamples};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::Buffer;
use std::collections::VecDeque;
use std::ops::Range;

const CORRECT_ROWS: ClFile = cl_file!("correct_rows.cl");
/// The files of the program, in order.
pub(super) const FILES: &[&[ClFile]] = &[&[SAMPLES, LOGARITHM, CORRECT_ROWS]];

/// Largest work-group of the kernel: a row has too few bins for larger ones.
pub(super) const CORRECTION_GROUP: usize = 128;

/// The operations of the kernel on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrectionForm {
    pub samples: SampleForm,
    /// Number of flat fields: 0 without correction, 2 before and after the scan.
    pub flats: u32,
    /// Number of components of the beam.
    pub components: u32,
    pub air: AirKind,
    /// True if transmissions are divided by an image after those of air.
    pub divisor: bool,
    pub minus_log: LogKind,
    /// Number of work-items of a work-group.
    pub group: u32,
}

/// The division of transmissions by those of air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirKind {
    Without,
    /// Division by the line through the means of the outermost bins.
    Sides,
    /// Division by a level for each projection.
    Levels,
}

/// The place of -log in the correction of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    Without,
    Taken,
    /// -log is taken by a later kernel.
    Later,
}

/// Returns the source of the kernel that corrects rows.
fn generate_correction(form: CorrectionForm) -> Result<KernelSource> {
    let mut defines = Defines::default();
    form.samples.define(&mut defines)?;
    defines.number("FIELDS", form.flats)?;
    defines.number("COMPONENTS", form.components)?;
    defines.number("AIR", form.air as u32)?;
    defines.number("DIVISOR", u32::from(form.divisor))?;
    defines.number("MINUS_LOG", form.minus_log as u32)?;
    defines.number("GROUP", form.group)?;
    let options = vec!["-cl-std=CL1.1".to_owned()];
    Ok(assemble("correct-rows".to_owned(), &defines, FILES[0], options, "correct_rows", LaunchShape::NONE))
}

/// Returns the programs of the operation in the forms that differ most.
pub(super) fn variants(on: &ProgramTarget) -> Result<Vec<KernelSource>> {
    let group = power_of_two_group(on.target.facts, CORRECTION_GROUP) as u32;
    let samples = |bytes, kind, swapped| SampleForm { bytes, kind, swapped };
    [
        (SampleForm::COUNTS, [2, 3], AirKind::Sides, false, LogKind::Taken),
        (samples(1, SampleKind::Signed, false), [0, 0], AirKind::Without, true, LogKind::Taken),
        (samples(2, SampleKind::Float, false), [1, 0], AirKind::Levels, true, LogKind::Later),
        (samples(4, SampleKind::Float, true), [0, 0], AirKind::Without, false, LogKind::Without),
    ]
    .map(|(samples, [flats, components], air, divisor, minus_log)| {
        generate_correction(CorrectionForm { samples, flats, components, air, divisor, minus_log, group })
    })
    .into_iter()
    .collect()
}

/// The kernel that corrects rows, with its fields and tables on the device.
pub struct RowCorrector {
    kernel: Kernel,
    order: SampleOrder,
    stored: StoredRows,
    /// Bins samples before all other steps.
    binner: Option<SampleBinner>,
    bins: usize,
    height: usize,
    /// The removal of outliers, and the counts without them that it writes.
    outliers: Option<(OutlierRemover, Buffer<f32>)>,
    /// Number of rows that are read around the rows of a piece.
    halo: usize,
    /// Number of projections of the scan.
    projections: usize,
    group: usize,
    saturation: f32,
    largest: f32,
    air: [i32; 2],
    /// True if -log is taken, by this kernel or later.
    minus_log: bool,
    size: PieceSize,
    /// Buffers of pieces, which are used in turn.
    pieces: VecDeque<PieceBuffers>,
    images: DetectorBuffers,
    states: Buffer<[f32; 4]>,
    counts: Buffer<[u32; 4]>,
    unlit: Buffer<u32>,
    levels: Buffer<i32>,
    replaced: Buffer<u32>,
}

/// Sizes that decide which buffers a [`RowCorrector`] has.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowsForm {
    pub stored: StoredRows,
    /// Number of bins of the detector.
    pub bins: usize,
    /// Number of rows of the detector.
    pub height: usize,
    pub size: PieceSize,
    /// Number of rows around a piece that the removal of outliers reads; 0 without it.
    pub halo: usize,
    /// Images of the detector.
    pub held: DetectorImages,
    /// Number of projections of the scan.
    pub projections: usize,
}

/// Buffers for the data that are copied for a piece.
struct PieceBuffers {
    samples: Buffer<u8>,
    /// Numbers of the rows in the detector.
    rows: Buffer<i32>,
    /// Event of the last kernel that reads the buffers.
    read: Option<Event>,
}

impl RowCorrector {
    /// Returns the buffers for rows of this form.
    pub fn layout(form: RowsForm) -> BufferLayout {
        let RowsForm { stored, bins, height, size, halo, held, projections } = form;
        let PieceSize { rows, projections: at_once, counted, .. } = size;
        let (most, pieces) = ((rows + 2 * halo) * at_once, size.at_once.max(1));
        let mut layout = DetectorBuffers::layout(held, height * bins, projections)
            .several::<u8>(pieces, "samples", most * stored.row_bytes())
            .several::<i32>(pieces, "numbers of rows", rows)
            .with::<[f32; 4]>("projections", projections)
            .with::<[u32; 4]>("counts of replaced values", counted)
            .with::<u32>("projections without light", projections)
            .with::<i32>("levels of projections", projections)
            .with::<u32>("replaced bins", counted * bins);
        if stored.by > 1 {
            layout = layout.and(SampleBinner::layout(stored, most));
        }
        if halo > 0 {
            layout =
                layout.with::<f32>("counts without outliers", rows * at_once * bins).and(OutlierRemover::layout(size));
        }
        layout
    }

    /// Builds the kernel and copies fields and tables to the device.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        session: &Session,
        correction: &RowCorrection,
        stored: StoredRows,
        order: SampleOrder,
        size: PieceSize,
    ) -> Result<Self> {
        let RowCorrection { bins, height, .. } = *correction;
        let projections = correction.projections.len();
        if stored.bins() != bins {
            return Err(Error::Internal(format!("rows of {} bins, not of {bins}", stored.bins())));
        }
        let samples = if stored.by > 1 { StoredSamples::F32 } else { stored.samples };
        let group = power_of_two_group(&session.facts, CORRECTION_GROUP);
        let source = source(correction, samples, group)?;
        let program = session.build(&source)?;
        let states = correction.projections.iter();
        let states: Vec<_> = states.map(|s| [s.progress, s.level, f32::from(u8::from(s.watched)), 0.0]).collect();
        let halo = correction.outliers.map_or(0, |form| form.size / 2);
        let held = correction.detector_images();
        let form = RowsForm { stored, bins, height, size, halo, held, projections };
        let layout = Self::layout(form);
        let saturation = correction.saturation;
        let rows = DetectorRows { stored: samples, saturation, bins, height, piece: size };
        let outliers = correction.outliers.map(|form| -> Result<_> {
            if order != SampleOrder::Projections {
                return Err(Error::Internal("outliers are those of projections".into()));
            }
            let values = layout.buffer(session, "counts without outliers")?;
            Ok((OutlierRemover::new(session, form, rows)?, values))
        });
        let most = (size.rows + 2 * halo) * size.projections;
        let binner = || SampleBinner::new(session, stored, order, most);
        let pieces = || -> Result<_> {
            Ok(PieceBuffers {
                samples: layout.input(session, "samples")?,
                rows: layout.input(session, "numbers of rows")?,
                read: None,
            })
        };
        let mut corrector = RowCorrector {
            kernel: session.kernel(&program, source.entry)?,
            order,
            stored,
            binner: (stored.by > 1).then(binner).transpose()?,
            bins,
            height,
            halo,
            projections,
            group,
            // counted before outliers are replaced
            saturation: saturation.filter(|_| outliers.is_none()).unwrap_or(f32::NAN),
            outliers: outliers.transpose()?,
            largest: correction.largest,
            air: match correction.air {
                AirCorrection::Sides(left, right) => [left as i32, right as i32],
                AirCorrection::Without | AirCorrection::Levels => [0, 0],
            },
            minus_log: correction.takes_log(),
            size,
            pieces: (0..size.at_once.max(1)).map(|_| pieces()).collect::<Result<_>>()?,
            images: DetectorBuffers::new(session, correction)?,
            states: layout.constant(session, "projections", &states)?,
            counts: layout.buffer(session, "counts of replaced values")?,
            unlit: layout.buffer(session, "projections without light")?,
            levels: layout.buffer(session, "levels of projections")?,
            replaced: layout.buffer(session, "replaced bins")?,
        };
        corrector.clear(session)?;
        session.finish()?;
        Ok(corrector)
    }

    /// Returns the largest number of bytes of the samples of a piece.
    pub fn most_bytes(&self) -> usize {
        (self.size.rows + 2 * self.halo) * self.size.projections * self.stored.row_bytes()
    }

    /// Returns the detector rows that are read to correct `rows`.
    fn read(&self, rows: &[usize]) -> Range<usize> {
        let (first, last) = (rows.first().copied().unwrap_or(0), rows.last().map_or(0, |last| last + 1));
        first.saturating_sub(self.halo)..(last + self.halo).min(self.height)
    }

    /// Returns the number of detector rows that are read to correct `rows`.
    fn count_of(&self, rows: &[usize]) -> usize {
        if self.outliers.is_some() { self.read(rows).len() } else { rows.len() }
    }

    /// Returns the bytes of the samples of a batch, including those of the rows around it.
    fn bytes_of(&self, batch: &DetectorBatch) -> usize {
        self.count_of(&batch.rows) * batch.projections.len() * self.stored.row_bytes()
    }

    /// Copies samples of a batch to the device and corrects them into the rows `into`; replaced values are counted.
    /// Where outliers are replaced, the rows must be contiguous, and the samples include those of the rows around them.
    /// Waits for the kernels of the batch whose buffers it reuses, but not for the copy of the samples.
    ///
    /// # Errors
    /// Errors of the device, and [`Error::Internal`] for arguments that do not fit.
    pub(super) fn start<'a>(
        &mut self,
        session: &'a Session,
        batch: &DetectorBatch,
        samples: &'a [u8],
        into: &DeviceRows,
    ) -> Result<Copying<'a>> {
        let DetectorBatch { rows, counted, place, projections } = batch;
        let DeviceRows { first, stride, .. } = *into;
        let PieceSize { rows: most, projections: most_projections, counted: most_counted, .. } = self.size;
        let fits = rows.len() <= most
            && counted.end <= rows.len()
            && place + counted.len() <= most_counted
            && projections.len() <= most_projections
            && projections.end <= self.projections
            && samples.len() == self.bytes_of(batch)
            && stride >= projections.len() * self.bins
            && (!self.images.any() || rows.iter().all(|&row| row < self.height))
            && (self.outliers.is_none() || rows.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        if !fits {
            return Err(Error::Internal(format!("{} rows do not fit the plan of {most}", rows.len())));
        }
        let in_row = projections.len() * self.bins;
        let numbers: Vec<i32> = rows.iter().map(|&row| if self.images.any() { row as i32 } else { 0 }).collect();
        let (read, count) = (self.read(rows), self.count_of(rows));
        self.pieces.rotate_left(1);
        let piece = &mut self.pieces[0];
        if let Some(before) = piece.read.take() {
            session.wait_for_upload(&before)?;
        }
        session.copy_ahead(&mut piece.rows, &numbers, "numbers of rows")?.wait()?;
        let copying = session.copy_ahead(&mut piece.samples, samples, "samples")?;
        let (row_stride, projection_stride) = match self.order {
            SampleOrder::Projections => (1, rows.len()),
            SampleOrder::Sinograms => (projections.len(), 1),
        };
        let samples = DeviceSamples { values: &piece.samples, copied: Some(copying.event()) };
        let (samples, row_bytes) = match &self.binner {
            Some(binner) => (binner.run(session, samples, count, projections.len())?.into(), 4 * self.bins),
            None => (samples, self.stored.row_bytes()),
        };
        let launch = session.launch(&self.kernel, "correct_rows").after(samples.copied);
        let launch = match &mut self.outliers {
            Some((outliers, cleaned)) => {
                let start = rows.first().copied().unwrap_or(0);
                let rows = OutlierRows {
                    read,
                    wanted: start..start + rows.len(),
                    counted: start + counted.start..start + counted.end,
                    place: *place,
                    projections: projections.len(),
                };
                outliers.run(session, samples, cleaned, &rows)?;
                launch.buffer(cleaned, rows.wanted.len() * in_row, "counts without outliers")?
            }
            None => launch.buffer(samples.values, rows.len() * projections.len() * row_bytes, "samples")?,
        };
        let counted_end = place + counted.len();
        let launch = self
            .images
            .arguments(launch, projections.end)?
            .buffer(&piece.rows, rows.len(), "numbers of rows")?
            .buffer(&self.states, projections.end, "projections")?
            .rows(into, rows.len(), in_row)?
            .buffer(&self.counts, counted_end, "counts of replaced values")?
            .buffer(&self.unlit, projections.end, "projections without light")?
            .buffer(&self.levels, projections.end, "levels of projections")?
            .buffer(&self.replaced, counted_end * self.bins, "replaced bins")?
            .value(first as u64)?
            .value(stride as u64)?
            .value(row_stride as i32)?
            .value(projection_stride as i32)?
            .value(self.bins as i32)?
            .value(*place as i32)?
            .value([counted.start as i32, counted.end as i32])?
            .value(projections.start as i32)?
            .value(self.saturation)?
            .value(self.largest)?
            .value(self.air)?
            .value((self.height * self.bins) as u64)?;
        let global = [self.group, projections.len(), rows.len()];
        piece.read = Some(launch.among_uploads().run(&global, Some(&[self.group, 1, 1]))?);
        Ok(copying)
    }

    /// Returns the counts of the rows in which values are counted: without light in the flat field, not finite or too
    /// large, without logarithm, saturated.
    pub(super) fn counts(&self) -> &Buffer<[u32; 4]> {
        &self.counts
    }

    /// Waits for the rows of a chunk, returns the counts of replaced values of its `count` rows, and resets them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn take_counts(&mut self, session: &Session, count: usize) -> Result<RowCounts> {
        let (outliers, unlit, levels, bins) = (Vec::new(), vec![0; self.projections], Vec::new(), Vec::new());
        let mut counts = RowCounts { rows: vec![[0; 4]; count], outliers, unlit, levels, bins };
        session.read_uploaded(&self.counts, &mut counts.rows, "counts of replaced values")?;
        let found = self.outliers.as_mut().map(|(outliers, _)| outliers.take_counts(session, count)).transpose()?;
        let replaced = counts.rows.iter().flatten().any(|&count| count > 0);
        for (row, [outliers, saturated]) in counts.rows.iter_mut().zip(found.into_iter().flatten()) {
            row[3] += saturated;
            counts.outliers.push(outliers);
        }
        if self.minus_log {
            counts.levels = vec![0; self.projections];
            session.read_uploaded(&self.levels, &mut counts.levels, "levels of projections")?;
            session.read_uploaded(&self.unlit, &mut counts.unlit, "projections without light")?;
            self.clear_projections(session)?;
        }
        if counts.rows.iter().any(|[dead, non_finite, dark, _]| dead + non_finite + dark > 0) {
            counts.bins = vec![0; count * self.bins];
            session.read_uploaded(&self.replaced, &mut counts.bins, "replaced bins")?;
        }
        if replaced {
            self.clear_rows(session)?;
        }
        Ok(counts)
    }

    fn clear(&mut self, session: &Session) -> Result<()> {
        self.clear_projections(session)?;
        self.clear_rows(session)
    }

    fn clear_projections(&mut self, session: &Session) -> Result<()> {
        session.upload(&mut self.unlit, 0, &vec![0; self.projections], "projections without light")?;
        session.upload(&mut self.levels, 0, &vec![0; self.projections], "levels of projections")
    }

    fn clear_rows(&mut self, session: &Session) -> Result<()> {
        session.upload(&mut self.counts, 0, &vec![[0; 4]; self.size.counted], "counts of replaced values")?;
        session.upload(&mut self.replaced, 0, &vec![0; self.size.counted * self.bins], "replaced bins")
    }
}

/// Generates the kernel that corrects samples after binning.
fn source(correction: &RowCorrection, samples: StoredSamples, group: usize) -> Result<KernelSource> {
    generate_correction(CorrectionForm {
        samples: sample_form(if correction.outliers.is_some() { StoredSamples::F32 } else { samples })?,
        flats: correction.detector_images().flats as u32,
        components: correction.detector_images().components as u32,
        air: match correction.air {
            AirCorrection::Without => AirKind::Without,
            AirCorrection::Sides(..) => AirKind::Sides,
            AirCorrection::Levels => AirKind::Levels,
        },
        divisor: correction.divisor.is_some(),
        minus_log: match (correction.takes_log(), correction.takes_log_at_once()) {
            (false, _) => LogKind::Without,
            (true, true) => LogKind::Taken,
            (true, false) => LogKind::Later,
        },
        group: group as u32,
    })
}
