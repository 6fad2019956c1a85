//! The methods of [`vo`](super::vo) on a device: values remain there, and decisions by column are made on the host.

use super::vo::{ALIVE, ColumnChange, column_changes, counted, gaps, padded_lines};
use crate::device::{
    ColumnCorrection, ColumnOrder, ColumnSums, DeviceValues, Gap, LowFrequencies, RunningMedians, Session,
    SinogramBatch, SinogramShape,
};
use crate::error::Result;
use crate::steps::DeviceSinogramStep;
use rayon::prelude::*;
use std::ops::Range;

/// Two buffers of the sinograms' size, and their columns in order.
struct Columns {
    order: ColumnOrder,
    columns: DeviceValues,
    smooth: DeviceValues,
}

impl Columns {
    fn new(session: &Session, shape: SinogramShape) -> Result<Self> {
        let count = shape.slices * shape.projections * shape.bins;
        Ok(Columns {
            order: ColumnOrder::new(session, shape)?,
            columns: session.scratch(count, "columns of sinograms")?,
            smooth: session.scratch(count, "smoothed columns")?,
        })
    }

    fn device_memory(projections: usize, bins: usize) -> usize {
        8 * projections * bins + ColumnOrder::device_memory(projections, bins)
    }

    /// Sorts the columns, smooths them across bins, and puts them in their order into sinograms, or adds them to those.
    fn smooth_sorted(
        &mut self,
        session: &Session,
        medians: &RunningMedians,
        sinograms: &SinogramBatch,
        add: bool,
    ) -> Result<()> {
        let (columns, smooth) = (sinograms.in_buffer(&self.columns), sinograms.in_buffer(&self.smooth));
        self.order.sort(session, &columns, &columns, &smooth)?;
        medians.run(session, &columns, &smooth)?;
        self.order.restore(session, &smooth, sinograms, add)
    }
}

/// [`sorting`](super::vo::sorting).
pub(super) struct SortingOnDevice {
    columns: Columns,
    medians: RunningMedians,
}

impl SortingOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, size: usize) -> Result<Self> {
        Ok(SortingOnDevice { columns: Columns::new(session, shape)?, medians: RunningMedians::new(session, size)? })
    }

    pub fn device_memory(projections: usize, bins: usize) -> usize {
        Columns::device_memory(projections, bins)
    }
}

impl DeviceSinogramStep for SortingOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let columns = &mut self.columns;
        columns.order.to_columns(session, sinograms, &sinograms.in_buffer(&columns.columns))?;
        columns.smooth_sorted(session, &self.medians, sinograms, false)
    }
}

/// [`filtering`](super::vo::filtering).
pub(super) struct FilteringOnDevice {
    low: LowFrequencies,
    sums: ColumnSums,
    sorting: SortingOnDevice,
}

impl FilteringOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, sigma: f64, size: usize) -> Result<Self> {
        let (lines, wanted) = padded_lines(shape.projections);
        Ok(FilteringOnDevice {
            low: LowFrequencies::new(session, shape.slices, shape.bins, &lines, wanted, sigma)?,
            sums: ColumnSums::new(session, shape, ALIVE)?,
            sorting: SortingOnDevice::new(session, shape, size)?,
        })
    }

    pub fn device_memory(projections: usize, bins: usize, sigma: f64) -> usize {
        let samples = padded_lines(projections).0.len();
        Columns::device_memory(projections, bins)
            + ColumnSums::device_memory(bins)
            + LowFrequencies::device_memory(samples, bins, sigma)
    }
}

impl DeviceSinogramStep for FilteringOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let columns = &mut self.sorting.columns;
        let low = sinograms.in_buffer(&columns.smooth);
        self.sums.make_finite(session, sinograms)?;
        self.low.run(session, sinograms, &columns.smooth)?;
        self.sums.subtract(session, sinograms, &columns.smooth)?;
        columns.order.to_columns(session, &low, &sinograms.in_buffer(&columns.columns))?;
        columns.smooth_sorted(session, &self.sorting.medians, sinograms, true)
    }
}

/// [`large`](super::vo::large).
pub(super) struct LargeOnDevice {
    columns: Columns,
    medians: RunningMedians,
    sums: ColumnSums,
    snr: f64,
    counted: Range<usize>,
}

