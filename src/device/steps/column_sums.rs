//! Sums over the columns of sinograms, and corrections of single values.

use super::{DeviceValues, Session, SinogramBatch, SinogramShape};
use crate::error::{Error, Result};
use crate::kernel::{ColumnSumGroup, generate_column_sums};
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use std::ops::Range;

/// Most work-items along projections where a kernel goes through them in steps.
const PROJECTION_ITEMS: usize = 1 << 12;
/// Most work-groups where a kernel goes through values in steps.
const VALUE_GROUPS: usize = 1 << 14;

/// A bin that is interpolated from others.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    pub slice: i32,
    pub bin: i32,
    pub left: i32,
    pub right: i32,
    /// What is on the right, from 0 to 1.
    pub share: f32,
}

/// Sums over the columns of sinograms of one size.
pub struct ColumnSums {
    sum: Kernel,
    changes: Kernel,
    interpolate: Kernel,
    make_finite: Kernel,
    subtract: Kernel,
    group: ColumnSumGroup,
    sums: Buffer<[f32; 2]>,
    gaps: Buffer<Gap>,
    shape: SinogramShape,
}

impl ColumnSums {
    /// Changes are measured over `alive` projections.
    ///
    /// # Errors
    /// The device's, of building programs and allocating memory.
    pub fn new(session: &Session, shape: SinogramShape, alive: usize) -> Result<Self> {
        let group = ColumnSumGroup::new(&session.facts);
        let program = session.build(&generate_column_sums(group, alive)?)?;
        Ok(ColumnSums {
            sum: session.kernel(&program, "sum_columns")?,
            changes: session.kernel(&program, "sum_changes")?,
            interpolate: session.kernel(&program, "interpolate")?,
            make_finite: session.kernel(&program, "make_finite")?,
            subtract: session.kernel(&program, "subtract")?,
            group,
            sums: session.buffer(shape.slices * shape.bins, CL_MEM_READ_WRITE, "sums of columns")?,
            gaps: session.buffer(shape.slices * shape.bins, CL_MEM_READ_WRITE, "bins to be interpolated")?,
            shape,
        })
    }

    /// Memory in bytes that is needed on a device for each sinogram.
    pub fn device_memory(bins: usize) -> usize {
        28 * bins
    }

    /// The mean of the values of each column, `[slice][bin]`, from rank or projection `counted.start` to before
    /// `counted.end`. `columns` are `[slice][bin][projection]`.
    ///
    /// # Errors
    /// [`Error::Internal`] when a buffer is too small, and the device's.
    pub fn means(&self, session: &Session, columns: &SinogramBatch, counted: Range<usize>) -> Result<Vec<f64>> {
        self.expect(session, columns)?;
        if counted.end > columns.projections {
            return Err(Error::Internal(format!("columns have no {} values", counted.end)));
        }
        let launch = session
            .launch(&self.sum, "sum_columns")
            .handle(columns.values)?
            .handle(&self.sums)?
            .value(columns.first as u64)?
            .value(self.shape.bins as i32)?
            .value(columns.projections as i32)?
            .value(counted.start as i32)?
            .value(counted.end as i32)?;
        let items = self.group.items;
        // SAFETY: batch, sums and range were checked; there is a work-group for each column.
        unsafe { launch.run(&[self.shape.bins * items, 1, columns.slices], Some(&[items, 1, 1])) }?;
        let count = counted.len().max(1) as f64;
        Ok(self.read(session, columns.slices)?.into_iter().map(|sum| sum / count).collect())
    }

    /// The sums of absolute differences of the values of each column of `sinograms` to their running means,
    /// `[slice][bin]`. Values that are not finite count as 0.
    ///
    /// # Errors
    /// [`Error::Internal`] when a buffer is too small, and the device's.
    pub fn changes(&self, session: &Session, sinograms: &SinogramBatch) -> Result<Vec<f64>> {
        self.expect(session, sinograms)?;
        let launch = session
            .launch(&self.changes, "sum_changes")
            .handle(sinograms.values)?
            .handle(&self.sums)?
            .value(sinograms.first as u64)?
            .value(self.shape.bins as i32)?
            .value(sinograms.projections as i32)?;
        let [columns, parts] = self.group.tile;
        let global = [self.shape.bins.next_multiple_of(columns), parts, sinograms.slices];
        // SAFETY: batch and sums were checked; bins beyond them are left out, and projections mirrored.
        unsafe { launch.run(&global, Some(&[columns, parts, 1])) }?;
        self.read(session, sinograms.slices)
    }

