//! The methods of [`vo`](crate::stripes::vo) on a device: values remain there, and decisions by column are made on the host.

use crate::device::{BufferLayout, Session};
use crate::error::Result;
use crate::kernel::StepTarget;
use crate::operations::{
    ColumnCorrection, ColumnOrder, ColumnSum, ColumnSums, DeviceValues, Gap, LowFrequencies, RunningMedians,
    SinogramBatch, SinogramShape,
};
use crate::steps::DeviceSinogramStep;
use crate::stripes::vo::{ALIVE, ColumnChange, column_changes, counted, gaps, padded_lines};
use std::ops::Range;

/// Columns of sinograms in ascending order. Once they are sorted, the memory of the sinograms is free for other values.
struct Columns {
    order: ColumnOrder,
    columns: DeviceValues,
}

impl Columns {
    fn new(session: &Session, shape: SinogramShape) -> Result<Self> {
        let columns = Self::layout(session.step_target(), shape).buffer(session, "columns of sinograms")?;
        Ok(Columns { order: ColumnOrder::new(session, shape)?, columns })
    }

    fn layout(target: StepTarget, shape: SinogramShape) -> BufferLayout {
        let count = shape.slices * shape.projections * shape.bins;
        ColumnOrder::layout(target, shape).with::<f32>("columns of sinograms", count)
    }

    /// Returns the columns as a batch of the size of `sinograms`.
    fn of(&self, sinograms: &SinogramBatch) -> SinogramBatch<'_> {
        sinograms.in_buffer(&self.columns)
    }

    /// Sorts the columns of sinograms, which are overwritten.
    fn sort(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let columns = sinograms.in_buffer(&self.columns);
        self.order.to_columns(session, sinograms, &columns)?;
        self.order.sort(session, &columns, &columns, sinograms)
    }

    /// Smooths the sorted columns across bins, and makes sinograms of them.
    fn smooth(&self, session: &Session, medians: &RunningMedians, sinograms: &SinogramBatch) -> Result<()> {
        let columns = self.of(sinograms);
        medians.run(session, &columns, sinograms)?;
        self.order.restore(session, sinograms, &columns, false)?;
        columns.copy_to(session, sinograms)
    }
}

/// [`sorting`](crate::stripes::vo::sorting) on a device.
pub(super) struct SortingOnDevice {
    columns: Columns,
    medians: RunningMedians,
}

impl SortingOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, size: usize) -> Result<Self> {
        let medians = RunningMedians::new(session, size)?;
        Ok(SortingOnDevice { columns: Columns::new(session, shape)?, medians })
    }

    pub fn layout(target: StepTarget, shape: SinogramShape) -> BufferLayout {
        Columns::layout(target, shape)
    }
}

impl DeviceSinogramStep for SortingOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.columns.sort(session, sinograms)?;
        self.columns.smooth(session, &self.medians, sinograms)
    }
}

/// [`filtering`](crate::stripes::vo::filtering) on a device.
pub(super) struct FilteringOnDevice {
    low: LowFrequencies,
    sums: ColumnSums,
    sorting: SortingOnDevice,
    /// Low frequencies, of the size of the sinograms.
    smooth: DeviceValues,
}

impl FilteringOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, sigma: f64, size: usize) -> Result<Self> {
        let (lines, wanted) = padded_lines(shape.projections);
        let layout = Self::layout(session.step_target(), shape, sigma);
        Ok(FilteringOnDevice {
            low: LowFrequencies::new(session, shape.slices, shape.bins, &lines, wanted, sigma)?,
            sums: ColumnSums::new(session, shape, ALIVE)?,
            sorting: SortingOnDevice::new(session, shape, size)?,
            smooth: layout.buffer(session, "low frequencies of sinograms")?,
        })
    }

    pub fn layout(target: StepTarget, shape: SinogramShape, sigma: f64) -> BufferLayout {
        let SinogramShape { slices, projections, bins } = shape;
        let samples = padded_lines(projections).0.len();
        LowFrequencies::layout(slices, bins, samples, sigma)
            .and(ColumnSums::layout(shape))
            .and(SortingOnDevice::layout(target, shape))
            .with::<f32>("low frequencies of sinograms", slices * projections * bins)
    }
}