impl LargeOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, snr: f64, size: usize, drop: f64) -> Result<Self> {
        Ok(LargeOnDevice {
            columns: Columns::new(session, shape)?,
            medians: RunningMedians::new(session, size)?,
            sums: ColumnSums::new(session, shape, ALIVE)?,
            snr,
            counted: counted(shape.projections, drop),
        })
    }

    pub fn device_memory(projections: usize, bins: usize) -> usize {
        Columns::device_memory(projections, bins) + ColumnSums::device_memory(bins)
    }

    /// Transposes sinograms to the columns, and corrects these; the sinograms are overwritten.
    fn correct_columns(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let Columns { order, columns, smooth } = &mut self.columns;
        let (columns, smooth) = (sinograms.in_buffer(columns), sinograms.in_buffer(smooth));
        order.to_columns(session, sinograms, &columns)?;
        order.sort(session, &columns, sinograms, &smooth)?;
        let own = self.sums.means(session, sinograms, self.counted.clone())?;
        self.medians.run(session, sinograms, &smooth)?;
        let near = self.sums.means(session, &smooth, self.counted.clone())?;
        let corrections: Vec<ColumnCorrection> = own
            .par_chunks(sinograms.bins)
            .zip(near.par_chunks(sinograms.bins))
            .flat_map_iter(|(own, near)| column_changes(own, near, self.snr).into_iter().map(correction))
            .collect();
        order.correct(session, &columns, &smooth, &corrections)
    }
}

fn correction(change: ColumnChange) -> ColumnCorrection {
    match change {
        ColumnChange::Replace => ColumnCorrection::REPLACED,
        ColumnChange::Divide(factor) => ColumnCorrection::new(factor.recip(), 0.0),
        ColumnChange::Shift { near, own } => ColumnCorrection::new(1.0, near - own),
    }
}

impl DeviceSinogramStep for LargeOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.correct_columns(session, sinograms)?;
        let columns = &self.columns;
        columns.order.to_sinograms(session, &sinograms.in_buffer(&columns.columns), sinograms)
    }
}

/// Measures changes, and interpolates columns that [`dead`](super::vo::dead) does.
fn interpolate_dead(
    session: &Session,
    sums: &mut ColumnSums,
    sinograms: &SinogramBatch,
    snr: f64,
    size: usize,
) -> Result<()> {
    let changes = sums.changes(session, sinograms)?;
    let found: Vec<Gap> = changes
        .par_chunks(sinograms.bins)
        .enumerate()
        .flat_map_iter(|(slice, changes)| gaps(changes, snr, size).into_iter().flat_map(move |gap| bins_of(slice, gap)))
        .collect();
    sums.interpolate(session, sinograms, &found)
}

/// The bins of a gap in a sinogram.
fn bins_of(slice: usize, gap: Range<usize>) -> impl Iterator<Item = Gap> {
    let (slice, left, right) = (slice as i32, gap.start as i32 - 1, gap.end as i32);
    let steps = (gap.len() + 1) as f32;
    gap.enumerate().map(move |(step, bin)| Gap {
        slice,
        bin: bin as i32,
        left,
        right,
        share: (step + 1) as f32 / steps,
    })
}

/// [`dead`](super::vo::dead).
pub(super) struct DeadOnDevice {
    sums: ColumnSums,
    snr: f64,
    size: usize,
}

impl DeadOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, snr: f64, size: usize) -> Result<Self> {
        Ok(DeadOnDevice { sums: ColumnSums::new(session, shape, ALIVE)?, snr, size })
    }

    pub fn device_memory(bins: usize) -> usize {
        ColumnSums::device_memory(bins)
    }
}

impl DeviceSinogramStep for DeadOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        interpolate_dead(session, &mut self.sums, sinograms, self.snr, self.size)?;
        self.sums.make_finite(session, sinograms)
    }
}

/// `dead`, `large` and `sorting`, with the columns of the second for the third.
pub(super) struct AllOnDevice {
    large: LargeOnDevice,
    size: usize,
    small: RunningMedians,
}

impl AllOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, snr: f64, sizes: [usize; 2], drop: f64) -> Result<Self> {
        let [size, small] = sizes;
        Ok(AllOnDevice {
            large: LargeOnDevice::new(session, shape, snr, size, drop)?,
            size,
            small: RunningMedians::new(session, small)?,
        })
    }

    pub fn device_memory(projections: usize, bins: usize) -> usize {
        LargeOnDevice::device_memory(projections, bins)
    }
}

impl DeviceSinogramStep for AllOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let large = &mut self.large;
        interpolate_dead(session, &mut large.sums, sinograms, large.snr, self.size)?;
        large.correct_columns(session, sinograms)?;
        large.columns.smooth_sorted(session, &self.small, sinograms, false)
    }
}