    /// Interpolates bins of all projections linearly.
    ///
    /// # Errors
    /// [`Error::Internal`] when a buffer is too small or a bin is not there, and the device's.
    pub fn interpolate(&mut self, session: &Session, sinograms: &SinogramBatch, gaps: &[Gap]) -> Result<()> {
        self.expect(session, sinograms)?;
        session.expect_length(&self.gaps, gaps.len(), "bins to be interpolated")?;
        let is_bin = |bin: i32| (0..self.shape.bins as i32).contains(&bin);
        let is_there = |gap: &Gap| {
            let bins = [gap.bin, gap.left, gap.right].into_iter().all(is_bin);
            bins && gap.left < gap.right && (0..sinograms.slices as i32).contains(&gap.slice)
        };
        if !gaps.iter().all(is_there) {
            return Err(Error::Internal("a bin to be interpolated is not in the sinograms".into()));
        }
        if gaps.is_empty() {
            return Ok(());
        }
        session.write(&mut self.gaps, gaps, "bins to be interpolated")?;
        let launch = session
            .launch(&self.interpolate, "interpolate")
            .handle(sinograms.values)?
            .handle(&self.gaps)?
            .value(sinograms.first as u64)?
            .value(self.shape.bins as i32)?
            .value(sinograms.projections as i32)?
            .value(gaps.len() as i32)?;
        let items = self.group.items;
        let global = [gaps.len().next_multiple_of(items), sinograms.projections.min(PROJECTION_ITEMS)];
        // SAFETY: the batch and the bins of all gaps were checked.
        unsafe { launch.run(&global, Some(&[items, 1])) }?;
        Ok(())
    }

    /// Replaces values that are not finite by 0.
    ///
    /// # Errors
    /// [`Error::Internal`] when a buffer is too small, and the device's.
    pub fn make_finite(&self, session: &Session, sinograms: &SinogramBatch) -> Result<()> {
        self.expect(session, sinograms)?;
        let first = sinograms.first as u64;
        let launch = session.launch(&self.make_finite, "make_finite").handle(sinograms.values)?.value(first)?;
        // SAFETY: an item for each value of the batch, which was checked.
        unsafe { launch.run(&[sinograms.slices * sinograms.sinogram_len()], None) }.map(drop)
    }

    /// Subtracts values at the start of another buffer, of the same layout.
    ///
    /// # Errors
    /// [`Error::Internal`] when a buffer is too small, and the device's.
    pub fn subtract(&self, session: &Session, sinograms: &SinogramBatch, others: &DeviceValues) -> Result<()> {
        self.expect(session, sinograms)?;
        let count = sinograms.slices * sinograms.sinogram_len();
        session.expect_length(others, count, "values to be subtracted")?;
        let launch = session
            .launch(&self.subtract, "subtract")
            .handle(sinograms.values)?
            .handle(others)?
            .value(sinograms.first as u64)?
            .value(count as u64)?;
        // SAFETY: the batch and the other values were checked.
        unsafe { launch.run(&[self.items(count)], Some(&[self.group.items])) }.map(drop)
    }

    /// Checks a batch, and that there is memory for its sums.
    fn expect(&self, session: &Session, batch: &SinogramBatch) -> Result<()> {
        self.shape.expect(session, batch)?;
        session.expect_length(&self.sums, batch.slices * self.shape.bins, "sums of columns")
    }

    /// Sums of the columns of `slices` sinograms.
    fn read(&self, session: &Session, slices: usize) -> Result<Vec<f64>> {
        let mut sums = vec![[0f32; 2]; slices * self.shape.bins];
        session.read(&self.sums, &mut sums, "sums of columns")?;
        Ok(sums.into_iter().map(|[sum, rest]| f64::from(sum) + f64::from(rest)).collect())
    }

    /// Work-items for `count` values.
    fn items(&self, count: usize) -> usize {
        count.div_ceil(self.group.items).clamp(1, VALUE_GROUPS) * self.group.items
    }
}