impl DeviceSinogramStep for FilteringOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let SortingOnDevice { columns, medians } = &mut self.sorting;
        let smooth = sinograms.in_buffer(&self.smooth);
        self.sums.make_finite(session, sinograms)?;
        self.low.run(session, sinograms, &self.smooth)?;
        self.sums.subtract(session, sinograms, &self.smooth)?;
        columns.sort(session, &smooth)?;
        medians.run(session, &columns.of(sinograms), &smooth)?;
        columns.order.restore(session, &smooth, sinograms, true)
    }
}

/// [`large`](crate::stripes::vo::large) on a device.
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

    pub fn layout(target: StepTarget, shape: SinogramShape) -> BufferLayout {
        Columns::layout(target, shape).and(ColumnSums::layout(shape))
    }

    /// Sorts the columns of sinograms, which are overwritten, and starts to average them. Does not wait.
    fn sort(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.columns.sort(session, sinograms)?;
        let columns = self.columns.of(sinograms);
        self.sums.start_values(session, &columns, &self.counted, ColumnSum::Own)?;
        self.medians.run(session, &columns, sinograms)?;
        self.sums.start_values(session, sinograms, &self.counted, ColumnSum::Near)
    }

    /// Corrects the columns that were sorted last; waits for their averages.
    fn correct(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let own = self.means(session, ColumnSum::Own, sinograms.slices)?;
        let near = self.means(session, ColumnSum::Near, sinograms.slices)?;
        // not in parallel: that takes longer where all processors read and write files
        let corrections: Vec<ColumnCorrection> = own
            .chunks(sinograms.bins)
            .zip(near.chunks(sinograms.bins))
            .flat_map(|(own, near)| column_changes(own, near, self.snr).into_iter().map(correction))
            .collect();
        let Columns { order, columns } = &mut self.columns;
        order.correct(session, &sinograms.in_buffer(columns), sinograms, &corrections)
    }

    fn means(&mut self, session: &Session, which: ColumnSum, slices: usize) -> Result<Vec<f64>> {
        let count = self.counted.len().max(1) as f64;
        Ok(self.sums.wait(session, which, slices)?.into_iter().map(|sum| sum / count).collect())
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
        self.sort(session, sinograms)?;
        self.correct(session, sinograms)?;
        let Columns { order, columns } = &self.columns;
        order.restore(session, &sinograms.in_buffer(columns), sinograms, false)
    }
}

/// Interpolates the columns that [`dead`](crate::stripes::vo::dead) interpolates, once their changes are measured.
fn interpolate_dead(
    session: &Session,
    sums: &mut ColumnSums,
    sinograms: &SinogramBatch,
    snr: f64,
    size: usize,
) -> Result<()> {
    let changes = sums.wait(session, ColumnSum::Changes, sinograms.slices)?;
    // not in parallel: that takes longer where all processors read and write files
    let found: Vec<Gap> = changes
        .chunks(sinograms.bins)
        .enumerate()
        .flat_map(|(slice, changes)| gaps(changes, snr, size).into_iter().flat_map(move |gap| bins_of(slice, gap)))
        .collect();
    sums.interpolate(session, sinograms, &found)
}

/// Returns the bins of a gap in a sinogram.
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

/// [`dead`](crate::stripes::vo::dead) on a device.
pub(super) struct DeadOnDevice {
    sums: ColumnSums,
    snr: f64,
    size: usize,
}

impl DeadOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, snr: f64, size: usize) -> Result<Self> {
        Ok(DeadOnDevice { sums: ColumnSums::new(session, shape, ALIVE)?, snr, size })
    }

    pub fn layout(shape: SinogramShape) -> BufferLayout {
        ColumnSums::layout(shape)
    }
}

impl DeviceSinogramStep for DeadOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.sums.start_changes(session, sinograms)?;
        interpolate_dead(session, &mut self.sums, sinograms, self.snr, self.size)?;
        self.sums.make_finite(session, sinograms)
    }
}

/// Largest number of sinograms of a part that [`AllOnDevice`] processes.
const MOST_OF_PART: usize = 8;

/// [`all`](crate::stripes::vo::all) on a device. Sinograms are processed in parts, so that the device works on one part while
/// the host decides about another.
pub(super) struct AllOnDevice {
    /// Memory for two parts, or for one if there is only one sinogram at a time.
    parts: Vec<PartOfAll>,
    size: usize,
    small: RunningMedians,
}

/// Kernels and memory for a part.
struct PartOfAll {
    /// Largest number of sinograms of the part.
    most: usize,
    large: LargeOnDevice,
}

impl AllOnDevice {
    pub fn new(session: &Session, shape: SinogramShape, snr: f64, sizes: [usize; 2], drop: f64) -> Result<Self> {
        let [size, small] = sizes;
        let part = |part: SinogramShape| {
            let large = LargeOnDevice::new(session, part, snr, size, drop)?;
            Ok(PartOfAll { most: part.slices, large })
        };
        Ok(AllOnDevice {
            parts: Self::parts(shape).map(part).collect::<Result<_>>()?,
            size,
            small: RunningMedians::new(session, small)?,
        })
    }

    /// Returns the shapes of the parts for the number of sinograms of `shape`.
    fn parts(shape: SinogramShape) -> impl Iterator<Item = SinogramShape> {
        let slices = [shape.slices.div_ceil(2), shape.slices / 2].into_iter().map(|slices| slices.min(MOST_OF_PART));
        slices.filter(|slices| *slices > 0).map(move |slices| SinogramShape { slices, ..shape })
    }

    pub fn layout(target: StepTarget, shape: SinogramShape) -> BufferLayout {
        let parts = Self::parts(shape).map(|part| LargeOnDevice::layout(target, part));
        parts.fold(BufferLayout::default(), BufferLayout::and)
    }

    /// Divides sinograms into parts, which take turns.
    fn parts_of<'a>(&self, sinograms: &SinogramBatch<'a>) -> Vec<SinogramBatch<'a>> {
        let (mut parts, mut done) = (Vec::new(), 0);
        while done < sinograms.slices {
            let slices = self.parts[parts.len() % self.parts.len()].most.min(sinograms.slices - done);
            let first = sinograms.first + done * sinograms.sinogram_len();
            parts.push(SinogramBatch { first, slices, ..*sinograms });
            done += slices;
        }
        parts
    }

    fn part(&mut self, number: usize) -> &mut LargeOnDevice {
        let parts = self.parts.len();
        &mut self.parts[number % parts].large
    }

    /// Starts to measure the changes of the columns of a part.
    fn measure(&mut self, session: &Session, number: usize, sinograms: &SinogramBatch) -> Result<()> {
        self.part(number).sums.start_changes(session, sinograms)
    }

    /// Interpolates the dead columns of a part, and starts to sort its columns.
    fn sort(&mut self, session: &Session, number: usize, sinograms: &SinogramBatch) -> Result<()> {
        let size = self.size;
        let large = self.part(number);
        interpolate_dead(session, &mut large.sums, sinograms, large.snr, size)?;
        large.sort(session, sinograms)
    }

    /// Corrects and smooths the sorted columns of a part.
    fn finish(&mut self, session: &Session, number: usize, sinograms: &SinogramBatch) -> Result<()> {
        let large = self.part(number);
        large.correct(session, sinograms)?;
        let parts = self.parts.len();
        self.parts[number % parts].large.columns.smooth(session, &self.small, sinograms)
    }
}

impl DeviceSinogramStep for AllOnDevice {
    fn apply(&mut self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        let parts = self.parts_of(sinograms);
        let at_once = self.parts.len();
        for (number, part) in parts.iter().enumerate().take(at_once) {
            self.measure(session, number, part)?;
        }
        // the device has got the next commands before the host waits for results
        let last = parts.len() + at_once - 1;
        for number in 0..last {
            if let Some(part) = parts.get(number) {
                self.sort(session, number, part)?;
            }
            if let Some(part) = parts.get(number + 1).filter(|_| number + 1 >= at_once) {
                self.measure(session, number + 1, part)?;
            }
            if let Some(before) = (number + 1).checked_sub(at_once) {
                self.finish(session, before, &parts[before])?;
            }
        }
        Ok(())
    }

    fn apply_in_parts(&mut self, session: &Session, sinograms: &SinogramBatch, _most: usize) -> Result<()> {
        self.apply(session, sinograms)
    }
}
